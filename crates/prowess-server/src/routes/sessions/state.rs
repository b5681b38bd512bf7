//! What sessions there are, and what they remember.

use axum::Json;
use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use jiff::Timestamp;
use prowess_runtime::{
    AgentName, Revision, SessionDelta, SessionKey, SessionState, SessionSummary, StoreError,
};
use prowess_store::Role;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{Place, existing, not_found};
use crate::app::App;
use crate::extract::{JsonOrDefault, Path, Query};
use crate::identity::Identity;
use crate::problem::Problem;

/// So many sessions are listed unless somebody says otherwise.
const DEFAULT_PAGE: usize = 100;
/// So many sessions are listed at most.
const LARGEST_PAGE: usize = 500;

/// A new session.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct NewSession {
    /// Its id; without it, one is made. 1 to 128 bytes, no `/`, no control characters.
    #[schema(pattern = "^[^/\\s\\x00-\\x1f\\x7f-\\x9f][^/\\x00-\\x1f\\x7f-\\x9f]{0,127}$")]
    session_id: Option<String>,
    /// Its app; `prowess` without it.
    #[schema(pattern = "^([^/\\s\\x00-\\x1f\\x7f-\\x9f][^/\\x00-\\x1f\\x7f-\\x9f]{0,127})?$")]
    app: Option<String>,
    /// Its first agent; `main` without it.
    #[schema(pattern = "^([^/\\s\\x00-\\x1f\\x7f-\\x9f][^/\\x00-\\x1f\\x7f-\\x9f]{0,127})?$")]
    agent: Option<String>,
}

/// A session in a list.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SessionInfo {
    session_id: String,
    app: String,
    user: String,
    /// Counts its commits.
    revision: u64,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
}

/// A part of the list of sessions.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SessionList {
    sessions: Vec<SessionInfo>,
    /// How many there are in all.
    total: usize,
    /// What to ask for the next part with; none if this is the last one.
    next_cursor: Option<String>,
}

/// Which sessions are listed.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// Only those of this app.
    app: Option<String>,
    /// Only those of this user. Others' need the role admin.
    user: Option<String>,
    /// At most so many: 1 to 500, 100 without it.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
    /// `next_cursor` of the part before.
    #[param(
        pattern = "^[^/\\s\\x00-\\x1f\\x7f-\\x9f][^/\\x00-\\x1f\\x7f-\\x9f]{0,127}(/[^/\\s\\x00-\\x1f\\x7f-\\x9f][^/\\x00-\\x1f\\x7f-\\x9f]{0,127}){2}$"
    )]
    cursor: Option<String>,
}

/// What an agent of a session has.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SessionView {
    session_id: String,
    app: String,
    user: String,
    /// Counts its commits.
    revision: u64,
    /// The agent whose state this is.
    #[schema(value_type = String)]
    agent: AgentName,
    /// All agents of the session.
    #[schema(value_type = Vec<String>)]
    agents: Vec<AgentName>,
    /// How many turns have begun.
    turn: u64,
    /// Another model than the agent's own, and the skill that asks for it.
    #[schema(value_type = Option<Object>)]
    model: Option<serde_json::Value>,
    /// The skills that are loaded.
    loaded: Vec<LoadedView>,
}

/// A loaded skill.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LoadedView {
    name: String,
    /// The version in the author's words.
    version: Option<String>,
    /// What identifies the text that the session keeps.
    digest: String,
    /// What identifies all its files, as far as that could be said.
    tree_digest: Option<String>,
    /// How often its text was given.
    load_count: u32,
    /// Whether the host has pinned it.
    pinned: bool,
    /// The docs that were selected.
    docs: Vec<String>,
    /// Whether there is another version now than the one that the session keeps.
    update_available: bool,
    /// The number of the version that is used now, if the registry has the skill.
    active_version: Option<u64>,
}

impl From<SessionSummary> for SessionInfo {
    fn from(summary: SessionSummary) -> Self {
        Self {
            session_id: summary.key.session().to_owned(),
            app: summary.key.app().to_owned(),
            user: summary.key.user().to_owned(),
            revision: summary.revision.0,
            created_at: summary.created,
            updated_at: summary.updated,
            expires_at: summary.expires,
        }
    }
}

/// Lists sessions: one's own; those of everybody for the role admin.
#[utoipa::path(
    get, path = "/sessions", operation_id = "list_sessions", tag = "sessions", params(Which),
    responses((status = 200, body = SessionList))
)]
pub(super) async fn list(
    State(app): State<App>,
    identity: Identity,
    Query(which): Query<Which>,
) -> Result<Json<SessionList>, Problem> {
    if which.user.as_deref().is_some_and(|user| user != identity.user()) {
        identity.require(Role::Admin)?;
    }
    let limit = which.limit.unwrap_or(DEFAULT_PAGE);
    if !(1..=LARGEST_PAGE).contains(&limit) {
        return Err(Problem::invalid(&["query", "limit"], format!("1 to {LARGEST_PAGE}")));
    }
    let after: Option<SessionKey> = match &which.cursor {
        Some(cursor) if cursor.matches('/').count() != 2 => {
            return Err(Problem::invalid(&["query", "cursor"], "take a next_cursor as it is"));
        }
        Some(cursor) => {
            let invalid = |_| Problem::invalid(&["query", "cursor"], "take a next_cursor as it is");
            Some(cursor.parse().map_err(invalid)?)
        }
        None => None,
    };
    let is_all = identity.role >= Role::Admin && which.user.is_none();
    let user = which.user.as_deref().unwrap_or(identity.user());
    let is_meant = |summary: &SessionSummary| {
        (is_all || summary.key.user() == user)
            && which.app.as_deref().is_none_or(|app| app == summary.key.app())
    };
    let mut all = app.runtime().sessions().list().await?;
    all.retain(is_meant);
    let total = all.len();
    let begin = after.map_or(0, |after| all.partition_point(|summary| summary.key <= after));
    let page: Vec<SessionSummary> = all.drain(begin..).take(limit).collect();
    let is_last = begin + page.len() >= total;
    let next_cursor = page.last().filter(|_| !is_last).map(|summary| summary.key.to_string());
    let sessions = page.into_iter().map(SessionInfo::from).collect();
    Ok(Json(SessionList { sessions, total, next_cursor }))
}

