//! What was fetched, by content.
//!
//! ```text
//! trees/<digest>.<kind>/files/…     never changed once they are there
//!                       manifest…   what they hold
//!                       lock        held by whoever uses the tree
//! sources/<digest>.json             which tree a source is
//! .new-…                            not whole yet; held by whoever makes it
//! lock                              held alone by whoever removes something
//! ```
//!
//! A tree is made beside its place and moved there; a source is switched by moving one small file.
//! A crash at any moment leaves the old or the new version.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use prowess_format::Digest;
use rustix::fs::{FlockOperation, flock, syncfs};
use sha2::{Digest as _, Sha256};

use super::error::RemoteError;
use super::location::Location;
use super::locks::{is_unused, lock, lock_within, sync_folder};
use super::manifest::Manifest;
use super::record::Record;

/// How the names of folders and files begin that are not whole yet, or not needed any more.
const UNFINISHED: &str = ".new-";

/// Who cleans up, or looks at what is there, is done sooner.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug)]
enum Hold {
    Shared,
    Alone,
}

/// A record that is used is touched, at most once in so long.
const TOUCH: Duration = Duration::from_secs(86_400);

/// No record takes longer to be written.
const SLOWEST_WRITE: Duration = Duration::from_secs(60);

/// Keeps what was fetched. Several processes may share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteCache {
    root: PathBuf,
}

/// A tree that is used: nobody removes it meanwhile.
#[derive(Debug)]
pub(super) struct OpenTree {
    pub(super) id: String,
    /// Where its files are.
    pub(super) files: PathBuf,
    pub(super) manifest: Manifest,
    _lock: File,
}

impl OpenTree {
    /// Whether every file still holds what it held. Reads everything.
    pub(super) fn is_whole(&self) -> bool {
        let Some(mut files) = self.manifest.files() else { return false };
        files.all(|(path, digest)| {
            let content = File::open(self.files.join(path)).and_then(digest_of);
            content.is_ok_and(|actual| actual == digest)
        })
    }
}

/// The digest of what can be read.
pub(super) fn digest_of(mut content: impl Read) -> io::Result<Digest> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match content.read(&mut buffer)? {
            0 => return Ok(Digest::from_bytes(hasher.finalize().into())),
            read => hasher.update(&buffer[..read]),
        }
    }
}

/// A tree that is being made. It is removed unless it is installed.
#[derive(Debug)]
pub(super) struct NewTree {
    folder: PathBuf,
    lock: Option<File>,
}

