//! Opening files so that nothing outside a folder is ever opened.
//!
//! The check is part of the opening: the kernel resolves the path beneath the folder and refuses
//! `..`, absolute paths and links that leave it, whatever happens to the tree meanwhile. Where the
//! kernel cannot do that, every step is opened by itself and links are refused altogether.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, statat,
};
use rustix::io::Errno;

/// A path inside a skill: relative, without `..`, as the author of a skill would write it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct ResourcePath(String);

/// Why a text is no path inside a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidResourcePath {
    /// There is nothing.
    #[error("the path is empty")]
    Empty,
    /// It begins at the root or at a drive.
    #[error("the path is absolute; paths are relative to the skill's folder")]
    Absolute,
    /// It goes up.
    #[error("the path leaves the skill's folder")]
    Escapes,
    /// It holds a NUL, a backslash or a control character.
    #[error("the path has a character that no path of a skill has")]
    Character,
    /// It is longer than [`ResourcePath::MAX_BYTES`], or one of its names is longer than
    /// [`ResourcePath::MAX_NAME_BYTES`].
    #[error("the path is too long")]
    TooLong,
}

impl ResourcePath {
    /// The most bytes of a path.
    pub const MAX_BYTES: usize = 1024;
    /// The most bytes of one name in a path.
    pub const MAX_NAME_BYTES: usize = 255;

    /// Takes a path as it was written. `./` and double slashes are dropped; what is encoded stays
    /// encoded: `%2e%2e` is a name, not a way up.
    pub fn parse(text: &str) -> Result<Self, InvalidResourcePath> {
        if text.len() > Self::MAX_BYTES {
            return Err(InvalidResourcePath::TooLong);
        }
        if text.chars().any(|c| c.is_control() || c == '\\') {
            return Err(InvalidResourcePath::Character);
        }
        if text.starts_with('/') {
            return Err(InvalidResourcePath::Absolute);
        }
        let mut names = Vec::new();
        for name in text.split('/') {
            match name {
                "" | "." => {}
                ".." => return Err(InvalidResourcePath::Escapes),
                name if name.len() > Self::MAX_NAME_BYTES => {
                    return Err(InvalidResourcePath::TooLong);
                }
                name => names.push(name),
            }
        }
        match names.first().map(|name| name.as_bytes()) {
            None => Err(InvalidResourcePath::Empty),
            Some([letter, b':', ..]) if letter.is_ascii_alphabetic() => {
                Err(InvalidResourcePath::Absolute)
            }
            Some(_) => Ok(Self(names.join("/"))),
        }
    }

    /// The path with single slashes.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for ResourcePath {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// An open folder, below which files are opened.
#[derive(Debug)]
pub(crate) struct Folder {
    handle: OwnedFd,
}

const READ: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
const READ_FOLDER: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::DIRECTORY);

impl Folder {
    /// Opens a folder by any path; links are followed.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let handle = openat(CWD, path, READ_FOLDER, Mode::empty())?;
        Ok(Self { handle })
    }

    /// Opens a folder at a path below this one; links are followed wherever they lead.
    pub(crate) fn open_folder(&self, path: &Path) -> io::Result<Self> {
        let handle = openat(&self.handle, path, READ_FOLDER, Mode::empty())?;
        Ok(Self { handle })
    }

    /// What is at a path below this folder; links are followed.
    pub(crate) fn stat(&self, path: &Path) -> io::Result<Stamp> {
        Ok(Stamp::from(&statat(&self.handle, path, AtFlags::empty())?))
    }

    /// Opens a `SKILL.md` at a path below this folder; links are followed wherever they lead.
    /// Never blocks, not even on a named pipe.
    pub(crate) fn open_file(&self, path: &Path) -> io::Result<OwnedFd> {
        Ok(openat(&self.handle, path, READ, Mode::empty())?)
    }

    /// Opens a file that is inside this folder, or nothing.
    pub(crate) fn open_beneath(&self, path: &ResourcePath) -> io::Result<OwnedFd> {
        self.open_inside(path, READ)
    }

    /// Opens a folder that is inside this folder, or nothing.
    pub(crate) fn open_folder_beneath(&self, path: &ResourcePath) -> io::Result<Self> {
        Ok(Self { handle: self.open_inside(path, READ_FOLDER)? })
    }

    fn open_inside(&self, path: &ResourcePath, flags: OFlags) -> io::Result<OwnedFd> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        // A tree that changes under our feet makes the kernel ask for another try.
        for _ in 0..16 {
            match openat2(&self.handle, path.as_str(), flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN) => {}
                Err(Errno::NOSYS | Errno::PERM) => return self.open_step_by_step(path, flags),
                result => return Ok(result?),
            }
        }
        Err(Errno::AGAIN.into())
    }

    /// For kernels without `openat2`: one name at a time, and no links at all.
    fn open_step_by_step(&self, path: &ResourcePath, flags: OFlags) -> io::Result<OwnedFd> {
        let path = PathBuf::from(path.as_str());
        let mut names: Vec<_> = path
            .components()
            .filter_map(|part| match part {
                Component::Normal(name) => Some(name),
                _ => None,
            })
            .collect();
        let Some(last) = names.pop() else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let mut folder: Option<OwnedFd> = None;
        for name in names {
            let here = folder.as_ref().map_or(self.handle.as_fd(), AsFd::as_fd);
            folder = Some(openat(here, name, READ_FOLDER | OFlags::NOFOLLOW, Mode::empty())?);
        }
        let here = folder.as_ref().map_or(self.handle.as_fd(), AsFd::as_fd);
        Ok(openat(here, last, flags | OFlags::NOFOLLOW, Mode::empty())?)
    }

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// What is behind an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    inode: u64,
    device: u64,
    mode: u32,
    names: u64,
}

#[allow(clippy::unnecessary_cast, reason = "the fields differ in width between platforms")]
impl From<&rustix::fs::Stat> for Stamp {
    fn from(stat: &rustix::fs::Stat) -> Self {
        Self {
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            inode: stat.st_ino as u64,
            device: stat.st_dev as u64,
            mode: stat.st_mode as u32,
            names: stat.st_nlink as u64,
        }
    }
}

impl Stamp {
    pub(crate) fn of(file: impl AsFd) -> io::Result<Self> {
        Ok(Self::from(&fstat(file)?))
    }

    pub(crate) fn is_file(&self) -> bool {
        FileType::from_raw_mode(self.mode) == FileType::RegularFile
    }

    pub(crate) fn is_folder(&self) -> bool {
        FileType::from_raw_mode(self.mode) == FileType::Directory
    }

    pub(crate) fn is_executable(&self) -> bool {
        self.mode & 0o111 != 0
    }

    /// What identifies the file or folder on this machine.
    pub(crate) fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Whether the same file is also known by another name.
    pub(crate) fn has_other_names(&self) -> bool {
        self.names > 1
    }

    /// Seconds and nanoseconds of the last change of content or inode, whichever is later.
    pub(crate) fn latest(&self) -> (i64, i64) {
        self.modified.max(self.changed)
    }
}
