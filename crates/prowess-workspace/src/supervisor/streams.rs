//! Descriptors that come for a command, from the program that asked for it.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use rustix::process::ioctl_tiocsctty;
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::descriptors::{receive_with, send_with};
use super::order::Streams;

/// What goes over the line with a descriptor: it needs a byte to go with.
const TOKEN: [u8; 1] = [1];

/// Passes a descriptor on.
pub(crate) fn send_descriptor(line: &UnixStream, descriptor: BorrowedFd<'_>) -> io::Result<()> {
    send_with(line, &TOKEN, &[descriptor])
}

fn receive_descriptor(line: &UnixStream) -> io::Result<OwnedFd> {
    let missing = || io::Error::new(io::ErrorKind::InvalidData, "no descriptor came with it");
    let mut token = [0; 1];
    let (count, descriptors) = receive_with(line, &mut token)?;
    match (count, token) {
        (1, TOKEN) => descriptors.into_iter().next().ok_or_else(missing),
        _ => Err(missing()),
    }
}

/// What came for a command.
#[derive(Debug, Default)]
pub(crate) enum Given {
    #[default]
    Nothing,
    Input(OwnedFd),
    Terminal(OwnedFd),
}

impl Given {
    /// Takes from the line what an order says comes behind it.
    pub(crate) fn take(streams: Streams, line: &UnixStream) -> io::Result<Self> {
        match streams {
            Streams::Usual => Ok(Self::Nothing),
            Streams::Input => receive_descriptor(line).map(Self::Input),
            Streams::Terminal => receive_descriptor(line).map(Self::Terminal),
        }
    }

    /// What it is, in the words of an order.
    pub(crate) fn streams(&self) -> Streams {
        match self {
            Self::Nothing => Streams::Usual,
            Self::Input(_) => Streams::Input,
            Self::Terminal(_) => Streams::Terminal,
        }
    }

    /// The descriptor, to be passed on once more.
    pub(crate) fn into_file(self) -> Option<File> {
        match self {
            Self::Nothing => None,
            Self::Input(given) | Self::Terminal(given) => Some(given.into()),
        }
    }

    /// What an order says came for it, if this is the descriptor.
    pub(crate) fn from_file(streams: Streams, file: Option<File>) -> Self {
        match (streams, file) {
            (Streams::Input, Some(file)) => Self::Input(file.into()),
            (Streams::Terminal, Some(file)) => Self::Terminal(file.into()),
            _ => Self::Nothing,
        }
    }

    /// Makes a terminal the standard streams of this process, and the one that it is controlled
    /// from: it must lead a session that has none. Else what is left is its standard input.
    pub(crate) fn take_on(self) -> io::Result<Option<Stdio>> {
        match self {
            Self::Nothing => Ok(None),
            Self::Input(input) => Ok(Some(input.into())),
            Self::Terminal(terminal) => {
                dup2_stdin(&terminal)?;
                dup2_stdout(&terminal)?;
                dup2_stderr(&terminal)?;
                ioctl_tiocsctty(&terminal)?;
                Ok(Some(Stdio::inherit()))
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_descriptor_goes_over_the_line_and_what_is_none_is_refused() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut reader, writer) = UnixStream::pair().unwrap();
        send_descriptor(&ours, writer.as_fd()).unwrap();
        drop(writer);
        let passed = Given::take(Streams::Input, &theirs).unwrap();
        assert_eq!(passed.streams(), Streams::Input);
        passed.into_file().unwrap().write_all(b"through").unwrap();
        let mut text = String::new();
        // Nobody else has it: it ends.
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
        (&ours).write_all(&TOKEN).unwrap();
        assert!(Given::take(Streams::Terminal, &theirs).is_err());
        drop(ours);
        assert!(Given::take(Streams::Input, &theirs).is_err());
        assert!(matches!(Given::take(Streams::Usual, &theirs), Ok(Given::Nothing)));
    }
}
