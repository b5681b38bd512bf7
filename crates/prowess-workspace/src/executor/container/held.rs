//! A container, and the line to its first process.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::super::ExecError;
use super::super::supervised::Waiting;
use super::super::work::io;
use super::keeper::Jobs;
use crate::supervisor::{Answer, Ask, Hello, Sandbox, VERSION, ask, receive};

/// How long the first process may take for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A container that runs. It is removed with this.
#[derive(Debug)]
pub(crate) struct Held {
    id: String,
    line: UnixStream,
    shell: Option<String>,
    jobs: Jobs,
    /// Where the socket was; it is seen inside.
    _folder: tempfile::TempDir,
}

impl Held {
    /// One that was made, once it has said what it is. Blocks.
    pub(crate) fn greet(
        (id, line, folder): (String, UnixStream, tempfile::TempDir),
        jobs: Jobs,
    ) -> Result<Self, ExecError> {
        let mut held = Self { id, line, shell: None, jobs, _folder: folder };
        held.line.set_read_timeout(Some(PATIENCE)).map_err(io("connecting a container"))?;
        let hello: Hello = receive(&held.line).map_err(io("connecting a container"))?;
        if hello.version != VERSION {
            let cause = format!("it speaks version {}, and not {VERSION}", hello.version);
            return Err(ExecError::Supervisor { cause });
        }
        held.shell = hello.shell;
        Ok(held)
    }

    /// The shell of the image.
    pub(crate) fn shell(&self) -> Option<&str> {
        self.shell.as_deref()
    }

    /// A supervisor in it that waits for its order. Blocks.
    pub(crate) fn supervisor(&self, sandbox: Sandbox) -> Result<Waiting, ExecError> {
        let lost = |error: std::io::Error| ExecError::Lost { cause: error.to_string() };
        let (line, theirs) = UnixStream::pair().map_err(lost)?;
        let (stdout, to_stdout) = std::io::pipe().map_err(lost)?;
        let (stderr, to_stderr) = std::io::pipe().map_err(lost)?;
        let streams = [theirs.as_fd(), to_stdout.as_fd(), to_stderr.as_fd()];
        match ask(&self.line, &Ask::Supervise { sandbox }, &streams).map_err(lost)? {
            Answer::Started => Ok(Waiting::elsewhere(line, stdout.into(), stderr.into())),
            Answer::Failed { cause } => Err(ExecError::Start { cause }),
            other => Err(ExecError::Lost { cause: format!("{other:?}") }),
        }
    }

    /// Ends everything in it but its first process. Whether it is as it was when it began. Blocks.
    pub(crate) fn is_clean(&self) -> bool {
        match ask(&self.line, &Ask::Sweep, &[]) {
            Ok(Answer::Clean) => true,
            Ok(other) => {
                tracing::debug!(container = self.id, ?other, "a container is not used again");
                false
            }
            Err(_) => false,
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // With the line, everything in it ends at once.
        let _ = self.line.shutdown(std::net::Shutdown::Both);
        self.jobs.remove(std::mem::take(&mut self.id));
    }
}
