//! How much a workspace holds.
//!
//! The command is at work meanwhile, and may be hostile: every step is taken from an open folder, and
//! no link is followed.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, openat, statat};
use rustix::io::Errno;
use rustix::path::Arg;

/// Deeper than this, a workspace holds too much.
const MOST_DEPTH: usize = 128;

const FOLDER: OFlags =
    OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::RDONLY);

/// Whether the folders hold more than so many bytes or files.
pub(crate) fn holds_more(folders: &[PathBuf], bytes: u64, files: u64) -> bool {
    let mut room = Room { bytes, files };
    folders.iter().any(|folder| {
        let opened = open(CWD, folder.as_path());
        opened.is_ok_and(|folder| room.fill(&folder, 0).is_err())
    })
}

/// What there is still room for.
struct Room {
    bytes: u64,
    files: u64,
}

/// There is no room left.
struct Full;

impl Room {
    fn take(&mut self, bytes: u64) -> Result<(), Full> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or(Full)?;
        self.files = self.files.checked_sub(1).ok_or(Full)?;
        Ok(())
    }

    fn fill(&mut self, folder: &OwnedFd, depth: usize) -> Result<(), Full> {
        let Ok(entries) = Dir::read_from(folder) else { return Err(Full) };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let Ok(about) = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            // Holes take no room.
            self.take(u64::try_from(about.st_blocks).unwrap_or(0).saturating_mul(512))?;
            if FileType::from_raw_mode(about.st_mode) != FileType::Directory {
                continue;
            }
            match open(folder.as_fd(), name) {
                Ok(below) if depth < MOST_DEPTH => self.fill(&below, depth + 1)?,
                // It went meanwhile, or is something else now.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                _ => return Err(Full),
            }
        }
        Ok(())
    }
}

/// Opens a folder, also one that its owner closed.
fn open(parent: BorrowedFd<'_>, name: impl Arg + Copy) -> rustix::io::Result<OwnedFd> {
    match openat(parent, name, FOLDER, Mode::empty()) {
        Err(Errno::ACCESS) => {
            let closed = openat(parent, name, FOLDER | OFlags::PATH, Mode::empty())?;
            let path = format!("/proc/self/fd/{}", closed.as_raw_fd());
            chmodat(CWD, Path::new(&path), Mode::RWXU, AtFlags::empty())?;
            openat(CWD, Path::new(&path), FOLDER.difference(OFlags::NOFOLLOW), Mode::empty())
        }
        result => result,
    }
}
