//! Findings for people and for programs.

mod github;
mod json;
mod sarif;
mod text;

use prowess_catalog::{ReadError, TreeDigest};
use prowess_format::{Diagnostic, Digest, Level};

use crate::cli::Format;

pub(crate) use json::{json_line, print_json, set_tree_digest};

/// What a run of the linter found.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// One per file.
    pub(crate) sections: Vec<Section>,
    /// How many skills were checked.
    pub(crate) skills: usize,
    /// What identifies them, where that is printed.
    pub(crate) identities: Vec<Identity>,
}

/// What identifies a skill that was checked.
#[derive(Debug)]
pub(crate) struct Identity {
    /// Its file.
    pub(crate) path: String,
    /// The digest of its file.
    pub(crate) digest: Digest,
    /// The digest of its folder, or why there is none. Standard input has no folder.
    pub(crate) tree_digest: Option<Result<TreeDigest, ReadError>>,
}

/// The findings in one file, and its text to show them in.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) source: String,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

impl Report {
    pub(crate) fn diagnostics(&self) -> impl Iterator<Item = &Diagnostic> {
        self.sections.iter().flat_map(|section| &section.diagnostics)
    }

    pub(crate) fn count(&self, level: Level) -> usize {
        self.diagnostics().filter(|diagnostic| diagnostic.level == level).count()
    }

    pub(crate) fn promote_warnings(&mut self) {
        for diagnostic in self.sections.iter_mut().flat_map(|section| &mut section.diagnostics) {
            if diagnostic.level == Level::Warning {
                diagnostic.level = Level::Error;
            }
        }
    }
}

pub(crate) fn print(report: &Report, format: Format) -> anyhow::Result<()> {
    match format {
        Format::Text => text::print(report),
        Format::Json => json::print(report),
        Format::Sarif => sarif::print(report),
        Format::Github => github::print(report),
    }
}

/// `1 error`, `2 errors`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{s}")
}
