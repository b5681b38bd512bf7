//! Versions of a skill.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::ETAG;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use prowess_store::{FileDiff, Role, Version, compare};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::skills::change::meant;
use super::skills::{Seen, document_of, seen};
use crate::app::App;
use crate::extract::{Path, Query, Whole};
use crate::heavy::json_of;
use crate::identity::Identity;
use crate::prepared::etag_of;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(get))
        .routes(routes!(activate))
        .routes(routes!(diff))
}

/// A version in a list.
#[derive(Debug, Serialize, ToSchema)]
struct VersionSummary {
    version_number: u64,
    semantic_version: String,
    change_summary: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// Who made it, as `created_by`: nobody chooses this. Whom the text names as its author is in the
    /// document of the skill.
    author: String,
    /// Who made it: `local`, `key:NAME`, `jwt:NAME` or `built-in`.
    created_by: String,
    is_active: bool,
    /// Whether it waits for a publisher.
    is_pending: bool,
    /// What identifies all its files.
    tree_digest: String,
}

impl VersionSummary {
    fn new(version: &Version, seen: &Seen) -> Self {
        Self {
            version_number: version.number,
            semantic_version: version.about.semantic_version.clone(),
            change_summary: version.change_summary.clone(),
            created_at: version.created,
            author: version.created_by.to_string(),
            created_by: version.created_by.to_string(),
            is_active: Some(version.number) == seen.active(),
            is_pending: Some(version.number) == seen.pending(),
            tree_digest: version.tree_digest.to_string(),
        }
    }
}

/// A part of the versions of a skill.
#[derive(Debug, Serialize, ToSchema)]
struct VersionList {
    skill_id: String,
    /// The newest first.
    versions: Vec<VersionSummary>,
    /// How many there are in all.
    total: u64,
    limit: usize,
    offset: u64,
}

/// Which versions are listed.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct WhichVersions {
    /// At most so many: 1 to 100, 20 without it.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
    /// So many are left out.
    offset: Option<Whole>,
}

/// The versions of a skill, the newest first. Those who make versions see all of them; others see
/// those up to the one that is used.
#[utoipa::path(
    get, path = "/skills/{skill_id}/versions", tag = "versions", operation_id = "list_versions",
    params(("skill_id" = String, Path, description = "The id of the skill"), WhichVersions),
    responses((status = 200, body = VersionList))
)]
async fn list(
    State(app): State<App>,
    identity: Identity,
    Path(id): Path<String>,
    Query(which): Query<WhichVersions>,
) -> Result<Json<VersionList>, Problem> {
    let limit = which.limit.unwrap_or(20);
    if !(1..=100).contains(&limit) {
        return Err(Problem::invalid(&["query", "limit"], "it must be 1 to 100"));
    }
    let seen = seen(&app, &id, &identity).await?;
    let (offset, hidden) = (which.offset.unwrap_or_default().0, seen.hidden());
    let from = offset.saturating_add(hidden);
    let listed = app.registry().store().versions(seen.id(), from, limit).await?;
    // Others may just have made some.
    let items = listed.items.iter().filter(|it| seen.sees(it.number));
    let versions = items.map(|it| VersionSummary::new(it, &seen)).collect();
    let total = listed.total.saturating_sub(hidden);
    Ok(Json(VersionList { skill_id: id, versions, total, limit, offset }))
}

/// Everything about a version.
#[derive(Debug, Serialize, ToSchema)]
struct VersionInfo {
    #[serde(flatten)]
    summary: VersionSummary,
    skill_id: String,
    name: String,
    description: String,
    category: String,
    core_content: String,
    resources: Vec<prowess_store::DocumentFile>,
    scripts: Vec<prowess_store::DocumentFile>,
    tool_configs: Vec<prowess_store::DocumentTool>,
    resource_configs: Vec<prowess_store::DocumentResource>,
    mcp_tool_configs: Vec<prowess_store::DocumentServer>,
}

