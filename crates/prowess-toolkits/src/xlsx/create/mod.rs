//! `xlsx_create`: a workbook of sheets, rows and what belongs to them.

mod chart;
mod extras;
mod rules;
mod sheet;

use std::io::Cursor;

use prowess_runtime::{Invocation, ToolOutcome};
use rust_xlsxwriter::Workbook;
use serde_json::{Value as Json, json};

pub(super) use sheet::{area, cell, column_range, date_format, width};

use super::arguments::Arguments;
use super::book::{Book, same_name};
use super::cells::Left;
use super::error::{XlsxError, shown};
use super::ground::Before;
use super::guard::check_formula;
use super::package::{Changes, Package};
use super::recalc::{RecalcReport, recalculate};
use super::render::{UNTRUSTED, inline, name};
use super::settings::XlsxSettings;
use super::{MIME_TYPE, Xlsx};
use crate::session::blocking;

impl Xlsx {
    pub(super) async fn create(
        &self,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome, ToolOutcome> {
        let wrong = |error: XlsxError| error.outcome("");
        let arguments = Arguments::of(&invocation.call.arguments, "").map_err(wrong)?;
        let path = arguments.required("path").map_err(wrong)?;
        if !path.to_ascii_lowercase().ends_with(".xlsx") {
            return Err(wrong(XlsxError::invalid("path", "it must end with .xlsx")));
        }
        let overwrite = arguments.flag("overwrite").map_err(wrong)?;
        let allow_stale = arguments.flag("allow_stale").map_err(wrong)?;
        let sheets = arguments.list("sheets").map_err(wrong)?;
        let names = arguments.list("names").map_err(wrong)?;
        let home = self.ground.home(invocation, path).await?;
        let settings = self.settings.clone();
        let made = blocking(move || {
            let bytes = make(&sheets, &names, &settings)?;
            let report = recalculate(&bytes, &settings)?;
            Ok::<_, XlsxError>((bytes, report, sheets.len()))
        });
        let (bytes, mut report, count) = made.await?.map_err(|error| error.outcome(path))?;
        let (bytes, is_stale) = match report.bytes.take() {
            Some(recalculated) => (recalculated, false),
            None if allow_stale => {
                let settings = self.settings.clone();
                let bytes = blocking(move || without_values(bytes, &settings)).await?;
                (bytes.map_err(|error| error.outcome(path))?, true)
            }
            None => return Err(not_calculated(&report)),
        };
        if bytes.len() as u64 > self.settings.max_file_bytes {
            let (limit, most) = ("max_file_bytes", self.settings.max_file_bytes);
            let error = XlsxError::limit("its bytes", bytes.len() as u64, limit, most);
            return Err(error.outcome(path));
        }
        let before = if overwrite { Before::Anything } else { Before::Nothing };
        let saved = self.ground.save(invocation, &home, MIME_TYPE, bytes, before).await?;
        let data = json!({
            "ref": saved.reference,
            "size_bytes": saved.size_bytes,
            "sheets": count,
            "stale": is_stale,
            "untrusted": true,
            "recalc": report.json(),
        });
        let text = format!(
            "Created {} ({} bytes, {count} sheets). {}",
            saved.reference,
            saved.size_bytes,
            told(&report)
        );
        let mut outcome = ToolOutcome::text(text);
        outcome.data = data;
        Ok(match saved.artifact {
            Some(artifact) => outcome.with_artifact(artifact),
            None => outcome,
        })
    }
}

/// What came of the formulas, in a sentence.
pub(super) fn told(report: &RecalcReport) -> String {
    let count = report.total_formulas;
    let mut text = match (&report.refused_reason, report.total_errors) {
        (Some(why), _) => format!(
            "{count} formulas are not calculated ({}): {}. Excel calculates them when it opens \
             the file. {UNTRUSTED}",
            report.status.as_str(),
            inline(why)
        ),
        (None, 0) if count == 0 => "It has no formulas.".to_owned(),
        (None, 0) => format!("{count} formulas calculated, no errors."),
        (None, errors) => {
            let each = report.error_summary.iter();
            let each = each.map(|(code, it)| {
                let places: Vec<String> = it.locations.iter().map(|it| name(it)).collect();
                format!("{} in {}", inline(code), places.join(", "))
            });
            let each: Vec<String> = each.collect();
            let each = each.join("; ");
            format!("{count} formulas calculated, {errors} errors: {each}. {UNTRUSTED}")
        }
    };
    if !report.volatile.is_empty() {
        let names: Vec<&str> = report.volatile.keys().map(String::as_str).collect();
        text.push_str(&format!(" Volatile: {}.", names.join(", ")));
    }
    text
}

/// Formulas that cannot be calculated stop what would write them.
pub(super) fn not_calculated(report: &RecalcReport) -> ToolOutcome {
    let why = report.refused_reason.as_deref().unwrap_or("the formulas cannot be calculated");
    let text = format!("Error: nothing was written: {}. {UNTRUSTED}", inline(why));
    let mut outcome = ToolOutcome::error("not_recalculated", text).with_hint(
        "Change the formulas, or set allow_stale: the file is written without their values, and \
         Excel calculates them when it opens it.",
    );
    outcome.data = json!({"recalc": report.json(), "untrusted": true});
    outcome
}

/// Makes a workbook. Its formulas have no values yet.
fn make(sheets: &[Json], names: &[Json], settings: &XlsxSettings) -> Result<Vec<u8>, XlsxError> {
    if sheets.is_empty() {
        return Err(XlsxError::invalid("sheets", "there must be one at least"));
    }
    let count = sheets.len() as u64;
    if count > settings.max_sheets {
        return Err(XlsxError::limit("its sheets", count, "max_sheets", settings.max_sheets));
    }
    let mut left = Left::new(settings.max_written_cells);
    let mut workbook = Workbook::new();
    let mut used: Vec<String> = Vec::new();
    for (number, described) in sheets.iter().enumerate() {
        let at = format!("sheets[{number}]");
        let described = Arguments::of(described, &at)?;
        let name = match described.text("name")? {
            Some(name) => name.to_owned(),
            None => format!("Sheet{}", number + 1),
        };
        check_sheet_name(&name, &described.at("name"))?;
        if used.iter().any(|it| same_name(it, &name)) {
            let why = format!("there are two sheets '{}'", shown(&name));
            return Err(XlsxError::invalid(described.at("name"), why));
        }
        used.push(name.clone());
        let sheet = workbook.add_worksheet();
        sheet.set_name(&name).map_err(|why| not_made(&at, &why))?;
        sheet::fill(sheet, &name, described, &mut left)?;
    }
    for (number, described) in names.iter().enumerate() {
        let at = format!("names[{number}]");
        let described = Arguments::of(described, &at)?;
        described.only(&["name", "refers_to"])?;
        let refers_to = described.required("refers_to")?;
        let refers_to = match refers_to.starts_with('=') {
            true => refers_to.to_owned(),
            false => format!("={refers_to}"),
        };
        check_formula(&refers_to, &described.at("refers_to"))?;
        let name = described.required("name")?;
        workbook.define_name(name, &refers_to).map_err(|why| not_made(&at, &why))?;
    }
    workbook.save_to_buffer().map_err(|why| XlsxError::NotMade { why: why.to_string() })
}

/// The workbook that was made, with formulas that have no values: an empty text is one.
fn without_values(bytes: Vec<u8>, settings: &XlsxSettings) -> Result<Vec<u8>, XlsxError> {
    let mut package = Package::open(Box::new(Cursor::new(bytes)), settings)?;
    let book = Book::read(&mut package, settings)?;
    let mut changes = Changes::new();
    for sheet in &book.sheets {
        let xml = package.text(&sheet.part, settings)?;
        let xml = xml.replace("</f><v></v>", "</f>").replace(" t=\"str\"><f", "><f");
        changes.insert(sheet.part.clone(), Some(xml.into_bytes()));
    }
    package.write(&changes)
}

/// Whether Excel takes this for a name of a sheet.
pub(super) fn check_sheet_name(name: &str, at: &str) -> Result<(), XlsxError> {
    let wrong = |why: &str| Err(XlsxError::invalid(at, why));
    match name {
        "" => wrong("a sheet has a name"),
        _ if name.encode_utf16().count() > 31 => wrong("a sheet's name has 31 characters at most"),
        _ if name.contains(['[', ']', ':', '*', '?', '/', '\\']) => {
            wrong("a sheet's name has none of [ ] : * ? / \\")
        }
        _ if name.starts_with('\'') || name.ends_with('\'') => {
            wrong("a sheet's name does not begin or end with '")
        }
        _ if name.chars().any(char::is_control) => wrong("a sheet's name is on one line"),
        _ if name.eq_ignore_ascii_case("history") => wrong("Excel keeps the name History"),
        _ => Ok(()),
    }
}

fn not_made(at: &str, why: &rust_xlsxwriter::XlsxError) -> XlsxError {
    XlsxError::invalid(at, shown(&why.to_string()))
}
