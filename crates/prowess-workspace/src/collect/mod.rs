//! Bringing back what commands wrote.
//!
//! What is in a workspace was written by code that nobody has read. So nothing is opened through a
//! link, nothing but regular files with a single name is read, everything is capped, and what is
//! left out is listed.

mod content;

use serde::{Deserialize, Serialize};

pub use content::CollectedFile;

/// How much is collected at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct CollectLimits {
    /// The most files (100).
    pub max_files: u64,
    /// The most bytes of one file (4 MiB); the rest of a larger one is left out.
    pub max_file_bytes: u64,
    /// The most bytes of all files together (64 MiB); a file that does not fit is left out.
    pub max_total_bytes: u64,
    /// The most names in a path (32).
    pub max_depth: u64,
    /// The most entries of folders that are looked at (200,000).
    pub max_entries: u64,
    /// The most globs (64).
    pub max_globs: u64,
    /// The most files that are listed as refused (100); the rest is counted.
    pub max_refused: u64,
}

impl Default for CollectLimits {
    fn default() -> Self {
        Self {
            max_files: 100,
            max_file_bytes: 4 << 20,
            max_total_bytes: 64 << 20,
            max_depth: 32,
            max_entries: 200_000,
            max_globs: 64,
            max_refused: 100,
        }
    }
}

/// What was collected, in the order of names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collected {
    /// The files.
    pub files: Vec<CollectedFile>,
    /// What matched and was left out, at most [`CollectLimits::max_refused`] of it.
    pub refused: Vec<RefusedFile>,
    /// How many were left out.
    pub refused_count: u64,
    /// The limits that were reached.
    pub limits_hit: Vec<CollectLimit>,
}

/// A file that was left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct RefusedFile {
    /// Its name, on one line, as far as it can be shown.
    pub name: String,
    /// Why.
    pub reason: RefusedReason,
}

/// Why a file was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RefusedReason {
    /// It is, or lies behind, a symbolic link.
    Symlink,
    /// It is a pipe, a socket or a device.
    Special,
    /// It has another name somewhere.
    HardLinked,
    /// There are more than `max_files`.
    TooMany,
    /// It does not fit into `max_total_bytes`.
    TotalBytes,
    /// It lies deeper than `max_depth`.
    Depth,
    /// Its name is not UTF-8.
    NotUtf8Name,
    /// Its name has a control character or a backslash, or is too long.
    Name,
    /// It cannot be opened or read, or is gone.
    Unreadable,
}

impl RefusedReason {
    /// The stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Symlink => "symlink",
            Self::Special => "special",
            Self::HardLinked => "hard_linked",
            Self::TooMany => "too_many",
            Self::TotalBytes => "total_bytes",
            Self::Depth => "depth",
            Self::NotUtf8Name => "not_utf8_name",
            Self::Name => "name",
            Self::Unreadable => "unreadable",
        }
    }
}

/// A limit that was reached while files were collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CollectLimit {
    /// [`CollectLimits::max_files`].
    MaxFiles,
    /// [`CollectLimits::max_file_bytes`].
    MaxFileBytes,
    /// [`CollectLimits::max_total_bytes`].
    MaxTotalBytes,
    /// [`CollectLimits::max_depth`].
    MaxDepth,
    /// [`CollectLimits::max_entries`]: not everything was looked at.
    MaxEntries,
}

impl CollectLimit {
    /// The name of the limit.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MaxFiles => "max_files",
            Self::MaxFileBytes => "max_file_bytes",
            Self::MaxTotalBytes => "max_total_bytes",
            Self::MaxDepth => "max_depth",
            Self::MaxEntries => "max_entries",
        }
    }
}
