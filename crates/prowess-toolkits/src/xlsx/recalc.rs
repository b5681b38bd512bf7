//! `xlsx_recalc`: formulas calculated anew, by an engine that patches nothing but their values.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use formualizer_workbook::{IoError, XlsxRecalculateResult};
use prowess_runtime::{Invocation, ToolOutcome};
use serde_json::{Value as Json, json};

use super::arguments::Arguments;
use super::book::{Book, SheetKind};
use super::doubt::{Doubt, doubts, may_doubt};
use super::engine::{self, Stopped, limit_of};
use super::error::{XlsxError, shown};
use super::formula::{VOLATILE, functions};
use super::given::{Given, Shape};
use super::ground::Before;
use super::inspect::grown;
use super::package::Package;
use super::plain::Plain;
use super::render::capped;
use super::settings::XlsxSettings;
use super::sheet::{self, Item, Kind};
use super::spell::{self, may_spell};
use super::{MIME_TYPE, Xlsx};
use crate::session::blocking;

/// What calculates: the engine, or formulas over numbers alone ourselves.
const ENGINE: &str = "formualizer 0.13";
const OWN: &str = "prowess";
/// How many cells are named for each thing that the engine calculates otherwise.
const MOST_DOUBTFUL: usize = 3;
/// How a recalculation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecalcStatus {
    /// All formulas have values.
    Success,
    /// Some formulas have errors for values.
    ErrorsFound,
    /// The workbook uses something that the engine does not know. Nothing is written.
    Unsupported,
    /// The workbook cannot be calculated, or not within the limits. Nothing is written.
    Refused,
}

impl RecalcStatus {
    /// The stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::ErrorsFound => "errors_found",
            Self::Unsupported => "unsupported",
            Self::Refused => "refused",
        }
    }
}

/// The cells with one kind of error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecalcErrors {
    /// How many there are.
    pub count: u64,
    /// The first of them: `Sheet!B2`.
    pub locations: Vec<String>,
}

/// What came of a recalculation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecalcReport {
    /// How it ended.
    pub status: RecalcStatus,
    /// How many formulas there are.
    pub total_formulas: u64,
    /// How many cells hold errors.
    pub total_errors: u64,
    /// These cells, by the error.
    pub error_summary: BTreeMap<String, RecalcErrors>,
    /// Functions and features that the engine does not know.
    pub unsupported: Vec<String>,
    /// Why nothing was written, if nothing was.
    pub refused_reason: Option<String>,
    /// Functions that give something else each time, and how many formulas use them.
    pub volatile: BTreeMap<String, u64>,
    /// How many values changed.
    pub changed_cells: u64,
    /// What calculated: `prowess` where formulas are over numbers alone, else the engine.
    pub engine: &'static str,
    /// The workbook with its new values; none if the status is `unsupported` or `refused`.
    pub bytes: Option<Vec<u8>>,
}

impl RecalcReport {
    /// What the model is told.
    pub fn json(&self) -> Json {
        let errors = self.error_summary.iter().map(|(code, errors)| {
            let told = json!({"count": errors.count, "locations": errors.locations});
            (code.clone(), told)
        });
        let errors: serde_json::Map<String, Json> = errors.collect();
        let mut told = json!({
            "status": self.status.as_str(),
            "total_formulas": self.total_formulas,
            "total_errors": self.total_errors,
            "error_summary": errors,
            "unsupported": self.unsupported,
            "refused_reason": self.refused_reason,
            "changed_cells": self.changed_cells,
            "engine": self.engine,
            "untrusted": true,
        });
        if !self.volatile.is_empty() {
            told["volatile"] = json!(self.volatile);
        }
        told
    }
}

