//! A request of ours in the words of rig.

use prowess_runtime::{Message, Part, Role, ToolCall, ToolResult};
use rig_core::completion::{
    CacheRetention, CompletionRequest, Effort, GenerationOptions, Message as RigMessage, Reasoning,
    ToolDefinition,
};
use rig_core::message::{
    AssistantContent, AssistantMessage, CallId, ToolCall as Call, ToolChoice as Choice,
    ToolFunction, ToolName, ToolResult as Answer, ToolResultContent, UserContent,
};

use super::answer::{kept, parts_of};
use crate::model::{Cache, ModelRequest, ReasoningEffort, ToolChoice};

/// What a tool without a name is called: rig knows none of those.
const NAMELESS: &str = "nameless";

/// What a model of this provider is asked.
pub(super) fn completion(request: &ModelRequest, provider: &str) -> CompletionRequest {
    let mut said: Vec<RigMessage> = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        said.push(RigMessage::system(&request.system));
    }
    for message in request.messages.iter() {
        say(message, &mut said);
    }
    let mut asked = CompletionRequest::new("");
    asked.chat_history = said;
    asked.tools = request
        .tools
        .iter()
        .filter_map(|tool| {
            let name = ToolName::new(&tool.name).ok()?;
            let (description, parameters) = (tool.description.clone(), tool.parameters.clone());
            Some(ToolDefinition { name, description, parameters })
        })
        .collect();
    asked.temperature = request.options.temperature;
    asked.max_tokens = request.options.max_tokens.map(u64::from);
    asked.tool_choice = choice(request);
    asked.options = options(request, provider);
    // Why a model stopped is told, not judged.
    asked.accept_unknown_finish_reasons = true;
    asked
}

/// Providers refuse a choice among no tools.
fn choice(request: &ModelRequest) -> Option<Choice> {
    if request.tools.is_empty() {
        return None;
    }
    match &request.options.tool_choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(Choice::None),
        ToolChoice::Required => Some(Choice::Required),
        ToolChoice::Tool(name) => {
            Some(Choice::Specific { function_names: ToolName::new(name).into_iter().collect() })
        }
    }
}

fn options(request: &ModelRequest, provider: &str) -> GenerationOptions {
    let mut options = GenerationOptions::new();
    options.reasoning = request.options.reasoning.map(|effort| match effort {
        ReasoningEffort::None => Reasoning::Off,
        ReasoningEffort::Low => Effort::Low.into(),
        ReasoningEffort::Medium => Effort::Medium.into(),
        ReasoningEffort::High => Effort::High.into(),
    });
    // Only this one wants to be asked; others refuse what they do not know.
    if provider == "anthropic" {
        options.cache = Some(match request.options.cache {
            Cache::Off => CacheRetention::None,
            Cache::Conversation | Cache::Prefix => CacheRetention::Short,
        });
    }
    options
}

fn say(message: &Message, said: &mut Vec<RigMessage>) {
    match message.role {
        Role::Assistant => {
            let turn = kept_turn(message).unwrap_or_else(|| {
                AssistantMessage::new(message.parts.iter().filter_map(block).collect())
            });
            if !turn.content.is_empty() {
                said.push(RigMessage::Assistant(turn));
            }
        }
        // Most take instructions only in front; what was said stays where it was said.
        Role::System | Role::User => {
            let text = message.text();
            if !text.is_empty() {
                said.push(RigMessage::user(text));
            }
        }
        Role::Tool => {
            let results = message.tool_results().filter_map(result).map(UserContent::ToolResult);
            match said.last_mut() {
                // All results of a message stand in one.
                Some(RigMessage::User { content }) if is_results(content) => {
                    content.extend(results);
                }
                _ => said.push(RigMessage::User { content: results.collect() }),
            }
        }
    }
}

fn is_results(content: &[UserContent]) -> bool {
    content.iter().all(|content| matches!(content, UserContent::ToolResult(_)))
}

/// The turn as its provider gave it, if the message still says the same.
fn kept_turn(message: &Message) -> Option<AssistantMessage> {
    let turn = message.parts.iter().find_map(kept)?;
    let mut parts = message.parts.clone();
    for part in &mut parts {
        if kept(part).is_some()
            && let Part::Reasoning { signature, .. } = part
        {
            *signature = None;
        }
    }
    parts.retain(|part| !matches!(part, Part::Reasoning { text, .. } if text.is_empty()));
    (parts_of(&turn.content) == parts).then_some(turn)
}

fn block(part: &Part) -> Option<AssistantContent> {
    match part {
        // Some refuse empty texts.
        Part::Text { text } if text.is_empty() => None,
        Part::Text { text } => Some(AssistantContent::text(text)),
        Part::ToolCall(call) => called(call).map(AssistantContent::ToolCall),
        // Thoughts go back only to whom they came from, in turns that were kept; rig would have
        // others say them.
        _ => None,
    }
}

fn called(call: &ToolCall) -> Option<Call> {
    let function = ToolFunction::new(named(&call.name)?, call.arguments.clone());
    Some(Call::from_wire(&call.id, function))
}

fn result(result: &ToolResult) -> Option<Answer> {
    Some(Answer {
        call: CallId::from_wire(&result.call_id),
        name: named(&result.name)?,
        content: vec![ToolResultContent::text(&result.content)],
        is_error: result.is_error,
    })
}

fn named(name: &str) -> Option<ToolName> {
    ToolName::new(name).or_else(|_| ToolName::new(NAMELESS)).ok()
}
