//! What can go wrong with a file.

use std::io;

use prowess_workspace::{ExecError, WorkspaceError, WorkspacePath};

use crate::place::{PlaceError, below};
use crate::policy::CommandError;

/// Why something was not done with a file. Nothing was changed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// Nothing is there.
    #[error("There is no file or folder '{path}'")]
    NotFound {
        /// What was asked for.
        path: String,
    },
    /// It may not be read or written.
    #[error("'{path}' cannot be used: {why}")]
    Denied {
        /// What was asked for.
        path: String,
        /// Who says so, and what to do instead.
        why: String,
    },
    /// It is a folder, not a file.
    #[error("'{path}' is a folder, not a file")]
    IsFolder {
        /// What was asked for.
        path: String,
    },
    /// It is no folder, or leads through something that is none.
    #[error("'{path}' is not a folder")]
    NotAFolder {
        /// What was asked for.
        path: String,
    },
    /// It is no regular file, or no file with this one name.
    #[error("'{path}' is {what}, not a regular file")]
    NotAFile {
        /// What was asked for.
        path: String,
        /// What it is.
        what: &'static str,
    },
    /// There is a symbolic link on the way.
    #[error("'{path}' is, or leads through, a symbolic link; links are not followed")]
    Link {
        /// What was asked for.
        path: String,
    },
    /// The text is no path of a backend.
    #[error("{cause}")]
    InvalidPath {
        /// The text.
        path: String,
        /// What is wrong with it; with the text.
        cause: String,
    },
    /// The text is no glob.
    #[error("the glob '{glob}' cannot be used: {cause}")]
    InvalidGlob {
        /// The text.
        glob: String,
        /// What is wrong with it.
        cause: String,
    },
    /// A limit is exceeded.
    #[error("'{path}': {bytes} bytes exceed `{limit}` = {most}")]
    TooLarge {
        /// What was asked for.
        path: String,
        /// How large it is.
        bytes: u64,
        /// The name of the limit.
        limit: &'static str,
        /// Its value.
        most: u64,
    },
    /// It is no text in UTF-8.
    #[error("'{path}' is not text")]
    NotText {
        /// What was asked for.
        path: String,
    },
    /// Something is there that was not expected.
    #[error("'{path}' is there already")]
    Exists {
        /// What was to be written.
        path: String,
    },
    /// What is there is not what was expected.
    #[error("'{path}' has changed meanwhile")]
    Changed {
        /// What was to be written.
        path: String,
    },
    /// A command was not run.
    #[error(transparent)]
    NotRun(#[from] ExecError),
    /// The host does not allow the command.
    #[error(transparent)]
    NotAllowed(#[from] CommandError),
    /// The system, or whatever keeps the files, failed.
    #[error("'{path}' cannot be used: {cause}")]
    Io {
        /// What was asked for.
        path: String,
        /// What it says.
        cause: io::Error,
    },
}

impl FileError {
    /// The stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "file_not_found",
            Self::Denied { .. } => "permission_denied",
            Self::IsFolder { .. } => "is_directory",
            Self::NotAFolder { .. } => "not_a_folder",
            Self::NotAFile { .. } => "not_a_file",
            Self::Link { .. } => "is_link",
            Self::InvalidPath { .. } => "invalid_path",
            Self::InvalidGlob { .. } => "invalid_glob",
            Self::TooLarge { .. } => "too_large",
            Self::NotText { .. } => "not_text",
            Self::Exists { .. } => "already_exists",
            Self::Changed { .. } => "file_changed",
            Self::NotRun(error) => error.code(),
            Self::NotAllowed(error) => error.code(),
            Self::Io { .. } => "file_io",
        }
    }

    /// The same of a path below another folder: what is mounted does not know where.
    pub(super) fn below(mut self, folder: &WorkspacePath) -> Self {
        match &mut self {
            Self::NotFound { path }
            | Self::Denied { path, .. }
            | Self::IsFolder { path }
            | Self::NotAFolder { path }
            | Self::NotAFile { path, .. }
            | Self::Link { path }
            | Self::TooLarge { path, .. }
            | Self::NotText { path }
            | Self::Exists { path }
            | Self::Changed { path }
            | Self::Io { path, .. } => {
                *path = match path.as_str() {
                    "" => folder.to_string(),
                    path => format!("{folder}/{path}"),
                };
            }
            Self::InvalidPath { .. }
            | Self::InvalidGlob { .. }
            | Self::NotRun(_)
            | Self::NotAllowed(_) => {}
        }
        self
    }

    /// Something of a workspace, or of a folder of this machine, failed.
    pub(crate) fn of_workspace(error: WorkspaceError, path: &WorkspacePath) -> Self {
        let path = path.to_string();
        match error {
            WorkspaceError::NotFound { .. } => Self::NotFound { path },
            WorkspaceError::Link { .. } => Self::Link { path },
            WorkspaceError::NotAFile { what, .. } => Self::NotAFile { path, what },
            WorkspaceError::NotAFolder { .. } => Self::NotAFolder { path },
            WorkspaceError::FolderInTheWay { .. } => Self::IsFolder { path },
            WorkspaceError::Exists { .. } => Self::Exists { path },
            WorkspaceError::Changed { .. } => Self::Changed { path },
            WorkspaceError::NotWritable { .. } => {
                Self::Denied { path, why: "write below work/ or out/".to_owned() }
            }
            WorkspaceError::Io { cause, .. } => Self::of_io(path, cause),
            error => Self::Io { path, cause: io::Error::other(error) },
        }
    }

    fn of_io(path: String, cause: io::Error) -> Self {
        match cause.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::Denied { path, why: cause.to_string() }
            }
            _ => Self::Io { path, cause },
        }
    }
}

/// The path that a text means: `/a/b` and `a/b` are the same; `..` may lead back, but not out.
pub(crate) fn path_of(text: &str) -> Result<WorkspacePath, FileError> {
    let invalid = |cause: PlaceError| FileError::InvalidPath {
        path: text.to_owned(),
        cause: cause.to_string(),
    };
    below(&WorkspacePath::root(), text.trim_start_matches('/'), text).map_err(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_begin_at_the_root_with_or_without_a_slash() {
        let table = [
            ("", ""),
            ("/", ""),
            (".", ""),
            ("/a/b", "a/b"),
            ("a/b", "a/b"),
            ("//a//b/", "a/b"),
            ("./a/./b", "a/b"),
            ("a/../b", "b"),
            ("/a/..", ""),
            ("a b/ü", "a b/ü"),
            ("...", "..."),
            ("%2e%2e/a", "%2e%2e/a"),
            ("$HOME/a", "$HOME/a"),
            ("~/a", "~/a"),
        ];
        for (text, expected) in table {
            assert_eq!(path_of(text).unwrap().as_str(), expected, "{text}");
        }
    }

    #[test]
    fn paths_that_lead_out_are_no_paths() {
        let long = "a".repeat(256);
        for text in ["..", "/..", "/../etc", "a/../../b", "a\\b", "a\0b", "a\nb", long.as_str()] {
            assert_eq!(path_of(text).unwrap_err().code(), "invalid_path", "{text:?}");
        }
    }
}
