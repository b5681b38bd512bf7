//! What is sent to be imported, whatever its kind.

use axum::extract::{FromRequest, Multipart, Request};
use axum::http::header::CONTENT_TYPE;
use bytes::Bytes;
use prowess_catalog::{
    Catalog, ContentFile, Location, RemoteError, RemoteSource, ResourcePath, SkillContents,
    read_archive,
};
use prowess_store::SKILL_FILE;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IntoDeserializer};
use utoipa::ToSchema;

use super::import::{Conflict, How};
use crate::app::App;
use crate::extract::{Flag, Json as Body, Raw, read};
use crate::problem::Problem;
use crate::routes::finding::Finding;

/// The archives of a request may hold together so many times what a body may.
const UNPACKED_PER_BODY: u64 = 8;
/// The most parts of a form.
const MOST_PARTS: usize = 1000;
/// The most skills of an import.
pub(super) const MOST_SKILLS: usize = 1000;

/// How much of a skill was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// Its text, which says nothing about other files.
    Text,
    /// All its files.
    Files,
}

/// Skills that were sent, and what there is to say about the rest.
#[derive(Default)]
pub(super) struct Sent {
    pub(super) skills: Vec<(SkillContents, Extent)>,
    pub(super) findings: Vec<Finding>,
    pub(super) change_summary: Option<String>,
    /// How they are to be imported, as far as that was sent with them.
    pub(super) how: How,
}

/// What is imported, in JSON: one of the two.
#[derive(Debug, ToSchema)]
#[schema(as = ImportRequest)]
#[serde(untagged)]
#[allow(dead_code, reason = "it describes ImportRequest")]
pub(super) enum ImportBody {
    /// A text.
    Text(ImportText),
    /// What is at a URL.
    Url(ImportUrl),
}

/// A skill to import.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "it describes ImportRequest")]
pub(super) struct ImportText {
    /// The text of a `SKILL.md`.
    content: String,
    /// Why.
    #[schema(max_length = 500)]
    change_summary: Option<String>,
    /// As in the address.
    dry_run: Option<bool>,
    /// As in the address.
    #[schema(inline)]
    conflict: Option<Conflict>,
    /// As in the address.
    activate: Option<bool>,
}

/// Skills to fetch and import.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "it describes ImportRequest")]
pub(super) struct ImportUrl {
    /// Where an archive or an index of skills is.
    #[schema(pattern = "^https?://")]
    url: String,
    /// Why.
    #[schema(max_length = 500)]
    change_summary: Option<String>,
    /// As in the address.
    dry_run: Option<bool>,
    /// As in the address.
    #[schema(inline)]
    conflict: Option<Conflict>,
    /// As in the address.
    activate: Option<bool>,
}

