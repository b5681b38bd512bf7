//! The loop: ask, carry out, ask again.

use std::any::Any;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use prowess_runtime::{
    CallLayer, Message, NextCall, Part, Role, RuntimeError, Step, ToolCall, ToolFuture,
    ToolOutcome, TurnRequest, Usage,
};
use tracing::Instrument;

use crate::agent::Inner;
use crate::error::AgentError;
use crate::event::{AgentEvent, StopReason};
use crate::middleware::{DynMiddleware, Flow, ModelCall, NextModel, NextTool};
use crate::model::{FinishReason, ModelError, ModelRequest, ModelResponse};
use crate::outcome::RunOutcome;
use crate::run::Run;
use crate::spans;

/// What a step came to.
enum Stepped {
    /// Its calls are answered; the model is asked again.
    On,
    /// It was the last one.
    Over(StopReason, Option<Message>),
}

impl Inner {
    /// Runs a turn to its end. Whatever happens, the stored transcript is one that a model can be
    /// asked to go on with.
    pub(crate) async fn run(
        &self,
        run: &Run,
        turn: Option<TurnRequest>,
    ) -> Result<RunOutcome, AgentError> {
        let span = spans::run(run);
        let work = async {
            // One engine runs a turn, from its beginning to its end.
            let hold = self.runtime.hold(&run.session).await?;
            let outcome = hold.during(self.run_inside(run, turn)).await;
            hold.release().await;
            outcome
        };
        let outcome = work.instrument(span.clone()).await;
        spans::ran(&span, &outcome);
        outcome
    }

    async fn run_inside(
        &self,
        run: &Run,
        turn: Option<TurnRequest>,
    ) -> Result<RunOutcome, AgentError> {
        let mut outcome = match turn {
            Some(request) => self.begin(run, request).await?,
            None => {
                let mut outcome = self.outcome(run).await?;
                if let Some(last) = self.last_word(run).await? {
                    outcome.stop = StopReason::Answered(FinishReason::Stop);
                    outcome.message = last;
                    return Ok(self.finish(run, outcome).await);
                }
                outcome
            }
        };
        for middleware in &self.middleware {
            tokio::select! {
                biased;
                done = middleware.before_agent(run) => done?,
                () = run.cancel.cancelled() => break,
            }
        }
        self.steps(run, &mut outcome).await?;
        outcome.usage = run.spent();
        for middleware in self.middleware.iter().rev() {
            middleware.after_agent(run, &mut outcome).await?;
        }
        Ok(self.finish(run, outcome).await)
    }

    async fn begin(&self, run: &Run, request: TurnRequest) -> Result<RunOutcome, AgentError> {
        let turn = self.runtime.begin_turn(&run.session, &run.agent, request).await?;
        run.emit(AgentEvent::TurnBegan { turn: turn.number }).await;
        for message in turn.problems {
            run.problem(message).await;
        }
        self.outcome(run).await
    }

    /// An outcome that nothing has come of yet.
    async fn outcome(&self, run: &Run) -> Result<RunOutcome, AgentError> {
        let turn = run.state().await?.turn;
        let (stop, usage) = (StopReason::Cancelled, Usage::default());
        Ok(RunOutcome { turn, stop, message: None, usage, steps: 0 })
    }

    /// What the model said last, if there is nothing to go on with: it has said its last word, or
    /// nobody has said anything.
    async fn last_word(&self, run: &Run) -> Result<Option<Option<Message>>, AgentError> {
        let store = self.runtime.sessions();
        let messages = store.messages(&run.session, &run.agent).await;
        let mut messages = messages.map_err(RuntimeError::from)?;
        Ok(match messages.pop() {
            None => Some(None),
            Some(last) if last.role == Role::Assistant => Some(Some(last)),
            Some(_) => None,
        })
    }

    async fn finish(&self, run: &Run, outcome: RunOutcome) -> RunOutcome {
        let RunOutcome { stop, usage, steps, .. } = outcome.clone();
        run.emit(AgentEvent::Finished { stop, usage, steps }).await;
        outcome
    }

    async fn steps(&self, run: &Run, outcome: &mut RunOutcome) -> Result<(), AgentError> {
        loop {
            outcome.stop = match () {
                () if run.cancel.is_cancelled() => StopReason::Cancelled,
                () if outcome.steps >= self.limits.max_steps => StopReason::StepLimit,
                () if run.is_over_budget() => StopReason::TokenLimit,
                () => match self.step(run, outcome).await? {
                    Stepped::On => continue,
                    Stepped::Over(stop, message) => {
                        outcome.message = message;
                        stop
                    }
                },
            };
            return Ok(());
        }
    }

    async fn step(&self, run: &Run, outcome: &mut RunOutcome) -> Result<Stepped, AgentError> {
        let step = outcome.steps + 1;
        // Nobody need listen: a model or a middleware that does not is left.
        let asked = tokio::select! {
            biased;
            asked = self.ask(run, step) => asked,
            () = run.cancel.cancelled() => Err(ModelError::Cancelled.into()),
        };
        let (mut response, flow) = match asked {
            Err(AgentError::Model(ModelError::Cancelled)) => {
                return Ok(Stepped::Over(StopReason::Cancelled, None));
            }
            response => response?,
        };
        outcome.steps = step;
        self.name_calls(run, &mut response.message).await;
        self.answered(run, outcome, response, flow).await
    }

    /// Asks the model.
    async fn ask(&self, run: &Run, step: usize) -> Result<(ModelResponse, Flow), AgentError> {
        let call = self.call(run, step).await?;
        let next = NextModel { run, rest: &self.middleware };
        let mut response = next.run(call).await?;
        let mut flow = Flow::Continue;
        for middleware in self.middleware.iter().rev() {
            flow = flow.max(middleware.after_model(run, &mut response).await?);
        }
        if flow == Flow::End {
            // Calls that nobody will answer were not made.
            response.message.parts.retain(|part| !matches!(part, Part::ToolCall(_)));
        }
        Ok((response, flow))
    }

