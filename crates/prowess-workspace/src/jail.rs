//! A folder of this machine in which others work, and out of which nothing leads.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FlockOperation, RenameFlags, flock, renameat, renameat_with, unlinkat};
use rustix::io::Errno;
use uuid::Uuid;

use crate::beneath::{Folder, Stamp, give};
use crate::collect::CollectedFile;
use crate::path::WorkspacePath;
use crate::workspace::{
    Entries, WorkspaceError, WorkspaceOwner, create, entries_of, failed, read_regular, split,
};

/// What must be in a place for something to be written there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected<'a> {
    /// Whatever is there is replaced.
    Anything,
    /// Nothing may be there.
    Nothing,
    /// A file with exactly these bytes.
    Content(&'a [u8]),
}

/// Whether a file was there before it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrote {
    /// It was not.
    Created,
    /// It was, and is replaced.
    Replaced,
}

/// A folder of this machine, below which files are listed, read and written. Every path is opened
/// beneath it and no link is followed, whatever happens to the tree meanwhile. All methods block, but
/// never on a pipe or a device.
///
/// ```
/// use prowess_workspace::{Expected, Jail, WorkspacePath};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let jail = Jail::open(folder.path())?;
/// let path = WorkspacePath::parse("notes/today.md")?;
/// jail.write(&path, b"Rain.", Expected::Nothing)?;
/// assert_eq!(jail.read(&path, 1024)?.bytes, b"Rain.");
/// assert_eq!(jail.write(&path, b"", Expected::Nothing).unwrap_err().code(), "already_exists");
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Jail {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    folder: Folder,
    /// Whom files are given that are made here, if this process may give them away.
    owner: Option<WorkspaceOwner>,
    /// One writer at a time in this process; see [`Guard`] for others.
    writing: Mutex<()>,
}

/// Files that are not whole yet begin so, and are not listed.
const DRAFT: &str = ".prowess-draft-";

/// So long another process is waited for that writes in the same folder.
const WAIT: Duration = Duration::from_secs(5);

impl Jail {
    /// The folder at this path, which must be there. Links on the way to it are followed once.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = std::fs::canonicalize(path)?;
        let folder = Folder::open(&path)?;
        let stamp = Stamp::of(&folder)?;
        let is_root = rustix::process::geteuid().is_root();
        let owner = is_root.then_some(WorkspaceOwner { uid: stamp.uid, gid: stamp.gid });
        Ok(Self { inner: Arc::new(Inner { path, folder, owner, writing: Mutex::new(()) }) })
    }

    /// Where it is: absolute, without links.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Lists a folder: the first entries in the order of names, and how many more there are.
    pub fn list(&self, path: &WorkspacePath, most: u64) -> Result<Entries, WorkspaceError> {
        let failed = |error| failed(path, error);
        let folder = self.inner.folder.open_folder(path).map_err(failed)?;
        let is_draft =
            |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(DRAFT.as_bytes());
        entries_of(&folder, most, is_draft, |_| false).map_err(failed)
    }

    /// Reads a regular file with this one name, up to so many bytes.
    pub fn read(&self, path: &WorkspacePath, limit: u64) -> Result<CollectedFile, WorkspaceError> {
        read_regular(&self.inner.folder, path, path, limit)
    }

    /// Writes a file if what is there is what was expected; folders on the way are made. The file
    /// is there as a whole or not at all. A file that is replaced keeps its permissions; folders,
    /// links and special files are not replaced.
    ///
    /// Between writers of this kind, in whichever process, nothing is lost: what was compared is
    /// what is replaced.
    pub fn write(
        &self,
        path: &WorkspacePath,
        bytes: &[u8],
        expected: Expected<'_>,
    ) -> Result<Wrote, WorkspaceError> {
        let failed = |error| failed(path, error);
        let (parent, name) = split(path);
        if name.is_empty() {
            return Err(WorkspaceError::FolderInTheWay { path: path.clone() });
        }
        let _alone = self.inner.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let _guard = Guard::of(&self.inner.folder).map_err(failed)?;
        let mode = self.check(path, expected)?;
        let folder = self.inner.folder.make_all(&parent, self.inner.owner).map_err(failed)?;
        let draft = Draft::new(&folder).map_err(failed)?;
        draft.fill(bytes, mode.unwrap_or(0o644), self.inner.owner).map_err(failed)?;
        let settled = match expected {
            Expected::Nothing => {
                match renameat_with(&folder, &draft.name, &folder, name, RenameFlags::NOREPLACE) {
                    Err(Errno::INVAL | Errno::NOSYS) => {
                        renameat(&folder, &draft.name, &folder, name)
                    }
                    done => done,
                }
            }
            _ => renameat(&folder, &draft.name, &folder, name),
        };
        settled.map_err(|error| match error {
            Errno::EXIST => WorkspaceError::Exists { path: path.clone() },
            Errno::ISDIR | Errno::NOTEMPTY => WorkspaceError::FolderInTheWay { path: path.clone() },
            error => failed(error.into()),
        })?;
        Ok(if mode.is_some() { Wrote::Replaced } else { Wrote::Created })
    }

    /// Whether a place holds what is expected; the permissions of the file there, if there is one.
    fn check(
        &self,
        path: &WorkspacePath,
        expected: Expected<'_>,
    ) -> Result<Option<u32>, WorkspaceError> {
        let (parent, name) = split(path);
        let found = self.inner.folder.open_folder(&parent);
        let stamp = match found.and_then(|folder| folder.look(name.as_ref())) {
            Ok(stamp) => stamp,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return match expected {
                    Expected::Content(_) => {
                        Err(WorkspaceError::NotFound { path: path.to_string() })
                    }
                    _ => Ok(None),
                };
            }
            Err(error) => return Err(failed(path, error)),
        };
        if stamp.is_folder() {
            return Err(WorkspaceError::FolderInTheWay { path: path.clone() });
        }
        if stamp.is_link() {
            return Err(WorkspaceError::Link { path: path.to_string() });
        }
        if !stamp.is_file() {
            return Err(WorkspaceError::NotAFile { path: path.to_string(), what: stamp.what() });
        }
        check_content(expected, path, |limit| self.read(path, limit))?;
        Ok(Some(stamp.mode & 0o777))
    }
}

