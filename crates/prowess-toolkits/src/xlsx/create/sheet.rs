//! The cells of a sheet that is made.

use rust_xlsxwriter::{Format, FormatAlign, FormatBorder, Worksheet};
use serde_json::Value as Json;

use super::super::address::{Area, Cell, LAST_ROW, column_of};
use super::super::arguments::Arguments;
use super::super::cells::{self, Content, Left, Spec};
use super::super::error::{XlsxError, shown};
use super::super::styles::Meaning;
use super::super::value::serial;
use super::{chart, extras, not_made, rules};

/// What a sheet may say.
const KEYS: [&str; 14] = [
    "name",
    "rows",
    "start",
    "header",
    "columns",
    "freeze",
    "autofilter",
    "tables",
    "merges",
    "validations",
    "conditional_formats",
    "charts",
    "hidden",
    "hide_gridlines",
];

/// How a column looks.
#[derive(Default)]
pub(super) struct Column {
    first: u32,
    last: u32,
    format: Option<String>,
}

/// The rows of a sheet, and where they stand.
pub(super) struct Filled<'a> {
    pub(super) rows: &'a [Vec<Spec>],
    pub(super) start: Cell,
    pub(super) columns: &'a [Column],
}

impl Filled<'_> {
    /// What the rows say of a cell.
    pub(super) fn spec(&self, at: Cell) -> Option<&Spec> {
        let row = usize::try_from(at.row.checked_sub(self.start.row)?).ok()?;
        let column = usize::try_from(at.column.checked_sub(self.start.column)?).ok()?;
        self.rows.get(row)?.get(column)
    }

    /// The number format of a column.
    pub(super) fn format(&self, column: u32) -> Option<&str> {
        let look = self.columns.iter().rev().find(|it| (it.first..=it.last).contains(&column));
        look.and_then(|it| it.format.as_deref())
    }
}

/// What a cell is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Plain,
    Header,
    /// It is shown in the place of several.
    Merged,
}

/// Writes what a sheet is described with.
pub(super) fn fill(
    sheet: &mut Worksheet,
    name: &str,
    described: Arguments<'_>,
    left: &mut Left,
) -> Result<(), XlsxError> {
    described.only(&KEYS)?;
    let start = match described.text("start")? {
        Some(text) => cell(text, &described.at("start"))?,
        None => Cell { row: 1, column: 1 },
    };
    let at = described.at("rows");
    let rows = cells::rows(&described.list("rows")?, &at, left)?;
    let has_header = described.flag("header")?;
    let columns = columns(described)?;
    let filled = Filled { rows: &rows, start, columns: &columns };
    // What is not calculated has no value, and not a wrong one.
    sheet.set_formula_result_default("");
    for (number, row) in rows.iter().enumerate() {
        for (offset, spec) in row.iter().enumerate() {
            let at = format!("{at}[{number}][{offset}]");
            let place = place(start, number, offset, &at)?;
            let role = if has_header && number == 0 { Role::Header } else { Role::Plain };
            write(sheet, place, spec, filled.format(place.column), role, &at)?;
        }
    }
    sheet.autofit();
    set_columns(sheet, described)?;
    if let Some(freeze) = described.text("freeze")? {
        let at = described.at("freeze");
        let Cell { row, column } = cell(freeze, &at)?;
        let column = column_number(column - 1);
        sheet.set_freeze_panes(row - 1, column).map_err(|why| not_made(&at, &why))?;
    }
    if let Some(filter) = described.text("autofilter")? {
        let at = described.at("autofilter");
        let (r1, c1, r2, c2) = corners(area(filter, &at)?);
        sheet.autofilter(r1, c1, r2, c2).map_err(|why| not_made(&at, &why))?;
    }
    sheet.set_hidden(described.flag("hidden")?);
    if described.flag("hide_gridlines")? {
        sheet.set_screen_gridlines(false);
    }
    extras::tables(sheet, described, &filled)?;
    extras::merges(sheet, described, &filled, left)?;
    rules::validations(sheet, described)?;
    rules::conditional_formats(sheet, described)?;
    chart::charts(sheet, name, described)
}

/// The cell of a row and a column that count from 0, from a cell on.
fn place(start: Cell, row: usize, column: usize, at: &str) -> Result<Cell, XlsxError> {
    let add = |from: u32, by: usize| u32::try_from(by).ok().and_then(|by| from.checked_add(by));
    let place = add(start.row, row).zip(add(start.column, column));
    let place = place.and_then(|(row, column)| Cell::new(row, column));
    place.ok_or_else(|| XlsxError::invalid(at, format!("a sheet has {LAST_ROW} rows and XFD")))
}

