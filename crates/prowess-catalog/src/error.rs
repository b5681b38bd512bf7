//! Why something could not be read.

use std::path::Path;

use prowess_format::{Code, Diagnostic, Digest, Level};

use crate::beneath::InvalidResourcePath;

/// Why a skill or a resource could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// There is no such file in the skill.
    #[error("there is no file '{path}' in the skill")]
    NotFound {
        /// The path that was asked for.
        path: String,
    },
    /// The path is none of a skill.
    #[error("'{path}': {cause}")]
    InvalidPath {
        /// The path that was asked for.
        path: String,
        /// What is wrong with it.
        cause: InvalidResourcePath,
    },
    /// The path leads out of the skill's folder.
    #[error("'{path}' leads out of the skill's folder, or in circles")]
    Outside {
        /// The path that was asked for.
        path: String,
    },
    /// The path leads to something that is no regular file.
    #[error("'{path}' is not a regular file")]
    NotAFile {
        /// The path that was asked for.
        path: String,
    },
    /// The file is a hard link in an untrusted source, so that it may be anybody's file.
    #[error("'{path}' is a hard link, and the source is not trusted")]
    HardLink {
        /// The path that was asked for.
        path: String,
    },
    /// The file is larger than the limit.
    #[error("'{path}' is larger than {limit} bytes")]
    TooLarge {
        /// The path that was asked for.
        path: String,
        /// The limit.
        limit: u64,
    },
    /// All files of the skill together are larger than the limit.
    #[error("the files of the skill are larger than {limit} bytes together")]
    SkillTooLarge {
        /// The limit.
        limit: u64,
    },
    /// The text is not the one that was found.
    #[error("the content has changed: expected {expected}, found {actual}")]
    ContentChanged {
        /// What was found before.
        expected: Digest,
        /// What is there now.
        actual: Digest,
    },
    /// The skill's folder is not the one that was found.
    #[error("the skill has been moved or replaced since it was found")]
    Replaced,
    /// Not everything in the skill's folder can be read, so that nothing can be said of the whole.
    #[error("'{path}' is not counted: {why}")]
    Incomplete {
        /// What is left out.
        path: String,
        /// Why.
        why: &'static str,
    },
    /// The system refuses.
    #[error("'{path}' cannot be read: {cause}")]
    Io {
        /// The path that was asked for.
        path: String,
        /// What the system says.
        cause: std::io::Error,
    },
}

impl ReadError {
    /// The finding that this kept the resources of the skill at a path from being read.
    pub fn about_resources(&self, skill: &Path) -> Diagnostic {
        let message = format!("The files of the skill cannot be read: {self}");
        Diagnostic::new(Code::UnreadableFile, Level::Error, message)
            .with_path(skill.display().to_string())
            .with_help("check the permissions of its folder, and look again")
    }

    /// The stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not_found",
            Self::InvalidPath { .. } => "invalid_path",
            Self::Outside { .. } => "outside_skill",
            Self::NotAFile { .. } => "not_a_file",
            Self::HardLink { .. } => "hard_link",
            Self::TooLarge { .. } | Self::SkillTooLarge { .. } => "too_large",
            Self::ContentChanged { .. } | Self::Replaced => "content_changed",
            Self::Incomplete { .. } => "incomplete",
            Self::Io { .. } => "io",
        }
    }
}
