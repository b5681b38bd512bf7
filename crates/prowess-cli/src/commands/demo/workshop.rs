//! Where the demo runs commands.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use prowess_runtime::SessionKey;
use prowess_toolkits::{ExecToolkit, InvalidSqlSettings, SqlSettings, SqlToolkit, XlsxToolkit};
use prowess_workspace::{LocalExecutor, WorkspaceId, Workspaces};

/// A folder for the workspace of one session; both go with this.
pub(super) struct Workshop {
    workspaces: Workspaces,
    id: WorkspaceId,
    /// Goes last, when the workspace is gone.
    folder: tempfile::TempDir,
}

impl Workshop {
    pub(super) fn new(session: &SessionKey) -> std::io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("prowess-demo-").tempdir()?;
        // Commands of root run as somebody else, who must be able to go there.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o711))?;
        Ok(Self {
            workspaces: Workspaces::new(folder.path().join("workspaces")),
            id: WorkspaceId::new(session.app(), session.user(), session.session()),
            folder,
        })
    }

    /// What runs commands here.
    pub(super) fn exec(&self, executor: &LocalExecutor) -> Arc<ExecToolkit> {
        Arc::new(ExecToolkit::new(self.workspaces.clone(), Arc::new(executor.clone())))
    }

    /// What asks the demo database, which is made here.
    pub(super) fn sql(&self) -> Result<Arc<SqlToolkit>, InvalidSqlSettings> {
        // Without any variable: the customers of the demo, and nobody else's.
        let demo = SqlSettings::default().with_environment(|_| None)?;
        Ok(Arc::new(SqlToolkit::new(demo, self.folder.path())?))
    }

    /// What makes workbooks here.
    pub(super) fn sheets(&self) -> Arc<XlsxToolkit> {
        Arc::new(XlsxToolkit::new(self.workspaces.clone()))
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        // Staged skills are read-only: the folder alone could not take them with it. What cannot be
        // removed stays in the folder for temporary files.
        let _ = self.workspaces.remove(&self.id);
    }
}
