//! What a command wrote.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;

use super::live::{Live, reading};

/// What a command wrote: all of it, or its beginning and its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Captured {
    /// The beginning.
    pub head: Vec<u8>,
    /// The end, if something between was left out.
    pub tail: Vec<u8>,
    /// How many bytes it wrote.
    pub total_bytes: u64,
}

impl Captured {
    /// Whether something was left out.
    pub fn is_cut(&self) -> bool {
        self.left_out() > 0
    }

    /// How many bytes were left out.
    pub fn left_out(&self) -> u64 {
        self.total_bytes.saturating_sub((self.head.len() + self.tail.len()) as u64)
    }

    /// At most so many bytes of it as text, from the beginning and from the end, with a note of
    /// what is missing between. What is no UTF-8 is replaced.
    ///
    /// ```
    /// use prowess_workspace::Captured;
    ///
    /// let mut captured = Captured::default();
    /// captured.head = b"0123456789".to_vec();
    /// captured.total_bytes = 10;
    /// assert_eq!(captured.text(100), "0123456789");
    /// assert_eq!(captured.text(4), "01\n[... 6 bytes left out ...]\n89");
    /// ```
    pub fn text(&self, limit: usize) -> String {
        if !self.is_cut() {
            let all = [self.head.as_slice(), self.tail.as_slice()].concat();
            let text = String::from_utf8_lossy(&all);
            if text.len() <= limit {
                return text.into_owned();
            }
        }
        let half = limit / 2;
        let (head, used) = beginning(&self.head, half);
        let end = if self.tail.is_empty() { &self.head[used..] } else { &self.tail };
        let (tail, last) = ending(end, limit - half);
        let left_out = self.total_bytes - (used + last) as u64;
        format!("{head}\n[... {left_out} bytes left out ...]\n{tail}")
    }
}

/// The beginning as a text of at most so many bytes, and how many bytes it stands for. What is no
/// UTF-8 becomes longer when it is replaced.
fn beginning(bytes: &[u8], most: usize) -> (String, usize) {
    let mut bytes = whole_head(&bytes[..most.min(bytes.len())]);
    loop {
        let text = String::from_utf8_lossy(bytes);
        // A byte becomes three at most.
        let excess = text.len().saturating_sub(most).div_ceil(3);
        if excess == 0 {
            return (text.into_owned(), bytes.len());
        }
        bytes = whole_head(&bytes[..bytes.len() - excess]);
    }
}

/// The same for the end.
fn ending(bytes: &[u8], most: usize) -> (String, usize) {
    let mut bytes = whole_tail(&bytes[bytes.len().saturating_sub(most)..]);
    loop {
        let text = String::from_utf8_lossy(bytes);
        let excess = text.len().saturating_sub(most).div_ceil(3);
        if excess == 0 {
            return (text.into_owned(), bytes.len());
        }
        bytes = whole_tail(&bytes[excess..]);
    }
}

/// Without a character that was cut off at the end.
fn whole_head(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

/// Without a character that was cut off at the beginning.
fn whole_tail(bytes: &[u8]) -> &[u8] {
    let cut = bytes.iter().take(3).take_while(|byte| (0x80..0xC0).contains(*byte)).count();
    &bytes[cut..]
}

/// Keeps the beginning and the end of what is written, and counts the rest.
#[derive(Debug)]
pub(crate) struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    half: usize,
    total_bytes: u64,
}

impl Capture {
    /// Keeps at most so many bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), half: limit / 2, total_bytes: 0 }
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.total_bytes += bytes.len() as u64;
        let room = self.half - self.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.half)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(self.half);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    pub(crate) fn finish(self) -> Captured {
        let Self { mut head, tail, total_bytes, .. } = self;
        let mut tail = Vec::from(tail);
        // Nothing is missing between: it is one text.
        if (head.len() + tail.len()) as u64 == total_bytes {
            head.append(&mut tail);
        }
        Captured { head, tail, total_bytes }
    }
}

/// One of the two streams that a command writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStream {
    /// The standard output.
    Stdout,
    /// The standard error.
    Stderr,
}

/// Somebody who sees what a command writes while it runs.
#[derive(Clone)]
pub struct Watcher(Arc<Watch>);

type Watch = dyn Fn(OutputStream, &[u8]) + Send + Sync;

impl Watcher {
    /// A function that sees it.
    pub fn new(watch: impl Fn(OutputStream, &[u8]) + Send + Sync + 'static) -> Self {
        Self(Arc::new(watch))
    }

