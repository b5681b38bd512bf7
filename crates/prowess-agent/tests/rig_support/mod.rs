//! What the tests of rig share.
#![allow(dead_code, reason = "not every test file uses all of it")]

use std::sync::Arc;

use prowess_agent::rig::RigSkills;
use prowess_catalog::{Catalog, MemorySource};
use prowess_runtime::{
    Runtime, RuntimeBuilder, SessionKey, Settings, Tool, ToolDeclaration, ToolOutcome, tool_fn,
};
use rig_agent::test_utils::MockAddTool;
use rig_agent::{Agent, AgentBuilder};
use rig_core::completion::{CompletionRequest, Message};
use rig_core::message::{ToolResult, UserContent};
use rig_core::test_utils::{MockCompletionModel, MockTurn};
use serde_json::{Value, json};

pub(crate) const SHOP: &str = "---\nname: shop\ndescription: Looks at orders.\nallowed-tools: \
                               orders\ntool_configs:\n  - name: orders\n    method: orders\n---\nAsk for orders first.\n";
pub(crate) const GREET: &str =
    "---\nname: greet\ndescription: Greets people.\n---\nSay: good day.\n";

pub(crate) fn session(name: &str) -> SessionKey {
    name.parse().unwrap()
}

/// A tool that a skill brings.
pub(crate) fn orders() -> Arc<dyn Tool> {
    let declaration = ToolDeclaration::new("orders", "All orders.", json!({"type": "object"}));
    tool_fn(declaration, |_| async { ToolOutcome::text("three orders") })
}

pub(crate) fn builder() -> RuntimeBuilder {
    let source = MemorySource::new("memory").with_skill("shop", SHOP).with_skill("greet", GREET);
    Runtime::builder(Catalog::builder().source(source).build()).tool(orders())
}

pub(crate) fn runtime(settings: Settings) -> Runtime {
    builder().settings(settings).build().unwrap()
}

/// An agent as somebody has it who knows nothing of skills, and what its model is asked.
pub(crate) fn owned(turns: impl IntoIterator<Item = MockTurn>) -> (Agent, MockCompletionModel) {
    let model = MockCompletionModel::from_turns(turns);
    let agent = AgentBuilder::new(model.clone())
        .preamble("You are a clerk.")
        .tool(MockAddTool)
        .default_max_turns(20)
        .build();
    (agent, model)
}

/// The same with skills.
pub(crate) fn skilled(
    settings: Settings,
    turns: impl IntoIterator<Item = MockTurn>,
) -> (Agent, MockCompletionModel, RigSkills) {
    let (agent, model) = owned(turns);
    let skills = RigSkills::attach(&runtime(settings), &agent).unwrap();
    (agent, model, skills)
}

pub(crate) fn load(id: &str, skill: &str) -> MockTurn {
    call(id, "load_skill", json!({"skill": skill}))
}

pub(crate) fn call(id: &str, tool: &str, arguments: Value) -> MockTurn {
    MockTurn::tool_call(id, tool, arguments)
}

pub(crate) fn add(id: &str) -> MockTurn {
    call(id, "add", json!({"x": 40, "y": 2}))
}

pub(crate) fn done() -> MockTurn {
    MockTurn::text("Done.")
}

pub(crate) fn system(request: &CompletionRequest) -> &str {
    request.system_instructions().unwrap_or_default()
}

pub(crate) fn tools(request: &CompletionRequest) -> Vec<&str> {
    request.tools.iter().map(|tool| tool.name.as_str()).collect()
}

pub(crate) fn results(request: &CompletionRequest) -> Vec<&ToolResult> {
    let content = request.chat_history.iter().flat_map(|message| match message {
        Message::User { content } => content.as_slice(),
        _ => &[],
    });
    let mut results = Vec::new();
    for content in content {
        if let UserContent::ToolResult(result) = content {
            results.push(result);
        }
    }
    results
}

/// What the calls of a request were answered, and whether that is an error.
pub(crate) fn answers(request: &CompletionRequest) -> Vec<(String, bool)> {
    let text = |result: &ToolResult| {
        let texts = result.content.iter().map(|content| match content.as_text() {
            Some(text) => text.to_owned(),
            None => content.as_json().map(Value::to_string).unwrap_or_default(),
        });
        texts.collect::<String>()
    };
    results(request).into_iter().map(|result| (text(result), result.is_error)).collect()
}

/// The answers in the last request.
pub(crate) fn last_answers(model: &MockCompletionModel) -> Vec<(String, bool)> {
    answers(model.requests().last().unwrap())
}
