//! A request in the words of genai.

use genai::chat::{
    CacheControl, ChatMessage, ChatOptions, ChatRequest, ChatRole, ContentPart, CustomPart,
    MessageContent, ReasoningEffort as Effort, Tool, ToolCall as Call, ToolChoice as Choice,
    ToolResponse,
};
use prowess_runtime::{Message, Part, Role, ToolCall, ToolResult};
use serde_json::{Value, json};

use super::name::Provider;
use crate::model::{Cache, ModelRequest, ReasoningEffort, ToolChoice};

/// How a block is marked that Anthropic gives back encrypted.
const REDACTED: &str = "redacted_thinking";

/// How a model is to answer.
pub(super) fn options(request: &ModelRequest, provider: Provider) -> ChatOptions {
    let asked = &request.options;
    let mut options = ChatOptions::default()
        .with_capture_usage(true)
        .with_capture_tool_calls(true)
        // Models of Gemini that do not think refuse to be asked for thoughts.
        .with_capture_reasoning_content(provider != Provider::Gemini || asked.reasoning.is_some());
    options.max_tokens = asked.max_tokens;
    options.temperature = asked.temperature;
    options.reasoning_effort = asked.reasoning.map(|effort| match effort {
        ReasoningEffort::None => Effort::Zero,
        ReasoningEffort::Low => Effort::Low,
        ReasoningEffort::Medium => Effort::Medium,
        ReasoningEffort::High => Effort::High,
    });
    // Providers refuse a choice among no tools; Ollama knows no choice.
    if !request.tools.is_empty() && provider != Provider::Ollama {
        options.tool_choice = match &asked.tool_choice {
            ToolChoice::Auto => None,
            ToolChoice::None => Some(Choice::None),
            ToolChoice::Required => Some(Choice::Required),
            ToolChoice::Tool(name) => Some(Choice::Tool { name: name.clone() }),
        };
    }
    options
}

/// What a model is asked. `is_elsewhere`: not where the provider usually is.
pub(super) fn chat(request: &ModelRequest, provider: Provider, is_elsewhere: bool) -> ChatRequest {
    let marks = provider == Provider::Anthropic && request.options.cache != Cache::Off;
    let speaker = Speaker { provider, is_elsewhere };
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    let mut chat = ChatRequest::default();
    if marks && !request.system.is_empty() {
        // The mark covers what is before it: the tools and the system prompt.
        let system = ChatMessage::system(request.system.as_str());
        messages.push(system.with_options(CacheControl::Ephemeral));
    } else if !request.system.is_empty() {
        chat.system = Some(request.system.clone());
    }
    let first = messages.len();
    for message in request.messages.iter() {
        speaker.say(message, &mut messages);
    }
    if marks
        && request.options.cache == Cache::Conversation
        && let Some(last) = messages[first..].last_mut()
    {
        last.options = Some(CacheControl::Ephemeral.into());
    }
    chat.messages = messages;
    chat.tools = tools(request, provider, marks && request.system.is_empty());
    chat
}

fn tools(request: &ModelRequest, provider: Provider, is_marked: bool) -> Option<Vec<Tool>> {
    let unwanted = provider == Provider::Ollama && request.options.tool_choice == ToolChoice::None;
    if request.tools.is_empty() || unwanted {
        return None;
    }
    let mut tools: Vec<Tool> = Vec::with_capacity(request.tools.len());
    for tool in request.tools.iter() {
        let told = Tool::new(tool.name.clone()).with_description(tool.description.clone());
        tools.push(told.with_schema(tool.parameters.clone()));
    }
    if is_marked && let Some(last) = tools.last_mut() {
        last.cache_control = Some(CacheControl::Ephemeral);
    }
    Some(tools)
}

/// Says messages as a provider wants them.
struct Speaker {
    provider: Provider,
    is_elsewhere: bool,
}

