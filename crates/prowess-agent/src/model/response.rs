//! What a model answers, at once or bit by bit.

use std::collections::BTreeMap;

use prowess_runtime::{Message, Part, Role, ToolCall, Usage};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::ModelError;

/// What a model answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelResponse {
    /// What it says; with [`Message::usage`], if the provider told.
    pub message: Message,
    /// Why it stopped.
    pub finish: FinishReason,
}

impl ModelResponse {
    /// An answer that ended by itself.
    pub fn new(message: Message) -> Self {
        let calls = message.tool_calls().next().is_some();
        let finish = if calls { FinishReason::ToolCalls } else { FinishReason::Stop };
        Self { message, finish }
    }

    /// Sets why it stopped.
    pub fn with_finish(mut self, finish: FinishReason) -> Self {
        self.finish = finish;
        self
    }

    /// Sets what it cost.
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.message.usage = Some(usage);
        self
    }

    /// What it cost; nothing if the provider did not tell.
    pub fn usage(&self) -> Usage {
        self.message.usage.unwrap_or_default()
    }

    /// The events that fold into this answer: one per part, and the end.
    pub fn into_events(self) -> Vec<ModelEvent> {
        let mut events = Vec::with_capacity(self.message.parts.len() + 1);
        let mut calls = 0;
        for part in self.message.parts {
            match part {
                Part::Text { text } => events.push(ModelEvent::Text { text }),
                Part::Reasoning { text, signature } => {
                    events.push(ModelEvent::Reasoning { text, signature });
                }
                Part::ToolCall(call) => {
                    let arguments = match &call.arguments {
                        Value::String(text) => text.clone(),
                        other => other.to_string(),
                    };
                    events.push(ModelEvent::ToolCall {
                        index: calls,
                        id: call.id,
                        name: call.name,
                        arguments,
                    });
                    calls += 1;
                }
                _ => {}
            }
        }
        events.push(ModelEvent::Finished { finish: self.finish, usage: self.message.usage });
        events
    }
}

/// Why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// It has said what it wanted to say.
    Stop,
    /// It waits for the results of its calls.
    ToolCalls,
    /// The answer is as long as it may be.
    Length,
    /// The provider did not let it go on.
    ContentFilter,
    /// Something else, as the provider calls it.
    Other(String),
}

/// A bit of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelEvent {
    /// More text.
    Text {
        /// What is added.
        text: String,
    },
    /// More of what the model thinks.
    Reasoning {
        /// What is added.
        text: String,
        /// What the provider wants to see again beside the thought, which ends here.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// More of a call of a tool.
    ToolCall {
        /// Which call of this answer.
        index: usize,
        /// Its id; empty if it was given before.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        id: String,
        /// The tool; empty if it was given before.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        name: String,
        /// What is added to the text of its arguments.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        arguments: String,
    },
    /// The answer is whole. Nothing follows.
    Finished {
        /// Why the model stopped.
        finish: FinishReason,
        /// What it cost, if the provider told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    },
}

/// Puts the events of a stream together.
///
/// ```
/// use prowess_agent::{FinishReason, Fold, ModelEvent};
///
/// let mut fold = Fold::new();
/// fold.push(&ModelEvent::Text { text: "Forty-".into() });
/// fold.push(&ModelEvent::Text { text: "two.".into() });
/// fold.push(&ModelEvent::Finished { finish: FinishReason::Stop, usage: None });
/// assert_eq!(fold.finish()?.message.text(), "Forty-two.");
/// # Ok::<(), prowess_agent::ModelError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Fold {
    parts: Vec<Part>,
    /// Where the calls are, by index.
    calls: BTreeMap<usize, usize>,
    end: Option<(FinishReason, Option<Usage>)>,
}

impl Fold {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an event. What follows the end does not count.
    pub fn push(&mut self, event: &ModelEvent) {
        if self.end.is_some() {
            return;
        }
        match event {
            ModelEvent::Text { text } => match self.parts.last_mut() {
                Some(Part::Text { text: all }) => all.push_str(text),
                _ if text.is_empty() => {}
                _ => self.parts.push(Part::Text { text: text.clone() }),
            },
            ModelEvent::Reasoning { text, signature } => match self.parts.last_mut() {
                Some(Part::Reasoning { text: all, signature: known @ None }) => {
                    all.push_str(text);
                    known.clone_from(signature);
                }
                _ if text.is_empty() && signature.is_none() => {}
                _ => self
                    .parts
                    .push(Part::Reasoning { text: text.clone(), signature: signature.clone() }),
            },
            ModelEvent::ToolCall { index, id, name, arguments } => {
                self.push_call(*index, id, name, arguments);
            }
            ModelEvent::Finished { finish, usage } => self.end = Some((finish.clone(), *usage)),
        }
    }

    fn push_call(&mut self, index: usize, id: &str, name: &str, arguments: &str) {
        let at = *self.calls.entry(index).or_insert_with(|| {
            let call = ToolCall::new("", "", Value::String(String::new()));
            self.parts.push(Part::ToolCall(call));
            self.parts.len() - 1
        });
        let Some(Part::ToolCall(call)) = self.parts.get_mut(at) else { return };
        if !id.is_empty() {
            id.clone_into(&mut call.id);
        }
        if !name.is_empty() {
            name.clone_into(&mut call.name);
        }
        if let Value::String(all) = &mut call.arguments {
            all.push_str(arguments);
        }
    }

    /// Whether nothing was said yet.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.end.is_none()
    }

    /// What was said so far: the text without calls, which may be incomplete.
    pub fn text(&self) -> String {
        Message::new(Role::Assistant, self.parts.clone()).text()
    }

    /// The whole answer; [`ModelError::CutStream`] if its end has not come.
    pub fn finish(self) -> Result<ModelResponse, ModelError> {
        let Some((finish, usage)) = self.end else {
            return Err(ModelError::CutStream { message: "the answer has no end".to_owned() });
        };
        let mut parts = self.parts;
        for part in &mut parts {
            if let Part::ToolCall(call) = part
                && let Value::String(text) = &call.arguments
            {
                call.arguments = arguments_of(text);
            }
        }
        let mut message = Message::new(Role::Assistant, parts);
        message.usage = usage;
        Ok(ModelResponse { message, finish })
    }
}

/// The arguments of a call as a model has written them: JSON, no arguments if nothing is there,
/// and the text itself if it is no JSON, so that the call can be answered with what is wrong.
pub fn arguments_of(text: &str) -> Value {
    if text.trim().is_empty() {
        return Value::Object(Map::new());
    }
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}
