//! The blocking façade (S06, 3).

use std::sync::Arc;
use std::time::Duration;

use prowess::agent::{Agent, AgentEvent, Reply, ScriptedModel, StopReason};
use prowess::blocking::Runner;
use prowess::runtime::{ToolCall, ToolDeclaration, ToolOutcome, tool_fn};
use serde_json::json;

#[test]
fn turns_can_be_run_without_async_code() {
    let declaration = ToolDeclaration::new("wait", "Waits.", json!({"type": "object"}));
    let tool = tool_fn(declaration, |_| async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        ToolOutcome::text("waited")
    });
    let replies = [
        Reply::calls([ToolCall::new("1", "wait", json!({}))]),
        Reply::chunks(["Do", "ne."]),
        Reply::text("Again."),
    ];
    let model = Arc::new(ScriptedModel::new(replies));
    let runner = Runner::new("app", Agent::builder(model).tool(tool).build().unwrap()).unwrap();
    let mut said = String::new();
    let outcome = runner.run_with("alice", "1", "Go.", |event| {
        if let AgentEvent::Text { text } = event {
            said.push_str(&text);
        }
    });
    assert_eq!((outcome.unwrap().steps, said.as_str()), (2, "Done."));
    assert_eq!(runner.run("alice", "1", "And?").unwrap().text(), "Again.");
    assert_eq!(runner.resume("alice", "1").unwrap().text(), "Again.");
}

#[test]
fn whoever_is_told_may_block_and_call_the_runner_again() {
    let replies = [Reply::text("One."), Reply::text("Two.")];
    let agent = Agent::builder(Arc::new(ScriptedModel::new(replies))).build().unwrap();
    let runner = Runner::new("app", agent).unwrap();
    let mut said = Vec::new();
    let outcome = runner.run_with("alice", "1", "Go.", |event| {
        if matches!(event, AgentEvent::ModelAnswered { .. }) {
            said.push(runner.run("alice", "2", "Go.").unwrap().text());
        }
    });
    assert_eq!((outcome.unwrap().text().as_str(), said.as_slice()), ("One.", &["Two.".into()][..]));
}

#[test]
fn a_run_can_be_cancelled_from_another_thread() {
    let reply = Reply::text("Never.").after(Duration::from_secs(60));
    let agent = Agent::builder(Arc::new(ScriptedModel::new([reply]))).build().unwrap();
    let runner = Runner::new("app", agent).unwrap();
    let other = runner.clone();
    let run = std::thread::spawn(move || other.run("alice", "1", "Go."));
    while !runner.cancel("alice", "1") {
        std::thread::yield_now();
    }
    assert_eq!(run.join().unwrap().unwrap().stop, StopReason::Cancelled);
    runner.close();
    assert_eq!(runner.run("alice", "2", "Go.").unwrap_err().code(), "runner_closed");
}
