//! Tables and merged cells of a sheet that is made.

use rust_xlsxwriter::{Format, Table, TableColumn, TableStyle, Worksheet};

use super::super::address::{Area, Cell};
use super::super::arguments::Arguments;
use super::super::cells::{Content, Left, Spec};
use super::super::error::XlsxError;
use super::not_made;
use super::sheet::{Filled, Role, area, corners, each, merged_format, write};

/// Tables over cells that are written: their first row gives the names of columns.
pub(super) fn tables(
    sheet: &mut Worksheet,
    described: Arguments<'_>,
    filled: &Filled<'_>,
) -> Result<(), XlsxError> {
    for (at, table) in each(&described.list("tables")?, &described.at("tables")) {
        let table = Arguments::of(table, &at)?;
        table.only(&["range", "name", "style"])?;
        let range = area(table.required("range")?, &table.at("range"))?;
        if range.rows() < 2 {
            let why = "a table has a header and one row at least";
            return Err(XlsxError::invalid(table.at("range"), why));
        }
        let mut columns = Vec::new();
        for column in range.first.column..=range.last.column {
            let header = header(filled, Cell { row: range.first.row, column });
            let Some(header) = header.filter(|it| !it.trim().is_empty()) else {
                let why = format!(
                    "the first row of a table names its columns: write a text into {}",
                    Cell { row: range.first.row, column }
                );
                return Err(XlsxError::invalid(table.at("range"), why));
            };
            columns.push(TableColumn::new().set_header(header));
        }
        let mut made = Table::new().set_columns(&columns).set_style(style(table)?);
        if let Some(name) = table.text("name")? {
            made = made.set_name(name);
        }
        let (r1, c1, r2, c2) = corners(range);
        sheet.add_table(r1, c1, r2, c2, &made).map_err(|why| not_made(&at, &why))?;
        // A sheet reaches as far as its tables do, even if their last rows are empty.
        let is_plain = |it: &Spec| it.content == Content::Empty && it.format.is_none() && !it.bold;
        if filled.spec(range.last).is_none_or(is_plain) {
            let blank = sheet.write_blank(r2, c2, &Format::new());
            blank.map_err(|why| not_made(&at, &why))?;
        }
    }
    Ok(())
}

fn header(filled: &Filled<'_>, at: Cell) -> Option<String> {
    match &filled.spec(at)?.content {
        Content::Text(text) => Some(text.clone()),
        _ => None,
    }
}

fn style(table: Arguments<'_>) -> Result<TableStyle, XlsxError> {
    Ok(match table.text("style")? {
        None | Some("medium") => TableStyle::Medium2,
        Some("light") => TableStyle::Light9,
        Some("dark") => TableStyle::Dark2,
        Some("none") => TableStyle::None,
        Some(_) => {
            let why = "it must be light, medium, dark or none";
            return Err(XlsxError::invalid(table.at("style"), why));
        }
    })
}

/// Cells that are shown as one: the first of them says what, unless a text is given.
pub(super) fn merges(
    sheet: &mut Worksheet,
    described: Arguments<'_>,
    filled: &Filled<'_>,
    left: &mut Left,
) -> Result<(), XlsxError> {
    for (at, merge) in each(&described.list("merges")?, &described.at("merges")) {
        let merge = Arguments::of(merge, &at)?;
        merge.only(&["range", "text"])?;
        let range = area(merge.required("range")?, &merge.at("range"))?;
        left.take(range.cells())?;
        let text = merge.text("text")?;
        let first = filled.spec(range.first).filter(|it| it.content != Content::Empty);
        if let Some(lost) = hidden_by(range, text, first, filled) {
            let why = format!("{lost} holds something that the merged cells would not show");
            return Err(XlsxError::invalid(merge.at("range"), why));
        }
        let (r1, c1, r2, c2) = corners(range);
        let text = text.unwrap_or_default();
        let merged = sheet.merge_range(r1, c1, r2, c2, text, &merged_format());
        merged.map_err(|why| not_made(&at, &why))?;
        if let Some(spec) = first {
            let format = filled.format(range.first.column);
            write(sheet, range.first, spec, format, Role::Merged, &at)?;
        }
    }
    Ok(())
}

/// The first cell that holds something which is not seen once the area is shown as one cell.
fn hidden_by(
    area: Area,
    text: Option<&str>,
    first: Option<&Spec>,
    filled: &Filled<'_>,
) -> Option<Cell> {
    let is_other = |spec: &Spec| match (&spec.content, text) {
        (_, None) => false,
        (Content::Text(own), Some(text)) => own != text,
        (_, Some(_)) => true,
    };
    if first.is_some_and(is_other) {
        return Some(area.first);
    }
    let rows = u32::try_from(filled.rows.len()).unwrap_or(u32::MAX);
    let last = area.last.row.min(filled.start.row.saturating_add(rows));
    (area.first.row..=last)
        .flat_map(|row| (area.first.column..=area.last.column).map(move |column| (row, column)))
        .map(|(row, column)| Cell { row, column })
        .filter(|at| *at != area.first)
        .find(|at| filled.spec(*at).is_some_and(|it| it.content != Content::Empty))
}
