//! How skills change.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, ETAG, LOCATION};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use prowess_store::{
    Activation, Appended, DocumentChange, DocumentError, Expected, NewVersion, Role, SkillDocument,
    SkillId, SkillReading, Version, VersionError,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::given_back::{Change, NewSkill};
use super::read::JSON;
use super::{SkillInfo, existing, no_skill};
use crate::app::App;
use crate::condition::IfMatch;
use crate::extract::{Flag, Json as Body, Path, Query};
use crate::heavy::heavy;
use crate::identity::{Editor, Identity};
use crate::prepared::{etag, etag_of};
use crate::problem::Problem;
use crate::routes::finding::{Finding, findings};

/// How often a change that fits any state is tried on the newest one.
const ATTEMPTS: usize = 32;

/// A skill that was made.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Created {
    id: String,
    /// The same as `id`.
    skill_id: String,
    name: String,
    message: String,
    version_number: u64,
    /// None as long as a publisher has not activated one: an editor's skill waits for that.
    active_version: Option<u64>,
    /// What there is to say about it. An error about what it declares is why no agent can load it here.
    findings: Vec<Finding>,
}

/// Makes a skill. The role editor is needed; an editor's skill is used when a publisher has activated
/// a version of it. What `GET` says beyond a document may stand in it, and is passed over.
#[utoipa::path(
    post, path = "/skills", tag = "skills", operation_id = "create_skill",
    params(WhenUsed),
    request_body = SkillDocument,
    responses(
        (status = 201, body = Created, headers(("Location" = String), ("ETag" = String))),
        (status = 409, description = "There is one of this id", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "The document is invalid: details say where", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn create(
    State(app): State<App>,
    Editor(identity): Editor,
    Query(when): Query<WhenUsed>,
    Body(NewSkill(document)): Body<NewSkill>,
) -> Result<Response, Problem> {
    let activation = when.activation(&identity)?;
    let composed = heavy(size(&document), move || {
        let id = document.validate_new()?;
        let contents = document.contents(&id)?;
        let reading = SkillReading::of(&contents)?;
        Ok::<_, DocumentError>((id, Arc::new(contents), reading))
    });
    let (id, contents, reading) = composed.await??;
    let about = reading.about.clone();
    let mut new = NewVersion::new(id, Arc::clone(&contents), about, identity.actor)
        .expecting(Expected::Absent)
        .because(Some("Initial version".to_owned()));
    new.activation = activation;
    let Appended { skill, revision, version, .. } = app.append(new).await?;
    let name = version.about.title;
    let created = Created {
        id: version.skill.to_string(),
        skill_id: version.skill.to_string(),
        message: format!("Skill '{name}' created successfully"),
        name,
        version_number: version.number,
        active_version: skill.as_ref().map(|skill| skill.active.number),
        findings: findings(&app, &reading, &contents).await?,
    };
    let place = format!("/api/v1/skills/{}", version.skill);
    let place = HeaderValue::from_str(&place).map_err(Problem::broken)?;
    let headers = [(LOCATION, place), (ETAG, etag(revision, version.tree_digest))];
    Ok((StatusCode::CREATED, headers, Json(created)).into_response())
}

/// About how many bytes a document has.
fn size(document: &SkillDocument) -> usize {
    let files = document.resources.iter().chain(&document.scripts);
    let texts = files.filter_map(|file| file.content.as_ref()).map(String::len);
    let inline = document.resource_configs.iter().filter_map(|config| config.content.as_ref());
    document.core_content.len() + texts.chain(inline.map(String::len)).sum::<usize>()
}

/// Whether a change is used at once.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::routes) struct WhenUsed {
    /// Whether the new version is used from now on. Without this it is if the role is publisher or
    /// admin; a version of an editor waits until a publisher activates it.
    #[param(value_type = Option<bool>)]
    pub(in crate::routes) activate: Option<Flag>,
}

impl WhenUsed {
    pub(in crate::routes) fn activation(&self, identity: &Identity) -> Result<Activation, Problem> {
        let may = identity.role >= Role::Publisher;
        match self.activate.map(|Flag(is_used)| is_used) {
            Some(true) if !may => {
                identity.require(Role::Publisher)?;
                Ok(Activation::Later)
            }
            Some(false) => Ok(Activation::Later),
            None if !may => Ok(Activation::Later),
            _ => Ok(Activation::Now),
        }
    }
}

/// A skill that was changed.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Updated {
    #[serde(flatten)]
    info: SkillInfo,
    /// What there is to say about it. An error about what it declares is why no agent can load it here.
    findings: Vec<Finding>,
}