    /// What the model is asked. Whoever changes the conversation meanwhile may have it made anew.
    async fn call(&self, run: &Run, step: usize) -> Result<ModelCall, AgentError> {
        /// So often a request is made anew.
        const ANEW: usize = 2;
        let mut left = ANEW;
        'anew: loop {
            let messages = {
                let mut conversation = run.conversation.lock().await;
                self.runtime.refresh(&mut conversation).await?
            };
            let request = ModelRequest::of(messages)
                .with_system(&run.system)
                .with_tools(self.runtime.host_tools())
                .with_options(self.options.clone())
                .with_cancel(run.cancel.clone());
            let mut call = ModelCall { model: Arc::clone(&self.model), request, step };
            for middleware in &self.middleware {
                middleware.before_model(run, &mut call).await?;
                if run.take_stale() && left > 0 {
                    left -= 1;
                    continue 'anew;
                }
            }
            return Ok(call);
        }
    }

    /// An answer is new, and so are its calls: those whose ids are empty or were used before get
    /// others, so that each is carried out, and the transcript is one that providers take.
    async fn name_calls(&self, run: &Run, message: &mut Message) {
        let mut taken: HashSet<String> = HashSet::new();
        let mut is_changed = false;
        {
            let conversation = run.conversation.lock().await;
            let mut number = conversation.answers();
            for part in &mut message.parts {
                let Part::ToolCall(call) = part else { continue };
                let stem = if call.id.is_empty() { "call".to_owned() } else { call.id.clone() };
                while call.id.is_empty()
                    || taken.contains(&call.id)
                    || conversation.is_answered(&call.id)
                {
                    number += 1;
                    call.id = format!("{stem}-{number}");
                    is_changed = true;
                }
                taken.insert(call.id.clone());
            }
        }
        if is_changed {
            let message = "the model gave calls ids that are empty or were used before; they got \
                           others";
            run.problem(message).await;
        }
    }

    /// Carries out what the model calls for, and commits what was said.
    async fn answered(
        &self,
        run: &Run,
        outcome: &mut RunOutcome,
        response: ModelResponse,
        flow: Flow,
    ) -> Result<Stepped, AgentError> {
        let ModelResponse { message, finish, .. } = response;
        let usage = message.usage;
        let step = outcome.steps;
        run.emit(AgentEvent::ModelAnswered { step, message: message.clone(), usage }).await;
        if message.tool_calls().next().is_none() {
            // A message without words is none.
            if !message.parts.is_empty() {
                let said = vec![message.clone()];
                let appended = self.runtime.append(&run.session, &run.agent, said).await?;
                run.conversation.lock().await.take_message(message.clone(), appended);
            }
            let stop = match flow {
                Flow::Continue => StopReason::Answered(finish),
                Flow::End => StopReason::Ended,
            };
            return Ok(Stepped::Over(stop, Some(message)));
        }
        let layer = ToolLayer { run, middleware: &self.middleware, limit: self.tool_timeout() };
        let work = Step::of(message.clone());
        let result =
            self.runtime.dispatch_layered(&run.session, &run.agent, work, Some(&layer)).await?;
        for (call, outcome) in message.tool_calls().zip(&result.outcomes) {
            let event = AgentEvent::ToolAnswered {
                call_id: call.id.clone(),
                tool: call.name.clone(),
                code: outcome.code.to_string(),
                is_error: outcome.is_error,
                content: outcome.content.clone(),
            };
            run.emit(event).await;
        }
        run.conversation.lock().await.take_step(&message, &result);
        if run.is_interrupted() {
            return Ok(Stepped::Over(StopReason::Ended, Some(message)));
        }
        outcome.message = Some(message);
        Ok(Stepped::On)
    }

    fn tool_timeout(&self) -> Duration {
        Duration::from_millis(self.limits.tool_timeout_ms)
    }
}

/// The middleware around a tool call, with the deadline and the cancellation outside of it.
struct ToolLayer<'r> {
    run: &'r Run,
    middleware: &'r [Arc<dyn DynMiddleware>],
    limit: Duration,
}

impl CallLayer for ToolLayer<'_> {
    fn caller(&self) -> Option<&(dyn Any + Send + Sync)> {
        Some(self.run)
    }

    fn call<'a>(&'a self, call: ToolCall, leaf: NextCall<'a>) -> ToolFuture<'a> {
        let Self { run, middleware, limit } = self;
        Box::pin(async move {
            run.emit(AgentEvent::ToolCalled { call: call.clone() }).await;
            let tool = call.name.clone();
            if run.cancel.is_cancelled() {
                let message = format!("Error: Tool '{tool}' was cancelled before it began.");
                return ToolOutcome::error("call_cancelled", message);
            }
            let next = NextTool { run, rest: middleware, leaf };
            // What has come of a call counts, however late somebody looks.
            tokio::select! {
                biased;
                outcome = next.run(call) => outcome,
                () = run.cancel.cancelled() => ToolOutcome::error(
                    "call_cancelled",
                    format!("Error: Tool '{tool}' was cancelled. Whether it had an effect is not known."),
                ),
                () = tokio::time::sleep(*limit) => ToolOutcome::error(
                    "tool_timeout",
                    format!("Error: Tool '{tool}' took longer than {} ms and was given up.", limit.as_millis()),
                )
                .with_hint("Ask for less at once, or go on without it."),
            }
        })
    }
}
