//! What the tests of sub-agents share.
#![allow(dead_code, reason = "not every test file uses all of it")]

use std::sync::Arc;

use futures_util::StreamExt;
use prowess_agent::{Agent, AgentEvent, ModelRequest, Reply, RunRequest, ScriptedModel};
use prowess_catalog::{Catalog, MemorySource};
use prowess_runtime::{Message, SessionKey, ToolCall};
use serde_json::{Value, json};

pub(crate) fn session() -> SessionKey {
    "test".parse().unwrap()
}

pub(crate) fn skill(name: &str, lines: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}.\n{lines}---\n{body}\n")
}

/// A catalog of skills: name, lines of frontmatter, body.
pub(crate) fn catalog(skills: &[(&str, &str, &str)]) -> Catalog {
    let add = |source: MemorySource, (name, lines, body): &(&str, &str, &str)| {
        source.with_skill(*name, skill(name, lines, body))
    };
    let source = skills.iter().fold(MemorySource::new("memory"), add);
    Catalog::builder().source(source).build()
}

pub(crate) fn load(id: &str, skill: &str) -> ToolCall {
    ToolCall::new(id, "load_skill", json!({"skill": skill}))
}

pub(crate) fn call(id: &str, tool: &str, arguments: Value) -> ToolCall {
    ToolCall::new(id, tool, arguments)
}

pub(crate) fn scripted(replies: impl IntoIterator<Item = Reply>) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::new(replies))
}

/// What a call was answered, as the model saw it.
pub(crate) fn answer(model: &ScriptedModel, call_id: &str) -> String {
    let requests = model.requests();
    let results = requests.iter().rev().flat_map(|request| request.messages.iter());
    let mut results = results.flat_map(Message::tool_results);
    let found = results.find(|it| it.call_id == call_id).map(|it| it.content.clone());
    found.unwrap_or_else(|| panic!("no answer to {call_id}"))
}

/// What is said in a request, role by role.
pub(crate) fn said(request: &ModelRequest) -> Vec<String> {
    let line = |message: &Message| {
        let calls: Vec<String> = message.tool_calls().map(|it| format!("call {}", it.id)).collect();
        let results: Vec<String> =
            message.tool_results().map(|it| format!("result {}", it.call_id)).collect();
        let text = message.text();
        let parts = [vec![text], calls, results].concat();
        let parts: Vec<String> = parts.into_iter().filter(|it| !it.is_empty()).collect();
        format!("{:?}: {}", message.role, parts.join(", "))
    };
    request.messages.iter().map(line).collect()
}

/// Runs a turn, and all that was told of it.
pub(crate) async fn events(agent: &Agent, message: &str) -> Vec<AgentEvent> {
    let mut stream = agent.stream(RunRequest::new(session(), message));
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(event);
    }
    stream.outcome().await.unwrap();
    events
}
