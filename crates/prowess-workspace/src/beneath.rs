//! Opening files and folders so that nothing outside a folder is ever opened.
//!
//! The check is part of the opening: the kernel resolves the path beneath the folder and refuses
//! every link, whatever happens to the tree meanwhile. Where the kernel cannot do that, every step
//! is opened by itself.

use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, ResolveFlags, Stat, Uid, fchmod, fchown, fstat,
    mkdirat, openat, openat2, statat,
};
use rustix::io::Errno;

use crate::path::WorkspacePath;
use crate::workspace::WorkspaceOwner;

const READ: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::NOFOLLOW);
const READ_FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW);

/// An open folder, below which things are opened.
#[derive(Debug)]
pub(crate) struct Folder {
    handle: OwnedFd,
}

impl From<OwnedFd> for Folder {
    fn from(handle: OwnedFd) -> Self {
        Self { handle }
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

impl Folder {
    /// Opens a folder by any path; links on the way are followed.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECTORY;
        Ok(Self { handle: openat(CWD, path, flags, Mode::empty())? })
    }

    /// Opens a folder inside this one, or this one itself. `ELOOP` if there is a link on the way.
    pub(crate) fn open_folder(&self, path: &WorkspacePath) -> io::Result<Self> {
        let path = if path.as_str().is_empty() { "." } else { path.as_str() };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        Ok(Self { handle: self.open_resolved(path.as_ref(), READ_FOLDER, resolve)? })
    }

    /// Opens whatever is inside this folder, without waiting for anybody. `ELOOP` if there is a
    /// link on the way or at the end.
    pub(crate) fn open_file(&self, path: &WorkspacePath) -> io::Result<OwnedFd> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        self.open_resolved(path.as_str().as_ref(), READ, resolve)
    }

