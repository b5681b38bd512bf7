//! What hooks see of a run.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{self, Arc, PoisonError};

use prowess_runtime::{
    AgentName, Change, Conversation, Runtime, RuntimeError, SessionKey, SessionState, Usage,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, Inner};
use crate::error::AgentError;
use crate::event::AgentEvent;
use crate::limits::RunLimits;

/// A run on its way: whose it is, and what can be asked of it.
pub struct Run {
    pub(crate) session: SessionKey,
    pub(crate) agent: AgentName,
    pub(crate) runtime: Runtime,
    pub(crate) system: String,
    pub(crate) conversation: Mutex<Conversation>,
    pub(crate) events: mpsc::Sender<AgentEvent>,
    pub(crate) cancel: CancellationToken,
    /// The agent that is at work.
    pub(crate) inner: Arc<Inner>,
    pub(crate) notes: Arc<Notes>,
}

/// What a run keeps in mind until it is over.
pub(crate) struct Notes {
    /// The run that it is inside of, which pays for it too.
    outer: Option<Arc<Notes>>,
    /// How many runs it is inside of, and how many may be inside of one another here.
    depth: usize,
    pub(crate) max_depth: usize,
    /// What it and the runs inside of it may cost.
    max_tokens: Option<u64>,
    /// What they have cost so far.
    spent: sync::Mutex<Usage>,
    /// The problems that were told.
    problems: sync::Mutex<HashSet<String>>,
    /// Whether it ends behind the step that is under way.
    is_interrupted: AtomicBool,
    /// Whether the request that is being made is to be made anew.
    is_stale: AtomicBool,
    /// Whether the conversation could not be summed up: it is not tried again.
    pub(crate) has_no_summary: AtomicBool,
}

impl Notes {
    /// Those of a run with these limits. Inside of another one its limits hold too.
    pub(crate) fn new(limits: &RunLimits, outer: Option<Arc<Self>>) -> Self {
        let (depth, most) =
            outer.as_ref().map_or((0, usize::MAX), |it| (it.depth + 1, it.max_depth));
        Self {
            depth,
            max_depth: limits.max_depth.min(most),
            max_tokens: limits.max_tokens,
            outer,
            spent: sync::Mutex::default(),
            problems: sync::Mutex::default(),
            is_interrupted: AtomicBool::new(false),
            is_stale: AtomicBool::new(false),
            has_no_summary: AtomicBool::new(false),
        }
    }

    fn spent(&self) -> Usage {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spend(&self, usage: Usage) {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner) += usage;
        if let Some(outer) = &self.outer {
            outer.spend(usage);
        }
    }

    /// Whether it, or a run that it is inside of, has cost more than it may.
    fn is_over_budget(&self) -> bool {
        let spent = self.spent();
        let spent = spent.input_tokens.saturating_add(spent.output_tokens);
        self.max_tokens.is_some_and(|most| spent > most)
            || self.outer.as_ref().is_some_and(|outer| outer.is_over_budget())
    }
}

/// Something that a middleware remembers for an agent, in its session.
///
/// ```
/// use prowess_agent::Slot;
///
/// struct Todos;
/// impl Slot for Todos {
///     const NAME: &'static str = "todos";
///     type Value = Vec<String>;
/// }
/// ```
pub trait Slot {
    /// What nobody else calls theirs.
    const NAME: &'static str;
    /// What it holds; its default, if nothing was put there.
    type Value: Serialize + DeserializeOwned + Default + Send;

    /// The change that puts something there. A tool returns it with its outcome; of several in one
    /// step the last call's counts.
    fn set(value: &Self::Value) -> Result<Change, AgentError> {
        let invalid = |cause| AgentError::Slot { slot: Self::NAME, cause };
        let value = serde_json::to_value(value).map_err(invalid)?;
        Ok(Change::SetSlot { slot: Self::NAME.to_owned(), value })
    }

    /// What a state holds there.
    fn get(state: &SessionState) -> Result<Self::Value, AgentError> {
        match state.slots.get(Self::NAME) {
            None | Some(Value::Null) => Ok(Self::Value::default()),
            Some(value) => serde_json::from_value(value.clone())
                .map_err(|cause| AgentError::Slot { slot: Self::NAME, cause }),
        }
    }
}

impl Run {
    /// The session.
    pub fn session(&self) -> &SessionKey {
        &self.session
    }

    /// The agent.
    pub fn agent(&self) -> &AgentName {
        &self.agent
    }

    /// The engine.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// What the host says first.
    pub fn system(&self) -> &str {
        &self.system
    }

    /// Ends the run early when it is cancelled.
    pub fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// The agent's state.
    pub async fn state(&self) -> Result<SessionState, RuntimeError> {
        self.runtime.state(&self.session, &self.agent).await
    }

    /// What a slot holds.
    pub async fn slot<S: Slot>(&self) -> Result<S::Value, AgentError> {
        S::get(&self.state().await?)
    }

    /// Puts something into a slot.
    pub async fn set_slot<S: Slot>(&self, value: &S::Value) -> Result<(), AgentError> {
        self.runtime.change(&self.session, &self.agent, vec![S::set(value)?]).await?;
        Ok(())
    }

    /// What the models have cost that were asked so far, whatever came of their answers, also by
    /// sub-agents.
    pub fn spent(&self) -> Usage {
        self.notes.spent()
    }

    pub(crate) fn spend(&self, usage: Usage) {
        self.notes.spend(usage);
    }

    pub(crate) fn is_over_budget(&self) -> bool {
        self.notes.is_over_budget()
    }

    /// How many runs of other agents it is inside of.
    pub fn depth(&self) -> usize {
        self.notes.depth
    }

    /// The run ends behind the step that is under way.
    pub fn interrupt(&self) {
        self.notes.is_interrupted.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.notes.is_interrupted.load(Ordering::Relaxed)
    }

    /// The conversation has changed while a request was made of it: the request is made anew.
    pub fn ask_anew(&self) {
        self.notes.is_stale.store(true, Ordering::Relaxed);
    }

    pub(crate) fn take_stale(&self) -> bool {
        self.notes.is_stale.swap(false, Ordering::Relaxed)
    }

    /// The agent that is at work.
    pub fn as_agent(&self) -> Agent {
        Agent { inner: Arc::clone(&self.inner) }
    }

    /// Tells whoever follows the run of a problem, once.
    pub async fn problem(&self, message: impl Into<String>) {
        let message = message.into();
        let is_new = {
            let problems = self.notes.problems.lock();
            problems.unwrap_or_else(PoisonError::into_inner).insert(message.clone())
        };
        if is_new {
            self.emit(AgentEvent::Problem { message }).await;
        }
    }

    /// Tells whoever follows the run.
    pub async fn emit(&self, event: AgentEvent) {
        // Nobody need listen.
        let _ = self.events.send(event).await;
    }
}

impl std::fmt::Debug for Run {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Run")
            .field("session", &self.session)
            .field("agent", &self.agent)
            .finish_non_exhaustive()
    }
}
