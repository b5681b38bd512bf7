//! Locks on files, which end with the process that holds them.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::error::RemoteError;

/// Whether nobody holds the lock of a folder.
pub(super) fn is_unused(folder: &Path) -> bool {
    match File::open(folder.join("lock")) {
        Ok(file) => flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Opens a file and locks it. Where it cannot be made or written, reading is enough.
pub(super) fn lock(path: &Path, operation: FlockOperation) -> io::Result<File> {
    let opened = File::options().create(true).append(true).open(path);
    let file = opened.or_else(|_| File::open(path))?;
    loop {
        match flock(&file, operation) {
            Err(Errno::INTR) => {}
            result => return result.map(|()| file).map_err(Into::into),
        }
    }
}

/// Opens a file and locks it, if that is possible within some time.
pub(super) fn lock_within(
    path: &Path,
    operation: FlockOperation,
    patience: Duration,
) -> io::Result<Option<File>> {
    let begin = Instant::now();
    loop {
        match lock(path, operation) {
            Ok(held) => return Ok(Some(held)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        if begin.elapsed() >= patience {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Makes sure that the names in a folder are on the disk.
pub(super) fn sync_folder(folder: &Path) -> Result<(), RemoteError> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(RemoteError::io(folder))
}
