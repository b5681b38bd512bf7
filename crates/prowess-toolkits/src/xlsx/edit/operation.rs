//! The operations of an edit, as a call describes them.

use serde_json::Value as Json;

use super::super::address::{Area, Cell, split_sheet};
use super::super::arguments::Arguments;
use super::super::cells::{self, Left, Spec};
use super::super::create::{area, cell, check_sheet_name, column_range, width};
use super::super::error::{XlsxError, shown};
use super::super::guard::check_formula;
use super::super::settings::XlsxSettings;

/// What is to be done, and where it was described.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub(super) at: String,
    pub(super) what: What,
}

/// What is to be done.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// Puts something into cells, from one on.
    Set {
        sheet: Option<String>,
        start: Cell,
        rows: Vec<Vec<Spec>>,
    },
    /// Empties cells; they keep their looks.
    Clear {
        sheet: Option<String>,
        area: Area,
    },
    /// Changes how cells look.
    Format {
        sheet: Option<String>,
        area: Area,
        format: Option<String>,
        bold: bool,
    },
    /// Adds rows below the last one, or below a table, which grows.
    Append {
        sheet: Option<String>,
        table: Option<String>,
        rows: Vec<Vec<Spec>>,
    },
    AddSheet {
        name: String,
        rows: Vec<Vec<Spec>>,
    },
    RenameSheet {
        sheet: String,
        name: String,
    },
    Width {
        sheet: Option<String>,
        first: u32,
        last: u32,
        width: f64,
    },
    Name {
        name: String,
        refers_to: String,
    },
}

/// Operations that people ask for and that would break something, with what to do instead.
const NOT_DONE: [(&str, &str); 12] = [
    ("insert_rows", "rows that move would need every reference to them changed; use append_rows"),
    ("insert_columns", "columns that move would need every reference to them changed"),
    ("delete_rows", "references to the rows would break; use clear"),
    ("delete_columns", "references to the columns would break; use clear"),
    ("delete_sheet", "references to the sheet would break; make a new workbook without it"),
    ("merge", "cells below a merge are lost; use xlsx_create with merges"),
    ("unmerge", "merged cells stay as they are"),
    ("sort", "formulas would move; read the rows, sort them, and set them again"),
    ("add_chart", "charts are made by xlsx_create; those that are there stay"),
    ("add_table", "tables are made by xlsx_create; append_rows makes one longer"),
    ("add_pivot", "pivot tables are not made; those that are there stay"),
    ("run_macro", "macros are never run"),
];

const DONE: &str =
    "set, clear, format, append_rows, add_sheet, rename_sheet, column_width, define_name";

/// Reads the operations of a call.
///
/// What of the cells may be written is left for the ranges, of which only the used part counts.
pub(super) fn parse(
    list: &[Json],
    settings: &XlsxSettings,
) -> Result<(Vec<Operation>, Left), XlsxError> {
    if list.is_empty() {
        return Err(XlsxError::invalid("operations", "there must be one at least"));
    }
    let count = list.len() as u64;
    if count > settings.max_operations {
        let (limit, most) = ("max_operations", settings.max_operations);
        return Err(XlsxError::limit("the operations", count, limit, most));
    }
    let mut left = Left::new(settings.max_written_cells);
    let each = list.iter().enumerate().map(|(number, one)| {
        let at = format!("operations[{number}]");
        let what = one_of(one, &at, &mut left)?;
        Ok(Operation { at, what })
    });
    let operations = each.collect::<Result<Vec<_>, XlsxError>>()?;
    Ok((operations, left))
}