/// Makes a session.
#[utoipa::path(
    post, path = "/sessions", operation_id = "create_session", tag = "sessions",
    request_body(content = Option<NewSession>),
    responses(
        (status = 201, body = SessionView, headers(("Location" = String, description = "Where it is"))),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "It is there already"),
    )
)]
pub(super) async fn create(
    State(app): State<App>,
    identity: Identity,
    JsonOrDefault(new): JsonOrDefault<NewSession>,
) -> Result<(StatusCode, [(axum::http::HeaderName, HeaderValue); 1], Json<SessionView>), Problem> {
    let place = Place { app: new.app, user: None, agent: new.agent };
    let id = new.session_id.unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
    let (key, agent) = (place.key(&id, &identity)?, place.agent()?);
    let delta = SessionDelta::new(agent.clone(), app.runtime().settings().caps());
    let made = app.runtime().sessions().commit(&key, Revision(0), delta, Vec::new()).await;
    if let Err(StoreError::Conflict { .. }) = made {
        let message = format!("the session {key} exists; choose another id or use it");
        return Err(Problem::new(409, "session_exists", message));
    }
    made?;
    let location = HeaderValue::from_str(&location(&key))
        .map_err(|_| Problem::invalid(&["session_id"], "it fits into no address"))?;
    let view = view(&app, &key, agent).await?;
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(view)))
}

/// What an agent of a session has: its turn, its loaded skills, whether there are updates of them.
#[utoipa::path(
    get, path = "/sessions/{session_id}", operation_id = "get_session", tag = "sessions",
    params(("session_id" = String, Path), Place),
    responses(
        (status = 200, body = SessionView),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "There is no such session"),
    )
)]
pub(super) async fn get(
    State(app): State<App>,
    identity: Identity,
    Path(session): Path<String>,
    Query(place): Query<Place>,
) -> Result<Json<SessionView>, Problem> {
    let (key, agent) = (place.key(&session, &identity)?, place.agent()?);
    Ok(Json(view(&app, &key, agent).await?))
}

/// Ends a session: it is removed with everything in it.
#[utoipa::path(
    delete, path = "/sessions/{session_id}", operation_id = "delete_session", tag = "sessions",
    params(("session_id" = String, Path), Place),
    responses(
        (status = 204, description = "It is gone"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "There is no such session"),
    )
)]
pub(super) async fn end(
    State(app): State<App>,
    identity: Identity,
    Path(session): Path<String>,
    Query(place): Query<Place>,
) -> Result<StatusCode, Problem> {
    let key = place.key(&session, &identity)?;
    match app.runtime().sessions().delete(&key).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(not_found(&key)),
    }
}

async fn view(app: &App, key: &SessionKey, agent: AgentName) -> Result<SessionView, Problem> {
    let stored = existing(app, key).await?;
    let SessionState { turn, model, loaded, .. } = stored.session.state(&agent);
    let snapshot = app.runtime().snapshot(key, &agent).await;
    let mut views = Vec::with_capacity(loaded.len());
    for skill in &loaded {
        let update_available = match snapshot.get(&skill.name) {
            Ok(offered) => skill.is_outdated_by(offered).await,
            Err(_) => false,
        };
        let registered = app.registry().get(&skill.name);
        views.push(LoadedView {
            name: skill.name.clone(),
            version: skill.version.clone(),
            digest: skill.digest.to_string(),
            tree_digest: skill.tree_digest.as_ref().map(ToString::to_string),
            load_count: skill.load_count,
            pinned: skill.pinned,
            docs: skill.docs.paths().into_iter().map(str::to_owned).collect(),
            update_available,
            active_version: registered.map(|it| it.skill.active.number),
        });
    }
    Ok(SessionView {
        session_id: key.session().to_owned(),
        app: key.app().to_owned(),
        user: key.user().to_owned(),
        revision: stored.revision.0,
        agent,
        agents: stored.session.agents.keys().cloned().collect(),
        turn,
        model: model.and_then(|model| serde_json::to_value(model).ok()),
        loaded: views,
    })
}

/// Where a session is.
fn location(key: &SessionKey) -> String {
    let mut text = format!("/api/v1/sessions/{}", encoded(key.session()));
    if key.app() != SessionKey::DEFAULT_APP {
        text.push_str(&format!("?app={}", encoded(key.app())));
    }
    text
}

fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            _ if byte.is_ascii_alphanumeric() => encoded.push(byte.into()),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_where_its_location_says() {
        let of = |app: &str, session: &str| location(&SessionKey::new(app, "u", session).unwrap());
        assert_eq!(of("prowess", "demo-1.x"), "/api/v1/sessions/demo-1.x");
        assert_eq!(of("my app", "a b?#ü"), "/api/v1/sessions/a%20b%3F%23%C3%BC?app=my%20app");
    }
}