impl Xlsx {
    pub(super) async fn recalc(
        &self,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome, ToolOutcome> {
        let arguments = Arguments::of(&invocation.call.arguments, "");
        let wrong = |error: XlsxError| error.outcome("");
        let arguments = arguments.map_err(wrong)?;
        let path = arguments.required("path").map_err(wrong)?;
        let output = arguments.text("output").map_err(wrong)?;
        let overwrite = arguments.flag("overwrite").map_err(wrong)?;
        let loaded = self.ground.load(invocation, path, self.settings.max_file_bytes).await?;
        let home = match output {
            Some(output) => self.ground.home(invocation, output).await?,
            None => loaded.home.clone(),
        };
        let (bytes, settings) = (loaded.bytes.clone(), self.settings.clone());
        let report = blocking(move || recalculate(&bytes, &settings)).await?;
        let mut report = report.map_err(|error| error.outcome(path))?;
        let mut data = report.json();
        let Some(bytes) = report.bytes.take() else {
            data["written"] = json!(null);
            return Ok(ToolOutcome::json(data));
        };
        let before = match output {
            None => Before::Bytes(loaded.bytes),
            Some(_) if overwrite => Before::Anything,
            Some(_) => Before::Nothing,
        };
        if output.is_none() && matches!(&before, Before::Bytes(old) if **old == *bytes) {
            data["written"] = json!(loaded.reference);
            return Ok(ToolOutcome::json(data));
        }
        let saved = self.ground.save(invocation, &home, MIME_TYPE, bytes, before).await?;
        data["written"] = json!(saved.reference);
        let outcome = ToolOutcome::json(data);
        Ok(match saved.artifact {
            Some(artifact) => outcome.with_artifact(artifact),
            None => outcome,
        })
    }
}

/// What the formulas of a workbook are, before they are calculated.
#[derive(Default)]
struct Survey {
    formulas: u64,
    volatile: BTreeMap<String, u64>,
    /// What the engine calculates otherwise than Excel, and the first cells with it.
    doubts: BTreeMap<Doubt, RecalcErrors>,
    /// Errors that somebody typed.
    typed: BTreeMap<String, RecalcErrors>,
    /// By the part of a sheet, where its cells are.
    shapes: BTreeMap<String, Shape>,
    /// The cells, if all of them are plain.
    plain: Option<Plain>,
}

/// Calculates all formulas of a workbook. The bytes in the report differ in nothing but their
/// values, and where a sheet with new values says its cells are, if it said it wrong. A workbook
/// that is damaged, encrypted or too large is an error.
pub fn recalculate(bytes: &[u8], settings: &XlsxSettings) -> Result<RecalcReport, XlsxError> {
    let mut package = Package::open(Box::new(std::io::Cursor::new(bytes.to_vec())), settings)?;
    let book = Book::read(&mut package, settings)?;
    let mut survey = survey(&mut package, &book, settings)?;
    let mut report = RecalcReport {
        status: RecalcStatus::Success,
        total_formulas: survey.formulas,
        total_errors: survey.typed.values().map(|it| it.count).sum(),
        error_summary: std::mem::take(&mut survey.typed),
        unsupported: Vec::new(),
        refused_reason: None,
        volatile: std::mem::take(&mut survey.volatile),
        changed_cells: 0,
        engine: ENGINE,
        bytes: None,
    };
    if survey.formulas == 0 {
        // There is nothing to calculate, whatever else the engine does not know.
        if report.total_errors > 0 {
            report.status = RecalcStatus::ErrorsFound;
        }
        report.bytes = Some(bytes.to_vec());
        return Ok(report);
    }
    let plain = survey.plain.take().filter(|_| survey.formulas <= settings.max_formulas);
    if let Some(mut plain) = plain
        && plain.calculate(Duration::from_secs(settings.max_recalc_seconds)).is_some()
        && let Some(written) = plain.write(&mut package, &book, &survey.shapes, bytes, settings)
    {
        report.engine = OWN;
        report.changed_cells = written.changed_cells;
        report.bytes = Some(written.bytes);
        return Ok(report);
    }
    let given = Given::prepare(&mut package, &book, &survey.shapes, settings)?;
    let own = given.bytes().unwrap_or(bytes);
    match engine::run(own, survey.formulas, settings) {
        Ok(mut result) => {
            let calculated = std::mem::take(&mut result.bytes);
            take(&mut report, result, &survey.doubts, settings);
            if matches!(report.status, RecalcStatus::Success | RecalcStatus::ErrorsFound) {
                let book = &book;
                report.bytes =
                    Some(given.taken_back(&mut package, book, bytes, calculated, settings)?);
            }
        }
        Err(why) => refuse(&mut report, why, own, &book, settings),
    }
    Ok(report)
}

/// A workbook over numbers alone that was read and not yet calculated, to measure that.
#[doc(hidden)]
pub struct PlainWorkbook(Plain);

impl PlainWorkbook {
    /// Reads a workbook; none if the engine has to calculate it.
    pub fn read(bytes: &[u8], settings: &XlsxSettings) -> Result<Option<Self>, XlsxError> {
        let mut package = Package::open(Box::new(std::io::Cursor::new(bytes.to_vec())), settings)?;
        let book = Book::read(&mut package, settings)?;
        Ok(survey(&mut package, &book, settings)?.plain.map(Self))
    }

