//! `edit_file`

use prowess_runtime::{Invocation, ToolOutcome};
use prowess_workspace::Expected;
use serde_json::json;

use super::arguments::EditArguments;
use super::{FileError, Files};
use crate::invalid::InvalidArguments;

/// So often an edit is tried while others change the same file.
const TRIES: usize = 16;

impl Files {
    /// Replaces text in a file. What others write into it meanwhile is not lost.
    pub(crate) async fn edit(
        &self,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome, ToolOutcome> {
        let invalid = |why: InvalidArguments| why.outcome(invocation);
        let EditArguments { path, edit } =
            EditArguments::parse(&invocation.call.arguments).map_err(invalid)?;
        let spot = self.spot(invocation, &path).await?;
        let most = self.settings.max_write_bytes;
        for _ in 0..TRIES {
            let (file, place) = spot.first(|backend, place| backend.read(place, most)).await?;
            let shown = self.ground.shown(place);
            if file.truncated {
                let (bytes, limit) = (file.size_bytes, "max_write_bytes");
                return Err(spot.failure(&FileError::TooLarge { path: shown, bytes, limit, most }));
            }
            let text = std::str::from_utf8(&file.bytes)
                .map_err(|_| spot.failure(&FileError::NotText { path: shown.clone() }))?;
            let bytes = edit.size(text);
            if bytes > most {
                let limit = "max_write_bytes";
                return Err(spot.failure(&FileError::TooLarge { path: shown, bytes, limit, most }));
            }
            let (edited, count) = edit.apply(text).map_err(|problem| {
                ToolOutcome::error(problem.code(), format!("Error: {problem} in '{shown}'"))
                    .with_hint(problem.hint())
            })?;
            self.check_size(place, edited.as_bytes()).map_err(|error| spot.failure(&error))?;
            let expected = Expected::Content(&file.bytes);
            match spot.backend.write(place, edited.as_bytes(), expected).await {
                Err(FileError::Changed { .. }) => {}
                Err(error) => return Err(spot.failure(&error)),
                Ok(_) => {
                    let places = if count == 1 { "place" } else { "places" };
                    let mut outcome =
                        ToolOutcome::text(format!("Edited {shown} in {count} {places}"));
                    outcome.data = json!({
                        "ref": self.ground.reference(place.as_str()),
                        "size_bytes": edited.len(),
                        "replacements": count,
                    });
                    return Ok(outcome);
                }
            }
        }
        Err(spot.failure(&FileError::Changed { path }))
    }
}

/// What is replaced by what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) old: String,
    pub(crate) new: String,
    pub(crate) which: Occurrences,
}

/// How often the old text is to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occurrences {
    /// Once, so that it is certain which is meant.
    One,
    /// Any number of times.
    All,
}

/// Why nothing is replaced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EditProblem {
    #[error("String not found: '{old}'")]
    NotFound { old: String },
    #[error("String '{old}' appears {count} times")]
    NotUnique { old: String, count: usize },
}

impl EditProblem {
    fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "string_not_found",
            Self::NotUnique { .. } => "string_not_unique",
        }
    }

    fn hint(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "read_file shows what is there, blanks included.",
            Self::NotUnique { .. } => "Give more of the text around it, or set replace_all.",
        }
    }
}

impl Edit {
    /// How many bytes the text would have; as many as it has, if nothing is replaced.
    fn size(&self, text: &str) -> u64 {
        let count = text.matches(&self.old).count() as u64;
        let (old, new) = (self.old.len() as u64, self.new.len() as u64);
        (text.len() as u64).saturating_sub(count * old).saturating_add(count.saturating_mul(new))
    }

    /// The text with its replacements, and how many there are.
    pub(crate) fn apply(&self, text: &str) -> Result<(String, usize), EditProblem> {
        let count = text.matches(&self.old).count();
        if count == 0 {
            return Err(EditProblem::NotFound { old: shown(&self.old) });
        }
        if self.which == Occurrences::One {
            let places = places(text, &self.old);
            if places > 1 {
                return Err(EditProblem::NotUnique { old: shown(&self.old), count: places });
            }
        }
        Ok((text.replace(&self.old, &self.new), count))
    }
}

/// At how many places a text begins, also if they overlap.
fn places(text: &str, part: &str) -> usize {
    let step = part.chars().next().map_or(1, char::len_utf8);
    let (mut from, mut count) = (0, 0);
    while let Some(at) = text[from..].find(part) {
        count += 1;
        from += at + step;
    }
    count
}

/// The beginning of a text, for a message.
fn shown(text: &str) -> String {
    const MOST: usize = 80;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(text: &str, old: &str, which: Occurrences) -> Result<(String, usize), &'static str> {
        let edit = Edit { old: old.to_owned(), new: "X".to_owned(), which };
        edit.apply(text).map_err(|problem| problem.code())
    }

    #[test]
    fn one_place_is_replaced_if_it_is_the_only_one() {
        use Occurrences::{All, One};
        let table = [
            ("abc", "b", One, Ok(("aXc".to_owned(), 1))),
            ("abcb", "b", One, Err("string_not_unique")),
            ("abcb", "b", All, Ok(("aXcX".to_owned(), 2))),
            ("abc", "d", One, Err("string_not_found")),
            ("abc", "d", All, Err("string_not_found")),
            ("", "d", One, Err("string_not_found")),
            // Overlapping places are two.
            ("aaa", "aa", One, Err("string_not_unique")),
            ("äää", "ää", One, Err("string_not_unique")),
            ("aaa", "aa", All, Ok(("Xa".to_owned(), 1))),
            ("a\r\nb", "\r\n", One, Ok(("aXb".to_owned(), 1))),
            ("a\tb", "\tb", One, Ok(("aX".to_owned(), 1))),
        ];
        for (text, old, which, expected) in table {
            assert_eq!(apply(text, old, which), expected, "{text:?} {old:?} {which:?}");
        }
    }

    #[test]
    fn messages_do_not_repeat_long_texts() {
        let old = "ä".repeat(81);
        let edit = Edit { old, new: String::new(), which: Occurrences::One };
        let problem = edit.apply("").unwrap_err().to_string();
        assert_eq!(problem, format!("String not found: '{}…'", "ä".repeat(80)));
    }
}
