//! Indexes of skills at well-known places. Plain decisions: nothing is fetched here.

use prowess_format::{Digest, InvalidDigest};
use serde::Deserialize;
use url::Url;

use super::error::InvalidLocation;
use super::location::{file_name, vet};
use crate::archive::ArchiveKind;
use crate::beneath::{InvalidResourcePath, ResourcePath};

/// The schema of version 0.2.0.
const SCHEMA: &str = "https://schemas.agentskills.io/discovery/0.2.0/schema.json";

/// What an index offers, and what of it cannot be used.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) skills: Vec<IndexSkill>,
    pub(super) problems: Vec<String>,
}

/// A skill that an index offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IndexSkill {
    pub(super) name: String,
    pub(super) content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// One file, verified.
    Artifact { url: Url, digest: Digest, kind: ArchiveKind },
    /// Files, one by one; verified where the index says what they hold.
    Files(Vec<IndexFile>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IndexFile {
    pub(super) path: ResourcePath,
    pub(super) url: Url,
    pub(super) digest: Option<Digest>,
}

impl IndexSkill {
    /// Whether all of it is known by digest.
    pub(super) fn is_verified(&self) -> bool {
        match &self.content {
            Content::Artifact { .. } => true,
            Content::Files(files) => files.iter().all(|file| file.digest.is_some()),
        }
    }
}

/// Why an index as a whole cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidIndex {
    #[error("it is no index: {0}")]
    Document(serde_json::Error),
    #[error("its schema is not known: {schema}")]
    Schema { schema: String },
}

/// Why an entry of an index cannot be used.
#[derive(Debug, thiserror::Error)]
enum InvalidEntry {
    #[error(transparent)]
    Shape(#[from] serde_json::Error),
    #[error("its name is not made of lowercase letters, digits and hyphens")]
    Name,
    #[error("it has no {what}")]
    Missing { what: &'static str },
    #[error("its url is wrong: {0}")]
    Url(#[from] url::ParseError),
    #[error(transparent)]
    Location(#[from] InvalidLocation),
    #[error("its url leads from https to http")]
    Downgrade,
    #[error("it is at {origin}, which is not in `index_origins`")]
    Origin { origin: String },
    #[error(transparent)]
    Digest(#[from] InvalidDigest),
    #[error("its digest is none of sha256")]
    DigestKind,
    #[error("its archive is neither .zip nor .tar.gz")]
    Archive,
    #[error("its type '{kind}' is not known")]
    Kind { kind: String },
    #[error("'{path}': {cause}")]
    Path { path: String, cause: InvalidResourcePath },
    #[error("the index has no path")]
    NoPath,
}

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "$schema")]
    schema: Option<String>,
    skills: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    url: Option<String>,
    digest: Option<String>,
    files: Option<Vec<FileEntry>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum FileEntry {
    Path(String),
    Verified { path: String, digest: String },
}

/// Reads an index that was found at a URL. An entry that cannot be used is a problem, and the
/// others are there; an index as a whole that cannot be used is an error.
pub(super) fn parse(
    text: &[u8],
    at: &Url,
    most: usize,
    origins: &[String],
) -> Result<Index, InvalidIndex> {
    let document: Document = serde_json::from_slice(text).map_err(InvalidIndex::Document)?;
    let is_new = match document.schema.as_deref() {
        None => false,
        Some(SCHEMA) => true,
        Some(other) => {
            return Err(InvalidIndex::Schema { schema: other.chars().take(200).collect() });
        }
    };
    let mut index = Index::default();
    for (number, entry) in document.skills.into_iter().enumerate() {
        if number >= most {
            index.problems.push(format!("there are more than `index_skills` = {most} skills"));
            break;
        }
        let shown = entry["name"].as_str().map_or(format!("number {number}"), str::to_owned);
        let shown: String = shown.chars().take(80).collect();
        let skill = serde_json::from_value::<Entry>(entry)
            .map_err(InvalidEntry::Shape)
            .and_then(|entry| if is_new { artifact(entry, at, origins) } else { files(entry, at) });
        match skill {
            Err(why) => index.problems.push(format!("'{shown}' is left out: {why}")),
            Ok(skill) if index.skills.iter().any(|other| other.name == skill.name) => {
                index.problems.push(format!("'{shown}' is left out: it is there twice"));
            }
            Ok(skill) => index.skills.push(skill),
        }
    }
    Ok(index)
}

/// Whether a name can be that of a skill and its folder.
fn check_name(name: &str) -> Result<(), InvalidEntry> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match (1..=64).contains(&name.len()) && name.bytes().all(allowed) {
        true => Ok(()),
        false => Err(InvalidEntry::Name),
    }
}

fn artifact(entry: Entry, at: &Url, origins: &[String]) -> Result<IndexSkill, InvalidEntry> {
    let Entry { name, kind, url, digest, .. } = entry;
    check_name(&name)?;
    let url = url.ok_or(InvalidEntry::Missing { what: "url" })?;
    let url = at.join(&url)?;
    vet(&url)?;
    if at.scheme() == "https" && url.scheme() != "https" {
        return Err(InvalidEntry::Downgrade);
    }
    let origin = url.origin().ascii_serialization();
    if url.origin() != at.origin() && !origins.contains(&origin) {
        return Err(InvalidEntry::Origin { origin });
    }
    let digest = digest.ok_or(InvalidEntry::Missing { what: "digest" })?;
    let digest = match digest.starts_with("sha256:") {
        true => digest.parse::<Digest>()?,
        false => return Err(InvalidEntry::DigestKind),
    };
    let kind = match kind.as_deref() {
        Some("skill-md") => ArchiveKind::SkillFile,
        Some("archive") => match ArchiveKind::of(&file_name(&url), b"") {
            Some(kind @ (ArchiveKind::Zip | ArchiveKind::TarGz)) => kind,
            _ => return Err(InvalidEntry::Archive),
        },
        Some(other) => {
            return Err(InvalidEntry::Kind { kind: other.chars().take(40).collect() });
        }
        None => return Err(InvalidEntry::Missing { what: "type" }),
    };
    Ok(IndexSkill { name, content: Content::Artifact { url, digest, kind } })
}

fn files(entry: Entry, at: &Url) -> Result<IndexSkill, InvalidEntry> {
    let Entry { name, files, .. } = entry;
    check_name(&name)?;
    let files = files.ok_or(InvalidEntry::Missing { what: "files" })?;
    let files: Result<Vec<IndexFile>, InvalidEntry> = files
        .into_iter()
        .map(|file| {
            let (path, digest) = match file {
                FileEntry::Path(path) => (path, None),
                FileEntry::Verified { path, digest } => (path, Some(digest.parse::<Digest>()?)),
            };
            let path =
                ResourcePath::parse(&path).map_err(|cause| InvalidEntry::Path { path, cause })?;
            let mut url = at.clone();
            {
                // Whatever stands in a path is part of it: `?` begins no query there.
                let parts = url.path_segments_mut();
                let mut parts = parts.map_err(|()| InvalidEntry::NoPath)?;
                parts.pop().push(&name).extend(path.as_str().split('/'));
            }
            Ok(IndexFile { path, url, digest })
        })
        .collect();
    let files = files?;
    match files.iter().any(|file| file.path.as_str() == "SKILL.md") {
        true => Ok(IndexSkill { name, content: Content::Files(files) }),
        false => Err(InvalidEntry::Missing { what: "SKILL.md" }),
    }
}
