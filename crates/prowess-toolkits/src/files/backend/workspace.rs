//! Files in the workspace of a session.

use prowess_workspace::{
    CollectedFile, Entries, Expected, Workspace, WorkspaceError, WorkspacePath, Wrote,
};

use super::local::OwnedExpected;
use super::{Backend, BackendFuture, FileError, blocking};

/// The workspace of a session: skills are read, `work/` and `out/` are written too.
pub(crate) struct WorkspaceBackend {
    workspace: Workspace,
}

impl WorkspaceBackend {
    pub(crate) fn new(workspace: Workspace) -> Self {
        Self { workspace }
    }

    async fn blocking<T: Send + 'static>(
        &self,
        path: &WorkspacePath,
        work: impl FnOnce(&Workspace, &WorkspacePath) -> Result<T, WorkspaceError> + Send + 'static,
    ) -> Result<T, FileError> {
        let (workspace, place) = (self.workspace.clone(), path.clone());
        blocking(path, move || work(&workspace, &place)).await
    }
}

impl Backend for WorkspaceBackend {
    fn list<'a>(&'a self, folder: &'a WorkspacePath, most: u64) -> BackendFuture<'a, Entries> {
        Box::pin(self.blocking(folder, move |workspace, path| {
            let listed = workspace.list(path)?;
            let mut first = Entries::first(listed.entries, most);
            first.omitted += listed.omitted;
            Ok(first)
        }))
    }

    fn read<'a>(&'a self, file: &'a WorkspacePath, limit: u64) -> BackendFuture<'a, CollectedFile> {
        Box::pin(self.blocking(file, move |workspace, path| workspace.read(path, limit)))
    }

    fn write<'a>(
        &'a self,
        file: &'a WorkspacePath,
        bytes: &'a [u8],
        expected: Expected<'a>,
    ) -> BackendFuture<'a, Wrote> {
        let (bytes, expected) = (bytes.to_vec(), OwnedExpected::from(expected));
        Box::pin(self.blocking(file, move |workspace, path| {
            // The folders of runs belong to their commands.
            if path.names().next() == Some("runs") {
                return Err(WorkspaceError::NotWritable { path: path.clone() });
            }
            workspace.put_if(path, &bytes, expected.get())
        }))
    }
}