impl Speaker {
    fn say(&self, message: &Message, said: &mut Vec<ChatMessage>) {
        let parts: Vec<ContentPart> =
            message.parts.iter().flat_map(|part| self.part(part, message.role)).collect();
        if parts.is_empty() {
            return;
        }
        let role = match message.role {
            // These take instructions only in front; what was said stays where it was said.
            Role::System if self.has_one_system() => ChatRole::User,
            Role::System => ChatRole::System,
            Role::User => ChatRole::User,
            Role::Assistant => ChatRole::Assistant,
            Role::Tool => ChatRole::Tool,
        };
        match role {
            // Anthropic wants all results of a message in one, Ollama every one by itself.
            ChatRole::Tool if self.provider == Provider::Anthropic => {
                if let Some(last) = said.last_mut().filter(|last| last.role == ChatRole::Tool) {
                    last.content.extend(parts);
                    return;
                }
                said.push(ChatMessage::new(role, MessageContent::from_parts(parts)));
            }
            ChatRole::Tool => said.extend(parts.into_iter().map(|part| {
                ChatMessage::new(ChatRole::Tool, MessageContent::from_parts(vec![part]))
            })),
            _ => said.push(ChatMessage::new(role, MessageContent::from_parts(parts))),
        }
    }

    fn has_one_system(&self) -> bool {
        matches!(self.provider, Provider::Anthropic | Provider::Gemini)
    }

    fn part(&self, part: &Part, role: Role) -> Vec<ContentPart> {
        match part {
            // Some refuse empty texts.
            Part::Text { text } if text.is_empty() => Vec::new(),
            Part::Text { text } => vec![ContentPart::Text(text.clone())],
            Part::Reasoning { text, signature } if role == Role::Assistant => {
                self.reasoning(text, signature.as_deref())
            }
            Part::ToolCall(call) => vec![ContentPart::ToolCall(called(call))],
            Part::ToolResult(result) => vec![self.result(result)],
            _ => Vec::new(),
        }
    }

    /// Thoughts go back only to whom they came from.
    fn reasoning(&self, text: &str, signature: Option<&str>) -> Vec<ContentPart> {
        let own = signature.and_then(|signed| unsigned(self.provider, signed));
        match (self.provider, own) {
            (Provider::Anthropic, Some(own)) => match redacted(own) {
                Some(data) => vec![ContentPart::Custom(CustomPart { model_iden: None, data })],
                None => vec![
                    ContentPart::ThoughtSignature(own.to_owned()),
                    ContentPart::ReasoningContent(text.to_owned()),
                ],
            },
            (Provider::Gemini, Some(own)) => vec![ContentPart::ThoughtSignature(own.to_owned())],
            // OpenAI itself does not know this field; others do not go on without it.
            (Provider::OpenAi, _) if self.is_elsewhere && signature.is_none() => {
                vec![ContentPart::ReasoningContent(text.to_owned())]
            }
            _ => Vec::new(),
        }
    }

    fn result(&self, result: &ToolResult) -> ContentPart {
        if self.provider == Provider::Anthropic && result.is_error {
            let data = json!({
                "type": "tool_result",
                "tool_use_id": result.call_id,
                "content": result.content,
                "is_error": true,
            });
            return ContentPart::Custom(CustomPart { model_iden: None, data });
        }
        let response = ToolResponse::new(result.call_id.clone(), result.content.clone());
        ContentPart::ToolResponse(response.with_fn_name(result.name.clone()))
    }
}

/// A call as it was made. Providers take back only objects: arguments that are none are wrapped,
/// so that the model still sees what it has written.
fn called(call: &ToolCall) -> Call {
    let fn_arguments = match &call.arguments {
        Value::Object(_) => call.arguments.clone(),
        Value::Null => json!({}),
        other => json!({"malformed_arguments": other}),
    };
    let (call_id, fn_name) = (call.id.clone(), call.name.clone());
    Call { call_id, fn_name, fn_arguments, thought_signatures: None }
}

/// A signature, and whose it is.
pub(super) fn signed(provider: Provider, signature: &str) -> String {
    format!("{}:{signature}", provider.name())
}

/// A signature, if it is of this provider.
fn unsigned(provider: Provider, signature: &str) -> Option<&str> {
    signature.strip_prefix(provider.name())?.strip_prefix(':')
}

/// A block that Anthropic gives encrypted and wants back as it is.
fn redacted(signature: &str) -> Option<Value> {
    let block: Value = serde_json::from_str(signature).ok()?;
    is_redacted(&block).then_some(block)
}

pub(super) fn is_redacted(block: &Value) -> bool {
    block.get("type").and_then(Value::as_str) == Some(REDACTED)
}
