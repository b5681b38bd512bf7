//! What is to be put into cells, as a call describes it.

use serde_json::Value as Json;

use super::arguments::Arguments;
use super::error::XlsxError;
use super::guard::check_formula;
use super::styles::Meaning;
use super::value::serial;

/// The longest text of a cell.
const LONGEST_TEXT: usize = 32_767;
/// The longest formula.
const LONGEST_FORMULA: usize = 8192;

/// What is to be put into a cell.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Content {
    /// Nothing.
    Empty,
    Number(f64),
    Text(String),
    Boolean(bool),
    /// A formula, with `=`.
    Formula(String),
    /// A date, or a date and a time.
    Date {
        text: String,
        meaning: Meaning,
    },
}

/// A cell: what it holds, and how it looks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spec {
    pub(super) content: Content,
    /// A number format: `0.00%`.
    pub(super) format: Option<String>,
    pub(super) bold: bool,
}

impl Spec {
    /// Reads `12`, `"text"`, `"=A1*2"`, `true`, `null`, `{"value": …, "format": "0%"}`,
    /// `{"date": "2026-01-31"}`, `{"text": "=not a formula"}`.
    pub(super) fn parse(value: &Json, at: &str) -> Result<Self, XlsxError> {
        let plain = |content| Ok(Self { content, format: None, bold: false });
        let object = match value {
            Json::Object(_) => Arguments::of(value, at)?,
            Json::Array(_) => {
                let why = "a cell is a number, a text, true, false, null or an object";
                return Err(XlsxError::invalid(at, why));
            }
            value => return plain(scalar(value, at)?),
        };
        object.only(&["value", "formula", "date", "text", "format", "bold"])?;
        let given = ["value", "formula", "date", "text"];
        let given: Vec<&str> =
            given.into_iter().filter(|name| object.get(name).is_some()).collect();
        let content = match given.as_slice() {
            [] => Content::Empty,
            ["formula"] => {
                let text = object.required("formula")?;
                formula(text, &object.at("formula"))?
            }
            ["date"] => date(object.required("date")?, &object.at("date"))?,
            ["text"] => text(object.text("text")?.unwrap_or_default(), &object.at("text"))?,
            ["value"] => match object.get("value") {
                Some(value @ (Json::Array(_) | Json::Object(_))) => {
                    let why = format!("it must be a number, a text, true, false or null: {value}");
                    return Err(XlsxError::invalid(object.at("value"), super::error::shown(&why)));
                }
                Some(value) => scalar(value, &object.at("value"))?,
                None => Content::Empty,
            },
            more => {
                let why = format!("it has more than one of {}", more.join(", "));
                return Err(XlsxError::invalid(at, why));
            }
        };
        let format = object.text("format")?.map(str::to_owned);
        Ok(Self { content, format, bold: object.flag("bold")? })
    }
}

fn scalar(value: &Json, at: &str) -> Result<Content, XlsxError> {
    Ok(match value {
        Json::Null => Content::Empty,
        Json::Bool(is) => Content::Boolean(*is),
        Json::Number(number) => Content::Number(number.as_f64().unwrap_or(0.0)),
        Json::String(it) if it.starts_with('=') && it.len() > 1 => formula(it, at)?,
        Json::String(it) => text(it, at)?,
        Json::Array(_) | Json::Object(_) => {
            return Err(XlsxError::invalid(at, "it must be one value"));
        }
    })
}

fn text(text: &str, at: &str) -> Result<Content, XlsxError> {
    let length = text.encode_utf16().count();
    match length > LONGEST_TEXT {
        true => {
            let why = format!("a cell holds {LONGEST_TEXT} characters, not {length}");
            Err(XlsxError::invalid(at, why))
        }
        false => Ok(Content::Text(text.to_owned())),
    }
}

fn formula(text: &str, at: &str) -> Result<Content, XlsxError> {
    let text = text.trim();
    let text = if text.starts_with('=') { text.to_owned() } else { format!("={text}") };
    if text.len() > LONGEST_FORMULA {
        let why = format!("a formula has {LONGEST_FORMULA} characters at most");
        return Err(XlsxError::invalid(at, why));
    }
    check_formula(&text, at)?;
    Ok(Content::Formula(text))
}

