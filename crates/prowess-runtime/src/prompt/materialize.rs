//! A session's transcript as the model sees it.

use std::borrow::Cow;
use std::sync::Arc;

use prowess_catalog::Scope;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::listing::{Listing, ListingMode, ListingRequest, ListingSlot};
use crate::commit::initialisation;
use crate::message::{Message, Part, Role, ToolResult};
use crate::runtime::{Inner, Runtime, SkillView};
use crate::session::{AgentName, Change, LoadedSkill, SessionKey, SessionState, Since};
use crate::settings::{Guidance, LoadMode};
use crate::tool::ToolDeclaration;
use crate::transcript::result_of;
use crate::turn::RuntimeError;

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
    /// The tools, sorted by name.
    pub tools: Arc<[ToolDeclaration]>,
    /// The conversation.
    pub messages: Vec<Message>,
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
        let state = self.state(session, agent).await?;
        let (_, skills) = self.inner.skills_of(session, agent).await;
        let transcript = match request.transcript {
            Some(transcript) => transcript,
            None => self.inner.sessions.messages(session, agent).await?,
        };
        let view = View {
            inner: &self.inner,
            state: &state,
            skills: &skills,
            scope: &scope_of(session, agent),
        };
        view.prompt(request.system.as_deref(), &transcript).await
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
        let (setup, _) = initialisation(&self.inner, &before, &skills, session, agent).await?;
        if !setup.is_empty() {
            self.change(session, agent, setup).await?;
        }
        let prompt = self.prompt(session, agent, request).await?;
        if self.inner.settings.load_mode == LoadMode::Once {
            // Exactly what it held, as far as nobody was faster.
            let now = self.state(session, agent).await?;
            let going: Vec<Change> = before
                .loaded
                .iter()
                .filter(|skill| !skill.pinned && now.is_loaded(&skill.name))
                .map(|skill| Change::Unload { skill: skill.name.clone() })
                .collect();
            if !going.is_empty() {
                self.change(session, agent, going).await?;
            }
        }
        Ok(prompt)
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
    Scope::new()
        .with_user(session.user())
        .with_session(session.session())
        .with_agent(agent.as_str())
}

impl Inner {
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
            texts: &self.texts,
            budget: self.settings.listing.budget,
            counter: self.counter.as_ref(),
            live,
        };
        request.write()
    }
}

/// Since when a skill counts.
struct Place<'a> {
    skill: &'a str,
    turn: u64,
    /// The message that holds what was given first.
    at: usize,
}

/// A session and everything that decides what it sees.
struct View<'a> {
    inner: &'a Inner,
    state: &'a SessionState,
    skills: &'a SkillView,
    scope: &'a Scope,
}

