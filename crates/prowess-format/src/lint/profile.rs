//! Whose rules apply.

use std::fmt;
use std::str::FromStr;

/// A set of rules: which findings count, and how much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Ours: the specification plus the fields that other runtimes define, `_` in names, and a
    /// name other than the folder's as a warning.
    #[default]
    Prowess,
    /// The Agent Skills specification as its reference library checks it.
    Spec,
    /// What Claude Code reads.
    ClaudeCode,
    /// What the skills middleware of `DeepAgents` reads.
    DeepAgents,
}

impl Profile {
    /// All profiles, in the order of the columns of the code table.
    pub const ALL: [Self; 4] = [Self::Prowess, Self::Spec, Self::ClaudeCode, Self::DeepAgents];

    /// The name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prowess => "prowess",
            Self::Spec => "spec",
            Self::ClaudeCode => "claude-code",
            Self::DeepAgents => "deepagents",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The name is not that of a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown profile `{0}`: use prowess, spec, claude-code or deepagents")]
pub struct UnknownProfile(String);

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|profile| profile.as_str() == name);
        found.ok_or_else(|| UnknownProfile(name.to_owned()))
    }
}
