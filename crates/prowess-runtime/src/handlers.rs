//! What a host offers to the tools and resources that skills declare.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use prowess_format::ArgumentKind;
use serde_json::Value;

use crate::outcome::ToolOutcome;
use crate::tool::{Invocation, ToolFuture};

/// A function of the host. A skill binds a tool or a dynamic resource to it by its name, the
/// `method` of an entry in `tool_configs` or `resource_configs`.
///
/// Like a tool it never fails: what goes wrong is an outcome that the model can act on.
pub trait Handler: Send + Sync + 'static {
    /// What it takes. A skill that declares another argument, or lacks one that must be given, is
    /// not used.
    fn parameters(&self) -> &[Parameter];

    /// Does it. The arguments of the call fit what the skill declares, with its defaults put in.
    fn call<'a>(&'a self, invocation: Invocation<'a>) -> ToolFuture<'a>;
}

/// Something that a [`Handler`] takes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parameter {
    /// What it is called.
    pub name: String,
    /// Its type.
    pub kind: ArgumentKind,
    /// Whether the handler can do without it.
    pub presence: Presence,
}

/// Whether something must be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It must.
    Required,
    /// It need not.
    Optional,
}

impl Parameter {
    /// One that must be given.
    pub fn required(name: impl Into<String>, kind: ArgumentKind) -> Self {
        Self { name: name.into(), kind, presence: Presence::Required }
    }

    /// One that need not be given.
    pub fn optional(name: impl Into<String>, kind: ArgumentKind) -> Self {
        Self { name: name.into(), kind, presence: Presence::Optional }
    }
}

/// A table of handlers, for one skill or for all of them.
///
/// ```
/// use prowess_format::ArgumentKind;
/// use prowess_runtime::{Handlers, Parameter, ToolOutcome};
///
/// let input = Parameter::required("input", ArgumentKind::String);
/// let handlers = Handlers::for_skill("my_skill")
///     .method("do_something", [input], |arguments| async move {
///         ToolOutcome::text(format!("Processed: {}", arguments["input"].as_str().unwrap_or_default()))
///     })
///     .method("get_dynamic_data", [], |_| async { ToolOutcome::text("as of now") })
///     .opening(|_| async { ToolOutcome::text("## My Skill Activated") });
/// # let _ = handlers;
/// ```
#[derive(Clone, Default)]
pub struct Handlers {
    pub(crate) skill: Option<String>,
    pub(crate) methods: BTreeMap<String, Arc<dyn Handler>>,
    pub(crate) opening: Option<Arc<dyn Handler>>,
}

impl Handlers {
    /// A table that only the skill of this name can use.
    pub fn for_skill(skill: impl Into<String>) -> Self {
        Self { skill: Some(skill.into()), ..Self::default() }
    }

    /// A table that every trusted skill can use.
    pub fn for_all() -> Self {
        Self::default()
    }

    /// Adds a handler, in the place of one of the same name.
    pub fn handler(mut self, method: impl Into<String>, handler: Arc<dyn Handler>) -> Self {
        self.methods.insert(method.into(), handler);
        self
    }

    /// Adds a handler made of a function from arguments to an outcome.
    pub fn method<F, Fut>(
        self,
        method: impl Into<String>,
        parameters: impl IntoIterator<Item = Parameter>,
        function: F,
    ) -> Self
    where
        F: Fn(Value) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ToolOutcome> + Send + 'static,
    {
        let parameters = parameters.into_iter().collect();
        self.handler(method, Arc::new(FunctionHandler { parameters, function }))
    }

    /// Says what stands above the body of the skill when it is loaded: what is known only then.
    /// The handler is given no arguments.
    pub fn opening_by(mut self, handler: Arc<dyn Handler>) -> Self {
        self.opening = Some(handler);
        self
    }

    /// The same, made of a function.
    pub fn opening<F, Fut>(self, function: F) -> Self
    where
        F: Fn(Value) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ToolOutcome> + Send + 'static,
    {
        self.opening_by(Arc::new(FunctionHandler { parameters: Vec::new(), function }))
    }
}

/// The tables of an engine. What was added later comes first, and what is for one skill comes
/// before what is for all.
#[derive(Clone)]
pub(crate) struct HandlerTable {
    tables: Arc<[Handlers]>,
}

impl HandlerTable {
    pub(crate) fn new(mut tables: Vec<Handlers>) -> Self {
        tables.reverse();
        tables.sort_by_key(|table| table.skill.is_none());
        Self { tables: tables.into() }
    }

    fn of<'a, 's: 'a>(&'s self, skill: &'a str) -> impl Iterator<Item = &'s Handlers> + 'a {
        let is_for = move |table: &&Handlers| table.skill.as_deref().is_none_or(|it| it == skill);
        self.tables.iter().filter(is_for)
    }

    /// The handler that a skill means by a method.
    pub(crate) fn method<'s>(&'s self, skill: &str, method: &str) -> Option<&'s Arc<dyn Handler>> {
        self.of(skill).find_map(|table| table.methods.get(method))
    }

    /// What stands above the body of a skill.
    pub(crate) fn opening<'s>(&'s self, skill: &str) -> Option<&'s Arc<dyn Handler>> {
        self.of(skill).find_map(|table| table.opening.as_ref())
    }

    /// The methods that a skill can use, by name.
    pub(crate) fn names(&self, skill: &str) -> Vec<String> {
        let names: BTreeSet<&String> = self.of(skill).flat_map(|it| it.methods.keys()).collect();
        names.into_iter().cloned().collect()
    }
}

impl std::fmt::Debug for Handlers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Handlers")
            .field("skill", &self.skill)
            .field("methods", &self.methods.keys())
            .field("opening", &self.opening.is_some())
            .finish()
    }
}

/// A handler made of a function.
struct FunctionHandler<F> {
    parameters: Vec<Parameter>,
    function: F,
}

impl<F, Fut> Handler for FunctionHandler<F>
where
    F: Fn(Value) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ToolOutcome> + Send + 'static,
{
    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    fn call<'a>(&'a self, invocation: Invocation<'a>) -> ToolFuture<'a> {
        Box::pin((self.function)(invocation.call.arguments.clone()))
    }
}
