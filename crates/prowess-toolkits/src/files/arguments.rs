//! The arguments of file tools, in both styles.

use serde_json::{Map, Value};

use crate::invalid::InvalidArguments;

/// Why some lines cannot be asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidLines {
    #[error("'start_line' counts from 1")]
    StartsAtZero,
    #[error("'start_line' and 'offset' differ: 'start_line' counts from 1, 'offset' from 0")]
    TwoStarts,
    #[error("'num_lines' and 'limit' differ")]
    TwoCounts,
    #[error("'num_lines' must be at least 1")]
    None,
}

/// The names that models use for a path.
const PATH_NAMES: [&str; 3] = ["path", "file_path", "file_name"];

/// Which lines of which file: `start_line` and `num_lines` count from 1, `offset` and `limit` from
/// 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadArguments {
    pub(crate) path: String,
    /// How many lines are left out before the first one.
    pub(crate) skip: u64,
    /// How many are wanted; as many as may be, if it is none.
    pub(crate) take: Option<u64>,
}

impl ReadArguments {
    /// Reads the arguments of a call; else says what is wrong with them.
    pub(crate) fn parse(arguments: &Value) -> Result<Self, InvalidArguments> {
        let values = object(arguments)?;
        let path = path(values)?;
        let path = path.ok_or_else(|| InvalidArguments::Required { name: "path".to_owned() })?;
        let start = number(values, "start_line")?;
        if start == Some(0) {
            return Err(InvalidLines::StartsAtZero.into());
        }
        let skip = same(start.map(|start| start - 1), number(values, "offset")?)
            .ok_or(InvalidLines::TwoStarts)?;
        let take = same(number(values, "num_lines")?, number(values, "limit")?)
            .ok_or(InvalidLines::TwoCounts)?;
        if take == Some(0) {
            return Err(InvalidLines::None.into());
        }
        Ok(Self { path, skip: skip.unwrap_or(0), take })
    }
}

/// The folder that is to be listed; the workspace if there is none.
pub(crate) fn listed_path(arguments: &Value) -> Result<String, InvalidArguments> {
    Ok(path(object(arguments)?)?.unwrap_or_default())
}

fn object(arguments: &Value) -> Result<&Map<String, Value>, InvalidArguments> {
    arguments.as_object().ok_or(InvalidArguments::NotAnObject)
}

fn path(values: &Map<String, Value>) -> Result<Option<String>, InvalidArguments> {
    let mut found: Option<String> = None;
    for name in PATH_NAMES {
        let text = match values.get(name) {
            None | Some(Value::Null) => continue,
            Some(Value::String(text)) => text.trim(),
            Some(_) => {
                return Err(InvalidArguments::Wrong { name: name.to_owned(), must: "a string" });
            }
        };
        if text.is_empty() {
            continue;
        }
        if found.as_ref().is_some_and(|found| found != text) {
            return Err(InvalidArguments::Two { things: "files" });
        }
        found = Some(text.to_owned());
    }
    Ok(found)
}

fn number(values: &Map<String, Value>, name: &str) -> Result<Option<u64>, InvalidArguments> {
    let number = match values.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) if text.trim().is_empty() => return Ok(None),
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(value) => value.as_u64(),
    };
    let must = "a whole number, not below 0";
    let wrong = || InvalidArguments::Wrong { name: name.to_owned(), must };
    number.map(Some).ok_or_else(wrong)
}

/// One of two that may both be there if they are the same.
#[allow(clippy::option_option, reason = "neither may be there, which is no contradiction")]
fn same(a: Option<u64>, b: Option<u64>) -> Option<Option<u64>> {
    match (a, b) {
        (Some(a), Some(b)) if a != b => None,
        (a, b) => Some(a.or(b)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_styles_mean_the_same() {
        let read = |skip, take| ReadArguments { path: "a".to_owned(), skip, take };
        let table = [
            (json!({"path": "a"}), read(0, None)),
            (json!({"file_name": "a", "start_line": 1, "num_lines": 20}), read(0, Some(20))),
            (json!({"file_path": "a", "offset": 0, "limit": 20}), read(0, Some(20))),
            (json!({"path": "a", "start_line": 5, "num_lines": "2"}), read(4, Some(2))),
            (json!({"path": "a", "offset": 4, "limit": 2}), read(4, Some(2))),
            (json!({"path": "a", "offset": 4, "start_line": 5}), read(4, None)),
            (json!({"path": " a ", "file_name": "a", "offset": null}), read(0, None)),
        ];
        for (arguments, expected) in table {
            assert_eq!(ReadArguments::parse(&arguments).unwrap(), expected, "{arguments}");
        }
    }

    #[test]
    fn wrong_arguments_are_named() {
        let table = [
            (json!({}), "path is required"),
            (json!([]), "they must be a JSON object"),
            (json!({"path": 1}), "'path' must be a string"),
            (json!({"path": "a", "file_name": "b"}), "they name two files"),
            (json!({"path": "a", "start_line": 0}), "'start_line' counts from 1"),
            (json!({"path": "a", "num_lines": 0}), "'num_lines' must be at least 1"),
            (json!({"path": "a", "limit": -1}), "'limit' must be a whole number, not below 0"),
            (json!({"path": "a", "limit": 1, "num_lines": 2}), "'num_lines' and 'limit' differ"),
        ];
        for (arguments, expected) in table {
            let wrong = ReadArguments::parse(&arguments).unwrap_err();
            assert_eq!(wrong.to_string(), expected, "{arguments}");
        }
        let both = json!({"path": "a", "start_line": 1, "offset": 1});
        let wrong = ReadArguments::parse(&both).unwrap_err();
        assert!(wrong.to_string().contains("counts from 1"), "{wrong}");
    }
}
