//! Sessions: whose state it is, what it remembers, how it changes.

mod delta;
mod key;
mod state;

pub use delta::{
    Applied, Caps, Change, DocMode, REMEMBERED_CALLS, Refusal, Reset, StateDelta, WhenFull,
};
pub use key::{AgentName, InvalidAgentName, InvalidSessionKey, SessionKey};
pub use state::{
    Compaction, DocSelection, KnownResources, KnownSkills, LoadedSkill, ModelOverride,
    NamedResource, SelectedDoc, SessionState, Since, ToolRules,
};

use std::collections::{BTreeMap, BTreeSet};

use prowess_format::Digest;
use serde::{Deserialize, Serialize};

use crate::message::Message;
use crate::store::Fence;

/// The states of all agents of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Session {
    /// The agents that have done something.
    #[serde(default)]
    pub agents: BTreeMap<AgentName, SessionState>,
}

/// What one commit changes: the state of one agent, and what is appended to its transcript.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionDelta {
    /// The agent.
    pub agent: AgentName,
    /// What changes before any call: all of it, or nothing of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<Change>,
    /// What its calls change.
    pub deltas: Vec<StateDelta>,
    /// What bounds the state.
    pub caps: Caps,
    /// What is appended to its transcript.
    pub messages: Vec<Message>,
    /// The lease with which it is committed, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<Fence>,
}

impl SessionDelta {
    /// Nothing yet, for this agent.
    pub fn new(agent: AgentName, caps: Caps) -> Self {
        Self { agent, caps, ..Self::default() }
    }

    /// Adds changes that come before any call.
    pub fn with_setup(mut self, setup: Vec<Change>) -> Self {
        self.setup = setup;
        self
    }

    /// Adds changes of calls.
    pub fn with_deltas(mut self, deltas: Vec<StateDelta>) -> Self {
        self.deltas = deltas;
        self
    }

    /// Says with which lease it is committed.
    pub fn with_fence(mut self, fence: Option<Fence>) -> Self {
        self.fence = fence;
        self
    }

    /// Adds messages.
    pub fn with_messages(mut self, messages: Vec<Message>) -> Self {
        self.messages = messages;
        self
    }
}

impl Session {
    /// The state of an agent; the default one if it has done nothing.
    pub fn state(&self, agent: &AgentName) -> SessionState {
        self.agents.get(agent).cloned().unwrap_or_default()
    }

    /// Applies the changes of a commit, and says what came of each call.
    pub fn apply(&mut self, delta: &SessionDelta) -> Vec<(String, Applied)> {
        if delta.deltas.is_empty() && delta.setup.is_empty() {
            return Vec::new();
        }
        let state = self.agents.entry(delta.agent.clone()).or_default();
        let setup = state.set_up(&delta.setup, &delta.caps);
        let calls = state.apply(&delta.deltas, &delta.caps);
        setup.into_iter().map(|refusal| (String::new(), refusal)).chain(calls).collect()
    }

    /// The content that must be kept as long as this session is, its transcript aside.
    pub fn referenced(&self) -> BTreeSet<Digest> {
        self.agents.values().flat_map(SessionState::referenced).collect()
    }
}
