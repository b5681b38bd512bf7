//! The tools by which a model loads skills.

mod arguments;
mod detail;
mod docs;
mod load;
mod loaded;
pub(crate) mod skill_tool;
mod unload;

pub(crate) use detail::{give as give_detail, text as detail_text};
pub(crate) use load::Opening;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use prowess_catalog::Snapshot;
use serde_json::{Map, Value, json};

use crate::dialect::{Dialect, ToolWords};
use crate::fork::ContextMode;
use crate::message::ToolCall;
use crate::outcome::ToolOutcome;
use crate::tool::{Effect, Invocation, Tool, ToolDeclaration, ToolFuture};
use arguments::CallArguments;

/// What a load tool takes, whatever a dialect calls it.
pub(crate) struct Spec {
    pub(crate) name: &'static str,
    pub(crate) parameters: &'static [Parameter],
    /// So many parameters, from the first, must be given.
    pub(crate) required: usize,
}

/// A parameter of a load tool.
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    kind: Kind,
}

enum Kind {
    Text,
    Texts,
    Flag,
    Choice(&'static [&'static str]),
    Object,
}

impl Kind {
    fn schema(&self) -> Value {
        match self {
            Self::Text => json!({"type": "string"}),
            Self::Texts => json!({"type": "array", "items": {"type": "string"}}),
            Self::Flag => json!({"type": "boolean"}),
            Self::Choice(words) => json!({"type": "string", "enum": words}),
            Self::Object => json!({"type": "object"}),
        }
    }
}

const fn parameter(name: &'static str, kind: Kind) -> Parameter {
    Parameter { name, kind }
}

const SKILL: Parameter = parameter("skill", Kind::Text);
const DOCS: Parameter = parameter("docs", Kind::Texts);
const ALL_DOCS: Parameter = parameter("include_all_docs", Kind::Flag);
const MODE: Parameter = parameter("mode", Kind::Choice(&["add", "replace", "clear"]));

/// The tool without which no skill can be loaded.
pub(crate) const LOAD: &str = "load_skill";

/// The tool that gives a resource of a skill.
pub(crate) const DETAIL: &str = "load_skill_detail";

type Run = for<'a> fn(
    Invocation<'a>,
    CallArguments<'a>,
) -> BoxFuture<'a, Result<ToolOutcome, ToolOutcome>>;

/// All load tools. Those that must see what the calls before them have loaded run in order.
static TOOLS: [(Spec, Effect, Run); 6] = [
    (
        Spec {
            name: LOAD,
            parameters: &[SKILL, DOCS, ALL_DOCS, parameter("arguments", Kind::Text)],
            required: 1,
        },
        Effect::State,
        |invocation, arguments| Box::pin(load::load(invocation, arguments)),
    ),
    (
        Spec { name: "unload_skill", parameters: &[SKILL], required: 1 },
        Effect::State,
        |invocation, arguments| Box::pin(unload::unload(invocation, arguments)),
    ),
    (
        Spec { name: "list_loaded_skills", parameters: &[], required: 0 },
        Effect::State,
        |invocation, _| Box::pin(loaded::list(invocation)),
    ),
    (
        Spec { name: "skill_list_docs", parameters: &[SKILL], required: 1 },
        Effect::None,
        |invocation, arguments| Box::pin(docs::list(invocation, arguments)),
    ),
    (
        Spec { name: "skill_select_docs", parameters: &[SKILL, DOCS, ALL_DOCS, MODE], required: 1 },
        Effect::State,
        |invocation, arguments| Box::pin(docs::select(invocation, arguments)),
    ),
    (
        Spec { name: DETAIL, parameters: &[SKILL, parameter("resource", Kind::Text)], required: 2 },
        Effect::State,
        |invocation, arguments| Box::pin(detail::detail(invocation, arguments)),
    ),
];

/// The one tool through which the tools of all skills can be called. It does nothing itself: the
/// dispatcher looks through it.
pub(crate) static GENERIC: Spec = Spec {
    name: "skill_tool",
    parameters: &[SKILL, parameter("tool", Kind::Text), parameter("arguments", Kind::Object)],
    required: 2,
};

fn specs() -> impl Iterator<Item = &'static Spec> {
    TOOLS.iter().map(|(spec, ..)| spec).chain([&GENERIC])
}

/// What a load tool of this name takes.
pub(crate) fn spec(name: &str) -> Option<&'static Spec> {
    specs().find(|spec| spec.name == name)
}

/// Their own names.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    specs().map(|spec| spec.name)
}

impl Spec {
    /// What a model is told, in the words of a dialect.
    pub(crate) fn declaration(&self, words: &ToolWords) -> ToolDeclaration {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (at, parameter) in self.parameters.iter().enumerate() {
            let Some(own) = words.parameters.get(parameter.name) else { continue };
            let mut schema = parameter.kind.schema();
            schema["description"] = json!(own.description);
            properties.insert(own.name.clone(), schema);
            required.extend((at < self.required).then_some(own.name.as_str()));
        }
        let mut schema = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        ToolDeclaration::new(&words.name, &words.description, schema)
    }
}

/// The load tools that a dialect has.
pub(crate) fn load_tools(dialect: &Dialect) -> Vec<Arc<dyn Tool>> {
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    for (spec, effect, run) in &TOOLS {
        let Some(words) = dialect.words(spec.name) else { continue };
        let declaration = spec.declaration(words);
        let (words, effect, run) = (words.clone(), *effect, *run);
        let is_load = spec.name == LOAD;
        tools.push(Arc::new(LoadTool { declaration, words, effect, run, is_load }));
    }
    tools
}

struct LoadTool {
    declaration: ToolDeclaration,
    words: ToolWords,
    effect: Effect,
    run: Run,
    is_load: bool,
}

impl LoadTool {
    /// Whether a call runs a skill in a sub-agent: that changes nothing here, and takes its time.
    fn forks(&self, call: &ToolCall, snapshot: &Snapshot) -> bool {
        let named = || CallArguments::new(&self.words, &call.arguments).ok()?.skill().ok();
        let is_fork = |name: String| snapshot.get(&name).ok().and_then(ContextMode::of).is_some();
        self.is_load && named().is_some_and(is_fork)
    }
}

impl Tool for LoadTool {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn effect(&self, call: &ToolCall, snapshot: &Snapshot) -> Effect {
        match self.forks(call, snapshot) {
            true => Effect::None,
            false => self.effect,
        }
    }

    fn call<'a>(&'a self, invocation: Invocation<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let arguments = CallArguments::new(&self.words, &invocation.call.arguments);
            let outcome = match arguments {
                Ok(arguments) => (self.run)(invocation, arguments).await,
                Err(invalid) => Err(invalid),
            };
            outcome.unwrap_or_else(|failure| failure)
        })
    }
}
