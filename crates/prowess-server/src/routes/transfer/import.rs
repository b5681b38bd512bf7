//! Skills that come as files.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use prowess_catalog::SkillContents;
use prowess_store::{
    Activation, CHANGE_SUMMARY_CHARS, DOCUMENT_BYTES, Expected, NewVersion, SameContent,
    SkillReading, VersionError,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::receive::{ImportBody, ImportForm, MOST_SKILLS, Sent, receive};
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
/// of them or none are taken. The role editor is needed. How may stand in the address, in the JSON or
/// in the form; what stands in the address counts.
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
    let skills = read_all(&app, skills, &findings).await?;
    for _ in 0..ATTEMPTS {
        let mut planned = Vec::with_capacity(skills.len());
        app.refresh().await?;
        for skill in &skills {
            planned.push(skill.planned(&app, conflict).await?);
        }
        let mut new_versions = Vec::new();
        for (skill, status) in skills.iter().zip(&planned) {
            if !is_dry && *status != "skipped" {
                let summary = change_summary.clone();
                new_versions.push(skill.version(&identity, conflict, activation, summary));
            }
        }
        let appended = match app.append_all(new_versions).await {
            Ok(appended) => appended,
            // Somebody has just made one of them.
            Err(problem) if conflict == Conflict::Skip && problem.code() == "skill_exists" => {
                continue;
            }
            Err(problem) => return Err(problem),
        };
        let mut shown: Vec<_> =
            skills.iter().zip(&planned).map(|(skill, status)| skill.shown(status)).collect();
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
struct Read {
    reading: SkillReading,
    contents: Arc<SkillContents>,
    findings: Vec<Finding>,
}

/// Reads what was sent, if every skill in it is one, and another one than the others.
async fn read_all(
    app: &App,
    sent: Vec<SkillContents>,
    findings: &[Finding],
) -> Result<Vec<Read>, Problem> {
    if sent.len() > MOST_SKILLS {
        let message = format!("there are {} skills; at most {MOST_SKILLS} are taken", sent.len());
        return Err(Problem::new(422, "too_many_skills", message));
    }
    let mut skills: Vec<Read> = Vec::with_capacity(sent.len());
    for contents in sent {
        check_size(&contents)?;
        let contents = Arc::new(contents);
        let text = Arc::clone(&contents);
        let reading = heavy(contents.bytes(), move || SkillReading::of(&text)).await??;
        if skills.iter().any(|skill| skill.reading.id == reading.id) {
            let message = format!("there is more than one skill '{}' in what was sent", reading.id);
            return Err(Problem::new(422, "sent_twice", message));
        }
        let findings = finding::findings(app, &reading, &contents).await?;
        skills.push(Read { reading, contents, findings });
    }
    if skills.is_empty() {
        let message = "there is no skill in what was sent that can be used";
        let details = serde_json::json!(findings);
        return Err(Problem::new(422, "no_skill", message).with_details(details));
    }
    Ok(skills)
}

impl Read {
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
        new.expected = match conflict {
            Conflict::Fail | Conflict::Error | Conflict::Skip => Expected::Absent,
            _ => Expected::Any,
        };
        new.same_content = SameContent::Keep;
        new.activation = activation;
        new
    }

    fn shown(&self, status: &'static str) -> ImportedSkill {
        ImportedSkill {
            skill_id: self.reading.id.to_string(),
            name: self.reading.about.title.clone(),
            status,
            version_number: None,
            findings: self.findings.clone(),
        }
    }
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
