//! `xlsx_inspect`: what is in a workbook, without holding it in memory.

use std::ops::ControlFlow;

use prowess_runtime::{Invocation, ToolOutcome};
use serde_json::{Value as Json, json};

use super::address::{Area, Cell};
use super::arguments::Arguments;
use super::book::{Book, Sheet, SheetKind, State, relations};
use super::error::XlsxError;
use super::package::{Bytes, Package};
use super::render::{NAMES_BEGIN, NAMES_END, capped, inline};
use super::settings::XlsxSettings;
use super::sheet::{self, Item};
use super::tables::{Related, Table};
use super::{Xlsx, strings};
use crate::session::blocking;

impl Xlsx {
    pub(super) async fn inspect(
        &self,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome, ToolOutcome> {
        let wrong = |error: XlsxError| error.outcome("");
        let arguments = Arguments::of(&invocation.call.arguments, "").map_err(wrong)?;
        let path = arguments.required("path").map_err(wrong)?;
        let (bytes, reference) = self.ground.open(invocation, path).await?;
        let settings = self.settings.clone();
        let inspected = blocking(move || inspect(bytes, &settings)).await?;
        let mut data = inspected.map_err(|error| error.outcome(path))?;
        data["ref"] = json!(reference);
        let mut outcome = ToolOutcome::text(told(&data));
        outcome.data = data;
        Ok(outcome)
    }
}

/// What a sheet holds.
#[derive(Default)]
struct Counts {
    cells: u64,
    formulas: u64,
    array_formulas: u64,
    hidden_rows: u64,
    merges: u64,
    validations: u64,
    conditional_formats: u64,
    hyperlinks: u64,
    has_hidden_columns: bool,
    is_protected: bool,
    has_filter: bool,
    frozen: Option<String>,
    used: Option<Area>,
}

pub(super) fn inspect(bytes: Box<dyn Bytes>, settings: &XlsxSettings) -> Result<Json, XlsxError> {
    let mut package = Package::open(bytes, settings)?;
    let book = Book::read(&mut package, settings)?;
    let shared = strings::each(&mut package, &book, settings, &mut |_, _| {})?;
    let mut sheets = Vec::new();
    let (mut formulas, mut charts, mut tables, mut table_count) = (0, 0, Vec::new(), 0);
    let (mut validations, mut conditional, mut cells) = (0, 0, 0);
    for sheet in &book.sheets {
        let related = Related::read(&mut package, sheet, settings)?;
        let counts = match sheet.kind {
            SheetKind::Cells => count(&mut package, sheet, settings)?,
            SheetKind::Chart | SheetKind::Other => Counts::default(),
        };
        formulas += counts.formulas;
        cells += counts.cells;
        validations += counts.validations;
        conditional += counts.conditional_formats;
        charts += related.charts.len();
        table_count += related.tables.len();
        for table in &related.tables {
            if tables.len() == settings.max_listed {
                break;
            }
            tables.push(table_json(sheet, table, settings));
        }
        if sheets.len() < settings.max_listed {
            sheets.push(sheet_json(sheet, &counts, &related, settings));
        }
    }
    let names = book.names.iter().take(settings.max_listed).map(|it| {
        let sheet = it.sheet.and_then(|at| book.sheets.get(at)).map(|it| capped(&it.name));
        let (name, refers_to) = (capped(&it.name), capped(&it.refers_to));
        json!({"name": name, "refers_to": refers_to, "sheet": sheet, "hidden": it.is_hidden})
    });
    let names: Vec<Json> = names.collect();
    let links = external_links(&mut package, &book, settings)?;
    let hidden = book.sheets.iter().filter(|it| it.state != State::Visible);
    let hidden: Vec<String> = hidden.map(|it| capped(&it.name)).collect();
    let (expanded, parts) =
        package.parts().fold((0, 0), |(bytes, count), (_, part)| (bytes + part.bytes, count + 1));
    let beyond = |count: usize| count.saturating_sub(settings.max_listed);
    let omitted = json!({
        "sheets": beyond(book.sheets.len()),
        "hidden_sheets": beyond(hidden.len()),
        "names": beyond(book.names.len()),
        "tables": beyond(table_count),
        "external_links": beyond(book.external_links.len()),
    });
    let hidden = &hidden[..hidden.len().min(settings.max_listed)];
    Ok(json!({
        "size_bytes": package.size_bytes,
        "expanded_bytes": expanded,
        "parts": parts,
        "sheet_count": book.sheets.len(),
        "sheets": sheets,
        "hidden_sheets": hidden,
        "names": names,
        "tables": tables,
        "cells": cells,
        "formulas": formulas,
        "charts": charts,
        "validations": validations,
        "conditional_formats": conditional,
        "pivot_tables": book.pivots.len(),
        "shared_strings": shared,
        "macros": book.has_macros,
        "signed": book.is_signed,
        "protected": book.is_protected,
        "external_links": links,
        "date_system": if book.counts_from_1904 { 1904 } else { 1900 },
        "omitted": omitted,
        "untrusted": true,
    }))
}

/// The other workbooks that this one refers to.
fn external_links(
    package: &mut Package,
    book: &Book,
    settings: &XlsxSettings,
) -> Result<Vec<Json>, XlsxError> {
    let mut links = Vec::new();
    for part in book.external_links.iter().take(settings.max_listed) {
        let outside = relations(package, part, settings)?.into_iter().find(|it| it.is_external);
        links.push(json!(capped(&outside.map_or_else(|| part.clone(), |it| it.target))));
    }
    Ok(links)
}

fn count(
    package: &mut Package,
    sheet: &Sheet,
    settings: &XlsxSettings,
) -> Result<Counts, XlsxError> {
    let mut counts = Counts::default();
    let stream = package.stream(&sheet.part)?;
    sheet::scan(stream, &sheet.part, settings, &mut |item| {
        match item {
            Item::Cell(raw) => {
                if raw.value.is_some() || raw.formula.is_some() {
                    counts.cells += 1;
                    if let Some(at) = raw.at {
                        counts.used = Some(grown(counts.used, at));
                    }
                }
                if let Some(formula) = &raw.formula {
                    counts.formulas += 1;
                    let is_array = formula.sharing == sheet::Sharing::Array;
                    counts.array_formulas += u64::from(is_array);
                }
            }
            Item::Row { hidden } => counts.hidden_rows += u64::from(hidden),
            Item::Merge(_) => counts.merges += 1,
            Item::Validation => counts.validations += 1,
            Item::Conditional => counts.conditional_formats += 1,
            Item::HiddenColumns => counts.has_hidden_columns = true,
            Item::Frozen(at) => counts.frozen = Some(at.to_owned()),
            Item::Other("sheetProtection") => counts.is_protected = true,
            Item::Other("autoFilter") => counts.has_filter = true,
            Item::Other("hyperlink") => counts.hyperlinks += 1,
            Item::Other(_) | Item::Dimension(_) => {}
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(counts)
}

/// An area with one more cell.
pub(super) fn grown(area: Option<Area>, cell: Cell) -> Area {
    match area {
        None => Area { first: cell, last: cell },
        Some(Area { first, last }) => Area {
            first: Cell { row: first.row.min(cell.row), column: first.column.min(cell.column) },
            last: Cell { row: last.row.max(cell.row), column: last.column.max(cell.column) },
        },
    }
}

fn table_json(sheet: &Sheet, table: &Table, settings: &XlsxSettings) -> Json {
    let columns = table.columns.iter().take(settings.max_listed);
    let columns: Vec<String> = columns.map(|it| capped(&it.name)).collect();
    let mut told = json!({
        "name": capped(&table.name),
        "sheet": capped(&sheet.name),
        "range": table.area.to_string(),
        "columns": columns,
        "has_totals": table.has_totals,
    });
    let more = table.columns.len().saturating_sub(settings.max_listed);
    if more > 0 {
        told["omitted_columns"] = json!(more);
    }
    told
}

fn sheet_json(sheet: &Sheet, counts: &Counts, related: &Related, settings: &XlsxSettings) -> Json {
    let tables = related.tables.iter().take(settings.max_listed);
    let tables: Vec<String> = tables.map(|it| capped(&it.name)).collect();
    let mut told = json!({
        "name": capped(&sheet.name),
        "state": sheet.state.as_str(),
        "dimensions": counts.used.map(|it| it.to_string()),
        "rows": counts.used.map_or(0, |it| it.last.row),
        "columns": counts.used.map_or(0, |it| it.last.column),
        "cells": counts.cells,
        "formulas": counts.formulas,
        "tables": tables,
        "charts": related.charts.len(),
        "validations": counts.validations,
        "conditional_formats": counts.conditional_formats,
        "merged_ranges": counts.merges,
    });
    let more = [
        ("array_formulas", counts.array_formulas),
        ("hidden_rows", counts.hidden_rows),
        ("hyperlinks", counts.hyperlinks),
        ("pivot_tables", related.pivots),
        ("comments", related.comments),
        ("pictures", related.pictures),
    ];
    for (name, count) in more {
        if count > 0 {
            told[name] = json!(count);
        }
    }
    for (name, is) in [
        ("hidden_columns", counts.has_hidden_columns),
        ("protected", counts.is_protected),
        ("filtered", counts.has_filter),
        ("is_chart_sheet", sheet.kind == SheetKind::Chart),
    ] {
        if is {
            told[name] = json!(true);
        }
    }
    if let Some(frozen) = &counts.frozen {
        told["frozen_at"] = json!(capped(frozen));
    }
    told
}

/// The same for a model: short, one line for each thing, and names kept on their lines.
fn told(data: &Json) -> String {
    let text = |value: &Json| inline(value.as_str().unwrap_or_default());
    let list = |value: &Json| {
        let all = value.as_array().into_iter().flatten().map(text);
        all.collect::<Vec<_>>().join(", ")
    };
    let mut lines = vec![format!(
        "{}: {} bytes, {} sheets, {} cells, {} formulas, {} charts, {} validations, {} \
         conditional formats",
        text(&data["ref"]),
        data["size_bytes"],
        data["sheet_count"],
        data["cells"],
        data["formulas"],
        data["charts"],
        data["validations"],
        data["conditional_formats"],
    )];
    lines.push(NAMES_BEGIN.to_owned());
    for sheet in data["sheets"].as_array().into_iter().flatten() {
        let mut line = format!("- sheet '{}'", text(&sheet["name"]));
        match sheet["dimensions"].as_str() {
            Some(area) => line.push_str(&format!(
                " {area}, {} cells, {} formulas",
                sheet["cells"], sheet["formulas"]
            )),
            None => line.push_str(" is empty"),
        }
        if sheet["state"] != "visible" {
            line.push_str(&format!(", {}", text(&sheet["state"])));
        }
        let plain = ["name", "dimensions", "cells", "formulas", "state", "rows", "columns"];
        for (key, value) in sheet.as_object().into_iter().flatten() {
            let is_nothing = *value == json!(0) || *value == json!([]) || value.is_null();
            if plain.contains(&key.as_str()) || is_nothing {
                continue;
            }
            line.push_str(&match value {
                Json::Array(_) => format!(", {key}: {}", list(value)),
                Json::String(_) => format!(", {key}: {}", text(value)),
                _ => format!(", {key}: {value}"),
            });
        }
        lines.push(line);
    }
    for table in data["tables"].as_array().into_iter().flatten() {
        let (name, sheet) = (text(&table["name"]), text(&table["sheet"]));
        let (range, columns) = (text(&table["range"]), list(&table["columns"]));
        let more = match &table["omitted_columns"] {
            Json::Null => String::new(),
            more => format!(" [{more} more columns; `max_listed`]"),
        };
        lines.push(format!("- table {name} on '{sheet}' {range}: {columns}{more}"));
    }
    for name in data["names"].as_array().into_iter().flatten() {
        lines.push(format!("- name {} = {}", text(&name["name"]), text(&name["refers_to"])));
    }
    if data["external_links"] != json!([]) {
        lines.push(format!("- external links: {}", list(&data["external_links"])));
    }
    lines.push(NAMES_END.to_owned());
    for (key, what) in [
        ("macros", "it has macros; they are kept and never run"),
        ("signed", "it is signed; an edit breaks the signature"),
        ("protected", "its structure is protected"),
    ] {
        if data[key] == json!(true) {
            lines.push(format!("- {what}"));
        }
    }
    for (key, count) in data["omitted"].as_object().into_iter().flatten() {
        if *count != json!(0) {
            lines.push(format!("[{count} more {key}; `max_listed`]"));
        }
    }
    lines.join("\n")
}
