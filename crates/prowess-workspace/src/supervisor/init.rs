//! The first process of a container. It starts supervisors there for whoever made the container,
//! and says whether runs have left anything behind.
//!
//! Nobody inside can end it, look into it or speak for it: it is the first process of its
//! namespace, it cannot be traced, and the socket that it has called is gone before anything else
//! runs. When the line is cut, it ends, and with it everything in the container.

#![allow(unsafe_code, reason = "processes are made and ended here")]

use std::collections::BTreeMap;
use std::io;
#[cfg(feature = "container")]
use std::os::fd::BorrowedFd;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, set_dumpable_behavior,
    set_parent_process_death_signal, wait,
};
use serde::{Deserialize, Serialize};

use super::descriptors::receive_with;
#[cfg(feature = "container")]
use super::descriptors::send_with;
#[cfg(feature = "container")]
use super::order::receive;
use super::order::{Sandbox, VERSION, send};
use super::run;

/// What it is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ask {
    /// For a supervisor; its standard streams come along.
    Supervise { sandbox: Sandbox },
    /// To end all other processes, and to say what is left.
    Sweep,
}

/// What it says first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// The version of orders that it knows.
    pub(crate) version: u32,
    /// The shell of the image: `bash`, or another one.
    pub(crate) shell: Option<String>,
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// A supervisor waits for its order.
    Started,
    /// What it could not do.
    Failed { cause: String },
    /// The container is as it was when it began.
    Clean,
    /// Something is left in it.
    Left { what: String },
}

/// Calls whoever made the container, and does what it is asked.
pub(crate) fn main(socket: &Path) -> ExitCode {
    // Whoever could look into this process could speak for it.
    let hidden = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let served =
        hidden.map_err(io::Error::from).and_then(|()| serve(&UnixStream::connect(socket)?));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("prowess-supervisor: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(line: &UnixStream) -> io::Result<()> {
    let shells = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/bin/sh"];
    let shell = shells.into_iter().find(|path| Path::new(path).exists()).map(str::to_owned);
    send(line, &Hello { version: VERSION, shell })?;
    let first = Traces::find();
    while let Some((asked, streams)) = take(line)? {
        let answer = match asked {
            Ask::Supervise { sandbox } => match start(sandbox, streams, line) {
                Ok(()) => Answer::Started,
                Err(cause) => Answer::Failed { cause: cause.to_string() },
            },
            Ask::Sweep => match sweep() {
                Err(cause) => Answer::Left { what: cause.to_string() },
                Ok(()) => match Traces::find().beyond(&first) {
                    Some(what) => Answer::Left { what },
                    None => Answer::Clean,
                },
            },
        };
        send(line, &answer)?;
    }
    Ok(())
}

/// The most bytes of a message.
const MOST_BYTES: usize = 4096;

/// Asks the first process of a container for something. Whoever asks waits for the answer before the
/// next message.
#[cfg(feature = "container")]
pub(crate) fn ask(
    line: &UnixStream,
    asked: &Ask,
    streams: &[BorrowedFd<'_>],
) -> io::Result<Answer> {
    let bytes = serde_json::to_vec(asked)?;
    if bytes.len() > MOST_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the message is too long"));
    }
    send_with(line, &bytes, streams)?;
    receive(line)
}

/// What is asked, with the descriptors for it; `None` if there will be no more.
fn take(line: &UnixStream) -> io::Result<Option<(Ask, Vec<OwnedFd>)>> {
    let mut bytes = [0; MOST_BYTES];
    match receive_with(line, &mut bytes)? {
        (0, _) => Ok(None),
        (count, streams) => Ok(Some((serde_json::from_slice(&bytes[..count])?, streams))),
    }
}

/// A copy of this process becomes a supervisor.
fn start(sandbox: Sandbox, streams: Vec<OwnedFd>, line: &UnixStream) -> io::Result<()> {
    let [control, stdout, stderr]: [OwnedFd; 3] =
        streams.try_into().map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let sandbox = serde_json::to_string(&sandbox)?;
    // Those that have ended are still among the processes that a container may have.
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
    // SAFETY: this process has one thread, so that its copy can do whatever it could.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let dressed = dress(control, stdout, stderr, line);
            let code = if dressed.is_ok() { run::run(&sandbox) } else { ExitCode::FAILURE };
            let code = i32::from(code != ExitCode::SUCCESS);
            // SAFETY: there is nothing to be put in order; the first process does that.
            unsafe { libc::_exit(code) }
        }
        _ => Ok(()),
    }
}

