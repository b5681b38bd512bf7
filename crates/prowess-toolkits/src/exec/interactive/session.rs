//! A command that somebody talks to.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use prowess_runtime::{AgentName, Invocation, SessionKey, ToolOutcome};
use prowess_workspace::{InputError, InputWriter, LiveInput, RunOutcome, TerminalSize, Watcher};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::super::after::{After, Told};
use super::super::plan::{Plan, Runner, not_run};
use super::screen::{Exit, Screen};
use super::sessions::Clock;

/// Whose session it is. Nobody else comes near it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    session: SessionKey,
    agent: AgentName,
}

impl Owner {
    pub(crate) fn new(session: SessionKey, agent: AgentName) -> Self {
        Self { session, agent }
    }

    pub(crate) fn of(invocation: Invocation<'_>) -> Self {
        Self::new(invocation.session.clone(), invocation.agent.clone())
    }
}

/// The tools that a session is talked to with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Skill,
    Workspace,
}

/// What a session is made of.
pub(crate) struct Beginning {
    pub(crate) owner: Owner,
    pub(crate) family: Family,
    pub(crate) plan: Plan,
    /// What is to be done when it has ended, if there is something.
    pub(crate) after: Option<After>,
    /// What it reads first.
    pub(crate) input: Vec<u8>,
    pub(crate) then: AfterInput,
    pub(crate) terminal: Option<TerminalSize>,
}

/// What comes after the first input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterInput {
    /// What somebody writes.
    Wait,
    /// Nothing.
    End,
}

/// A command that somebody talks to. It is ended with this.
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) owner: Owner,
    pub(crate) family: Family,
    shared: Arc<Shared>,
    input: Mutex<Input>,
    is_terminal: bool,
    stop: CancellationToken,
    task: AbortHandle,
    /// Whether somebody has been told that it has ended.
    is_seen: AtomicBool,
}

/// What the session and its command both have.
struct Shared {
    screen: Screen,
    telling: Mutex<Telling>,
    has_told: Notify,
}

/// What there is to tell once the command has ended. It is found out once.
enum Telling {
    Nothing,
    Rest(BoxFuture<'static, Result<Told, ToolOutcome>>),
    Busy,
    Told { told: Arc<Result<Told, ToolOutcome>>, is_new: bool },
}

struct Input {
    writer: Option<InputWriter>,
    /// Bytes since the last line break.
    line_bytes: usize,
}

/// Why a command was not given what somebody wrote.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CannotWrite {
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(
        "a terminal takes lines of at most {LINE_BYTES} bytes, and would lose the rest of this one; \
         break it, or start the command without a terminal"
    )]
    LongLine,
}

impl CannotWrite {
    /// The stable name.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Input(error) => error.code(),
            Self::LongLine => "line_too_long",
        }
    }

    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::Input(InputError::Full { .. }) => {
                "Nothing of it was written. Wait until the command reads, or kill the session."
            }
            _ => "Nothing of it was written.",
        }
    }
}

/// The longest line that a terminal takes while it is being edited.
const LINE_BYTES: usize = 4095;

/// How long the line is that this leaves unfinished, if one of so many bytes was begun before.
pub(crate) fn typed(text: &str, begun: usize) -> Result<usize, CannotWrite> {
    let mut line_bytes = begun;
    for part in text.split_inclusive(['\n', '\r']) {
        let text = part.trim_end_matches(['\n', '\r']);
        line_bytes += text.len();
        if line_bytes > LINE_BYTES {
            return Err(CannotWrite::LongLine);
        }
        if text.len() < part.len() {
            line_bytes = 0;
        }
    }
    Ok(line_bytes)
}

/// What ends the input, at the end of what is written: Ctrl-D. A terminal knows it by itself.
const END: char = '\u{4}';

