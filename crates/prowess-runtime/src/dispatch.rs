//! The one way of every tool call: visible? → gate → policy → interceptors → tool → commit →
//! event.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, FutureExt, join_all};
use prowess_catalog::Snapshot;
use serde_json::json;
use tracing::Instrument;

use crate::admission::Asked;
use crate::commit::{Commit, StepCommit, initialisation};
use crate::engine::Engine;
use crate::event::{EventKind, shown};
use crate::gate::Registered;
use crate::interceptor::{Intercepted, Interception};
use crate::layer::{CallLayer, NextCall};
use crate::message::{Expansion, Message, Part, ToolCall, ToolResult, storable};
use crate::outcome::ToolOutcome;
use crate::prompt::{Placement, scope_of};
use crate::runtime::{Inner, Runtime, SkillView, stored_session};
use crate::session::{AgentName, SessionKey, SessionState, StateDelta};
use crate::spans;
use crate::store::{Revision, StoredSession};
use crate::tool::{Effect, Invocation};
use crate::tools::skill_tool;
use crate::transcript::answer_to;
use crate::turn::RuntimeError;

/// The calls of one message of the model.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Step {
    /// What the model said; its calls are carried out.
    pub message: Message,
    /// The conversation as the model sees it. Without it the stored transcript counts.
    pub transcript: Option<Vec<Message>>,
}

impl Step {
    /// These calls.
    pub fn new(calls: Vec<ToolCall>) -> Self {
        Self::of(Message::calling(calls))
    }

    /// The calls in a message.
    pub fn of(message: Message) -> Self {
        Self { message, transcript: None }
    }

    /// The conversation as the model sees it, so that text that is gone is given again.
    pub fn with_transcript(mut self, transcript: Vec<Message>) -> Self {
        self.transcript = Some(transcript);
        self
    }
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StepResult {
    /// One outcome per call, in the order of the calls.
    pub outcomes: Vec<ToolOutcome>,
    /// What is to be appended to the conversation: one message per call, as the model sees them.
    pub messages: Vec<Message>,
    /// The session's revision.
    pub revision: Revision,
}

/// A call that has run and is not committed yet.
pub(crate) struct Ran {
    pub(crate) outcome: ToolOutcome,
    pub(crate) elapsed: Duration,
    /// The tool that ran, if it is not the one that was called.
    pub(crate) tool: Option<String>,
}

impl Ran {
    /// A call that was decided without running.
    pub(crate) fn at_once(outcome: ToolOutcome) -> Self {
        Self { outcome, elapsed: Duration::ZERO, tool: None }
    }
}

/// What the id of a call says before it runs.
pub(crate) enum Known {
    /// This very call was committed before, with this result.
    Answered {
        /// As the transcript holds it.
        stored: Box<ToolResult>,
        /// As the model has seen it.
        seen: Box<ToolResult>,
    },
    /// It is no id, or that of another call; why.
    Wrong(&'static str),
}

impl Known {
    pub(crate) fn is_answered(&self) -> bool {
        matches!(self, Self::Answered { .. })
    }

    pub(crate) fn outcome(&self, call: &ToolCall) -> ToolOutcome {
        match self {
            Self::Answered { seen, .. } => again(seen),
            Self::Wrong(cause) => {
                let data = json!({"tool": call.name, "call": call.id, "cause": cause});
                ToolOutcome::failed("invalid_call_id", data)
            }
        }
    }
}

impl Runtime {
    /// Carries out one call.
    pub async fn dispatch(
        &self,
        session: &SessionKey,
        agent: &AgentName,
        call: ToolCall,
    ) -> Result<ToolOutcome, RuntimeError> {
        let mut result = self.dispatch_batch(session, agent, Step::new(vec![call])).await?;
        Ok(result.outcomes.pop().unwrap_or_else(|| ToolOutcome::error("no_call", "no call")))
    }