/// Makes a new version of a skill with some fields changed; what is not named stays. The role editor
/// is needed, and `If-Match`: the change is made to the version that was read with this ETag. What
/// will wait while a version waits already is made to that one: `GET` with `status=waiting` gives it
/// and its ETag, and any other one is answered with 412 (`something_waits`). `*` means the version
/// that is used, or for what will wait the one that waits. What `GET` says beyond that may stand
/// there, and is passed over.
#[utoipa::path(
    put, path = "/skills/{skill_id}", tag = "skills", operation_id = "update_skill",
    params(
        ("skill_id" = String, Path, description = "The id of the skill"),
        ("If-Match" = String, Header, description = "The ETag that is changed, or `*`"),
        WhenUsed
    ),
    request_body = DocumentChange,
    responses(
        (status = 200, body = Updated, headers(("ETag" = String))),
        (status = 412, description = "It was changed meanwhile, or another version waits already", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "The document is invalid: details say where", body = Problem, content_type = "application/problem+json"),
        (status = 428, description = "There is no If-Match", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn update(
    State(app): State<App>,
    Editor(identity): Editor,
    Path(id): Path<String>,
    Query(when): Query<WhenUsed>,
    headers: HeaderMap,
    Body(Change { id: meant, change }): Body<Change>,
) -> Result<Response, Problem> {
    let activation = when.activation(&identity)?;
    if meant.is_some_and(|meant| meant != id) {
        let message =
            format!("it is another skill than '{}', which keeps its id", id.escape_debug());
        return Err(Problem::invalid(&["body", "id"], message));
    }
    let change = Arc::new(change);
    let condition = IfMatch::of(&headers)?;
    let mut base = base(&app, &id, activation, &condition).await?;
    let condition = condition.required()?;
    for _ in 0..ATTEMPTS {
        // What is wrong whatever is there is told first.
        let mut new = base.changed(&app, &identity, &change).await?;
        let expected = base.expected(&condition)?;
        new.activation = activation;
        match app.append(new).await {
            Ok(appended) => return answer(&app, appended).await,
            // What fits any state is tried on the one that is there now.
            Err(problem) if problem.status() == 412 && expected == Expected::Present => {
                base = self::base(&app, &id, activation, &condition).await?;
            }
            Err(problem) => return Err(problem),
        }
    }
    let message = "others change the skill all the time; try again";
    Err(Problem::new(503, "too_busy", message).retry_after(1))
}

/// What a change is made to.
struct Base {
    revision: u64,
    etag: HeaderValue,
    version: Version,
    /// The tag of the version that is used, if this is one that waits beside it.
    used: Option<HeaderValue>,
}

/// What a change is made to: the version that is used, or the one that waits if its tag is named.
/// What will wait is made to the one that waits already, if one does, so that it is not lost.
async fn base(
    app: &App,
    id: &str,
    activation: Activation,
    condition: &IfMatch,
) -> Result<Base, Problem> {
    app.refresh().await?;
    let known: SkillId = id.parse().map_err(|_| no_skill(id))?;
    let head = async || {
        let (revision, version) = app.registry().store().head(&known).await?;
        let etag = etag(revision, version.tree_digest);
        Ok::<_, Problem>(Base { revision, etag, version, used: None })
    };
    let Some(shelved) = app.registry().get(id) else { return head().await };
    let skill = &shelved.skill;
    let used = etag_of(skill);
    if skill.pending.is_some() {
        let head = head().await?;
        if activation == Activation::Later || condition.names(&head.etag) {
            return Ok(Base { used: Some(used), ..head });
        }
    }
    Ok(Base { revision: skill.revision, etag: used, version: skill.active.clone(), used: None })
}

/// About how many bytes a change has.
fn change_size(change: &DocumentChange) -> usize {
    let files = change.resources.iter().chain(&change.scripts).flatten();
    let texts = files.filter_map(|file| file.content.as_ref()).map(String::len);
    texts.sum::<usize>() + change.core_content.as_ref().map_or(0, String::len)
}

impl Base {
    fn expected(&self, condition: &IfMatch) -> Result<Expected, Problem> {
        let is_other = |used: &HeaderValue| condition.names(used) && !condition.names(&self.etag);
        if self.used.as_ref().is_some_and(is_other) {
            return Err(something_waits(&self.version));
        }
        condition.expected(&self.version.skill, self.revision, &self.etag)
    }

    /// The version that a change makes of it.
    async fn changed(
        &self,
        app: &App,
        identity: &Identity,
        change: &Arc<DocumentChange>,
    ) -> Result<NewVersion, Problem> {
        let id = self.version.skill.clone();
        let summary = change.change_summary.clone();
        let contents = app.registry().store().contents(&self.version).await?;
        let change = Arc::clone(change);
        let applied = heavy(contents.bytes() + change_size(&change), move || {
            let contents = change.apply(&contents, &id)?;
            let about = SkillReading::of(&contents)?.about;
            Ok::<_, DocumentError>((id, contents, about))
        });
        let (id, contents, about) = applied.await??;
        Ok(NewVersion::new(id, contents.into(), about, identity.actor.clone())
            .expecting(Expected::Revision(self.revision))
            .because(summary))
    }
}

/// Whoever goes on with the version that is used would lose what waits.
fn something_waits(pending: &Version) -> Problem {
    let (skill, number) = (&pending.skill, pending.number);
    let message = format!(
        "version {number} of '{skill}' waits for a publisher already: go on with that one, GET \
         /api/v1/skills/{skill}?status=waiting gives it and its ETag"
    );
    Problem::new(412, "something_waits", message)
}

async fn answer(app: &App, appended: Appended) -> Result<Response, Problem> {
    let Appended { skill, revision, version, .. } = appended;
    let place = format!("/api/v1/skills/{}/versions/{}", version.skill, version.number);
    let place = HeaderValue::from_str(&place).map_err(Problem::broken)?;
    // Of what is answered, so that whoever made it can go on with it.
    let tag = etag(revision, version.tree_digest);
    let contents = Arc::new(app.registry().store().contents(&version).await?);
    let files = Arc::clone(&contents);
    let reading = heavy(contents.bytes(), move || SkillReading::of(&files)).await??;
    let findings = findings(app, &reading, &contents).await?;
    let info = heavy(contents.bytes(), move || {
        let document = SkillDocument::of(&contents)?;
        let info = SkillInfo::new(skill.as_ref(), revision, &version, document);
        serde_json::to_vec(&Updated { info, findings }).map_err(Problem::broken)
    });
    let headers = [(CONTENT_TYPE, JSON), (ETAG, tag), (LOCATION, place)];
    Ok((headers, info.await??).into_response())
}

/// A skill that is gone.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Deleted {
    skill_id: String,
    deleted: bool,
}

/// Hides a skill; its versions stay in the store. The role publisher is needed. Built-in skills stay.
#[utoipa::path(
    delete, path = "/skills/{skill_id}", tag = "skills", operation_id = "delete_skill",
    params(
        ("skill_id" = String, Path, description = "The id of the skill"),
        ("If-Match" = Option<String>, Header, description = "The ETag that is deleted"),
    ),
    responses(
        (status = 200, body = Deleted),
        (status = 412, description = "It was changed meanwhile", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn delete(
    State(app): State<App>,
    identity: Identity,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Deleted>, Problem> {
    identity.require(Role::Publisher)?;
    let (skill, expected) = meant(&app, &id, &headers).await?;
    let deleted = async { app.registry().store().delete(&skill, expected, &identity.actor).await };
    app.changed(deleted).await?;
    Ok(Json(Deleted { skill_id: id, deleted: true }))
}

/// Makes a version of a built-in skill as it was shipped, which is used from now on. The role
/// publisher is needed.
#[utoipa::path(
    post, path = "/skills/{skill_id}/reset", tag = "skills", operation_id = "reset_skill",
    params(
        ("skill_id" = String, Path, description = "The id of the skill"),
        ("If-Match" = Option<String>, Header, description = "The ETag that is reset"),
    ),
    responses(
        (status = 200, body = SkillInfo, headers(("ETag" = String))),
        (status = 409, description = "It is no built-in skill", body = Problem, content_type = "application/problem+json"),
        (status = 412, description = "It was changed meanwhile", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn reset(
    State(app): State<App>,
    identity: Identity,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    identity.require(Role::Publisher)?;
    let (skill, expected) = meant(&app, &id, &headers).await?;
    let reset = async { app.registry().store().reset(&skill, expected, &identity.actor).await };
    app.changed(reset).await?;
    let ready = app.prepared(&*existing(&app, &id).await?).await?;
    let headers = [(CONTENT_TYPE, JSON), (ETAG, ready.etag.clone())];
    Ok((headers, ready.info.clone()).into_response())
}

/// Which skill is meant, and what must be there. It may be one of which no version is used.
pub(in crate::routes) async fn meant(
    app: &App,
    id: &str,
    headers: &HeaderMap,
) -> Result<(SkillId, Expected), Problem> {
    let condition = IfMatch::of(headers)?;
    let base = base(app, id, Activation::Now, &condition).await?;
    let expected = base.expected(&condition)?;
    Ok((base.version.skill, expected))
}

impl App {
    /// Makes a version, to its end, and lets the next request see it.
    pub(in crate::routes) async fn append(&self, new: NewVersion) -> Result<Appended, Problem> {
        let appended = self.append_all(vec![new]).await?.into_iter().next();
        appended.ok_or_else(|| Problem::broken("nothing came of a version"))
    }

    /// Makes versions, all or none, to their end, and lets the next request see them.
    pub(in crate::routes) async fn append_all(
        &self,
        new: Vec<NewVersion>,
    ) -> Result<Vec<Appended>, Problem> {
        let app = self.clone();
        self.finish(async move {
            let appended = app.registry().store().append_all(new).await?;
            app.seen().await;
            Ok(appended)
        })
        .await
    }

    /// Changes something, and lets the next request see it.
    pub(in crate::routes) async fn changed<T>(
        &self,
        change: impl Future<Output = Result<T, VersionError>>,
    ) -> Result<T, Problem> {
        let changed = change.await?;
        self.seen().await;
        Ok(changed)
    }

    /// Takes over what was changed. What is done is done, whether that can be seen or not.
    async fn seen(&self) {
        if let Err(error) = self.refresh().await {
            tracing::error!(target: "prowess::server", "the registry cannot be read: {error}");
        }
    }
}
