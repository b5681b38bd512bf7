//! What stands around a run, its model calls and its tool calls.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use prowess_runtime::{NextCall, RuntimeBuilder, SessionState, ToolCall, ToolFuture, ToolOutcome};

use crate::error::AgentError;
use crate::event::AgentEvent;
use crate::model::{ChatModel, Fold, ModelEvent, ModelRequest, ModelResponse};
use crate::outcome::RunOutcome;
use crate::run::Run;
use crate::spans;

/// Whether a run goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flow {
    /// It does.
    #[default]
    Continue,
    /// It ends here, with what the model has said.
    End,
}

/// Stands around a run, its model calls and its tool calls. The first one that is added is the
/// outermost: its `before_…` come first, its `after_…` last.
///
/// ```
/// use prowess_agent::{AgentError, Middleware, ModelCall, ModelResponse, NextModel, Run};
///
/// /// Asks a second time if the model fails.
/// struct TryTwice;
///
/// impl Middleware for TryTwice {
///     async fn wrap_model_call(
///         &self,
///         _run: &Run,
///         call: ModelCall,
///         next: NextModel<'_>,
///     ) -> Result<ModelResponse, AgentError> {
///         match next.run(call.clone()).await {
///             Err(AgentError::Model(error)) if error.is_retryable() => next.run(call).await,
///             answer => answer,
///         }
///     }
/// }
/// ```
pub trait Middleware: Send + Sync + 'static {
    /// What it is called in errors and traces.
    fn name(&self) -> &str {
        let name = std::any::type_name::<Self>();
        name.rsplit("::").next().unwrap_or(name)
    }

    /// What it brings to the engine: tools, interceptors, skills.
    fn contribute(&self, engine: RuntimeBuilder) -> RuntimeBuilder {
        engine
    }

    /// A run begins: the turn has begun, and nothing was asked yet.
    fn before_agent(&self, _run: &Run) -> impl Future<Output = Result<(), AgentError>> + Send {
        std::future::ready(Ok(()))
    }

    /// A model is about to be asked.
    fn before_model(
        &self,
        _run: &Run,
        _call: &mut ModelCall,
    ) -> impl Future<Output = Result<(), AgentError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Stands around the asking of a model.
    fn wrap_model_call(
        &self,
        _run: &Run,
        call: ModelCall,
        next: NextModel<'_>,
    ) -> impl Future<Output = Result<ModelResponse, AgentError>> + Send {
        next.run(call)
    }

    /// A model has answered, and nothing of it is committed yet.
    fn after_model(
        &self,
        _run: &Run,
        _response: &mut ModelResponse,
    ) -> impl Future<Output = Result<Flow, AgentError>> + Send {
        std::future::ready(Ok(Flow::Continue))
    }

    /// Stands around the call of a tool. Behind it are gate and policy: nothing goes past them.
    fn wrap_tool_call(
        &self,
        _run: &Run,
        call: ToolCall,
        next: NextTool<'_>,
    ) -> impl Future<Output = ToolOutcome> + Send {
        next.run(call)
    }

    /// A run has come to its end.
    fn after_agent(
        &self,
        _run: &Run,
        _outcome: &mut RunOutcome,
    ) -> impl Future<Output = Result<(), AgentError>> + Send {
        std::future::ready(Ok(()))
    }
}

/// A question to a model.
#[derive(Clone)]
pub struct ModelCall {
    /// Which model.
    pub model: Arc<dyn ChatModel>,
    /// What it is asked.
    pub request: ModelRequest,
    /// In which step of the run, from 1.
    pub step: usize,
}

impl ModelCall {
    /// Asks another model the same.
    pub fn with_model(mut self, model: Arc<dyn ChatModel>) -> Self {
        self.model = model;
        self
    }
}

impl std::fmt::Debug for ModelCall {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ModelCall")
            .field("model", &self.model.name())
            .field("request", &self.request)
            .field("step", &self.step)
            .finish()
    }
}

/// The rest of the way to a model. It can be gone again: to try again, or with another model.
#[derive(Clone, Copy)]
pub struct NextModel<'a> {
    pub(crate) run: &'a Run,
    pub(crate) rest: &'a [Arc<dyn DynMiddleware>],
}

impl<'a> NextModel<'a> {
    /// Goes on.
    pub fn run(self, call: ModelCall) -> BoxFuture<'a, Result<ModelResponse, AgentError>> {
        match self.rest.split_first() {
            Some((first, rest)) => first.wrap_model_call(self.run, call, Self { rest, ..self }),
            None => Box::pin(ask(self.run, call)),
        }
    }
}

