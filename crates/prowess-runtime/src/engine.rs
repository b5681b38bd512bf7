//! What the load tools may ask during a step.

use std::any::Any;
use std::collections::BTreeSet;

use prowess_catalog::{CatalogSkill, ContentError, Snapshot};
use prowess_format::Digest;
use serde_json::json;
use tokio::sync::OnceCell;

use crate::dialect::is_said;
use crate::disclose::GivenDoc;
use crate::message::Message;
use crate::outcome::ToolOutcome;
use crate::prompt::scope_of;
use crate::runtime::{Inner, SkillView, stored_session};
use crate::session::{AgentName, LoadedSkill, SelectedDoc, SessionKey, SessionState, WhenFull};
use crate::settings::Settings;
use crate::tool::Invocation;
use crate::transcript::result_of;
use crate::visibility::Visibility;

/// What the load tools may ask of the engine during a step.
pub(crate) struct Engine<'a> {
    pub(crate) inner: &'a Inner,
    pub(crate) session: &'a SessionKey,
    pub(crate) agent: &'a AgentName,
    /// The skills that the agent sees.
    pub(crate) view: &'a SkillView,
    /// The conversation as the model sees it, if the caller knows.
    pub(crate) transcript: Option<&'a [Message]>,
    /// Whoever makes the calls.
    pub(crate) caller: Option<&'a (dyn Any + Send + Sync)>,
    /// What the model said that makes the calls.
    pub(crate) said: Option<&'a Message>,
    /// The calls of this step: their results will be in the conversation.
    pub(crate) calls: BTreeSet<&'a str>,
    /// The stored conversation, read when it is needed.
    pub(crate) stored: OnceCell<Vec<Message>>,
}

impl<'a> Engine<'a> {
    pub(crate) fn new(
        inner: &'a Inner,
        session: &'a SessionKey,
        agent: &'a AgentName,
        view: &'a SkillView,
    ) -> Self {
        Self {
            inner,
            session,
            agent,
            view,
            transcript: None,
            caller: None,
            said: None,
            calls: BTreeSet::new(),
            stored: OnceCell::new(),
        }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// The skills that are there now.
    pub(crate) async fn look_again(&self) -> Snapshot {
        let scope = scope_of(self.session, self.agent);
        let base = self.inner.catalog_of(&scope).refresh().await;
        self.inner.view(&scope, base).await.snapshot.clone()
    }

    /// What is said of the tools of a skill in its text.
    pub(crate) fn described_tools(&self, skill: &str) -> String {
        self.inner.described_tools(self.view, &SessionState::default(), skill)
    }

    /// How far a skill shows itself to this agent.
    pub(crate) fn visibility(&self, skill: &CatalogSkill) -> Visibility {
        self.inner.visibilities.of(&scope_of(self.session, self.agent), skill)
    }

    /// Why one more skill cannot be loaded.
    pub(crate) fn refusal(&self, state: &SessionState, skill: &str) -> Option<ToolOutcome> {
        let settings = self.settings();
        let is_full = state.loaded.len() >= settings.max_loaded_skills;
        let refuses = is_full && settings.when_full == WhenFull::Refuse;
        refuses.then(|| load_limit(skill, settings.max_loaded_skills, &state.loaded_names()))
    }

    pub(crate) async fn keep(&self, bytes: Vec<u8>) -> Result<Digest, ToolOutcome> {
        self.inner.keep(bytes).await.map_err(|error| content_failure(&error))
    }

    /// Whether a text is still in the conversation: in the result of the call that gave it, or, if
    /// no call did, in a message.
    pub(crate) async fn is_in_transcript(
        &self,
        call: Option<&str>,
        text: &str,
    ) -> Result<bool, ToolOutcome> {
        if call.is_some_and(|call| self.calls.contains(call)) {
            return Ok(true);
        }
        let read = || async {
            let state = stored_session(self.inner, self.session).await?.session.state(self.agent);
            self.inner.transcript(self.session, self.agent, &state, &mut Vec::new()).await
        };
        let transcript = match self.transcript {
            Some(transcript) => transcript,
            None => self
                .stored
                .get_or_try_init(read)
                .await
                .map_err(|error| ToolOutcome::error(error.code(), format!("Error: {error}")))?,
        };
        Ok(match call {
            Some(call) => result_of(transcript, call).is_some(),
            None => transcript.iter().any(|message| is_said(&message.text(), text)),
        })
    }

    /// Whether the text of a doc is in the conversation.
    pub(crate) async fn is_given(
        &self,
        selected: Option<&SelectedDoc>,
        doc: &GivenDoc,
    ) -> Result<bool, ToolOutcome> {
        match selected {
            Some(selected) if selected.digest == Some(doc.digest) => {
                self.is_in_transcript(selected.call.as_deref(), &doc.text).await
            }
            _ => Ok(false),
        }
    }
}

/// As many skills are loaded as may be.
pub(crate) fn load_limit(skill: &str, limit: usize, loaded: &[&str]) -> ToolOutcome {
    let data = json!({"skill": skill, "limit": limit, "loaded": loaded});
    ToolOutcome::failed("load_limit", data).about(skill)
}

pub(crate) fn content_failure(error: &ContentError) -> ToolOutcome {
    ToolOutcome::error(error.code(), format!("Error: {error}"))
        .with_hint("Tell the user that the content store failed.")
}

impl<'a> Invocation<'a> {
    /// The loaded skill that a model means.
    pub(crate) fn loaded(&self, name: &str) -> Result<&'a LoadedSkill, ToolOutcome> {
        let state = self.state;
        let by_catalog = || {
            let skill = self.snapshot.get(name).ok()?;
            state.loaded(&crate::disclose::session_name(self.snapshot, skill))
        };
        state.loaded(name).or_else(by_catalog).ok_or_else(|| {
            let data = json!({"skill": name, "tool": null});
            ToolOutcome::failed("skill_not_loaded", data).about(name)
        })
    }
}
