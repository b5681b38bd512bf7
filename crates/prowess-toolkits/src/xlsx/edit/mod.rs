//! `xlsx_edit`: a workbook changed part by part. What is not touched stays byte for byte.

mod append;
mod columns_xml;
mod draft;
mod facts;
mod operation;
mod sheet_xml;
mod sheets;
mod style_xml;
mod workbook_xml;

use std::collections::BTreeSet;
use std::io::Cursor;
use std::sync::Arc;

use prowess_runtime::{Invocation, ToolOutcome};
use quick_xml::events::Event;
use serde_json::{Value as Json, json};

use super::address::Area;
use super::arguments::Arguments;
use super::create::{not_calculated, told};
use super::error::XlsxError;
use super::ground::Before;
use super::package::Package;
use super::recalc::{RecalcReport, recalculate};
use super::settings::XlsxSettings;
use super::splice::{Pieces, spliced, tag};
use super::xml::push_text;
use super::{MIME_TYPE, Xlsx};
use crate::session::blocking;
use draft::Draft;

/// What is done if formulas cannot be calculated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stale {
    Refuse,
    Allow,
}

/// What came of an edit.
struct Edited {
    bytes: Vec<u8>,
    report: RecalcReport,
    parts: Vec<String>,
    notes: Vec<String>,
    is_stale: bool,
}

