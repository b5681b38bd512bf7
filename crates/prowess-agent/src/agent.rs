//! Agents: a model, an engine, and what stands around them.

use std::sync::Arc;

use prowess_catalog::Catalog;
use prowess_runtime::{
    AgentName, Message, Narrowing, Runtime, RuntimeBuilder, SessionKey, Tool, TurnRequest,
};
use tokio_util::sync::CancellationToken;

use crate::error::AgentError;
use crate::limits::RunLimits;
use crate::middleware::{DynMiddleware, Middleware};
use crate::model::{ChatModel, ModelOptions};
use crate::outcome::RunOutcome;
use crate::stream::RunStream;

/// Asks a model, carries out what it calls for, and asks again, until it has said its last word.
/// Cheap to clone.
///
/// ```
/// use std::sync::Arc;
/// use prowess_agent::{Agent, Reply, RunRequest, ScriptedModel};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let model = Arc::new(ScriptedModel::new([Reply::text("Forty-two.")]));
/// let agent = Agent::builder(model).system("You are a clerk.").build()?;
/// let outcome = agent.run(RunRequest::new("demo".parse()?, "How many?")).await?;
/// assert_eq!(outcome.text(), "Forty-two.");
/// # Ok::<(), prowess_agent::AgentError>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Agent {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Clone)]
pub(crate) struct Inner {
    pub(crate) name: AgentName,
    pub(crate) model: Arc<dyn ChatModel>,
    pub(crate) options: ModelOptions,
    pub(crate) system: String,
    pub(crate) runtime: Runtime,
    pub(crate) middleware: Vec<Arc<dyn DynMiddleware>>,
    pub(crate) limits: RunLimits,
}

/// What an agent is asked to do.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunRequest {
    /// In which session.
    pub session: SessionKey,
    /// What the turn begins with.
    pub turn: TurnRequest,
    /// Ends the run early.
    pub cancel: CancellationToken,
}

impl RunRequest {
    /// The user says something.
    pub fn new(session: SessionKey, message: impl Into<String>) -> Self {
        Self::of(session, TurnRequest::new().with_message(Message::user(message)))
    }

    /// A turn with more than that.
    pub fn of(session: SessionKey, turn: TurnRequest) -> Self {
        Self { session, turn, cancel: CancellationToken::new() }
    }

    /// Can be ended early by this.
    pub fn with_cancel(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self
    }
}

impl Agent {
    /// Begins an agent that asks this model.
    pub fn builder(model: Arc<dyn ChatModel>) -> AgentBuilder {
        AgentBuilder {
            name: AgentName::default(),
            model,
            options: ModelOptions::default(),
            system: String::new(),
            engine: Runtime::builder(Catalog::builder().build()),
            middleware: Vec::new(),
            limits: RunLimits::default(),
        }
    }

    /// What it is called.
    pub fn name(&self) -> &AgentName {
        &self.inner.name
    }

    /// Its engine.
    pub fn runtime(&self) -> &Runtime {
        &self.inner.runtime
    }

    /// The same agent under another name: its sessions know nothing of those of this one.
    pub fn with_name(self, name: AgentName) -> Self {
        self.changed(|inner| inner.name = name)
    }

    /// The same agent with another model.
    pub fn with_model(self, model: Arc<dyn ChatModel>) -> Self {
        self.changed(|inner| inner.model = model)
    }

    /// The same agent whose model is told something else first.
    pub fn with_system(self, system: impl Into<String>) -> Self {
        self.changed(|inner| inner.system = system.into())
    }

    /// The same agent with fewer tools and skills.
    pub fn narrowed(self, narrowing: &Narrowing) -> Self {
        self.changed(|inner| inner.runtime = inner.runtime.narrowed(narrowing))
    }

    fn changed(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        change(Arc::make_mut(&mut self.inner));
        self
    }

    /// Runs a turn to its end.
    pub async fn run(&self, request: RunRequest) -> Result<RunOutcome, AgentError> {
        self.stream(request).outcome().await
    }

    /// Runs a turn, and tells what happens.
    pub fn stream(&self, request: RunRequest) -> RunStream {
        RunStream::begin(self, request.session, Some(request.turn), request.cancel)
    }

    /// Goes on with a turn that did not come to its end, from the last step that was committed,
    /// such as after a crash. A turn that did is not begun again.
    pub fn resume(&self, session: SessionKey, cancel: CancellationToken) -> RunStream {
        RunStream::begin(self, session, None, cancel)
    }
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.inner.middleware.iter().map(|it| it.name()).collect();
        formatter
            .debug_struct("Agent")
            .field("name", &self.inner.name)
            .field("model", &self.inner.model.name())
            .field("middleware", &names)
            .finish_non_exhaustive()
    }
}

/// Puts an [`Agent`] together.
pub struct AgentBuilder {
    name: AgentName,
    model: Arc<dyn ChatModel>,
    options: ModelOptions,
    system: String,
    engine: RuntimeBuilder,
    middleware: Vec<Arc<dyn DynMiddleware>>,
    limits: RunLimits,
}

impl AgentBuilder {
    /// Another name than `main`. Agents of one session have states of their own by their names.
    pub fn name(mut self, name: AgentName) -> Self {
        self.name = name;
        self
    }

    /// What the model is told first.
    pub fn system(mut self, system: impl Into<String>) -> Self {
        self.system = system.into();
        self
    }

    /// How the model is asked.
    pub fn options(mut self, options: ModelOptions) -> Self {
        self.options = options;
        self
    }

    /// Changes the engine: where sessions live, who sees events, tools of the host.
    pub fn engine(mut self, change: impl FnOnce(RuntimeBuilder) -> RuntimeBuilder) -> Self {
        self.engine = change(self.engine);
        self
    }

    /// Adds a tool.
    pub fn tool(self, tool: Arc<dyn Tool>) -> Self {
        self.engine(|engine| engine.tool(tool))
    }

    /// Adds a middleware inside those that are there.
    pub fn middleware(mut self, middleware: impl Middleware) -> Self {
        self.middleware.push(Arc::new(middleware));
        self
    }

    /// What bounds a run.
    pub fn limits(mut self, limits: RunLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The agent.
    pub fn build(self) -> Result<Agent, AgentError> {
        let contribute =
            |engine, middleware: &Arc<dyn DynMiddleware>| middleware.contribute(engine);
        let runtime = self.middleware.iter().fold(self.engine, contribute).build()?;
        let inner = Inner {
            name: self.name,
            model: self.model,
            options: self.options,
            system: self.system,
            runtime,
            middleware: self.middleware,
            limits: self.limits,
        };
        Ok(Agent { inner: Arc::new(inner) })
    }
}