impl Session {
    /// Starts a command. Its end is noticed by this clock; then `afterwards` is done.
    pub(crate) fn begin<F: Future<Output = ()> + Send + 'static>(
        beginning: Beginning,
        runner: &Runner,
        clock: Clock,
        afterwards: impl FnOnce(String) -> F + Send + 'static,
    ) -> Self {
        let Beginning { owner, family, plan, mut after, input, then, terminal } = beginning;
        let settings = &runner.settings.sessions;
        let screen = Screen::new(settings.line_limits(), runner.settings.shown_output_bytes / 2);
        let telling = Mutex::new(Telling::Nothing);
        let shared = Arc::new(Shared { screen, telling, has_told: Notify::new() });
        // It was looked at before.
        let line_bytes = String::from_utf8_lossy(&input);
        let line_bytes = typed(&line_bytes, 0).unwrap_or(0);
        let (writer, live) = LiveInput::channel(settings.max_unread_input_bytes.max(input.len()));
        // There is room for it, and somebody who reads.
        let _ = writer.write(&input);
        let (id, stop) = (uuid::Uuid::now_v7().to_string(), CancellationToken::new());
        let watcher = watcher(&shared, runner.watcher.clone());
        let (own, token, key) = (Arc::clone(&shared), stop.clone(), owner.session.clone());
        let (runner, own_id) = (runner.clone(), id.clone());
        let work = async move {
            let mut run = plan.run();
            (run.stdin, run.terminal) = (live.into(), terminal);
            (run.watcher, run.stop) = (Some(watcher), Some(token));
            let ran = runner.executor.run(run).await;
            let exit = ran.as_ref().map(exit_of).map_err(|why| Box::new(not_run(why)));
            if let (Ok(outcome), Some(mut after)) = (ran, after.take()) {
                after.release();
                let rest = async move { after.tell(&runner, &key, plan, outcome).await };
                *own.telling() = Telling::Rest(Box::pin(rest));
            }
            own.screen.end(exit, clock.now());
            drop(own);
            afterwards(own_id).await;
        };
        let task = tokio::spawn(work.in_current_span()).abort_handle();
        let input = Mutex::new(Input {
            writer: Some(writer).filter(|_| then == AfterInput::Wait),
            line_bytes,
        });
        let is_terminal = terminal.is_some();
        let is_seen = AtomicBool::new(false);
        Self { id, owner, family, shared, input, is_terminal, stop, task, is_seen }
    }

    pub(crate) fn screen(&self) -> &Screen {
        &self.shared.screen
    }

    /// Writes all of this, or nothing. Never waits.
    pub(crate) fn write(&self, text: &str) -> Result<(), CannotWrite> {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        let (text, ends) = match text.strip_suffix(END).filter(|_| !self.is_terminal) {
            Some(text) => (text, true),
            None => (text, false),
        };
        let line_bytes = match self.is_terminal {
            true => typed(text, input.line_bytes)?,
            false => 0,
        };
        input.writer.as_ref().ok_or(InputError::Ended)?.write(text.as_bytes())?;
        input.line_bytes = line_bytes;
        if ends {
            input.writer = None;
        }
        Ok(())
    }

    /// Asks the command to end; it is made to when its grace is over.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Somebody is told that it has ended.
    pub(crate) fn see(&self) {
        self.is_seen.store(true, Ordering::Relaxed);
    }

    /// Whether it has ended, and somebody was told so.
    pub(crate) fn is_over(&self) -> bool {
        self.is_seen.load(Ordering::Relaxed) && self.screen().ended().is_some()
    }

    /// What there is to tell of a command that has ended, and whether nobody has been told before;
    /// `None` if there is nothing. However many ask at once, it is found out once, also if whoever
    /// asks first goes away.
    pub(crate) async fn told(&self) -> Option<(Arc<Result<Told, ToolOutcome>>, bool)> {
        loop {
            let mut has_told = std::pin::pin!(self.shared.has_told.notified());
            has_told.as_mut().enable();
            {
                let mut telling = self.shared.telling();
                match &mut *telling {
                    Telling::Nothing => return None,
                    Telling::Told { told, is_new } => {
                        return Some((Arc::clone(told), std::mem::take(is_new)));
                    }
                    Telling::Busy => {}
                    Telling::Rest(_) => {
                        if let Telling::Rest(rest) = std::mem::replace(&mut *telling, Telling::Busy)
                        {
                            let shared = Arc::clone(&self.shared);
                            tokio::spawn(shared.tell(rest).in_current_span());
                        }
                    }
                }
            }
            has_told.await;
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Whoever stops waiting for a run ends it.
        self.task.abort();
    }
}

impl Shared {
    fn telling(&self) -> MutexGuard<'_, Telling> {
        self.telling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn tell(self: Arc<Self>, rest: BoxFuture<'static, Result<Told, ToolOutcome>>) {
        // Whoever waits is told, even if this breaks down.
        let broken = ToolOutcome::error("workspace_io", "Error: the outputs were not collected");
        let mut teller = Teller { shared: self, told: Some(Err(broken)) };
        teller.told = Some(rest.await);
    }
}

/// Tells what it has when it goes.
struct Teller {
    shared: Arc<Shared>,
    told: Option<Result<Told, ToolOutcome>>,
}

impl Drop for Teller {
    fn drop(&mut self) {
        if let Some(told) = self.told.take() {
            *self.shared.telling() = Telling::Told { told: Arc::new(told), is_new: true };
        }
        self.shared.has_told.notify_waiters();
    }
}

/// Shows what a command writes, to the host as well.
fn watcher(shared: &Arc<Shared>, host: Option<Watcher>) -> Watcher {
    let shared = Arc::clone(shared);
    Watcher::new(move |stream, bytes| {
        shared.screen.show(stream, bytes);
        if let Some(host) = &host {
            host.see(stream, bytes);
        }
    })
}

fn exit_of(outcome: &RunOutcome) -> Exit {
    Exit {
        exit_code: outcome.exit_code,
        timed_out: outcome.timed_out,
        limits_hit: outcome.limits_hit.clone(),
        isolation: outcome.isolation.clone(),
    }
}
