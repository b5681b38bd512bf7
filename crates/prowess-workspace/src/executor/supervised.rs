//! A supervisor at work.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::local::io as failed;
use super::output::drain;
use super::{Captured, ExecError, Watcher};
use crate::supervisor::{ASKED, Ended, Order, RUN, Report, later, receive, send, send_bytes};

/// How long a supervisor may take beyond the time of its command.
const PATIENCE: Duration = Duration::from_secs(30);

/// The line between a supervisor and whoever waits for it. When it is cut, the run ends.
pub(crate) struct Line {
    ours: UnixStream,
    theirs: UnixStream,
}

impl Line {
    pub(crate) fn new() -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        Ok(Self { ours, theirs })
    }

    pub(crate) fn hang_up_when_dropped(&self) -> io::Result<HangUp> {
        self.ours.try_clone().map(HangUp)
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

/// Has a supervisor carry out an order, and waits for its report. Blocks.
pub(crate) fn supervise(
    supervisor: &Path,
    order: &Order,
    stdin: &[u8],
    line: Line,
    watcher: Option<&Watcher>,
) -> Result<Supervised, ExecError> {
    let begun = Instant::now();
    let Line { ours: control, theirs } = line;
    let mut child = Reaped(
        std::process::Command::new(supervisor)
            .args([ASKED, RUN])
            .env_clear()
            .current_dir("/")
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| ExecError::Supervisor {
                cause: format!("{}: {error}", supervisor.display()),
            })?,
    );
    let told = send(&control, order).and_then(|()| send_bytes(&control, stdin));
    let limits = &order.limits;
    let deadline = later(later(begun, limits.wall), limits.grace) + PATIENCE;
    let (stdout, stderr) = (child.0.stdout.take(), child.0.stderr.take());
    let captured = drain(stdout, stderr, order.limits.output_bytes, watcher, deadline);
    let [stdout, stderr] = captured.map_err(failed("reading what the command writes"))?;
    // It writes its report before it ends, and the pipes end with it.
    let _ = control.set_read_timeout(Some(PATIENCE));
    let report = receive(&control);
    let duration = begun.elapsed();
    if report.is_ok() {
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
        (Err(_), Err(error)) => Err(ExecError::Supervisor { cause: error.to_string() }),
        (Err(error), _) => Err(ExecError::Lost { cause: format!("{error} {}", stderr.text(2000)) }),
    }
}

/// A process that is ended with its owner, if it has not ended before.
struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
