//! What there is to say about a skill: nothing is dropped, repaired or cut without one of these.

use std::fmt;
use std::sync::Arc;

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::lint::Code;
use crate::span::Span;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Worth knowing.
    Info,
    /// Works here, but not everywhere, or not as its author may think.
    Warning,
    /// Breaks a rule.
    Error,
}

impl Level {
    /// `error`, `warning` or `info`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// One finding: what, how bad, where, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The stable name of the finding.
    pub code: Code,
    /// How bad it is under the profile that was asked for.
    pub level: Level,
    /// The file, where the caller knows one.
    pub path: Option<Arc<str>>,
    /// The place in the file.
    pub span: Option<Span>,
    /// What is the matter.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A finding without a place.
    pub fn new(code: Code, level: Level, message: impl Into<String>) -> Self {
        Self { code, level, path: None, span: None, message: message.into(), help: None }
    }

    /// Says in which file.
    pub fn with_path(mut self, path: impl Into<Arc<str>>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Says where in the file.
    pub fn with_span(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }

    /// Says what to do.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// `{"code","level","path","line","column","message","help"}`; what is unknown is `null`.
impl Serialize for Diagnostic {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(7))?;
        map.serialize_entry("code", self.code.as_str())?;
        map.serialize_entry("level", &self.level)?;
        map.serialize_entry("path", &self.path.as_deref())?;
        map.serialize_entry("line", &self.span.map(|span| span.line))?;
        map.serialize_entry("column", &self.span.map(|span| span.column))?;
        map.serialize_entry("message", &self.message)?;
        map.serialize_entry("help", &self.help)?;
        map.end()
    }
}
