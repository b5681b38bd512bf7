//! Why an archive is refused.

use std::io;
use std::path::PathBuf;

use crate::beneath::InvalidResourcePath;

/// Why an archive is refused. It is refused as a whole: nothing of it is used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// An entry would be written elsewhere, or has a name that no file of a skill has.
    #[error("the entry '{name}' is refused: {cause}")]
    Path {
        /// The entry.
        name: String,
        /// What is wrong with its name.
        cause: InvalidResourcePath,
    },
    /// The name of an entry is not UTF-8.
    #[error("the entry '{name}' is refused: its name is not UTF-8")]
    NotUtf8 {
        /// The entry, as far as it can be shown.
        name: String,
    },
    /// An entry is neither a file nor a folder.
    #[error("the entry '{name}' is {what}; only files and folders are unpacked")]
    Special {
        /// The entry.
        name: String,
        /// What it is.
        what: &'static str,
    },
    /// Two entries have one name, or names that file systems or readers confuse.
    #[error("the entries '{name}' and '{other}' have the same name")]
    Duplicate {
        /// The later entry.
        name: String,
        /// The earlier entry.
        other: String,
    },
    /// The archive says two things, so that two readers would see two contents.
    #[error("the archive contradicts itself at '{name}': {what}")]
    Disagrees {
        /// The entry.
        name: String,
        /// What does not fit.
        what: String,
    },
    /// The archive uses what is not supported.
    #[error("the entry '{name}' cannot be read: {what}")]
    Unsupported {
        /// The entry.
        name: String,
        /// What is not supported.
        what: &'static str,
    },
    /// A limit is exceeded.
    #[error("the archive exceeds `{limit}` = {most}")]
    Limit {
        /// The name of the limit, as in `prowess.toml`.
        limit: &'static str,
        /// Its value.
        most: u64,
    },
    /// It is no archive of its kind, or not all of one.
    #[error("the archive is damaged: {cause}")]
    Damaged {
        /// What the reader says.
        cause: io::Error,
    },
    /// Its content cannot be written.
    #[error("cannot write {path}: {cause}")]
    Io {
        /// Where.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
}

impl ArchiveError {
    /// The stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Path { .. } | Self::NotUtf8 { .. } => "invalid_path",
            Self::Special { .. } => "special_entry",
            Self::Duplicate { .. } => "duplicate_entry",
            Self::Disagrees { .. } => "disagreeing_entry",
            Self::Unsupported { .. } => "unsupported_entry",
            Self::Limit { .. } => "archive_limit",
            Self::Damaged { .. } => "damaged_archive",
            Self::Io { .. } => "io",
        }
    }

    pub(super) fn disagrees(name: &str, what: impl Into<String>) -> Self {
        Self::Disagrees { name: shown(name), what: what.into() }
    }

    pub(super) fn damaged(what: &'static str) -> Self {
        Self::Damaged { cause: io::Error::new(io::ErrorKind::InvalidData, what) }
    }
}

/// A name as it is shown: not longer than a line.
pub(super) fn shown(name: &str) -> String {
    const MOST: usize = 120;
    match name.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}
