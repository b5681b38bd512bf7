//! A skill, and its files.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, ETAG};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use prowess_catalog::ResourcePath;
use prowess_store::{
    DocumentFile, DocumentResource, Encoding, Role, Shelved, SkillDocument, UsageKind, Version,
    VersionError, VersionSource,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::asked::resource_text;
use super::list::WhichStatus;
use super::load::{Asker, counted};
use super::{Seen, SkillInfo, seen};
use crate::app::App;
use crate::condition::is_known;
use crate::extract::{Path, Query, Whole};
use crate::heavy::{heavy, json_of};
use crate::identity::Identity;
use crate::prepared::etag;
use crate::problem::Problem;

/// JSON that is ready.
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Everything about a skill: fields, text, files, tools. The ETag is what `If-Match` takes. Of a skill
/// that waits for a publisher, those who make versions see the one that waits; `active_version` is
/// `null` then. If a version waits while another one is used, `pending_version` tells them, and
/// `status=waiting` gives them that one, with an ETag of its own.
#[utoipa::path(
    get, path = "/skills/{skill_id}", tag = "skills", operation_id = "get_skill",
    params(("skill_id" = String, Path, description = "The id of the skill"), UsedOrWaiting),
    responses(
        (status = 200, body = SkillInfo, headers(("ETag" = String))),
        (status = 304, description = "It is what `If-None-Match` says"),
    )
)]
pub(super) async fn get(
    State(app): State<App>,
    identity: Identity,
    Path(id): Path<String>,
    Query(UsedOrWaiting { status }): Query<UsedOrWaiting>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if let Some(WhichStatus::Waiting) = status {
        identity.require(Role::Editor)?;
    }
    let (tag, info) = match (seen(&app, &id, &identity).await?, status) {
        (Seen::Waiting(waiting), Some(WhichStatus::Used)) => {
            return Err(VersionError::NoSkill(waiting.id.clone()).into());
        }
        (Seen::Waiting(waiting), _) => {
            let tag = etag(waiting.revision, waiting.version.tree_digest);
            let version = waiting.version.clone();
            let made = move |document| SkillInfo::waiting(&waiting, document);
            (tag, info(&app, &version, made).await?)
        }
        (Seen::Used(shelved) | Seen::UsedOnly(shelved), Some(WhichStatus::Waiting)) => {
            pending(&app, shelved).await?
        }
        (Seen::Used(shelved), _) => {
            let ready = app.prepared(&shelved).await?;
            let info = SkillInfo::with_pending(&ready.info, shelved.skill.pending)?;
            (ready.etag.clone(), info)
        }
        (Seen::UsedOnly(shelved), _) => {
            let ready = app.prepared(&shelved).await?;
            (ready.etag.clone(), ready.info.clone())
        }
    };
    if is_known(&headers, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response());
    }
    Ok(([(CONTENT_TYPE, JSON), (ETAG, tag)], info).into_response())
}

/// Which version of a skill is given.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct UsedOrWaiting {
    /// The version that is `used`, or the one that is `waiting` for a publisher (the role editor is
    /// needed). Without it the one that is used, or where none is, the one that waits.
    #[param(inline)]
    status: Option<WhichStatus>,
}

/// The version of a skill that waits beside the one that is used, and its tag.
async fn pending(app: &App, shelved: Arc<Shelved>) -> Result<(HeaderValue, Bytes), Problem> {
    let (revision, version) = app.registry().store().head(&shelved.skill.id).await?;
    if version.number == shelved.skill.active.number {
        let message = format!("no version of '{}' waits for a publisher", shelved.skill.id);
        return Err(Problem::new(404, "nothing_waits", message));
    }
    let tag = etag(revision, version.tree_digest);
    let one = version.clone();
    let made = move |document| SkillInfo::new(Some(&shelved.skill), revision, &one, document);
    Ok((tag, info(app, &version, made).await?))
}