impl View<'_> {
    async fn prompt(
        &self,
        system: Option<&str>,
        transcript: &[Message],
    ) -> Result<Prompt, RuntimeError> {
        let settings = &self.inner.settings;
        let mut problems = Vec::new();
        let listing = self.listing_text(&mut problems).await?;
        let mut sections: Vec<String> = Vec::new();
        sections.extend(system.filter(|text| !text.is_empty()).map(str::to_owned));
        let guidance = match &settings.listing.guidance {
            Guidance::Default => {
                let write = || self.inner.texts.block("guidance", &json!({}));
                self.inner.guidance.get_or_init(write).clone()
            }
            Guidance::Text(text) => text.clone(),
            Guidance::None => String::new(),
        };
        sections.extend(Some(guidance).filter(|text| !text.is_empty()));
        let mut tools = self.inner.declarations();
        match settings.listing.slot {
            ListingSlot::SystemPrompt => sections.push(listing),
            ListingSlot::ToolDescription => {
                let mut changed = tools.to_vec();
                if let Some(load) = changed.iter_mut().find(|tool| tool.name == "load_skill") {
                    load.description = format!("{}\n\n{listing}", load.description);
                }
                tools = changed.into();
            }
        }
        let mut messages = Vec::new();
        match settings.placement {
            Placement::System => {
                let mut loaded: Vec<&LoadedSkill> = self.state.loaded.iter().collect();
                loaded.sort_by(|a, b| a.name.cmp(&b.name));
                let blocks = self.blocks(&loaded, &mut problems).await?;
                sections.extend(blocks);
                messages.extend(transcript.iter().cloned());
            }
            Placement::ToolResult => {
                messages.extend(self.lost_context(transcript, &mut problems).await?);
                let expanded = self.expanded(transcript, &mut problems).await?;
                messages.extend(expanded.into_iter().map(Cow::into_owned));
            }
        }
        // What a stub stands for is the transcript's business; the model is not sent it.
        for message in &mut messages {
            message.given = None;
            for part in &mut message.parts {
                if let Part::ToolResult(result) = part {
                    result.expansion = None;
                }
            }
        }
        Ok(Prompt { system: sections.join("\n\n"), tools, messages, problems })
    }

    /// The listing that this session sees.
    async fn listing_text(&self, problems: &mut Vec<String>) -> Result<String, RuntimeError> {
        if self.inner.settings.listing.mode == ListingMode::Live {
            return Ok(self.inner.listing(self.skills, self.scope, Some(self.state)).text);
        }
        if let Some(frozen) = self.state.listing {
            if let Some(bytes) = self.inner.kept_or_lost(frozen).await? {
                return Ok(String::from_utf8_lossy(&bytes).into_owned());
            }
            problems.push("the listing of this session is lost; it is written anew".to_owned());
        }
        Ok(self.inner.listing(self.skills, self.scope, None).text)
    }

    /// Results with their text, where it still counts.
    async fn expanded<'m>(
        &self,
        transcript: &'m [Message],
        problems: &mut Vec<String>,
    ) -> Result<Vec<Cow<'m, Message>>, RuntimeError> {
        let places = self.places(transcript);
        let mut messages = Vec::with_capacity(transcript.len());
        for (at, message) in transcript.iter().enumerate() {
            if let Some(given) = &message.given
                && !self.counts(&given.skill, given.turn, at, &places)
            {
                // What a call would have left behind.
                let text = format!("loaded: {}", given.skill);
                messages.push(Cow::Owned(Message::new(message.role, vec![Part::Text { text }])));
                continue;
            }
            let counts = |result: &ToolResult| {
                let expansion = result.expansion.as_ref();
                expansion.is_some_and(|it| self.counts(&it.skill, it.turn, at, &places))
            };
            if !message.tool_results().any(counts) {
                messages.push(Cow::Borrowed(message));
                continue;
            }
            let mut copy = message.clone();
            for part in &mut copy.parts {
                let Part::ToolResult(result) = part else { continue };
                if !counts(result) {
                    continue;
                }
                let Some(expansion) = &result.expansion else { continue };
                match self.inner.kept_or_lost(expansion.digest).await? {
                    Some(bytes) => result.content = String::from_utf8_lossy(&bytes).into_owned(),
                    None => problems.push(format!(
                        "the text of '{}' that call {} gave is not there any more",
                        expansion.skill, result.call_id
                    )),
                }
            }
            messages.push(Cow::Owned(copy));
        }
        Ok(messages)
    }

    /// Since when and since which place in the transcript each skill counts: those that are loaded,
    /// and those that stay until the turn ends.
    fn places<'s>(&'s self, transcript: &[Message]) -> Vec<Place<'s>> {
        let leaving = self.state.leaving.iter().map(|it| (it.name.as_str(), &it.since));
        let leaving = leaving.filter(|_| self.inner.settings.load_mode == LoadMode::Session);
        let loaded = self.state.loaded.iter().map(|it| (it.name.as_str(), &it.since));
        let place = |(skill, since): (&'s str, &Since)| {
            let call = since.call.as_deref();
            let holds = |message: &Message| {
                message.tool_results().any(|it| Some(it.call_id.as_str()) == call)
            };
            let at = call.and_then(|_| transcript.iter().position(holds)).unwrap_or_default();
            Place { skill, turn: since.turn, at }
        };
        loaded.chain(leaving).map(place).collect()
    }

    /// Whether the text of a skill that was given in a turn, at a place, still counts: it is this
    /// turn, or the skill is still loaded.
    fn counts(&self, skill: &str, turn: u64, at: usize, places: &[Place<'_>]) -> bool {
        let covers = |place: &Place<'_>| {
            place.skill == skill && (turn > place.turn || turn == place.turn && at >= place.at)
        };
        let is_loaded = || places.iter().any(covers);
        match self.inner.settings.load_mode {
            LoadMode::Session => turn == self.state.turn || is_loaded(),
            LoadMode::Turn => turn == self.state.turn,
            LoadMode::Once => is_loaded(),
        }
    }

    /// One message with the text of loaded skills whose own message is gone, most recent first.
    async fn lost_context(
        &self,
        transcript: &[Message],
        problems: &mut Vec<String>,
    ) -> Result<Option<Message>, RuntimeError> {
        let is_lost = |name: &str, call: Option<&str>| match call {
            Some(call) => result_of(transcript, call).is_none(),
            None => !holds_text_of(transcript, name),
        };
        // Of each skill only what is lost: its text, some of its docs, or everything.
        let lost_of = |skill: &LoadedSkill| {
            let mut lost = skill.clone();
            let is_lost = |call: &Option<String>| is_lost(&skill.name, call.as_deref());
            lost.docs.docs.retain(|doc| is_lost(&doc.call));
            let body = is_lost(&skill.call);
            (body || !lost.docs.docs.is_empty()).then_some((lost, body))
        };
        let mut lost: Vec<(LoadedSkill, bool)> =
            self.state.loaded.iter().filter_map(lost_of).collect();
        lost.sort_by_key(|(skill, _)| std::cmp::Reverse(skill.touched));
        let limit = self.inner.settings.max_context_tokens;
        let mut skills = Vec::new();
        let mut tokens = 0;
        let mut left: Vec<&str> = Vec::new();
        for (skill, body) in &lost {
            let Some(mut data) = self.block_data(skill, problems).await? else { continue };
            if !body {
                data["body"] = Value::Null;
            }
            let text = self.inner.texts.block("loaded_skill", &data);
            let cost = self.inner.counter.count(&text);
            match tokens + cost <= limit {
                true => {
                    tokens += cost;
                    skills.push(data);
                }
                false => left.push(&skill.name),
            }
        }
        if !left.is_empty() {
            let names = left.join(", ");
            problems.push(format!(
                "loaded skills whose text does not fit into {limit} tokens any more: {names}"
            ));
        }
        if skills.is_empty() && left.is_empty() {
            return Ok(None);
        }
        let data = json!({"skills": skills, "left_out": left});
        Ok(Some(Message::system(self.inner.texts.block("loaded_context", &data))))
    }

    /// The blocks of loaded skills for the system prompt.
    async fn blocks(
        &self,
        loaded: &[&LoadedSkill],
        problems: &mut Vec<String>,
    ) -> Result<Vec<String>, RuntimeError> {
        let mut blocks = Vec::with_capacity(loaded.len());
        for skill in loaded {
            if let Some(data) = self.block_data(skill, problems).await? {
                blocks.push(self.inner.texts.block("loaded_skill", &data));
            }
        }
        Ok(blocks)
    }

    async fn block_data(
        &self,
        skill: &LoadedSkill,
        problems: &mut Vec<String>,
    ) -> Result<Option<Value>, RuntimeError> {
        let found = self.skills.snapshot.get(&skill.name).ok();
        let session = self.scope.session.as_deref().unwrap_or_default();
        let body = self.inner.pinned_text(skill, found, session).await?;
        let Some(body) = body else {
            problems.push(format!("the text of '{}' is not there any more", skill.name));
            return Ok(None);
        };
        let mut docs = Vec::new();
        for doc in &skill.docs.docs {
            let kept = match doc.digest {
                Some(digest) => self.inner.kept_or_lost(digest).await?,
                None => None,
            };
            match kept {
                Some(bytes) => {
                    let text = String::from_utf8_lossy(&bytes);
                    docs.push(json!({"path": doc.path, "text": text}));
                }
                None => problems
                    .push(format!("doc '{}' of '{}' is not there any more", doc.path, skill.name)),
            }
        }
        let docs_line: Vec<&str> = skill.docs.paths();
        Ok(Some(json!({
            "name": skill.name, "body": body, "docs": docs, "doc_paths": docs_line,
        })))
    }
}

/// Whether a message that no call has made holds the text of a skill.
fn holds_text_of(transcript: &[Message], name: &str) -> bool {
    let (block, tag) = (format!("\n[Loaded] {name}\n"), format!("<skill name=\"{name}\""));
    transcript.iter().any(|message| match message.role {
        Role::System => message.text().contains(&block),
        Role::User => message.text().starts_with(&tag),
        _ => false,
    })
}
