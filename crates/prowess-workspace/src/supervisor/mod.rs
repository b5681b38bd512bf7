//! The supervisor: a small program that sets a sandbox up, runs one command in it, and ends
//! everything that the command started.
//!
//! It is a program of its own because all of this happens between a fork and an exec, in a process
//! without threads, and because it must outlive the program that asked for the run: when that one
//! dies, the connection between them breaks, and the supervisor ends the command.

mod bubblewrap;
mod canary;
mod candidate;
mod cgroup;
mod confine;
mod descriptors;
mod disk;
mod init;
mod landlock;
mod order;
mod processes;
mod program;
mod run;
mod seccomp;
mod streams;

use std::path::Path;
use std::process::ExitCode;

pub(crate) use bubblewrap::SUPERVISOR as INSIDE;
pub(crate) use canary::{Attempts, Finding, Hoard};
pub(crate) use cgroup::start_time;
#[cfg(feature = "container")]
pub(crate) use init::{Answer, Ask, Hello, ask};
pub(crate) use order::{
    Ended, Groups, Identity, Installed, Order, Report, Request, Sandbox, Streams, VERSION, receive,
    send, send_bytes,
};
pub(crate) use program::SYSTEM_FOLDERS;
pub(crate) use run::later;
pub(crate) use streams::send_descriptor;

/// The first argument by which a program is asked to be the supervisor.
pub(crate) const ASKED: &str = "__prowess-supervisor";

/// What the supervisor is to do.
pub(crate) const RUN: &str = "run";
const ENTER: &str = "enter";
pub(crate) const CANARY: &str = "canary";
pub(crate) const INIT: &str = "init";

/// Is the supervisor, if this program was started as one, and ends it; else does nothing.
///
/// A program that runs commands in a sandbox either has `prowess-supervisor` installed beside it, or
/// calls this before anything else in `main` and is its own supervisor.
///
/// ```
/// prowess_workspace::supervise_if_asked();
/// // … the program itself
/// ```
pub fn supervise_if_asked() {
    HOSTED.store(true, std::sync::atomic::Ordering::Relaxed);
    if std::env::args_os().nth(1).is_some_and(|first| first == ASKED) {
        std::process::exit(i32::from(supervise() != ExitCode::SUCCESS));
    }
}

/// Whether this program can be its own supervisor.
pub(crate) static HOSTED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// The program `prowess-supervisor`.
pub fn supervise() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(2).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [RUN, sandbox] => run::run(sandbox),
        [ENTER, order] => confine::enter(order),
        [CANARY, rest @ ..] => canary::main(rest),
        [INIT, socket] => init::main(Path::new(socket)),
        _ => {
            eprintln!("prowess-supervisor sets up sandboxes for Prowess; it is not run by hand");
            ExitCode::FAILURE
        }
    }
}
