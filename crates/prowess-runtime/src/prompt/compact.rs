//! Conversations that have become too long: what stands for their beginning.

use serde_json::json;

use crate::event::{Event, EventKind};
use crate::message::{Message, Role};
use crate::runtime::{Inner, Runtime};
use crate::session::{AgentName, Change, Compaction, SessionKey, SessionState};
use crate::turn::RuntimeError;

impl Runtime {
    /// The conversation of an agent as it is stored, without what was compacted.
    pub async fn transcript(
        &self,
        session: &SessionKey,
        agent: &AgentName,
    ) -> Result<Vec<Message>, RuntimeError> {
        let state = self.state(session, agent).await?;
        self.inner.transcript(session, agent, &state, &mut Vec::new()).await
    }

    /// What a summary would be sent in the place of, if all but the last messages were compacted.
    /// Calls and their results stay together, so that some more may be kept than are asked for.
    pub async fn compactable(
        &self,
        session: &SessionKey,
        agent: &AgentName,
        keep: usize,
    ) -> Result<Compactable, RuntimeError> {
        let state = self.state(session, agent).await?;
        let stored = self.inner.sessions.messages(session, agent).await?;
        let cut = safe_cut(&stored, stored.len().saturating_sub(keep));
        let before = state.compaction.map_or(0, |it| it.messages);
        let first = match cut > before {
            true => stored[..cut].to_vec(),
            false => Vec::new(),
        };
        let is_second = state.compaction.is_some() && !first.is_empty();
        let messages = self.inner.compacted(first, &state, &mut Vec::new()).await?;
        Ok(Compactable { messages, up_to: cut, is_second })
    }

    /// From now on a summary is sent in the place of what it sums up. Nothing of the transcript is
    /// lost.
    ///
    /// What was said of changed skills may be gone with it: the listing is written anew.
    pub async fn compact(
        &self,
        session: &SessionKey,
        agent: &AgentName,
        compactable: &Compactable,
        summary: &str,
    ) -> Result<(), RuntimeError> {
        let inner = &*self.inner;
        let of = inner.sessions.messages(session, agent).await?.len();
        let summary = inner.keep(summary.as_bytes().to_vec()).await?;
        let compaction = Compaction { messages: compactable.up_to, of, summary };
        let mut unlisted = self.state(session, agent).await?;
        let turn = unlisted.turn;
        unlisted.skills = None;
        let (_, view) = inner.skills_of(session, agent).await;
        let (mut changes, _) =
            crate::commit::initialisation(inner, &unlisted, &view, session, agent).await?;
        changes.push(Change::Compact { compaction });
        let message = format!("The first {} messages were summed up", compaction.messages);
        let event = Event::new(EventKind::ConversationCompacted, agent, turn, message);
        self.change_telling(session, agent, changes, vec![event]).await?;
        Ok(())
    }
}

/// What a summary can be sent in the place of.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Compactable {
    /// The messages: an earlier summary first, if there is one. None, if nothing would be saved.
    pub messages: Vec<Message>,
    /// How many messages of the transcript that is.
    pub up_to: usize,
    /// Whether the first of the messages is an earlier summary.
    pub is_second: bool,
}

impl Inner {
    /// The stored conversation without what was compacted.
    pub(crate) async fn transcript(
        &self,
        session: &SessionKey,
        agent: &AgentName,
        state: &SessionState,
        problems: &mut Vec<String>,
    ) -> Result<Vec<Message>, RuntimeError> {
        let messages = self.sessions.messages(session, agent).await?;
        self.compacted(messages, state, problems).await
    }

    /// A stored conversation without what was compacted.
    pub(crate) async fn compacted(
        &self,
        mut messages: Vec<Message>,
        state: &SessionState,
        problems: &mut Vec<String>,
    ) -> Result<Vec<Message>, RuntimeError> {
        let Some(compaction) = state.compaction.filter(|_| !messages.is_empty()) else {
            return Ok(messages);
        };
        let Some(kept) = self.kept_or_lost(compaction.summary).await? else {
            problems.push("the summary of this conversation is lost; all of it is sent".to_owned());
            return Ok(messages);
        };
        messages.drain(..compaction.messages.min(messages.len()));
        let data = json!({"text": String::from_utf8_lossy(&kept)});
        messages.insert(0, Message::user(self.dialect.block("summary", &data)));
        Ok(messages)
    }
}

/// The last place at or before this one where a conversation can begin: no result is cut off from
/// its call.
fn safe_cut(messages: &[Message], at: usize) -> usize {
    let is_safe = |at: &usize| messages.get(*at).is_none_or(|it| it.role != Role::Tool);
    (0..=at.min(messages.len())).rev().find(is_safe).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{ToolCall, ToolResult};

    #[test]
    fn calls_and_results_stay_together() {
        let result = |id: &str| ToolResult {
            call_id: id.to_owned(),
            name: "t".to_owned(),
            content: String::new(),
            is_error: false,
            expansion: None,
        };
        let call = |id: &str| ToolCall::new(id, "t", json!({}));
        let messages = [
            Message::user("a"),
            Message::calling([call("1"), call("2")]),
            Message::answering(result("1")),
            Message::answering(result("2")),
            Message::assistant("b"),
        ];
        for (at, expected) in [(0, 0), (1, 1), (2, 1), (3, 1), (4, 4), (5, 5), (9, 5)] {
            assert_eq!(safe_cut(&messages, at), expected, "{at}");
        }
        assert_eq!(safe_cut(&[], 3), 0);
    }
}
