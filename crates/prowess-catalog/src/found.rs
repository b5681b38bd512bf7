//! A skill as a source yields it: everything but its body.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use prowess_format::{Code, Diagnostic, Digest, Frontmatter, Options, Skill, SkillName};

use crate::limits::ScanLimits;
use crate::scan::{FILE_NAMES, finding};

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
    pub skills: Vec<Arc<FoundSkill>>,
    /// What there is to say about these and the others.
    pub diagnostics: Vec<Diagnostic>,
}

/// The text of a skill, as a source found it.
#[derive(Clone, Copy, Debug)]
pub struct SkillText<'a> {
    /// Its folder, relative to the source.
    pub folder: &'a Path,
    /// The file name of its text, nearly always `SKILL.md`.
    pub file: &'static str,
    /// Where the text is, as findings tell it.
    pub path: &'a str,
    /// The text.
    pub bytes: &'a [u8],
    /// Whether its file may be run.
    pub executable: bool,
}

impl SourceListing {
    /// Adds the skill that a text is, and what there is to say about it: everything that is found
    /// in a folder of skills, for sources that hold their texts elsewhere.
    pub fn add(&mut self, text: &SkillText<'_>, limits: &ScanLimits) {
        let SkillText { folder, file, path, bytes, executable } = *text;
        let limit = limits.file_bytes;
        if bytes.len() as u64 > limit {
            return self.add_too_large(path, limit);
        }
        let name = folder.file_name().map(|name| name.to_string_lossy());
        let options = match &name {
            Some(name) => Options::new().in_folder(name).without_body(),
            None => Options::new().without_body(),
        };
        let parsed = Skill::parse_bytes(bytes, &options);
        let mut diagnostics = parsed.diagnostics;
        diagnostics.extend(misnamed(file, Path::new(path)));
        let located = |diagnostic: Diagnostic| diagnostic.with_path(path);
        self.diagnostics.extend(diagnostics.into_iter().map(located));
        self.skills.extend(parsed.skill.map(|skill| {
            Arc::new(FoundSkill {
                folder: folder.into(),
                file,
                digest: Digest::of(bytes),
                executable,
                identity: (0, 0),
                bytes: bytes.len() as u64,
                body_chars: u32::try_from(parsed.body_chars).unwrap_or(u32::MAX),
                name: skill.skill_name().clone(),
                frontmatter: skill.frontmatter,
            })
        }));
    }

    /// Says that a text is larger than the limit.
    pub fn add_too_large(&mut self, path: &str, limit: u64) {
        let message = format!("{path} is larger than {limit} bytes");
        self.diagnostics.push(finding(Code::FileTooLarge, Path::new(path), message));
    }

    /// Says that something cannot be read, and why.
    pub fn add_unreadable(&mut self, path: &str, why: &dyn std::fmt::Display) {
        let message = format!("Cannot read {path}: {why}");
        self.diagnostics.push(finding(Code::UnreadableFile, Path::new(path), message));
    }
}

/// The finding that a text is not named `SKILL.md`; `None` if it is.
pub(crate) fn misnamed(file: &str, path: &Path) -> Option<Diagnostic> {
    let message = "The file is not named SKILL.md; most runtimes find nothing else".to_owned();
    let is_misnamed = file != FILE_NAMES[0];
    is_misnamed.then(|| finding(Code::FileNameCase, path, message).with_help("rename it"))
}
