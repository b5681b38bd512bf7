//! Sessions: the engine for agents in any language.

mod calls;
mod events;
mod messages;
mod prompt;
mod state;
mod turns;

use prowess_runtime::{AgentName, SessionKey, StoredSession};
use prowess_store::Role;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::identity::Identity;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(state::list, state::create))
        .routes(routes!(state::get, state::end))
        .routes(routes!(turns::begin))
        .routes(routes!(messages::append))
        .routes(routes!(prompt::tools))
        .routes(routes!(prompt::show, prompt::request))
        .routes(routes!(calls::call))
        .routes(routes!(events::follow))
}

/// Which session is meant, besides its id.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Place {
    /// The app; `prowess` without it.
    #[param(pattern = "^([^/\\s\\x00-\\x1f\\x7f-\\x9f][^/\\x00-\\x1f\\x7f-\\x9f]{0,127})?$")]
    app: Option<String>,
    /// The user whose session it is; without it, whoever asks. Others' sessions need the role admin.
    #[param(pattern = "^([^/\\s\\x00-\\x1f\\x7f-\\x9f][^/\\x00-\\x1f\\x7f-\\x9f]{0,127})?$")]
    user: Option<String>,
    /// The agent; `main` without it.
    #[param(pattern = "^([^/\\s\\x00-\\x1f\\x7f-\\x9f][^/\\x00-\\x1f\\x7f-\\x9f]{0,127})?$")]
    agent: Option<String>,
}

impl Place {
    /// The key of a session, if this is one of theirs or they may see all.
    fn key(&self, session: &str, identity: &Identity) -> Result<SessionKey, Problem> {
        // No address leads there.
        if matches!(session, "." | "..") {
            return Err(Problem::invalid(&["session_id"], "'.' and '..' are no ids"));
        }
        let user = given(self.user.as_deref()).unwrap_or(identity.user());
        let app = given(self.app.as_deref()).unwrap_or(SessionKey::DEFAULT_APP);
        let key = SessionKey::new(app, user, session)?;
        if user != identity.user() {
            identity.require(Role::Admin)?;
        }
        Ok(key)
    }

    fn agent(&self) -> Result<AgentName, Problem> {
        match given(self.agent.as_deref()) {
            Some(name) => Ok(AgentName::new(name)?),
            None => Ok(AgentName::default()),
        }
    }
}

/// A name that was given: an empty one was not.
fn given(name: Option<&str>) -> Option<&str> {
    name.filter(|name| !name.is_empty())
}

/// A session that is there.
async fn existing(app: &App, key: &SessionKey) -> Result<StoredSession, Problem> {
    app.catch_up().await;
    let found = app.runtime().sessions().get(key).await?;
    found.ok_or_else(|| not_found(key))
}

fn not_found(key: &SessionKey) -> Problem {
    let message = format!("there is no session {key}; POST /api/v1/sessions makes one");
    Problem::new(404, "session_not_found", message)
}
