//! What `allowed-tools` and `disallowed-tools` of loaded skills mean.

mod scope;

use std::collections::BTreeSet;

use prowess_format::ToolPattern;
use serde::{Deserialize, Serialize};

use crate::session::{LoadedSkill, SessionState};
pub(crate) use scope::Called;
use scope::{Certainty, covers};

/// What `allowed-tools` means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AllowedToolsPolicy {
    /// A recommendation: the listing shows it, and no call is refused.
    #[default]
    Recommend,
    /// A restriction: while skills are loaded, other tools are refused.
    Restrict,
}

/// What a loaded skill without `allowed-tools` does to the restriction by others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AllowedToolsUnion {
    /// It may need any tool: nothing is restricted.
    #[default]
    Lenient,
    /// It adds nothing: what the others allow is all that is allowed.
    Strict,
}

/// The tools that a skill needs whatever it says of tools: to load, to plan, to look at files.
pub const ALWAYS_ALLOWED: [&str; 4] = ["load_skill", "write_todos", "read_file", "ls"];

/// The rules of a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy<'a> {
    pub(crate) policy: AllowedToolsPolicy,
    pub(crate) union: AllowedToolsUnion,
    pub(crate) always_allowed: &'a BTreeSet<String>,
}

/// Why a call is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// No loaded skill lists it.
    NotAllowed {
        /// What they list, sorted.
        allowed: Vec<String>,
        /// The loaded skills.
        skills: Vec<String>,
    },
    /// A loaded skill rules it out.
    Disallowed {
        /// With this entry.
        entry: String,
        /// Which skill.
        skill: String,
    },
}

impl Policy<'_> {
    /// Whether a tool may be called with these arguments while these skills are loaded.
    ///
    /// The tools that skills are managed with, and those that a loaded skill brings, are not asked
    /// about here: they always pass.
    pub(crate) fn check(&self, call: Called<'_>, state: &SessionState) -> Result<(), Refused> {
        let is_always_allowed = self.always_allowed.contains(call.tool);
        if self.policy == AllowedToolsPolicy::Recommend || is_always_allowed {
            return Ok(());
        }
        for skill in &state.loaded {
            let disallows =
                |entry: &&String| covers(&ToolPattern::parse(entry), call, Certainty::Possible);
            if let Some(entry) = skill.tools.disallowed.iter().find(disallows) {
                let (entry, skill) = (entry.clone(), skill.name.clone());
                return Err(Refused::Disallowed { entry, skill });
            }
        }
        let defines = |skill: &&LoadedSkill| skill.tools.allowed.is_some();
        let restricts = match self.union {
            AllowedToolsUnion::Lenient => state.loaded.iter().all(|skill| defines(&skill)),
            AllowedToolsUnion::Strict => true,
        };
        let defining: Vec<&LoadedSkill> = state.loaded.iter().filter(defines).collect();
        if !restricts || defining.is_empty() {
            return Ok(());
        }
        let allowed: BTreeSet<&String> =
            defining.iter().filter_map(|skill| skill.tools.allowed.as_ref()).flatten().collect();
        let allows = |entry: &&String| covers(&ToolPattern::parse(entry), call, Certainty::Certain);
        match allowed.iter().copied().any(|entry| allows(&entry)) {
            true => Ok(()),
            false => Err(Refused::NotAllowed {
                allowed: allowed.into_iter().cloned().collect(),
                skills: defining.iter().map(|skill| skill.name.clone()).collect(),
            }),
        }
    }
}
