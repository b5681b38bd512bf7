//! Skills that come as files.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use prowess_catalog::{ContentFile, SkillContents};
use prowess_format::{Code, Diagnostic, Level};
use prowess_store::{
    Activation, CHANGE_SUMMARY_CHARS, DOCUMENT_BYTES, Expected, NewVersion, SKILL_FILE,
    SameContent, SkillId, SkillReading, Version, VersionError,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::receive::{Extent, ImportBody, ImportForm, MOST_SKILLS, Sent, receive};
use crate::app::App;
use crate::extract::{Flag, Query};
use crate::heavy::heavy;
use crate::identity::{Editor, Identity};
use crate::problem::Problem;
use crate::routes::finding::{self, Finding};
use crate::routes::skills::change::WhenUsed;

/// How often an import is tried again that leaves out what others make meanwhile.
const ATTEMPTS: usize = 32;

/// How skills are imported.
#[derive(Clone, Copy, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct How {
    /// Whether to say only what would happen.
    #[param(value_type = Option<bool>)]
    pub(super) dry_run: Option<Flag>,
    /// What to do with a skill that is there already: `fail` (without it; also `error`), `skip`, or
    /// `version` (what is imported becomes a new version; also `new_version`, `overwrite` and
    /// `replace`).
    #[param(inline)]
    pub(super) conflict: Option<Conflict>,
    /// Whether what is imported is used from now on. Without this it is if the role is publisher or
    /// admin; a version of an editor waits until a publisher activates it.
    #[param(value_type = Option<bool>)]
    pub(super) activate: Option<Flag>,
}

impl How {
    /// What this does not say, the other one does.
    fn or(self, other: Self) -> Self {
        Self {
            dry_run: self.dry_run.or(other.dry_run),
            conflict: self.conflict.or(other.conflict),
            activate: self.activate.or(other.activate),
        }
    }

    fn activation(self, identity: &Identity) -> Result<Activation, Problem> {
        WhenUsed { activate: self.activate }.activation(identity)
    }
}

/// What to do with a skill that is there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Conflict {
    #[default]
    Fail,
    /// The same as `fail`.
    Error,
    Skip,
    Version,
    /// The same as `version`.
    NewVersion,
    /// The same as `version`.
    Overwrite,
    /// The same as `version`.
    Replace,
}

impl Conflict {
    /// Whether what is imported becomes a version of a skill that is there.
    fn is_version(self) -> bool {
        matches!(self, Self::Version | Self::NewVersion | Self::Overwrite | Self::Replace)
    }
}

/// What came of a skill.
#[derive(Debug, Serialize, ToSchema)]
struct ImportedSkill {
    skill_id: String,
    name: String,
    /// `created`, `updated`, `unchanged` or `skipped`.
    status: &'static str,
    /// The version that holds it, unless nothing was done.
    version_number: Option<u64>,
    /// What there is to say about its text, and about what it declares: an error of the latter is why
    /// no agent can load it here.
    findings: Vec<Finding>,
}

/// What came of an import.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ImportReport {
    dry_run: bool,
    /// The first skill.
    skill_id: Option<String>,
    name: Option<String>,
    message: String,
    skills: Vec<ImportedSkill>,
    /// What there is to say about what else was sent.
    findings: Vec<Finding>,
}

