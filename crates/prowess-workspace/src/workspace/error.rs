//! What can go wrong in a workspace.

use std::io;

use crate::path::WorkspacePath;

/// Why something was not done in a workspace. Nothing was changed then, unless the system failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// The name of a skill cannot be the name of a folder.
    #[error("'{name}' cannot be staged: {cause}")]
    SkillName {
        /// The name, as far as it can be shown.
        name: String,
        /// What is wrong with it.
        cause: &'static str,
    },
    /// A file of a skill cannot be staged.
    #[error("the skill's file '{path}' cannot be staged: {cause}")]
    SkillFile {
        /// The file.
        path: String,
        /// What is wrong with it.
        cause: String,
    },
    /// A glob cannot be used.
    #[error("the glob '{glob}' cannot be used: {cause}")]
    Glob {
        /// The glob.
        glob: String,
        /// What is wrong with it.
        cause: String,
    },
    /// Nothing is there.
    #[error("there is no '{path}'")]
    NotFound {
        /// What was asked for.
        path: String,
    },
    /// There is a symbolic link on the way.
    #[error("'{path}' is, or leads through, a symbolic link; links are not followed")]
    Link {
        /// What was asked for.
        path: String,
    },
    /// It does not lie inside the folder that inputs may come from.
    #[error("'{path}' lies, or leads, outside the folder that inputs may come from")]
    Outside {
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
    /// It is no folder.
    #[error("'{path}' is not a folder")]
    NotAFolder {
        /// What was asked for.
        path: String,
    },
    /// Nothing is written there.
    #[error("'{path}' cannot be written; write below work/, out/ or runs/")]
    NotWritable {
        /// The destination.
        path: WorkspacePath,
    },
    /// A folder is in the way.
    #[error("'{path}' is a folder and is not replaced")]
    FolderInTheWay {
        /// The destination.
        path: WorkspacePath,
    },
    /// Something is there that was not expected.
    #[error("'{path}' is there already")]
    Exists {
        /// The destination.
        path: WorkspacePath,
    },
    /// What is there is not what was expected.
    #[error("'{path}' has changed meanwhile")]
    Changed {
        /// The destination.
        path: WorkspacePath,
    },
    /// A limit is exceeded.
    #[error("{what} exceeds `{limit}` = {most}")]
    Limit {
        /// What is too large.
        what: String,
        /// The name of the limit.
        limit: &'static str,
        /// Its value.
        most: u64,
    },
    /// Somebody uses the workspace.
    #[error("the workspace '{id}' is in use")]
    InUse {
        /// Which one.
        id: String,
    },
    /// Somebody uses another version of the skill.
    #[error(
        "a command that is still running uses another version of the skill '{name}'; try again when \
         it has ended"
    )]
    SkillInUse {
        /// The skill.
        name: String,
    },
    /// The system refuses.
    #[error("cannot {doing}: {cause}")]
    Io {
        /// What was tried.
        doing: String,
        /// What the system says.
        cause: io::Error,
    },
}

impl WorkspaceError {
    /// The stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::SkillName { .. } => "invalid_skill_name",
            Self::SkillFile { .. } => "invalid_skill_file",
            Self::Glob { .. } => "invalid_glob",
            Self::NotFound { .. } => "not_found",
            Self::Link { .. } => "is_link",
            Self::Outside { .. } => "outside",
            Self::NotAFile { .. } => "not_a_file",
            Self::NotAFolder { .. } => "not_a_folder",
            Self::NotWritable { .. } => "not_writable",
            Self::FolderInTheWay { .. } => "folder_in_the_way",
            Self::Exists { .. } => "already_exists",
            Self::Changed { .. } => "file_changed",
            Self::Limit { .. } => "limit_exceeded",
            Self::InUse { .. } => "in_use",
            Self::SkillInUse { .. } => "skill_in_use",
            Self::Io { .. } => "workspace_io",
        }
    }

    /// Says what was tried.
    pub(crate) fn io<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> Self {
        let doing = doing.into();
        move |cause| Self::Io { doing, cause: cause.into() }
    }
}

/// A name as it is shown: not longer than a line, on one line.
pub(crate) fn shown(name: &str) -> String {
    const MOST: usize = 120;
    let mut shown: String = name.chars().take(MOST).flat_map(char::escape_debug).collect();
    if name.chars().nth(MOST).is_some() {
        shown.push('…');
    }
    shown
}