/// What there is to say of a version, made of its document.
async fn info(
    app: &App,
    version: &Version,
    made: impl FnOnce(SkillDocument) -> SkillInfo + Send + 'static,
) -> Result<Bytes, Problem> {
    let contents = app.registry().store().contents(version).await?;
    let info = heavy(contents.bytes(), move || {
        serde_json::to_vec(&made(SkillDocument::of(&contents)?)).map_err(Problem::broken)
    });
    Ok(info.await??.into())
}

/// The files of a skill.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ResourceList {
    skill_id: String,
    version_number: u64,
    resources: Vec<ResourceEntry>,
}

/// A file of a skill.
#[derive(Debug, Serialize, ToSchema)]
struct ResourceEntry {
    /// What it is called, in the address too.
    name: String,
    description: String,
    /// Where it is in the skill's folder.
    path: Option<String>,
    /// Whether it is among the skill's scripts.
    is_script: bool,
}

/// Which version is meant.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct WhichVersion {
    /// The number of a version; without it, the active one.
    version: Option<Whole>,
}

async fn document(
    app: &App,
    identity: &Identity,
    id: &str,
    which: &WhichVersion,
) -> Result<(Version, SkillDocument), Problem> {
    let version = seen(app, id, identity).await?.version(app, which.version).await?;
    let document = document_of(app, &version).await?.0;
    Ok((version, document))
}

/// The document of a version, and of how many bytes it is made.
pub(in crate::routes) async fn document_of(
    app: &App,
    version: &Version,
) -> Result<(SkillDocument, usize), Problem> {
    let contents = app.registry().store().contents(version).await?;
    let bytes = contents.bytes();
    Ok((heavy(bytes, move || SkillDocument::of(&contents)).await??, bytes))
}

/// The files of a skill, without what they hold.
#[utoipa::path(
    get, path = "/skills/{skill_id}/resources", tag = "skills", operation_id = "list_resources",
    params(("skill_id" = String, Path, description = "The id of the skill"), WhichVersion),
    responses((status = 200, body = ResourceList))
)]
pub(super) async fn resources(
    State(app): State<App>,
    identity: Identity,
    Path(id): Path<String>,
    Query(which): Query<WhichVersion>,
) -> Result<Json<ResourceList>, Problem> {
    let (version, document) = document(&app, &identity, &id, &which).await?;
    let entry = |is_script| {
        move |file: DocumentFile| {
            let DocumentFile { name, description, path, .. } = file;
            ResourceEntry { name, description, path, is_script }
        }
    };
    let scripts = document.scripts.into_iter().map(entry(true));
    let resources = document.resources.into_iter().map(entry(false)).chain(scripts).collect();
    Ok(Json(ResourceList { skill_id: id, version_number: version.number, resources }))
}

/// A file of a skill, with what it holds.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ResourceContent {
    skill_id: String,
    resource_name: String,
    version_number: u64,
    path: Option<String>,
    /// What it holds; base64 if `encoding` says so.
    content: String,
    encoding: Encoding,
}

