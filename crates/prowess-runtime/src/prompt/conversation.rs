//! A conversation that is kept between requests.

use std::collections::HashSet;
use std::sync::Arc;

use super::materialize::{Held, View};
use super::request::{Prompt, scope_of};
use crate::dispatch::StepResult;
use crate::message::Message;
use crate::runtime::{Runtime, SkillView, stored_session};
use crate::session::{AgentName, SessionKey, SessionState};
use crate::settings::LoadMode;
use crate::store::Revision;
use crate::turn::RuntimeError;

/// The conversation of an agent as its model sees it, kept between requests, so that the next one
/// costs what is new and not what was said before.
///
/// It is only a memory: whoever has none makes the same requests with [`Runtime::request`].
#[derive(Debug)]
pub struct Conversation {
    session: SessionKey,
    agent: AgentName,
    /// What the messages are known up to; `None`: nothing was read yet.
    known: Option<Known>,
    messages: Arc<Vec<Message>>,
    held: Held,
    /// The calls that were answered, also those that are not sent any more.
    answered: HashSet<String>,
    problems: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    revision: Revision,
    turn: u64,
}

impl Conversation {
    /// That of an agent in a session. Nothing is read yet.
    pub fn new(session: SessionKey, agent: AgentName) -> Self {
        Self {
            session,
            agent,
            known: None,
            messages: Arc::default(),
            held: Held::default(),
            answered: HashSet::new(),
            problems: Vec::new(),
        }
    }

    /// The session.
    pub fn session(&self) -> &SessionKey {
        &self.session
    }

    /// The agent.
    pub fn agent(&self) -> &AgentName {
        &self.agent
    }

    /// How many calls were answered in it, as far as it was read; also those that are not sent any
    /// more.
    pub fn answers(&self) -> usize {
        self.answered.len()
    }

    /// Whether a call of this id was answered in it.
    pub fn is_answered(&self, call_id: &str) -> bool {
        self.answered.contains(call_id)
    }

    /// Takes in a step that was committed: what the model said, and what its calls came to.
    pub fn take_step(&mut self, said: &Message, result: &StepResult) {
        let messages = std::iter::once(said).chain(&result.messages);
        self.take(messages.cloned(), result.revision);
    }

    /// Takes in a message that was appended.
    pub fn take_message(&mut self, message: Message, revision: Revision) {
        self.take([message], revision);
    }

    fn take(&mut self, messages: impl IntoIterator<Item = Message>, revision: Revision) {
        // If somebody else has committed too, everything is read again.
        let next = |known: &Known| revision == Revision(known.revision.0 + 1);
        let Some(known) = self.known.as_mut().filter(|known| next(known)) else {
            self.known = None;
            return;
        };
        known.revision = revision;
        let all = Arc::make_mut(&mut self.messages);
        for message in messages {
            for result in message.tool_results() {
                self.held.results.insert(result.call_id.clone());
                self.answered.insert(result.call_id.clone());
            }
            all.push(message);
        }
    }
}

impl Runtime {
    /// What is said in it, as the model sees it.
    pub async fn refresh(
        &self,
        conversation: &mut Conversation,
    ) -> Result<Arc<Vec<Message>>, RuntimeError> {
        let skills = self.inner.skills_of(&conversation.session, &conversation.agent).await.1;
        self.refreshed(conversation, &skills).await?;
        Ok(Arc::clone(&conversation.messages))
    }

    /// Reads what is not known; the state that it is known for.
    async fn refreshed(
        &self,
        conversation: &mut Conversation,
        skills: &SkillView,
    ) -> Result<SessionState, RuntimeError> {
        let inner = &*self.inner;
        let Conversation { session, agent, known, messages, held, answered, problems } =
            conversation;
        let mut stored = stored_session(inner, session).await?;
        let mut state = stored.session.state(agent);
        if state.skills.is_none() {
            self.initialise(&state, skills, session, agent).await?;
            stored = stored_session(inner, session).await?;
            state = stored.session.state(agent);
        }
        let now = Known { revision: stored.revision, turn: state.turn };
        // Within a turn what was sent stays as it was, unless it was meant for one request.
        if *known != Some(now) || inner.settings.load_mode == LoadMode::Once {
            problems.clear();
            let stored = inner.sessions.messages(session, agent).await?;
            let results = stored.iter().flat_map(Message::tool_results);
            *answered = results.map(|result| result.call_id.clone()).collect();
            answered.extend(state.calls.iter().map(ToString::to_string));
            let transcript = inner.compacted(stored, &state, problems).await?;
            let scope = scope_of(session, agent);
            let view = View { inner, state: &state, skills, scope: &scope };
            *messages = Arc::new(view.messages(&transcript, problems).await?);
            *held = Held::of(&transcript, &state);
            *known = Some(now);
        }
        Ok(state)
    }

    /// What the model is sent now, as [`Runtime::request`] says it.
    pub async fn next_request(
        &self,
        conversation: &mut Conversation,
        system: Option<&str>,
    ) -> Result<Prompt, RuntimeError> {
        let inner = &*self.inner;
        let skills = inner.skills_of(&conversation.session, &conversation.agent).await.1;
        let state = self.refreshed(conversation, &skills).await?;
        let Conversation { session, agent, messages, held, problems, .. } = conversation;
        let scope = scope_of(session, agent);
        let next = state.unsent();
        let view = View { inner, state: &next, skills: &skills, scope: &scope };
        let mut problems = problems.clone();
        let (system, tools) = view.system(system, &mut problems).await?;
        let messages = match view.lost_context(held, &mut problems).await? {
            None => Arc::clone(messages),
            Some(lost) => Arc::new(std::iter::once(lost).chain(messages.iter().cloned()).collect()),
        };
        self.offload(&state, session, agent).await?;
        Ok(Prompt { system, tools, messages, problems })
    }
}
