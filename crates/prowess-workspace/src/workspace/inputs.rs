//! What commands are given.

use crate::collect::RefusedFile;
use crate::path::WorkspacePath;

/// A file that was put into a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputFile {
    /// Where.
    pub path: WorkspacePath,
    /// How large it is.
    pub size_bytes: u64,
    /// What it is, by its content and the end of its name.
    pub mime_type: String,
}

/// What was copied into a workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopiedIn {
    /// The files, in the order of their paths.
    pub files: Vec<InputFile>,
    /// What a folder held besides, by its path below the folder.
    pub refused: Vec<RefusedFile>,
}
