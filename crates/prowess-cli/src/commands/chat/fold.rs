//! What people are shown of a turn: what the model says, and one line for everything else.

use std::collections::HashMap;

use prowess_agent::{AgentEvent, FinishReason, StopReason};
use prowess_runtime::{ToolCall, Usage};
use serde_json::Value;

use crate::report::counted;
use crate::terminal::{safe, safe_line};
use crate::words::{cut, grouped, size};

/// Something that is shown. Lines are safe for a terminal; what the model says is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// A bit of what the model says.
    Text(String),
    /// Something is being done.
    Busy(String),
    /// What came of a call.
    Called(String),
    /// A call that failed.
    Failed(String),
    /// Something is not as it should be.
    Warning(String),
    /// Something beside the matter: thoughts, figures.
    Aside(String),
}

/// Something that was shown in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Folded {
    title: String,
    text: String,
}

/// So many lines of something are shown when it is unfolded…
pub(super) const MOST_LINES: usize = 200;
/// …and so many characters of each.
const MOST_CHARACTERS: usize = 2_000;
/// So many things of a turn can be unfolded.
const MOST_FOLDED: usize = 100;

/// A turn on its way to somebody who reads it.
#[derive(Debug)]
pub(super) struct Fold {
    width: usize,
    calls: HashMap<String, ToolCall>,
    thought: String,
    folded: Vec<Folded>,
}

impl Fold {
    /// Lines have at most so many characters.
    pub(super) fn new(width: usize) -> Self {
        Self { width, calls: HashMap::new(), thought: String::new(), folded: Vec::new() }
    }

    /// What is shown of an event.
    pub(super) fn take(&mut self, event: &AgentEvent) -> Vec<Shown> {
        if let AgentEvent::Reasoning { text } = event {
            self.thought.push_str(text);
            return Vec::new();
        }
        if let AgentEvent::SubAgent { agent, event, .. } = event {
            return self.inside(agent, event).into_iter().collect();
        }
        let mut shown = Vec::new();
        match event {
            AgentEvent::ModelCalled { .. } => shown.push(Shown::Busy("thinking".to_owned())),
            AgentEvent::ToolCalled { call } => {
                let line = title(call);
                self.calls.insert(call.id.clone(), call.clone());
                shown.push(Shown::Busy(cut(&line, self.width.saturating_sub(4))));
            }
            event => {
                shown.extend(self.thought());
                shown.extend(self.rest(event));
            }
        }
        shown
    }

    /// What is shown of what a sub-agent does: its calls. What it says comes back as a result.
    fn inside(&mut self, agent: &str, event: &AgentEvent) -> Option<Shown> {
        let label = agent.rsplit('>').next().unwrap_or(agent);
        let label = safe_line(label.split('~').next().unwrap_or(label));
        match event {
            AgentEvent::ModelCalled { .. } => Some(Shown::Busy(format!("{label}: thinking"))),
            AgentEvent::ToolCalled { call } => {
                let line = format!("{label} › {}", title(call));
                self.calls.insert(format!("{agent}/{}", call.id), call.clone());
                Some(Shown::Busy(cut(&line, self.width.saturating_sub(4))))
            }
            AgentEvent::ToolAnswered { call_id, tool, code, is_error, content } => {
                let call = self.calls.remove(&format!("{agent}/{call_id}"));
                let title = call.map_or_else(|| safe_line(tool), |call| title(&call));
                Some(self.answer(format!("{label} › {title}"), code, *is_error, content))
            }
            AgentEvent::Problem { message } => {
                Some(Shown::Warning(format!("{label}: {}", safe_line(message))))
            }
            AgentEvent::SubAgent { agent: inner, event, .. } => {
                let inner = inner.rsplit('>').next().unwrap_or(inner);
                self.inside(&format!("{label} › {inner}"), event)
            }
            _ => None,
        }
    }

    fn answer(&mut self, title: String, code: &str, is_error: bool, content: &str) -> Shown {
        let line = answered(&title, code, is_error, content, self.width);
        self.keep(title, content.to_owned());
        if is_error { Shown::Failed(line) } else { Shown::Called(line) }
    }

    fn rest(&mut self, event: &AgentEvent) -> Option<Shown> {
        match event {
            AgentEvent::Text { text } => Some(Shown::Text(text.clone())),
            AgentEvent::ToolAnswered { call_id, tool, code, is_error, content } => {
                let title = match self.calls.remove(call_id) {
                    Some(call) => title(&call),
                    None => safe_line(tool),
                };
                Some(self.answer(title, code, *is_error, content))
            }
            AgentEvent::Compacted { messages } => {
                let first = counted(*messages, "message");
                Some(Shown::Aside(format!("summed up: the first {first}")))
            }
            AgentEvent::Problem { message } => Some(Shown::Warning(safe_line(message))),
            AgentEvent::Finished { stop, usage, steps } => Some(match unfinished(stop) {
                Some(why) => Shown::Warning(format!("{why}; {}", figures(*usage, *steps))),
                None => Shown::Aside(figures(*usage, *steps)),
            }),
            _ => None,
        }
    }