fn date(text: &str, at: &str) -> Result<Content, XlsxError> {
    match serial(text.trim(), false) {
        Some((_, meaning)) => Ok(Content::Date { text: text.trim().to_owned(), meaning }),
        None => Err(XlsxError::invalid(at, "a date is like 2026-01-31 or 2026-01-31T12:00:00")),
    }
}

/// Rows of cells: `[[…], […]]`. So many cells may be written.
pub(super) fn rows(list: &[Json], at: &str, left: &mut Left) -> Result<Vec<Vec<Spec>>, XlsxError> {
    let mut rows = Vec::with_capacity(list.len());
    for (number, row) in list.iter().enumerate() {
        let at = format!("{at}[{number}]");
        let Json::Array(cells) = row else {
            return Err(XlsxError::invalid(at, "a row is a list of cells"));
        };
        left.take(cells.len() as u64)?;
        let cells = cells.iter().enumerate();
        let cells = cells.map(|(column, cell)| Spec::parse(cell, &format!("{at}[{column}]")));
        rows.push(cells.collect::<Result<Vec<_>, _>>()?);
    }
    Ok(rows)
}

/// How many cells may still be written.
pub(super) struct Left {
    used: u64,
    most: u64,
}

impl Left {
    pub(super) fn new(most: u64) -> Self {
        Self { used: 0, most }
    }

    pub(super) fn take(&mut self, cells: u64) -> Result<(), XlsxError> {
        self.used = self.used.saturating_add(cells);
        match self.used > self.most {
            true => {
                let what = "the cells of one call";
                Err(XlsxError::limit(what, self.used, "max_written_cells", self.most))
            }
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(value: &Json) -> Result<Content, &'static str> {
        Spec::parse(value, "x").map(|it| it.content).map_err(|error| error.code())
    }

    #[test]
    fn cells_are_what_they_look_like() {
        let text = |it: &str| Ok(Content::Text(it.to_owned()));
        let formula = |it: &str| Ok(Content::Formula(it.to_owned()));
        let date = |it: &str, meaning| Ok(Content::Date { text: it.to_owned(), meaning });
        let table = [
            (json!(1.5), Ok(Content::Number(1.5))),
            (json!("1.5"), text("1.5")),
            (json!("=A1"), formula("=A1")),
            (json!("="), text("=")),
            (json!({"text": "=A1"}), text("=A1")),
            (json!({"formula": "A1"}), formula("=A1")),
            (json!({"value": "=A1", "format": "0%"}), formula("=A1")),
            (json!({"date": "2026-01-31"}), date("2026-01-31", Meaning::Date)),
            (json!({"date": "31.1.2026"}), Err("invalid_arguments")),
            (json!({"date": "2026-01-31", "value": 1}), Err("invalid_arguments")),
            (json!({"values": 1}), Err("invalid_arguments")),
            (json!({"value": [1]}), Err("invalid_arguments")),
            (json!(null), Ok(Content::Empty)),
            (json!(true), Ok(Content::Boolean(true))),
            (json!([1]), Err("invalid_arguments")),
            (json!("=[1]Other!A1"), Err("operation_refused")),
            (json!("='[other.xlsx]Data'!A1"), Err("operation_refused")),
            (json!("=WEBSERVICE(\"http://x\")"), Err("operation_refused")),
            (json!("x".repeat(32_767)), text(&"x".repeat(32_767))),
            (json!("x".repeat(32_768)), Err("invalid_arguments")),
        ];
        for (value, expected) in table {
            assert_eq!(parse(&value), expected, "{value}");
        }
    }

    #[test]
    fn so_many_cells_and_no_more() {
        assert!(rows(&[json!([1, 2]), json!([3])], "rows", &mut Left::new(3)).is_ok());
        let error = rows(&[json!([1, 2]), json!([3, 4])], "rows", &mut Left::new(3)).unwrap_err();
        assert!(error.to_string().contains("`max_written_cells` = 3"), "{error}");
    }
}
