//! Skills of the registry.

mod asked;
pub(super) mod change;
mod given_back;
mod list;
mod load;
mod read;
mod shown;

use std::sync::Arc;

use prowess_store::{Shelved, SkillId, Version, VersionError, WaitingSkill};
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
        .route(
            "/skills/{skill_id}/resources/{resource_name}/{*rest}",
            axum::routing::get(read::resource_in_folder),
        )
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
    /// One of its versions is used, by somebody who sees all of them.
    Used(Arc<Shelved>),
    /// One is used; the later ones wait or were taken back, and are not for whoever asks.
    UsedOnly(Arc<Shelved>),
    /// None is used: one waits for that.
    Waiting(Arc<WaitingSkill>),
}

/// A skill that is there for whoever asks. One that waits is there for those who make versions.
pub(super) async fn seen(app: &App, id: &str, identity: &Identity) -> Result<Seen, Problem> {
    let sees_all = identity.sees_what_waits();
    match existing(app, id).await {
        Ok(shelved) if sees_all => Ok(Seen::Used(shelved)),
        Ok(shelved) => Ok(Seen::UsedOnly(shelved)),
        Err(problem) => {
            let waiting = app.registry().waiting(id).filter(|_| sees_all);
            waiting.map(Seen::Waiting).ok_or(problem)
        }
    }
}

impl Seen {
    pub(super) fn id(&self) -> &SkillId {
        match self {
            Self::Used(shelved) | Self::UsedOnly(shelved) => &shelved.skill.id,
            Self::Waiting(waiting) => &waiting.id,
        }
    }

    /// The number of the version that is used, if one is.
    pub(super) fn active(&self) -> Option<u64> {
        match self {
            Self::Used(shelved) | Self::UsedOnly(shelved) => Some(shelved.skill.active.number),
            Self::Waiting(_) => None,
        }
    }

    /// The number of the version that waits, if one does and whoever asks sees it.
    pub(super) fn pending(&self) -> Option<u64> {
        match self {
            Self::Used(shelved) => shelved.skill.pending,
            Self::UsedOnly(_) => None,
            Self::Waiting(waiting) => Some(waiting.version.number),
        }
    }

    /// Whether whoever asks sees the version of this number, if there is one.
    pub(super) fn sees(&self, number: u64) -> bool {
        match self {
            Self::UsedOnly(shelved) => number <= shelved.skill.active.number,
            Self::Used(_) | Self::Waiting(_) => true,
        }
    }

    /// How many of the newest versions whoever asks does not see.
    pub(super) fn hidden(&self) -> u64 {
        match self {
            Self::UsedOnly(shelved) => {
                shelved.skill.newest().saturating_sub(shelved.skill.active.number)
            }
            Self::Used(_) | Self::Waiting(_) => 0,
        }
    }

    /// The version of this number; without one, the one that is used or waits for that.
    pub(super) async fn version(
        &self,
        app: &App,
        number: Option<Whole>,
    ) -> Result<Version, Problem> {
        match (number, self) {
            (Some(Whole(number)), _) if !self.sees(number) => {
                Err(VersionError::NoVersion { skill: self.id().clone(), number }.into())
            }
            (Some(Whole(number)), _) => {
                Ok(app.registry().store().version(self.id(), number).await?)
            }
            (None, Self::Used(shelved) | Self::UsedOnly(shelved)) => {
                Ok(shelved.skill.active.clone())
            }
            (None, Self::Waiting(waiting)) => Ok(waiting.version.clone()),
        }
    }
}

/// There cannot even be one of this id.
fn no_skill(id: &str) -> Problem {
    let shown: String = id.chars().take(80).collect();
    Problem::new(404, "skill_not_found", format!("Skill not found: {}", shown.escape_debug()))
}
