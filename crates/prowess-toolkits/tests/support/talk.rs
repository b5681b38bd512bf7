//! Talking with commands that run.

use std::fs;
use std::time::Duration;

use prowess_runtime::ToolOutcome;
use prowess_toolkits::SessionSettings;
use serde_json::{Value, json};

use super::{Plan, World, shown};

pub(crate) fn plan() -> Plan {
    Plan::new().settings(|it| it.with_interactive(true))
}

pub(crate) fn sessions(change: impl FnOnce(&mut SessionSettings)) -> Plan {
    let mut settings = SessionSettings::default();
    change(&mut settings);
    plan().settings(|it| it.with_sessions(settings))
}

pub(crate) async fn loaded(plan: Plan) -> World {
    let world = plan.build();
    world.load("demo").await;
    world
}

pub(crate) fn with(mut arguments: Value, more: Value) -> Value {
    if let (Some(all), Value::Object(more)) = (arguments.as_object_mut(), more) {
        all.extend(more);
    }
    arguments
}

/// A session of a world.
pub(crate) struct Talk<'a> {
    pub(crate) world: &'a World,
    pub(crate) id: String,
    /// What the last call has shown.
    pub(crate) last: Value,
    /// All that was shown.
    pub(crate) text: String,
}

impl<'a> Talk<'a> {
    pub(crate) async fn start(world: &'a World, command: &str, more: Value) -> Talk<'a> {
        let arguments = with(json!({"skill": "demo", "command": command}), more);
        let last = shown(&world.call("skill_exec", arguments).await);
        let id = last["session_id"].as_str().unwrap().to_owned();
        let text = last["output"].as_str().unwrap().to_owned();
        Self { world, id, last, text }
    }

    pub(crate) async fn call(&mut self, tool: &str, more: Value) -> ToolOutcome {
        let arguments = with(json!({"session_id": self.id}), more);
        let outcome = self.world.call(tool, arguments).await;
        if !outcome.is_error {
            self.last = shown(&outcome);
            self.text.push_str(self.last["output"].as_str().unwrap_or_default());
        }
        outcome
    }

    /// Writes a line.
    pub(crate) async fn say(&mut self, line: &str) {
        let outcome = self.call("skill_write_stdin", json!({"chars": line, "submit": true})).await;
        assert!(!outcome.is_error, "{}", outcome.content);
    }

    pub(crate) async fn poll(&mut self) -> ToolOutcome {
        self.call("skill_poll_session", json!({"yield_ms": 200})).await
    }

    /// Asks until it has shown this.
    pub(crate) async fn shows(&mut self, text: &str) {
        for _ in 0..200 {
            if self.text.contains(text) {
                return;
            }
            self.poll().await;
        }
        panic!("no {text:?} in {:?}", self.text);
    }

    /// Asks until it has ended.
    pub(crate) async fn end(&mut self) {
        for _ in 0..200 {
            if self.last["status"] == "exited" {
                return;
            }
            self.poll().await;
        }
        panic!("it runs: {}", self.last);
    }

    pub(crate) async fn kill(&mut self) -> Value {
        shown(&self.call("skill_kill_session", json!({})).await)
    }
}

/// Whether a process is there whose arguments hold this text.
pub(crate) fn is_running(text: &str) -> bool {
    fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains(text)
    })
}

pub(crate) async fn eventually(mut holds: impl FnMut() -> bool) -> bool {
    for _ in 0..1000 {
        if holds() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}
