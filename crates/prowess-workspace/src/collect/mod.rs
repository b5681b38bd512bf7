//! Bringing back what commands wrote.
//!
//! What is in a workspace was written by code that nobody has read. So nothing is opened through a
//! link, nothing but regular files with a single name is read, everything is capped, and what is
//! left out is listed.

mod content;
mod glob;
mod walk;

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use serde::{Deserialize, Serialize};

pub use content::CollectedFile;
pub(crate) use content::mime_type;

use self::glob::Pattern;
use self::walk::Found;
use crate::beneath::{Folder, Stamp};
use crate::path::WorkspacePath;
use crate::workspace::WorkspaceError;

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

/// Collects what matches any of the globs below a root. `redirect` gives the path that is meant
/// by one that a staged skill's own link may stand in.
pub(crate) fn collect(
    root: &Folder,
    globs: &[String],
    run_dir: Option<&WorkspacePath>,
    limits: &CollectLimits,
    redirect: impl Fn(&WorkspacePath) -> WorkspacePath,
) -> Result<Collected, WorkspaceError> {
    if globs.len() as u64 > limits.max_globs {
        return Err(WorkspaceError::Limit {
            what: "the number of globs".into(),
            limit: "max_globs",
            most: limits.max_globs,
        });
    }
    let patterns: Vec<_> = globs
        .iter()
        .map(|glob| Pattern::parse(glob, run_dir, &redirect))
        .collect::<Result<_, _>>()?;
    let mut bases: Vec<_> = patterns.iter().map(Pattern::base).collect();
    bases.sort_unstable();
    // What is below another base is seen from there.
    bases.dedup_by(|below, above| below.starts_with(above));

    let mut found = Found::new(limits);
    for base in bases {
        found.walk(root, base, &patterns);
    }
    let mut collected = Collected::default();
    let mut bytes_left = limits.max_total_bytes;
    for path in std::mem::take(&mut found.files) {
        if collected.files.len() as u64 >= limits.max_files {
            found.refuse(path.as_str(), RefusedReason::TooMany);
            found.hit(CollectLimit::MaxFiles);
            continue;
        }
        match take(root, &path, limits.max_file_bytes, bytes_left) {
            Ok(Some(file)) => {
                bytes_left -= file.bytes.len() as u64;
                if file.truncated {
                    found.hit(CollectLimit::MaxFileBytes);
                }
                collected.files.push(file);
            }
            Ok(None) => {}
            Err(reason) => {
                found.refuse(path.as_str(), reason);
                if reason == RefusedReason::TotalBytes {
                    found.hit(CollectLimit::MaxTotalBytes);
                }
            }
        }
    }
    found.finish(&mut collected);
    Ok(collected)
}

/// Reads a file by its path, which says nothing any more about what is there now.
fn take(
    root: &Folder,
    path: &WorkspacePath,
    max_file_bytes: u64,
    bytes_left: u64,
) -> Result<Option<CollectedFile>, RefusedReason> {
    let unreadable = |_| RefusedReason::Unreadable;
    let file = match root.open_file(path) {
        Ok(file) => file,
        Err(error) => return walk::reason_of(&error).map_or(Ok(None), Err),
    };
    let stamp = Stamp::of(&file).map_err(unreadable)?;
    walk::check(&stamp)?;
    if stamp.bytes.min(max_file_bytes) > bytes_left {
        return Err(RefusedReason::TotalBytes);
    }
    let bytes = read_head(file, &stamp, max_file_bytes.min(bytes_left)).map_err(unreadable)?;
    Ok(Some(CollectedFile::new(path.to_string(), bytes, stamp.bytes)))
}

/// Reads the beginning of an open file.
pub(crate) fn read_head(file: OwnedFd, stamp: &Stamp, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usize::try_from(stamp.bytes.min(limit)).unwrap_or(0));
    File::from(file).take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}
