//! What only the engine can say: texts that are made when somebody asks for them.

use prowess_catalog::CatalogSkill;
use prowess_runtime::{AgentName, SessionKey, ToolOutcome};

use super::load::Asker;
use crate::app::App;
use crate::identity::Identity;
use crate::problem::Problem;

/// The session that a text is for whose reader names none, or none that the engine knows how to call.
const NO_SESSION: &str = "-";

/// Whom a text is for.
struct Reader {
    session: SessionKey,
    agent: AgentName,
}

impl Reader {
    fn of(identity: &Identity, asker: &Asker) -> Result<Self, Problem> {
        let (app, user) = (SessionKey::DEFAULT_APP, identity.user());
        let named = SessionKey::new(app, user, asker.session().unwrap_or(NO_SESSION));
        let session = named.or_else(|_| SessionKey::new(app, user, NO_SESSION))?;
        let agent = asker.agent().and_then(|agent| AgentName::new(agent).ok()).unwrap_or_default();
        Ok(Self { session, agent })
    }
}

/// The text that loading a skill gives, made now.
pub(super) async fn skill_text(
    app: &App,
    identity: &Identity,
    asker: &Asker,
    skill: CatalogSkill,
) -> Result<String, Problem> {
    let Reader { session, agent } = Reader::of(identity, asker)?;
    let runtime = app.runtime().clone();
    let made = async move { Ok(runtime.skill_text(&session, &agent, &skill).await) };
    given(app.finish(made).await?)
}

/// The text of a resource, made now.
pub(super) async fn resource_text(
    app: &App,
    identity: &Identity,
    asker: &Asker,
    skill: CatalogSkill,
    resource: String,
) -> Result<String, Problem> {
    let Reader { session, agent } = Reader::of(identity, asker)?;
    let runtime = app.runtime().clone();
    let made = async move { Ok(runtime.resource_text(&session, &agent, &skill, &resource).await) };
    given(app.finish(made).await?)
}

fn given(outcome: ToolOutcome) -> Result<String, Problem> {
    match outcome.is_error {
        true => Err(outcome.into()),
        false => Ok(outcome.content),
    }
}