/// Asks a model, and tells what it says while it says it.
async fn ask(run: &Run, call: ModelCall) -> Result<ModelResponse, AgentError> {
    let model = call.model.name().to_owned();
    run.emit(AgentEvent::ModelCalled { step: call.step, model }).await;
    let asking = async {
        let mut answer = call.model.stream(&call.request);
        let mut fold = Fold::new();
        while let Some(event) = answer.next().await {
            let event = event?;
            match &event {
                ModelEvent::Text { text } => {
                    run.emit(AgentEvent::Text { text: text.clone() }).await;
                }
                ModelEvent::Reasoning { text, .. } if !text.is_empty() => {
                    run.emit(AgentEvent::Reasoning { text: text.clone() }).await;
                }
                _ => {}
            }
            fold.push(&event);
        }
        fold.finish()
    };
    let response = spans::asking(run, &*call.model, asking).await?;
    run.spend(response.usage());
    Ok(response)
}

/// The rest of the way of a tool call. It can be gone again.
#[derive(Clone, Copy)]
pub struct NextTool<'a> {
    pub(crate) run: &'a Run,
    pub(crate) rest: &'a [Arc<dyn DynMiddleware>],
    pub(crate) leaf: NextCall<'a>,
}

impl<'a> NextTool<'a> {
    /// Goes on.
    pub fn run(self, call: ToolCall) -> ToolFuture<'a> {
        match self.rest.split_first() {
            Some((first, rest)) => first.wrap_tool_call(self.run, call, Self { rest, ..self }),
            None => self.leaf.run(call),
        }
    }

    /// The agent's state, with the changes of the calls before this one.
    pub fn state(self) -> &'a SessionState {
        self.leaf.state()
    }
}

/// A middleware behind a pointer.
pub(crate) trait DynMiddleware: Send + Sync + 'static {
    fn name(&self) -> &str;
    fn contribute(&self, engine: RuntimeBuilder) -> RuntimeBuilder;
    fn before_agent<'a>(&'a self, run: &'a Run) -> BoxFuture<'a, Result<(), AgentError>>;
    fn before_model<'a>(
        &'a self,
        run: &'a Run,
        call: &'a mut ModelCall,
    ) -> BoxFuture<'a, Result<(), AgentError>>;
    fn wrap_model_call<'a>(
        &'a self,
        run: &'a Run,
        call: ModelCall,
        next: NextModel<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse, AgentError>>;
    fn after_model<'a>(
        &'a self,
        run: &'a Run,
        response: &'a mut ModelResponse,
    ) -> BoxFuture<'a, Result<Flow, AgentError>>;
    fn wrap_tool_call<'a>(
        &'a self,
        run: &'a Run,
        call: ToolCall,
        next: NextTool<'a>,
    ) -> BoxFuture<'a, ToolOutcome>;
    fn after_agent<'a>(
        &'a self,
        run: &'a Run,
        outcome: &'a mut RunOutcome,
    ) -> BoxFuture<'a, Result<(), AgentError>>;
}

impl<M: Middleware> DynMiddleware for M {
    fn name(&self) -> &str {
        Middleware::name(self)
    }

    fn contribute(&self, engine: RuntimeBuilder) -> RuntimeBuilder {
        Middleware::contribute(self, engine)
    }

    fn before_agent<'a>(&'a self, run: &'a Run) -> BoxFuture<'a, Result<(), AgentError>> {
        Box::pin(Middleware::before_agent(self, run))
    }

    fn before_model<'a>(
        &'a self,
        run: &'a Run,
        call: &'a mut ModelCall,
    ) -> BoxFuture<'a, Result<(), AgentError>> {
        Box::pin(Middleware::before_model(self, run, call))
    }

    fn wrap_model_call<'a>(
        &'a self,
        run: &'a Run,
        call: ModelCall,
        next: NextModel<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse, AgentError>> {
        Box::pin(Middleware::wrap_model_call(self, run, call, next))
    }

    fn after_model<'a>(
        &'a self,
        run: &'a Run,
        response: &'a mut ModelResponse,
    ) -> BoxFuture<'a, Result<Flow, AgentError>> {
        Box::pin(Middleware::after_model(self, run, response))
    }

    fn wrap_tool_call<'a>(
        &'a self,
        run: &'a Run,
        call: ToolCall,
        next: NextTool<'a>,
    ) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(Middleware::wrap_tool_call(self, run, call, next))
    }

    fn after_agent<'a>(
        &'a self,
        run: &'a Run,
        outcome: &'a mut RunOutcome,
    ) -> BoxFuture<'a, Result<(), AgentError>> {
        Box::pin(Middleware::after_agent(self, run, outcome))
    }
}
