//! What a command shows, and how it ended.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use prowess_runtime::ToolOutcome;
use prowess_workspace::{Isolation, LimitHit, OutputStream};
use tokio::sync::Notify;
use tokio::time::Duration;

use super::hint::{self, Interaction, interaction};
use super::lines::{Cursor, LineLimits, Lines, Page};

/// So long after it wrote something, a command has said what it wanted to say.
const QUIET: Duration = Duration::from_millis(75);

/// What a command shows, and how it ended. Whoever waits is told of every change.
#[derive(Debug)]
pub(crate) struct Screen {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    lines: Lines,
    /// The beginning, for whoever wants both ends.
    head: String,
    head_bytes: usize,
    /// Bytes of each stream that are no whole character yet.
    unfinished: [Vec<u8>; 2],
    cursor: Cursor,
    /// How often something was written; and how often when it was read last.
    writes: u64,
    read_writes: u64,
    written_at: Option<Instant>,
    end: Option<End>,
}

/// How a command ended.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) exit: Result<Exit, Box<ToolOutcome>>,
    pub(crate) at: Instant,
}

/// A command that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Exit {
    pub(crate) exit_code: i32,
    pub(crate) timed_out: bool,
    pub(crate) limits_hit: Vec<LimitHit>,
    pub(crate) isolation: Isolation,
}

/// Everything that there is to see at a moment.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) page: Page,
    pub(crate) interaction: Option<Interaction>,
    pub(crate) end: Option<End>,
}

/// What is wanted of a screen at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    /// From this line on; else from where somebody stopped reading.
    pub(crate) offset: Option<u64>,
    pub(crate) lines: u64,
    pub(crate) bytes: usize,
}

/// All of it, with its middle left out if it is too long.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Whole {
    pub(crate) text: String,
    pub(crate) total_bytes: u64,
    pub(crate) is_cut: bool,
    pub(crate) lines: u64,
}

/// What stands for a middle that is left out.
const CUT: &str = "\n...[output truncated]...\n";

impl Screen {
    pub(crate) fn new(limits: LineLimits, head_bytes: usize) -> Self {
        let state = State {
            lines: Lines::new(limits),
            head: String::new(),
            head_bytes,
            unfinished: [Vec::new(), Vec::new()],
            cursor: Cursor::default(),
            writes: 0,
            read_writes: 0,
            written_at: None,
            end: None,
        };
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows what a command writes.
    pub(crate) fn show(&self, stream: OutputStream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let mut state = self.state();
        let state = &mut *state;
        let unfinished = &mut state.unfinished[stream as usize];
        unfinished.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(unfinished) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => whole_characters(unfinished),
            Ok(text) => text.len(),
        };
        let rest = unfinished.split_off(whole);
        let whole = std::mem::replace(unfinished, rest);
        state.add(&String::from_utf8_lossy(&whole));
        self.changed.notify_waiters();
    }

    /// It has ended, and what is shown is all.
    pub(crate) fn end(&self, exit: Result<Exit, Box<ToolOutcome>>, at: Instant) {
        let mut state = self.state();
        for stream in 0..2 {
            let rest = std::mem::take(&mut state.unfinished[stream]);
            state.add(&String::from_utf8_lossy(&rest));
        }
        state.end = Some(End { exit, at });
        self.changed.notify_waiters();
    }

    pub(crate) fn ended(&self) -> Option<End> {
        self.state().end.clone()
    }

    /// How often something was written until now.
    pub(crate) fn writes(&self) -> u64 {
        self.state().writes
    }

    /// How often something was written until somebody read it last.
    pub(crate) fn read_writes(&self) -> u64 {
        self.state().read_writes
    }

    /// Waits until the command has ended, or has written something since and then been quiet for a
    /// moment; or until this time.
    pub(crate) async fn settle(&self, since: u64, until: Option<Instant>) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let now = Instant::now();
            let quiet = {
                let state = self.state();
                if state.end.is_some() {
                    return;
                }
                state.written_at.filter(|_| state.writes > since).map(|it| it + QUIET)
            };
            let wake = [quiet, until].into_iter().flatten().min();
            match wake {
                Some(wake) if wake <= now => return,
                Some(wake) => drop(tokio::time::timeout_at(wake.into(), changed).await),
                None => changed.await,
            }
        }
    }

    /// Waits until the command has ended.
    pub(crate) async fn finish(&self) -> End {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(end) = self.ended() {
                return end;
            }
            changed.await;
        }
    }

    /// What there is to see. What was read counts as read.
    pub(crate) fn view(&self, want: Want) -> View {
        let mut state = self.state();
        let from = want.offset.map_or(state.cursor, Cursor::at);
        let page = state.lines.read(from, want.lines, want.bytes);
        state.cursor = page.next;
        if page.remaining == 0 {
            state.read_writes = state.writes;
        }
        let end = state.end.clone();
        let is_waiting = end.is_none() && page.remaining == 0;
        let interaction = is_waiting.then(|| interaction(&state.lines.last(hint::LINES))).flatten();
        View { page, interaction, end }
    }

    /// All that was shown, at most so many bytes of it. What was read counts as read.
    pub(crate) fn whole(&self, most: usize) -> Whole {
        let mut state = self.state();
        let page = state.lines.read(Cursor::default(), u64::MAX, usize::MAX);
        state.cursor = page.next;
        state.read_writes = state.writes;
        let (all, total_bytes) = (page.text, state.lines.total_bytes());
        let lines = page.next.line;
        if page.dropped == 0 && all.len() <= most {
            return Whole { text: all, total_bytes, is_cut: false, lines };
        }
        let half = most / 2;
        let head = &state.head[..state.head.floor_char_boundary(half)];
        let tail = &all[all.ceil_char_boundary(all.len().saturating_sub(most - half))..];
        Whole { text: [head, CUT, tail].concat(), total_bytes, is_cut: true, lines }
    }
}

impl State {
    fn add(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let room = self.head_bytes.saturating_sub(self.head.len());
        self.head.push_str(&text[..text.floor_char_boundary(room.min(text.len()))]);
        if room < text.len() {
            // Nothing that comes later belongs to the beginning.
            self.head_bytes = self.head.len();
        }
        self.lines.push(text);
        self.writes += 1;
        self.written_at = Some(Instant::now());
    }
}

/// How many of these bytes are not the beginning of a character that goes on.
fn whole_characters(bytes: &[u8]) -> usize {
    let mut from = 0;
    loop {
        match std::str::from_utf8(&bytes[from..]) {
            Ok(_) => return bytes.len(),
            Err(error) => match error.error_len() {
                Some(length) => from += error.valid_up_to() + length,
                None => return from + error.valid_up_to(),
            },
        }
    }
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;
