//! `xlsx_check`: what a careful reviewer looks for in a workbook.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use prowess_runtime::{Invocation, ToolOutcome};
use serde_json::json;

use super::address::{Cell, split_sheet};
use super::arguments::Arguments;
use super::book::{Book, SheetKind, State, same_name};
use super::circles::References;
use super::error::{XlsxError, shown};
use super::findings::{Findings, Level};
use super::formula::{self, Kind as Token, VOLATILE, relative, tokens};
use super::guard::Reach;
use super::package::{Bytes, Package};
use super::read_range::formula_of;
use super::settings::XlsxSettings;
use super::sheet::{self, Item, Kind, Sharing};
use super::value::serial;
use super::{Xlsx, strings};
use crate::session::blocking;

/// Numbers that are no assumptions: unit conversions and such.
const PLAIN_NUMBERS: [&str; 10] = ["0", "1", "2", "10", "12", "24", "60", "100", "365", "1000"];

impl Xlsx {
    pub(super) async fn check(
        &self,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome, ToolOutcome> {
        let wrong = |error: XlsxError| error.outcome("");
        let arguments = Arguments::of(&invocation.call.arguments, "").map_err(wrong)?;
        let path = arguments.required("path").map_err(wrong)?;
        let only = arguments.text("sheet").map_err(wrong)?.map(str::to_owned);
        let (bytes, reference) = self.ground.open(invocation, path).await?;
        let settings = self.settings.clone();
        let checked = blocking(move || {
            let findings = check(bytes, only.as_deref(), &settings)?;
            Ok::<_, XlsxError>((findings.told(), findings.json()))
        });
        let (text, mut data) = checked.await?.map_err(|error| error.outcome(path))?;
        data["ref"] = json!(reference);
        let mut outcome = ToolOutcome::text(text);
        outcome.data = data;
        Ok(outcome)
    }
}

/// A cell of one column, as far as its neighbours matter.
#[derive(Clone)]
struct Above {
    row: u32,
    /// The formula as it looks from its cell; none if the cell holds a plain number.
    form: Option<String>,
}

fn check(
    bytes: Box<dyn Bytes>,
    only: Option<&str>,
    settings: &XlsxSettings,
) -> Result<Findings, XlsxError> {
    let mut package = Package::open(bytes, settings)?;
    let book = Book::read(&mut package, settings)?;
    if let Some(only) = only {
        book.sheet(Some(only))?;
    }
    let mut findings = Findings::new(settings.max_findings);
    check_book(&book, &mut findings);
    let odd = odd_strings(&mut package, &book, settings)?;
    let mut referred: BTreeMap<(usize, Cell), String> = BTreeMap::new();
    let mut references = References::new(settings.max_references);
    for (number, sheet) in book.sheets.iter().enumerate() {
        let is_wanted = only.is_none_or(|it| same_name(it, &sheet.name));
        if sheet.kind == SheetKind::Cells && is_wanted {
            let noted = &mut Noted { referred: &mut referred, references: &mut references };
            check_cells(&mut package, &book, number, &odd, noted, &mut findings, settings)?;
        }
    }
    references.find().tell(&book, &mut findings);
    find_empty(&mut package, &book, &mut referred, settings)?;
    for ((number, cell), from) in referred {
        let name = book.sheets.get(number).map_or("", |it| it.name.as_str());
        let detail = format!("the formula refers to {name}!{cell}, which is empty");
        findings.add("reference_to_empty", Level::Warning, from, &detail);
    }
    Ok(findings)
}

/// What is wrong with the workbook as a whole.
fn check_book(book: &Book, findings: &mut Findings) {
    for sheet in &book.sheets {
        match sheet.state {
            State::Visible => {}
            State::Hidden => {
                let detail = "the sheet is hidden";
                findings.add("hidden_sheet", Level::Info, sheet.name.as_str(), detail);
            }
            State::VeryHidden => {
                let detail = "the sheet is hidden so that only a macro shows it";
                findings.add("hidden_sheet", Level::Warning, sheet.name.as_str(), detail);
            }
        }
    }
    for name in book.names.iter().filter(|it| is_broken(&it.refers_to)) {
        let detail = format!("the name refers to {}", name.refers_to);
        findings.add("broken_name", Level::Error, name.name.as_str(), &detail);
    }
    for name in &book.names {
        check_reach(name.refers_to.trim_start_matches('='), &name.name, findings);
    }
    if book.has_macros {
        let detail = "it has macros; they are never run here";
        findings.add("macros", Level::Warning, "workbook", detail);
    }
    for part in &book.external_links {
        let detail = "it refers to another workbook";
        findings.add("external_link", Level::Warning, part.as_str(), detail);
    }
}

/// Whether a formula has lost what it referred to; a text that says so has not.
fn is_broken(formula: &str) -> bool {
    tokens(formula).iter().any(|it| it.kind == Token::Error && it.text == "#REF!")
}

/// The shared strings that look like something else.
fn odd_strings(
    package: &mut Package,
    book: &Book,
    settings: &XlsxSettings,
) -> Result<BTreeMap<u32, (&'static str, String)>, XlsxError> {
    let mut odd = BTreeMap::new();
    strings::each(package, book, settings, &mut |number, text| {
        if let Some(kind) = odd_text(text) {
            odd.insert(number, (kind, shown(text)));
        }
    })?;
    Ok(odd)
}

/// What a text looks like, if it looks like a number or a date.
fn odd_text(text: &str) -> Option<&'static str> {
    let bare = text.trim().trim_start_matches('\'');
    let plain = bare.replace([',', ' ', '\u{a0}'], "");
    let is_number = plain.parse::<f64>().is_ok_and(f64::is_finite)
        && plain.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    // What begins with a zero is a number of a customer or a telephone.
    let is_code = plain.len() > 1 && plain.starts_with('0') && !plain.starts_with("0.");
    if is_number && !is_code {
        return Some("number_as_text");
    }
    serial(bare, false).map(|_| "date_as_text")
}

