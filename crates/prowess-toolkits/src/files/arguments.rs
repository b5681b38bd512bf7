//! The arguments of file tools, in both styles.

use serde_json::{Map, Value};

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
    pub(crate) fn parse(arguments: &Value) -> Result<Self, String> {
        let values = object(arguments)?;
        let path = path(values)?.ok_or("path is required")?;
        let start = number(values, "start_line")?;
        if start == Some(0) {
            return Err("'start_line' counts from 1".to_owned());
        }
        let skip = same(start.map(|start| start - 1), number(values, "offset")?).ok_or(
            "'start_line' and 'offset' differ: 'start_line' counts from 1, 'offset' from 0",
        )?;
        let take = same(number(values, "num_lines")?, number(values, "limit")?)
            .ok_or("'num_lines' and 'limit' differ")?;
        if take == Some(0) {
            return Err("'num_lines' must be at least 1".to_owned());
        }
        Ok(Self { path, skip: skip.unwrap_or(0), take })
    }
}

/// The folder that is to be listed; the workspace if there is none.
pub(crate) fn listed_path(arguments: &Value) -> Result<String, String> {
    Ok(path(object(arguments)?)?.unwrap_or_default())
}

fn object(arguments: &Value) -> Result<&Map<String, Value>, String> {
    arguments.as_object().ok_or_else(|| "they must be a JSON object".to_owned())
}

fn path(values: &Map<String, Value>) -> Result<Option<String>, String> {
    let mut found: Option<String> = None;
    for name in PATH_NAMES {
        let text = match values.get(name) {
            None | Some(Value::Null) => continue,
            Some(Value::String(text)) => text.trim(),
            Some(_) => return Err(format!("'{name}' must be a string")),
        };
        if text.is_empty() {
            continue;
        }
        if found.as_ref().is_some_and(|found| found != text) {
            return Err("they name two files".to_owned());
        }
        found = Some(text.to_owned());
    }
    Ok(found)
}

fn number(values: &Map<String, Value>, name: &str) -> Result<Option<u64>, String> {
    let number = match values.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) if text.trim().is_empty() => return Ok(None),
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(value) => value.as_u64(),
    };
    let wrong = || format!("'{name}' must be a whole number, not below 0");
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
        let read = |skip, take| Ok(ReadArguments { path: "a".to_owned(), skip, take });
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
            assert_eq!(ReadArguments::parse(&arguments), expected, "{arguments}");
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
            assert_eq!(wrong, expected, "{arguments}");
        }
        let both = json!({"path": "a", "start_line": 1, "offset": 1});
        assert!(ReadArguments::parse(&both).unwrap_err().contains("counts from 1"));
    }
}