impl Xlsx {
    pub(super) async fn edit(
        &self,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome, ToolOutcome> {
        let wrong = |error: XlsxError| error.outcome("");
        let arguments = Arguments::of(&invocation.call.arguments, "").map_err(wrong)?;
        let path = arguments.required("path").map_err(wrong)?;
        let operations = arguments.list("operations").map_err(wrong)?;
        let output = arguments.text("output").map_err(wrong)?;
        let overwrite = arguments.flag("overwrite").map_err(wrong)?;
        let stale = match arguments.flag("allow_stale").map_err(wrong)? {
            true => Stale::Allow,
            false => Stale::Refuse,
        };
        let loaded = self.ground.load(invocation, path, self.settings.max_file_bytes).await?;
        let home = match output {
            Some(output) => self.ground.home(invocation, output).await?,
            None => loaded.home.clone(),
        };
        home.check()?;
        let (bytes, settings) = (loaded.bytes.clone(), self.settings.clone());
        let count = operations.len();
        let edited = blocking(move || edit(&bytes, &operations, stale, &settings)).await?;
        let edited = match edited.map_err(|error| error.outcome(path))? {
            Ok(edited) => edited,
            Err(report) => return Err(not_calculated(&report)),
        };
        let before = match output {
            None => Before::Bytes(Arc::clone(&loaded.bytes)),
            Some(_) if overwrite => Before::Anything,
            Some(_) => Before::Nothing,
        };
        let saved = self.ground.save(invocation, &home, MIME_TYPE, edited.bytes, before).await?;
        let mut text = format!("Edited {} ({count} operations). ", saved.reference);
        text.push_str(&told(&edited.report));
        for note in &edited.notes {
            text.push_str(&format!(" {note}."));
        }
        let mut outcome = ToolOutcome::text(text);
        outcome.data = json!({
            "ref": saved.reference,
            "size_bytes": saved.size_bytes,
            "operations": count,
            "changed_parts": edited.parts,
            "notes": edited.notes,
            "stale": edited.is_stale,
            "untrusted": true,
            "recalc": edited.report.json(),
        });
        Ok(match saved.artifact {
            Some(artifact) => outcome.with_artifact(artifact),
            None => outcome,
        })
    }
}

/// Changes a workbook and calculates it; if that cannot be done, what came of it.
fn edit(
    bytes: &Arc<[u8]>,
    operations: &[Json],
    stale: Stale,
    settings: &XlsxSettings,
) -> Result<Result<Edited, RecalcReport>, XlsxError> {
    let (operations, mut left) = operation::parse(operations, settings)?;
    let package = Package::open(Box::new(Cursor::new(Arc::clone(bytes))), settings)?;
    let mut draft = Draft::new(package, settings)?;
    for operation in &operations {
        draft.apply(operation, &mut left)?;
    }
    let changed = draft.finish()?;
    let mut report = recalculate(&changed, settings)?;
    let notes = std::mem::take(&mut draft.notes);
    let (bytes, is_stale) = match (report.bytes.take(), stale) {
        (Some(recalculated), _) => (recalculated, false),
        (None, Stale::Refuse) => return Ok(Err(report)),
        (None, Stale::Allow) => {
            draft.calculate_on_load()?;
            (draft.finish()?, true)
        }
    };
    if bytes.len() as u64 > settings.max_file_bytes {
        let (limit, most) = ("max_file_bytes", settings.max_file_bytes);
        return Err(XlsxError::limit("its bytes", bytes.len() as u64, limit, most));
    }
    let parts = changed_parts(&draft.package, &bytes, settings)?;
    Ok(Ok(Edited { bytes, report, parts, notes, is_stale }))
}

/// The parts that are other than before, or new, or gone.
fn changed_parts(
    before: &Package,
    after: &[u8],
    settings: &XlsxSettings,
) -> Result<Vec<String>, XlsxError> {
    let after = Package::open(Box::new(Cursor::new(after.to_vec())), settings)?;
    let (before, after) = (before.marks(), after.marks());
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let changed = names.into_iter().filter(|it| before.get(*it) != after.get(*it));
    Ok(changed.cloned().collect())
}

/// A sheet that says its cells are in this area.
pub(super) fn with_dimension(
    xml: &str,
    part: &str,
    area: Area,
    limits: &XlsxSettings,
) -> Result<String, XlsxError> {
    let mut pieces = Pieces::of(xml, part, limits);
    while let Some(piece) = pieces.next()? {
        if let Event::Start(it) | Event::Empty(it) = &piece.event
            && it.local_name().as_ref() == "dimension"
        {
            let is_empty = matches!(piece.event, Event::Empty(_));
            let text = tag(it, &[("ref", Some(&area.to_string()))], is_empty);
            return Ok(spliced(xml, vec![(piece.from, piece.to, text)]));
        }
    }
    Ok(xml.to_owned())
}

/// A sheet that says its cells are in this area, where it said nothing, and where and how it says
/// it.
pub(super) fn with_new_dimension(
    xml: &str,
    part: &str,
    area: Area,
    limits: &XlsxSettings,
) -> Result<Option<(String, usize, String)>, XlsxError> {
    /// What a sheet may go on with.
    const AFTER: [&str; 4] = ["sheetViews", "sheetFormatPr", "cols", "sheetData"];
    let mut pieces = Pieces::of(xml, part, limits);
    while let Some(piece) = pieces.next()? {
        if let Event::Start(it) | Event::Empty(it) = &piece.event
            && AFTER.contains(&it.local_name().as_ref())
        {
            let name = it.name();
            let prefix = name.0.strip_suffix(it.local_name().as_ref()).unwrap_or_default();
            let dimension = format!("<{prefix}dimension ref=\"{area}\"/>");
            let xml = spliced(xml, vec![(piece.from, piece.from, dimension.clone())]);
            return Ok(Some((xml, piece.from, dimension)));
        }
    }
    Ok(None)
}

/// A part with the texts of some elements exchanged. The function is given a text and how it stands
/// there, and gives what is to stand there, if it is something else.
pub(super) fn exchanged(
    xml: &str,
    part: &str,
    element: &str,
    limits: &XlsxSettings,
    exchange: &mut dyn FnMut(&str, &str) -> Option<String>,
) -> Result<String, XlsxError> {
    let mut pieces = Pieces::of(xml, part, limits);
    let mut new = Vec::new();
    // Where the text began, and the text.
    let mut inside: Option<(usize, String)> = None;
    while let Some(piece) = pieces.next()? {
        match &piece.event {
            Event::Start(it) if it.local_name().as_ref() == element => {
                inside = Some((piece.to, String::new()));
            }
            Event::End(it) if it.local_name().as_ref() == element => {
                let Some((from, text)) = inside.take() else { continue };
                if let Some(other) = exchange(&text, &xml[from..piece.from]) {
                    new.push((from, piece.from, other));
                }
            }
            event => {
                if let Some((_, text)) = &mut inside {
                    push_text(text, event, part, limits)?;
                }
            }
        }
    }
    Ok(spliced(xml, new))
}
