//! What happened: one event per step. Metrics, traces and audits are views of events.

use jiff::Timestamp;
use prowess_format::Digest;
use serde::{Deserialize, Serialize};

use crate::session::{AgentName, SessionKey};

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident $level:ident;)+) => {
        /// What kind of thing happened.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum EventKind { $($(#[$doc])* $variant,)+ }

        impl EventKind {
            /// How much it matters.
            pub fn level(self) -> EventLevel {
                match self { $(Self::$variant => EventLevel::$level,)+ }
            }
        }
    };
}

kinds! {
    /// The skills of a session were found.
    SkillsDiscovered Info;
    /// Not all skills fit into the listing.
    BudgetExceeded Warning;
    /// The model was told that there are other skills now.
    SkillsChanged Info;
    /// A turn began.
    TurnBegun Info;
    /// A skill was loaded, or its text was given again.
    SkillLoaded Info;
    /// A skill was not loaded because as many are as may be.
    LoadLimitReached Warning;
    /// A skill went to make room for another.
    SkillEvicted Warning;
    /// A `SKILL.md` could not be read.
    SkillUnreadable Error;
    /// The resources of a skill could not be listed, or not all of them.
    ResourcesUnlisted Warning;
    /// A skill was unloaded.
    SkillUnloaded Info;
    /// Docs were selected.
    DocsSelected Info;
    /// A resource was given.
    DetailGiven Info;
    /// A tool was called.
    ToolCalled Info;
    /// A tool was not called because of a rule.
    ToolBlocked Warning;
    /// A call could not be carried out.
    CallFailed Warning;
    /// The first messages of a conversation were summed up.
    ConversationCompacted Info;
}

/// How much an event matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventLevel {
    /// As expected.
    Info,
    /// Something was refused, left out or cut.
    Warning,
    /// Something is broken.
    Error,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Event {
    /// When.
    pub time: Timestamp,
    /// What kind of thing.
    pub kind: EventKind,
    /// How much it matters.
    pub level: EventLevel,
    /// In words.
    pub message: String,
    /// Which agent.
    pub agent: AgentName,
    /// Which turn.
    pub turn: u64,
    /// The call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// The tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The skill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// What identifies the skill's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// The skill's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The code of the outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// How long the call took, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elapsed_us: Option<u64>,
    /// How many bytes the model was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_bytes: Option<u64>,
}

impl Event {
    /// An event that happened now.
    pub fn new(kind: EventKind, agent: &AgentName, turn: u64, message: impl Into<String>) -> Self {
        Self {
            time: Timestamp::now(),
            kind,
            level: kind.level(),
            message: message.into(),
            agent: agent.clone(),
            turn,
            call_id: None,
            tool: None,
            skill: None,
            digest: None,
            version: None,
            code: None,
            elapsed_us: None,
            content_bytes: None,
        }
    }

    /// Sets the skill.
    pub fn with_skill(mut self, skill: impl Into<String>) -> Self {
        self.skill = Some(skill.into());
        self
    }

    /// Writes it to the log, at its level.
    pub(crate) fn trace(&self, session: &SessionKey) {
        macro_rules! write {
            ($level:ident) => {
                tracing::$level!(
                    target: "prowess",
                    kind = ?self.kind, %session, agent = %self.agent, skill = self.skill,
                    tool = self.tool, code = self.code, "{}", self.message
                )
            };
        }
        match self.level {
            EventLevel::Info => write!(info),
            EventLevel::Warning => write!(warn),
            EventLevel::Error => write!(error),
        }
    }
}

/// Sees every event after it was committed.
pub trait EventSink: Send + Sync + 'static {
    /// An event of a session. Must not block.
    fn event(&self, session: &SessionKey, event: &Event);
}

impl<F: Fn(&SessionKey, &Event) + Send + Sync + 'static> EventSink for F {
    fn event(&self, session: &SessionKey, event: &Event) {
        self(session, event);
    }
}
