//! Locks on files, which end with the process that holds them.

use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

/// A lock that is held.
#[derive(Debug)]
pub(crate) struct Held(File);

impl Held {
    /// Sets the time of the file to now.
    pub(crate) fn touch(&self) -> io::Result<()> {
        self.0.set_modified(SystemTime::now())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Closing it is not enough: a process that is being started may still have a copy.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Locks a file, which is made if it is missing. Whoever holds the lock of a file may remove it;
/// so what is locked is always what has the name. `WouldBlock` if that is asked for and somebody
/// else holds it.
pub(crate) fn lock(path: &Path, operation: FlockOperation) -> io::Result<Held> {
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
                    return Ok(Held(file));
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
