//! Artifacts in files.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Artifact, ArtifactFuture, ArtifactScope, ArtifactStore};

/// Artifacts in files below a folder. Any number of processes may use the same folder.
#[derive(Clone, Debug)]
pub struct FileArtifacts {
    root: PathBuf,
    max_bytes: u64,
}

impl FileArtifacts {
    /// Artifacts below a folder, which is made when it is needed.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), max_bytes: 64 << 20 }
    }

    /// The most bytes of one artifact, `max_artifact_bytes` (64 MiB).
    pub fn with_max_bytes(mut self, max_bytes: u64) -> Self {
        self.max_bytes = max_bytes;
        self
    }
}

impl ArtifactStore for FileArtifacts {
    fn save<'a>(
        &'a self,
        _: &'a ArtifactScope,
        _: &'a str,
        _: &'a str,
        _: Arc<[u8]>,
    ) -> ArtifactFuture<'a, u64> {
        unimplemented!("{:?} {}", self.root, self.max_bytes)
    }
    fn load<'a>(
        &'a self,
        _: &'a ArtifactScope,
        _: &'a str,
        _: Option<u64>,
    ) -> ArtifactFuture<'a, Option<Artifact>> {
        unimplemented!()
    }
    fn list<'a>(&'a self, _: &'a ArtifactScope) -> ArtifactFuture<'a, Vec<String>> {
        unimplemented!()
    }
    fn versions<'a>(&'a self, _: &'a ArtifactScope, _: &'a str) -> ArtifactFuture<'a, Vec<u64>> {
        unimplemented!()
    }
    fn delete<'a>(&'a self, _: &'a ArtifactScope, _: &'a str) -> ArtifactFuture<'a, bool> {
        unimplemented!()
    }
}