/// Imports skills: a `SKILL.md` (`text/markdown`, or `content` in JSON), an archive with one or more
/// skills (zip, tar, tar.gz; also as a file of `multipart/form-data`), or what is at a `url` now. All
/// of them or none are taken. A text alone replaces the `SKILL.md` of a skill that is there; the other
/// files of the version that it goes on from stay, with a finding. The role editor is needed. How may
/// stand in the address, in the JSON or in the form; what stands in the address counts.
#[utoipa::path(
    post, path = "/skills/import", tag = "skills", operation_id = "import_skills",
    params(How),
    request_body(content(
        (ImportBody = "application/json"), (String = "text/markdown"),
        (Vec<u8> = "application/zip"), (Vec<u8> = "application/gzip"),
        (ImportForm = "multipart/form-data"),
    )),
    responses(
        (status = 200, description = "Nothing was new, or it was a dry run", body = ImportReport),
        (status = 201, description = "Something was imported", body = ImportReport),
        (status = 409, description = "There is one of this id", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "It is no skill: details say where; or it cannot be fetched", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn import(
    State(app): State<App>,
    Editor(identity): Editor,
    Query(how): Query<How>,
    request: Request,
) -> Result<Response, Problem> {
    // Who may not is told so before anything is read.
    how.activation(&identity)?;
    let sent = receive(&app, request).await?;
    let how = how.or(sent.how);
    let activation = how.activation(&identity)?;
    let (is_dry, conflict) = (how.dry_run.unwrap_or_default().0, how.conflict.unwrap_or_default());
    let Sent { skills, findings, change_summary, .. } = sent;
    check_summary(change_summary.as_deref())?;
    let skills = read_all(skills, &findings).await?;
    for _ in 0..ATTEMPTS {
        let (mut whole, mut planned, mut told) = (Vec::new(), Vec::new(), Vec::new());
        app.refresh().await?;
        for skill in &skills {
            let skill = skill.whole(&app, conflict, activation).await?;
            planned.push(skill.planned(&app, conflict).await?);
            told.push(finding::findings(&app, &skill.reading, &skill.contents).await?);
            whole.push(skill);
        }
        let skills = whole;
        let mut new_versions = Vec::new();
        for (skill, status) in skills.iter().zip(&planned) {
            if !is_dry && *status != "skipped" {
                let summary = change_summary.clone();
                new_versions.push(skill.version(&identity, conflict, activation, summary));
            }
        }
        let appended = match app.append_all(new_versions).await {
            Ok(appended) => appended,
            // Somebody has just made one of them, or changed what a text goes on from.
            Err(problem) if conflict == Conflict::Skip && problem.code() == "skill_exists" => {
                continue;
            }
            Err(problem) if problem.code() == "stale" => continue,
            Err(problem) => return Err(problem),
        };
        let told = skills.iter().zip(&planned).zip(told);
        let mut shown: Vec<_> =
            told.map(|((skill, status), findings)| skill.shown(status, findings)).collect();
        let taken = shown.iter_mut().filter(|it| it.status != "skipped");
        for (shown, appended) in taken.zip(appended) {
            shown.version_number = Some(appended.version.number);
            shown.status = match (appended.is_new_skill, appended.is_new_version) {
                (true, _) => "created",
                (_, true) => "updated",
                _ => "unchanged",
            };
        }
        return Ok(reported(is_dry, shown, findings));
    }
    let message = "others make the same skills all the time; try again";
    Err(Problem::new(503, "too_busy", message).retry_after(1))
}

fn reported(is_dry: bool, skills: Vec<ImportedSkill>, findings: Vec<Finding>) -> Response {
    let new = skills.iter().filter(|it| matches!(it.status, "created" | "updated")).count();
    let message = match is_dry {
        true => format!("{new} of {} would be imported", skills.len()),
        false => format!("{new} of {} imported", skills.len()),
    };
    let status = if !is_dry && new > 0 { StatusCode::CREATED } else { StatusCode::OK };
    let report = ImportReport {
        dry_run: is_dry,
        skill_id: skills.first().map(|skill| skill.skill_id.clone()),
        name: skills.first().map(|skill| skill.name.clone()),
        message,
        skills,
        findings,
    };
    (status, Json(report)).into_response()
}

/// A skill that is imported.
#[derive(Clone)]
struct Read {
    reading: SkillReading,
    contents: Arc<SkillContents>,
    extent: Extent,
    /// The revision of the skill whose files were kept, if some were.
    revision: Option<u64>,
}

/// Reads what was sent, if every skill in it is one, and another one than the others.
async fn read_all(
    sent: Vec<(SkillContents, Extent)>,
    findings: &[Finding],
) -> Result<Vec<Read>, Problem> {
    if sent.len() > MOST_SKILLS {
        let message = format!("there are {} skills; at most {MOST_SKILLS} are taken", sent.len());
        return Err(Problem::new(422, "too_many_skills", message));
    }
    let mut skills: Vec<Read> = Vec::with_capacity(sent.len());
    for (contents, extent) in sent {
        let (contents, reading) = read(contents).await?;
        if skills.iter().any(|skill| skill.reading.id == reading.id) {
            let message = format!("there is more than one skill '{}' in what was sent", reading.id);
            return Err(Problem::new(422, "sent_twice", message));
        }
        skills.push(Read { reading, contents, extent, revision: None });
    }
    if skills.is_empty() {
        let message = "there is no skill in what was sent that can be used";
        let details = serde_json::json!(findings);
        return Err(Problem::new(422, "no_skill", message).with_details(details));
    }
    Ok(skills)
}

/// Files of a skill that is not too large, and what they say.
async fn read(contents: SkillContents) -> Result<(Arc<SkillContents>, SkillReading), Problem> {
    check_size(&contents)?;
    let contents = Arc::new(contents);
    let text = Arc::clone(&contents);
    let reading = heavy(contents.bytes(), move || SkillReading::of(&text)).await??;
    Ok((contents, reading))
}

impl Read {
    /// The skill with all its files: a text alone goes on from the version that is used, or for what
    /// will wait from the one that waits, and keeps its files.
    async fn whole(
        &self,
        app: &App,
        conflict: Conflict,
        activation: Activation,
    ) -> Result<Self, Problem> {
        if self.extent == Extent::Files || !conflict.is_version() {
            return Ok(self.clone());
        }
        let (revision, version) = match base(app, &self.reading.id, activation).await {
            Ok(base) => base,
            Err(VersionError::NoSkill(_)) => return Ok(self.clone()),
            Err(error) => return Err(error.into()),
        };
        let before = app.registry().store().contents(&version).await?;
        let (own, kept): (Vec<_>, Vec<_>) =
            before.files.into_iter().partition(|file| file.path.as_str() == SKILL_FILE);
        if kept.is_empty() {
            return Ok(self.clone());
        }
        let is_executable = own.iter().any(|file| file.executable);
        let text = self
            .contents
            .files
            .iter()
            .map(|file| ContentFile::new(file.path.clone(), is_executable, file.bytes.clone()));
        let about = kept_files(kept.len(), version.number);
        let (contents, mut reading) = read(SkillContents::of(text.chain(kept).collect())).await?;
        reading.diagnostics.push(about);
        Ok(Self { reading, contents, extent: self.extent, revision: Some(revision) })
    }

    /// What is to be done with it, as the registry is now. A skill that waits for a publisher is
    /// there.
    async fn planned(&self, app: &App, conflict: Conflict) -> Result<&'static str, Problem> {
        let id = &self.reading.id;
        let used = app.registry().get(id.as_str());
        let is_there = match &used {
            Some(_) => true,
            None => match app.registry().store().head(id).await {
                Ok(_) => true,
                Err(VersionError::NoSkill(_)) => false,
                Err(error) => return Err(error.into()),
            },
        };
        match (is_there, conflict) {
            (false, _) => Ok("created"),
            (_, Conflict::Skip) => Ok("skipped"),
            (_, Conflict::Fail | Conflict::Error) => Err(VersionError::Exists(id.clone()).into()),
            _ => {
                let is_same = |digest| digest == self.contents.tree_digest;
                let is_same = used.is_some_and(|it| is_same(it.skill.active.tree_digest));
                Ok(if is_same { "unchanged" } else { "updated" })
            }
        }
    }

    fn version(
        &self,
        identity: &Identity,
        conflict: Conflict,
        activation: Activation,
        summary: Option<String>,
    ) -> NewVersion {
        let Self { reading, contents, .. } = self;
        let (id, about) = (reading.id.clone(), reading.about.clone());
        let mut new = NewVersion::new(id, Arc::clone(contents), about, identity.actor.clone());
        new.change_summary = summary.or_else(|| Some("Imported".to_owned()));
        new.expected = match self.revision {
            Some(revision) => Expected::Revision(revision),
            None if conflict.is_version() => Expected::Any,
            None => Expected::Absent,
        };
        new.same_content = SameContent::Keep;
        new.activation = activation;
        new
    }

    fn shown(&self, status: &'static str, findings: Vec<Finding>) -> ImportedSkill {
        ImportedSkill {
            skill_id: self.reading.id.to_string(),
            name: self.reading.about.title.clone(),
            status,
            version_number: None,
            findings,
        }
    }
}

/// The version that a text goes on from, and the revision of its skill.
async fn base(
    app: &App,
    id: &SkillId,
    activation: Activation,
) -> Result<(u64, Version), VersionError> {
    match app.registry().get(id.as_str()) {
        Some(shelved) if activation == Activation::Now || shelved.skill.pending.is_none() => {
            Ok((shelved.skill.revision, shelved.skill.active.clone()))
        }
        _ => app.registry().store().head(id).await,
    }
}

/// Says that files stay that were not sent.
fn kept_files(count: usize, version: u64) -> Diagnostic {
    let files = if count == 1 { "file stays as it is" } else { "files stay as they are" };
    let message = format!("only the text was sent: {count} other {files} in version {version}");
    Diagnostic::new(Code::KeptFiles, Level::Info, message)
        .with_help("send an archive to replace all files")
        .with_path(SKILL_FILE)
}

/// A skill that is imported is no larger than one that is made.
fn check_size(contents: &SkillContents) -> Result<(), Problem> {
    let bytes = contents.bytes();
    if bytes <= DOCUMENT_BYTES {
        return Ok(());
    }
    let message = format!("the files of a skill have {bytes} bytes; the most is {DOCUMENT_BYTES}");
    Err(Problem::new(422, "skill_too_large", message))
}

fn check_summary(summary: Option<&str>) -> Result<(), Problem> {
    if summary.is_none_or(|summary| summary.chars().count() <= CHANGE_SUMMARY_CHARS) {
        return Ok(());
    }
    let message = format!("it must be at most {CHANGE_SUMMARY_CHARS} characters");
    Err(Problem::invalid(&["body", "change_summary"], message))
}
