//! Open descriptors, passed from one process to another.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The most descriptors of a message, and the most bytes.
const MOST: usize = 4;
const MOST_BYTES: usize = 4096;

/// Sends a short message with descriptors.
pub(crate) fn pass(
    to: &UnixStream,
    message: &impl serde::Serialize,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    if bytes.len() > MOST_BYTES || descriptors.len() > MOST {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the message is too long"));
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let sent = sendmsg(to, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
    match sent == bytes.len() {
        true => Ok(()),
        false => Err(io::ErrorKind::WriteZero.into()),
    }
}

/// Receives a short message with its descriptors; `None` if there will be no more. Whoever sends
/// one waits for its answer before the next one.
pub(crate) fn take<T: serde::de::DeserializeOwned>(
    from: &UnixStream,
) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut bytes = [0; MOST_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(from, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags)?;
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(passed) = message {
            descriptors.extend(passed);
        }
    }
    match received.bytes {
        0 => Ok(None),
        count => Ok(Some((serde_json::from_slice(&bytes[..count])?, descriptors))),
    }
}
