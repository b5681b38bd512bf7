//! Sub-agents at work: a run inside of a call of another run.

use futures_util::StreamExt;
use prowess_format::Digest;
use prowess_runtime::{
    AgentName, InvalidAgentName, Message, Role, RuntimeError, ToolResult, TurnRequest,
};

use crate::agent::{Agent, RunRequest};
use crate::error::AgentError;
use crate::event::{AgentEvent, StopReason};
use crate::outcome::RunOutcome;
use crate::run::Run;
use crate::stream::RunStream;

/// A sub-agent that is to do something for a call of a run.
pub(crate) struct Spawn<'a> {
    pub(crate) run: &'a Run,
    pub(crate) call_id: &'a str,
    /// Whom it is like; it gets a name of its own.
    pub(crate) agent: Agent,
    /// What its name begins with.
    pub(crate) label: &'a str,
    pub(crate) turn: TurnRequest,
}

/// What a sub-agent came to.
pub(crate) struct Spawned {
    /// The name that it had.
    pub(crate) name: AgentName,
    pub(crate) outcome: RunOutcome,
    /// What it said and was answered, in order.
    pub(crate) messages: Vec<Message>,
}

/// Why a sub-agent did not come to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpawnError {
    #[error("at most {limit} sub-agents may stand inside one another")]
    TooDeep { limit: usize },
    #[error("{}", cause_of(.0))]
    Interrupted(StopReason),
    #[error(transparent)]
    Failed(#[from] AgentError),
    #[error(transparent)]
    Name(#[from] InvalidAgentName),
}

fn cause_of(stop: &StopReason) -> &'static str {
    match stop {
        StopReason::Cancelled => "it was cancelled",
        StopReason::StepLimit => "it took as many steps as it may",
        StopReason::TokenLimit => "it took as many tokens as it may",
        StopReason::Ended => "it was interrupted",
        StopReason::Answered(_) => "it was done",
    }
}

impl Spawned {
    /// What it said, message by message.
    pub(crate) fn results(&self) -> Vec<String> {
        let said = self.messages.iter().filter(|message| message.role == Role::Assistant);
        said.map(Message::text).filter(|text| !text.trim().is_empty()).collect()
    }
}

impl Spawn<'_> {
    /// Runs it to its end. What it costs, the run pays; what happens, whoever follows the run is
    /// told; whoever cancels the run cancels it.
    pub(crate) async fn run(self) -> Result<Spawned, SpawnError> {
        let Self { run, call_id, .. } = self;
        let limit = run.notes.max_depth;
        if run.depth() >= limit {
            return Err(SpawnError::TooDeep { limit });
        }
        let name = self.name().await?;
        let agent = self.agent.with_name(name.clone());
        let request =
            RunRequest::of(run.session.clone(), self.turn).with_cancel(run.cancel.child_token());
        let mut stream = RunStream::inside(&agent, request, &run.notes);
        let mut messages = Vec::new();
        while let Some(event) = stream.next().await {
            messages.extend(told(&event));
            let (agent, call_id) = (name.to_string(), call_id.to_owned());
            let event = Box::new(event);
            run.emit(AgentEvent::SubAgent { call_id, agent, event }).await;
        }
        let outcome = stream.outcome().await?;
        match outcome.stop {
            StopReason::Answered(_) => Ok(Spawned { name, outcome, messages }),
            stop => {
                if stop == StopReason::Ended {
                    // Whoever interrupts a sub-agent interrupts whoever waits for it.
                    run.interrupt();
                }
                Err(SpawnError::Interrupted(stop))
            }
        }
    }

    /// A name that no agent of the session has: the label, and what identifies the call.
    async fn name(&self) -> Result<AgentName, SpawnError> {
        let Self { run, call_id, label, agent, .. } = self;
        let of_call = Digest::of(format!("{}\0{call_id}", run.agent).as_bytes()).hex();
        let is_plain = |c: &char| !matches!(c, '/' | '>') && !c.is_control();
        let label: String = label.chars().filter(is_plain).take(24).collect();
        let base = format!("{label}~{}", &of_call[..8]);
        let sessions = agent.runtime().sessions();
        let stored = sessions.get(&run.session).await.map_err(RuntimeError::from);
        let taken = stored.map_err(AgentError::from)?.unwrap_or_default().session.agents;
        let mut name = agent.name().sub_agent(&base)?;
        let mut number = 1;
        while taken.contains_key(&name) {
            number += 1;
            name = agent.name().sub_agent(&format!("{base}-{number}"))?;
        }
        Ok(name)
    }
}

/// What is said in an event.
fn told(event: &AgentEvent) -> Option<Message> {
    match event {
        AgentEvent::ModelAnswered { message, .. } => Some(message.clone()),
        AgentEvent::ToolAnswered { call_id, tool, content, is_error, .. } => {
            let mut result = ToolResult::new(call_id, tool, content);
            result.is_error = *is_error;
            Some(Message::answering(result))
        }
        _ => None,
    }
}
