//! A supervisor at work.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::live::Live;
use super::output::drain;
use super::work::io as failed;
use super::{Captured, ExecError, Watcher};
use crate::supervisor::{
    ASKED, Ended, HOSTED, Order, RUN, Report, Sandbox, later, receive, send, send_bytes,
};

/// How long a supervisor may take beyond the time of its command.
const PATIENCE: Duration = Duration::from_secs(30);

/// The supervisor program: this one if it is named, else whichever is found.
pub(crate) fn find_supervisor(configured: Option<PathBuf>) -> Result<PathBuf, ExecError> {
    let named = || std::env::var_os("PROWESS_SUPERVISOR").map(PathBuf::from);
    if let Some(path) = configured.or_else(named) {
        let is_there = path.is_file();
        let missing = || ExecError::Supervisor { cause: format!("{} is no file", path.display()) };
        return is_there.then(|| path.clone()).ok_or_else(missing);
    }
    let own = std::env::current_exe().ok();
    let beside = own.as_ref().map(|own| own.with_file_name(SUPERVISOR));
    let itself = own.filter(|_| HOSTED.load(Ordering::Relaxed));
    let found = beside.filter(|path| path.is_file()).or(itself).or_else(|| on_path(SUPERVISOR));
    let cause = || format!("there is no {SUPERVISOR} beside this program or on the path");
    found.ok_or_else(|| ExecError::Supervisor { cause: cause() })
}

const SUPERVISOR: &str = "prowess-supervisor";

pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// A supervisor that waits for its order. When the line to it is cut, its run ends.
#[derive(Debug)]
pub(crate) struct Waiting {
    line: UnixStream,
    stdout: File,
    stderr: File,
    /// The process, if it is one of ours. In a container it is not.
    child: Option<Reaped>,
}

impl Waiting {
    /// Starts one that expects an order for such a sandbox.
    pub(crate) fn start(supervisor: &Path, sandbox: Sandbox) -> Result<Self, ExecError> {
        let cause = |error: io::Error| format!("{}: {error}", supervisor.display());
        let failed_to_start = |error| ExecError::Supervisor { cause: cause(error) };
        let sandbox = serde_json::to_string(&sandbox).map_err(|it| failed_to_start(it.into()))?;
        let (line, theirs) = UnixStream::pair().map_err(failed("connecting the supervisor"))?;
        let child = std::process::Command::new(supervisor)
            .args([ASKED, RUN, &sandbox])
            .env_clear()
            .current_dir("/")
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = Reaped(child.map_err(failed_to_start)?);
        let missing = || failed_to_start(io::ErrorKind::BrokenPipe.into());
        let stdout = child.0.stdout.take().ok_or_else(missing)?;
        let stderr = child.0.stderr.take().ok_or_else(missing)?;
        let (stdout, stderr) = (OwnedFd::from(stdout).into(), OwnedFd::from(stderr).into());
        Ok(Self { line, stdout, stderr, child: Some(child) })
    }

    /// One that somebody else has started, with the other end of the line, and where its command
    /// writes to.
    #[cfg(feature = "container")]
    pub(crate) fn elsewhere(line: UnixStream, stdout: OwnedFd, stderr: OwnedFd) -> Self {
        Self { line, stdout: stdout.into(), stderr: stderr.into(), child: None }
    }

    pub(crate) fn hang_up_when_dropped(&self) -> Result<HangUp, ExecError> {
        self.line.try_clone().map(HangUp).map_err(failed("connecting the supervisor"))
    }
}

/// The next supervisor, started while the one before it is at work: a run does not wait for it.
#[derive(Debug, Default)]
pub(crate) struct Next(Mutex<Option<Waiting>>);

impl Next {
    /// The one that is ready, if there is one.
    pub(crate) fn take(&self) -> Option<Waiting> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        // Somebody may have ended it meanwhile.
        let has_ended = |child: &mut Reaped| !matches!(child.0.try_wait(), Ok(None));
        (!waiting.child.as_mut().is_some_and(has_ended)).then_some(waiting)
    }

    /// Starts one, if none is there. Whoever wants it meanwhile waits for it: of two that were
    /// started at once, one would have to be ended, with what it has made for a run.
    fn prepare(&self, supervisor: &Path, sandbox: Sandbox) {
        let mut next = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if next.is_none() {
            // If it cannot be started, the next run will say why.
            *next = Waiting::start(supervisor, sandbox).ok();
        }
    }
}

impl Drop for Next {
    fn drop(&mut self) {
        let waiting = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Waiting { line, stdout, stderr, child: _child }) = waiting {
            // It ends then, and takes with it what it has made for a run.
            drop(line);
            let _ = drain(stdout, stderr, 0, None, Instant::now() + PATIENCE, None);
        }
    }
}

/// Cuts the line with its owner.
pub(crate) struct HangUp(UnixStream);

impl Drop for HangUp {
    fn drop(&mut self) {
        let _ = self.0.shutdown(std::net::Shutdown::Both);
    }
}

pub(crate) type Supervised = (Ended, Duration, [Captured; 2]);

/// Has a supervisor carry out an order, and waits for its report. Meanwhile the next one is
/// started. Blocks.
pub(crate) fn supervise(
    waiting: Waiting,
    order: &Order,
    mut live: Live,
    watcher: Option<&Watcher>,
    next: Option<(&Next, &Path)>,
) -> Result<Supervised, ExecError> {
    let begun = Instant::now();
    let Waiting { line: control, stdout, stderr, mut child } = waiting;
    let told = send(&control, order)
        .and_then(|()| send_bytes(&control, &live.bytes))
        .and_then(|()| live.pass_on(&control));
    if let Some((next, supervisor)) = next {
        next.prepare(supervisor, order.sandbox());
    }
    let limits = &order.limits;
    let deadline = later(later(begun, limits.wall), limits.grace) + PATIENCE;
    let more = Some((&mut live, &control));
    let captured = drain(stdout, stderr, order.limits.output_bytes, watcher, deadline, more);
    let [stdout, stderr] = captured.map_err(failed("reading what the command writes"))?;
    // It writes its report before it ends, and the pipes end with it.
    let _ = control.set_read_timeout(Some(PATIENCE));
    let report = receive(&control);
    let duration = begun.elapsed();
    if let (true, Some(child)) = (report.is_ok(), &mut child) {
        let _ = child.0.wait();
    }
    match (report, told) {
        (Ok(Report::Ended(ended)), _) if ended.survivors > 0 => Err(ExecError::Lost {
            cause: format!("{} processes could not be ended", ended.survivors),
        }),
        (Ok(Report::Ended(ended)), _) => Ok((ended, duration, [stdout, stderr])),
        (Ok(Report::Refused { cause }), _) => {
            let said = stderr.text(2000);
            let cause = [cause.as_str(), said.trim()].join(" ").trim().to_owned();
            Err(ExecError::Start { cause })
        }
        (Ok(Report::NotAllowed { cause }), _) => Err(ExecError::NotAllowed { cause }),
        (Err(_), Err(error)) => Err(ExecError::Supervisor { cause: error.to_string() }),
        (Err(error), _) => Err(ExecError::Lost { cause: format!("{error} {}", stderr.text(2000)) }),
    }
}

/// A process that is ended with its owner, if it has not ended before.
#[derive(Debug)]
struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