/// Gives a supervisor its standard streams, and nothing else.
fn dress(control: OwnedFd, stdout: OwnedFd, stderr: OwnedFd, line: &UnixStream) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    rustix::stdio::dup2_stdin(&control)?;
    rustix::stdio::dup2_stdout(&stdout)?;
    rustix::stdio::dup2_stderr(&stderr)?;
    drop((control, stdout, stderr));
    // SAFETY: this copy of the process never uses the line again.
    unsafe { libc::close(std::os::fd::AsRawFd::as_raw_fd(line)) };
    Ok(())
}

/// How long processes that were killed have to go.
const MOST_PATIENCE: Duration = Duration::from_secs(5);

/// Ends all other processes of the container.
fn sweep() -> io::Result<()> {
    let begun = Instant::now();
    loop {
        // SAFETY: of its namespace this is the first process, and all others may go.
        unsafe { libc::kill(-1, libc::SIGKILL) };
        match wait(WaitOptions::NOHANG) {
            Err(Errno::CHILD) if !has_others()? => return Ok(()),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            _ if begun.elapsed() > MOST_PATIENCE => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "processes that do not end"));
            }
            _ => std::thread::sleep(Duration::from_micros(200)),
        }
    }
}

fn has_others() -> io::Result<bool> {
    let own = rustix::process::getpid();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let pid = name.to_str().and_then(|name| Pid::from_raw(name.parse().ok()?));
        if pid.is_some_and(|pid| pid != own) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What a run can leave in a container besides processes: files in memory, and what processes share.
#[derive(Debug, PartialEq, Eq)]
struct Traces(BTreeMap<String, Vec<String>>);

/// Whatever is mounted there is the workspace, or ours.
const OWN: [&str; 2] = ["/workspace", "/prowess"];

impl Traces {
    fn find() -> Self {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let folders = mounts.lines().filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let (path, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
            let is_written = options.split(',').any(|option| option == "rw");
            let is_own = OWN.iter().any(|own| Path::new(path).starts_with(own));
            let is_kept = matches!(kind, "tmpfs" | "mqueue" | "ramfs") && is_written && !is_own;
            is_kept.then(|| path.to_owned())
        });
        let mut found: BTreeMap<String, Vec<String>> = folders
            .map(|path| {
                let mut names = Vec::new();
                list(Path::new(&path), &mut names);
                names.sort_unstable();
                (path, names)
            })
            .collect();
        for kind in ["shm", "sem", "msg"] {
            let path = format!("/proc/sysvipc/{kind}");
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            found.insert(path, text.lines().skip(1).map(str::to_owned).collect());
        }
        Self(found)
    }

    /// Where there is something else than there was.
    fn beyond(&self, first: &Self) -> Option<String> {
        let differs = |path: &&String| self.0.get(*path) != first.0.get(*path);
        self.0.keys().chain(first.0.keys()).find(differs).cloned()
    }
}

/// More names than these are not compared: then something was left.
const MOST_NAMES: usize = 1000;

/// What is below a folder. What cannot be looked into may hold anything.
fn list(folder: &Path, names: &mut Vec<String>) {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => return names.push(format!("{} {error}", folder.display())),
    };
    for entry in entries.flatten() {
        if names.len() > MOST_NAMES {
            return;
        }
        names.push(entry.path().to_string_lossy().into_owned());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            list(&entry.path(), names);
        }
    }
}
