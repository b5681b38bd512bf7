//! Files in the workspace of a session.

use prowess_workspace::{
    CollectedFile, Entries, EntryKind, Expected, Workspace, WorkspaceError, WorkspacePath, Wrote,
};

use super::local::OwnedExpected;
use super::{
    Backend, BackendFuture, FileError, GlobQuery, Globbed, GrepQuery, Grepped, blocking, walk,
};

/// The workspace of a session: skills are read, `work/` and `out/` are written too.
pub(crate) struct WorkspaceBackend {
    workspace: Workspace,
    own_links: OwnLinks,
}

/// What the links are by which staged skills lead to `work/` and `out/`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OwnLinks {
    /// Folders, for whoever looks at a skill.
    Folders,
    /// Nothing, for whoever goes through everything and comes to these folders anyway.
    Nothing,
}

impl WorkspaceBackend {
    pub(crate) fn new(workspace: Workspace) -> Self {
        Self { workspace, own_links: OwnLinks::Folders }
    }

    /// The same, to be gone through.
    fn walked(&self) -> Self {
        Self { workspace: self.workspace.clone(), own_links: OwnLinks::Nothing }
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
        let own_links = self.own_links;
        Box::pin(self.blocking(folder, move |workspace, path| {
            let mut listed = workspace.list(path)?;
            if own_links == OwnLinks::Nothing {
                let here = workspace.path().join(path.as_str());
                listed.entries.retain(|entry| {
                    let is_folder = entry.kind == EntryKind::Folder;
                    !is_folder || !here.join(&entry.name).is_symlink()
                });
            }
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

    fn glob<'a>(&'a self, query: &'a GlobQuery) -> BackendFuture<'a, Globbed> {
        Box::pin(async move { walk::glob(&self.walked(), query).await })
    }

    fn grep<'a>(&'a self, query: &'a GrepQuery) -> BackendFuture<'a, Grepped> {
        Box::pin(async move { walk::grep(&self.walked(), query).await })
    }
}