    /// Opens whatever is inside this folder; links that stay inside are followed, except at the
    /// end. `EXDEV` if one leads out.
    pub(crate) fn open_inside(&self, path: &Path) -> io::Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        self.open_resolved(path, READ, ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS)
    }

    /// Opens a folder by its one name in this folder. Neither links nor mounts are entered.
    pub(crate) fn enter(&self, name: &OsStr) -> io::Result<Self> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        Ok(Self { handle: self.open_resolved(name.as_ref(), READ_FOLDER, resolve)? })
    }

    /// Opens a regular file, or what else there is, by its one name in this folder.
    pub(crate) fn open_entry(&self, name: &OsStr) -> io::Result<OwnedFd> {
        Ok(openat(self, name, READ, Mode::empty())?)
    }

    fn open_resolved(
        &self,
        path: &Path,
        flags: OFlags,
        resolve: ResolveFlags,
    ) -> io::Result<OwnedFd> {
        // Told not to follow the last link, the kernel says less well what is wrong with it.
        let refuses_links = resolve.contains(ResolveFlags::NO_SYMLINKS);
        let asked = if refuses_links { flags - OFlags::NOFOLLOW } else { flags };
        // A tree that changes under our feet makes the kernel ask for another try.
        for _ in 0..64 {
            match openat2(&self.handle, path, asked, Mode::empty(), resolve) {
                Err(Errno::AGAIN) => {}
                Err(Errno::NOSYS | Errno::PERM) => return self.open_step_by_step(path, flags),
                result => return Ok(result?),
            }
        }
        Err(Errno::AGAIN.into())
    }

    /// For kernels without `openat2`: one name at a time, and no links at all.
    fn open_step_by_step(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let mut names: Vec<&OsStr> = path.iter().filter(|name| *name != ".").collect();
        if path.is_absolute() || names.iter().any(|name| *name == "..") {
            return Err(Errno::XDEV.into());
        }
        let last = names.pop().unwrap_or(OsStr::new("."));
        let mut folder: Option<OwnedFd> = None;
        for name in names {
            let here = folder.as_ref().map_or(self.handle.as_fd(), AsFd::as_fd);
            folder = Some(open_step(here, name, READ_FOLDER)?);
        }
        let here = folder.as_ref().map_or(self.handle.as_fd(), AsFd::as_fd);
        open_step(here, last, flags)
    }

    /// What is called so in this folder; a link is a link.
    pub(crate) fn look(&self, name: &OsStr) -> io::Result<Stamp> {
        Ok(Stamp::from(&statat(self, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// Makes a folder if there is none of that name, and opens it.
    pub(crate) fn make(
        &self,
        name: &OsStr,
        mode: u32,
        owner: Option<WorkspaceOwner>,
    ) -> io::Result<Self> {
        match mkdirat(self, name, Mode::RWXU) {
            Ok(()) => {
                let folder = self.enter(name)?;
                give(&folder, mode, owner)?;
                Ok(folder)
            }
            Err(Errno::EXIST) => {
                let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
                Ok(Self { handle: self.open_resolved(name.as_ref(), READ_FOLDER, resolve)? })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Makes the folders of a path where they are missing, and opens the last.
    pub(crate) fn make_all(
        &self,
        path: &WorkspacePath,
        owner: Option<WorkspaceOwner>,
    ) -> io::Result<Self> {
        let mut folder = self.open_folder(&WorkspacePath::root())?;
        for name in path.names() {
            folder = folder.make(name.as_ref(), 0o755, owner)?;
        }
        Ok(folder)
    }

    /// The entries of this folder, each as it is read.
    pub(crate) fn entries(&self) -> io::Result<impl Iterator<Item = io::Result<DirEntry>> + use<>> {
        let entries = Dir::read_from(self)?;
        Ok(entries.filter_map(|entry| match entry {
            Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b"..") => None,
            Ok(entry) => {
                Some(Ok(DirEntry { name: os(entry.file_name()), kind: entry.file_type() }))
            }
            Err(error) => Some(Err(error.into())),
        }))
    }

    /// What an entry is, for which a link is a link.
    pub(crate) fn kind(&self, entry: &DirEntry) -> io::Result<FileType> {
        match entry.kind {
            FileType::Unknown => Ok(self.look(&entry.name)?.kind()),
            kind => Ok(kind),
        }
    }

    /// Makes a folder ours to read and change, if it is ours and is not yet.
    pub(crate) fn unlock_entry(&self, name: &OsStr) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let handle = openat(self, name, flags, Mode::empty())?;
        if Stamp::of(&handle)?.mode & 0o700 == 0o700 {
            return Ok(());
        }
        // The handle is a folder, whatever has the name meanwhile; it can be changed only so.
        let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))
    }
}

fn open_step(folder: BorrowedFd<'_>, name: &OsStr, flags: OFlags) -> io::Result<OwnedFd> {
    match openat(folder, name, flags, Mode::empty()) {
        // What is opened as a folder and is a link is only said to be no folder.
        Err(Errno::NOTDIR) => {
            let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
            let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
            Err(if is_link { Errno::LOOP.into() } else { Errno::NOTDIR.into() })
        }
        result => Ok(result?),
    }
}

fn os(name: &CStr) -> std::ffi::OsString {
    OsStr::from_bytes(name.to_bytes()).to_owned()
}

/// Sets the mode of what is open, and who owns it.
pub(crate) fn give(handle: impl AsFd, mode: u32, owner: Option<WorkspaceOwner>) -> io::Result<()> {
    // First the mode: whoever gives something away may not change it any more.
    fchmod(&handle, Mode::from_raw_mode(mode))?;
    if let Some(owner) = owner {
        fchown(&handle, Some(Uid::from_raw(owner.uid)), Some(Gid::from_raw(owner.gid)))?;
    }
    Ok(())
}

/// An entry of a folder.
#[derive(Debug)]
pub(crate) struct DirEntry {
    pub(crate) name: std::ffi::OsString,
    kind: FileType,
}

/// What is known about a file without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) bytes: u64,
    pub(crate) disk_bytes: u64,
    pub(crate) modified: (i64, i64),
    pub(crate) changed: (i64, i64),
    pub(crate) inode: u64,
    pub(crate) device: u64,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    names: u64,
}

#[allow(clippy::unnecessary_cast, reason = "the fields differ in width between platforms")]
impl From<&Stat> for Stamp {
    fn from(stat: &Stat) -> Self {
        Self {
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            disk_bytes: u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512),
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            inode: stat.st_ino as u64,
            device: stat.st_dev as u64,
            mode: stat.st_mode as u32,
            uid: stat.st_uid as u32,
            gid: stat.st_gid as u32,
            names: stat.st_nlink as u64,
        }
    }
}

