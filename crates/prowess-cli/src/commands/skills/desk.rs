//! Where skills are registered: in the database of this machine, or with a server.

use std::sync::Arc;

use jiff::Timestamp;
use prowess_catalog::{ArchiveError, SkillContents};
use prowess_store::{DocumentError, FileDiff, InvalidSkillId, SkillId, SkillReading, VersionError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::local::Local;
use super::remote::Remote;

/// Where skills are registered. What both can do is asked for in the same way, and shown in the
/// words of the REST interface.
pub(super) enum Desk {
    Local(Local),
    Remote(Box<Remote>),
}

/// A skill in a list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SkillRow {
    pub(super) id: String,
    /// Its display name.
    pub(super) name: String,
    /// Its semantic version.
    pub(super) version: String,
    /// None as long as nobody has activated one.
    pub(super) active_version: Option<u64>,
    /// The version that waits for a publisher. A server that is older does not say.
    #[serde(default)]
    pub(super) pending_version: Option<u64>,
    pub(super) version_count: u64,
    pub(super) is_builtin: bool,
    pub(super) updated_at: Timestamp,
}

/// A version in a list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct VersionRow {
    pub(super) version_number: u64,
    pub(super) semantic_version: String,
    pub(super) change_summary: Option<String>,
    pub(super) created_at: Timestamp,
    pub(super) author: Option<String>,
    pub(super) created_by: String,
    pub(super) is_active: bool,
    /// Whether it waits for a publisher. A server that is older does not say.
    #[serde(default)]
    pub(super) is_pending: bool,
    pub(super) tree_digest: String,
}

/// A skill to be pushed.
pub(super) struct Push {
    pub(super) reading: SkillReading,
    pub(super) contents: Arc<SkillContents>,
    pub(super) message: Option<String>,
    pub(super) activate: bool,
}

/// What came of it.
#[derive(Clone, Debug)]
pub(super) struct Pushed {
    /// `created`, `updated` or `unchanged`.
    pub(super) status: String,
    /// The version that holds the content.
    pub(super) version_number: u64,
    /// The version that is used; none as long as nobody has activated one.
    pub(super) active_version: Option<u64>,
}

/// Why a registry did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum DeskError {
    #[error(transparent)]
    Id(#[from] InvalidSkillId),
    #[error(transparent)]
    Store(#[from] VersionError),
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// There is nothing that it could be compared with.
    #[error("version {number} of '{skill}' is the first one; name two versions")]
    NoEarlier { skill: SkillId, number: u64 },
    /// Something has the place of what is pulled.
    #[error("{0} is there already; nothing was changed. Give --force to replace it")]
    Exists(String),
    /// What came is not what is stored.
    #[error("what the server sent of '{0}' is not what it has stored; try again")]
    Damaged(SkillId),
    /// The address is none of a server.
    #[error("'{address}' is no address of a server, such as http://127.0.0.1:7171: {cause}")]
    Address { address: String, cause: String },
    /// The key cannot be sent.
    #[error("the key has characters that no key has; `prowess keys create` makes one")]
    Key,
    /// Nobody answers.
    #[error("{server} does not answer: {cause}; is `prowess serve` running there?")]
    Away { server: String, cause: String },
    /// What answers is no server of ours.
    #[error("{server} does not answer as Prowess does: {cause}")]
    Strange { server: String, cause: String },
    /// The server refuses.
    #[error("{detail}")]
    Problem { status: u16, code: String, detail: String, details: Option<Value> },
    /// It must be done where the database is.
    #[error(
        "versions are imported where the database is; leave out --server and unset PROWESS_SERVER"
    )]
    LocalOnly,
    #[error(transparent)]
    Redis(#[from] prowess_store::interop::langchain_docker::FetchError),
}

impl DeskError {
    /// The stable name of the error.
    pub(super) fn code(&self) -> &str {
        match self {
            Self::Id(_) => "invalid_id",
            Self::Store(error) => error.code(),
            Self::Document(error) => error.code(),
            Self::Archive(error) => error.code(),
            Self::NoEarlier { .. } => "no_earlier_version",
            Self::Exists(_) => "folder_exists",
            Self::Damaged(_) => "content_changed",
            Self::Address { .. } => "invalid_address",
            Self::Key => "invalid_key",
            Self::Away { .. } => "server_unavailable",
            Self::Strange { .. } => "unexpected_answer",
            Self::Problem { code, .. } => code,
            Self::LocalOnly => "local_only",
            Self::Redis(error) => error.code(),
        }
    }

    /// Whether it is about one skill, so that others may still be pushed.
    pub(super) fn is_about_skill(&self) -> bool {
        match self {
            Self::Problem { status, .. } => matches!(status, 409 | 412 | 413 | 422),
            Self::Store(error) => !matches!(error, VersionError::Unavailable(_)),
            Self::Id(_) | Self::Document(_) | Self::Archive(_) => true,
            _ => false,
        }
    }
}

impl Desk {
    pub(super) async fn list(&self) -> Result<Vec<SkillRow>, DeskError> {
        match self {
            Self::Local(desk) => desk.list().await,
            Self::Remote(desk) => desk.list().await,
        }
    }

    pub(super) async fn push(&self, push: Push) -> Result<Pushed, DeskError> {
        match self {
            Self::Local(desk) => desk.push(push).await,
            Self::Remote(desk) => desk.push(push).await,
        }
    }

    /// All versions, the newest first.
    pub(super) async fn versions(&self, skill: &SkillId) -> Result<Vec<VersionRow>, DeskError> {
        match self {
            Self::Local(desk) => desk.versions(skill).await,
            Self::Remote(desk) => desk.versions(skill).await,
        }
    }

    /// The files of a version, and its number: of the active one if none is named, and where none is
    /// active, of the one that waits.
    pub(super) async fn contents(
        &self,
        skill: &SkillId,
        version: Option<u64>,
    ) -> Result<(u64, SkillContents), DeskError> {
        match self {
            Self::Local(desk) => desk.contents(skill, version).await,
            Self::Remote(desk) => desk.contents(skill, version).await,
        }
    }

    pub(super) async fn activate(&self, skill: &SkillId, version: u64) -> Result<(), DeskError> {
        match self {
            Self::Local(desk) => desk.activate(skill, version).await,
            Self::Remote(desk) => desk.activate(skill, version).await,
        }
    }

    pub(super) async fn diff(
        &self,
        skill: &SkillId,
        from: u64,
        to: u64,
    ) -> Result<Vec<FileDiff>, DeskError> {
        match self {
            Self::Local(desk) => desk.diff(skill, from, to).await,
            Self::Remote(desk) => desk.diff(skill, from, to).await,
        }
    }

    /// Says which version is used now.
    pub(super) async fn reset(&self, skill: &SkillId) -> Result<u64, DeskError> {
        match self {
            Self::Local(desk) => desk.reset(skill).await,
            Self::Remote(desk) => desk.reset(skill).await,
        }
    }

    pub(super) async fn delete(&self, skill: &SkillId) -> Result<(), DeskError> {
        match self {
            Self::Local(desk) => desk.delete(skill).await,
            Self::Remote(desk) => desk.delete(skill).await,
        }
    }
}
