//! The values of formulas written into a sheet: all other bytes stay.

use quick_xml::events::{BytesStart, Event};

use super::super::error::XlsxError;
use super::super::settings::XlsxSettings;
use super::super::splice::{Pieces, tag};
use super::super::xml::{attribute, push_text};

/// A sheet with new values.
pub(super) struct New {
    pub(super) xml: String,
    pub(super) changed_cells: u64,
}

/// A cell that is being read.
struct Open<'a> {
    start: BytesStart<'a>,
    /// Where its first tag is.
    from: usize,
    to: usize,
    /// Where its formula ends, if it has one.
    formula: Option<usize>,
    /// Where its value is, and the tag that it begins with.
    value: Option<(usize, usize, &'a str)>,
    text: String,
    is_in_value: bool,
    /// Whether something else is in it.
    has_more: bool,
}

/// The sheet with these values for its formulas, in their order; none if a formula stands there in
/// another way than expected.
pub(super) fn with_values(
    xml: &str,
    part: &str,
    values: &[f64],
    limits: &XlsxSettings,
) -> Result<Option<New>, XlsxError> {
    let mut pieces = Pieces::of(xml, part, limits);
    let mut left = values.iter();
    let mut out = Output { xml, done: 0, new: String::with_capacity(xml.len() + xml.len() / 4) };
    let mut changed_cells = 0;
    let mut open: Option<Open<'_>> = None;
    while let Some(piece) = pieces.next()? {
        let Some(cell) = &mut open else {
            if let Event::Start(it) = piece.event
                && it.local_name().as_ref() == "c"
            {
                open = Some(Open {
                    start: it,
                    from: piece.from,
                    to: piece.to,
                    formula: None,
                    value: None,
                    text: String::new(),
                    is_in_value: false,
                    has_more: false,
                });
            }
            continue;
        };
        match &piece.event {
            Event::Start(it) | Event::Empty(it) => {
                let is_empty = matches!(piece.event, Event::Empty(_));
                match it.name().0 {
                    "f" => cell.formula = Some(piece.to),
                    "v" => {
                        let tag = if is_empty { "<v>" } else { &xml[piece.from..piece.to] };
                        cell.value = Some((piece.from, piece.to, tag));
                        cell.is_in_value = !is_empty;
                    }
                    _ => cell.has_more = true,
                }
            }
            Event::End(it) => match it.name().0 {
                "f" => cell.formula = Some(piece.to),
                "v" => {
                    cell.value = cell.value.map(|it| (it.0, piece.to, it.2));
                    cell.is_in_value = false;
                }
                "c" => {
                    if let Some(cell) = open.take()
                        && let Some(end) = cell.formula
                    {
                        let Some(value) = left.next() else { return Ok(None) };
                        match out.put(&cell, end, *value) {
                            Some(is_new) => changed_cells += u64::from(is_new),
                            None => return Ok(None),
                        }
                    }
                }
                _ => {}
            },
            event if cell.is_in_value => push_text(&mut cell.text, event, part, limits)?,
            _ => {}
        }
    }
    if open.is_some() || left.next().is_some() {
        return Ok(None);
    }
    out.copy_to(xml.len());
    Ok(Some(New { xml: out.new, changed_cells }))
}

struct Output<'a> {
    xml: &'a str,
    /// Up to where it is copied.
    done: usize,
    new: String,
}

impl Output<'_> {
    fn copy_to(&mut self, to: usize) {
        self.new.push_str(&self.xml[self.done..to]);
        self.done = to;
    }

    /// Gives a cell its value, and says whether that is another one; none if the cell holds more
    /// than a formula and its value.
    fn put(&mut self, cell: &Open<'_>, formula: usize, value: f64) -> Option<bool> {
        let has_metadata = ["cm", "vm"].iter().any(|it| attribute(&cell.start, it).is_some());
        if cell.has_more || has_metadata {
            return None;
        }
        let kind = attribute(&cell.start, "t");
        let is_number = kind.as_deref().is_none_or(|it| it == "n");
        let old = cell.value.and_then(|_| cell.text.trim().parse().ok());
        if is_number && old.is_some_and(|old| agree(old, value)) {
            return Some(false);
        }
        if !is_number {
            self.copy_to(cell.from);
            self.new.push_str(&tag(&cell.start, &[("t", None)], false));
            self.done = cell.to;
        }
        let (from, to, tag) = cell.value.unwrap_or((formula, formula, "<v>"));
        if from < formula {
            return None;
        }
        self.copy_to(from);
        self.new.push_str(&format!("{tag}{value}</v>"));
        self.done = to;
        Some(true)
    }
}

/// Whether a value that a program wrote is the one that was calculated: they differ by no more
/// than one in the fifteenth digit. Programs write no more digits.
#[allow(clippy::float_cmp, reason = "mostly they are the same")]
pub(super) fn agree(old: f64, new: f64) -> bool {
    if old == new {
        return true;
    }
    let larger = old.abs().max(new.abs());
    let is_close = (old - new).abs() <= larger * 1e-13;
    if !is_close || old == 0.0 || new == 0.0 || old.is_sign_negative() != new.is_sign_negative() {
        return false;
    }
    let text = format!("{larger:.17e}");
    let exponent = text.split_once('e').and_then(|it| it.1.parse::<i32>().ok());
    let one = exponent.and_then(|it| format!("1e{}", it - 14).parse::<f64>().ok());
    one.is_some_and(|one| (old - new).abs() <= one)
}
