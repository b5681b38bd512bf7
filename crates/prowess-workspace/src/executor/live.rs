//! What a run has besides its output: input that comes while it runs, a terminal, a way to stop it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::input::{LiveInput, Stdin, Taken, TerminalSize};
use crate::supervisor::{Request, Streams, send, send_descriptor};

/// Wakes whoever waits for descriptors.
#[derive(Debug)]
pub(crate) struct Bell(OwnedFd);

impl Bell {
    fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub(crate) fn ring(&self) {
        // One that rings already needs not be rung.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    fn quiet(&self) {
        let _ = rustix::io::read(&self.0, &mut [0u8; 8]);
    }
}

/// Asks a run to end.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    bell: Arc<Bell>,
    is_asked: Arc<AtomicBool>,
}

impl Stop {
    pub(crate) fn ask(&self) {
        self.is_asked.store(true, Ordering::Release);
        self.bell.ring();
    }
}

/// What a run has besides its output.
#[derive(Debug, Default)]
pub(crate) struct Live {
    /// What the supervisor gives the command at once.
    pub(crate) bytes: Vec<u8>,
    /// The command's end of its input or its terminal, until it is passed on.
    theirs: Option<OwnedFd>,
    /// Where input is written to, as long as there is some to come.
    input: Option<Feed>,
    /// Our end of the terminal.
    terminal: Option<Terminal>,
    stop: Option<Stop>,
    streams: Streams,
}

/// Input on its way.
#[derive(Debug)]
struct Feed {
    /// Our end of the pipe; in a terminal, another name of it.
    to: File,
    source: LiveInput,
    /// Whether it must be waited until there is room.
    is_blocked: bool,
    is_terminal: bool,
    /// Whether a line was begun and not ended: then a terminal needs to be told twice.
    is_within_line: bool,
}

impl Live {
    /// What this run is to have, and how it is stopped.
    pub(crate) fn new(
        stdin: Stdin,
        terminal: Option<TerminalSize>,
        is_stoppable: bool,
    ) -> io::Result<(Self, Option<Stop>)> {
        let mut this = Self::default();
        let is_live = matches!(stdin, Stdin::Live(_));
        if is_live || terminal.is_some() || is_stoppable {
            let bell = Arc::new(Bell::new()?);
            this.stop = Some(Stop { bell, is_asked: Arc::default() });
        }
        let to = match (terminal, is_live) {
            (Some(size), _) => {
                let (ours, theirs) = open_terminal(size)?;
                let to = ours.try_clone()?;
                (this.terminal, this.theirs) = (Some(Terminal(ours)), Some(theirs));
                this.streams = Streams::Terminal;
                Some(to)
            }
            (None, true) => {
                let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
                fcntl_setfl(&ours, fcntl_getfl(&ours)? | OFlags::NONBLOCK)?;
                this.theirs = Some(theirs);
                this.streams = Streams::Input;
                Some(File::from(ours))
            }
            (None, false) => None,
        };
        match (stdin, to, &this.stop) {
            (Stdin::Bytes(bytes), Some(to), Some(stop)) => {
                let (_, mut source) = LiveInput::channel(0);
                source.put_back(&bytes);
                source.ring(&stop.bell);
                this.input = Some(Feed::new(to, source, true));
            }
            (Stdin::Live(mut source), Some(to), Some(stop)) => {
                source.ring(&stop.bell);
                this.input = Some(Feed::new(to, source, terminal.is_some()));
            }
            (Stdin::Bytes(bytes), ..) => this.bytes = bytes,
            (Stdin::Live(_), ..) => {}
        }
        let stop = this.stop.clone().filter(|_| is_stoppable);
        Ok((this, stop))
    }

    pub(crate) fn streams(&self) -> Streams {
        self.streams
    }

    /// Passes the command's end on; afterwards nobody here has it.
    pub(crate) fn pass_on(&mut self, control: &UnixStream) -> io::Result<()> {
        match self.theirs.take() {
            Some(theirs) => send_descriptor(control, theirs.as_fd()),
            None => Ok(()),
        }
    }

    /// What is to be waited for, in the order of [`Live::attend`].
    pub(crate) fn waited(&self) -> [Option<PollFd<'_>>; 3] {
        let input = self.input.as_ref().filter(|it| it.is_blocked);
        [
            self.stop.as_ref().map(|it| reading(it.bell.0.as_fd())),
            input.map(|it| PollFd::from_borrowed_fd(it.to.as_fd(), PollFlags::OUT)),
            self.terminal.as_ref().map(|it| reading(it.0.as_fd())),
        ]
    }

    /// Does what can be done: asks the supervisor to stop, and passes on input.
    pub(crate) fn attend(&mut self, control: &UnixStream) {
        if let Some(stop) = &self.stop {
            stop.bell.quiet();
            if stop.is_asked.swap(false, Ordering::AcqRel) {
                // If it cannot be told, it is gone, and the run with it.
                let _ = send(control, &Request::Stop);
            }
        }
        if self.input.as_mut().is_some_and(Feed::is_done) {
            self.input = None;
        }
    }

    /// What the command writes to its terminal, as long as somebody has its other end.
    pub(crate) fn terminal(&mut self) -> Option<&mut Terminal> {
        self.terminal.as_mut()
    }

    /// Nobody has the other end of the terminal any more.
    pub(crate) fn hang_up(&mut self) {
        self.terminal = None;
        self.input = None;
    }
}

/// Our end of a terminal. It ends when nobody has the other one.
#[derive(Debug)]
pub(crate) struct Terminal(File);

impl Read for Terminal {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer) {
            Err(error) if error.raw_os_error() == Some(libc::EIO) => Ok(0),
            read => read,
        }
    }
}

impl Feed {
    fn new(to: File, source: LiveInput, is_terminal: bool) -> Self {
        Self { to, source, is_blocked: false, is_terminal, is_within_line: false }
    }

    /// Passes on what can be passed on. Whether there is nothing more to come, or nobody to take it.
    fn is_done(&mut self) -> bool {
        self.is_blocked = false;
        loop {
            let bytes = match self.source.take() {
                Taken::Bytes(bytes) => bytes,
                Taken::Nothing => return false,
                Taken::Over if self.is_terminal => {
                    // A terminal ends by a character, at the beginning of a line.
                    self.is_terminal = false;
                    vec![END; 1 + usize::from(self.is_within_line)]
                }
                Taken::Over => return true,
            };
            match self.to.write(&bytes) {
                Ok(count) => {
                    let last = bytes[..count].last();
                    self.is_within_line = last.map_or(self.is_within_line, |it| *it != b'\n');
                    self.source.put_back(&bytes[count..]);
                }
                // It waits where it is counted.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    self.source.put_back(&bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.source.put_back(&bytes);
                    self.is_blocked = true;
                    return false;
                }
                Err(_) => return true,
            }
        }
    }
}

/// Waits until there is something to read.
pub(crate) fn reading(descriptor: BorrowedFd<'_>) -> PollFd<'_> {
    PollFd::from_borrowed_fd(descriptor, PollFlags::IN)
}

/// What is typed to end the input of a terminal: Ctrl-D.
const END: u8 = 4;

/// A terminal: our end, and the command's.
fn open_terminal(size: TerminalSize) -> io::Result<(File, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let theirs = ioctl_tiocgptpeer(&ours, flags)?;
    let (ws_row, ws_col) = (size.rows, size.columns);
    tcsetwinsize(&ours, Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 })?;
    fcntl_setfl(&ours, fcntl_getfl(&ours)? | OFlags::NONBLOCK)?;
    Ok((File::from(ours), theirs))
}
