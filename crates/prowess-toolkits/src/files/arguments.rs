//! The arguments of file tools, in both styles.

use serde_json::{Map, Value};

use super::backend::GrepMode;
use super::edit::{Edit, Occurrences};
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

/// Why a text cannot be replaced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidEdit {
    #[error("'old_string' must not be empty; write_file makes new files")]
    Empty,
    #[error("'old_string' and 'new_string' are the same")]
    Same,
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
        let path = path(values)?.ok_or_else(|| required("path"))?;
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

/// A file, and what it is to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WriteArguments {
    pub(crate) path: String,
    pub(crate) content: String,
}

impl WriteArguments {
    pub(crate) fn parse(arguments: &Value) -> Result<Self, InvalidArguments> {
        let values = object(arguments)?;
        let path = path(values)?.ok_or_else(|| required("path"))?;
        let content = text(values, "content")?.or(text(values, "contents")?);
        Ok(Self { path, content: content.ok_or_else(|| required("content"))? })
    }
}

/// A file, and what is to be replaced in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EditArguments {
    pub(crate) path: String,
    pub(crate) edit: Edit,
}

impl EditArguments {
    pub(crate) fn parse(arguments: &Value) -> Result<Self, InvalidArguments> {
        let values = object(arguments)?;
        let path = path(values)?.ok_or_else(|| required("path"))?;
        let old = text(values, "old_string")?.ok_or_else(|| required("old_string"))?;
        let new = text(values, "new_string")?.ok_or_else(|| required("new_string"))?;
        if old.is_empty() {
            return Err(InvalidEdit::Empty.into());
        }
        if old == new {
            return Err(InvalidEdit::Same.into());
        }
        let which = match flag(values, "replace_all")? {
            true => Occurrences::All,
            false => Occurrences::One,
        };
        Ok(Self { path, edit: Edit { old, new, which } })
    }
}

/// Which files are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GlobArguments {
    pub(crate) pattern: String,
    /// The folder that is searched; all of it if it is empty.
    pub(crate) path: String,
}

impl GlobArguments {
    pub(crate) fn parse(arguments: &Value) -> Result<Self, InvalidArguments> {
        let values = object(arguments)?;
        let pattern = text(values, "pattern")?.ok_or_else(|| required("pattern"))?;
        Ok(Self { pattern, path: path(values)?.unwrap_or_default() })
    }
}

/// Which text is looked for, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GrepArguments {
    pub(crate) pattern: String,
    pub(crate) path: String,
    pub(crate) glob: Option<String>,
    pub(crate) mode: GrepMode,
}

impl GrepArguments {
    pub(crate) fn parse(arguments: &Value) -> Result<Self, InvalidArguments> {
        let GlobArguments { pattern, path } = GlobArguments::parse(arguments)?;
        if pattern.is_empty() {
            return Err(wrong("pattern", "more than nothing"));
        }
        let values = object(arguments)?;
        let mode = match text(values, "output_mode")?.as_deref() {
            None | Some("" | "files_with_matches") => GrepMode::Files,
            Some("content") => GrepMode::Lines,
            Some("count") => GrepMode::Count,
            Some(_) => {
                return Err(wrong("output_mode", "files_with_matches, content or count"));
            }
        };
        let glob = text(values, "glob")?.filter(|glob| !glob.is_empty());
        Ok(Self { pattern, path, glob, mode })
    }
}

/// A command, and the seconds that it may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExecuteArguments {
    pub(crate) command: String,
    pub(crate) timeout: Option<u64>,
}

impl ExecuteArguments {
    pub(crate) fn parse(arguments: &Value) -> Result<Self, InvalidArguments> {
        let values = object(arguments)?;
        let command = text(values, "command")?.filter(|it| !it.trim().is_empty());
        let timeout = number(values, "timeout")?.filter(|seconds| *seconds > 0);
        Ok(Self { command: command.ok_or_else(|| required("command"))?, timeout })
    }
}

