//! What a request of rig becomes when its agent has skills.

use std::collections::{BTreeSet, HashSet};

use prowess_format::Digest;
use prowess_runtime::{Message, Prompt, ToolDeclaration};
use rig_core::completion::{CompletionRequest, Message as RigMessage, ToolDefinition};
use rig_core::message::{ToolResult, ToolResultContent, UserContent};

use super::tools::rig_id;

/// The messages of a stored transcript that a conversation of rig still holds: results of calls,
/// and texts that no call has given.
pub(super) fn held(mut stored: Vec<Message>, conversation: &[RigMessage]) -> Vec<Message> {
    let mut ids: HashSet<String> = HashSet::new();
    let mut texts: HashSet<&str> = HashSet::new();
    for content in said(conversation) {
        match content {
            UserContent::ToolResult(result) => {
                ids.insert(result.call.to_string());
            }
            UserContent::Text(text) => {
                texts.insert(&text.text);
            }
            _ => {}
        }
    }
    stored.retain(|message| match message.given {
        Some(_) => texts.contains(message.text().as_str()),
        None => message.tool_results().any(|result| ids.contains(rig_id(&result.call_id))),
    });
    stored
}

fn said(conversation: &[RigMessage]) -> impl Iterator<Item = &UserContent> {
    conversation.iter().flat_map(|message| match message {
        RigMessage::User { content } => content.as_slice(),
        _ => &[],
    })
}

/// The request with the prompt of a session in it: its system prompt, which holds the preamble; the
/// tools of the moment; and the text of skills as far as it still counts. `held` are the messages
/// that the prompt was made of, `ours` the tools that it decides about.
pub(super) fn prompted(
    mut request: CompletionRequest,
    held: &[Message],
    prompt: &Prompt,
    ours: &BTreeSet<String>,
) -> CompletionRequest {
    // One message more than was held gives again what the conversation has lost.
    let lost = prompt.messages.len().saturating_sub(held.len());
    let (lost, now) = prompt.messages.split_at(lost);
    let system = std::iter::once(prompt.system.clone()).chain(lost.iter().map(Message::text));
    let system: Vec<String> = system.filter(|text| !text.is_empty()).collect();
    if !system.is_empty() {
        let content = system.join("\n\n");
        match request.chat_history.first_mut() {
            Some(RigMessage::System { content: preamble }) => *preamble = content,
            _ => request.chat_history.insert(0, RigMessage::System { content }),
        }
    }
    request.tools = tools(request.tools, &prompt.tools, ours);
    for (then, now) in held.iter().zip(now) {
        tell(&mut request.chat_history, then, now);
    }
    request
}

/// The tools that both rig and the session have, as the session has them; then those that only rig
/// knows.
fn tools(
    rigs: Vec<ToolDefinition>,
    declared: &[ToolDeclaration],
    ours: &BTreeSet<String>,
) -> Vec<ToolDefinition> {
    let mut tools: Vec<ToolDefinition> = Vec::with_capacity(rigs.len());
    for tool in declared {
        let known = rigs.iter().find(|known| known.name.as_str() == tool.name);
        tools.extend(known.map(|known| ToolDefinition {
            name: known.name.clone(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
        }));
    }
    tools.extend(rigs.into_iter().filter(|tool| !ours.contains(tool.name.as_str())));
    tools
}

/// Says a message of the conversation as the session says it now.
fn tell(conversation: &mut [RigMessage], then: &Message, now: &Message) {
    for message in conversation {
        let RigMessage::User { content } = message else { continue };
        for content in content {
            match content {
                UserContent::ToolResult(result) => tell_result(result, then, now),
                UserContent::Text(text) if then.given.is_some() && text.text == then.text() => {
                    text.text = now.text();
                }
                _ => {}
            }
        }
    }
}

/// A result is said anew if it is the very text that a stub stands for.
fn tell_result(result: &mut ToolResult, then: &Message, now: &Message) {
    let id = result.call.to_string();
    let is_it = |call_id: &str| rig_id(call_id) == id;
    let Some(stored) = then.tool_results().find(|stored| is_it(&stored.call_id)) else { return };
    let Some(now) = now.tool_results().find(|now| now.call_id == stored.call_id) else { return };
    let [ToolResultContent::Text(text)] = result.content.as_mut_slice() else { return };
    let digest = stored.expansion.as_ref().map(|expansion| expansion.digest);
    if digest == Some(Digest::of(text.text.as_bytes())) {
        text.text.clone_from(&now.content);
    }
}
