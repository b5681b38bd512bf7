//! What a model is asked.

use std::sync::Arc;

use prowess_runtime::{Message, Prompt, ToolDeclaration};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

/// What a model is asked. Cheap to clone: messages and tools are shared.
///
/// ```
/// use prowess_agent::{ModelOptions, ModelRequest};
/// use prowess_runtime::Message;
///
/// let request = ModelRequest::new([Message::user("Hello")])
///     .with_system("Be brief.")
///     .with_options(ModelOptions::default().with_max_tokens(100));
/// assert_eq!(request.messages.len(), 1);
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The system prompt; empty if there is none.
    pub system: String,
    /// The conversation, without the system prompt.
    pub messages: Arc<Vec<Message>>,
    /// What the model may call.
    pub tools: Arc<[ToolDeclaration]>,
    /// How it is to answer.
    pub options: ModelOptions,
    /// Ends the request when it is cancelled.
    pub cancel: CancellationToken,
}

impl ModelRequest {
    /// Asks about these messages.
    pub fn new(messages: impl IntoIterator<Item = Message>) -> Self {
        Self::of(Arc::new(messages.into_iter().collect()))
    }

    /// Asks about messages that are shared.
    pub fn of(messages: Arc<Vec<Message>>) -> Self {
        Self { messages, ..Self::default() }
    }

    /// Sets the system prompt.
    pub fn with_system(mut self, system: impl Into<String>) -> Self {
        self.system = system.into();
        self
    }

    /// Sets what the model may call.
    pub fn with_tools(mut self, tools: impl Into<Arc<[ToolDeclaration]>>) -> Self {
        self.tools = tools.into();
        self
    }

    /// Sets how the model is to answer.
    pub fn with_options(mut self, options: ModelOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets what ends the request.
    pub fn with_cancel(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self
    }
}

impl From<Prompt> for ModelRequest {
    fn from(prompt: Prompt) -> Self {
        Self {
            system: prompt.system,
            messages: prompt.messages,
            tools: prompt.tools,
            ..Self::default()
        }
    }
}

/// How a model is to answer. What is not set is left to the provider.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ModelOptions {
    /// How many tokens the answer may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// How freely it chooses its words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// How hard it thinks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<ReasoningEffort>,
    /// Whether it calls tools.
    pub tool_choice: ToolChoice,
    /// Whether the provider is asked to keep what it has read.
    pub cache: Cache,
}

impl ModelOptions {
    /// Sets how many tokens the answer may have.
    pub fn with_max_tokens(mut self, max_tokens: u32) -> Self {
        self.max_tokens = Some(max_tokens);
        self
    }

    /// Sets how freely the model chooses its words.
    pub fn with_temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Sets how hard the model thinks.
    pub fn with_reasoning(mut self, reasoning: ReasoningEffort) -> Self {
        self.reasoning = Some(reasoning);
        self
    }

    /// Sets whether the model calls tools.
    pub fn with_tool_choice(mut self, tool_choice: ToolChoice) -> Self {
        self.tool_choice = tool_choice;
        self
    }

    /// Sets whether the provider is asked to keep what it has read.
    pub fn with_cache(mut self, cache: Cache) -> Self {
        self.cache = cache;
        self
    }
}

/// How hard a model thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ReasoningEffort {
    /// Not at all, where that can be chosen.
    None,
    /// A little.
    Low,
    /// Some.
    Medium,
    /// A lot.
    High,
}

/// Whether a model calls tools. Ollama knows no such choice: there `Required` and `Tool` count as
/// `Auto`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// It calls none.
    None,
    /// It calls one or more.
    Required,
    /// It calls this one.
    Tool(String),
}

/// Whether a provider is asked to keep what it has read, so that the next request costs less.
///
/// Only some providers want to be asked (Anthropic); the others keep what they like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cache {
    /// It is asked to keep the tools, the system prompt and the conversation.
    #[default]
    Conversation,
    /// It is asked to keep the tools and the system prompt: the conversation will not go on.
    Prefix,
    /// It is not asked.
    Off,
}
