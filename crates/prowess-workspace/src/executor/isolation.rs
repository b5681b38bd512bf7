//! What is really enforced.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How a run is kept apart from the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Not at all, but for limits and an environment of its own.
    T0,
    /// By rules for the processes themselves: Landlock, seccomp, limits.
    T1,
    /// By namespaces of its own, with the rules of tier 1 inside.
    T2,
    /// By a container.
    T3,
}

/// Something that a run could do to the machine, or see of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Capability {
    /// Reading files that are not meant for it.
    FsRead,
    /// Writing outside of its workspace.
    FsWrite,
    /// Changing or seeing modes, owners and times of files elsewhere.
    Metadata,
    /// The network.
    Net,
    /// Sockets of programs on this machine.
    UnixSockets,
    /// The environment of the program that runs it.
    Env,
    /// More processes than it may have.
    Pids,
    /// More memory than it may have.
    Memory,
    /// Outliving its end.
    Kill,
}

impl Capability {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::FsRead,
        Self::FsWrite,
        Self::Metadata,
        Self::Net,
        Self::UnixSockets,
        Self::Env,
        Self::Pids,
        Self::Memory,
        Self::Kill,
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FsRead => "fs_read",
            Self::FsWrite => "fs_write",
            Self::Metadata => "metadata",
            Self::Net => "net",
            Self::UnixSockets => "unix_sockets",
            Self::Env => "env",
            Self::Pids => "pids",
            Self::Memory => "memory",
            Self::Kill => "kill",
        }
    }
}

/// How far something is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Enforcement {
    /// It is not: the attempt succeeded, or nobody knows.
    None,
    /// The host granted it.
    Granted,
    /// In part.
    Partial,
    /// Every attempt failed.
    Enforced,
}

/// How far a capability is kept from a run, and by what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Protection {
    /// How far.
    pub state: Enforcement,
    /// By what, or why not.
    pub by: String,
}

impl Protection {
    /// So far, by this.
    pub fn new(state: Enforcement, by: impl Into<String>) -> Self {
        Self { state, by: by.into() }
    }
}

/// What was really enforced, capability by capability.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Isolation {
    /// How the run was kept apart.
    pub tier: Tier,
    /// How far each capability is kept from it.
    #[serde(flatten)]
    pub protections: BTreeMap<Capability, Protection>,
}

impl Isolation {
    /// These protections.
    pub fn new(tier: Tier, protections: BTreeMap<Capability, Protection>) -> Self {
        Self { tier, protections }
    }

    /// How far a capability is kept from a run.
    pub fn of(&self, capability: Capability) -> Enforcement {
        self.protections.get(&capability).map_or(Enforcement::None, |it| it.state)
    }

    /// Those of these capabilities that are not fully enforced.
    pub fn missing(&self, required: impl IntoIterator<Item = Capability>) -> Vec<Capability> {
        required.into_iter().filter(|it| self.of(*it) != Enforcement::Enforced).collect()
    }
}
