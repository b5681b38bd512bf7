//! Messages, as they come over the wire.

use axum::Json;
use axum::extract::State;
use prowess_runtime::{Message, Part, Role, ToolCall, ToolResult};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{Place, existing};
use crate::app::App;
use crate::extract::{Json as Body, Path, Query};
use crate::identity::Identity;
use crate::problem::Problem;

/// A message of a conversation. What it holds beyond these fields is not taken from outside.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub(super) struct MessageBody {
    pub(super) role: RoleBody,
    pub(super) parts: Vec<PartBody>,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum RoleBody {
    System,
    User,
    Assistant,
    Tool,
}

/// A part of a message.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum PartBody {
    /// Text.
    Text { text: String },
    /// What the model thought.
    Reasoning { text: String, signature: Option<String> },
    /// The model calls a tool.
    ToolCall(CallBody),
    /// A tool answers.
    ToolResult {
        call_id: String,
        name: String,
        content: String,
        #[serde(default)]
        is_error: bool,
    },
}

/// A call of a tool.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub(super) struct CallBody {
    /// Names the call once within a session; without it, one is made. The same call with the same id
    /// is carried out once.
    #[serde(default)]
    pub(super) id: Option<String>,
    /// The tool.
    #[schema(max_length = 256)]
    pub(super) name: String,
    /// Its arguments.
    #[serde(default)]
    pub(super) arguments: Value,
}

impl From<CallBody> for ToolCall {
    fn from(call: CallBody) -> Self {
        let id = call.id.unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
        Self::new(id, call.name, call.arguments)
    }
}

impl From<PartBody> for Part {
    fn from(part: PartBody) -> Self {
        match part {
            PartBody::Text { text } => Self::Text { text },
            PartBody::Reasoning { text, signature } => Self::Reasoning { text, signature },
            PartBody::ToolCall(call) => Self::ToolCall(call.into()),
            PartBody::ToolResult { call_id, name, content, is_error } => {
                let mut result = ToolResult::new(call_id, name, content);
                result.is_error = is_error;
                Self::ToolResult(result)
            }
        }
    }
}

impl From<MessageBody> for Message {
    fn from(message: MessageBody) -> Self {
        let role = match message.role {
            RoleBody::System => Role::System,
            RoleBody::User => Role::User,
            RoleBody::Assistant => Role::Assistant,
            RoleBody::Tool => Role::Tool,
        };
        Self::new(role, message.parts.into_iter().map(Part::from).collect())
    }
}

/// Messages to append.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewMessages {
    messages: Vec<MessageBody>,
}

/// What came of a change.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Changed {
    /// The session's revision.
    revision: u64,
}

/// Appends messages to an agent's transcript, such as the last words of the model.
#[utoipa::path(
    post, path = "/sessions/{session_id}/messages", operation_id = "append_messages", tag = "sessions",
    params(("session_id" = String, Path), Place), request_body = NewMessages,
    responses(
        (status = 200, body = Changed),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "There is no such session"),
    )
)]
pub(super) async fn append(
    State(app): State<App>,
    identity: Identity,
    Path(session): Path<String>,
    Query(place): Query<Place>,
    Body(new): Body<NewMessages>,
) -> Result<Json<Changed>, Problem> {
    let (key, agent) = (place.key(&session, &identity)?, place.agent()?);
    existing(&app, &key).await?;
    let messages = new.messages.into_iter().map(Message::from).collect();
    let runtime = app.runtime().clone();
    let work = async move { Ok(runtime.append(&key, &agent, messages).await?) };
    let revision = app.finish(work).await?;
    Ok(Json(Changed { revision: revision.0 }))
}