pub(super) fn write(
    sheet: &mut Worksheet,
    place: Cell,
    spec: &Spec,
    column_format: Option<&str>,
    role: Role,
    at: &str,
) -> Result<(), XlsxError> {
    let mut format = match role {
        Role::Plain => Format::new(),
        Role::Header => Format::new()
            .set_bold()
            .set_background_color(0x00D9_E1F2_u32)
            .set_border_bottom(FormatBorder::Thin)
            .set_align(FormatAlign::VerticalCenter),
        Role::Merged => merged_format(),
    };
    let is_header = role == Role::Header;
    if spec.bold {
        format = format.set_bold();
    }
    let given = spec.format.as_deref().or(column_format.filter(|_| !is_header));
    if let Some(code) = given {
        format = format.set_num_format(code);
    }
    let (row, column) = (place.row - 1, column_number(place.column - 1));
    let wrote = match &spec.content {
        Content::Empty if given.is_none() && !spec.bold && role == Role::Plain => return Ok(()),
        Content::Empty => sheet.write_blank(row, column, &format),
        Content::Number(number) => sheet.write_number_with_format(row, column, *number, &format),
        Content::Text(text) => sheet.write_string_with_format(row, column, text, &format),
        Content::Boolean(is) => sheet.write_boolean_with_format(row, column, *is, &format),
        Content::Formula(text) => {
            sheet.write_formula_with_format(row, column, text.as_str(), &format)
        }
        Content::Date { text, meaning } => {
            let number = serial(text, false).map_or(0.0, |(number, _)| number);
            if given.is_none() {
                format = format.set_num_format(date_format(*meaning));
            }
            sheet.write_number_with_format(row, column, number, &format)
        }
    };
    wrote.map(drop).map_err(|why| not_made(at, &why))
}

/// How cells look that are shown as one.
pub(super) fn merged_format() -> Format {
    Format::new().set_bold().set_align(FormatAlign::Center)
}

/// How a date looks if nobody says it.
pub(in super::super) fn date_format(meaning: Meaning) -> &'static str {
    match meaning {
        Meaning::DateTime => "yyyy-mm-dd hh:mm:ss",
        _ => "yyyy-mm-dd",
    }
}

fn columns(described: Arguments<'_>) -> Result<Vec<Column>, XlsxError> {
    let mut columns = Vec::new();
    for (number, column) in described.list("columns")?.iter().enumerate() {
        let at = format!("{}[{number}]", described.at("columns"));
        let column = Arguments::of(column, &at)?;
        column.only(&["column", "width", "format", "hidden"])?;
        let (first, last) = column_range(column.required("column")?, &column.at("column"))?;
        columns.push(Column { first, last, format: column.text("format")?.map(str::to_owned) });
    }
    Ok(columns)
}

/// Widths and formats come after the cells: what is set last counts.
fn set_columns(sheet: &mut Worksheet, described: Arguments<'_>) -> Result<(), XlsxError> {
    for (number, column) in described.list("columns")?.iter().enumerate() {
        let at = format!("{}[{number}]", described.at("columns"));
        let column = Arguments::of(column, &at)?;
        let (first, last) = column_range(column.required("column")?, &column.at("column"))?;
        let width = width(column)?;
        for place in first..=last {
            let place = column_number(place - 1);
            let failed = |why| not_made(&at, &why);
            if let Some(width) = width {
                sheet.set_column_width(place, width).map_err(failed)?;
            }
            if let Some(code) = column.text("format")? {
                let format = Format::new().set_num_format(code);
                sheet.set_column_format(place, &format).map_err(failed)?;
            }
            if column.flag("hidden")? {
                sheet.set_column_hidden(place).map_err(failed)?;
            }
        }
    }
    Ok(())
}

/// A width that Excel takes.
pub(in super::super) fn width(described: Arguments<'_>) -> Result<Option<f64>, XlsxError> {
    match described.number("width")? {
        Some(width) if !(0.0..=255.0).contains(&width) => {
            Err(XlsxError::invalid(described.at("width"), "a width is from 0 to 255"))
        }
        width => Ok(width),
    }
}

/// `B` or `B:D` as numbers.
pub(in super::super) fn column_range(text: &str, at: &str) -> Result<(u32, u32), XlsxError> {
    let (first, last) = text.split_once(':').unwrap_or((text, text));
    match (column_of(first.trim()), column_of(last.trim())) {
        (Some(first), Some(last)) if first <= last => Ok((first, last)),
        _ => Err(XlsxError::invalid(at, format!("'{}' is no column like B or B:D", shown(text)))),
    }
}

pub(in super::super) fn cell(text: &str, at: &str) -> Result<Cell, XlsxError> {
    Cell::parse(text.trim())
        .ok_or_else(|| XlsxError::invalid(at, format!("'{}' is no cell like B2", shown(text))))
}

pub(in super::super) fn area(text: &str, at: &str) -> Result<Area, XlsxError> {
    Area::parse(text.trim())
        .ok_or_else(|| XlsxError::invalid(at, format!("'{}' is no range like A1:D9", shown(text))))
}

/// A list of objects, and where each of them is.
pub(super) fn each<'a>(list: &'a [Json], at: &str) -> impl Iterator<Item = (String, &'a Json)> {
    let at = at.to_owned();
    list.iter().enumerate().map(move |(number, it)| (format!("{at}[{number}]"), it))
}

/// The corners of an area, counted from 0.
pub(super) fn corners(area: Area) -> (u32, u16, u32, u16) {
    let Area { first, last } = area;
    let (c1, c2) = (column_number(first.column - 1), column_number(last.column - 1));
    (first.row - 1, c1, last.row - 1, c2)
}

/// A column always fits.
pub(super) fn column_number(column: u32) -> u16 {
    u16::try_from(column).unwrap_or(u16::MAX)
}