impl Drop for NewTree {
    fn drop(&mut self) {
        if self.lock.take().is_some() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

impl NewTree {
    pub(super) fn files(&self) -> PathBuf {
        self.folder.join("files")
    }

    /// Where what is fetched is put until it is unpacked.
    pub(super) fn payload(&self) -> PathBuf {
        self.folder.join("payload")
    }
}

impl RemoteCache {
    /// A cache in this folder, which is made when it is needed.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn sources(&self) -> PathBuf {
        self.root.join("sources")
    }

    fn trees(&self) -> PathBuf {
        self.root.join("trees")
    }

    fn record_path(&self, location: &Location) -> PathBuf {
        let key = Digest::of(location.key().as_bytes()).hex();
        self.sources().join(format!("{key}.json"))
    }

    /// Makes the folders, and makes sure that nobody else can put something there.
    fn prepare(&self) -> Result<(), RemoteError> {
        for folder in [self.root.clone(), self.sources(), self.trees()] {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
            made.map_err(RemoteError::io(&folder))?;
        }
        self.is_ours()
    }

    fn is_ours(&self) -> Result<(), RemoteError> {
        let metadata = fs::metadata(&self.root).map_err(RemoteError::io(&self.root))?;
        let owner = metadata.uid();
        let is_ours = owner == 0 || owner == rustix::process::geteuid().as_raw();
        match is_ours && metadata.mode() & 0o002 == 0 {
            true => Ok(()),
            false => Err(RemoteError::CacheOfOthers { path: self.root.clone() }),
        }
    }

    /// Holds off whoever removes something, or everybody else.
    fn hold(&self, how: Hold) -> Result<File, RemoteError> {
        let path = self.root.join("lock");
        let operation = match how {
            Hold::Shared => FlockOperation::NonBlockingLockShared,
            Hold::Alone => FlockOperation::NonBlockingLockExclusive,
        };
        match lock_within(&path, operation, PATIENCE) {
            Ok(Some(held)) => Ok(held),
            Ok(None) => Err(RemoteError::Io { path, cause: io::ErrorKind::ResourceBusy.into() }),
            Err(cause) => Err(RemoteError::Io { path, cause }),
        }
    }

    /// What is known of a source, and its tree, if they are there and whole.
    pub(super) fn open(
        &self,
        location: &Location,
    ) -> Result<Option<(Record, OpenTree)>, RemoteError> {
        let path = self.record_path(location);
        if !path.exists() {
            return Ok(None);
        }
        self.is_ours()?;
        let _nothing_is_removed = self.hold(Hold::Shared)?;
        let Some(record) = Record::read(&path, location) else { return Ok(None) };
        let Some(tree) = self.open_tree(&record.tree, record.manifest) else { return Ok(None) };
        // Whoever cleans up sees that it is needed.
        if age_of(&path).is_some_and(|age| age > TOUCH) {
            let touched = File::options().append(true).open(&path);
            let _ = touched.and_then(|file| file.set_modified(SystemTime::now()));
        }
        Ok(Some((record, tree)))
    }

    /// A tree, if it is whole.
    fn open_tree(&self, id: &str, manifest: Digest) -> Option<OpenTree> {
        let tree = self.open_any(id)?;
        (tree.manifest.digest() == manifest).then_some(tree)
    }

    fn open_any(&self, id: &str) -> Option<OpenTree> {
        // A name, not a path.
        if id.contains('/') || id.starts_with('.') {
            return None;
        }
        let folder = self.trees().join(id);
        let held = File::open(folder.join("lock")).ok()?;
        flock(&held, FlockOperation::LockShared).ok()?;
        let manifest = Manifest::read(&folder)?;
        Some(OpenTree { id: id.to_owned(), files: folder.join("files"), manifest, _lock: held })
    }

    /// Begins a tree.
    pub(super) fn begin(&self) -> Result<NewTree, RemoteError> {
        self.prepare()?;
        let _nothing_is_removed = self.hold(Hold::Shared)?;
        let folder = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(&self.root);
        let folder = folder.map_err(RemoteError::io(&self.root))?.keep();
        let held = lock(&folder.join("lock"), FlockOperation::LockExclusive);
        let new = NewTree { lock: Some(held.map_err(RemoteError::io(&folder))?), folder };
        let files = new.files();
        let made = DirBuilder::new().mode(0o755).create(&files);
        made.map_err(RemoteError::io(files))?;
        Ok(new)
    }

    /// The tree of this name, if somebody has made it before.
    pub(super) fn find(&self, id: &str) -> Result<Option<OpenTree>, RemoteError> {
        let _nothing_is_removed = self.hold(Hold::Shared)?;
        Ok(self.open_any(id))
    }

    /// Puts a tree in its place. If somebody else was faster, theirs is used.
    pub(super) fn install(
        &self,
        mut new: NewTree,
        id: &str,
        manifest: Manifest,
    ) -> Result<OpenTree, RemoteError> {
        let failed = |path: &Path| RemoteError::io(path.to_owned());
        let _ = fs::remove_file(new.payload());
        manifest.write(&new.folder).map_err(failed(&new.folder))?;
        // Thousands of files, one wait.
        let folder = File::open(&new.folder).map_err(failed(&new.folder))?;
        syncfs(&folder).map_err(|error| failed(&new.folder)(error.into()))?;
        let _nothing_is_removed = self.hold(Hold::Shared)?;
        let place = self.trees().join(id);
        match fs::rename(&new.folder, &place) {
            Ok(()) => {}
            Err(error) if is_occupied(&error) => {
                let theirs = self.open_tree(id, manifest.digest());
                if let Some(theirs) = theirs.filter(OpenTree::is_whole) {
                    return Ok(theirs);
                }
                // What is there is damaged: it makes room, and goes with the next clean-up.
                let aside = self.aside().map_err(failed(&self.root))?;
                fs::rename(&place, &aside).map_err(failed(&place))?;
                fs::rename(&new.folder, &place).map_err(failed(&place))?;
            }
            Err(error) => return Err(failed(&place)(error)),
        }
        let held = new.lock.take();
        sync_folder(&self.trees())?;
        let Some(held) = held else {
            return Err(failed(&place)(io::ErrorKind::NotFound.into()));
        };
        flock(&held, FlockOperation::LockShared).map_err(|error| failed(&place)(error.into()))?;
        let files = place.join("files");
        Ok(OpenTree { id: id.to_owned(), files, manifest, _lock: held })
    }

    /// A name for something that is to be removed.
    fn aside(&self) -> io::Result<PathBuf> {
        Ok(tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(&self.root)?.keep())
    }

    /// Says which tree a source is, from now on.
    pub(super) fn point(&self, location: &Location, record: &Record) -> Result<(), RemoteError> {
        let path = self.record_path(location);
        let failed = |cause| RemoteError::Io { path: path.clone(), cause };
        let text = serde_json::to_vec_pretty(record).map_err(|error| failed(error.into()))?;
        let file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(self.sources());
        let mut file = file.map_err(failed)?;
        file.write_all(&text).map_err(failed)?;
        file.as_file().sync_all().map_err(failed)?;
        file.persist(&path).map_err(|error| failed(error.error))?;
        sync_folder(&self.sources())
    }

    /// Waits until nobody else fetches the source, at most so long: who fetches at the same time
    /// does no harm, only work.
    pub(super) fn one_at_a_time(
        &self,
        location: &Location,
        patience: Duration,
    ) -> Result<Option<File>, RemoteError> {
        self.prepare()?;
        let path = self.record_path(location).with_extension("lock");
        let held = lock_within(&path, FlockOperation::NonBlockingLockExclusive, patience);
        held.map_err(RemoteError::io(path))
    }

    /// What is known of a source: when it was fetched, what it is.
    pub fn status(&self, location: &Location) -> Option<super::SourceStatus> {
        Record::read(&self.record_path(location), location).map(|record| record.status())
    }

    /// Forgets a source. Its files go too, unless another source or a running program has them.
    pub fn forget(&self, location: &Location) -> Result<(), RemoteError> {
        let path = self.record_path(location);
        match fs::remove_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(cause) => return Err(RemoteError::Io { path, cause }),
        }
        let _ = fs::remove_file(path.with_extension("lock"));
        self.collect_garbage(Duration::MAX)
    }

