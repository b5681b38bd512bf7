//! Artifacts: named, versioned outputs that outlive a workspace.

mod error;
mod file;
mod header;
mod memory;
mod name;
#[cfg(feature = "s3")]
mod s3;

use std::fs::File;
use std::io::{self, Read};
use std::pin::Pin;
use std::sync::Arc;

pub use error::{ArtifactError, StoreTrouble};
pub use file::FileArtifacts;
pub use memory::MemoryArtifacts;
pub use name::ArtifactRef;
#[cfg(feature = "s3")]
pub use s3::{InvalidS3Settings, S3Artifacts, S3Credentials, S3Settings};

/// A future that a store returns.
pub type ArtifactFuture<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, ArtifactError>> + Send + 'a>>;

/// Whose artifacts: those of one session, and those of its user.
///
/// Names that begin with `user:` are the user's and seen from all of the user's sessions; all
/// others are the session's.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArtifactScope {
    /// The application.
    pub app: String,
    /// Its user.
    pub user: String,
    /// The user's session.
    pub session: String,
}

impl ArtifactScope {
    /// The artifacts that a session sees.
    pub fn new(
        app: impl Into<String>,
        user: impl Into<String>,
        session: impl Into<String>,
    ) -> Self {
        Self { app: app.into(), user: user.into(), session: session.into() }
    }
}

/// One version of an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Artifact {
    /// Its name.
    pub name: String,
    /// Which version.
    pub version: u64,
    /// What it is.
    pub mime_type: String,
    /// What it holds.
    pub bytes: Arc<[u8]>,
}

/// A store of artifacts.
///
/// Versions of a name count 0, 1, 2 … in the order in which they were saved; a version that was
/// acknowledged is never changed, and is there until the name is deleted.
pub trait ArtifactStore: Send + Sync + 'static {
    /// Keeps bytes as the next version of a name, and returns its number once they are safe.
    fn save<'a>(
        &'a self,
        scope: &'a ArtifactScope,
        name: &'a str,
        mime_type: &'a str,
        bytes: Arc<[u8]>,
    ) -> ArtifactFuture<'a, u64>;

    /// The same for what is in a file, from where it is read. A store that can keeps it without
    /// holding all of it in memory.
    fn save_file<'a>(
        &'a self,
        scope: &'a ArtifactScope,
        name: &'a str,
        mime_type: &'a str,
        mut file: File,
    ) -> ArtifactFuture<'a, u64> {
        Box::pin(async move {
            let read = tokio::task::spawn_blocking(move || {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes).map(|_| bytes)
            });
            let failed = || ArtifactError::io(format!("save the artifact '{name}'"));
            let bytes = read.await.map_err(io::Error::other).and_then(|bytes| bytes);
            let bytes: Arc<[u8]> = bytes.map_err(failed())?.into();
            self.save(scope, name, mime_type, bytes).await
        })
    }

    /// One version, or the newest; `None` if there is none.
    fn load<'a>(
        &'a self,
        scope: &'a ArtifactScope,
        name: &'a str,
        version: Option<u64>,
    ) -> ArtifactFuture<'a, Option<Artifact>>;

    /// The names that the scope sees, in order.
    fn list<'a>(&'a self, scope: &'a ArtifactScope) -> ArtifactFuture<'a, Vec<String>>;

    /// The versions of a name, in order.
    fn versions<'a>(
        &'a self,
        scope: &'a ArtifactScope,
        name: &'a str,
    ) -> ArtifactFuture<'a, Vec<u64>>;

    /// Removes all versions of a name, and says whether there were any.
    fn delete<'a>(&'a self, scope: &'a ArtifactScope, name: &'a str) -> ArtifactFuture<'a, bool>;
}
