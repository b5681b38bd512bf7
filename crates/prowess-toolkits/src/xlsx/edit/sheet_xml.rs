//! Cells and columns of a sheet exchanged in its XML.

use std::collections::BTreeMap;

use quick_xml::events::Event;

use super::super::address::Cell;
use super::super::cells::Content;
use super::super::error::XlsxError;
use super::super::formula::{shifted, stored};
use super::super::inspect::grown;
use super::super::settings::XlsxSettings;
use super::super::splice::{Piece, Pieces, refuse_prefix, tag};
use super::super::strings::encoded;
use super::super::styles::Meaning;
use super::super::value::serial;
use super::super::xml::{attribute, escaped};
use super::columns_xml::{columns, widened};
use super::facts::Facts;
use super::style_xml::StyleBook;

/// What is to be changed on a sheet.
#[derive(Clone, Debug, Default)]
pub(super) struct SheetEdit {
    pub(super) cells: BTreeMap<Cell, Change>,
    /// From column, to column, width.
    pub(super) widths: Vec<(u32, u32, f64)>,
}

/// What is to be changed in a cell.
#[derive(Clone, Debug, Default)]
pub(super) struct Change {
    /// What it holds; as before, if it is none.
    pub(super) content: Option<Content>,
    pub(super) format: Option<String>,
    pub(super) bold: bool,
    /// The style of a cell that is new.
    pub(super) base_style: Option<u32>,
}

/// A sheet that was changed.
pub(super) struct Patched {
    pub(super) xml: String,
    /// Whether there are other formulas than before.
    pub(super) are_formulas_changed: bool,
}

/// What is known while a sheet is gone through.
struct Patch<'a> {
    xml: &'a str,
    facts: &'a Facts,
    styles: &'a mut StyleBook,
    from_1904: bool,
    out: String,
    /// What is still to be written.
    left: BTreeMap<Cell, Change>,
    are_formulas_changed: bool,
    /// The style of the row, for its new cells.
    row_style: Option<u32>,
}

/// Changes a sheet. What is not changed is copied as it is.
pub(super) fn patch(
    xml: &str,
    part: &str,
    edit: &SheetEdit,
    facts: &Facts,
    styles: &mut StyleBook,
    from_1904: bool,
    limits: &XlsxSettings,
) -> Result<Patched, XlsxError> {
    // What is there stays inside: a sheet that says less of itself is taken for a damaged one.
    let present = edit.cells.keys().fold(facts.present, |area, cell| Some(grown(area, *cell)));
    let mut patch = Patch {
        xml,
        facts,
        styles,
        from_1904,
        out: String::with_capacity(xml.len() + edit.cells.len() * 40),
        left: edit.cells.clone(),
        are_formulas_changed: false,
        row_style: None,
    };
    let mut pieces = Pieces::of(xml, part, limits);
    let mut has_columns = false;
    let mut row = 0;
    while let Some(piece) = pieces.next()? {
        match &piece.event {
            Event::Start(it) | Event::Empty(it) if piece.depth <= 1 => {
                let is_empty = matches!(piece.event, Event::Empty(_));
                match (piece.depth, it.local_name().as_ref()) {
                    (0, _) => {
                        refuse_prefix(it, part)?;
                        patch.copy(&piece);
                    }
                    (1, "dimension") if present.is_some() => {
                        let area = present.map(|it| it.to_string()).unwrap_or_default();
                        patch.out.push_str(&tag(it, &[("ref", Some(&area))], is_empty));
                    }
                    (1, "cols") if !edit.widths.is_empty() => {
                        has_columns = true;
                        let columns = columns(&mut pieces, is_empty)?;
                        patch.out.push_str(&widened(columns, &edit.widths));
                    }
                    (1, "sheetData") => {
                        if !has_columns && !edit.widths.is_empty() {
                            patch.out.push_str(&widened(Vec::new(), &edit.widths));
                        }
                        patch.out.push_str("<sheetData>");
                        if !is_empty {
                            while let Some(piece) = pieces.next()? {
                                if !patch.row(&mut pieces, &piece, &mut row)? {
                                    break;
                                }
                            }
                        }
                        patch.new_rows(u32::MAX)?;
                        patch.out.push_str("</sheetData>");
                    }
                    _ => patch.copy(&piece),
                }
            }
            _ => patch.copy(&piece),
        }
    }
    if !patch.left.is_empty() {
        return Err(XlsxError::malformed(part, "it has no place for cells"));
    }
    Ok(Patched { xml: patch.out, are_formulas_changed: patch.are_formulas_changed })
}

