//! What a host can set.

use std::collections::{BTreeMap, BTreeSet};

use prowess_catalog::ResourceScope;
use serde::{Deserialize, Serialize};

use crate::command::EmbeddedCommands;
use crate::exposure::Exposure;
use crate::policy::{ALWAYS_ALLOWED, AllowedToolsPolicy, AllowedToolsUnion, Policy};
use crate::prompt::{
    Budget, ListingMode, ListingOrder, ListingRest, ListingSlot, ManualOnly, Placement,
};
use crate::session::{Caps, WhenFull};
use crate::visibility::Visibility;

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

/// What a model is told about using skills.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Guidance {
    /// A few lines of ours.
    #[default]
    Default,
    /// Nothing.
    None,
    /// These words.
    Text(String),
}

impl From<String> for Guidance {
    fn from(text: String) -> Self {
        match text.as_str() {
            "default" => Self::Default,
            "none" | "" => Self::None,
            _ => Self::Text(text),
        }
    }
}

impl From<Guidance> for String {
    fn from(guidance: Guidance) -> Self {
        match guidance {
            Guidance::Default => "default".to_owned(),
            Guidance::None => "none".to_owned(),
            Guidance::Text(text) => text,
        }
    }
}

/// How skills are listed: the section `[runtime.listing]` of `prowess.toml`.
///
/// ```toml
/// [runtime.listing]
/// budget = 16000                 # characters; or "4000 tokens", "2% of 200000"
/// mode = "stable"                # or "live"
/// slot = "system_prompt"         # or "tool_description"
/// order = "name"                 # or "discovery"
/// rest = "named"                 # who does not fit; or "counted", outside of the budget
/// manual_only = "hide"           # skills that only people load; or "mark"
/// guidance = "default"           # or "none", or your own words
/// template = "Skills:\n{{ entries }}"
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ListingSettings {
    /// What the entries may cost.
    pub budget: Budget,
    /// Whether it changes during a session.
    pub mode: ListingMode,
    /// Where it stands.
    pub slot: ListingSlot,
    /// Who comes first.
    pub order: ListingOrder,
    /// What is said of those who do not fit.
    pub rest: ListingRest,
    /// What is said of skills that only people can load.
    pub manual_only: ManualOnly,
    /// What a model is told about using skills.
    pub guidance: Guidance,
    /// What stands around the entries, if not the default: a template that holds `{{ entries }}`.
    /// It also knows `left_out`, `locations`, `warnings` and `more_warnings`.
    pub template: Option<String>,
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
/// placement = "tool_result"      # where loaded text stands; or "system"
/// max_context_tokens = 20000     # of loaded text whose own message is gone
/// resources = "one_level"        # of a skill that are named; or "recursive", "three_folders"
/// exposure = "on_load"           # of the tools that a skill brings; or "declared", "generic"
/// allowed_tools_policy = "recommend"   # or "restrict"
/// allowed_tools_union = "lenient"      # or "strict"
/// always_allowed_tools = ["load_skill", "write_todos", "read_file", "ls"]
/// embedded_commands = "off"      # in the text of skills; or "people": run for trusted sources
/// command_timeout_ms = 120000    # of one of them
/// script_timeout_ms = 60000      # of a script that a skill has bound a tool to
///
/// [runtime.visibility]           # listed, name-only, manual-only or hidden
/// deploy = "manual-only"
///
/// [runtime.tool_descriptions]
/// load_skill = "Read a skill."
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
    /// Where the text of loaded skills stands.
    pub placement: Placement,
    /// How many tokens of loaded text come back whose own message is gone.
    pub max_context_tokens: usize,
    /// Which resources of a loaded skill are named.
    pub resources: ResourceScope,
    /// How a model comes to know of the tools that a skill brings.
    pub exposure: Exposure,
    /// What `allowed-tools` means.
    pub allowed_tools_policy: AllowedToolsPolicy,
    /// What a loaded skill without `allowed-tools` does to the restriction by others.
    pub allowed_tools_union: AllowedToolsUnion,
    /// The tools that are never restricted, in place of [`ALWAYS_ALLOWED`]. The tools by which
    /// skills are managed, and those that a loaded skill brings, never are.
    pub always_allowed_tools: BTreeSet<String>,
    /// Whether commands in the text of a skill are run.
    pub embedded_commands: EmbeddedCommands,
    /// How long one of them may take.
    pub command_timeout_ms: u64,
    /// How long a script may take that a skill has bound a tool to.
    pub script_timeout_ms: u64,
    /// How skills are listed.
    pub listing: ListingSettings,
    /// How far skills show themselves, by name.
    pub visibility: BTreeMap<String, Visibility>,
    /// Other descriptions of tools, by name.
    pub tool_descriptions: BTreeMap<String, String>,
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
            placement: Placement::default(),
            max_context_tokens: 20_000,
            resources: ResourceScope::default(),
            exposure: Exposure::default(),
            allowed_tools_policy: AllowedToolsPolicy::default(),
            allowed_tools_union: AllowedToolsUnion::default(),
            always_allowed_tools: ALWAYS_ALLOWED.map(str::to_owned).into(),
            embedded_commands: EmbeddedCommands::default(),
            command_timeout_ms: 120_000,
            script_timeout_ms: 60_000,
            listing: ListingSettings::default(),
            visibility: BTreeMap::new(),
            tool_descriptions: BTreeMap::new(),
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
        with_placement placement: Placement;
        with_max_context_tokens max_context_tokens: usize;
        with_resources resources: ResourceScope;
        with_exposure exposure: Exposure;
        with_allowed_tools_policy allowed_tools_policy: AllowedToolsPolicy;
        with_allowed_tools_union allowed_tools_union: AllowedToolsUnion;
        with_always_allowed_tools always_allowed_tools: BTreeSet<String>;
        with_embedded_commands embedded_commands: EmbeddedCommands;
        with_command_timeout_ms command_timeout_ms: u64;
        with_script_timeout_ms script_timeout_ms: u64;
        with_listing listing: ListingSettings;
        with_visibility visibility: BTreeMap<String, Visibility>;
        with_tool_descriptions tool_descriptions: BTreeMap<String, String>;
    }

    /// The settings in a section `[runtime]`.
    pub fn from_table(table: toml::Table) -> Result<Self, InvalidSettings> {
        table.try_into().map_err(|error| InvalidSettings(Box::new(error)))
    }

    pub(crate) fn policy(&self) -> Policy<'_> {
        Policy {
            policy: self.allowed_tools_policy,
            union: self.allowed_tools_union,
            always_allowed: &self.always_allowed_tools,
        }
    }

    /// What bounds a session's state.
    pub fn caps(&self) -> Caps {
        Caps { max_loaded_skills: self.max_loaded_skills, when_full: self.when_full }
    }
}
