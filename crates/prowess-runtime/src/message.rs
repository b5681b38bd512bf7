//! What is said: messages, tool calls and their results.

use prowess_format::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A message of a conversation.
///
/// ```
/// use prowess_runtime::{Message, Role};
///
/// let message = Message::user("How many customers do we have?");
/// assert_eq!(message.role, Role::User);
/// assert_eq!(message.text(), "How many customers do we have?");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub parts: Vec<Part>,
    /// What it cost, where a model said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Which skill it gives the text of, if that is what it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<Given>,
}

/// What a message that no call has made gives: the text of a skill that a host has loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Given {
    /// Whose text it is.
    pub skill: String,
    /// The turn in which it was given.
    pub turn: u64,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The one who sets up the conversation.
    System,
    /// A person.
    User,
    /// The model.
    Assistant,
    /// What tools answer.
    Tool,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// What the model thought, as far as its provider tells.
    Reasoning {
        /// The thought.
        text: String,
        /// What the provider wants to see again beside it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// The model calls a tool.
    ToolCall(ToolCall),
    /// A tool answers.
    ToolResult(ToolResult),
}

/// A call of a tool. Its id names it once within a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// What the answer refers to.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments: a JSON object if the model did well; a text if it is nested deeper than
    /// [`MAX_NESTING`].
    #[serde(default)]
    pub arguments: Value,
}

/// So deep may JSON of others be nested; what is deeper is kept as text. Otherwise a stored
/// session could not be read again.
pub const MAX_NESTING: usize = 64;

/// JSON that can be stored.
pub(crate) fn storable(value: Value) -> Value {
    fn is_deeper(value: &Value, than: usize) -> bool {
        let mut inside: Box<dyn Iterator<Item = &Value>> = match value {
            Value::Array(items) => Box::new(items.iter()),
            Value::Object(entries) => Box::new(entries.values()),
            _ => return false,
        };
        than == 0 || inside.any(|value| is_deeper(value, than - 1))
    }
    if is_deeper(&value, MAX_NESTING) { Value::String(value.to_string()) } else { value }
}

impl ToolCall {
    /// A call.
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: Value) -> Self {
        Self { id: id.into(), name: name.into(), arguments }
    }
}

/// What a tool answers, as a stored transcript keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolResult {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// The answer, or the stub that stands for it.
    pub content: String,
    /// Whether the call failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// What the content is a stub of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expansion: Option<Expansion>,
}

impl ToolResult {
    /// A tool answers a call.
    pub fn new(
        call_id: impl Into<String>,
        name: impl Into<String>,
        content: impl Into<String>,
    ) -> Self {
        Self {
            call_id: call_id.into(),
            name: name.into(),
            content: content.into(),
            is_error: false,
            expansion: None,
        }
    }
}

/// What a stub stands for: text of a skill, kept in the content store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Expansion {
    /// Where the whole text is.
    pub digest: Digest,
    /// Whose text it is.
    pub skill: String,
    /// The turn in which it was given.
    pub turn: u64,
    /// Whether the state pins it: where loaded text stands in the system prompt, it is there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
}

/// What a request cost, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Usage {
    /// What was sent, cached tokens included.
    pub input_tokens: u64,
    /// What came back, reasoning included.
    pub output_tokens: u64,
    /// How much of what was sent came from the provider's cache.
    pub cached_input_tokens: u64,
    /// How much of what came back is reasoning.
    pub reasoning_tokens: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut self.input_tokens, other.input_tokens);
        add(&mut self.output_tokens, other.output_tokens);
        add(&mut self.cached_input_tokens, other.cached_input_tokens);
        add(&mut self.reasoning_tokens, other.reasoning_tokens);
    }
}

impl Message {
    /// A message of these parts.
    pub fn new(role: Role, parts: Vec<Part>) -> Self {
        Self { role, parts, usage: None, given: None }
    }

    /// A system message.
    pub fn system(text: impl Into<String>) -> Self {
        Self::new(Role::System, vec![Part::Text { text: text.into() }])
    }

    /// What a person says.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, vec![Part::Text { text: text.into() }])
    }

    /// What the model says.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, vec![Part::Text { text: text.into() }])
    }

    /// The model calls tools.
    pub fn calling(calls: impl IntoIterator<Item = ToolCall>) -> Self {
        Self::new(Role::Assistant, calls.into_iter().map(Part::ToolCall).collect())
    }

    /// A tool answers.
    pub fn answering(result: ToolResult) -> Self {
        Self::new(Role::Tool, vec![Part::ToolResult(result)])
    }

    /// Says which skill it gives the text of, in which turn.
    pub fn giving(mut self, skill: impl Into<String>, turn: u64) -> Self {
        self.given = Some(Given { skill: skill.into(), turn });
        self
    }

    /// Sets what it cost.
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Its text, without reasoning, calls and results.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// The calls in it, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// The results in it, in order.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolResult(result) => Some(result),
            _ => None,
        })
    }
}
