//! A whole answer of OpenAI, as it was sent.

use genai::chat::{StopReason, Usage as Tokens};
use serde::Deserialize;
use serde_json::Value;

use super::answer::{Events, finish_of, usage_of};
use crate::model::{FinishReason, ModelError};
use crate::spans;

#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    model: Option<String>,
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Choice {
    message: Said,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Said {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default, alias = "reasoning")]
    reasoning_content: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<Call>>,
}

#[derive(Deserialize)]
struct Call {
    #[serde(default)]
    id: Option<String>,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    #[serde(default)]
    arguments: Value,
}

/// Reads the first choice.
pub(super) fn read(body: &Value, events: &mut Events) -> Result<(), ModelError> {
    let malformed = |message: String| ModelError::MalformedResponse { message };
    let body = Body::deserialize(body).map_err(|error| malformed(error.to_string()))?;
    let Some(choice) = body.choices.into_iter().next() else {
        return Err(malformed("there is no choice in it".to_owned()));
    };
    spans::told(body.id.as_deref(), body.model.as_deref());
    events.reasoning(choice.message.reasoning_content.unwrap_or_default());
    events.text(choice.message.content.unwrap_or_default());
    let is_refused = choice.message.refusal.is_some();
    events.text(choice.message.refusal.unwrap_or_default());
    for call in choice.message.tool_calls.unwrap_or_default() {
        let arguments = match call.function.arguments {
            Value::String(text) => text,
            Value::Null => String::new(),
            other => other.to_string(),
        };
        events.new_call(&call.id.unwrap_or_default(), call.function.name, arguments);
    }
    let finish = match choice.finish_reason {
        _ if is_refused => FinishReason::ContentFilter,
        reason => reason.map(StopReason::from).map_or(FinishReason::Stop, finish_of),
    };
    events.finish(finish, body.usage.as_ref().and_then(usage_of));
    Ok(())
}
