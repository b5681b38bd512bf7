//! Locks on files, which end with the process that holds them.

use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

/// Locks a file, which is made if it is missing. Whoever holds the lock of a file may remove it;
/// so what is locked is always what has the name. `WouldBlock` if that is asked for and somebody
/// else holds it.
pub(crate) fn lock(path: &Path, operation: FlockOperation) -> io::Result<File> {
    loop {
        let file = File::options()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(path)?;
        hold(&file, operation)?;
        match std::fs::symlink_metadata(path) {
            Ok(named) => {
                let held = file.metadata()?;
                if (held.dev(), held.ino()) == (named.dev(), named.ino()) {
                    return Ok(file);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
}

/// Locks what is open.
pub(crate) fn hold(file: &File, operation: FlockOperation) -> io::Result<()> {
    loop {
        match flock(file, operation) {
            Err(Errno::INTR) => {}
            result => return Ok(result?),
        }
    }
}
