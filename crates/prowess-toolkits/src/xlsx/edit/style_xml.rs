//! Styles added to a workbook's own: a number format, or bold, on top of one that is there.

use std::collections::BTreeMap;

use quick_xml::events::{BytesStart, Event};

use super::super::book::Book;
use super::super::error::XlsxError;
use super::super::package::Package;
use super::super::settings::XlsxSettings;
use super::super::splice::{Pieces, refuse_prefix, spliced, tag};
use super::super::styles::{Meaning, Styles, built_in_number};
use super::super::xml::{attribute, escaped};

/// The first number of formats that workbooks bring.
const FIRST_OWN: u32 = 164;

/// The highest number of a format that is read: there are enough left above it.
const HIGHEST_READ: u32 = u32::MAX / 2;

/// A workbook's styles, with those that are added.
pub(super) struct StyleBook {
    part: Option<String>,
    xml: String,
    styles: Styles,
    /// The styles of cells: their tags, and what is between.
    cells: Vec<(BytesStart<'static>, String)>,
    fonts: Vec<String>,
    formats: BTreeMap<String, u32>,
    next_format: u32,
    spots: Spots,
    old: (usize, usize, usize),
    new_formats: Vec<(u32, String)>,
    derived: BTreeMap<(u32, Option<String>, bool), u32>,
}

/// Where something is added: the opening tag, and the place before the closing one.
#[derive(Default)]
struct Spots {
    root: usize,
    formats: Option<Spot>,
    fonts: Option<Spot>,
    cells: Option<Spot>,
}

#[derive(Clone)]
struct Spot {
    from: usize,
    to: usize,
    element: BytesStart<'static>,
    end: usize,
    is_empty: bool,
}

impl StyleBook {
    pub(super) fn read(
        package: &mut Package,
        book: &Book,
        limits: &XlsxSettings,
    ) -> Result<Self, XlsxError> {
        let styles = Styles::read(package, book, limits)?;
        let part = book.styles.clone().filter(|it| package.has(it));
        let xml = match &part {
            Some(part) => package.text(part, limits)?,
            None => String::new(),
        };
        let mut own = Self {
            part,
            xml,
            styles,
            cells: Vec::new(),
            fonts: Vec::new(),
            formats: BTreeMap::new(),
            next_format: FIRST_OWN,
            spots: Spots::default(),
            old: (0, 0, 0),
            new_formats: Vec::new(),
            derived: BTreeMap::new(),
        };
        if own.part.is_some() {
            own.scan(limits)?;
        }
        own.old = (own.formats.len(), own.fonts.len(), own.cells.len());
        Ok(own)
    }

    fn scan(&mut self, limits: &XlsxSettings) -> Result<(), XlsxError> {
        let xml = std::mem::take(&mut self.xml);
        let part = self.part.clone().unwrap_or_default();
        let mut pieces = Pieces::of(&xml, &part, limits);
        let mut inside = "";
        let mut begin = 0;
        while let Some(piece) = pieces.next()? {
            match &piece.event {
                Event::Start(it) | Event::Empty(it) => {
                    let is_empty = matches!(piece.event, Event::Empty(_));
                    match (piece.depth, it.local_name().as_ref()) {
                        (0, _) => {
                            refuse_prefix(it, &part)?;
                            self.spots.root = piece.to;
                        }
                        (1, name @ ("numFmts" | "fonts" | "cellXfs")) => {
                            let element = it.clone().into_owned();
                            let (from, to) = (piece.from, piece.to);
                            let spot = Spot { from, to, element, end: piece.to, is_empty };
                            match name {
                                "numFmts" => (inside, self.spots.formats) = ("formats", Some(spot)),
                                "fonts" => (inside, self.spots.fonts) = ("fonts", Some(spot)),
                                _ => (inside, self.spots.cells) = ("cells", Some(spot)),
                            }
                            if is_empty {
                                inside = "";
                            }
                        }
                        (1, _) => inside = "",
                        (2, "numFmt") if inside == "formats" => {
                            let id = attribute(it, "numFmtId").and_then(|it| it.parse().ok());
                            if let (Some(id), Some(code)) = (id, attribute(it, "formatCode")) {
                                if id > HIGHEST_READ {
                                    let why = "a number format has a number that is too high";
                                    return Err(XlsxError::malformed(&part, why));
                                }
                                self.formats.insert(code.into_owned(), id);
                                self.next_format = self.next_format.max(id + 1);
                            }
                        }
                        (2, "font") if inside == "fonts" => {
                            begin = piece.from;
                            if is_empty {
                                self.fonts.push(xml[piece.from..piece.to].to_owned());
                            }
                        }
                        (2, "xf") if inside == "cells" => {
                            begin = piece.to;
                            self.cells.push((it.clone().into_owned(), String::new()));
                        }
                        _ => {}
                    }
                }
                Event::End(it) => match (piece.depth, it.local_name().as_ref(), inside) {
                    (2, "font", "fonts") => self.fonts.push(xml[begin..piece.to].to_owned()),
                    (2, "xf", "cells") => {
                        if let Some((_, text)) = self.cells.last_mut() {
                            xml[begin..piece.from].clone_into(text);
                        }
                    }
                    (1, "numFmts", _) => end(&mut self.spots.formats, piece.from),
                    (1, "fonts", _) => end(&mut self.spots.fonts, piece.from),
                    (1, "cellXfs", _) => end(&mut self.spots.cells, piece.from),
                    _ => {}
                },
                _ => {}
            }
        }
        self.xml = xml;
        Ok(())
    }