/// Whether a file that is there is the one that is expected.
pub(crate) fn check_content(
    expected: Expected<'_>,
    path: &WorkspacePath,
    read: impl FnOnce(u64) -> Result<CollectedFile, WorkspaceError>,
) -> Result<(), WorkspaceError> {
    match expected {
        Expected::Anything => Ok(()),
        Expected::Nothing => Err(WorkspaceError::Exists { path: path.clone() }),
        Expected::Content(bytes) => {
            // One byte more shows that it has grown.
            let found = read(bytes.len() as u64 + 1)?;
            match found.bytes == bytes {
                true => Ok(()),
                false => Err(WorkspaceError::Changed { path: path.clone() }),
            }
        }
    }
}

/// Keeps other processes from writing in a folder. Where a file system has no locks, nothing does.
pub(crate) struct Guard(Folder);

impl Guard {
    pub(crate) fn of(folder: &Folder) -> io::Result<Self> {
        // A lock belongs to what was opened, so that each writer opens the folder for itself.
        let own = folder.open_folder(&WorkspacePath::root())?;
        let began = Instant::now();
        loop {
            match flock(&own, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) | Err(Errno::BADF | Errno::NOLCK | Errno::NOSYS | Errno::OPNOTSUPP) => {
                    return Ok(Self(own));
                }
                // Whoever can open the folder can lock it: nobody is waited for without an end.
                Err(Errno::WOULDBLOCK) if began.elapsed() > WAIT => {
                    let cause = "somebody else has locked the folder";
                    return Err(io::Error::new(io::ErrorKind::TimedOut, cause));
                }
                Err(Errno::WOULDBLOCK) => std::thread::sleep(Duration::from_millis(1)),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Closing it is not enough: a process that is being started may still have a copy.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// A file that is not whole yet, in the folder that it is for.
struct Draft<'a> {
    folder: &'a Folder,
    name: String,
    file: File,
}

impl<'a> Draft<'a> {
    fn new(folder: &'a Folder) -> io::Result<Self> {
        let name = format!("{DRAFT}{}", Uuid::now_v7().simple());
        let file = File::from(create(folder, &name, 0o600)?);
        Ok(Self { folder, name, file })
    }

    fn fill(&self, bytes: &[u8], mode: u32, owner: Option<WorkspaceOwner>) -> io::Result<()> {
        (&self.file).write_all(bytes)?;
        give(&self.file, mode, owner)
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        // Once it is in its place, nothing has this name.
        let _ = unlinkat(self.folder, &self.name, AtFlags::empty());
    }
}
