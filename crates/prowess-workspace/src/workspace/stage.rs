//! Staging skills.

use std::borrow::Cow;

use crate::path::WorkspacePath;

/// A file of a skill.
#[derive(Clone, Debug)]
pub struct SkillFile<'a> {
    /// Where, below the skill's folder.
    pub path: &'a str,
    /// Whether it can be executed.
    pub executable: bool,
    /// What it holds.
    pub bytes: Cow<'a, [u8]>,
}

/// A skill in a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StagedSkill {
    /// Where: `skills/<name>`.
    pub path: WorkspacePath,
    /// What a user of the skill should know.
    pub warnings: Vec<String>,
    /// Whether it was already there.
    pub was_staged: bool,
}
