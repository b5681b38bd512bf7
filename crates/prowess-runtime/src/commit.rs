//! What is committed: changes, messages and events together, as often as it takes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::json;

use crate::dispatch::{Batch, Known, Ran, StepResult};
use crate::engine::load_limit;
use crate::event::{Event, EventKind, one_line, shown};
use crate::gate::opens;
use crate::message::{Expansion, Message, ToolCall, ToolResult};
use crate::outcome::ToolOutcome;
use crate::prompt::{ListingMode, Placement, scope_of};
use crate::runtime::{Inner, SkillView, stored_session};
use crate::session::{
    AgentName, Applied, Change, LoadedSkill, Refusal, SessionDelta, SessionKey, SessionState,
    StateDelta,
};
use crate::store::StoreError;
use crate::turn::RuntimeError;

/// The session learns which skills there are, if it does not know, and its listing is frozen, also
/// if it was in another dialect before. Also says how many skills did not fit into it.
pub(crate) async fn initialisation(
    inner: &Inner,
    state: &SessionState,
    view: &SkillView,
    session: &SessionKey,
    agent: &AgentName,
) -> Result<(Vec<Change>, usize), RuntimeError> {
    let dialect = inner.dialect.fingerprint();
    let has_listing = match inner.settings.listing.mode {
        ListingMode::Live => true,
        ListingMode::Stable => state.listing.is_some() && state.dialect == dialect,
    };
    if state.skills.is_some() && has_listing {
        return Ok((Vec::new(), 0));
    }
    let scope = scope_of(session, agent);
    let (told, manifest) = inner.told_manifest(view, &scope);
    inner.keep(manifest.into_bytes()).await?;
    let mut excluded = 0;
    let listing = match inner.settings.listing.mode {
        ListingMode::Live => None,
        ListingMode::Stable => {
            let (text, left_out) = inner.told_listing(view, &scope, None).await?;
            excluded = left_out;
            Some(inner.keep(text.into_bytes()).await?)
        }
    };
    let initialise = Change::Initialise { skills: view.known(), listing, dialect };
    Ok((vec![initialise, Change::Tell { skills: told }], excluded))
}

/// Something to be committed, as often as it takes.
pub(crate) struct Commit<'a> {
    pub(crate) inner: &'a Inner,
    pub(crate) session: &'a SessionKey,
    pub(crate) agent: &'a AgentName,
    pub(crate) view: &'a SkillView,
    pub(crate) setup: Vec<Change>,
    /// How many skills did not fit into the listing that is frozen.
    pub(crate) excluded: usize,
    pub(crate) deltas: Vec<StateDelta>,
}

pub(crate) struct StepCommit<'a> {
    pub(crate) batch: &'a Batch<'a>,
    pub(crate) ran: Vec<Ran>,
    pub(crate) known: BTreeMap<usize, Known>,
}

impl StepCommit<'_> {
    /// Takes the results of calls that somebody else has committed meanwhile.
    async fn look_again(&mut self, state: &SessionState) -> Result<(), RuntimeError> {
        for (at, known) in self.batch.known(state).await? {
            self.ran[at] = Ran::at_once(known.outcome(&self.batch.calls[at]));
            self.known.insert(at, known);
        }
        Ok(())
    }
}

