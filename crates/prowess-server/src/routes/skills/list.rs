//! Which skills there are.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use prowess_store::{OnShelf, Origin, Role, SkillQuery, SkillStatus};
use serde::Deserialize;
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use super::shown::SkillSummary;
use crate::app::App;
use crate::extract::Query;
use crate::identity::Identity;
use crate::problem::Problem;

/// So many skills are listed unless somebody says otherwise.
const DEFAULT_PAGE: usize = 100;
/// So many skills are listed at most.
const LARGEST_PAGE: usize = 500;

/// The most characters of a filter.
const MOST_CHARACTERS: usize = 1000;

/// Which skills are listed.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// Only those whose id, name, description or category contains this, in whichever case.
    #[param(max_length = 1000)]
    q: Option<String>,
    /// Only those of this category.
    category: Option<String>,
    /// Only `builtin` or only `custom` ones.
    #[param(inline)]
    origin: Option<WhichOrigin>,
    /// Only those of which a version is `used`, or only those of which one is `waiting` for a
    /// publisher (the role editor is needed). Without it, all that whoever asks may see.
    #[param(inline)]
    status: Option<WhichStatus>,
    /// At most so many: 1 to 500, 100 without it.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
    /// `next_cursor` of the part before.
    cursor: Option<String>,
}

/// Who brought a skill.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum WhichOrigin {
    #[serde(alias = "built_in")]
    Builtin,
    Custom,
}

/// Whether skills are used, or wait.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum WhichStatus {
    Used,
    Waiting,
}

/// Which skills somebody is shown.
fn status(asked: Option<WhichStatus>, identity: &Identity) -> Result<SkillStatus, Problem> {
    Ok(match asked {
        Some(WhichStatus::Waiting) => {
            identity.require(Role::Editor)?;
            SkillStatus::Waiting
        }
        None if identity.sees_what_waits() => SkillStatus::Any,
        _ => SkillStatus::Used,
    })
}

/// A part of the skills.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "the schema of what is written below")]
pub(super) struct SkillList {
    skills: Vec<SkillSummary>,
    /// How many there are in all that were asked for.
    total: usize,
    /// What to ask for the next part with; none if this is the last one.
    next_cursor: Option<String>,
}

/// The skills of the registry, in the order of their ids. Those of which no version is used yet are
/// among them for those who make versions; they have no `active_version`.
#[utoipa::path(
    get, path = "/skills", tag = "skills", operation_id = "list_skills", params(Which),
    responses((status = 200, body = SkillList))
)]
pub(super) async fn list(
    State(app): State<App>,
    identity: Identity,
    Query(which): Query<Which>,
) -> Result<impl IntoResponse, Problem> {
    let limit = which.limit.unwrap_or(DEFAULT_PAGE);
    if !(1..=LARGEST_PAGE).contains(&limit) {
        let message = format!("it must be 1 to {LARGEST_PAGE}");
        return Err(Problem::invalid(&["query", "limit"], message));
    }
    if which.q.as_ref().is_some_and(|text| text.chars().count() > MOST_CHARACTERS) {
        let message = format!("it must be at most {MOST_CHARACTERS} characters");
        return Err(Problem::invalid(&["query", "q"], message));
    }
    let query = SkillQuery {
        text: which.q.filter(|text| !text.is_empty()),
        category: which.category,
        origin: which.origin.map(|origin| match origin {
            WhichOrigin::Builtin => Origin::BuiltIn,
            WhichOrigin::Custom => Origin::Custom,
        }),
        status: status(which.status, &identity)?,
        after: which.cursor,
        limit,
    };
    let registry = app.known_registry()?;
    let page = registry.find(&query);
    let used = page.skills.iter().filter_map(|it| match it {
        OnShelf::Used(shelved) => Some(Arc::clone(shelved)),
        OnShelf::Waiting(_) => None,
    });
    let used: Vec<_> = used.collect();
    let mut last = app.last_loads().of(&used, app.usage().as_ref()).await?.into_iter();
    let next_cursor = page.skills.last().filter(|_| page.has_more);
    let next_cursor = json!(next_cursor.map(|it| it.id().as_str()));
    let mut text = String::with_capacity(64 + 512 * page.skills.len());
    text.push_str("{\"skills\":[");
    for (at, skill) in page.skills.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        match skill {
            OnShelf::Used(shelved) => {
                let pending = shelved.skill.pending.filter(|_| identity.sees_what_waits());
                SkillSummary::write(&mut text, shelved, pending, last.next().flatten())?;
            }
            OnShelf::Waiting(waiting) => SkillSummary::write_waiting(&mut text, waiting)?,
        }
    }
    let total = page.total;
    write!(text, "],\"total\":{total},\"next_cursor\":{next_cursor}}}").map_err(Problem::broken)?;
    Ok(([(CONTENT_TYPE, "application/json")], text))
}
