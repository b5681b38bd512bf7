//! Indexes of skills at well-known places. Plain decisions: nothing is fetched here.

use prowess_format::Digest;
use serde::Deserialize;
use url::Url;

use super::location::{file_name, vet};
use crate::archive::ArchiveKind;
use crate::beneath::ResourcePath;

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
) -> Result<Index, String> {
    let document: Document =
        serde_json::from_slice(text).map_err(|error| format!("it is no index: {error}"))?;
    let is_new = match document.schema.as_deref() {
        None => false,
        Some(SCHEMA) => true,
        Some(other) => {
            let other: String = other.chars().take(200).collect();
            return Err(format!("its schema is not known: {other}"));
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
            .map_err(|error| error.to_string())
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
fn check_name(name: &str) -> Result<(), String> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match (1..=64).contains(&name.len()) && name.bytes().all(allowed) {
        true => Ok(()),
        false => Err("its name is not made of lowercase letters, digits and hyphens".to_owned()),
    }
}

fn artifact(entry: Entry, at: &Url, origins: &[String]) -> Result<IndexSkill, String> {
    let Entry { name, kind, url, digest, .. } = entry;
    check_name(&name)?;
    let url = url.ok_or("it has no url")?;
    let url = at.join(&url).map_err(|error| format!("its url is wrong: {error}"))?;
    vet(&url).map_err(|error| error.to_string())?;
    if at.scheme() == "https" && url.scheme() != "https" {
        return Err("its url leads from https to http".to_owned());
    }
    let origin = url.origin().ascii_serialization();
    if url.origin() != at.origin() && !origins.contains(&origin) {
        return Err(format!("it is at {origin}, which is not in `index_origins`"));
    }
    let digest = digest.ok_or("it has no digest")?;
    let digest = match digest.starts_with("sha256:") {
        true => digest.parse::<Digest>().map_err(|error| error.to_string())?,
        false => return Err("its digest is none of sha256".to_owned()),
    };
    let kind = match kind.as_deref() {
        Some("skill-md") => ArchiveKind::SkillFile,
        Some("archive") => match ArchiveKind::of(&file_name(&url), b"") {
            Some(kind @ (ArchiveKind::Zip | ArchiveKind::TarGz)) => kind,
            _ => return Err("its archive is neither .zip nor .tar.gz".to_owned()),
        },
        Some(other) => {
            let other: String = other.chars().take(40).collect();
            return Err(format!("its type '{other}' is not known"));
        }
        None => return Err("it has no type".to_owned()),
    };
    Ok(IndexSkill { name, content: Content::Artifact { url, digest, kind } })
}

fn files(entry: Entry, at: &Url) -> Result<IndexSkill, String> {
    let Entry { name, files, .. } = entry;
    check_name(&name)?;
    let files = files.ok_or("it has no files")?;
    let files: Result<Vec<IndexFile>, String> = files
        .into_iter()
        .map(|file| {
            let (path, digest) = match file {
                FileEntry::Path(path) => (path, None),
                FileEntry::Verified { path, digest } => {
                    (path, Some(digest.parse::<Digest>().map_err(|error| error.to_string())?))
                }
            };
            let path = ResourcePath::parse(&path).map_err(|error| format!("'{path}': {error}"))?;
            let mut url = at.clone();
            {
                // Whatever stands in a path is part of it: `?` begins no query there.
                let parts = url.path_segments_mut();
                let mut parts = parts.map_err(|()| "the index has no path".to_owned())?;
                parts.pop().push(&name).extend(path.as_str().split('/'));
            }
            Ok(IndexFile { path, url, digest })
        })
        .collect();
    let files = files?;
    match files.iter().any(|file| file.path.as_str() == "SKILL.md") {
        true => Ok(IndexSkill { name, content: Content::Files(files) }),
        false => Err("it has no SKILL.md".to_owned()),
    }
}
