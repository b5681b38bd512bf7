//! What a host asks for, and what it gets.

use std::sync::Arc;

use prowess_catalog::{CatalogSkill, Scope};
use serde::{Deserialize, Serialize};

use super::fill::ListingRequest;
use super::listing::{Listing, ListingMode};
use super::materialize::{Held, View};
use crate::commit::initialisation;
use crate::message::Message;
use crate::runtime::{Inner, Runtime, SkillView, stored_session};
use crate::session::{AgentName, Change, SessionKey, SessionState};
use crate::settings::LoadMode;
use crate::tool::ToolDeclaration;
use crate::turn::RuntimeError;
use crate::visibility::Visibility;

/// Where the text of loaded skills stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// In the result of the call that loaded it: a request extends the one before it.
    #[default]
    ToolResult,
    /// In the system prompt, sorted by name.
    System,
}

/// What a prompt is made of besides the session.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PromptRequest {
    /// What the host says first.
    pub system: Option<String>,
    /// The conversation as the host knows it. Without it the stored transcript counts.
    pub transcript: Option<Vec<Message>>,
}

impl PromptRequest {
    /// The stored transcript, and nothing besides.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets what the host says first.
    pub fn with_system(mut self, system: impl Into<String>) -> Self {
        self.system = Some(system.into());
        self
    }

    /// Sets the conversation as the host knows it.
    pub fn with_transcript(mut self, transcript: Vec<Message>) -> Self {
        self.transcript = Some(transcript);
        self
    }
}

/// Exactly what a model is sent.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Prompt {
    /// The system prompt.
    pub system: String,
    /// The tools: by name, then those that loaded skills have brought.
    pub tools: Arc<[ToolDeclaration]>,
    /// The conversation.
    pub messages: Arc<Vec<Message>>,
    /// What could not be given, in words.
    pub problems: Vec<String>,
}

impl Runtime {
    /// What the model would be sent now. Changes nothing.
    pub async fn prompt(
        &self,
        session: &SessionKey,
        agent: &AgentName,
        request: PromptRequest,
    ) -> Result<Prompt, RuntimeError> {
        self.inner.prompt(session, agent, request).await
    }

    /// What the model is sent now, for a request that is really made: under [`LoadMode::Once`]
    /// what it holds is gone from the next one.
    pub async fn request(
        &self,
        session: &SessionKey,
        agent: &AgentName,
        request: PromptRequest,
    ) -> Result<Prompt, RuntimeError> {
        let before = self.state(session, agent).await?;
        // What is sent stays: the listing is frozen by the first request, if not before.
        let (_, skills) = self.inner.skills_of(session, agent).await;
        self.initialise(&before, &skills, session, agent).await?;
        let prompt = self.prompt(session, agent, request).await?;
        self.offload(&before, session, agent).await?;
        Ok(prompt)
    }

    /// A session that does not know which skills there are learns it.
    pub(super) async fn initialise(
        &self,
        state: &SessionState,
        skills: &SkillView,
        session: &SessionKey,
        agent: &AgentName,
    ) -> Result<(), RuntimeError> {
        let (setup, _) = initialisation(&self.inner, state, skills, session, agent).await?;
        if !setup.is_empty() {
            self.change(session, agent, setup).await?;
        }
        Ok(())
    }

    /// Under [`LoadMode::Once`], what a request has held goes with the next one. Until then it is
    /// loaded, so that the answer to the request is judged by it.
    pub(super) async fn offload(
        &self,
        before: &SessionState,
        session: &SessionKey,
        agent: &AgentName,
    ) -> Result<(), RuntimeError> {
        if self.inner.settings.load_mode != LoadMode::Once {
            return Ok(());
        }
        let now = self.state(session, agent).await?;
        // Exactly what it held, as far as nobody was faster.
        let going = before.loaded.iter().filter(|it| !it.pinned && now.is_loaded(&it.name));
        let changes: Vec<Change> = going
            .map(|skill| match skill.sent {
                true => Change::Unload { skill: skill.name.clone() },
                false => Change::MarkSent { skill: skill.name.clone() },
            })
            .collect();
        if !changes.is_empty() {
            self.change(session, agent, changes).await?;
        }
        Ok(())
    }

    /// The listing as it would be written now.
    pub async fn listing(
        &self,
        session: &SessionKey,
        agent: &AgentName,
    ) -> Result<Listing, RuntimeError> {
        let state = self.state(session, agent).await?;
        let (_, skills) = self.inner.skills_of(session, agent).await;
        let scope = scope_of(session, agent);
        let live = self.inner.settings.listing.mode == ListingMode::Live;
        Ok(self.inner.listing(&skills, &scope, live.then_some(&state)))
    }
}

pub(crate) fn scope_of(session: &SessionKey, agent: &AgentName) -> Scope {
    Scope::new().with_user(session.user()).with_session(session.session()).with_agent(agent.of())
}

impl Inner {
    /// What the model would be sent now.
    pub(crate) async fn prompt(
        &self,
        session: &SessionKey,
        agent: &AgentName,
        request: PromptRequest,
    ) -> Result<Prompt, RuntimeError> {
        let state = stored_session(self, session).await?.session.state(agent);
        let (_, skills) = self.skills_of(session, agent).await;
        let mut problems = Vec::new();
        let transcript = match request.transcript {
            Some(transcript) => transcript,
            None => self.transcript(session, agent, &state, &mut problems).await?,
        };
        let view = View {
            inner: self,
            state: &state.unsent(),
            skills: &skills,
            scope: &scope_of(session, agent),
        };
        let (system, tools) = view.system(request.system.as_deref(), &mut problems).await?;
        let held = Held::of(&transcript, &state);
        let mut messages: Vec<Message> = Vec::new();
        messages.extend(view.lost_context(&held, &mut problems).await?);
        messages.extend(view.messages(&transcript, &mut problems).await?);
        Ok(Prompt { system, tools, messages: Arc::new(messages), problems })
    }

    /// The listing as a model is told it, by the host or by us, and how many skills did not fit.
    pub(crate) async fn told_listing(
        &self,
        view: &SkillView,
        scope: &Scope,
        live: Option<&SessionState>,
    ) -> Result<(String, usize), RuntimeError> {
        let skills = || {
            let is_told =
                |skill: &&CatalogSkill| self.visibilities.of(scope, skill) < Visibility::ManualOnly;
            view.snapshot.skills().iter().filter(is_told).cloned().collect()
        };
        match self.customisation.listing(skills).await {
            Some(text) => Ok((text?, 0)),
            None => {
                let listing = self.listing(view, scope, live);
                let excluded = listing.excluded();
                Ok((listing.text, excluded))
            }
        }
    }

    pub(crate) fn listing(
        &self,
        view: &SkillView,
        scope: &Scope,
        live: Option<&SessionState>,
    ) -> Listing {
        let request = ListingRequest {
            view,
            scope,
            visibilities: &self.visibilities,
            dialect: &self.dialect,
            settings: &self.settings.listing,
            budget: self.settings.listing.budget,
            counter: self.counter.as_ref(),
            live,
        };
        request.write()
    }
}