fn required(name: &str) -> InvalidArguments {
    InvalidArguments::Required { name: name.to_owned() }
}

fn wrong(name: &str, must: &'static str) -> InvalidArguments {
    InvalidArguments::Wrong { name: name.to_owned(), must }
}

fn text(values: &Map<String, Value>, name: &str) -> Result<Option<String>, InvalidArguments> {
    match values.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(wrong(name, "a string")),
    }
}

fn flag(values: &Map<String, Value>, name: &str) -> Result<bool, InvalidArguments> {
    match values.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => Ok(true),
        Some(Value::String(text)) if text.eq_ignore_ascii_case("false") => Ok(false),
        Some(_) => Err(wrong(name, "true or false")),
    }
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
            Some(_) => return Err(wrong(name, "a string")),
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
    number.map(Some).ok_or_else(|| wrong(name, "a whole number, not below 0"))
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
            let wrong = ReadArguments::parse(&arguments).unwrap_err().to_string();
            assert_eq!(wrong, expected, "{arguments}");
        }
        let both = json!({"path": "a", "start_line": 1, "offset": 1});
        assert!(ReadArguments::parse(&both).unwrap_err().to_string().contains("counts from 1"));
    }

    #[test]
    fn what_is_written_edited_and_searched_is_named() {
        let wrote = WriteArguments { path: "a".to_owned(), content: " b\n".to_owned() };
        for name in ["content", "contents"] {
            let call = json!({"file_path": "a", name: " b\n"});
            assert_eq!(WriteArguments::parse(&call).unwrap(), wrote, "{call}");
        }
        for (all, which) in [
            (json!(null), Occurrences::One),
            (json!(false), Occurrences::One),
            (json!(true), Occurrences::All),
            (json!("True"), Occurrences::All),
        ] {
            let call =
                json!({"path": "a", "old_string": "b", "new_string": "", "replace_all": all});
            assert_eq!(EditArguments::parse(&call).unwrap().edit.which, which, "{call}");
        }
        for (mode, expected) in [
            (json!(null), GrepMode::Files),
            (json!("files_with_matches"), GrepMode::Files),
            (json!("content"), GrepMode::Lines),
            (json!("count"), GrepMode::Count),
        ] {
            let call = json!({"pattern": "a", "output_mode": mode});
            assert_eq!(GrepArguments::parse(&call).unwrap().mode, expected, "{call}");
        }
        let call = json!({"command": "ls", "timeout": 0});
        assert_eq!(ExecuteArguments::parse(&call).unwrap().timeout, None);
    }

    #[test]
    fn wrong_arguments_of_the_others_are_named_too() {
        let write = |call| WriteArguments::parse(&call).unwrap_err().to_string();
        assert_eq!(write(json!({"path": "a"})), "content is required");
        assert_eq!(write(json!({"content": ""})), "path is required");
        assert_eq!(write(json!({"path": "a", "content": 1})), "'content' must be a string");
        let edit = |old: &str, new: &str, all: Value| {
            let call = json!({
                "path": "a", "old_string": old, "new_string": new, "replace_all": all,
            });
            EditArguments::parse(&call).unwrap_err().to_string()
        };
        assert!(edit("", "b", json!(false)).starts_with("'old_string' must not be empty"));
        assert_eq!(edit("b", "b", json!(false)), "'old_string' and 'new_string' are the same");
        assert_eq!(edit("a", "b", json!(1)), "'replace_all' must be true or false");
        let grep = |call| GrepArguments::parse(&call).unwrap_err().to_string();
        assert_eq!(grep(json!({})), "pattern is required");
        assert_eq!(grep(json!({"pattern": ""})), "'pattern' must be more than nothing");
        let wrong = grep(json!({"pattern": "a", "output_mode": "all"}));
        assert_eq!(wrong, "'output_mode' must be files_with_matches, content or count");
        let execute = |call| ExecuteArguments::parse(&call).unwrap_err().to_string();
        assert_eq!(execute(json!({"command": " "})), "command is required");
    }
}
