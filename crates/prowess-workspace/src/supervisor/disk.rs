//! How much a workspace holds.
//!
//! The command is at work meanwhile, and may be hostile: every step is taken from an open folder, and
//! no link is followed. Files without a name count as long as a process has them.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, openat, statat};
use rustix::io::Errno;
use rustix::path::Arg;
use rustix::process::Pid;

use super::processes;

/// Deeper than this, a workspace holds too much.
const MOST_DEPTH: usize = 128;

const FOLDER: OFlags =
    OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::RDONLY);

/// Whether the folders hold more than so many bytes or files, what was removed from them and is
/// still open below this process included.
pub(crate) fn holds_more(folders: &[PathBuf], bytes: u64, files: u64) -> bool {
    let mut room = Room { bytes, files };
    let mut devices = BTreeSet::new();
    let is_full = folders.iter().any(|folder| {
        let opened = open(CWD, folder.as_path());
        opened.is_ok_and(|folder| {
            devices.extend(rustix::fs::fstat(&folder).map(|about| about.st_dev));
            room.fill(&folder, 0).is_err()
        })
    });
    is_full || room.fill_removed(&devices).is_err()
}

/// How many bytes and files the folders hold now.
pub(crate) fn held(folders: &[PathBuf]) -> (u64, u64) {
    let mut room = Room { bytes: u64::MAX, files: u64::MAX };
    for folder in folders.iter().filter_map(|folder| open(CWD, folder.as_path()).ok()) {
        // What is too deep to be counted is too much later on, too.
        let _ = room.fill(&folder, 0);
    }
    (u64::MAX - room.bytes, u64::MAX - room.files)
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

    /// Takes room for files of these devices that have no name any more and that a process below
    /// this one has open or mapped.
    fn fill_removed(&mut self, devices: &BTreeSet<u64>) -> Result<(), Full> {
        let mut seen = BTreeSet::new();
        for (pid, _) in processes::descendants() {
            for (file, bytes) in opened_without_name(pid).chain(mapped_without_name(pid)) {
                if devices.contains(&file.0) && seen.insert(file) {
                    self.take(bytes)?;
                }
            }
        }
        Ok(())
    }
}

/// A file: its device and its number there.
type FileId = (u64, u64);

/// Files without a name that a process has open, and how much room they take.
fn opened_without_name(pid: Pid) -> impl Iterator<Item = (FileId, u64)> {
    let folder = format!("/proc/{}/fd", pid.as_raw_nonzero());
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let about = std::fs::metadata(entry.path()).ok().filter(std::fs::Metadata::is_file)?;
        let id = (about.dev(), about.ino());
        (about.nlink() == 0).then(|| (id, about.blocks().saturating_mul(512)))
    })
}

/// The same for those that it has in its memory; they take no more room than there.
fn mapped_without_name(pid: Pid) -> impl Iterator<Item = (FileId, u64)> {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", pid.as_raw_nonzero()));
    let maps = maps.unwrap_or_default();
    let lines = maps.lines().filter(|line| line.ends_with(" (deleted)"));
    lines.filter_map(mapping).collect::<Vec<_>>().into_iter()
}

/// What a line of `/proc/<pid>/maps` says: `7f00-7f10 rw-s 00000000 fe:01 1234  /x (deleted)`.
fn mapping(line: &str) -> Option<(FileId, u64)> {
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let mut words = line.split_whitespace();
    let (begin, end) = words.next()?.split_once('-')?;
    let (major, minor) = words.nth(2)?.split_once(':')?;
    let device = rustix::fs::makedev(hex(major)?.try_into().ok()?, hex(minor)?.try_into().ok()?);
    let inode = words.next()?.parse().ok()?;
    Some(((device, inode), hex(end)?.saturating_sub(hex(begin)?)))
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