/// A version of a skill, with everything in it. It never changes.
#[utoipa::path(
    get, path = "/skills/{skill_id}/versions/{version_number}", tag = "versions",
    operation_id = "get_version",
    params(
        ("skill_id" = String, Path, description = "The id of the skill"),
        ("version_number" = Whole, Path, description = "The number of the version"),
    ),
    responses((status = 200, body = VersionInfo))
)]
async fn get(
    State(app): State<App>,
    identity: Identity,
    Path((id, Whole(number))): Path<(String, Whole)>,
) -> Result<Response, Problem> {
    let seen = seen(&app, &id, &identity).await?;
    let version = seen.version(&app, Some(Whole(number))).await?;
    let (document, bytes) = document_of(&app, &version).await?;
    let info = VersionInfo {
        summary: VersionSummary::new(&version, &seen),
        skill_id: id,
        name: document.name,
        description: document.description,
        category: document.category,
        core_content: document.core_content,
        resources: document.resources,
        scripts: document.scripts,
        tool_configs: document.tool_configs,
        resource_configs: document.resource_configs,
        mcp_tool_configs: document.mcp_tool_configs,
    };
    json_of(bytes, info).await
}

/// Which version is used now.
#[derive(Debug, Serialize, ToSchema)]
struct Activated {
    skill_id: String,
    active_version: u64,
    message: String,
}

/// Decides which version is used, from the next load on. The role publisher is needed. Sessions keep
/// what they have loaded, and are told that there is another one.
#[utoipa::path(
    post, path = "/skills/{skill_id}/versions/{version_number}/activate", tag = "versions",
    operation_id = "activate_version",
    params(
        ("skill_id" = String, Path, description = "The id of the skill"),
        ("version_number" = Whole, Path, description = "The number of the version"),
        ("If-Match" = Option<String>, Header, description = "The ETag of the skill that is changed"),
    ),
    responses(
        (status = 200, body = Activated, headers(("ETag" = String))),
        (status = 412, description = "It was changed meanwhile", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn activate(
    State(app): State<App>,
    identity: Identity,
    Path((id, Whole(number))): Path<(String, Whole)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    identity.require(Role::Publisher)?;
    let (skill, expected) = meant(&app, &id, &headers).await?;
    let store = app.registry().store();
    let change = async { store.activate(&skill, number, expected, &identity.actor).await };
    let skill = app.changed(change).await?;
    let message = format!("Version {number} is now active");
    let activated = Activated { skill_id: id, active_version: skill.active.number, message };
    Ok(([(ETAG, etag_of(&skill))], Json(activated)).into_response())
}

/// Which versions are compared, and which part is given.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct WhichDiff {
    /// The number of a version.
    from: Whole,
    /// The number of another one.
    to: Whole,
    /// At most so many files: 1 to 100, 100 without it.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
    /// `next_cursor` of the part before.
    cursor: Option<Whole>,
}

/// How two versions differ.
#[derive(Debug, Serialize, ToSchema)]
struct VersionDiff {
    skill_id: String,
    from_version: u64,
    to_version: u64,
    /// The files that differ, whole; in the order of their paths.
    files: Vec<FileDiff>,
    /// How many files differ.
    total: usize,
    /// What to ask for the next part with; none if this is the last one.
    next_cursor: Option<usize>,
}

/// How two versions of a skill differ: every file, nothing cut.
#[utoipa::path(
    get, path = "/skills/{skill_id}/diff", tag = "versions", operation_id = "diff_versions",
    params(("skill_id" = String, Path, description = "The id of the skill"), WhichDiff),
    responses((status = 200, body = VersionDiff))
)]
async fn diff(
    State(app): State<App>,
    identity: Identity,
    Path(id): Path<String>,
    Query(which): Query<WhichDiff>,
) -> Result<Response, Problem> {
    let limit = which.limit.unwrap_or(100);
    if !(1..=100).contains(&limit) {
        return Err(Problem::invalid(&["query", "limit"], "it must be 1 to 100"));
    }
    let seen = seen(&app, &id, &identity).await?;
    let store = app.registry().store();
    let from = seen.version(&app, Some(which.from)).await?;
    let to = seen.version(&app, Some(which.to)).await?;
    let (from, to) = (store.contents(&from).await?, store.contents(&to).await?);
    let bytes = from.bytes() + to.bytes();
    let compared = tokio::task::spawn_blocking(move || compare(&from, &to)).await;
    let all = compared.map_err(Problem::broken)?;
    let total = all.len();
    let begin = which.cursor.unwrap_or_default().0.try_into().unwrap_or(total).min(total);
    let end = begin.saturating_add(limit).min(total);
    let files = all.into_iter().skip(begin).take(limit).collect();
    let next_cursor = (end < total).then_some(end);
    let (from_version, to_version) = (which.from.0, which.to.0);
    let diff = VersionDiff { skill_id: id, from_version, to_version, files, total, next_cursor };
    json_of(bytes, diff).await
}
