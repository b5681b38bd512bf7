//! What skills are used for, counted from events that were committed.

pub(crate) mod count;

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::version::VersionFuture;

/// What a skill was used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UsageKind {
    /// Its text was given.
    Load,
    /// One of its docs or resources was given.
    Detail,
    /// One of its tools was called.
    ToolCall,
    /// One of its tools, or the skill itself, was refused.
    Denial,
}

/// One use of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Use {
    /// When.
    pub time: Timestamp,
    /// What for.
    pub kind: UsageKind,
    /// Which skill.
    pub skill: String,
    /// Which version of it, if that is known.
    pub version: Option<u64>,
    /// By which agent.
    pub agent: Option<String>,
    /// In which session.
    pub session: Option<String>,
    /// The code of what came of it.
    pub code: Option<String>,
    /// Whether it failed.
    pub is_error: bool,
    /// How long it took, in microseconds.
    pub elapsed_us: u64,
    /// How many bytes a model was given.
    pub bytes: u64,
    /// How many tokens that is, estimated.
    pub tokens: u64,
}

impl Use {
    /// A use that happens now, of nobody in particular.
    pub fn new(kind: UsageKind, skill: impl Into<String>) -> Self {
        Self {
            time: Timestamp::now(),
            kind,
            skill: skill.into(),
            version: None,
            agent: None,
            session: None,
            code: None,
            is_error: false,
            elapsed_us: 0,
            bytes: 0,
            tokens: 0,
        }
    }
}

/// Uses that have everything in common that is counted apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UsageRow {
    /// The skill.
    pub skill: String,
    /// The day, in UTC.
    pub day: Date,
    /// What for.
    pub kind: UsageKind,
    /// The version, if it is known.
    pub version: Option<u64>,
    /// The agent, if there is one.
    pub agent: Option<String>,
    /// What came of it, if there is a word for that.
    pub code: Option<String>,
    /// How often.
    pub count: u64,
    /// How often it failed.
    pub errors: u64,
    /// How long all of it took, in microseconds.
    pub elapsed_us: u64,
    /// How many bytes a model was given.
    pub bytes: u64,
    /// How many tokens that is, estimated.
    pub tokens: u64,
    /// When it was so last.
    pub last: Timestamp,
}

/// What one skill was used for.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SkillUsage {
    /// All counts.
    pub rows: Vec<UsageRow>,
    /// In how many sessions.
    pub unique_sessions: u64,
    /// In how many sessions, by day.
    pub sessions_by_day: BTreeMap<Date, u64>,
}

/// Counts what skills are used for. Nothing is lost, nothing counts twice.
///
/// What is counted apart is bounded: uses of skills that are not there count under an empty name,
/// and beyond 100 agents of a skill on one day the others count as `other`.
pub trait UsageStore: Send + Sync + 'static {
    /// Counts uses. What is acknowledged is on the disk.
    fn record(&self, uses: Vec<Use>) -> VersionFuture<'_, ()>;

    /// Writes something that nobody reads: whether the store takes changes.
    fn probe(&self) -> VersionFuture<'_, ()>;

    /// What a skill was used for.
    fn usage<'a>(&'a self, skill: &'a str) -> VersionFuture<'a, SkillUsage>;

    /// When each of these skills was loaded last.
    fn last_loads(&self, skills: Vec<String>) -> VersionFuture<'_, Vec<Option<Timestamp>>>;

    /// What all skills were used for, by skill, kind, version and code: days and agents together.
    fn totals(&self) -> VersionFuture<'_, Vec<UsageRow>>;
}
