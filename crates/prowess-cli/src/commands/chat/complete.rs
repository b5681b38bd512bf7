//! What Tab completes while a line is typed, and what is hinted at.

use std::borrow::Cow;
use std::cell::Cell;

use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::{Hint, Hinter};
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};

use super::line::{COMMANDS, is_open};
use crate::terminal::safe_line;

/// What can be completed.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// Skills that people can start, and what they take.
    pub(super) skills: Vec<(String, Option<String>)>,
    /// Skills that are loaded.
    pub(super) loaded: Vec<String>,
    /// Sessions.
    pub(super) sessions: Vec<String>,
}

/// Where the word begins that is typed, and what it can become.
fn candidates(line: &str, names: &Names) -> (usize, Vec<String>) {
    let nothing = (line.len(), Vec::new());
    if line.contains('\n') {
        return nothing;
    }
    let Some(typed) = line.strip_prefix('/') else { return nothing };
    let skills = || names.skills.iter().map(|(name, _)| name.clone());
    let Some((command, rest)) = typed.split_once(' ') else {
        let commands = COMMANDS.iter().map(|(name, ..)| (*name).to_owned());
        let is_free = |name: &String| COMMANDS.iter().all(|(command, ..)| name != command);
        let called = skills().map(|name| match is_free(&name) {
            true => name,
            false => format!("skill:{name}"),
        });
        let all = commands.chain(called).map(|name| format!("/{name} "));
        return (0, matching(all, line));
    };
    let all: Vec<String> = match command {
        "load" => skills().map(|name| name + " ").collect(),
        "unload" => names.loaded.clone(),
        "session" => {
            let words = ["list", "new"].map(str::to_owned);
            words.into_iter().chain(names.sessions.iter().cloned()).collect()
        }
        _ => return nothing,
    };
    (line.len() - rest.len(), matching(all.into_iter(), rest))
}

/// Those that begin so, and that a terminal can be shown.
fn matching(all: impl Iterator<Item = String>, begin: &str) -> Vec<String> {
    let mut all: Vec<String> =
        all.filter(|it| it.starts_with(begin) && safe_line(it) == *it).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// What a skill takes whose name was typed.
fn hint(line: &str, names: &Names) -> Option<String> {
    let (name, rest) = line.strip_prefix('/')?.split_once(' ')?;
    let name = name.strip_prefix("skill:").unwrap_or(name);
    let (_, hint) = names.skills.iter().find(|(known, _)| known == name)?;
    rest.is_empty().then_some(safe_line(hint.as_deref()?))
}

/// What helps while a line is typed.
#[derive(Default)]
pub(super) struct Help {
    pub(super) names: Names,
    /// Whether something was typed.
    pub(super) is_typed: Cell<bool>,
}

/// A hint that is seen and not taken.
pub(super) struct Seen(String);

impl Hint for Seen {
    fn display(&self) -> &str {
        &self.0
    }

    fn completion(&self) -> Option<&str> {
        None
    }
}

impl Completer for Help {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(candidates(&line[..at], &self.names))
    }
}

impl Hinter for Help {
    type Hint = Seen;

    fn hint(&self, line: &str, at: usize, _: &Context<'_>) -> Option<Seen> {
        self.is_typed.set(!line.is_empty());
        if at < line.len() {
            return None;
        }
        hint(line, &self.names).map(Seen)
    }
}

impl Highlighter for Help {
    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        let dim = anstyle::Style::new().dimmed();
        Cow::Owned(format!("{dim}{hint}{dim:#}"))
    }
}

impl Validator for Help {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match is_open(context.input()) {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Valid(None),
        })
    }
}

impl Helper for Help {}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let skill = |name: &str, hint: Option<&str>| (name.to_owned(), hint.map(str::to_owned));
        Names {
            skills: vec![
                skill("deploy", Some("<env>\u{7}")),
                skill("help", None),
                skill("release-notes", None),
                skill("s\u{1b}[2J", None),
            ],
            loaded: vec!["deploy".to_owned()],
            sessions: vec!["chat-1".to_owned(), "work".to_owned()],
        }
    }

    #[test]
    fn commands_skills_and_sessions_are_completed() {
        let table: [(&str, usize, &[&str]); 14] = [
            ("", 0, &[]),
            ("hello /de", 9, &[]),
            ("/de", 0, &["/deploy "]),
            ("/re", 0, &["/release-notes ", "/resume "]),
            ("/he", 0, &["/help "]),
            ("/skill", 0, &["/skill:help ", "/skills "]),
            ("/x", 0, &[]),
            ("/load ", 6, &["deploy ", "help ", "release-notes "]),
            ("/load rel", 6, &["release-notes "]),
            ("/load deploy no", 6, &[]),
            ("/unload ", 8, &["deploy"]),
            ("/session ", 9, &["chat-1", "list", "new", "work"]),
            ("/tokens ", 8, &[]),
            ("/load \nde", 9, &[]),
        ];
        for (line, at, expected) in table {
            assert_eq!(
                candidates(line, &names()),
                (at, expected.iter().map(|it| (*it).to_owned()).collect()),
                "{line:?}"
            );
        }
        assert_eq!(candidates("/", &names()).1.len(), COMMANDS.len() + 3);
    }

    #[test]
    fn a_skill_hints_at_what_it_takes() {
        for (line, expected) in [
            ("/deploy ", Some("<env>\\u{7}")),
            ("/skill:deploy ", Some("<env>\\u{7}")),
            ("/deploy", None),
            ("/deploy p", None),
            ("/release-notes ", None),
            ("deploy ", None),
        ] {
            assert_eq!(hint(line, &names()).as_deref(), expected, "{line:?}");
        }
    }
}