    /// Carries out the calls of a step: those that change which skills are loaded in their order,
    /// the rest at the same time; commits all of them at once.
    ///
    /// A call that was committed before is not carried out again: its result is given again, and
    /// whoever sends it while it is being carried out waits for that. A call without an id, or with
    /// the id of another call, is refused.
    pub async fn dispatch_batch(
        &self,
        session: &SessionKey,
        agent: &AgentName,
        step: Step,
    ) -> Result<StepResult, RuntimeError> {
        self.dispatch_layered(session, agent, step, None).await
    }

    /// The same, with a layer around every call.
    pub async fn dispatch_layered(
        &self,
        session: &SessionKey,
        agent: &AgentName,
        mut step: Step,
        layer: Option<&dyn CallLayer>,
    ) -> Result<StepResult, RuntimeError> {
        for part in &mut step.message.parts {
            if let Part::ToolCall(call) = part {
                call.arguments = storable(call.arguments.take());
            }
        }
        let calls: Vec<ToolCall> = step.message.tool_calls().cloned().collect();
        let span = spans::step(session, agent, calls.len());
        let inner = &*self.inner;
        // On the heap at once: it is large, and handed on several times.
        let work = Box::pin(async {
            let stored = stored_session(inner, session).await?;
            let (catalog, mut view) = inner.skills_of(session, agent).await;
            // Whoever has forgotten which skills there are looks again; a new session need not.
            let has_forgotten = |state: &SessionState| state.skills.is_none();
            if stored.session.agents.get(agent).is_some_and(has_forgotten) {
                view = inner.view(&scope_of(session, agent), catalog.refresh().await).await;
            }
            let view = &*view;
            let mut engine = Engine::new(inner, session, agent, view);
            engine.transcript = step.transcript.as_deref();
            engine.caller = layer.and_then(CallLayer::caller);
            engine.said = Some(&step.message);
            engine.calls = calls.iter().map(|call| call.id.as_str()).collect();
            let calls = &calls;
            let batch = Batch { inner, session, agent, view, step: &step, calls, engine, layer };
            batch.run(stored).await
        });
        let work = self.holding(session, work);
        inner.in_flight.during(session, agent, &calls, work).instrument(span).await
    }
}

pub(crate) struct Batch<'a> {
    pub(crate) inner: &'a Inner,
    pub(crate) session: &'a SessionKey,
    pub(crate) agent: &'a AgentName,
    /// The skills that the agent sees.
    pub(crate) view: &'a SkillView,
    pub(crate) step: &'a Step,
    pub(crate) calls: &'a [ToolCall],
    pub(crate) engine: Engine<'a>,
    layer: Option<&'a dyn CallLayer>,
}

impl Batch<'_> {
    async fn run(&self, stored: StoredSession) -> Result<StepResult, RuntimeError> {
        let state = Arc::new(stored.session.state(self.agent));
        self.inner.bind_loaded(&self.view.bound, &state).await;
        let known = self.known(&state).await?;
        let (ran, deltas) = self.run_all(&state, &known).await;
        let (setup, excluded) =
            initialisation(self.inner, &state, self.view, self.session, self.agent).await?;
        let commit = Commit {
            inner: self.inner,
            session: self.session,
            agent: self.agent,
            view: self.view,
            setup,
            excluded,
            deltas,
        };
        let step = StepCommit { batch: self, ran, known };
        commit.step(stored, step).await
    }

    /// What the ids of the calls say, where they say something.
    pub(crate) async fn known(
        &self,
        state: &SessionState,
    ) -> Result<BTreeMap<usize, Known>, RuntimeError> {
        let mut known = BTreeMap::new();
        let mut messages = None;
        let mut ids = HashSet::new();
        // One call alone has its id for itself.
        let is_first = &mut |id| self.calls.len() == 1 || ids.insert(id);
        for (at, call) in self.calls.iter().enumerate() {
            if call.id.is_empty() {
                known.insert(at, Known::Wrong("it is empty"));
            } else if !is_first(call.id.as_str()) {
                known.insert(at, Known::Wrong("another call of this step has it"));
            } else if state.has_call(&call.id) {
                if messages.is_none() {
                    messages = Some(self.inner.sessions.messages(self.session, self.agent).await?);
                }
                let result = answer_to(messages.as_deref().unwrap_or_default(), call);
                let is = match result {
                    Some(result) => Known::Answered {
                        stored: Box::new(result.clone()),
                        seen: Box::new(self.expanded(result.clone()).await?),
                    },
                    None => Known::Wrong("an earlier call had it"),
                };
                known.insert(at, is);
            }
        }
        Ok(known)
    }

