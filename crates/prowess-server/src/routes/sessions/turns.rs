//! How turns begin.

use axum::Json;
use axum::extract::State;
use prowess_runtime::{LoadRequest, Message, TurnRequest};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::messages::MessageBody;
use super::{Place, existing};
use crate::app::App;
use crate::extract::{JsonOrDefault, Path, Query};
use crate::identity::Identity;
use crate::problem::Problem;

/// What a turn begins with.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct NewTurn {
    /// What the user says.
    text: Option<String>,
    /// Skills to load: all of them, or the turn does not begin.
    load: Vec<Load>,
    /// Skills to load that stay: those that cannot be loaded are problems, and the turn begins.
    pinned: Vec<String>,
}

/// A skill to load.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(untagged)]
enum Load {
    /// Its name.
    Name(String),
    /// Its name, and more.
    More(LoadMore),
}

/// A skill to load, with docs or arguments.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct LoadMore {
    #[schema(min_length = 1)]
    skill: String,
    /// Some of its docs.
    #[serde(default)]
    docs: Vec<String>,
    /// All of its docs.
    #[serde(default)]
    include_all_docs: bool,
    /// Arguments to put into its text.
    #[serde(default)]
    arguments: String,
}

impl From<Load> for LoadRequest {
    fn from(load: Load) -> Self {
        match load {
            Load::Name(skill) => Self::new(skill),
            Load::More(more) => {
                let mut request = Self::new(more.skill).with_arguments(more.arguments);
                (request.docs, request.include_all_docs) = (more.docs, more.include_all_docs);
                request
            }
        }
    }
}

/// A turn that has begun.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Begun {
    /// Its number, from 1.
    turn: u64,
    /// What is to be appended to the conversation. The stored transcript has it already.
    #[schema(value_type = Vec<MessageBody>)]
    messages: Vec<Message>,
    /// What is not as it was asked for.
    problems: Vec<String>,
    /// The session's revision.
    revision: u64,
}

/// Begins a turn: resets what a turn ends, loads what is asked for, says what is to be appended.
#[utoipa::path(
    post, path = "/sessions/{session_id}/turns", operation_id = "begin_turn", tag = "sessions",
    params(("session_id" = String, Path), Place), request_body(content = Option<NewTurn>),
    responses(
        (status = 200, body = Begun),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "There is no such session"),
    )
)]
pub(super) async fn begin(
    State(app): State<App>,
    identity: Identity,
    Path(session): Path<String>,
    Query(place): Query<Place>,
    JsonOrDefault(new): JsonOrDefault<NewTurn>,
) -> Result<Json<Begun>, Problem> {
    let (key, agent) = (place.key(&session, &identity)?, place.agent()?);
    existing(&app, &key).await?;
    let mut request = TurnRequest::new();
    request.loads = new.load.into_iter().map(LoadRequest::from).collect();
    request.pinned = new.pinned;
    request.messages = new.text.map(Message::user).into_iter().collect();
    let runtime = app.runtime().clone();
    let work = async move { Ok(runtime.begin_turn(&key, &agent, request).await?) };
    let turn = app.finish(work).await?;
    Ok(Json(Begun {
        turn: turn.number,
        messages: turn.messages,
        problems: turn.problems,
        revision: turn.revision.0,
    }))
}
