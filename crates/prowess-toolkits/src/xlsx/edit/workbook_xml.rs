//! Sheets, names and settings of a workbook changed in its own parts.

use std::borrow::Cow;

use quick_xml::events::Event;

use super::super::error::{XlsxError, shown};
use super::super::formula::{spans_from, with_sheet_renamed};
use super::super::settings::XlsxSettings;
use super::super::splice::{Pieces, refuse_prefix, spliced, tag};
use super::super::xml::{attribute, escaped, push_text};

const WORKSHEET_TYPE: &str =
    "application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml";
const WORKSHEET_RELATION: &str =
    "http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet";

/// A sheet with nothing on it.
pub(super) const EMPTY_SHEET: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\" \
    standalone=\"yes\"?>\n<worksheet \
    xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"><dimension \
    ref=\"A1\"/><sheetData></sheetData></worksheet>";

/// The workbook with one sheet more, at the end.
pub(super) fn with_sheet(
    xml: &str,
    part: &str,
    name: &str,
    relation: &str,
    limits: &XlsxSettings,
) -> Result<String, XlsxError> {
    let mut pieces = Pieces::of(xml, part, limits);
    let (mut last_id, mut prefix, mut end) = (0_u32, "r".to_owned(), None);
    while let Some(piece) = pieces.next()? {
        match &piece.event {
            Event::Start(it) | Event::Empty(it) => match it.local_name().as_ref() {
                "workbook" => refuse_prefix(it, part)?,
                "sheet" => {
                    let id = attribute(it, "sheetId").and_then(|it| it.parse().ok());
                    last_id = last_id.max(id.unwrap_or(0));
                    let mut attributes = it.attributes();
                    for attribute in attributes.with_checks(false).flatten() {
                        if let Some(own) = attribute.key.0.strip_suffix(":id") {
                            own.clone_into(&mut prefix);
                        }
                    }
                }
                _ => {}
            },
            Event::End(it) if it.local_name().as_ref() == "sheets" => end = Some(piece.from),
            _ => {}
        }
    }
    let Some(end) = end else { return Err(XlsxError::malformed(part, "it has no sheets")) };
    let (id, name) = (last_id.saturating_add(1), escaped(name));
    let sheet = format!("<sheet name=\"{name}\" sheetId=\"{id}\" {prefix}:id=\"{relation}\"/>");
    Ok(spliced(xml, vec![(end, end, sheet)]))
}

/// The relations with one to a sheet more, and its id.
pub(super) fn with_relation(
    xml: &str,
    part: &str,
    target: &str,
    limits: &XlsxSettings,
) -> Result<(String, String), XlsxError> {
    let mut pieces = Pieces::of(xml, part, limits);
    let (mut ids, mut end) = (Vec::new(), None);
    while let Some(piece) = pieces.next()? {
        match &piece.event {
            Event::Start(it) | Event::Empty(it) => match it.local_name().as_ref() {
                "Relationships" => refuse_prefix(it, part)?,
                _ => ids.extend(attribute(it, "Id").map(Cow::into_owned)),
            },
            Event::End(it) if it.local_name().as_ref() == "Relationships" => {
                end = Some(piece.from);
            }
            _ => {}
        }
    }
    let Some(end) = end else { return Err(XlsxError::malformed(part, "it has no relations")) };
    let mut number = ids.len() + 1;
    while ids.contains(&format!("rId{number}")) {
        number += 1;
    }
    let id = format!("rId{number}");
    let relation = format!(
        "<Relationship Id=\"{id}\" Type=\"{WORKSHEET_RELATION}\" Target=\"/{}\"/>",
        escaped(target)
    );
    Ok((spliced(xml, vec![(end, end, relation)]), id))
}