    /// A stored result as the model has seen it.
    async fn expanded(&self, mut result: ToolResult) -> Result<ToolResult, RuntimeError> {
        let is_elsewhere =
            |it: &&Expansion| it.pinned && self.inner.settings.placement == Placement::System;
        if let Some(expansion) = result.expansion.as_ref().filter(|it| !is_elsewhere(it))
            && let Some(bytes) = self.inner.kept_or_lost(expansion.digest).await?
        {
            result.content = String::from_utf8_lossy(&bytes).into_owned();
        }
        Ok(result)
    }

    async fn run_all(
        &self,
        state: &Arc<SessionState>,
        known: &BTreeMap<usize, Known>,
    ) -> (Vec<Ran>, Vec<StateDelta>) {
        let caps = self.inner.settings.caps();
        let mut working = Arc::clone(state);
        let mut deltas = Vec::new();
        let mut slots: Vec<Option<Ran>> = Vec::with_capacity(self.calls.len());
        let mut running: Vec<BoxFuture<'_, (usize, Ran)>> = Vec::new();
        for (at, call) in self.calls.iter().enumerate() {
            slots.push(None);
            if let Some(known) = known.get(&at) {
                slots[at] = Some(Ran::at_once(known.outcome(call)));
                continue;
            }
            match self.effect_of(call, &working) {
                Effect::State => {
                    let ran = self.run_one(call, &working).await;
                    let delta = StateDelta::new(at, &call.id, ran.outcome.changes.clone());
                    if !delta.changes.is_empty() {
                        let state = Arc::make_mut(&mut working);
                        state.apply(std::slice::from_ref(&delta), &caps);
                    }
                    deltas.push(delta);
                    slots[at] = Some(ran);
                }
                // With nobody beside it, it is waited for at once.
                Effect::None if self.calls.len() == 1 => {
                    let ran = self.run_one(call, &working).await;
                    deltas.push(StateDelta::new(at, &call.id, ran.outcome.changes.clone()));
                    slots[at] = Some(ran);
                }
                Effect::None => {
                    let state = Arc::clone(&working);
                    running.push(Box::pin(async move { (at, self.run_one(call, &state).await) }));
                }
            }
        }
        for (at, ran) in join_all(running).await {
            // Without changes too: the id is remembered, so that nothing runs twice.
            deltas.push(StateDelta::new(at, &self.calls[at].id, ran.outcome.changes.clone()));
            slots[at] = Some(ran);
        }
        (slots.into_iter().flatten().collect(), deltas)
    }

