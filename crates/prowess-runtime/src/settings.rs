//! What a host can set.

use serde::{Deserialize, Serialize};

use crate::session::{Caps, WhenFull};

/// How long loaded skills stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadMode {
    /// Until the next turn begins.
    Turn,
    /// For the next request.
    Once,
    /// Until they are unloaded.
    #[default]
    Session,
}

/// The settings of a runtime, with the section `[runtime]` of `prowess.toml` as their other form.
///
/// ```toml
/// [runtime]
/// max_loaded_skills = 10
/// when_full = "refuse"           # or "evict": the least recently used skill goes
/// load_mode = "session"          # or "turn", "once"
/// max_given_bytes = 262144       # what one result may hold of docs, resources and arguments
/// max_listed_names = 50          # how many names an error lists
/// max_commit_attempts = 32
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Settings {
    /// How many skills may be loaded at the same time.
    pub max_loaded_skills: usize,
    /// What happens when one more is asked for.
    pub when_full: WhenFull,
    /// How long loaded skills stay.
    pub load_mode: LoadMode,
    /// How many bytes of docs, resources and arguments one result may hold.
    pub max_given_bytes: usize,
    /// How many names an error lists before it counts the rest.
    pub max_listed_names: usize,
    /// How often a commit is tried again when somebody else was faster.
    pub max_commit_attempts: usize,
}

/// Why a section `[runtime]` cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("[runtime]: {0}")]
pub struct InvalidSettings(Box<toml::de::Error>);

impl Default for Settings {
    fn default() -> Self {
        let caps = Caps::default();
        Self {
            max_loaded_skills: caps.max_loaded_skills,
            when_full: caps.when_full,
            load_mode: LoadMode::default(),
            max_given_bytes: 256 << 10,
            max_listed_names: 50,
            max_commit_attempts: 32,
        }
    }
}

macro_rules! setters {
    ($($method:ident $field:ident: $kind:ty;)+) => {
        $(#[doc = concat!("Sets [`Settings::", stringify!($field), "`].")]
        pub fn $method(mut self, $field: $kind) -> Self { self.$field = $field; self })+
    };
}

impl Settings {
    setters! {
        with_max_loaded_skills max_loaded_skills: usize;
        with_when_full when_full: WhenFull;
        with_load_mode load_mode: LoadMode;
        with_max_given_bytes max_given_bytes: usize;
        with_max_listed_names max_listed_names: usize;
        with_max_commit_attempts max_commit_attempts: usize;
    }

    /// The settings in a section `[runtime]`.
    pub fn from_table(table: toml::Table) -> Result<Self, InvalidSettings> {
        table.try_into().map_err(|error| InvalidSettings(Box::new(error)))
    }

    /// What bounds a session's state.
    pub fn caps(&self) -> Caps {
        Caps { max_loaded_skills: self.max_loaded_skills, when_full: self.when_full }
    }
}
