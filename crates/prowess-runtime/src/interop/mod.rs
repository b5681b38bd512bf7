//! The session states of other systems, in and out.
//!
//! Names of skills carry over; what identifies their text comes from the skills that are there
//! now. What cannot be carried over is reported.

mod deepagents;
mod langchain_docker;
mod trpc;

use std::str::FromStr;

use prowess_catalog::{CatalogSkill, Snapshot};
use serde_json::Value;

use crate::disclose::session_name;
use crate::session::{AgentName, LoadedSkill, SessionState, ToolRules};

/// A system whose state can be carried over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum System {
    /// DeepAgents: `skills_metadata`, `skills_loaded`, `skill_resources`.
    DeepAgents,
    /// trpc-agent-go: `temp:skill:loaded_by_agent:…` and their like.
    Trpc,
    /// langchain-docker: `skills_loaded`, `skill_load_count`, `skills_version_loaded`,
    /// `skill_context`.
    LangchainDocker,
}

impl System {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::DeepAgents, Self::Trpc, Self::LangchainDocker];

    /// Its name in files and flags.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DeepAgents => "deepagents",
            Self::Trpc => "trpc",
            Self::LangchainDocker => "langchain_docker",
        }
    }
}

/// The text names no system.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is none of deepagents, trpc and langchain_docker")]
pub struct UnknownSystem(String);

impl FromStr for System {
    type Err = UnknownSystem;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|system| system.as_str() == text)
            .ok_or_else(|| UnknownSystem(text.to_owned()))
    }
}

/// Stands for the call that loaded a skill elsewhere.
const IMPORTED: &str = "imported";

/// A state that was carried over, and what was not.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Imported {
    /// The state.
    pub state: SessionState,
    /// What could not be carried over, in words.
    pub problems: Vec<String>,
}

/// Why nothing could be carried over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the state of {system} cannot be read: {why}", system = system.as_str())]
pub struct ImportError {
    system: System,
    why: String,
}

/// The state of an agent in the form of another system.
pub fn export(
    system: System,
    state: &SessionState,
    agent: &AgentName,
    snapshot: &Snapshot,
) -> Value {
    match system {
        System::DeepAgents => deepagents::export(state, snapshot),
        System::Trpc => trpc::export(state, agent),
        System::LangchainDocker => langchain_docker::export(state),
    }
}

/// The state of an agent from the form of another system.
pub fn import(
    system: System,
    value: &Value,
    agent: &AgentName,
    snapshot: &Snapshot,
) -> Result<Imported, ImportError> {
    let mut import = Import { state: SessionState::default(), problems: Vec::new(), snapshot };
    let Some(values) = value.as_object() else {
        return Err(ImportError { system, why: "it is no JSON object".to_owned() });
    };
    match system {
        System::DeepAgents => deepagents::import(&mut import, values),
        System::Trpc => trpc::import(&mut import, values, agent),
        System::LangchainDocker => langchain_docker::import(&mut import, values),
    }
    let Import { state, problems, .. } = import;
    Ok(Imported { state, problems })
}

/// An import on its way.
struct Import<'a> {
    state: SessionState,
    problems: Vec<String>,
    snapshot: &'a Snapshot,
}

impl Import<'_> {
    fn problem(&mut self, what: impl Into<String>) {
        self.problems.push(what.into());
    }

    /// A list of names under a key; anything else is a problem.
    fn names(&mut self, values: &serde_json::Map<String, Value>, key: &str) -> Vec<String> {
        match values.get(key) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(items)) => {
                let names: Vec<String> =
                    items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect();
                if names.len() < items.len() {
                    self.problem(format!("`{key}` has items that are no names"));
                }
                names
            }
            Some(_) => {
                self.problem(format!("`{key}` is no list"));
                Vec::new()
            }
        }
    }

    /// Adds a loaded skill that is there now.
    fn load(&mut self, name: &str) -> Option<&mut LoadedSkill> {
        let snapshot = self.snapshot;
        let skill: &CatalogSkill = match snapshot.get(name) {
            Ok(skill) => skill,
            Err(error) => {
                self.problem(format!("'{name}' is not loaded any more: {error}"));
                return None;
            }
        };
        let name = session_name(snapshot, skill);
        if !self.state.is_loaded(&name) {
            self.state.clock += 1;
            let mut loaded = LoadedSkill::new(&name, skill.found().digest);
            loaded.load_count = 1;
            // Its text is in nobody's transcript; whoever asks is given it.
            loaded.call = Some(IMPORTED.to_owned());
            loaded.touched = self.state.clock;
            loaded.tools = ToolRules::of(skill);
            loaded.version = skill.found().frontmatter.version().map(str::to_owned);
            self.state.loaded.push(loaded);
        }
        self.state.loaded_mut(&name)
    }
}
