//! Findings: what is checked, and how much it counts under each profile.
//!
//! To add a rule: give it a code in `codes.rs` (with its level per profile), and report it from
//! the file in `rules/` that is about its subject. A new subject is a new file and a line in
//! `rules/mod.rs`.

mod codes;
mod document;
mod profile;
mod rules;

pub use codes::Code;
pub use profile::{Profile, UnknownProfile};

pub(crate) use document::{Document, not_utf8};

use std::cell::OnceCell;

use crate::diagnostic::Diagnostic;
use crate::span::{ByteRange, LineStarts};

/// Runs all rules over a document.
pub(crate) fn check(document: &Document<'_>, checker: &mut Checker<'_>) {
    for rule in rules::ALL {
        rule(document, checker);
    }
}

/// Collects what the rules find, at the level that the profile gives it.
pub(crate) struct Checker<'a> {
    source: &'a str,
    lines: OnceCell<LineStarts>,
    pub(crate) profile: Profile,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> Checker<'a> {
    pub(crate) fn new(source: &'a str, profile: Profile) -> Self {
        Self { source, lines: OnceCell::new(), profile, diagnostics: Vec::new() }
    }

    /// Reports a finding, unless the profile does not care.
    pub(crate) fn report(&mut self, code: Code, range: ByteRange, message: impl Into<String>) {
        self.push(code, range, message.into(), None);
    }

    /// Reports a finding together with what to do about it.
    pub(crate) fn report_with_help(
        &mut self,
        code: Code,
        range: ByteRange,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.push(code, range, message.into(), Some(help.into()));
    }

    fn push(&mut self, code: Code, range: ByteRange, message: String, help: Option<String>) {
        if let Some(level) = code.level(self.profile) {
            let lines = self.lines.get_or_init(|| LineStarts::of(self.source));
            let span = lines.locate(self.source, range);
            let mut diagnostic = Diagnostic::new(code, level, message).with_span(span);
            diagnostic.help = help;
            self.diagnostics.push(diagnostic);
        }
    }

    pub(crate) fn finish(self) -> Vec<Diagnostic> {
        self.diagnostics
    }
}
