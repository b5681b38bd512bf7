//! Reads what langchain-docker keeps in Redis.
//!
//! | key | value |
//! |---|---|
//! | `skill:meta:{id}` | JSON: `skill_id`, `is_builtin`, `active_version`, `created_at`, `updated_at` |
//! | `skill:version:{id}:{n}` | JSON: a version |
//! | `skill:versions:{id}` | sorted set of numbers of versions, by the time when they were made |
//! | `skill:metrics:{id}` | JSON: `total_loads`, `unique_sessions`, `last_loaded_at`, `loads_by_version` |
//! | `skill:sessions:{id}` | set of sessions |
//! | `skills:custom:index` | set of ids |
//!
//! A key that is broken hurts no other. What is mended, or cannot be, is a [`Problem`].

#[cfg(feature = "redis")]
mod fetch;
mod import;
mod snapshot;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use crate::document::SkillDocument;
use crate::version::SkillId;

#[cfg(feature = "redis")]
pub use fetch::{FetchError, FetchLimits, fetch};

/// All keys of langchain-docker in a Redis database, and what they hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    /// The values by their keys.
    pub entries: BTreeMap<String, LayoutValue>,
}

/// What a key holds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LayoutValue {
    /// A string, which need not be text.
    String(Vec<u8>),
    /// A set.
    Set(Vec<String>),
    /// A sorted set, with scores.
    SortedSet(Vec<(String, f64)>),
    /// Something that langchain-docker does not use, by the name that Redis has for it.
    Other(String),
}

impl LayoutValue {
    /// What it is, in words.
    fn kind(&self) -> &str {
        match self {
            Self::String(_) => "string",
            Self::Set(_) => "set",
            Self::SortedSet(_) => "sorted set",
            Self::Other(kind) => kind,
        }
    }
}

/// What was made of a [`Layout`].
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ImportedSkills {
    /// The skills, in the order of their ids.
    pub skills: Vec<ImportedSkill>,
    /// What was mended, and what could not be read.
    pub problems: Vec<Problem>,
}

/// A skill of langchain-docker.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ImportedSkill {
    /// Its id.
    pub id: SkillId,
    /// The id that it had there. Not every one of them is an id here.
    pub source_id: String,
    /// Whether langchain-docker brought it.
    pub is_builtin: bool,
    /// The number of the version that is used. It is among the versions.
    pub active_version: u64,
    /// Its versions in the order of their numbers; at least one.
    pub versions: Vec<ImportedVersion>,
    /// What it was used for.
    pub metrics: ImportedMetrics,
}

/// A version of a skill of langchain-docker. Its document can be made into files.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ImportedVersion {
    /// 1, 2, 3 …
    pub number: u64,
    /// The version.
    pub document: SkillDocument,
    /// When it was made, if that is known.
    pub created: Option<Timestamp>,
    /// By whom, if that is known.
    pub author: Option<String>,
    /// Why.
    pub change_summary: Option<String>,
}

/// What a skill was used for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportedMetrics {
    /// How often it was loaded.
    pub total_loads: u64,
    /// How often, by version.
    pub loads_by_version: BTreeMap<u64, u64>,
    /// In how many sessions.
    pub unique_sessions: u64,
    /// When it was loaded last.
    pub last_loaded: Option<Timestamp>,
    /// The sessions of the last days. There may have been more.
    pub sessions: Vec<String>,
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Problem {
    /// The key that it is about.
    pub key: String,
    /// What is wrong, and what was made of it.
    pub cause: String,
}

/// Collects what is not as it should be.
#[derive(Default)]
struct Problems(Vec<Problem>);

impl Problems {
    fn add(&mut self, key: &str, cause: impl Into<String>) {
        self.0.push(Problem { key: key.to_owned(), cause: cause.into() });
    }
}