/// What a file of a skill holds, or a resource that its frontmatter holds, or one that the host makes
/// now. Counts as a detail.
#[utoipa::path(
    get, path = "/skills/{skill_id}/resources/{resource_name}", tag = "skills",
    operation_id = "get_resource",
    params(
        ("skill_id" = String, Path, description = "The id of the skill"),
        ("resource_name" = String, Path, description = "The name of the resource, or its path; `/` in it stands as it is or as `%2F`"),
        WhichVersion, Asker
    ),
    responses(
        (status = 200, body = ResourceContent),
        (status = 409, description = "Nothing here can make it, or the skill cannot be used here", body = Problem, content_type = "application/problem+json"),
        (status = 502, description = "What makes it has failed", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn resource(
    State(app): State<App>,
    identity: Identity,
    Path((id, name)): Path<(String, String)>,
    Query(which): Query<WhichVersion>,
    Query(asker): Query<Asker>,
) -> Result<Response, Problem> {
    give(&app, &identity, id, name, &which, &asker).await
}

/// The same for a path whose folders stand in the address. A description has no word for that.
pub(super) async fn resource_in_folder(
    State(app): State<App>,
    identity: Identity,
    Path((id, folder, rest)): Path<(String, String, String)>,
    Query(which): Query<WhichVersion>,
    Query(asker): Query<Asker>,
) -> Result<Response, Problem> {
    give(&app, &identity, id, format!("{folder}/{rest}"), &which, &asker).await
}

async fn give(
    app: &App,
    identity: &Identity,
    id: String,
    name: String,
    which: &WhichVersion,
    asker: &Asker,
) -> Result<Response, Problem> {
    asker.check()?;
    let (version, document) = document(app, identity, &id, which).await?;
    let version_number = version.number;
    let (path, content, encoding) = match found(&document, &name) {
        Found::File(DocumentFile { path, encoding, .. }, content) => {
            (path.clone(), content.to_owned(), *encoding)
        }
        Found::Text(content) => (None, content.to_owned(), Encoding::default()),
        Found::Asked => {
            let contents = app.registry().store().contents(&version).await?;
            let id = version.skill;
            let skill =
                heavy(contents.bytes(), move || VersionSource::skill_of(&id, &contents)).await?;
            let skill = skill.ok_or_else(|| unknown(&name, &document))?;
            let text = resource_text(app, identity, asker, skill, name.clone()).await?;
            (None, text, Encoding::default())
        }
        Found::Nothing => return Err(unknown(&name, &document)),
    };
    let bytes = content.len();
    let given = (bytes as u64, content.as_str());
    counted(app, identity, UsageKind::Detail, &id, version_number, asker, given).await?;
    let (skill_id, resource_name) = (id, name);
    let resource =
        ResourceContent { skill_id, resource_name, version_number, path, content, encoding };
    json_of(bytes, resource).await
}

/// What a name means.
enum Found<'a> {
    /// A file, and what it holds.
    File(&'a DocumentFile, &'a str),
    /// What the frontmatter holds.
    Text(&'a str),
    /// The engine makes it, or says why nobody can.
    Asked,
    /// There is no such resource.
    Nothing,
}

/// What a name means in a document: a resource that it declares, as for the engine, or a file by its
/// name or path.
fn found<'a>(document: &'a SkillDocument, name: &str) -> Found<'a> {
    let file = |is_it: &dyn Fn(&DocumentFile) -> bool| {
        let files = document.resources.iter().chain(&document.scripts);
        let mut held = files.filter_map(|file| Some((file, file.content.as_deref()?)));
        held.find(|(file, _)| is_it(file))
    };
    let at = |path: &str| file(&|file| file.path.as_deref() == Some(path));
    let declared = document.resource_configs.iter().find(|config| config.name == name);
    let named = match declared {
        Some(config) if config.dynamic => return Found::Asked,
        Some(DocumentResource { content: Some(content), .. }) => return Found::Text(content),
        Some(DocumentResource { file: Some(file), .. }) => {
            ResourcePath::parse(file).ok().and_then(|path| at(path.as_str()))
        }
        _ => None,
    };
    let named = named.or_else(|| file(&|file| file.name == name)).or_else(|| at(name));
    match (named, declared) {
        (Some((file, content)), _) => Found::File(file, content),
        (None, Some(_)) => Found::Asked,
        (None, None) => Found::Nothing,
    }
}

fn unknown(name: &str, document: &SkillDocument) -> Problem {
    let files = document.resources.iter().chain(&document.scripts).map(|file| file.name.as_str());
    let configs = document.resource_configs.iter().map(|config| config.name.as_str());
    let names: Vec<&str> = files.chain(configs).collect();
    let shown: String = name.chars().take(200).collect();
    let message =
        format!("Unknown resource: {}. Available: {}", shown.escape_debug(), names.join(", "));
    Problem::new(404, "resource_not_found", message)
}