/// A form with skills. Every part of another name is a file too.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "it describes what is read part by part")]
pub(super) struct ImportForm {
    /// A `SKILL.md`, or an archive. It may be there several times.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
    /// Why.
    #[schema(max_length = 500)]
    change_summary: Option<String>,
    /// As in the address.
    dry_run: Option<bool>,
    /// As in the address.
    #[schema(inline)]
    conflict: Option<Conflict>,
    /// As in the address.
    activate: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ImportRequest {
    content: Option<String>,
    url: Option<String>,
    change_summary: Option<String>,
    dry_run: Option<Flag>,
    conflict: Option<Conflict>,
    activate: Option<Flag>,
}

/// Reads what was sent, whatever its kind.
pub(super) async fn receive(app: &App, request: Request) -> Result<Sent, Problem> {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default();
    match kind.trim().to_ascii_lowercase().as_str() {
        "application/json" => {
            let Body(asked) = Body::<ImportRequest>::from_request(request, app).await?;
            asked.sent(app).await
        }
        "text/markdown" | "text/x-markdown" | "text/plain" => {
            let Raw(bytes) = Raw::from_request(request, app).await?;
            single(bytes.into())
        }
        "application/zip"
        | "application/x-zip-compressed"
        | "application/gzip"
        | "application/x-gzip"
        | "application/x-tar"
        | "application/octet-stream" => {
            let Raw(bytes) = Raw::from_request(request, app).await?;
            archive(app, bytes, &mut unpacked_room(app)).await
        }
        "multipart/form-data" => form(app, request).await,
        _ => Err(Problem::new(
            415,
            "unsupported_media_type",
            "send text/markdown, application/zip, application/gzip, application/json or multipart/form-data",
        )),
    }
}

impl ImportRequest {
    async fn sent(self, app: &App) -> Result<Sent, Problem> {
        let Self { dry_run, conflict, activate, .. } = self;
        let mut sent = match (self.content, self.url) {
            (Some(content), None) => single(content.into_bytes())?,
            (None, Some(url)) => fetched(app, &url).await?,
            _ => return Err(Problem::invalid(&["body"], "give either `content` or `url`")),
        };
        sent.change_summary = self.change_summary;
        sent.how = How { dry_run, conflict, activate };
        Ok(sent)
    }
}

/// A text alone is a skill.
fn single(text: Vec<u8>) -> Result<Sent, Problem> {
    let path = ResourcePath::parse(SKILL_FILE).map_err(Problem::broken)?;
    let contents = SkillContents::of(vec![ContentFile::new(path, false, text)]);
    Ok(Sent { skills: vec![(contents, Extent::Text)], ..Sent::default() })
}

/// So many bytes the archives of one request may hold together.
fn unpacked_room(app: &App) -> u64 {
    let limits = app.imports().map(|imports| imports.limits).unwrap_or_default();
    limits.total_bytes.min(UNPACKED_PER_BODY * app.settings().max_body_bytes as u64)
}

/// The skills in an archive, which takes what it holds of the room that there is.
async fn archive(app: &App, bytes: Bytes, room: &mut u64) -> Result<Sent, Problem> {
    let mut limits = app.imports().map(|imports| imports.limits).unwrap_or_default();
    limits.total_bytes = *room;
    let read = tokio::task::spawn_blocking(move || read_archive(&bytes, &limits)).await;
    let found = read.map_err(Problem::broken)?.map_err(|error| {
        Problem::new(422, "invalid_archive", format!("the archive is refused: {error}"))
    })?;
    *room = room.saturating_sub(found.bytes);
    Ok(Sent {
        skills: found.skills.into_iter().map(|it| (it.contents, Extent::Files)).collect(),
        findings: found.diagnostics.iter().map(Finding::from).collect(),
        ..Sent::default()
    })
}

/// The files of a form: texts and archives.
async fn form(app: &App, request: Request) -> Result<Sent, Problem> {
    let invalid = |error: &dyn std::fmt::Display| {
        Problem::new(422, "invalid_form", format!("the form cannot be read: {error}"))
    };
    let (parts, body) = request.into_parts();
    let whole = read(body, &parts.extensions, app).await?;
    let request = Request::from_parts(parts, whole.into());
    let mut form = Multipart::from_request(request, app).await.map_err(|it| invalid(&it))?;
    let mut sent = Sent::default();
    let (mut room, mut count) = (unpacked_room(app), 0);
    while let Some(field) = form.next_field().await.map_err(|it| invalid(&it))? {
        count += 1;
        if count > MOST_PARTS {
            let message = format!("the form has more than {MOST_PARTS} parts");
            return Err(Problem::new(422, "too_many_parts", message));
        }
        let name = field.name().unwrap_or_default().to_owned();
        let bytes = field.bytes().await.map_err(|it| invalid(&it))?;
        let text = || String::from_utf8_lossy(&bytes).into_owned();
        match name.as_str() {
            "change_summary" => sent.change_summary = Some(text()),
            "dry_run" => sent.how.dry_run = Some(option("dry_run", &text())?),
            "conflict" => sent.how.conflict = Some(option("conflict", &text())?),
            "activate" => sent.how.activate = Some(option("activate", &text())?),
            _ => {
                let is_text = bytes.starts_with(b"---") || bytes.starts_with(b"\xef\xbb\xbf---");
                let more = match is_text {
                    true => single(bytes.into())?,
                    false => archive(app, bytes, &mut room).await?,
                };
                sent.skills.extend(more.skills);
                sent.findings.extend(more.findings);
            }
        }
    }
    Ok(sent)
}

/// An option that is a part of a form.
fn option<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, Problem> {
    let read = T::deserialize(text.trim().into_deserializer());
    read.map_err(|error: serde::de::value::Error| {
        Problem::invalid(&["body", name], error.to_string())
    })
}

/// What is at a URL now.
async fn fetched(app: &App, url: &str) -> Result<Sent, Problem> {
    let Some(imports) = app.imports() else {
        let message = "this server fetches nothing; send the archive itself";
        return Err(Problem::new(409, "no_imports", message));
    };
    let invalid =
        |error: &dyn std::fmt::Display| Problem::invalid(&["body", "url"], error.to_string());
    if !(url.starts_with("https://") || url.starts_with("http://")) {
        return Err(invalid(&"it must begin with https:// or http://"));
    }
    let location = Location::parse(url).map_err(|error| invalid(&error))?;
    let source = RemoteSource::new(location, imports.cache.clone())
        .with_limits(imports.limits)
        .with_reach(imports.reach.clone());
    // However shortly it was asked before: what is imported is what is there.
    source.refresh().await.map_err(|error| match &error {
        RemoteError::Location(_) | RemoteError::Address(_) => invalid(&error),
        _ => Problem::new(422, "fetch_failed", error.to_string()),
    })?;
    let snapshot = Catalog::builder().source(source).build().refresh().await;
    let findings: Vec<Finding> = snapshot.diagnostics().iter().map(Finding::from).collect();
    let mut sent = Sent { findings, ..Sent::default() };
    let mut room = imports.limits.total_bytes;
    for skill in snapshot.skills() {
        let broken =
            |error| Problem::new(502, "fetch_failed", format!("{}: {error}", skill.name()));
        let contents = skill.contents(room).await.map_err(broken)?;
        room = room.saturating_sub(contents.bytes() as u64);
        sent.skills.push((contents, Extent::Files));
    }
    Ok(sent)
}
