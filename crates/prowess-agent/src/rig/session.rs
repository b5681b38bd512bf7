//! A session as a hook of rig.

use std::sync::{Arc, PoisonError};

use prowess_runtime::{
    AgentName, Message, ModelOverride, PromptRequest, RuntimeError, SessionKey, TurnRequest,
};
use rig_agent::agent::{
    AgentHook, DispatchAction, DispatchEvent, HookContext, OutcomeAction, OutcomeEvent, RunSettled,
    RunStart, RunStartAction, SettledOutcome, StepEventKind,
};
use rig_core::completion::{CompletionRequest, Message as RigMessage};
use rig_core::effect::EffectKind;
use rig_core::error::{ErrorKind, ErrorReport};
use rig_core::message::UserContent;

use super::request::{held, prompted};
use super::skills::Shared;
use super::tools::{Seen, Ticket};

/// The kind of the entries by which a run of rig tells of problems, such as a pinned skill that is
/// not there.
pub const PROBLEM: &str = "prowess.problem";

/// A session as a hook of rig. A run begins a turn; each request gets the listing, the tools of the
/// moment and the text of loaded skills; each tool call goes to the dispatcher.
///
/// What it does to a request it does where hooks see the request itself, so that the preamble and
/// the changes of other hooks stay. Add hooks that ask somebody for approval beside it: a call that
/// they deny does not run.
#[derive(Clone, Debug)]
pub struct RigSession {
    shared: Arc<Shared>,
    session: SessionKey,
    agent: AgentName,
    turn: TurnRequest,
}

impl RigSession {
    pub(super) fn new(shared: Arc<Shared>, session: SessionKey) -> Self {
        Self { shared, session, agent: AgentName::default(), turn: TurnRequest::new() }
    }

    /// For another agent than `main`. Agents of one session have states of their own.
    pub fn with_agent(mut self, agent: AgentName) -> Self {
        self.agent = agent;
        self
    }

    /// What a turn begins with besides the prompt: skills that are to be loaded, or to stay.
    pub fn with_turn(mut self, turn: TurnRequest) -> Self {
        self.turn = turn;
        self
    }

    /// Begins a turn: the prompt, with what is said before it.
    async fn begin(
        &self,
        context: &HookContext,
        prompt: &RigMessage,
    ) -> Result<Option<RigMessage>, RuntimeError> {
        let request = self.turn.clone().with_message(Message::user(text_of(prompt)));
        let turn = self.shared.runtime.begin_turn(&self.session, &self.agent, request).await?;
        for problem in &turn.problems {
            tell(context, problem);
        }
        let before = turn.messages.split_last().map(|(_, before)| before).unwrap_or_default();
        if before.is_empty() {
            return Ok(None);
        }
        // rig keeps the prompt in its history: what is said before it stays where it was said.
        let mut content: Vec<UserContent> =
            before.iter().map(|message| UserContent::text(message.text())).collect();
        match prompt {
            RigMessage::User { content: own } => content.extend(own.iter().cloned()),
            other => content.push(UserContent::text(text_of(other))),
        }
        Ok(Some(RigMessage::User { content }))
    }

    /// The request as a model is sent it.
    async fn complete(
        &self,
        context: &HookContext,
        request: CompletionRequest,
    ) -> Result<CompletionRequest, RuntimeError> {
        let Shared { runtime, names, .. } = &*self.shared;
        let stored = runtime.sessions().messages(&self.session, &self.agent).await?;
        let held = held(stored, &request.chat_history);
        let mut asked = PromptRequest::new().with_transcript(held.clone());
        asked.system = request.system_instructions().map(str::to_owned);
        let prompt = runtime.request(&self.session, &self.agent, asked).await?;
        for problem in &prompt.problems {
            tell(context, problem);
        }
        let state = runtime.state(&self.session, &self.agent).await?;
        if let Some(ModelOverride { skill, model, .. }) = &state.model {
            tell(
                context,
                &format!(
                    "skill '{skill}' asks for the model '{model}'; the models of an agent of rig are \
                     its own, and the one that it has goes on"
                ),
            );
        }
        let request = prompted(request, &held, &prompt, names);
        *seen(context).lock().unwrap_or_else(PoisonError::into_inner) = held;
        Ok(request)
    }