    /// The tool that a call is for, also if it goes through the one tool for all.
    fn tool_of<'c>(&self, call: &'c ToolCall) -> Cow<'c, str> {
        let generic = self.inner.tools.generic().filter(|(words, _)| words.name == call.name);
        let meant = generic.and_then(|(words, _)| skill_tool::meant(words, call).ok());
        meant.map_or(Cow::Borrowed(&call.name), |meant| Cow::Owned(meant.call.name))
    }

    fn effect_of(&self, call: &ToolCall, state: &SessionState) -> Effect {
        let registered = self.inner.tool(&self.view.bound, state, &self.tool_of(call));
        let effect = |it: Registered| it.tool.effect(call, &self.view.snapshot);
        registered.map(effect).unwrap_or_default()
    }

    async fn run_one(&self, call: &ToolCall, state: &SessionState) -> Ran {
        let tool = self.tool_of(call);
        let span = spans::call(&tool, call);
        let started = Instant::now();
        let running = async {
            match self.layer {
                Some(layer) => {
                    let next = NextCall { batch: self, state, id: &call.id };
                    layer.call(call.clone(), next).await
                }
                None => self.admitted(call, state).await,
            }
        };
        let broken = || ToolOutcome::failed("tool_panicked", json!({"tool": tool}));
        let running = guarded(running).instrument(span.clone());
        let mut outcome = running.await.unwrap_or_else(broken);
        spans::ended(&span, &outcome);
        // Whatever a tool or an interceptor says: a failure changes nothing.
        if outcome.is_error {
            outcome.changes.clear();
        }
        let tool = match tool {
            Cow::Borrowed(_) => None,
            Cow::Owned(tool) => Some(tool),
        };
        Ran { outcome, elapsed: started.elapsed(), tool }
    }

    /// Carries out a call, if it may run.
    pub(crate) async fn admitted(&self, call: &ToolCall, state: &SessionState) -> ToolOutcome {
        match self.asked(call, state) {
            Ok(asked) => {
                let running = guarded(self.intercepted(&asked, state, &self.view.snapshot));
                let tool = &asked.call.name;
                let broken = || ToolOutcome::failed("tool_panicked", json!({"tool": tool}));
                let mut outcome = running.await.unwrap_or_else(broken);
                self.inner.dialect.render(&mut outcome);
                outcome
            }
            Err(mut refusal) => {
                self.inner.dialect.render(&mut refusal);
                refusal
            }
        }
    }

    async fn intercepted(
        &self,
        asked: &Asked<'_>,
        state: &SessionState,
        snapshot: &Snapshot,
    ) -> ToolOutcome {
        let mut call = Cow::Borrowed(&*asked.call);
        let mut passed = 0;
        let mut denied = None;
        for interceptor in &self.inner.interceptors {
            let seen = self.seen(&call, state);
            passed += 1;
            match interceptor.before(seen).await {
                Interception::Continue => {}
                Interception::Replace(arguments) => call.to_mut().arguments = arguments,
                Interception::Deny(cause) => {
                    let data = json!({"tool": call.name, "cause": cause});
                    let message = format!("Tool '{}' blocked: {cause}", shown(&call.name));
                    let outcome = ToolOutcome::failed("call_denied", data);
                    denied = Some(outcome.with_note(EventKind::ToolBlocked, message));
                    break;
                }
            }
        }
        // What runs is what was allowed.
        if let Cow::Owned(call) = &call {
            denied = denied.or_else(|| self.check_again(asked, call, state).err());
        }
        let mut outcome = match denied {
            Some(denied) => denied,
            None => {
                let invocation = Invocation {
                    session: self.session,
                    agent: self.agent,
                    state,
                    snapshot,
                    call: &call,
                    engine: &self.engine,
                };
                asked.registered.tool.call(invocation).await
            }
        };
        for interceptor in self.inner.interceptors[..passed].iter().rev() {
            self.inner.dialect.render(&mut outcome);
            outcome = interceptor.after(self.seen(&call, state), outcome).await;
        }
        outcome
    }

    fn seen<'s>(&'s self, call: &'s ToolCall, state: &'s SessionState) -> Intercepted<'s> {
        Intercepted { session: self.session, agent: self.agent, state, call }
    }
}

/// Runs to the end; nothing comes of a panic.
fn guarded<T>(work: impl Future<Output = T>) -> impl Future<Output = Option<T>> {
    AssertUnwindSafe(work).catch_unwind().map(Result::ok)
}

/// The outcome of a call that was committed before.
fn again(result: &ToolResult) -> ToolOutcome {
    let mut outcome = match result.is_error {
        true => ToolOutcome::error("repeated", &result.content),
        false => ToolOutcome::text(&result.content),
    };
    outcome.code = "repeated".into();
    outcome
}