/// The content types with one part more.
pub(super) fn with_type(
    xml: &str,
    part: &str,
    target: &str,
    limits: &XlsxSettings,
) -> Result<String, XlsxError> {
    let mut pieces = Pieces::of(xml, part, limits);
    let mut end = None;
    while let Some(piece) = pieces.next()? {
        match &piece.event {
            Event::Start(it) if it.local_name().as_ref() == "Types" => refuse_prefix(it, part)?,
            Event::End(it) if it.local_name().as_ref() == "Types" => end = Some(piece.from),
            _ => {}
        }
    }
    let Some(end) = end else { return Err(XlsxError::malformed(part, "it has no types")) };
    let target = escaped(target);
    let new = format!("<Override PartName=\"/{target}\" ContentType=\"{WORKSHEET_TYPE}\"/>");
    Ok(spliced(xml, vec![(end, end, new)]))
}

/// The text without the elements for which something holds; none if there are none.
pub(super) fn without(
    xml: &str,
    part: &str,
    limits: &XlsxSettings,
    is_out: &dyn Fn(&quick_xml::events::BytesStart<'_>) -> bool,
) -> Result<Option<String>, XlsxError> {
    let mut pieces = Pieces::of(xml, part, limits);
    let mut out = Vec::new();
    while let Some(piece) = pieces.next()? {
        if let Event::Empty(it) = &piece.event
            && is_out(it)
        {
            out.push((piece.from, piece.to, String::new()));
        }
    }
    Ok((!out.is_empty()).then(|| spliced(xml, out)))
}

/// The workbook with a sheet called otherwise.
pub(super) fn with_sheet_name(
    xml: &str,
    part: &str,
    old: &str,
    new: &str,
    limits: &XlsxSettings,
) -> Result<String, XlsxError> {
    let mut pieces = Pieces::of(xml, part, limits);
    let mut changes = Vec::new();
    while let Some(piece) = pieces.next()? {
        let (element, is_empty) = match &piece.event {
            Event::Start(it) => (it, false),
            Event::Empty(it) => (it, true),
            _ => continue,
        };
        let is_meant = element.local_name().as_ref() == "sheet"
            && attribute(element, "name").as_deref() == Some(old);
        if is_meant {
            let text = tag(element, &[("name", Some(new))], is_empty);
            changes.push((piece.from, piece.to, text));
        }
    }
    Ok(spliced(xml, changes))
}

/// A part with a sheet called otherwise in its formulas; none if it does not name the sheet.
/// References to several sheets, of which it is the first or the last, are refused.
pub(super) fn with_sheet_in_formulas(
    xml: &str,
    part: &str,
    old: &str,
    new: &str,
    at: &str,
    limits: &XlsxSettings,
) -> Result<Option<String>, XlsxError> {
    let mut pieces = Pieces::of(xml, part, limits);
    let mut changes = Vec::new();
    let mut open: Option<(usize, String)> = None;
    while let Some(piece) = pieces.next()? {
        match &piece.event {
            Event::Start(it) => {
                let is_formula = matches!(
                    it.local_name().as_ref(),
                    "f" | "formula"
                        | "formula1"
                        | "formula2"
                        | "definedName"
                        | "calculatedColumnFormula"
                        | "totalsRowFormula"
                );
                open = is_formula.then(|| (piece.to, String::new()));
            }
            Event::End(_) => {
                let Some((from, text)) = open.take() else { continue };
                if spans_from(&text, old) {
                    let why = format!(
                        "a formula in {part} refers to several sheets, one of them '{}'",
                        shown(old)
                    );
                    let reason = "reference_to_several_sheets";
                    return Err(XlsxError::Refused { at: at.to_owned(), reason, why });
                }
                if let Some(renamed) = with_sheet_renamed(&text, old, new) {
                    changes.push((from, piece.from, escaped(&renamed)));
                }
            }
            other => {
                if let Some((_, text)) = &mut open {
                    push_text(text, other, part, limits)?;
                }
            }
        }
    }
    Ok((!changes.is_empty()).then(|| spliced(xml, changes)))
}

/// The workbook with a name for a range, in the place of one that is there.
pub(super) fn with_name(
    xml: &str,
    part: &str,
    name: &str,
    refers_to: &str,
    limits: &XlsxSettings,
) -> Result<String, XlsxError> {
    let new = format!(
        "<definedName name=\"{}\">{}</definedName>",
        escaped(name),
        escaped(refers_to.trim_start_matches('='))
    );
    let mut pieces = Pieces::of(xml, part, limits);
    let (mut after, mut end, mut old, mut empty) = (None, None, None, None);
    let mut open = None;
    while let Some(piece) = pieces.next()? {
        match &piece.event {
            Event::Start(it) => match it.local_name().as_ref() {
                "workbook" => refuse_prefix(it, part)?,
                "definedName" => {
                    let is_same = attribute(it, "name")
                        .is_some_and(|it| it.eq_ignore_ascii_case(name))
                        && attribute(it, "localSheetId").is_none();
                    open = is_same.then_some(piece.from);
                }
                _ => {}
            },
            Event::Empty(it) => match it.local_name().as_ref() {
                "definedNames" => empty = Some((piece.from, piece.to)),
                "functionGroups" | "externalReferences" => after = Some(piece.to),
                _ => {}
            },
            Event::End(it) => match it.local_name().as_ref() {
                "definedName" => old = open.take().map(|from| (from, piece.to)).or(old),
                "definedNames" => end = Some(piece.from),
                "sheets" | "functionGroups" | "externalReferences" => after = Some(piece.to),
                _ => {}
            },
            _ => {}
        }
    }
    let all = format!("<definedNames>{new}</definedNames>");
    let change = match (old, end, empty, after) {
        (Some((from, to)), ..) => (from, to, new),
        (None, Some(end), ..) => (end, end, new),
        (None, None, Some((from, to)), _) => (from, to, all),
        (None, None, None, Some(after)) => (after, after, all),
        _ => return Err(XlsxError::malformed(part, "it has no sheets")),
    };
    Ok(spliced(xml, vec![change]))
}

/// The workbook with a note that it is to be calculated when it is opened.
pub(super) fn calculated_on_load(
    xml: &str,
    part: &str,
    limits: &XlsxSettings,
) -> Result<String, XlsxError> {
    let mut pieces = Pieces::of(xml, part, limits);
    let mut after = None;
    while let Some(piece) = pieces.next()? {
        match &piece.event {
            Event::Start(it) | Event::Empty(it) if it.local_name().as_ref() == "calcPr" => {
                let is_empty = matches!(piece.event, Event::Empty(_));
                let text = tag(it, &[("fullCalcOnLoad", Some("1"))], is_empty);
                return Ok(spliced(xml, vec![(piece.from, piece.to, text)]));
            }
            Event::End(it)
                if matches!(
                    it.local_name().as_ref(),
                    "sheets" | "functionGroups" | "externalReferences" | "definedNames"
                ) =>
            {
                after = Some(piece.to);
            }
            _ => {}
        }
    }
    let Some(after) = after else { return Err(XlsxError::malformed(part, "it has no sheets")) };
    Ok(spliced(xml, vec![(after, after, "<calcPr fullCalcOnLoad=\"1\"/>".to_owned())]))
}

/// A table that is so many rows longer.
pub(super) fn with_table_area(
    xml: &str,
    part: &str,
    area: &str,
    limits: &XlsxSettings,
) -> Result<String, XlsxError> {
    let mut pieces = Pieces::of(xml, part, limits);
    let mut changes = Vec::new();
    while let Some(piece) = pieces.next()? {
        let (element, is_empty) = match &piece.event {
            Event::Start(it) => (it, false),
            Event::Empty(it) => (it, true),
            _ => continue,
        };
        if matches!(element.local_name().as_ref(), "table" | "autoFilter") {
            let text = tag(element, &[("ref", Some(area))], is_empty);
            changes.push((piece.from, piece.to, text));
        }
    }
    Ok(spliced(xml, changes))
}
