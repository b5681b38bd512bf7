//! Artifacts in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::header::{DEFAULT_MAX_BYTES, check_size};
use super::name::{check_name, is_of_user};
use super::{Artifact, ArtifactError, ArtifactFuture, ArtifactScope, ArtifactStore};

/// Artifacts in memory: for tests of hosts, and for hosts without a disk.
#[derive(Debug)]
pub struct MemoryArtifacts {
    entries: Mutex<BTreeMap<Key, Vec<Entry>>>,
    max_bytes: u64,
}

/// App, user, session if it is the session's, name.
type Key = (String, String, Option<String>, String);

#[derive(Debug)]
struct Entry {
    mime_type: String,
    bytes: Arc<[u8]>,
}

impl Default for MemoryArtifacts {
    fn default() -> Self {
        Self { entries: Mutex::default(), max_bytes: DEFAULT_MAX_BYTES }
    }
}

impl MemoryArtifacts {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// The most bytes of one artifact, `max_artifact_bytes` (64 MiB).
    pub fn with_max_bytes(self, max_bytes: u64) -> Self {
        Self { max_bytes, ..self }
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<Key, Vec<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(scope: &ArtifactScope, name: &str) -> Result<Key, ArtifactError> {
    check_name(name)?;
    let session = (!is_of_user(name)).then(|| scope.session.clone());
    Ok((scope.app.clone(), scope.user.clone(), session, name.to_owned()))
}

impl ArtifactStore for MemoryArtifacts {
    fn save<'a>(
        &'a self,
        scope: &'a ArtifactScope,
        name: &'a str,
        mime_type: &'a str,
        bytes: Arc<[u8]>,
    ) -> ArtifactFuture<'a, u64> {
        Box::pin(async move {
            let key = key(scope, name)?;
            check_size(name, bytes.len() as u64, self.max_bytes)?;
            let mut entries = self.entries();
            let versions = entries.entry(key).or_default();
            versions.push(Entry { mime_type: mime_type.to_owned(), bytes });
            Ok(versions.len() as u64 - 1)
        })
    }

    fn load<'a>(
        &'a self,
        scope: &'a ArtifactScope,
        name: &'a str,
        version: Option<u64>,
    ) -> ArtifactFuture<'a, Option<Artifact>> {
        Box::pin(async move {
            let key = key(scope, name)?;
            let entries = self.entries();
            let Some(versions) = entries.get(&key) else { return Ok(None) };
            let version = version.unwrap_or(versions.len() as u64 - 1);
            let entry = usize::try_from(version).ok().and_then(|at| versions.get(at));
            Ok(entry.map(|entry| Artifact {
                name: name.to_owned(),
                version,
                mime_type: entry.mime_type.clone(),
                bytes: entry.bytes.clone(),
            }))
        })
    }

    fn list<'a>(&'a self, scope: &'a ArtifactScope) -> ArtifactFuture<'a, Vec<String>> {
        Box::pin(async move {
            let entries = self.entries();
            let seen = entries.keys().filter(|(app, user, session, _)| {
                *app == scope.app
                    && *user == scope.user
                    && session.as_ref().is_none_or(|session| *session == scope.session)
            });
            let mut names: Vec<_> = seen.map(|(_, _, _, name)| name.clone()).collect();
            names.sort_unstable();
            Ok(names)
        })
    }

    fn versions<'a>(
        &'a self,
        scope: &'a ArtifactScope,
        name: &'a str,
    ) -> ArtifactFuture<'a, Vec<u64>> {
        Box::pin(async move {
            let key = key(scope, name)?;
            let count = self.entries().get(&key).map_or(0, Vec::len);
            Ok((0..count as u64).collect())
        })
    }

    fn delete<'a>(&'a self, scope: &'a ArtifactScope, name: &'a str) -> ArtifactFuture<'a, bool> {
        Box::pin(async move {
            let key = key(scope, name)?;
            Ok(self.entries().remove(&key).is_some())
        })
    }
}
