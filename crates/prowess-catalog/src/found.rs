//! A skill as a source yields it: everything but its body.

use std::path::{Path, PathBuf};

use prowess_format::{Diagnostic, Digest, Frontmatter, SkillName};

/// A skill that can be used: its frontmatter, where it is, and what identifies its text.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FoundSkill {
    /// The name that identifies it.
    pub name: SkillName,
    /// Its frontmatter.
    pub frontmatter: Frontmatter,
    /// Its folder, relative to the source; empty if the source is the skill's folder.
    pub folder: Box<Path>,
    /// The file name of its text, nearly always `SKILL.md`.
    pub file: &'static str,
    /// The sha256 of its `SKILL.md`.
    pub digest: Digest,
    /// Whether its `SKILL.md` may be run.
    pub executable: bool,
    /// What identifies its file on this machine.
    pub(crate) identity: (u64, u64),
    /// The length of its `SKILL.md`.
    pub bytes: u64,
    /// The characters of its body, for estimates.
    pub body_chars: u32,
}

impl FoundSkill {
    /// The description, without the blanks around it.
    pub fn description(&self) -> &str {
        self.frontmatter.description().unwrap_or_default()
    }

    /// The path of its `SKILL.md`, relative to the source.
    pub fn path(&self) -> PathBuf {
        self.folder.join(self.file)
    }
}

/// What a source holds at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SourceListing {
    /// The skills that can be used, in the order of their paths.
    pub skills: Vec<std::sync::Arc<FoundSkill>>,
    /// What there is to say about these and the others.
    pub diagnostics: Vec<Diagnostic>,
}
