//! The folder of a run.

use prowess_workspace::{Workspace, WorkspaceError, WorkspacePath};

use super::outputs::changed;

/// The folder of a run. If the run left nothing in it, it goes with this.
#[derive(Debug)]
pub(crate) struct RunFolder {
    workspace: Workspace,
    path: WorkspacePath,
    /// When it was made, as the disk tells it.
    began: Option<(i64, i64)>,
}

impl RunFolder {
    /// Makes it. Blocks.
    pub(crate) fn new(workspace: Workspace) -> Result<Self, WorkspaceError> {
        let path = workspace.begin_run()?;
        let began = changed(&workspace.path().join(path.as_str()));
        Ok(Self { workspace, path, began })
    }

    pub(crate) fn path(&self) -> &WorkspacePath {
        &self.path
    }

    pub(crate) fn began(&self) -> Option<(i64, i64)> {
        self.began
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        // Only an empty folder can be removed so, and no link.
        let _ = std::fs::remove_dir(self.workspace.path().join(self.path.as_str()));
    }
}
