//! What happened: one event per step. Metrics, traces and audits are views of events.

use std::borrow::Cow;

use jiff::Timestamp;
use prowess_catalog::TreeDigest;
use prowess_format::{Digest, is_deceptive};
use serde::{Deserialize, Serialize};

use crate::prompt::estimate_tokens;
use crate::session::{AgentName, LoadedSkill, SessionKey};

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
    /// Whether that is one of the engine's own tools, by which skills are managed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub manages_skills: bool,
    /// The skill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// What identifies the skill's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// What identifies all of the skill's files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree_digest: Option<TreeDigest>,
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
    /// How many tokens that is, estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

/// So many characters of a name are shown in a message.
const SHOWN: usize = 80;

/// A name as messages show it: not longer than it takes to know it again.
pub(crate) fn shown(name: &str) -> Cow<'_, str> {
    let end = name.char_indices().nth(SHOWN).map_or(name.len(), |(end, _)| end);
    one_line(Cow::Borrowed(&name[..end]))
}

/// A text that stays on its line and shows what it holds: whatever would begin another line, or
/// steer a terminal, is escaped.
pub(crate) fn one_line(text: Cow<'_, str>) -> Cow<'_, str> {
    let is_bad = |c: char| is_deceptive(c) || matches!(c, '\u{2028}' | '\u{2029}');
    if !text.contains(is_bad) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_bad(c) {
            escaped.extend(c.escape_default());
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
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
            manages_skills: false,
            skill: None,
            digest: None,
            tree_digest: None,
            version: None,
            code: None,
            elapsed_us: None,
            content_bytes: None,
            tokens: None,
        }
    }

    /// Sets the skill.
    pub fn with_skill(mut self, skill: impl Into<String>) -> Self {
        self.skill = Some(skill.into());
        self
    }

    /// Sets which text of the skill it is about.
    pub(crate) fn with_loaded(mut self, loaded: &LoadedSkill) -> Self {
        self.digest = Some(loaded.digest);
        self.tree_digest = loaded.tree_digest;
        self.version.clone_from(&loaded.version);
        self
    }

    /// Sets what the model was given.
    pub(crate) fn with_content(mut self, content: &str) -> Self {
        self.content_bytes = Some(content.len() as u64);
        self.tokens = Some(estimate_tokens(content) as u64);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_shown_on_one_line_and_cut() {
        assert_eq!(shown("write_sql"), "write_sql");
        assert_eq!(shown("caf\u{e9} \u{1f600}"), "caf\u{e9} \u{1f600}");
        assert_eq!(
            shown("a\n2026 ERROR b\u{1b}[2J\u{202e}"),
            "a\\n2026 ERROR b\\u{1b}[2J\\u{202e}"
        );
        let at_the_edge = "\u{e9}".repeat(SHOWN);
        assert_eq!(shown(&at_the_edge), at_the_edge);
        assert_eq!(shown(&format!("{at_the_edge}b")), at_the_edge);
    }

    #[test]
    fn a_message_is_one_line() {
        assert_eq!(one_line("a\r\nb\u{2028}c".into()), "a\\r\\nb\\u{2028}c");
        assert_eq!(one_line("caf\u{e9} 'a'".into()), "caf\u{e9} 'a'");
    }
}
