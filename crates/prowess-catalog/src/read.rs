//! Reading files that others wrote.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use crate::beneath::Stamp;

/// Reads an open regular file of at most `limit` bytes into `buffer`, replacing what it holds. A
/// larger one is [`io::ErrorKind::FileTooLarge`].
///
/// What is read is the file as long as `stamp` says it was; if it grows meanwhile, its stamp
/// changes, and the next look at it sees that.
pub(crate) fn read_limited(
    handle: OwnedFd,
    stamp: &Stamp,
    limit: u64,
    buffer: &mut Vec<u8>,
) -> io::Result<()> {
    buffer.clear();
    if !stamp.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if stamp.bytes > limit {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let length = usize::try_from(stamp.bytes).map_err(|_| io::ErrorKind::FileTooLarge)?;
    buffer.resize(length, 0);
    let mut file = File::from(handle);
    let mut at = 0;
    while at < length {
        match file.read(&mut buffer[at..]) {
            Ok(0) => break,
            Ok(count) => at += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    // It became shorter.
    buffer.truncate(at);
    Ok(())
}