    /// Lets it see something.
    pub fn see(&self, stream: OutputStream, bytes: &[u8]) {
        (self.0)(stream, bytes);
    }
}

impl std::fmt::Debug for Watcher {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Watcher")
    }
}

/// Reads both streams to their ends, and attends to what else a run has, on the line to its
/// supervisor. What is written to a terminal counts as standard output.
pub(crate) fn drain(
    stdout: File,
    stderr: File,
    limit: usize,
    watcher: Option<&Watcher>,
    deadline: Instant,
    mut live: Option<(&mut Live, &UnixStream)>,
) -> io::Result<[Captured; 2]> {
    let (mut stdout, mut stderr) = (Some(stdout), Some(stderr));
    let mut captures = [Capture::new(limit), Capture::new(limit)];
    let mut buffer = vec![0; 64 << 10];
    // How many bytes; none at the end, and nothing where nothing is there yet.
    let mut take = |stream: OutputStream, from: &mut dyn Read| -> io::Result<Option<usize>> {
        let count = match from.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            count => count?,
        };
        if let Some(watcher) = watcher {
            watcher.see(stream, &buffer[..count]);
        }
        captures[stream as usize].add(&buffer[..count]);
        Ok(Some(count))
    };
    while stdout.is_some() || stderr.is_some() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let others = live.as_ref().map_or([None, None, None], |(live, _)| live.waited());
        let [bell, input, terminal] = others;
        let all = [
            stdout.as_ref().map(|it| reading(it.as_fd())),
            stderr.as_ref().map(|it| reading(it.as_fd())),
            terminal,
            bell,
            input,
        ];
        let is_waited = all.each_ref().map(Option::is_some);
        let mut waited: Vec<PollFd<'_>> = all.into_iter().flatten().collect();
        let left = Timespec::try_from(left).map_err(|_| io::ErrorKind::InvalidInput)?;
        match poll(&mut waited, Some(&left)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready = waited.iter().map(|it| !it.revents().is_empty());
        let is_ready = is_waited.map(|is_waited| is_waited && ready.next().unwrap_or(false));
        drop(waited);
        let [from_stdout, from_stderr, from_terminal, rings, has_room] = is_ready;
        if let (true, Some(from)) = (from_stdout, &mut stdout)
            && take(OutputStream::Stdout, from)? == Some(0)
        {
            stdout = None;
        }
        if let (true, Some(from)) = (from_stderr, &mut stderr)
            && take(OutputStream::Stderr, from)? == Some(0)
        {
            stderr = None;
        }
        let Some((live, control)) = &mut live else { continue };
        if let (true, Some(from)) = (from_terminal, live.terminal())
            && take(OutputStream::Stdout, from)? == Some(0)
        {
            live.hang_up();
        }
        if rings || has_room {
            live.attend(control);
        }
    }
    // Whoever could write to it has gone: what is there is all.
    if let Some(from) = live.as_mut().and_then(|(live, _)| live.terminal()) {
        while take(OutputStream::Stdout, from)?.is_some_and(|count| count > 0) {}
    }
    Ok(captures.map(Capture::finish))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::Captured;

    fn captured(bytes: &[u8]) -> Captured {
        Captured { head: bytes.to_vec(), tail: Vec::new(), total_bytes: bytes.len() as u64 }
    }

    #[test]
    fn a_text_is_no_longer_than_asked_for_whatever_the_bytes() {
        let note =
            |text: &str| text.find("\n[...").map(|at| (at, text.rfind("]\n").unwrap_or(0) + 2));
        for bytes in [
            vec![0xff; 100],
            vec![0x80; 1000],
            "ä€😀".repeat(99).into_bytes(),
            [vec![b'a'; 60], vec![0xff; 60]].concat(),
            [vec![0xff; 60], vec![b'a'; 60]].concat(),
        ] {
            for limit in 0..150 {
                let text = captured(&bytes).text(limit);
                let Some((head, tail)) = note(&text) else {
                    assert!(text.len() <= limit && text == String::from_utf8_lossy(&bytes));
                    continue;
                };
                assert!(head + text.len() - tail <= limit, "{limit} {text}");
            }
        }
        // Up to the limit all of it is there.
        assert_eq!(captured(&[0xff; 10]).text(30), "\u{fffd}".repeat(10));
        assert!(captured(&[0xff; 10]).text(29).contains(" bytes left out"));
        assert_eq!(captured("aäb".as_bytes()).text(3), "a\n[... 2 bytes left out ...]\nb");
    }
}
