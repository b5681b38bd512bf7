//! Where the demo runs commands.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use prowess_runtime::SessionKey;
use prowess_toolkits::ExecToolkit;
use prowess_workspace::{LocalExecutor, WorkspaceId, Workspaces};

/// A folder for the workspace of one session; both go with this.
pub(super) struct Workshop {
    workspaces: Workspaces,
    id: WorkspaceId,
    /// Goes last, when the workspace is gone.
    _folder: tempfile::TempDir,
}

impl Workshop {
    pub(super) fn new(session: &SessionKey) -> std::io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("prowess-demo-").tempdir()?;
        // Commands of root run as somebody else, who must be able to go there.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o711))?;
        Ok(Self {
            workspaces: Workspaces::new(folder.path().join("workspaces")),
            id: WorkspaceId::new(session.app(), session.user(), session.session()),
            _folder: folder,
        })
    }

    /// The tool that runs commands here.
    pub(super) fn toolkit(&self, executor: &LocalExecutor) -> Arc<ExecToolkit> {
        Arc::new(ExecToolkit::new(self.workspaces.clone(), Arc::new(executor.clone())))
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        // Staged skills are read-only: the folder alone could not take them with it. What cannot be
        // removed stays in the folder for temporary files.
        let _ = self.workspaces.remove(&self.id);
    }
}
