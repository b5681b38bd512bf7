//! Which workspaces are garbage.

use super::{WorkspaceError, WorkspaceId};

/// What became of the garbage.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct GarbageReport {
    /// What was removed, in the order in which it was.
    pub removed: Vec<RemovedWorkspace>,
    /// What should have been removed and could not be.
    pub failed: Vec<(WorkspaceId, WorkspaceError)>,
    /// How many workspaces are left, those in use included.
    pub kept: u64,
    /// How many bytes they have on the disk.
    pub kept_bytes: u64,
}

/// A workspace that was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemovedWorkspace {
    /// Which one.
    pub id: WorkspaceId,
    /// How many bytes it had on the disk.
    pub bytes: u64,
}