    /// Calculates all formulas and says how many there are; none if the engine has to.
    pub fn calculate(&mut self) -> Option<u64> {
        self.0.calculate(Duration::MAX).map(|()| self.0.formulas())
    }

    /// The sum of all numbers.
    pub fn sum(&self) -> f64 {
        self.0.sum()
    }
}

fn survey(
    package: &mut Package,
    book: &Book,
    settings: &XlsxSettings,
) -> Result<Survey, XlsxError> {
    let plain = Plain::begin(package, book, settings);
    let mut survey = Survey { plain, ..Survey::default() };
    let sheets = book.sheets.iter().enumerate();
    for (number, sheet) in sheets.filter(|it| it.1.kind == SheetKind::Cells) {
        let stream = package.stream(&sheet.part)?;
        let shape = survey.shapes.entry(sheet.part.clone()).or_default();
        sheet::scan(stream, &sheet.part, settings, &mut |item| {
            let raw = match item {
                Item::Cell(raw) => raw,
                Item::Dimension(text) => {
                    shape.said = Some(text.to_owned());
                    return Ok(ControlFlow::Continue(()));
                }
                _ => return Ok(ControlFlow::Continue(())),
            };
            shape.present = raw.at.map(|at| grown(shape.present, at)).or(shape.present);
            if let Some(plain) = &mut survey.plain
                && plain.take(number, raw).is_none()
            {
                survey.plain = None;
            }
            if let Some(formula) = &raw.formula {
                survey.formulas += 1;
                shape.has_formulas = true;
                if survey.plain.is_some() {
                    // It has nothing of what follows.
                    return Ok(ControlFlow::Continue(()));
                }
                let upper = formula.text.to_ascii_uppercase();
                shape.spells |= may_spell(&upper);
                if may_doubt(&upper) {
                    let place = raw.at.map(|at| format!("{}!{at}", capped(&sheet.name)));
                    for doubt in doubts(&formula.text) {
                        let cells = survey.doubts.entry(doubt).or_default();
                        note(cells, place.clone().unwrap_or_default(), MOST_DOUBTFUL);
                    }
                }
                if VOLATILE.iter().any(|it| upper.contains(it)) {
                    for name in functions(&formula.text) {
                        if VOLATILE.contains(&name.as_str()) {
                            *survey.volatile.entry(name).or_default() += 1;
                        }
                    }
                }
            } else if raw.kind == Kind::Error
                && let (Some(code), Some(at)) = (&raw.value, raw.at)
            {
                let place = format!("{}!{at}", capped(&sheet.name));
                let errors = survey.typed.entry(shown(code)).or_default();
                note(errors, place, settings.max_locations);
            }
            Ok(ControlFlow::Continue(()))
        })?;
    }
    Ok(survey)
}

pub(super) fn note(errors: &mut RecalcErrors, place: String, most: usize) {
    errors.count += 1;
    if errors.locations.len() < most {
        errors.locations.push(place);
    }
}

/// The engine calculated everything: are these the values?
fn take(
    report: &mut RecalcReport,
    result: XlsxRecalculateResult,
    doubts: &BTreeMap<Doubt, RecalcErrors>,
    settings: &XlsxSettings,
) {
    let summary = result.summary;
    report.total_formulas = report.total_formulas.max(result.formula_cells as u64);
    for (code, errors) in summary.error_summary {
        let told = report.error_summary.entry(code).or_default();
        told.count += errors.count as u64;
        let room = settings.max_locations.saturating_sub(told.locations.len());
        told.locations.extend(errors.locations.iter().take(room).map(|it| capped(it)));
    }
    report.total_errors = report.error_summary.values().map(|it| it.count).sum();
    report.unsupported = summary.unknown_functions.into_keys().collect();
    if report.unsupported.is_empty() && doubts.is_empty() {
        report.status = match report.total_errors {
            0 => RecalcStatus::Success,
            _ => RecalcStatus::ErrorsFound,
        };
        report.changed_cells = result.cache_cells_changed as u64;
    } else {
        // Where another program knew the function, its value is the better one.
        report.status = RecalcStatus::Unsupported;
        let mut reasons = Vec::new();
        if !report.unsupported.is_empty() {
            reasons.push(format!("the engine does not know: {}", report.unsupported.join(", ")));
        }
        for (doubt, cells) in doubts {
            let cells = cells.locations.join(", ");
            reasons.push(format!("{} ({cells})", doubt.why()));
            report.unsupported.push(doubt.name().to_owned());
        }
        report.refused_reason = Some(reasons.join("; "));
    }
}

fn refuse(
    report: &mut RecalcReport,
    why: Stopped,
    bytes: &[u8],
    book: &Book,
    settings: &XlsxSettings,
) {
    report.status = RecalcStatus::Refused;
    let reason = match why {
        Stopped::Late => {
            let most = settings.max_recalc_seconds;
            format!("it takes longer than `max_recalc_seconds` = {most}")
        }
        Stopped::Broken => "the engine broke down over it".to_owned(),
        Stopped::By(IoError::Unsupported { feature, context }) => {
            if context.contains("#CIRC!") || feature.contains("#CIRC!") {
                circular(report, bytes, book, settings)
            } else if let Some(limit) = limit_of(&feature, settings) {
                format!("{feature} in {context}: {limit}")
            } else {
                report.status = RecalcStatus::Unsupported;
                report.unsupported.push(shown(&feature));
                format!("the engine does not know: {feature} in {context}")
            }
        }
        Stopped::By(IoError::Engine(error)) if error.kind.to_string() == "#CIRC!" => {
            circular(report, bytes, book, settings)
        }
        Stopped::By(error @ IoError::FormulaParser { .. }) => {
            report.status = RecalcStatus::Unsupported;
            report.unsupported.push("unparseable formula".to_owned());
            error.to_string()
        }
        Stopped::By(error) => error.to_string(),
    };
    // In the copy, formulas call a function that they do not call in the workbook.
    let reason = reason.replace(spell::SPELLED, "");
    report.refused_reason = Some(reason.chars().take(500).collect());
}

/// Formulas that need themselves: which?
fn circular(
    report: &mut RecalcReport,
    bytes: &[u8],
    book: &Book,
    settings: &XlsxSettings,
) -> String {
    let errors = engine::circles(bytes, book, settings);
    let mut reason = "formulas refer to themselves in a circle".to_owned();
    if !errors.locations.is_empty() {
        reason = format!("{reason}: {}", errors.locations.join(", "));
        let more = errors.count - errors.locations.len() as u64;
        if more > 0 {
            reason = format!("{reason} and {more} more");
        }
        report.total_errors += errors.count;
        report.error_summary.insert("#CIRC!".to_owned(), errors);
    }
    reason
}
