//! All workspaces below one folder.

use std::path::PathBuf;

use super::garbage::GarbageReport;
use super::{Workspace, WorkspaceError, WorkspaceId, WorkspaceLimits};

/// Who owns what commands may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkspaceOwner {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

impl WorkspaceOwner {
    /// `nobody`, as which commands run where this process is root.
    pub const NOBODY: Self = Self { uid: 65534, gid: 65534 };

    /// `nobody` where this process is root; nobody else otherwise.
    pub fn by_privilege() -> Option<Self> {
        rustix::process::geteuid().is_root().then_some(Self::NOBODY)
    }
}

/// All workspaces below one folder. Any number of processes may use the same folder.
#[derive(Clone, Debug)]
pub struct Workspaces {
    root: PathBuf,
    owner: Option<WorkspaceOwner>,
    limits: WorkspaceLimits,
}

impl Workspaces {
    /// Workspaces below a folder, which is made when it is needed.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            owner: WorkspaceOwner::by_privilege(),
            limits: WorkspaceLimits::default(),
        }
    }

    /// How much they may hold.
    pub fn with_limits(mut self, limits: WorkspaceLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Who owns what commands may write, if that is not this process.
    pub fn with_owner(mut self, owner: Option<WorkspaceOwner>) -> Self {
        self.owner = owner;
        self
    }

    /// The workspace of a session: made, or used again.
    pub fn open(&self, id: &WorkspaceId) -> Result<Workspace, WorkspaceError> {
        unimplemented!("{id} {:?}", self.root)
    }

    /// Removes workspaces that were not used for long, and those used longest ago while all are
    /// too large together. Never one that somebody has open.
    pub fn collect_garbage(&self) -> Result<GarbageReport, WorkspaceError> {
        unimplemented!()
    }

    /// Removes a workspace that nobody has open, and says whether there was one.
    pub fn remove(&self, id: &WorkspaceId) -> Result<bool, WorkspaceError> {
        unimplemented!("{id}")
    }
}