fn one_of(one: &Json, at: &str, left: &mut Left) -> Result<What, XlsxError> {
    let one = Arguments::of(one, at)?;
    let name = one.required("op")?;
    match name {
        "set" => set(one, left),
        "clear" => {
            one.only(&["op", "sheet", "range"])?;
            let (sheet, area) = place(one, "range")?;
            Ok(What::Clear { sheet, area })
        }
        "format" => {
            one.only(&["op", "sheet", "range", "format", "bold"])?;
            let (sheet, area) = place(one, "range")?;
            let (format, bold) = (one.text("format")?.map(str::to_owned), one.flag("bold")?);
            if format.is_none() && !bold {
                let why = "a number format is required, or bold: true";
                return Err(XlsxError::invalid(one.at("format"), why));
            }
            Ok(What::Format { sheet, area, format, bold })
        }
        "append_rows" => {
            one.only(&["op", "sheet", "table", "rows"])?;
            let rows = cells::rows(&one.list("rows")?, &one.at("rows"), left)?;
            if rows.is_empty() {
                return Err(XlsxError::invalid(one.at("rows"), "there must be one at least"));
            }
            let table = one.text("table")?.map(str::to_owned);
            Ok(What::Append { sheet: sheet(one)?, table, rows })
        }
        "add_sheet" => {
            one.only(&["op", "name", "rows"])?;
            let name = one.required("name")?.to_owned();
            check_sheet_name(&name, &one.at("name"))?;
            let rows = cells::rows(&one.list("rows")?, &one.at("rows"), left)?;
            Ok(What::AddSheet { name, rows })
        }
        "rename_sheet" => {
            one.only(&["op", "sheet", "name"])?;
            let name = one.required("name")?.to_owned();
            check_sheet_name(&name, &one.at("name"))?;
            Ok(What::RenameSheet { sheet: one.required("sheet")?.to_owned(), name })
        }
        "column_width" => {
            one.only(&["op", "sheet", "column", "width"])?;
            let (first, last) = column_range(one.required("column")?, &one.at("column"))?;
            let Some(width) = width(one)? else {
                return Err(XlsxError::invalid(one.at("width"), "it is required"));
            };
            Ok(What::Width { sheet: sheet(one)?, first, last, width })
        }
        "define_name" => {
            one.only(&["op", "name", "refers_to"])?;
            let name = one.required("name")?.to_owned();
            check_name(&name, &one.at("name"))?;
            let refers_to = one.required("refers_to")?.to_owned();
            check_formula(&refers_to, &one.at("refers_to"))?;
            Ok(What::Name { name, refers_to })
        }
        name => match NOT_DONE.iter().find(|(known, _)| *known == name) {
            Some((known, why)) => Err(XlsxError::Refused {
                at: at.to_owned(),
                reason: known,
                why: format!("{known} is not done: {why}"),
            }),
            None => {
                let why = format!("there is no '{}'; there are {DONE}", shown(name));
                Err(XlsxError::invalid(one.at("op"), why))
            }
        },
    }
}

/// `{"op": "set", "cell": "B2", "value": 1}` or `{"op": "set", "cell": "B2", "rows": [[1, 2]]}`.
fn set(one: Arguments<'_>, left: &mut Left) -> Result<What, XlsxError> {
    one.only(&[
        "op", "sheet", "cell", "value", "formula", "date", "text", "format", "bold", "rows",
    ])?;
    let (sheet, area) = place(one, "cell")?;
    if area.cells() > 1 {
        let why = "it must be one cell; rows are set from it to the right and down";
        return Err(XlsxError::invalid(one.at("cell"), why));
    }
    let start = cell(&area.first.to_string(), &one.at("cell"))?;
    if one.get("rows").is_some() {
        let rows = cells::rows(&one.list("rows")?, &one.at("rows"), left)?;
        return Ok(What::Set { sheet, start, rows });
    }
    left.take(1)?;
    let mut spec = serde_json::Map::new();
    for key in ["value", "formula", "date", "text", "format", "bold"] {
        if let Some(value) = one.get(key) {
            spec.insert(key.to_owned(), value.clone());
        }
    }
    if spec.is_empty() {
        let why = "value, formula, date, text or rows is required; clear empties cells";
        return Err(XlsxError::invalid(one.at("value"), why));
    }
    let spec = Spec::parse(&Json::Object(spec), &one.at("value"))?;
    Ok(What::Set { sheet, start, rows: vec![vec![spec]] })
}

fn sheet(one: Arguments<'_>) -> Result<Option<String>, XlsxError> {
    Ok(one.text("sheet")?.map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned))
}

/// A range, and the sheet that it or the operation names.
fn place(one: Arguments<'_>, key: &str) -> Result<(Option<String>, Area), XlsxError> {
    let text = one.required(key)?;
    let at = one.at(key);
    let Some((own, rest)) = split_sheet(text) else {
        return Err(XlsxError::invalid(at, format!("'{}' is no range like A1:D9", shown(text))));
    };
    Ok((own.or(sheet(one)?), area(rest, &at)?))
}

/// Whether Excel takes this for a name of a range.
fn check_name(name: &str, at: &str) -> Result<(), XlsxError> {
    let begins = name.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '\\');
    let goes_on = name.chars().all(|c| c.is_alphanumeric() || "_.\\".contains(c));
    let is_cell = Area::parse(name).is_some() || matches!(name, "R" | "C" | "r" | "c");
    match begins && goes_on && !is_cell && name.chars().count() <= 255 {
        true => Ok(()),
        false => Err(XlsxError::invalid(at, "a name has letters, digits, _ and ., and is no cell")),
    }
}
