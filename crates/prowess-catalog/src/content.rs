//! Bytes by their digest: what a session has seen can be given again.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use prowess_format::Digest;

/// Why content could not be kept or given.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContentError {
    /// What is stored is not what its name says. It has been removed.
    #[error("stored content does not match {0}; it was removed")]
    Corrupt(Digest),
    /// The system refuses.
    #[error("content cannot be stored or read at {path}: {cause}")]
    Io {
        /// Where.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// The store is not there, or refuses.
    #[error("the content store failed: {0}")]
    Unavailable(String),
}

impl ContentError {
    /// The stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Corrupt(_) => "content_corrupt",
            Self::Io { .. } => "io",
            Self::Unavailable(_) => "store_unavailable",
        }
    }
}

/// A store of bytes under their sha256.
pub trait ContentStore: Send + Sync + 'static {
    /// Keeps bytes and returns what they are called. Keeping the same bytes again changes nothing.
    fn put(&self, bytes: &[u8]) -> Result<Digest, ContentError>;

    /// The bytes, verified; `None` if they are not here.
    fn get(&self, digest: &Digest) -> Result<Option<Arc<[u8]>>, ContentError>;

    /// Removes everything that is not referenced any more, and says how many.
    fn collect_garbage(&self, referenced: &HashSet<Digest>) -> Result<usize, ContentError>;

    /// Whether calls return at once, so that no thread is needed for them.
    fn is_immediate(&self) -> bool {
        false
    }
}

/// Content in memory.
#[derive(Debug, Default)]
pub struct MemoryContent {
    entries: RwLock<HashMap<Digest, Arc<[u8]>>>,
}

impl ContentStore for MemoryContent {
    fn is_immediate(&self) -> bool {
        true
    }

    fn put(&self, bytes: &[u8]) -> Result<Digest, ContentError> {
        let digest = Digest::of(bytes);
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.entry(digest).or_insert_with(|| bytes.into());
        Ok(digest)
    }

    fn get(&self, digest: &Digest) -> Result<Option<Arc<[u8]>>, ContentError> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        Ok(entries.get(digest).cloned())
    }

    fn collect_garbage(&self, referenced: &HashSet<Digest>) -> Result<usize, ContentError> {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let before = entries.len();
        entries.retain(|digest, _| referenced.contains(digest));
        Ok(before - entries.len())
    }
}

/// How the names of files begin that are not whole yet.
const UNFINISHED: &str = ".new-";

/// Content in files: `content/ab/cdef…`, each written beside its place and moved there.
#[derive(Clone, Debug)]
pub struct FileContent {
    root: PathBuf,
    grace: Duration,
}

/// Younger content is not garbage: whoever has put it may not have said yet who needs it.
const GRACE: Duration = Duration::from_secs(600);

impl FileContent {
    /// Content below `home`, which is made when it is needed.
    pub fn new(home: impl Into<PathBuf>) -> Self {
        Self { root: home.into().join("content"), grace: GRACE }
    }

    /// How long content is spared by [`ContentStore::collect_garbage`] after it was put.
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        let hex = digest.hex();
        let (shelf, rest) = hex.split_at(2);
        self.root.join(shelf).join(rest)
    }

    fn is_old(&self, file: &fs::DirEntry) -> bool {
        let modified = file.metadata().and_then(|metadata| metadata.modified());
        let age = modified.ok().and_then(|time| SystemTime::now().duration_since(time).ok());
        age.is_some_and(|age| age >= self.grace)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let shelf = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(shelf)?;
        let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(shelf)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }
}

impl ContentStore for FileContent {
    fn put(&self, bytes: &[u8]) -> Result<Digest, ContentError> {
        let digest = Digest::of(bytes);
        let path = self.path(&digest);
        // What is there counts only if it is right.
        let written = match self.get(&digest) {
            // Put again, it is young again.
            Ok(Some(_)) => fs::File::options()
                .append(true)
                .open(&path)
                .and_then(|file| file.set_modified(SystemTime::now()))
                .or_else(|_| self.write(&path, bytes)),
            _ => self.write(&path, bytes),
        };
        written.map_err(|cause| ContentError::Io { path, cause })?;
        Ok(digest)
    }

    fn get(&self, digest: &Digest) -> Result<Option<Arc<[u8]>>, ContentError> {
        let path = self.path(digest);
        match fs::read(&path) {
            Ok(bytes) if Digest::of(&bytes) == *digest => Ok(Some(bytes.into())),
            Ok(_) => {
                // Nobody may be given it; somebody can put it again.
                let _ = fs::remove_file(&path);
                Err(ContentError::Corrupt(*digest))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(ContentError::Io { path, cause }),
        }
    }

    fn collect_garbage(&self, referenced: &HashSet<Digest>) -> Result<usize, ContentError> {
        let failed = |path: &Path, cause| ContentError::Io { path: path.to_owned(), cause };
        let mut removed = 0;
        let shelves = match fs::read_dir(&self.root) {
            Ok(shelves) => shelves,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(cause) => return Err(failed(&self.root, cause)),
        };
        for shelf in shelves.filter_map(Result::ok) {
            let Ok(files) = fs::read_dir(shelf.path()) else { continue };
            for file in files.filter_map(Result::ok) {
                let (shelf, name) = (shelf.file_name(), file.file_name());
                let hex = format!("{}{}", shelf.to_string_lossy(), name.to_string_lossy());
                // What a crash left behind is garbage too; other people's files are not ours.
                let is_leftover = name.to_string_lossy().starts_with(UNFINISHED);
                let is_unneeded = match hex.parse::<Digest>() {
                    Ok(digest) => !referenced.contains(&digest),
                    Err(_) => is_leftover,
                };
                if is_unneeded && self.is_old(&file) {
                    let path = file.path();
                    match fs::remove_file(&path) {
                        Ok(()) => removed += usize::from(!is_leftover),
                        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                        Err(cause) => return Err(failed(&path, cause)),
                    }
                }
            }
        }
        Ok(removed)
    }
}
