//! Calls of tools.

use axum::Json;
use axum::extract::State;
use prowess_runtime::{Message, Part, Role, Step, ToolCall, ToolOutcome};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::messages::{CallBody, MessageBody, PartBody};
use super::{Place, existing};
use crate::app::App;
use crate::extract::{Json as Body, Path, Query};
use crate::identity::Identity;
use crate::problem::Problem;

/// So many characters the name of a tool has at most.
const LONGEST_TOOL_NAME: usize = 256;

/// The calls of one message of a model: in a list, in the message, or both.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewCalls {
    /// The calls, in their order.
    #[serde(default)]
    calls: Vec<CallBody>,
    /// What the model said with them: a text, or the whole message. Calls of a whole message come
    /// first.
    #[serde(default)]
    #[schema(value_type = Option<SaidBody>)]
    message: Option<Said>,
    /// The conversation as the model sees it, so that text that is gone is given again.
    #[serde(default)]
    transcript: Option<Vec<MessageBody>>,
}

/// What a model said.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Said {
    /// A text.
    Text(String),
    /// A whole message.
    Message(MessageBody),
}

/// What a model said.
#[derive(Debug, ToSchema)]
#[schema(as = Said)]
#[serde(untagged)]
#[allow(dead_code, reason = "it describes Said")]
enum SaidBody {
    /// A text.
    Text(String),
    /// A whole message.
    Message(ModelMessage),
}

/// A message of a model.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "it describes Said")]
struct ModelMessage {
    role: ModelRole,
    parts: Vec<PartBody>,
}

/// The role of a model.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "lowercase")]
#[allow(dead_code, reason = "it describes Said")]
enum ModelRole {
    Assistant,
}

/// What came of a call.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CallResult {
    call_id: String,
    name: String,
    /// What the model sees.
    content: String,
    /// Whether the call failed.
    is_error: bool,
    /// The stable name of what happened.
    code: String,
    /// What to do about a failure.
    hint: Option<String>,
    /// The structured result.
    data: Value,
    /// The outputs that were kept.
    #[schema(value_type = Vec<Object>)]
    artifacts: Value,
}

/// What came of the calls.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CallResults {
    /// One per call, in their order.
    results: Vec<CallResult>,
    /// What is to be appended to the conversation. The stored transcript has it already.
    #[schema(value_type = Vec<MessageBody>)]
    messages: Vec<Message>,
    /// The session's revision.
    revision: u64,
}

impl CallResult {
    fn new(call: ToolCall, outcome: ToolOutcome) -> Self {
        Self {
            call_id: call.id,
            name: call.name,
            content: outcome.content,
            is_error: outcome.is_error,
            code: outcome.code.into_owned(),
            hint: outcome.hint,
            data: outcome.data,
            artifacts: serde_json::to_value(outcome.artifacts).unwrap_or_default(),
        }
    }
}

/// Carries out the calls of one message. A call that was committed before is not carried out again:
/// its result is given again. What was begun is finished, even if nobody waits for it.
#[utoipa::path(
    post, path = "/sessions/{session_id}/calls", operation_id = "call_tools", tag = "sessions",
    params(("session_id" = String, Path), Place), request_body = NewCalls,
    responses(
        (status = 200, body = CallResults),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "There is no such session"),
    )
)]
pub(super) async fn call(
    State(app): State<App>,
    identity: Identity,
    Path(session): Path<String>,
    Query(place): Query<Place>,
    Body(new): Body<NewCalls>,
) -> Result<Json<CallResults>, Problem> {
    let (key, agent) = (place.key(&session, &identity)?, place.agent()?);
    let step = step(new, app.settings().max_calls)?;
    existing(&app, &key).await?;
    let calls: Vec<ToolCall> = step.message.tool_calls().cloned().collect();
    let runtime = app.runtime().clone();
    let work = async move { Ok(runtime.dispatch_batch(&key, &agent, step).await?) };
    let result = app.finish(work).await?;
    let both = calls.into_iter().zip(result.outcomes);
    Ok(Json(CallResults {
        results: both.map(|(call, outcome)| CallResult::new(call, outcome)).collect(),
        messages: result.messages,
        revision: result.revision.0,
    }))
}

fn step(new: NewCalls, most: usize) -> Result<Step, Problem> {
    let mut message = match new.message {
        None => Message::new(Role::Assistant, Vec::new()),
        Some(Said::Text(text)) => Message::assistant(text),
        Some(Said::Message(message)) => message.into(),
    };
    if message.role != Role::Assistant {
        return Err(Problem::invalid(&["body", "message", "role"], "only a model calls tools"));
    }
    message.parts.extend(new.calls.into_iter().map(|call| Part::ToolCall(call.into())));
    let count = message.tool_calls().count();
    if count == 0 {
        return Err(Problem::invalid(&["body", "calls"], "there is no call"));
    }
    if count > most {
        let message = format!("there are {count} calls; at most {most} are taken (max_calls)");
        return Err(Problem::invalid(&["body", "calls"], message));
    }
    let is_long = |call: &ToolCall| call.name.chars().count() > LONGEST_TOOL_NAME;
    if let Some(at) = message.tool_calls().position(is_long) {
        let message = format!("the name of a tool has at most {LONGEST_TOOL_NAME} characters");
        return Err(Problem::invalid(&["body", "calls", &at.to_string(), "name"], message));
    }
    let step = Step::of(message);
    Ok(match new.transcript {
        Some(transcript) => step.with_transcript(transcript.into_iter().map(Into::into).collect()),
        None => step,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, most: usize) -> Result<Step, Problem> {
        step(serde_json::from_str(text).unwrap(), most)
    }

    #[test]
    fn as_many_calls_as_may_be_and_not_one_more() {
        let two = r#"{"calls": [{"id": "1", "name": "a"}, {"id": "2", "name": "b"}]}"#;
        assert_eq!(of(two, 2).unwrap().message.tool_calls().count(), 2);
        assert_eq!(of(two, 1).unwrap_err().status(), 422);
        assert_eq!(of("{}", 2).unwrap_err().status(), 422);
    }

    #[test]
    fn a_name_is_as_long_as_it_may_be_and_not_one_character_longer() {
        let named = |characters: usize| {
            let name = "ñ".repeat(characters);
            of(&format!(r#"{{"calls": [{{"name": "a"}}, {{"name": "{name}"}}]}}"#), 9)
        };
        assert!(named(LONGEST_TOOL_NAME).is_ok());
        assert_eq!(named(LONGEST_TOOL_NAME + 1).unwrap_err().status(), 422);
    }

    #[test]
    fn what_the_model_said_stands_before_its_calls() {
        let said = of(r#"{"message": "Let me see.", "calls": [{"name": "a"}]}"#, 9).unwrap();
        assert_eq!(said.message.text(), "Let me see.");
        assert!(!said.message.tool_calls().next().unwrap().id.is_empty());
        let whole = r#"{"message": {"role": "assistant", "parts": [
            {"type": "tool_call", "id": "1", "name": "a", "arguments": {"x": 1}}]}}"#;
        assert_eq!(of(whole, 9).unwrap().message.tool_calls().count(), 1);
        let user = r#"{"message": {"role": "user", "parts": []}, "calls": [{"name": "a"}]}"#;
        assert_eq!(of(user, 9).unwrap_err().status(), 422);
    }
}
