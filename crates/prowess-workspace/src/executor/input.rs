//! What a command reads while it runs.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// What a command reads from its standard input.
#[derive(Debug)]
pub enum Stdin {
    /// These bytes, then the end.
    Bytes(Vec<u8>),
    /// What somebody writes while it runs.
    Live(LiveInput),
}

impl Default for Stdin {
    fn default() -> Self {
        Self::Bytes(Vec::new())
    }
}

impl From<Vec<u8>> for Stdin {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<LiveInput> for Stdin {
    fn from(input: LiveInput) -> Self {
        Self::Live(input)
    }
}

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

impl Default for TerminalSize {
    fn default() -> Self {
        Self { rows: 24, columns: 80 }
    }
}

/// Why a command was not given what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// It has not read what was written before.
    #[error(
        "the command has not read {unread_bytes} bytes that were written before; at most {most} \
         wait for it"
    )]
    Full {
        /// What it has not read.
        unread_bytes: usize,
        /// What may wait for it.
        most: usize,
    },
    /// It has ended, or reads no more.
    #[error("the command reads no more input")]
    Ended,
}

impl InputError {
    /// The stable name.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Full { .. } => "input_not_read",
            Self::Ended => "input_ended",
        }
    }
}

/// The input of a command that runs, as its executor takes it. When this is dropped, whoever writes
/// is told that nobody reads.
#[derive(Debug)]
pub struct LiveInput(Arc<Channel>);

/// The input of a command that runs, as somebody writes it. When this is dropped, the input ends.
#[derive(Debug)]
pub struct InputWriter(Arc<Channel>);

#[derive(Debug)]
struct Channel {
    state: Mutex<State>,
    changed: Notify,
    most: usize,
}

#[derive(Debug, Default)]
struct State {
    unread: VecDeque<u8>,
    /// Nobody writes any more.
    is_over: bool,
    /// Nobody reads any more.
    is_deaf: bool,
    /// Rung whenever something changes, for whoever waits without a runtime.
    bell: Option<Arc<super::live::Bell>>,
}

impl Channel {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, bell: Option<Arc<super::live::Bell>>) {
        self.changed.notify_one();
        if let Some(bell) = bell {
            bell.ring();
        }
    }
}

impl LiveInput {
    /// Both ends. At most so many bytes wait to be read.
    ///
    /// ```
    /// use prowess_workspace::{InputError, LiveInput};
    ///
    /// let (writer, _input) = LiveInput::channel(5);
    /// writer.write(b"12345").unwrap();
    /// assert_eq!(writer.write(b"6"), Err(InputError::Full { unread_bytes: 5, most: 5 }));
    /// ```
    pub fn channel(most: usize) -> (InputWriter, Self) {
        let channel = Arc::new(Channel { state: Mutex::default(), changed: Notify::new(), most });
        (InputWriter(Arc::clone(&channel)), Self(channel))
    }

    /// What was written since, once there is something; `None` at the end.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let channel = Arc::clone(&self.0);
            let changed = channel.changed.notified();
            match self.take() {
                Taken::Bytes(bytes) => return Some(bytes),
                Taken::Over => return None,
                Taken::Nothing => changed.await,
            }
        }
    }

    /// What was written since.
    pub(crate) fn take(&mut self) -> Taken {
        let mut state = self.0.state();
        match (state.unread.is_empty(), state.is_over) {
            (false, _) => Taken::Bytes(std::mem::take(&mut state.unread).into()),
            (true, true) => Taken::Over,
            (true, false) => Taken::Nothing,
        }
    }

    /// Gives back what could not be passed on: it is still unread.
    pub(crate) fn put_back(&mut self, bytes: &[u8]) {
        let mut state = self.0.state();
        for byte in bytes.iter().rev() {
            state.unread.push_front(*byte);
        }
    }

    /// Lets a bell ring whenever something changes.
    pub(crate) fn ring(&mut self, bell: &Arc<super::live::Bell>) {
        self.0.state().bell = Some(Arc::clone(bell));
        bell.ring();
    }
}

/// What a command is to be given next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Bytes(Vec<u8>),
    Nothing,
    Over,
}

impl Drop for LiveInput {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.is_deaf = true;
        state.unread = VecDeque::new();
        state.bell = None;
    }
}

impl InputWriter {
    /// Writes all of it, or nothing. Never waits.
    pub fn write(&self, bytes: &[u8]) -> Result<(), InputError> {
        let mut state = self.0.state();
        if state.is_deaf {
            return Err(InputError::Ended);
        }
        let unread_bytes = state.unread.len();
        if bytes.len() > self.0.most.saturating_sub(unread_bytes) {
            return Err(InputError::Full { unread_bytes, most: self.0.most });
        }
        state.unread.extend(bytes);
        let bell = state.bell.clone();
        drop(state);
        self.0.tell(bell);
        Ok(())
    }
}

impl Drop for InputWriter {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.is_over = true;
        let bell = state.bell.clone();
        drop(state);
        self.0.tell(bell);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_written_arrives_in_its_order_and_then_the_end() {
        let (writer, mut input) = LiveInput::channel(10);
        writer.write(b"ab").unwrap();
        writer.write(b"").unwrap();
        writer.write(b"c").unwrap();
        assert_eq!(input.next().await.unwrap(), b"abc");
        let later = tokio::spawn(async move {
            writer.write(b"d").unwrap();
        });
        assert_eq!(input.next().await.unwrap(), b"d");
        later.await.unwrap();
        assert_eq!(input.next().await, None);
    }

    #[test]
    fn nothing_is_lost_when_there_is_no_room() {
        let (writer, mut input) = LiveInput::channel(3);
        writer.write(b"abc").unwrap();
        let full = writer.write(b"d").unwrap_err();
        assert_eq!(full, InputError::Full { unread_bytes: 3, most: 3 });
        assert_eq!(full.code(), "input_not_read");
        assert_eq!(input.take(), Taken::Bytes(b"abc".to_vec()));
        input.put_back(b"bc");
        assert_eq!(writer.write(b"de").unwrap_err().code(), "input_not_read");
        writer.write(b"d").unwrap();
        assert_eq!(input.take(), Taken::Bytes(b"bcd".to_vec()));
        assert_eq!(input.take(), Taken::Nothing);
        drop(input);
        assert_eq!(writer.write(b"").unwrap_err().code(), "input_ended");
    }
}