impl Patch<'_> {
    fn copy(&mut self, piece: &Piece<'_>) {
        self.out.push_str(&self.xml[piece.from..piece.to]);
    }

    /// Takes a piece between rows, with the whole row if one begins; false at the end of all rows.
    fn row(
        &mut self,
        pieces: &mut Pieces<'_>,
        piece: &Piece<'_>,
        row: &mut u32,
    ) -> Result<bool, XlsxError> {
        let (element, is_empty) = match &piece.event {
            Event::Start(it) if it.local_name().as_ref() == "row" => (it, false),
            Event::Empty(it) if it.local_name().as_ref() == "row" => (it, true),
            Event::End(it) if it.local_name().as_ref() == "sheetData" => return Ok(false),
            _ => {
                self.copy(piece);
                return Ok(true);
            }
        };
        *row = match attribute(element, "r") {
            Some(number) => number.parse().unwrap_or(0),
            None => row.saturating_add(1),
        };
        self.new_rows(*row)?;
        let is_changed = self.left.keys().next().is_some_and(|it| it.row == *row);
        let has_broken = self.facts.broken_rows.contains(row);
        if !is_changed && !has_broken {
            self.copy(piece);
            if !is_empty {
                self.copy_to_end(pieces, "row")?;
            }
            return Ok(true);
        }
        let style = attribute(element, "s").and_then(|it| it.parse().ok());
        self.row_style = style.filter(|_| super::super::xml::is_on(element, "customFormat"));
        self.out.push_str(&tag(element, &[("spans", None)], false));
        let mut column = 0;
        if !is_empty {
            while let Some(piece) = pieces.next()? {
                let is_end =
                    matches!(&piece.event, Event::End(it) if it.local_name().as_ref() == "row");
                if is_end {
                    break;
                }
                self.cell(pieces, &piece, *row, &mut column)?;
            }
        }
        self.new_cells(*row, u32::MAX)?;
        self.out.push_str("</row>");
        self.row_style = None;
        Ok(true)
    }

    /// Takes a piece of a row, with the whole cell if one begins.
    fn cell(
        &mut self,
        pieces: &mut Pieces<'_>,
        piece: &Piece<'_>,
        row: u32,
        column: &mut u32,
    ) -> Result<(), XlsxError> {
        let (element, is_empty) = match &piece.event {
            Event::Start(it) if it.local_name().as_ref() == "c" => (it, false),
            Event::Empty(it) if it.local_name().as_ref() == "c" => (it, true),
            _ => {
                self.copy(piece);
                return Ok(());
            }
        };
        let at = attribute(element, "r").and_then(|it| Cell::parse(&it));
        let at = at.unwrap_or(Cell { row, column: column.saturating_add(1) });
        *column = at.column;
        self.new_cells(row, at.column)?;
        let Some(change) = self.left.remove(&at) else {
            self.copy(piece);
            if !is_empty {
                self.copy_cell(pieces, at)?;
            }
            return Ok(());
        };
        let base = attribute(element, "s").and_then(|it| it.parse().ok()).unwrap_or(0);
        let style = self.style(&change, base);
        match &change.content {
            Some(content) => {
                let had_formula = match is_empty {
                    true => false,
                    false => self.skip_cell(pieces)?,
                };
                let has_formula = matches!(content, Content::Formula(_));
                self.are_formulas_changed |= had_formula || has_formula;
                if *content != Content::Empty || style != 0 {
                    self.write(at, content, style);
                }
            }
            None => {
                let style = style.to_string();
                self.out.push_str(&tag(element, &[("s", Some(&style))], is_empty));
                if !is_empty {
                    self.copy_cell(pieces, at)?;
                }
            }
        }
        Ok(())
    }

    /// Copies the rest of a cell. A formula whose text another cell loses gets it for its own.
    fn copy_cell(&mut self, pieces: &mut Pieces<'_>, at: Cell) -> Result<(), XlsxError> {
        while let Some(piece) = pieces.next()? {
            let shared = match &piece.event {
                Event::Start(it) | Event::Empty(it) if it.local_name().as_ref() == "f" => {
                    let number = attribute(it, "si").and_then(|it| it.parse::<u32>().ok());
                    number.and_then(|it| self.facts.broken.get(&it))
                }
                _ => None,
            };
            let is_start = matches!(piece.event, Event::Start(_));
            if let Some((from, text)) = shared {
                let rows = i64::from(at.row) - i64::from(from.row);
                let columns = i64::from(at.column) - i64::from(from.column);
                let own = shifted(text, rows, columns);
                self.out.push_str(&format!("<f>{}</f>", escaped(&own)));
                if is_start {
                    skip_to_end(pieces, "f")?;
                }
                continue;
            }
            self.copy(&piece);
            if matches!(&piece.event, Event::End(it) if it.local_name().as_ref() == "c") {
                break;
            }
        }
        Ok(())
    }

    /// Leaves out the rest of a cell, and says whether it held a formula.
    fn skip_cell(&mut self, pieces: &mut Pieces<'_>) -> Result<bool, XlsxError> {
        let mut had_formula = false;
        while let Some(piece) = pieces.next()? {
            match &piece.event {
                Event::Start(it) | Event::Empty(it) => {
                    had_formula |= it.local_name().as_ref() == "f";
                }
                Event::End(it) if it.local_name().as_ref() == "c" => break,
                _ => {}
            }
        }
        Ok(had_formula)
    }

    fn copy_to_end(&mut self, pieces: &mut Pieces<'_>, name: &str) -> Result<(), XlsxError> {
        while let Some(piece) = pieces.next()? {
            self.copy(&piece);
            if matches!(&piece.event, Event::End(it) if it.local_name().as_ref() == name) {
                break;
            }
        }
        Ok(())
    }

    /// Writes the rows that are still to be written before this one.
    fn new_rows(&mut self, before: u32) -> Result<(), XlsxError> {
        while let Some(row) = self.left.keys().next().map(|it| it.row).filter(|it| *it < before) {
            self.out.push_str(&format!("<row r=\"{row}\">"));
            self.new_cells(row, u32::MAX)?;
            self.out.push_str("</row>");
        }
        Ok(())
    }

    /// Writes the cells of a row that are still to be written before this column.
    fn new_cells(&mut self, row: u32, before: u32) -> Result<(), XlsxError> {
        loop {
            let next = self.left.first_key_value().map(|(at, _)| *at);
            let Some(at) = next.filter(|it| it.row == row && it.column < before) else {
                return Ok(());
            };
            let Some(change) = self.left.remove(&at) else { return Ok(()) };
            let base = change.base_style.or(self.row_style);
            let base = base.unwrap_or_else(|| self.facts.column_style(at.column));
            let style = self.style(&change, base);
            let content = change.content.unwrap_or(Content::Empty);
            self.are_formulas_changed |= matches!(content, Content::Formula(_));
            if content != Content::Empty || style != 0 {
                self.write(at, &content, style);
            }
        }
    }

    /// The style of a cell: its own, with what the change says.
    fn style(&mut self, change: &Change, base: u32) -> u32 {
        let mut format = change.format.clone();
        if let (Some(Content::Date { meaning, .. }), None) = (&change.content, &format)
            && !matches!(self.styles.meaning(base), Meaning::Date | Meaning::DateTime)
        {
            format = Some(super::super::create::date_format(*meaning).to_owned());
        }
        self.styles.derive(base, format.as_deref(), change.bold)
    }

    fn write(&mut self, at: Cell, content: &Content, style: u32) {
        let style = if style == 0 { String::new() } else { format!(" s=\"{style}\"") };
        self.out.push_str(&match content {
            Content::Empty => format!("<c r=\"{at}\"{style}/>"),
            Content::Number(number) => format!("<c r=\"{at}\"{style}><v>{number}</v></c>"),
            Content::Boolean(is) => {
                format!("<c r=\"{at}\"{style} t=\"b\"><v>{}</v></c>", u8::from(*is))
            }
            Content::Text(text) => format!(
                "<c r=\"{at}\"{style} t=\"inlineStr\"><is><t xml:space=\"preserve\">{}</t></is></c>",
                escaped(&encoded(text))
            ),
            Content::Formula(text) => {
                format!("<c r=\"{at}\"{style}><f>{}</f></c>", escaped(&stored(text)))
            }
            Content::Date { text, .. } => {
                let number = serial(text, self.from_1904).map_or(0.0, |(number, _)| number);
                format!("<c r=\"{at}\"{style}><v>{number}</v></c>")
            }
        });
    }
}

fn skip_to_end(pieces: &mut Pieces<'_>, name: &str) -> Result<(), XlsxError> {
    while let Some(piece) = pieces.next()? {
        if matches!(&piece.event, Event::End(it) if it.local_name().as_ref() == name) {
            break;
        }
    }
    Ok(())
}