    /// A call that is about to be served.
    fn admit(
        &self,
        context: &HookContext,
        event: &DispatchEvent<'_>,
        name: &str,
    ) -> DispatchAction {
        let Some(call) = event.call_id else { return DispatchAction::proceed() };
        if !self.shared.names.contains(name) {
            return DispatchAction::skip(format!(
                "Error: Tool '{name}' was given to the agent after its skills; it is not callable."
            ));
        }
        let ticket = Ticket {
            session: self.session.clone(),
            agent: self.agent.clone(),
            call_id: call.to_string(),
            seen: seen(context),
        };
        match self.shared.issue(event.id, ticket) {
            true => DispatchAction::proceed(),
            false => DispatchAction::skip(format!(
                "Error: Whose call of '{name}' this is cannot be told: the run has two sessions, or \
                 agents share their tools."
            )),
        }
    }
}

impl AgentHook for RigSession {
    fn name(&self) -> Option<String> {
        Some("prowess".to_owned())
    }

    async fn on_run_start(&self, context: &HookContext, event: RunStart<'_>) -> RunStartAction {
        match self.begin(context, event.prompt).await {
            Ok(None) => RunStartAction::continue_run(),
            Ok(Some(prompt)) => RunStartAction::rewrite(prompt),
            Err(error) => RunStartAction::stop(format!("the turn cannot begin: {error}")),
        }
    }

    async fn on_dispatch(&self, context: &HookContext, event: DispatchEvent<'_>) -> DispatchAction {
        match event.kind {
            EffectKind::Completion { request, stream } => {
                match self.complete(context, request.clone()).await {
                    Ok(request) => {
                        DispatchAction::patch(EffectKind::Completion { request, stream: *stream })
                    }
                    Err(error) => DispatchAction::deny(ErrorReport::new(
                        ErrorKind::Request,
                        format!("the request cannot be made: {error}"),
                    )),
                }
            }
            EffectKind::ToolCall { name, .. } => self.admit(context, &event, name),
            _ => DispatchAction::proceed(),
        }
    }

    async fn on_outcome(&self, _: &HookContext, event: OutcomeEvent<'_>) -> OutcomeAction {
        self.shared.withdraw(event.id, &self.session, &self.agent);
        OutcomeAction::proceed()
    }

    async fn on_run_settled(&self, context: &HookContext, event: RunSettled<'_>) {
        let SettledOutcome::Response(response) = event.outcome else { return };
        let said = response.output();
        if said.is_empty() {
            return;
        }
        let said = vec![Message::assistant(said)];
        if let Err(error) = self.shared.runtime.append(&self.session, &self.agent, said).await {
            tell(context, &format!("what the model said last is not in the transcript: {error}"));
        }
    }

    fn observes(&self, kind: StepEventKind) -> bool {
        matches!(
            kind,
            StepEventKind::RunStart
                | StepEventKind::RunSettled
                | StepEventKind::CompletionDispatch
                | StepEventKind::ToolDispatch
        )
    }
}

/// The conversation of a run as the engine knows it.
fn seen(context: &HookContext) -> Seen {
    let pad = context.scratchpad();
    pad.get::<Seen>().unwrap_or_else(|| {
        let seen = Seen::default();
        pad.insert(Arc::clone(&seen));
        seen
    })
}

/// Tells of a problem, once in a run.
fn tell(context: &HookContext, problem: &str) {
    if context.entries(PROBLEM).iter().any(|entry| entry.value == problem) {
        return;
    }
    tracing::warn!(problem, "prowess.rig");
    // A text can always be written as JSON.
    let _ = context.append_entry(PROBLEM, &problem);
}

/// The text of a message.
fn text_of(message: &RigMessage) -> String {
    match message {
        RigMessage::System { content } => content.clone(),
        RigMessage::User { content } => {
            let texts = content.iter().filter_map(|content| match content {
                UserContent::Text(text) => Some(text.text.as_str()),
                _ => None,
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        RigMessage::Assistant(said) => {
            let texts = said.content.iter().filter_map(|content| match content {
                rig_core::message::AssistantContent::Text(text) => Some(text.text.as_str()),
                _ => None,
            });
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}
