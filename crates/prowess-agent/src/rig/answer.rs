//! An answer of rig in our words.

use std::collections::HashSet;

use prowess_runtime::{Part, Usage};
use rig_core::completion::{CompletionResponse, FinishReason as Finish, Message as RigMessage};
use rig_core::message::{AssistantContent, AssistantMessage};
use rig_core::streaming::StreamEvent;
use serde_json::Value;

use super::failure;
use crate::model::{FinishReason, Fold, ModelError, ModelEvent, ModelResponse};

/// How the signature begins that keeps a turn as its provider gave it.
const KEPT: &str = "rig:";

/// A turn as its provider gave it, if that is what the part is for.
pub(super) fn kept(part: &Part) -> Option<AssistantMessage> {
    let Part::Reasoning { signature: Some(signature), .. } = part else { return None };
    serde_json::from_str(signature.strip_prefix(KEPT)?).ok()
}

/// What a provider wants to see again beside what was said: thoughts, and items of its own such as
/// signatures.
fn keepsake(response: &CompletionResponse) -> Option<ModelEvent> {
    let is_plain = |block: &AssistantContent| {
        let is_plain = matches!(block, AssistantContent::Text(_) | AssistantContent::ToolCall(_));
        is_plain && block.native_item().is_none()
    };
    let Some(RigMessage::Assistant(turn)) = response.message() else { return None };
    if turn.content.iter().all(is_plain) {
        return None;
    }
    let json = serde_json::to_string(&turn).ok()?;
    Some(ModelEvent::Reasoning { text: String::new(), signature: Some(format!("{KEPT}{json}")) })
}

/// What was said in these blocks, as a message of ours has it.
pub(super) fn parts_of(content: &[AssistantContent]) -> Vec<Part> {
    let mut answer = Answer::default();
    let mut fold = Fold::new();
    for event in content.iter().filter_map(|block| answer.block(block)) {
        fold.push(&event);
    }
    fold.push(&ModelEvent::Finished { finish: FinishReason::Stop, usage: None });
    fold.finish().map(|response| response.message.parts).unwrap_or_default()
}

/// The whole answer.
pub(super) fn response_of(response: &CompletionResponse) -> Result<ModelResponse, ModelError> {
    let mut answer = Answer::default();
    let mut fold = Fold::new();
    let said = response.choice.iter().filter_map(|block| answer.block(block));
    for event in said.chain(ending(response)?) {
        fold.push(&event);
    }
    fold.finish()
}

/// How an answer ends.
pub(super) fn ending(response: &CompletionResponse) -> Result<Vec<ModelEvent>, ModelError> {
    if let Some(message) = response.error.as_ref().or(response.aborted.as_ref()) {
        return Err(failure::late(message));
    }
    let usage = response.usage;
    let usage = usage.is_reported().then(|| {
        let mut sum = Usage::default();
        sum.input_tokens = usage.input_tokens.unwrap_or_default();
        sum.output_tokens = usage.output_tokens.unwrap_or_default();
        sum.cached_input_tokens = usage.cached_input_tokens.unwrap_or_default();
        sum.reasoning_tokens = usage.reasoning_tokens.unwrap_or_default();
        sum
    });
    let calls = response.tool_calls().next().is_some();
    let finish = match response.finish_reason() {
        Some(Finish::Length) => FinishReason::Length,
        Some(Finish::ContentFilter) => FinishReason::ContentFilter,
        Some(Finish::Stop) | None if calls => FinishReason::ToolCalls,
        Some(Finish::Stop) | None => FinishReason::Stop,
        Some(Finish::ToolCalls) => FinishReason::ToolCalls,
        Some(Finish::Other(reason)) => FinishReason::Other(reason),
        Some(other) => FinishReason::Other(format!("{other:?}")),
    };
    Ok(keepsake(response).into_iter().chain([ModelEvent::Finished { finish, usage }]).collect())
}

/// An answer that is on its way.
#[derive(Default)]
pub(super) struct Answer {
    /// The parts of which something was told already.
    told: HashSet<usize>,
    calls: usize,
}

impl Answer {
    /// What a bit of a stream tells.
    pub(super) fn event(&mut self, event: StreamEvent) -> Option<ModelEvent> {
        let part = event.part().index();
        match event {
            StreamEvent::Text { text, .. } => {
                self.told.insert(part);
                Some(ModelEvent::Text { text })
            }
            StreamEvent::Reasoning { text, .. } => {
                self.told.insert(part);
                Some(ModelEvent::Reasoning { text, signature: None })
            }
            StreamEvent::End { content, .. } if !self.told.contains(&part) => self.block(&content),
            _ => None,
        }
    }

    /// What a whole block tells.
    fn block(&mut self, block: &AssistantContent) -> Option<ModelEvent> {
        match block {
            AssistantContent::Text(text) => Some(ModelEvent::Text { text: text.text.clone() }),
            AssistantContent::Reasoning(thought) => {
                Some(ModelEvent::Reasoning { text: thought.text.clone(), signature: None })
            }
            AssistantContent::ToolCall(call) => {
                let index = self.calls;
                self.calls += 1;
                let function = &call.function;
                let arguments = match &function.invalid_arguments {
                    // As the model has written it, so that it can be told what is wrong.
                    Some(text) => text.clone(),
                    None => Value::Object(function.arguments.clone()).to_string(),
                };
                let (id, name) = (call.id.to_string(), function.name.to_string());
                Some(ModelEvent::ToolCall { index, id, name, arguments })
            }
            _ => None,
        }
    }
}
