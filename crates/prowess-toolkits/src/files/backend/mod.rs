//! What files are kept in.

mod composite;
mod error;
mod local;
mod memory;
mod path_glob;
mod search;
mod shell;
mod walk;
mod workspace;

use std::pin::Pin;
use std::sync::Arc;

use prowess_workspace::{CollectedFile, Entries, Expected, WorkspaceError, WorkspacePath, Wrote};

pub use composite::CompositeBackend;
pub use error::FileError;
pub(crate) use error::path_of;
pub use local::LocalBackend;
pub use memory::MemoryBackend;
pub use path_glob::PathGlob;
pub use search::{
    GlobQuery, Globbed, GrepFile, GrepLine, GrepMode, GrepQuery, Grepped, SearchCut, SearchLimits,
    Skipped,
};
pub use shell::{CommandLimits, CommandOutcome, Shell};
pub(crate) use workspace::WorkspaceBackend;

/// A future that a backend returns.
pub type BackendFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, FileError>> + Send + 'a>>;

/// Something that keeps files: a folder of this machine, memory, a store of one's own.
///
/// Three methods are enough; what can search or run commands by itself says so. Paths are relative
/// to the backend's root and never lead out of it. [`crate::FilesToolkit::on`] makes tools of a
/// backend, [`crate::BackendSource`] a source of skills.
///
/// ```
/// use prowess_toolkits::{Backend, Expected, MemoryBackend};
/// use prowess_workspace::WorkspacePath;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let backend = MemoryBackend::new();
/// let path = WorkspacePath::parse("notes/a.md").unwrap();
/// backend.write(&path, b"Rain.", Expected::Nothing).await?;
/// // Whoever changes a file says what it was: nobody's change is lost.
/// backend.write(&path, b"Sun.", Expected::Content(b"Rain.")).await?;
/// let late = backend.write(&path, b"Snow.", Expected::Content(b"Rain.")).await;
/// assert_eq!(late.unwrap_err().code(), "file_changed");
/// # Ok::<(), prowess_toolkits::FileError>(())
/// # }).unwrap();
/// ```
pub trait Backend: Send + Sync + 'static {
    /// What is in a folder: the first entries in the order of names, and how many more there are.
    fn list<'a>(&'a self, folder: &'a WorkspacePath, most: u64) -> BackendFuture<'a, Entries>;

    /// A file, up to so many bytes from its beginning.
    fn read<'a>(&'a self, file: &'a WorkspacePath, limit: u64) -> BackendFuture<'a, CollectedFile>;

    /// Writes a file, as a whole or not at all, if what is there is what is expected: comparing and
    /// writing are one step. Folders on the way are made.
    fn write<'a>(
        &'a self,
        file: &'a WorkspacePath,
        bytes: &'a [u8],
        expected: Expected<'a>,
    ) -> BackendFuture<'a, Wrote>;

    /// The files below a folder whose paths match. By default, what is listed is walked.
    fn glob<'a>(&'a self, query: &'a GlobQuery) -> BackendFuture<'a, Globbed> {
        Box::pin(walk::glob(self, query))
    }

    /// The files below a folder that hold a text. By default, what is listed is read.
    fn grep<'a>(&'a self, query: &'a GrepQuery) -> BackendFuture<'a, Grepped> {
        Box::pin(walk::grep(self, query))
    }

    /// What runs commands where the files are, if that is possible.
    fn shell(&self) -> Option<&dyn Shell> {
        None
    }
}

impl<B: Backend + ?Sized> Backend for Arc<B> {
    fn list<'a>(&'a self, folder: &'a WorkspacePath, most: u64) -> BackendFuture<'a, Entries> {
        (**self).list(folder, most)
    }

    fn read<'a>(&'a self, file: &'a WorkspacePath, limit: u64) -> BackendFuture<'a, CollectedFile> {
        (**self).read(file, limit)
    }

    fn write<'a>(
        &'a self,
        file: &'a WorkspacePath,
        bytes: &'a [u8],
        expected: Expected<'a>,
    ) -> BackendFuture<'a, Wrote> {
        (**self).write(file, bytes, expected)
    }

    fn glob<'a>(&'a self, query: &'a GlobQuery) -> BackendFuture<'a, Globbed> {
        (**self).glob(query)
    }

    fn grep<'a>(&'a self, query: &'a GrepQuery) -> BackendFuture<'a, Grepped> {
        (**self).grep(query)
    }

    fn shell(&self) -> Option<&dyn Shell> {
        (**self).shell()
    }
}

/// Does something with a path that blocks where blocking is allowed.
async fn blocking<T: Send + 'static>(
    path: &WorkspacePath,
    work: impl FnOnce() -> Result<T, WorkspaceError> + Send + 'static,
) -> Result<T, FileError> {
    // The span of the call is also that of what is done for it.
    let span = tracing::Span::current();
    match tokio::task::spawn_blocking(move || span.in_scope(work)).await {
        Ok(done) => done.map_err(|error| FileError::of_workspace(error, path)),
        Err(broken) => {
            let cause = std::io::Error::other(broken);
            Err(FileError::Io { path: path.to_string(), cause })
        }
    }
}
