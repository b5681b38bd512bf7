//! Files in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prowess_workspace::{CollectedFile, Entries, Entry, Expected, WorkspacePath, Wrote};

use super::error::path_of;
use super::{Backend, BackendFuture, FileError};

/// Files in memory, for tests and for agents whose files are not kept. A clone has the same files.
///
/// ```
/// use prowess_toolkits::MemoryBackend;
///
/// let backend = MemoryBackend::new().with_file("/notes/a.md", "Rain.")?;
/// # let _ = backend;
/// # Ok::<(), prowess_toolkits::FileError>(())
/// ```
#[derive(Clone, Debug)]
pub struct MemoryBackend {
    files: Arc<Mutex<BTreeMap<WorkspacePath, Arc<[u8]>>>>,
    max_total_bytes: u64,
}

impl Default for MemoryBackend {
    fn default() -> Self {
        Self { files: Arc::default(), max_total_bytes: 256 << 20 }
    }
}

impl MemoryBackend {
    /// No files, and room for 256 MiB.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many bytes all files together may have.
    pub fn with_max_total_bytes(mut self, most: u64) -> Self {
        self.max_total_bytes = most;
        self
    }

    /// Puts a file there.
    pub fn with_file(self, path: &str, bytes: impl AsRef<[u8]>) -> Result<Self, FileError> {
        self.put(&path_of(path)?, bytes.as_ref(), Expected::Anything)?;
        Ok(self)
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<WorkspacePath, Arc<[u8]>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(
        &self,
        path: &WorkspacePath,
        bytes: &[u8],
        expected: Expected<'_>,
    ) -> Result<Wrote, FileError> {
        let mut files = self.files();
        let shown = || path.to_string();
        if leads_through_a_file(&files, path) {
            return Err(FileError::NotAFolder { path: shown() });
        }
        if is_folder(&files, path) {
            return Err(FileError::IsFolder { path: shown() });
        }
        let before = files.get(path);
        match (before, expected) {
            (Some(_), Expected::Nothing) => return Err(FileError::Exists { path: shown() }),
            (None, Expected::Content(_)) => return Err(FileError::NotFound { path: shown() }),
            (Some(before), Expected::Content(content)) if **before != *content => {
                return Err(FileError::Changed { path: shown() });
            }
            _ => {}
        }
        let freed = before.map_or(0, |before| before.len() as u64);
        let held: u64 = files.values().map(|bytes| bytes.len() as u64).sum();
        let (all, most) = (held - freed + bytes.len() as u64, self.max_total_bytes);
        if all > most {
            let limit = "max_total_bytes";
            return Err(FileError::TooLarge { path: shown(), bytes: all, limit, most });
        }
        match files.insert(path.clone(), bytes.into()) {
            Some(_) => Ok(Wrote::Replaced),
            None => Ok(Wrote::Created),
        }
    }

    fn head(&self, path: &WorkspacePath, limit: u64) -> Result<CollectedFile, FileError> {
        let files = self.files();
        let Some(bytes) = files.get(path) else { return Err(missing(&files, path)) };
        let most = usize::try_from(limit).unwrap_or(usize::MAX).min(bytes.len());
        Ok(CollectedFile::new(path.to_string(), bytes[..most].to_vec(), bytes.len() as u64))
    }

    fn entries(&self, folder: &WorkspacePath, most: u64) -> Result<Entries, FileError> {
        let files = self.files();
        if files.contains_key(folder) {
            return Err(FileError::NotAFolder { path: folder.to_string() });
        }
        if !is_folder(&files, folder) {
            return Err(missing(&files, folder));
        }
        let mut entries: BTreeMap<&str, Entry> = BTreeMap::new();
        for (path, bytes) in &*files {
            let Some(rest) = below(folder, path) else { continue };
            match rest.split_once('/') {
                Some((name, _)) => entries.insert(name, Entry::folder(name)),
                None => entries.insert(rest, Entry::file(rest, bytes.len() as u64)),
            };
        }
        Ok(Entries::first(entries.into_values().collect(), most))
    }
}

/// What is left of a path below a folder; `None` if it is not below it.
fn below<'p>(folder: &WorkspacePath, path: &'p WorkspacePath) -> Option<&'p str> {
    match folder.as_str() {
        "" => Some(path.as_str()),
        folder => path.as_str().strip_prefix(folder)?.strip_prefix('/'),
    }
}

/// Whether files are below a path; the root is a folder even if there are none.
fn is_folder(files: &BTreeMap<WorkspacePath, Arc<[u8]>>, path: &WorkspacePath) -> bool {
    path.as_str().is_empty() || files.keys().any(|file| below(path, file).is_some())
}

fn leads_through_a_file(files: &BTreeMap<WorkspacePath, Arc<[u8]>>, path: &WorkspacePath) -> bool {
    files.keys().any(|file| below(file, path).is_some())
}

/// Why there is no file at a path.
fn missing(files: &BTreeMap<WorkspacePath, Arc<[u8]>>, path: &WorkspacePath) -> FileError {
    let shown = path.to_string();
    if leads_through_a_file(files, path) {
        return FileError::NotAFolder { path: shown };
    }
    match is_folder(files, path) {
        true => FileError::IsFolder { path: shown },
        false => FileError::NotFound { path: shown },
    }
}

impl Backend for MemoryBackend {
    fn list<'a>(&'a self, folder: &'a WorkspacePath, most: u64) -> BackendFuture<'a, Entries> {
        Box::pin(std::future::ready(self.entries(folder, most)))
    }

    fn read<'a>(&'a self, file: &'a WorkspacePath, limit: u64) -> BackendFuture<'a, CollectedFile> {
        Box::pin(std::future::ready(self.head(file, limit)))
    }

    fn write<'a>(
        &'a self,
        file: &'a WorkspacePath,
        bytes: &'a [u8],
        expected: Expected<'a>,
    ) -> BackendFuture<'a, Wrote> {
        Box::pin(async move { self.put(file, bytes, expected) })
    }
}
