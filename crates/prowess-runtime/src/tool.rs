//! Tools: what the model can call.

use std::pin::Pin;
use std::sync::Arc;

use prowess_catalog::Snapshot;
use serde::Serialize;
use serde_json::Value;

use crate::engine::Engine;
use crate::handlers::Handlers;
use crate::message::ToolCall;
use crate::outcome::ToolOutcome;
use crate::session::{AgentName, SessionKey, SessionState};

/// A future that a tool returns.
pub type ToolFuture<'a> = Pin<Box<dyn Future<Output = ToolOutcome> + Send + 'a>>;

/// What a model is told about a tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolDeclaration {
    /// The name that it calls.
    pub name: String,
    /// What the tool does, and when to use it.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
}

impl ToolDeclaration {
    /// A tool of this name.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        Self { name: name.into(), description: description.into(), parameters }
    }
}

/// Whether a tool changes which skills are loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effect {
    /// It does: calls in one step run in their order.
    State,
    /// It does not: calls in one step run at the same time.
    #[default]
    None,
}

/// Something that the model can call.
///
/// A tool never fails: what goes wrong is an outcome that the model can act on.
pub trait Tool: Send + Sync + 'static {
    /// What the model is told about it.
    fn declaration(&self) -> &ToolDeclaration;

    /// Whether a call changes which skills are loaded.
    fn effect(&self, _call: &ToolCall, _snapshot: &Snapshot) -> Effect {
        Effect::None
    }

    /// Does it.
    fn call<'a>(&'a self, invocation: Invocation<'a>) -> ToolFuture<'a>;
}

/// A call on its way to a tool.
#[derive(Clone, Copy)]
pub struct Invocation<'a> {
    /// The session.
    pub session: &'a SessionKey,
    /// The agent.
    pub agent: &'a AgentName,
    /// Its state, with the changes of the calls before this one.
    pub state: &'a SessionState,
    /// The skills that it can see.
    pub snapshot: &'a Snapshot,
    /// The call.
    pub call: &'a ToolCall,
    pub(crate) engine: &'a Engine<'a>,
}

impl<'a> Invocation<'a> {
    /// Whoever makes the call, if that is a `T`: such as the run of an agent.
    pub fn caller<T: 'static>(&self) -> Option<&'a T> {
        self.engine.caller.and_then(|caller| caller.downcast_ref())
    }
}

impl std::fmt::Debug for Invocation<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Invocation")
            .field("session", self.session)
            .field("agent", self.agent)
            .field("call", self.call)
            .finish_non_exhaustive()
    }
}

/// A tool made of a function.
struct FunctionTool<F> {
    declaration: ToolDeclaration,
    function: F,
}

impl<F, Fut> Tool for FunctionTool<F>
where
    F: Fn(Value) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ToolOutcome> + Send + 'static,
{
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn call<'a>(&'a self, invocation: Invocation<'a>) -> ToolFuture<'a> {
        Box::pin((self.function)(invocation.call.arguments.clone()))
    }
}

/// A tool made of a function from arguments to an outcome.
///
/// ```
/// use prowess_runtime::{ToolDeclaration, ToolOutcome, tool_fn};
/// use serde_json::json;
///
/// let declaration = ToolDeclaration::new("now", "Says what time it is.", json!({"type": "object"}));
/// let tool = tool_fn(declaration, |_| async { ToolOutcome::text("half past nine") });
/// # let _ = tool;
/// ```
pub fn tool_fn<F, Fut>(declaration: ToolDeclaration, function: F) -> Arc<dyn Tool>
where
    F: Fn(Value) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ToolOutcome> + Send + 'static,
{
    Arc::new(FunctionTool { declaration, function })
}

/// A set of tools that belong together, and of functions that skills bind theirs to.
pub trait Toolkit: Send + Sync + 'static {
    /// Its tools.
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    /// What skills can bind the tools and dynamic resources to that they declare.
    fn handlers(&self) -> Vec<Handlers> {
        Vec::new()
    }
}

impl Toolkit for Handlers {
    fn handlers(&self) -> Vec<Handlers> {
        vec![self.clone()]
    }
}
