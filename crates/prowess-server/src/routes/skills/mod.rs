//! Skills of the registry.

mod asked;
pub(super) mod change;
mod given_back;
mod list;
mod load;
mod read;
mod shown;

use std::sync::Arc;

use prowess_store::{Role, Shelved, SkillId, Version, VersionError};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::extract::Whole;
use crate::identity::Identity;
use crate::problem::Problem;

pub(super) use given_back::{CHANGE_EXTRA, DOCUMENT_EXTRA};
pub(crate) use load::LoadedText;
pub(super) use read::document_of;
pub(crate) use shown::SkillInfo;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list::list, change::create))
        .routes(routes!(read::get, change::update, change::delete))
        .routes(routes!(load::load))
        .routes(routes!(change::reset))
        .routes(routes!(read::resources))
        .routes(routes!(read::resource))
}

/// A skill that is there. Another process may just have made it.
pub(super) async fn existing(app: &App, id: &str) -> Result<Arc<Shelved>, Problem> {
    if let Some(shelved) = app.known_registry()?.get(id) {
        return Ok(shelved);
    }
    let known: SkillId = id.parse().map_err(|_| no_skill(id))?;
    app.refresh().await?;
    app.registry().get(id).ok_or_else(|| VersionError::NoSkill(known).into())
}

/// A skill as somebody sees it.
pub(super) enum Seen {
    /// One of its versions is used.
    Used(Arc<Shelved>),
    /// None is: this one waits for that, at this revision of the skill.
    Waiting(u64, Box<Version>),
}

/// A skill that is there for whoever asks. One that waits is there for those who make versions.
pub(super) async fn seen(app: &App, id: &str, identity: &Identity) -> Result<Seen, Problem> {
    let problem = match existing(app, id).await {
        Ok(shelved) => return Ok(Seen::Used(shelved)),
        Err(problem) => problem,
    };
    let Ok(skill) = id.parse::<SkillId>() else { return Err(problem) };
    if problem.status() != 404 || identity.role < Role::Editor {
        return Err(problem);
    }
    match app.registry().store().head(&skill).await {
        Ok((revision, version)) => Ok(Seen::Waiting(revision, version.into())),
        Err(error @ VersionError::Unavailable(_)) => Err(error.into()),
        Err(_) => Err(problem),
    }
}

impl Seen {
    pub(super) fn id(&self) -> &SkillId {
        match self {
            Self::Used(shelved) => &shelved.skill.id,
            Self::Waiting(_, version) => &version.skill,
        }
    }

    /// The number of the version that is used, if one is.
    pub(super) fn active(&self) -> Option<u64> {
        match self {
            Self::Used(shelved) => Some(shelved.skill.active.number),
            Self::Waiting(..) => None,
        }
    }

    /// The version of this number; without one, the one that is used or waits for that.
    pub(super) async fn version(
        &self,
        app: &App,
        number: Option<Whole>,
    ) -> Result<Version, Problem> {
        match (number, self) {
            (Some(Whole(number)), _) => {
                Ok(app.registry().store().version(self.id(), number).await?)
            }
            (None, Self::Used(shelved)) => Ok(shelved.skill.active.clone()),
            (None, Self::Waiting(_, version)) => Ok((**version).clone()),
        }
    }
}

/// There cannot even be one of this id.
fn no_skill(id: &str) -> Problem {
    let shown: String = id.chars().take(80).collect();
    Problem::new(404, "skill_not_found", format!("Skill not found: {}", shown.escape_debug()))
}
