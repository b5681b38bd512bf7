//! What a model is sent.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use prowess_runtime::{Message, Prompt, PromptRequest, ToolDeclaration};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::messages::MessageBody;
use super::{Place, existing};
use crate::app::App;
use crate::extract::{JsonOrDefault, Path, Query};
use crate::identity::Identity;
use crate::problem::Problem;

/// A tool, as a model is told of it.
#[derive(Debug, Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes ToolDeclaration")]
pub(super) struct ToolBody {
    name: String,
    description: String,
    /// The JSON Schema of its arguments.
    parameters: Value,
}

/// The tools of an agent.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Tools {
    #[schema(value_type = Vec<ToolBody>)]
    tools: Arc<[ToolDeclaration]>,
}

/// Exactly what a model is sent.
#[derive(Debug, Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes Prompt")]
pub(super) struct PromptBody {
    system: String,
    tools: Vec<ToolBody>,
    messages: Vec<MessageBody>,
    /// What could not be given, in words.
    problems: Vec<String>,
}

/// What a prompt is made of besides the session.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Asked {
    /// What the host says first.
    system: Option<String>,
}

/// What a prompt is made of besides the session.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AskedBody {
    /// What the host says first.
    system: Option<String>,
    /// The conversation as the host knows it. Without it the stored transcript counts.
    transcript: Option<Vec<MessageBody>>,
}

/// The tools that a model is told of now.
#[utoipa::path(
    get, path = "/sessions/{session_id}/tools", operation_id = "list_tools", tag = "sessions",
    params(("session_id" = String, Path), Place),
    responses(
        (status = 200, body = Tools),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "There is no such session"),
    )
)]
pub(super) async fn tools(
    State(app): State<App>,
    identity: Identity,
    Path(session): Path<String>,
    Query(place): Query<Place>,
) -> Result<Json<Tools>, Problem> {
    let (key, agent) = (place.key(&session, &identity)?, place.agent()?);
    existing(&app, &key).await?;
    let request = PromptRequest::new().with_transcript(Vec::new());
    let prompt = app.runtime().prompt(&key, &agent, request).await?;
    Ok(Json(Tools { tools: prompt.tools }))
}

/// Exactly what a model would be sent now. Changes nothing.
#[utoipa::path(
    get, path = "/sessions/{session_id}/prompt", operation_id = "get_prompt", tag = "sessions",
    params(("session_id" = String, Path), Place, Asked),
    responses(
        (status = 200, body = PromptBody),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "There is no such session"),
    )
)]
pub(super) async fn show(
    State(app): State<App>,
    identity: Identity,
    Path(session): Path<String>,
    Query(place): Query<Place>,
    Query(asked): Query<Asked>,
) -> Result<Json<Prompt>, Problem> {
    let (key, agent) = (place.key(&session, &identity)?, place.agent()?);
    existing(&app, &key).await?;
    let mut request = PromptRequest::new();
    request.system = asked.system;
    Ok(Json(app.runtime().prompt(&key, &agent, request).await?))
}

/// What a model is sent now, for a request that is really made: what is to be sent once is gone from
/// the next one.
#[utoipa::path(
    post, path = "/sessions/{session_id}/prompt", operation_id = "request_prompt", tag = "sessions",
    params(("session_id" = String, Path), Place), request_body(content = Option<AskedBody>),
    responses(
        (status = 200, body = PromptBody),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "There is no such session"),
    )
)]
pub(super) async fn request(
    State(app): State<App>,
    identity: Identity,
    Path(session): Path<String>,
    Query(place): Query<Place>,
    JsonOrDefault(asked): JsonOrDefault<AskedBody>,
) -> Result<Json<Prompt>, Problem> {
    let (key, agent) = (place.key(&session, &identity)?, place.agent()?);
    existing(&app, &key).await?;
    let mut request = PromptRequest::new();
    request.system = asked.system;
    let messages = |them: Vec<MessageBody>| them.into_iter().map(Message::from).collect();
    request.transcript = asked.transcript.map(messages);
    let runtime = app.runtime().clone();
    let work = async move { Ok(runtime.request(&key, &agent, request).await?) };
    Ok(Json(app.finish(work).await?))
}
