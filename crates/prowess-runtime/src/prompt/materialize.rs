//! A session's transcript as the model sees it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use prowess_catalog::Scope;
use serde_json::{Value, json};

use super::listing::{ListingMode, ListingSlot};
use super::request::Placement;
use crate::message::{Message, Part, Role, ToolResult};
use crate::runtime::{Inner, SkillView};
use crate::session::{LoadedSkill, SessionState, Since};
use crate::settings::{Guidance, LoadMode};
use crate::tool::ToolDeclaration;
use crate::tools::LOAD;
use crate::turn::RuntimeError;

/// Since when a skill counts.
struct Place<'a> {
    skill: &'a str,
    turn: u64,
    /// The message that holds what was given first.
    at: usize,
}

/// A session and everything that decides what it sees.
pub(super) struct View<'a> {
    pub(super) inner: &'a Inner,
    pub(super) state: &'a SessionState,
    pub(super) skills: &'a SkillView,
    pub(super) scope: &'a Scope,
}

impl View<'_> {
    /// The system prompt, and the tools.
    pub(super) async fn system(
        &self,
        system: Option<&str>,
        problems: &mut Vec<String>,
    ) -> Result<(String, Arc<[ToolDeclaration]>), RuntimeError> {
        let settings = &self.inner.settings;
        let listing = self.listing_text(problems).await?;
        let mut sections: Vec<String> = Vec::new();
        sections.extend(system.filter(|text| !text.is_empty()).map(str::to_owned));
        let load = self.inner.dialect.tool(LOAD).unwrap_or(LOAD);
        let customisation = &self.inner.customisation;
        let own = self.inner.asked.guidance(customisation, load).await.transpose()?;
        let guidance = match (own, &settings.listing.guidance) {
            (Some(own), _) => own.clone(),
            (None, Guidance::Default) => {
                let write = || self.inner.dialect.block("guidance", &json!({}));
                self.inner.guidance.get_or_init(write).clone()
            }
            (None, Guidance::Text(text)) => text.clone(),
            (None, Guidance::None) => String::new(),
        };
        self.inner.bind_loaded(&self.skills.bound, self.state).await;
        let mut tools = self.inner.declarations(self.skills, self.state);
        let mut listing = Some(listing);
        let is_told = settings.listing.slot == ListingSlot::ToolDescription;
        if is_told || customisation.lists() || customisation.has_parameters() {
            let mut changed = tools.to_vec();
            if let Some(load) = changed.iter_mut().find(|tool| tool.name == load) {
                self.customise(load, &mut listing).await?;
            }
            tools = changed.into();
        }
        let data = json!({"guidance": guidance, "listing": listing});
        let skills = self.inner.dialect.block("skills", &data);
        sections.extend(Some(skills).filter(|text| !text.is_empty()));
        if settings.placement == Placement::System {
            let mut loaded: Vec<&LoadedSkill> = self.loaded().collect();
            loaded.sort_by(|a, b| a.name.cmp(&b.name));
            sections.extend(self.blocks(&loaded, problems).await?);
        }
        Ok((sections.join("\n\n"), tools))
    }

    /// What the model is told of the load tool: as the host wants it, and with the listing, where
    /// that stands there.
    async fn customise(
        &self,
        load: &mut ToolDeclaration,
        listing: &mut Option<String>,
    ) -> Result<(), RuntimeError> {
        let Inner { customisation, dialect, asked, settings, .. } = self.inner;
        let skill = dialect.parameter(LOAD, "skill").unwrap_or("skill");
        let asked = asked.parameters(customisation, &load.parameters, skill).await;
        if let Some(parameters) = asked.transpose()? {
            load.parameters = parameters.clone();
        }
        let is_told = settings.listing.slot == ListingSlot::ToolDescription;
        if customisation.lists() {
            load.description = listing.take().unwrap_or_default();
        } else if let Some(listing) = listing.take_if(|_| is_told) {
            load.description = format!("{}\n\n{listing}", load.description);
        }
        Ok(())
    }

    /// The skills whose text the next request holds: all that are loaded, but for those that were
    /// to be held once and were.
    fn loaded(&self) -> impl Iterator<Item = &LoadedSkill> {
        self.state.loaded.iter().filter(|skill| !skill.sent)
    }

    /// The conversation.
    pub(super) async fn messages(
        &self,
        transcript: &[Message],
        problems: &mut Vec<String>,
    ) -> Result<Vec<Message>, RuntimeError> {
        let expanded = self.expanded(transcript, problems).await?;
        let mut messages: Vec<Message> = expanded.into_iter().map(Cow::into_owned).collect();
        // What a stub stands for is the transcript's business; the model is not sent it.
        for message in &mut messages {
            message.given = None;
            for part in &mut message.parts {
                if let Part::ToolResult(result) = part {
                    result.expansion = None;
                }
            }
        }
        Ok(messages)
    }

    /// The listing that this session sees.
    async fn listing_text(&self, problems: &mut Vec<String>) -> Result<String, RuntimeError> {
        if self.inner.settings.listing.mode == ListingMode::Live {
            return Ok(self.inner.told_listing(self.skills, self.scope, Some(self.state)).await?.0);
        }
        let is_spoken = self.state.dialect == self.inner.dialect.fingerprint();
        if let Some(frozen) = self.state.listing.filter(|_| is_spoken) {
            if let Some(bytes) = self.inner.kept_or_lost(frozen).await? {
                return Ok(String::from_utf8_lossy(&bytes).into_owned());
            }
            problems.push("the listing of this session is lost; it is written anew".to_owned());
        }
        Ok(self.inner.told_listing(self.skills, self.scope, None).await?.0)
    }

    /// Results with their text, where it still counts.
    async fn expanded<'m>(
        &self,
        transcript: &'m [Message],
        problems: &mut Vec<String>,
    ) -> Result<Vec<Cow<'m, Message>>, RuntimeError> {
        let places = self.places(transcript);
        let placement = self.inner.settings.placement;
        let mut messages = Vec::with_capacity(transcript.len());
        for (at, message) in transcript.iter().enumerate() {
            if let Some(given) = &message.given
                && !self.counts(&given.skill, given.turn, at, &places)
            {
                // What a call would have left behind.
                let text = self.inner.dialect.block("given", &json!({"skill": given.skill}));
                messages.push(Cow::Owned(Message::new(message.role, vec![Part::Text { text }])));
                continue;
            }
            let counts = |result: &ToolResult| {
                let expansion = result.expansion.as_ref();
                expansion.is_some_and(|it| {
                    // What stands in the system prompt is not said twice.
                    let is_elsewhere = it.pinned && placement == Placement::System;
                    !is_elsewhere && self.counts(&it.skill, it.turn, at, &places)
                })
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
        let loaded = self.loaded().map(|it| (it.name.as_str(), &it.since));
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
    /// Where loaded text stands in the system prompt, none is.
    pub(super) async fn lost_context(
        &self,
        held: &Held,
        problems: &mut Vec<String>,
    ) -> Result<Option<Message>, RuntimeError> {
        if self.inner.settings.placement == Placement::System {
            return Ok(None);
        }
        let is_lost = |name: &str, call: Option<&str>| match call {
            Some(call) => !held.results.contains(call),
            None => !held.texts.contains(name),
        };
        // Of each skill only what is lost: its text, some of its docs, or everything.
        let lost_of = |skill: &LoadedSkill| {
            let mut lost = skill.clone();
            let is_lost = |call: &Option<String>| is_lost(&skill.name, call.as_deref());
            lost.docs.docs.retain(|doc| is_lost(&doc.call));
            let body = is_lost(&skill.call);
            (body || !lost.docs.docs.is_empty()).then_some((lost, body))
        };
        let mut lost: Vec<(LoadedSkill, bool)> = self.loaded().filter_map(lost_of).collect();
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
            let text = self.inner.dialect.block("loaded_skill", &data);
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
        Ok(Some(Message::system(self.inner.dialect.block("loaded_context", &data))))
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
                blocks.push(self.inner.dialect.block("loaded_skill", &data));
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
        let text = self.inner.pinned_text(skill, found, session).await?;
        let Some(text) = text else {
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
            "name": skill.name,
            "body": text.body,
            "tools": self.inner.described_tools(self.skills, self.state, &skill.name),
            "docs": docs,
            "doc_paths": docs_line,
        })))
    }
}

/// What a conversation holds of loaded text.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    /// The calls that are answered in it.
    pub(super) results: HashSet<String>,
    /// The loaded skills whose text is in a message that no call has made.
    pub(super) texts: HashSet<String>,
}

impl Held {
    pub(super) fn of(transcript: &[Message], state: &SessionState) -> Self {
        let results = transcript.iter().flat_map(Message::tool_results);
        let names = state.loaded.iter().map(|skill| &skill.name);
        Self {
            results: results.map(|result| result.call_id.clone()).collect(),
            texts: names.filter(|name| holds_text_of(transcript, name)).cloned().collect(),
        }
    }
}

/// Whether a message that no call has made holds the text of a skill.
fn holds_text_of(transcript: &[Message], name: &str) -> bool {
    let (block, tag) = (format!("\n[Loaded] {name}\n"), format!("<skill name=\"{name}\""));
    let is_given = |message: &Message| message.given.as_ref().is_some_and(|it| it.skill == name);
    transcript.iter().any(|message| match message.role {
        _ if is_given(message) => true,
        Role::System => message.text().contains(&block),
        Role::User => message.text().starts_with(&tag),
        _ => false,
    })
}
