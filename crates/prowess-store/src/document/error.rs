//! Why a document is no skill, or a skill no document.

use std::fmt;

use prowess_format::{Diagnostic, Level};
use serde::{Deserialize, Serialize};

/// One thing that is wrong with a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Violation {
    /// Where, as a JSON pointer: `/resources/2/path`. Empty if it is about the whole.
    pub place: String,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl Violation {
    /// Something that is wrong at a place.
    pub fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place.is_empty() {
            true => formatter.write_str(&self.message),
            false => write!(formatter, "{}: {}", self.place, self.message),
        }
    }
}

/// Why a document is no skill, or a skill no document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// The document breaks rules: all that it breaks.
    #[error("the document is invalid: {}", listed(.0))]
    Invalid(Vec<Violation>),
    /// There is no `SKILL.md` among the files.
    #[error("there is no SKILL.md among the files of the skill; put one at their top")]
    NoSkillFile,
    /// The `SKILL.md` is none that can be used.
    #[error("SKILL.md cannot be used: {}", first_of(.0))]
    Unreadable(Vec<Diagnostic>),
    /// The name in the `SKILL.md` is no id of a skill.
    #[error("the name in SKILL.md is no id of a skill: {0}")]
    InvalidId(#[from] crate::version::InvalidSkillId),
}

impl DocumentError {
    /// The stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "invalid_document",
            Self::NoSkillFile => "no_skill_file",
            Self::Unreadable(_) => "unreadable_skill",
            Self::InvalidId(_) => "invalid_id",
        }
    }

    /// Everything that is wrong, one by one.
    pub fn violations(&self) -> Vec<Violation> {
        match self {
            Self::Invalid(violations) => violations.clone(),
            Self::NoSkillFile => vec![Violation::new("", self.to_string())],
            Self::InvalidId(cause) => vec![Violation::new("/name", cause.to_string())],
            Self::Unreadable(diagnostics) => diagnostics.iter().map(as_violation).collect(),
        }
    }

    /// What there is to say about a `SKILL.md` that cannot be used, with lines.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Unreadable(diagnostics) => diagnostics,
            _ => &[],
        }
    }
}

fn as_violation(diagnostic: &Diagnostic) -> Violation {
    let line = diagnostic.span.map(|span| format!("line {}: ", span.line)).unwrap_or_default();
    let help = diagnostic.help.as_deref().map(|help| format!("; {help}")).unwrap_or_default();
    Violation::new("", format!("SKILL.md: {line}{}{help}", diagnostic.message))
}

fn listed(violations: &[Violation]) -> String {
    violations.iter().map(Violation::to_string).collect::<Vec<_>>().join("; ")
}

/// The worst of them, in words.
pub(super) fn first_of(diagnostics: &[Diagnostic]) -> String {
    let worst = diagnostics.iter().find(|it| it.level == Level::Error).or(diagnostics.first());
    worst.map_or("it has no name or no description".to_owned(), |it| match it.span {
        Some(span) => format!("line {}: {}", span.line, it.message),
        None => it.message.clone(),
    })
}