    /// What numbers of a style stand for.
    pub(super) fn meaning(&self, style: u32) -> Meaning {
        self.styles.meaning(style)
    }

    /// The style that is another one with a number format, or bold. The same asked twice is the
    /// same style.
    pub(super) fn derive(&mut self, base: u32, format: Option<&str>, bold: bool) -> u32 {
        if (format.is_none() && !bold) || self.spots.cells.is_none() {
            return base;
        }
        let key = (base, format.map(str::to_owned), bold);
        if let Some(known) = self.derived.get(&key) {
            return *known;
        }
        let fallback = || (BytesStart::new("xf").into_owned(), String::new());
        let (element, inside) = self.cells.get(base as usize).cloned().unwrap_or_else(fallback);
        let mut changes: Vec<(&str, Option<String>)> = Vec::new();
        if let Some(code) = format {
            let number = self.format(code);
            changes.push(("numFmtId", Some(number.to_string())));
            changes.push(("applyNumberFormat", Some("1".to_owned())));
        }
        if bold {
            let font = attribute(&element, "fontId").and_then(|it| it.parse().ok()).unwrap_or(0);
            let font = self.bold_font(font);
            changes.push(("fontId", Some(font.to_string())));
            changes.push(("applyFont", Some("1".to_owned())));
        }
        let changes: Vec<(&str, Option<&str>)> =
            changes.iter().map(|(name, value)| (*name, value.as_deref())).collect();
        let text = tag(&element, &changes, true);
        let content = text.trim_start_matches('<').trim_end_matches("/>").to_owned();
        let made = BytesStart::from_content(content, 2);
        // One that is there already is used again.
        let same = self.cells.iter().position(|(it, between)| {
            tag(it, &[], true) == tag(&made, &[], true) && *between == inside
        });
        let number = match same {
            Some(number) => number,
            None => {
                self.cells.push((made, inside));
                self.cells.len() - 1
            }
        };
        let number = u32::try_from(number).unwrap_or(base);
        self.derived.insert(key, number);
        number
    }

    fn format(&mut self, code: &str) -> u32 {
        if let Some(number) = built_in_number(code) {
            return number;
        }
        if let Some(number) = self.formats.get(code) {
            return *number;
        }
        let number = self.next_format;
        self.next_format += 1;
        self.formats.insert(code.to_owned(), number);
        self.new_formats.push((number, code.to_owned()));
        number
    }

    fn bold_font(&mut self, font: usize) -> usize {
        let Some(text) = self.fonts.get(font) else { return font };
        if text.contains("<b/>") || text.contains("<b ") || text.contains("<b>") {
            return font;
        }
        let bold = match text.strip_prefix("<font>") {
            Some(rest) => format!("<font><b/>{rest}"),
            None => "<font><b/></font>".to_owned(),
        };
        match self.fonts.iter().position(|it| *it == bold) {
            Some(number) => number,
            None => {
                self.fonts.push(bold);
                self.fonts.len() - 1
            }
        }
    }

    /// The part with what was added; none if nothing was.
    pub(super) fn changed(&self) -> Option<(String, String)> {
        let part = self.part.clone()?;
        let (_, old_fonts, old_cells) = self.old;
        let new_fonts = self.fonts.get(old_fonts..).unwrap_or_default();
        let new_cells = self.cells.get(old_cells..).unwrap_or_default();
        if self.new_formats.is_empty() && new_fonts.is_empty() && new_cells.is_empty() {
            return None;
        }
        let mut pieces = Vec::new();
        let formats = self.new_formats.iter().map(|(number, code)| {
            format!("<numFmt numFmtId=\"{number}\" formatCode=\"{}\"/>", escaped(code))
        });
        let formats: String = formats.collect();
        match &self.spots.formats {
            Some(spot) => grow(&mut pieces, spot, self.formats.len(), &formats),
            None if !formats.is_empty() => {
                let count = self.new_formats.len();
                let text = format!("<numFmts count=\"{count}\">{formats}</numFmts>");
                pieces.push((self.spots.root, self.spots.root, text));
            }
            None => {}
        }
        if let Some(spot) = &self.spots.fonts {
            grow(&mut pieces, spot, self.fonts.len(), &new_fonts.concat());
        }
        if let Some(spot) = &self.spots.cells {
            let cells = new_cells.iter().map(|(element, inside)| match inside.is_empty() {
                true => tag(element, &[], true),
                false => format!("{}{inside}</xf>", tag(element, &[], false)),
            });
            grow(&mut pieces, spot, self.cells.len(), &cells.collect::<String>());
        }
        Some((part, spliced(&self.xml, pieces)))
    }
}

fn end(spot: &mut Option<Spot>, at: usize) {
    if let Some(spot) = spot {
        spot.end = at;
    }
}

/// Adds to a list: its count, and what comes last.
fn grow(pieces: &mut Vec<(usize, usize, String)>, spot: &Spot, count: usize, added: &str) {
    if added.is_empty() {
        return;
    }
    let count = count.to_string();
    if spot.is_empty {
        let open = tag(&spot.element, &[("count", Some(&count))], false);
        let name = spot.element.name().0;
        pieces.push((spot.from, spot.to, format!("{open}{added}</{name}>")));
        return;
    }
    pieces.push((spot.from, spot.to, tag(&spot.element, &[("count", Some(&count))], false)));
    pieces.push((spot.end, spot.end, added.to_owned()));
}