    /// Removes what no source is any more and nobody uses, what a crash left behind, and sources
    /// that nobody has used for so long.
    pub fn collect_garbage(&self, unused: Duration) -> Result<(), RemoteError> {
        if !self.root.exists() {
            return Ok(());
        }
        self.prepare()?;
        let mut gone = Vec::new();
        {
            let _alone = self.hold(Hold::Alone)?;
            for name in names_in(&self.sources())? {
                let file = self.sources().join(&name);
                let age = age_of(&file).unwrap_or_default();
                let is_unfinished = name.starts_with(UNFINISHED) && age > SLOWEST_WRITE;
                if is_unfinished || age > unused {
                    let _ = fs::remove_file(file);
                }
            }
            let used = self.used_trees()?;
            for name in names_in(&self.trees())? {
                let folder = self.trees().join(&name);
                if !used.contains(&name) && is_unused(&folder) {
                    let aside = self.aside().map_err(RemoteError::io(&self.root))?;
                    fs::rename(&folder, &aside).map_err(RemoteError::io(&folder))?;
                    gone.push(aside);
                }
            }
            for name in names_in(&self.root)? {
                let folder = self.root.join(&name);
                if name.starts_with(UNFINISHED) && !gone.contains(&folder) && is_unused(&folder) {
                    gone.push(folder);
                }
            }
        }
        for folder in gone {
            fs::remove_dir_all(&folder).map_err(RemoteError::io(&folder))?;
        }
        Ok(())
    }

    fn used_trees(&self) -> Result<Vec<String>, RemoteError> {
        let names = names_in(&self.sources())?.into_iter().filter(|name| name.ends_with(".json"));
        let records = names.filter_map(|name| Record::read_any(&self.sources().join(name)));
        Ok(records.map(|record| record.tree).collect())
    }
}

/// Whether a folder cannot be moved because its place is taken.
fn is_occupied(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists)
}

/// How long ago a file was written.
fn age_of(file: &Path) -> Option<Duration> {
    fs::metadata(file).and_then(|metadata| metadata.modified()).ok()?.elapsed().ok()
}

fn names_in(folder: &Path) -> Result<Vec<String>, RemoteError> {
    let entries = fs::read_dir(folder).map_err(RemoteError::io(folder))?;
    let names =
        entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    Ok(names)
}