impl Stamp {
    pub(crate) fn of(file: impl AsFd) -> io::Result<Self> {
        Ok(Self::from(&fstat(file)?))
    }

    pub(crate) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    pub(crate) fn is_file(&self) -> bool {
        self.kind() == FileType::RegularFile
    }

    pub(crate) fn is_folder(&self) -> bool {
        self.kind() == FileType::Directory
    }

    pub(crate) fn is_link(&self) -> bool {
        self.kind() == FileType::Symlink
    }

    pub(crate) fn is_executable(&self) -> bool {
        self.mode & 0o100 != 0
    }

    /// Whether the same file is also known by another name.
    pub(crate) fn has_other_names(&self) -> bool {
        self.names > 1
    }

    /// What it is, in words.
    pub(crate) fn what(&self) -> &'static str {
        match self.kind() {
            FileType::RegularFile if self.has_other_names() => "a file with several names",
            FileType::RegularFile => "a file",
            FileType::Directory => "a folder",
            FileType::Symlink => "a symbolic link",
            FileType::Fifo => "a pipe",
            FileType::Socket => "a socket",
            _ => "a device",
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("in/a/b")).unwrap();
        fs::write(root.path().join("in/a/b/file"), "inside").unwrap();
        fs::write(root.path().join("secret"), "outside").unwrap();
        symlink("../secret", root.path().join("in/out")).unwrap();
        symlink("..", root.path().join("in/up")).unwrap();
        symlink("a", root.path().join("in/inner")).unwrap();
        symlink("loop", root.path().join("in/loop")).unwrap();
        root
    }

    /// With `openat2` and without, the same is opened and the same is refused.
    #[test]
    fn the_kernel_and_the_steps_agree() {
        let root = tree();
        let folder = Folder::open(&root.path().join("in")).unwrap();
        let strict = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        for (path, opens) in [
            ("a/b/file", true),
            ("./a/./b/file", true),
            ("a/b", true),
            (".", true),
            ("out", false),
            ("up/secret", false),
            ("inner/b/file", false),
            ("loop", false),
            ("../secret", false),
            ("a/../../secret", false),
            ("/etc/passwd", false),
            ("none", false),
        ] {
            let by_kernel = folder.open_resolved(path.as_ref(), READ, strict);
            let by_steps = folder.open_step_by_step(path.as_ref(), READ);
            assert_eq!(by_kernel.is_ok(), opens, "{path}: {by_kernel:?}");
            assert_eq!(by_steps.is_ok(), opens, "{path}: {by_steps:?}");
        }
        for path in ["up", "inner", "inner/b", "out"] {
            let error = |result: io::Result<OwnedFd>| result.unwrap_err().raw_os_error();
            let loops = Some(Errno::LOOP.raw_os_error());
            let by_kernel = folder.open_resolved(path.as_ref(), READ_FOLDER, strict);
            assert_eq!(error(by_kernel), loops, "{path}");
            assert_eq!(
                error(folder.open_step_by_step(path.as_ref(), READ_FOLDER)),
                loops,
                "{path}"
            );
        }
    }

    #[test]
    fn links_that_stay_inside_can_be_followed_where_that_is_wanted() {
        let root = tree();
        let folder = Folder::open(&root.path().join("in")).unwrap();
        assert!(folder.open_inside(Path::new("inner/b/file")).is_ok());
        for path in ["up/secret", "out", "../secret", "loop"] {
            // Control: plainly opened, the first three lead somewhere.
            let plain = openat(&folder, path, OFlags::RDONLY, Mode::empty());
            assert_eq!(plain.is_ok(), path != "loop", "{path}");
            assert!(folder.open_inside(Path::new(path)).is_err(), "{path}");
        }
    }
}
