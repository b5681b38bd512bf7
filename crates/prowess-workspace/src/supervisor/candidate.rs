//! The process that will be the command, made before it is known which one.
//!
//! Whatever is the same for all commands of a sandbox takes place before there is an order: the
//! process has joined the groups of the run, has given up its rights, and obeys the filters of
//! system calls. What it may touch, and how much it may use, the order says.

#![allow(unsafe_code, reason = "the last steps before another program have no safe words")]

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, set_parent_process_death_signal};

use super::cgroup::Cgroups;
use super::confine::{CannotConfine, Progress, confine, exec, give_up, memory, rules};
use super::landlock::Rules;
use super::order::{Groups, Order, Sandbox, Streams, receive, send};
use super::streams::Given;

/// A process that waits for its order.
pub(crate) struct Candidate {
    sandbox: Sandbox,
    groups: Groups,
    streams: Streams,
    pid: Pid,
    process: OwnedFd,
    line: UnixStream,
    /// They are its rules, too: what is added here counts there.
    rules: Option<Rules>,
    input: File,
    progress: File,
}

impl Candidate {
    pub(crate) fn new(
        sandbox: Sandbox,
        cgroups: &Cgroups,
        given: Given,
    ) -> Result<Self, CannotConfine> {
        let rules = rules(sandbox)?;
        Self::with_rules(sandbox, cgroups, given, rules).map_err(CannotConfine::Process)
    }

    fn with_rules(
        sandbox: Sandbox,
        cgroups: &Cgroups,
        given: Given,
        rules: Option<Rules>,
    ) -> io::Result<Self> {
        let streams = given.streams();
        let (line, theirs) = UnixStream::pair()?;
        let (input, progress) = (memory(b"")?, memory(b"")?);
        // SAFETY: this process has one thread, so that its copy can do whatever it could.
        let pid = match unsafe { libc::fork() } {
            -1 => return Err(io::Error::last_os_error()),
            0 => {
                // When the supervisor goes, so does its end.
                drop(line);
                let mut progress = Progress::new(progress);
                let streams = (given, input);
                let cause = become_command(sandbox, cgroups, rules, theirs, streams, &mut progress);
                progress.fail(&cause.unwrap_or_else(|cause| cause));
                // SAFETY: there is nothing to be put in order; the supervisor does that.
                unsafe { libc::_exit(1) }
            }
            pid => Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData)?,
        };
        let process = pidfd_open(pid, PidfdFlags::empty())?;
        let groups = cgroups.groups();
        Ok(Self { sandbox, groups, streams, pid, process, line, rules, input, progress })
    }

    /// Whether it can carry out this order, in these groups.
    pub(crate) fn fits(&self, order: &Order, groups: Groups) -> bool {
        self.sandbox == order.sandbox()
            && self.groups == groups
            && self.streams == order.streams
            && self.rules.as_ref().is_none_or(Rules::are_current)
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Lets it be the command of an order. The process, and how far it gets.
    pub(crate) fn start(mut self, order: &Order, stdin: &[u8]) -> io::Result<(OwnedFd, Progress)> {
        if let Some(rules) = &mut self.rules {
            rules.add(order).map_err(io::Error::other)?;
        }
        self.input.write_all_at(stdin, 0)?;
        // If it is gone, it has said why.
        let _ = send(&self.line, order);
        Ok((self.process, Progress::new(self.progress)))
    }
}

/// What the process does. If it comes back, then because of this.
fn become_command(
    sandbox: Sandbox,
    cgroups: &Cgroups,
    rules: Option<Rules>,
    line: UnixStream,
    (given, input): (Given, File),
    progress: &mut Progress,
) -> Result<CannotConfine, CannotConfine> {
    let die_with_parent = || {
        let asked = set_parent_process_death_signal(Some(Signal::KILL));
        asked.map_err(|error| CannotConfine::Process(error.into()))
    };
    die_with_parent()?;
    rustix::process::setsid().map_err(|error| CannotConfine::Process(error.into()))?;
    let given = given.take_on().map_err(CannotConfine::Process)?;
    cgroups.entrances().join().map_err(CannotConfine::Process)?;
    give_up(sandbox)?;
    // Becoming somebody else has undone it.
    die_with_parent()?;
    let order: Order = receive(line).map_err(CannotConfine::Order)?;
    confine(&order, cgroups.groups(), rules)?;
    let input = match (given, input.metadata().map_err(CannotConfine::Order)?.len()) {
        (Some(given), _) => given,
        (None, 0) => Stdio::null(),
        (None, _) => Stdio::from(input),
    };
    Ok(exec(&order, input, progress))
}