    /// What was thought before something else happened.
    fn thought(&mut self) -> Option<Shown> {
        let text = std::mem::take(&mut self.thought);
        let characters = text.trim().chars().count();
        if characters == 0 {
            return None;
        }
        let title = format!("thought, {} characters", grouped(characters as u64));
        self.keep(title.clone(), text);
        Some(Shown::Aside(title))
    }

    fn keep(&mut self, title: String, text: String) {
        if self.folded.len() == MOST_FOLDED {
            self.folded.remove(0);
        }
        self.folded.push(Folded { title, text });
    }

    /// What was folded, oldest first.
    pub(super) fn folded(self) -> Vec<Folded> {
        self.folded
    }
}

/// The last things that were folded, unfolded.
pub(super) fn unfolded(folded: &[Folded], count: usize) -> String {
    if folded.is_empty() {
        return "Nothing of the last turn is folded.".to_owned();
    }
    let mut out = Vec::new();
    for Folded { title, text } in &folded[folded.len().saturating_sub(count)..] {
        out.push(format!("⏺ {title}"));
        let text = safe(text.trim_end());
        let more = text.lines().count().saturating_sub(MOST_LINES);
        out.extend(
            text.lines().take(MOST_LINES).map(|it| format!("  {}", cut(it, MOST_CHARACTERS))),
        );
        if more > 0 {
            out.push(format!("  … {} more", counted(more, "line")));
        }
    }
    out.join("\n")
}

/// A call in a few words: the tool and its arguments without their names.
fn title(call: &ToolCall) -> String {
    let word = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let words: Vec<String> = match &call.arguments {
        Value::Object(arguments) => arguments.values().map(word).collect(),
        other => vec![word(other)],
    };
    safe_line(format!("{} {}", call.name, words.join(" ")).trim_end())
}

/// A line on what came of a call: `⏺ load_skill release-notes … loaded (1.2 kB)`.
fn answered(title: &str, code: &str, is_error: bool, content: &str, width: usize) -> String {
    let joined = |head: &str, tail: &str| match head.ends_with('…') {
        true => format!("{head} {tail}"),
        false => format!("{head} … {tail}"),
    };
    if is_error {
        let why = content.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let why = match why.strip_prefix("Error: ").unwrap_or(why) {
            "" => safe_line(code),
            why => format!("{}: {}", safe_line(code), safe_line(why)),
        };
        return cut(&joined(&format!("✗ {}", cut(title, width / 3)), &why), width);
    }
    let exit = serde_json::from_str::<Value>(content).ok();
    let exit = exit.as_ref().and_then(|it| it.get("exit_code")).and_then(Value::as_i64);
    let what = exit.map_or_else(|| safe_line(code), |code| format!("exit {code}"));
    let tail = format!("{what} ({})", size(content.len() as u64));
    let room = width.saturating_sub("⏺  … ".chars().count() + tail.chars().count());
    joined(&format!("⏺ {}", cut(title, room)), &tail)
}

/// What a turn cost: `1,234 in (1,024 cached), 56 out, 2 steps`.
fn figures(usage: Usage, steps: usize) -> String {
    let mut line = format!("{} in", grouped(usage.input_tokens));
    if usage.cached_input_tokens > 0 {
        line += &format!(" ({} cached)", grouped(usage.cached_input_tokens));
    }
    line += &format!(", {} out", grouped(usage.output_tokens));
    if usage.reasoning_tokens > 0 {
        line += &format!(" ({} thought)", grouped(usage.reasoning_tokens));
    }
    line + &format!(", {}", counted(steps, "step"))
}

/// Why a turn is over, if not because the model has said its last word.
fn unfinished(stop: &StopReason) -> Option<String> {
    Some(match stop {
        StopReason::Answered(FinishReason::Stop | FinishReason::ToolCalls) | StopReason::Ended => {
            return None;
        }
        StopReason::Answered(FinishReason::Length) => {
            "the answer is as long as it may be".to_owned()
        }
        StopReason::Answered(FinishReason::ContentFilter) => {
            "the provider has ended the answer".to_owned()
        }
        StopReason::Answered(FinishReason::Other(why)) => {
            format!("the answer ended: {}", safe_line(why))
        }
        StopReason::StepLimit => "the turn has as many steps as it may have".to_owned(),
        StopReason::TokenLimit => "the turn has as many tokens as it may have".to_owned(),
        StopReason::Cancelled => "cancelled".to_owned(),
        _ => "the turn is over".to_owned(),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
#[path = "fold_tests.rs"]
mod tests;