/// What formulas refer to.
struct Noted<'n> {
    /// By the cell that is referred to, the first that does.
    referred: &'n mut BTreeMap<(usize, Cell), String>,
    references: &'n mut References,
}

fn check_cells(
    package: &mut Package,
    book: &Book,
    number: usize,
    odd: &BTreeMap<u32, (&'static str, String)>,
    noted: &mut Noted<'_>,
    findings: &mut Findings,
    settings: &XlsxSettings,
) -> Result<(), XlsxError> {
    let Some(sheet) = book.sheets.get(number) else { return Ok(()) };
    let place = |at: Cell| format!("{}!{at}", sheet.name);
    let mut masters = BTreeMap::new();
    let mut above: BTreeMap<u32, [Option<Above>; 2]> = BTreeMap::new();
    let (mut hidden_rows, mut has_hidden_columns) = (0, false);
    let stream = package.stream(&sheet.part)?;
    sheet::scan(stream, &sheet.part, settings, &mut |item| {
        let raw = match item {
            Item::Cell(raw) => raw,
            Item::Row { hidden: true } => {
                hidden_rows += 1;
                return Ok(ControlFlow::Continue(()));
            }
            Item::HiddenColumns => {
                has_hidden_columns = true;
                return Ok(ControlFlow::Continue(()));
            }
            _ => return Ok(ControlFlow::Continue(())),
        };
        let Some(at) = raw.at else { return Ok(ControlFlow::Continue(())) };
        if raw.kind == Kind::Error {
            let code = raw.value.as_deref().unwrap_or_default();
            findings.add("error_value", Level::Error, place(at), code);
        }
        if let Some(own) = &raw.formula {
            if let (Sharing::Shared(shared), false) = (own.sharing, own.text.is_empty()) {
                masters.insert(shared, (at, own.text.clone()));
            }
            if !raw.has_value() {
                let detail = "the formula has no value yet; xlsx_recalc gives it one";
                findings.add("not_calculated", Level::Warning, place(at), detail);
            }
            let Some(text) = formula_of(raw, at, &masters) else {
                return Ok(ControlFlow::Continue(()));
            };
            let text = text.trim_start_matches('=');
            check_formula(text, &place(at), findings);
            if (noted.referred.len() as u64) < settings.max_formulas {
                refer(text, book, number, at, noted.referred, &place(at));
            }
            noted.references.add(book, number, at, text);
            compare(&mut above, at, Some(relative(text, at)), &place, findings);
        } else {
            let odd = match raw.kind {
                Kind::Shared => {
                    let number = raw.value.as_deref().and_then(|it| it.trim().parse().ok());
                    number.and_then(|it: u32| odd.get(&it)).cloned()
                }
                Kind::Text => raw
                    .value
                    .as_deref()
                    .and_then(|text| odd_text(text).map(|kind| (kind, shown(text)))),
                _ => None,
            };
            if let Some((kind, text)) = odd {
                let detail = format!("'{text}' is a text; formulas do not count it");
                findings.add(kind, Level::Warning, place(at), &detail);
            }
            let is_number = raw.kind == Kind::Number && raw.value.is_some();
            if is_number {
                compare(&mut above, at, None, &place, findings);
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    if hidden_rows > 0 {
        let detail = format!("{hidden_rows} rows are hidden");
        findings.add("hidden_rows", Level::Info, sheet.name.as_str(), &detail);
    }
    if has_hidden_columns {
        findings.add("hidden_columns", Level::Info, sheet.name.as_str(), "columns are hidden");
    }
    Ok(())
}

/// Whether the cell above differs from the one above it and from this one, which are the same.
fn compare(
    above: &mut BTreeMap<u32, [Option<Above>; 2]>,
    at: Cell,
    form: Option<String>,
    place: &dyn Fn(Cell) -> String,
    findings: &mut Findings,
) {
    let window = above.entry(at.column).or_default();
    if let [Some(first), Some(middle)] = window.as_slice()
        && first.row + 2 == at.row
        && middle.row + 1 == at.row
        && first.form.is_some()
        && first.form == form
        && middle.form != form
    {
        let middle_at = Cell { row: middle.row, column: at.column };
        match middle.form {
            Some(_) => {
                let detail = "the formulas above and below agree, this one differs";
                findings.add("inconsistent_formula", Level::Warning, place(middle_at), detail);
            }
            None => {
                let detail = "a number stands between formulas that agree";
                findings.add("overwritten_formula", Level::Warning, place(middle_at), detail);
            }
        }
    }
    let [_, last] = std::mem::take(window);
    *window = [last, Some(Above { row: at.row, form })];
}

/// What is wrong with one formula.
fn check_formula(text: &str, at: &str, findings: &mut Findings) {
    let tokens = tokens(text);
    if is_broken(text) {
        findings.add("broken_reference", Level::Error, at, text);
    }
    check_reach(text, at, findings);
    if formula::functions(text).iter().any(|it| it == "HYPERLINK") {
        findings.add("hyperlink_function", Level::Info, at, text);
    }
    let is_operator = |token: Option<&formula::Token<'_>>| {
        token.is_some_and(|it| it.kind == Token::Other && "+-*/^".contains(it.text))
    };
    let solid: Vec<&formula::Token<'_>> =
        tokens.iter().filter(|it| !it.text.trim().is_empty()).collect();
    for (place, token) in solid.iter().enumerate() {
        let before = place.checked_sub(1).and_then(|it| solid.get(it)).copied();
        let after = solid.get(place + 1).copied();
        let is_plain = PLAIN_NUMBERS.contains(&token.text.trim_end_matches(".0"));
        if token.kind == Token::Number && !is_plain && (is_operator(before) || is_operator(after)) {
            let detail = format!("{} is written into the formula {text}", token.text);
            findings.add("hardcoded_number", Level::Info, at, &detail);
            break;
        }
    }
    if let Some(name) = formula::functions(text).iter().find(|it| VOLATILE.contains(&it.as_str())) {
        let detail = format!("{name} gives something else each time");
        findings.add("volatile_function", Level::Info, at, &detail);
    }
}

/// Whether a formula reaches out of the workbook.
fn check_reach(text: &str, at: &str, findings: &mut Findings) {
    let kind = match Reach::of(text) {
        None => return,
        Some(Reach::Workbook(_)) => "external_reference",
        Some(Reach::Program) => "dde_link",
        Some(Reach::Function(_)) => "fetching_function",
    };
    findings.add(kind, Level::Warning, at, text);
}

/// Notes the single cells that a formula refers to.
fn refer(
    text: &str,
    book: &Book,
    own: usize,
    at: Cell,
    referred: &mut BTreeMap<(usize, Cell), String>,
    place: &str,
) {
    let tokens = tokens(text);
    // Functions that are there to ask about empty cells may.
    let asks = ["ISBLANK", "IF", "IFERROR", "COUNTA", "COUNTBLANK", "IFNA", "ISNUMBER", "N", "T"];
    if formula::functions(text).iter().any(|it| asks.contains(&it.as_str())) {
        return;
    }
    for (number, token) in tokens.iter().enumerate() {
        let Some(cell) = Cell::parse(token.text).filter(|_| token.kind == Token::Cell) else {
            continue;
        };
        let is_corner = |it: Option<&formula::Token<'_>>| it.is_some_and(|it| it.text == ":");
        let before = number.checked_sub(1).and_then(|it| tokens.get(it));
        if is_corner(before) || is_corner(tokens.get(number + 1)) || cell == at {
            continue;
        }
        let sheet = match before.filter(|it| it.kind == Token::Sheet) {
            None => Some(own),
            Some(qualifier) => {
                let named = split_sheet(qualifier.text).and_then(|(sheet, _)| sheet);
                named.and_then(|it| book.sheets.iter().position(|one| same_name(&one.name, &it)))
            }
        };
        if let Some(sheet) = sheet {
            referred.entry((sheet, cell)).or_insert_with(|| place.to_owned());
        }
    }
}

/// Leaves those that are empty.
fn find_empty(
    package: &mut Package,
    book: &Book,
    referred: &mut BTreeMap<(usize, Cell), String>,
    settings: &XlsxSettings,
) -> Result<(), XlsxError> {
    let sheets: BTreeSet<usize> = referred.keys().map(|(sheet, _)| *sheet).collect();
    for number in sheets {
        let Some(sheet) = book.sheets.get(number) else { continue };
        if sheet.kind != SheetKind::Cells {
            continue;
        }
        let stream = package.stream(&sheet.part)?;
        sheet::scan(stream, &sheet.part, settings, &mut |item| {
            if let Item::Cell(raw) = item
                && let Some(at) = raw.at
                && (raw.value.is_some() || raw.formula.is_some())
            {
                referred.remove(&(number, at));
            }
            Ok(ControlFlow::Continue(()))
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_look_like_numbers_are_seen() {
        let table = [
            ("12", Some("number_as_text")),
            (" 1,234.5 ", Some("number_as_text")),
            ("-3.5", Some("number_as_text")),
            ("'7", Some("number_as_text")),
            ("2026-01-31", Some("date_as_text")),
            ("007", None),
            ("0.5", Some("number_as_text")),
            ("12 apples", None),
            ("", None),
            ("nan", None),
            ("inf", None),
            ("see #REF! note", None),
        ];
        for (text, expected) in table {
            assert_eq!(odd_text(text), expected, "{text:?}");
        }
    }
}