impl Commit<'_> {
    /// An event of this agent. Its message is one line, whatever it quotes.
    pub(crate) fn event(&self, kind: EventKind, turn: u64, message: impl Into<String>) -> Event {
        let message = one_line(message.into().into());
        Event::new(kind, self.agent, turn, message)
    }

    /// What initialising has to say.
    pub(crate) fn discovered(&self, turn: u64) -> Vec<Event> {
        if !self.setup.iter().any(|change| matches!(change, Change::Initialise { .. })) {
            return Vec::new();
        }
        let (skills, sources) =
            (self.view.snapshot.skills().len(), self.view.snapshot.sources().len());
        let s = |count: usize| if count == 1 { "" } else { "s" };
        let message =
            format!("Discovered {skills} skill{} from {sources} source{}", s(skills), s(sources));
        let mut events = vec![self.event(EventKind::SkillsDiscovered, turn, message)];
        if self.excluded > 0 {
            let message = format!("Description budget exceeded, {} skills excluded", self.excluded);
            events.push(self.event(EventKind::BudgetExceeded, turn, message));
        }
        events
    }

    pub(crate) async fn step(
        mut self,
        mut stored: crate::store::StoredSession,
        mut step: StepCommit<'_>,
    ) -> Result<StepResult, RuntimeError> {
        let attempts = self.inner.settings.max_commit_attempts.max(1);
        for _ in 0..attempts {
            let mut delta = SessionDelta::new(self.agent.clone(), self.inner.settings.caps())
                .with_setup(self.setup.clone())
                .with_deltas(self.deltas.clone());
            // Read anew before another attempt.
            let mut session = std::mem::take(&mut stored.session);
            let applied: BTreeMap<String, Applied> = session.apply(&delta).into_iter().collect();
            let state = session.agents.remove(self.agent).unwrap_or_default();
            let Finished { settled, events, stored_messages, messages } =
                self.finish(&step, &applied, &state).await?;
            delta.messages = stored_messages;
            let committed =
                self.inner.sessions.commit(self.session, stored.revision, delta, events.clone());
            match committed.await {
                Ok(revision) => {
                    self.inner.publish(self.session, &events);
                    let ran = step.ran.into_iter().map(|ran| ran.outcome);
                    let outcomes = ran.zip(settled).map(|(ran, it)| it.unwrap_or(ran)).collect();
                    return Ok(StepResult { outcomes, messages, revision });
                }
                Err(StoreError::Conflict { .. }) => {
                    stored = stored_session(self.inner, self.session).await?;
                    let state = stored.session.state(self.agent);
                    (self.setup, self.excluded) =
                        initialisation(self.inner, &state, self.view, self.session, self.agent)
                            .await?;
                    step.look_again(&state).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(RuntimeError::TooBusy { attempts })
    }

    /// Writes outcomes, messages and events for what would come of a commit.
    async fn finish(
        &self,
        step: &StepCommit<'_>,
        applied: &BTreeMap<String, Applied>,
        state: &SessionState,
    ) -> Result<Finished, RuntimeError> {
        let turn = state.turn;
        let mut finished = Finished::default();
        finished.events.extend(self.discovered(turn));
        let calls = step.batch.calls;
        // What is repeated as a whole is in the transcript already.
        let answered = step.known.values().filter(|known| known.is_answered()).count();
        let is_new = answered < calls.len() || calls.is_empty();
        if is_new {
            finished.stored_messages.push(step.batch.step.message.clone());
        }
        for (at, (call, ran)) in calls.iter().zip(&step.ran).enumerate() {
            let known = step.known.get(&at);
            let applied = applied.get(&call.id).filter(|_| known.is_none());
            let mut outcome = self.settled(&ran.outcome, applied);
            let mut whole = None;
            // What stands in the system prompt is not said twice.
            if self.inner.settings.placement == Placement::System
                && outcome.is_pinned
                && let Some(stub) = outcome.stub.clone()
            {
                whole = Some(std::mem::replace(&mut outcome.to_mut().content, stub));
            }
            let mut result = ToolResult {
                call_id: call.id.clone(),
                name: call.name.clone(),
                content: outcome.content.clone(),
                is_error: outcome.is_error,
                expansion: None,
            };
            finished.messages.push(Message::answering(result.clone()));
            if let Some(Known::Answered { stored, .. }) = known {
                // Beside new calls it stands there again, and is answered there again.
                finished
                    .stored_messages
                    .extend(is_new.then(|| Message::answering(ToolResult::clone(stored))));
            } else {
                if let Some(stub) = &outcome.stub {
                    let whole = whole.unwrap_or_else(|| outcome.content.clone());
                    let digest = self.inner.keep(whole.into_bytes()).await?;
                    let skill = outcome.skill.clone().unwrap_or_default();
                    result.content.clone_from(stub);
                    let pinned = outcome.is_pinned;
                    result.expansion = Some(Expansion { digest, skill, turn, pinned });
                }
                finished.stored_messages.push(Message::answering(result));
                self.call_events(call, ran, &outcome, applied, state, &mut finished.events);
            }
            finished.settled.push(match outcome {
                Cow::Borrowed(_) => None,
                Cow::Owned(outcome) => Some(outcome),
            });
        }
        Ok(finished)
    }

    /// What a call is told in the end; what it was told already, if nothing changes that.
    fn settled<'o>(
        &self,
        outcome: &'o ToolOutcome,
        applied: Option<&Applied>,
    ) -> Cow<'o, ToolOutcome> {
        let refusal = applied.and_then(|applied| applied.refused.as_ref());
        let mut outcome = match refusal {
            Some(refusal) => Cow::Owned(refused(refusal, outcome)),
            None => Cow::Borrowed(outcome),
        };
        if outcome.is_unwritten {
            self.inner.dialect.render(outcome.to_mut());
        }
        // A failure is short as it is, whatever it was before an interceptor made it one.
        if outcome.is_error && outcome.stub.is_some() {
            outcome.to_mut().stub = None;
        }
        outcome
    }

    /// The loaded skill that opens a tool.
    fn opener<'s>(&self, tool: &str, state: &'s SessionState) -> Option<&'s LoadedSkill> {
        let registered = self.inner.tool(&self.view.bound, state, tool)?;
        state.loaded.iter().find(|it| opens(it, tool, &registered, &self.view.declared))
    }

    /// One event for the call, and one for everything else that happened.
    fn call_events(
        &self,
        call: &ToolCall,
        ran: &Ran,
        outcome: &ToolOutcome,
        applied: Option<&Applied>,
        state: &SessionState,
        events: &mut Vec<Event>,
    ) {
        let turn = state.turn;
        let tool = ran.tool.as_ref().unwrap_or(&call.name);
        // Names come from a model. As messages show them, they stand for nothing else.
        let skill = shown(outcome.skill.as_deref().unwrap_or_default());
        let shown_tool = shown(tool);
        let loaded = outcome.changes.iter().find_map(|change| match change {
            Change::Load { skill, .. } => Some(skill),
            _ => None,
        });
        let mut notes = outcome.notes.iter();
        let (kind, message) = match (outcome.code.as_ref(), loaded) {
            (_, Some(loaded)) => {
                let count = loaded.resources.len();
                let text = format!("Skill '{skill}' loaded ({count} resources discovered)");
                (EventKind::SkillLoaded, text)
            }
            ("load_limit", _) => {
                let limit = self.inner.settings.max_loaded_skills;
                let loaded = outcome.data["loaded"].as_array().map_or(limit, Vec::len);
                let text = format!("Skill loading limit reached ({loaded}/{limit})");
                (EventKind::LoadLimitReached, text)
            }
            ("unloaded", _) => (EventKind::SkillUnloaded, format!("Skill '{skill}' unloaded")),
            (code, None) => match notes.next() {
                Some((kind, message)) => (*kind, message.clone()),
                None if outcome.is_error => {
                    (EventKind::CallFailed, format!("Tool '{shown_tool}' failed: {code}"))
                }
                None => (EventKind::ToolCalled, format!("Tool '{shown_tool}' called")),
            },
        };
        let mut event = self.event(kind, turn, message);
        event.call_id = Some(call.id.clone());
        event.tool = Some(tool.clone());
        event.manages_skills = self.inner.tools.manages(tool);
        // The skill that it is about, or else the one that has opened the tool.
        let used = match &outcome.skill {
            Some(skill) => state.loaded(skill),
            None => self.opener(tool, state),
        };
        event.skill = outcome.skill.clone().or_else(|| used.map(|used| used.name.clone()));
        if let Some(loaded) = loaded.map(AsRef::as_ref).or(used) {
            event = event.with_loaded(loaded);
        }
        event.code = Some(outcome.code.to_string());
        event.elapsed_us = Some(u64::try_from(ran.elapsed.as_micros()).unwrap_or(u64::MAX));
        events.push(event.with_content(&outcome.content));
        for (kind, message) in notes {
            let mut event = self.event(*kind, turn, message);
            event.skill.clone_from(&outcome.skill);
            events.push(event);
        }
        for evicted in applied.map(|applied| applied.evicted.as_slice()).unwrap_or_default() {
            let message = format!("Skill '{}' went to make room for '{skill}'", shown(evicted));
            events.push(self.event(EventKind::SkillEvicted, turn, message).with_skill(evicted));
        }
    }
}

#[derive(Default)]
struct Finished {
    /// What calls are told in the end, where that is not what they were told already.
    settled: Vec<Option<ToolOutcome>>,
    events: Vec<Event>,
    /// As the store keeps them.
    stored_messages: Vec<Message>,
    /// As the model sees them.
    messages: Vec<Message>,
}

/// What a call is told whose changes were refused.
fn refused(refusal: &Refusal, outcome: &ToolOutcome) -> ToolOutcome {
    let skill = outcome.skill.as_deref().unwrap_or_default();
    match refusal {
        Refusal::LimitReached { limit, loaded } => {
            let loaded: Vec<&str> = loaded.iter().map(String::as_str).collect();
            load_limit(skill, *limit, &loaded)
        }
        Refusal::NotLoaded { skill } => {
            let data = json!({"skill": skill, "tool": null});
            ToolOutcome::failed("skill_not_loaded", data).about(skill)
        }
    }
}
