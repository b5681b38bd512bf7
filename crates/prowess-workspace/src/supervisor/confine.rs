//! From the supervisor to the command: limits, another identity, no rights, and the rules of the
//! kernel. Nothing here can be undone by what comes after.

#![allow(unsafe_code, reason = "the last steps before another program have no safe words")]

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::FromRawFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use ::landlock::{RulesetError, RulesetStatus};
use rustix::fs::MemfdFlags;
use rustix::process::{Gid, Resource, Rlimit, Uid, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::landlock::Rules;
use super::order;
use super::order::{Groups, Identity, Order, Sandbox, Streams};
use super::program::{self, NoProgram};
use super::seccomp::{self, NoFilter};
use super::streams::Given;
use crate::executor::Tier;

/// What the last steps towards a command need.
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct Entrance {
    pub(crate) order: Order,
    pub(crate) groups: Groups,
    /// The descriptor that says how far it got.
    pub(crate) progress: i32,
    /// The descriptor that came for the command.
    pub(crate) given: Option<i32>,
}

/// Why a command cannot be confined; nothing was started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CannotConfine {
    #[error("a process cannot be made: {0}")]
    Process(io::Error),
    #[error("the order does not reach it: {0}")]
    Order(io::Error),
    #[error("the limits cannot be set: {0}")]
    Limits(io::Error),
    #[error("descriptors cannot be closed: {0}")]
    Descriptors(io::Error),
    #[error("rights cannot be dropped: {0}")]
    Rights(io::Error),
    #[error("{}: {cause}", cwd.display())]
    Cwd { cwd: PathBuf, cause: io::Error },
    #[error(transparent)]
    Landlock(#[from] RulesetError),
    #[error("this kernel has no Landlock")]
    NoLandlock,
    #[error(transparent)]
    Filter(#[from] NoFilter),
    #[error(transparent)]
    Seccomp(#[from] seccompiler::Error),
    #[error(transparent)]
    Program(#[from] NoProgram),
    #[error("{program}: {cause}")]
    Start { program: String, cause: io::Error },
}

/// A file in memory that holds these bytes.
pub(crate) fn memory(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("prowess", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

/// What is written when everything but the command itself is done.
pub(crate) const READY: &str = "ready";

/// What is written before the cause if the program may not be started.
pub(crate) const NOT_ALLOWED: &str = "not allowed: ";

/// How far a command got on its way to be started, for whoever waits outside.
pub(crate) struct Progress(File);

impl Progress {
    pub(crate) fn new(file: File) -> Self {
        Self(file)
    }

    pub(crate) fn say(&mut self, text: &str) {
        // Nobody else is there who could be told of a failure.
        let _ = self.0.set_len(0);
        let _ = self.0.seek(SeekFrom::Start(0));
        let _ = self.0.write_all(text.as_bytes());
    }

    /// Says why there is no command.
    pub(crate) fn fail(&mut self, why: &CannotConfine) {
        match why {
            CannotConfine::Program(why) if why.is_forbidden() => {
                self.say(&format!("{NOT_ALLOWED}{why}"));
            }
            why => self.say(&why.to_string()),
        }
    }

    pub(crate) fn said(&mut self) -> io::Result<String> {
        let mut text = String::new();
        self.0.seek(SeekFrom::Start(0))?;
        self.0.read_to_string(&mut text)?;
        Ok(text)
    }
}

/// The last steps inside of namespaces: the order is in an open descriptor.
pub(crate) fn enter(descriptor: &str) -> ExitCode {
    let Ok(number) = descriptor.parse() else { return ExitCode::FAILURE };
    // SAFETY: the supervisor outside opened this descriptor for us, and nobody else uses it.
    let file = unsafe { File::from_raw_fd(number) };
    let entrance: Entrance = match order::receive(file) {
        Ok(entrance) => entrance,
        Err(_) => return ExitCode::FAILURE,
    };
    // SAFETY: as above.
    let mut progress = Progress::new(unsafe { File::from_raw_fd(entrance.progress) });
    let order = &entrance.order;
    // SAFETY: as above.
    let given = entrance.given.map(|given| unsafe { File::from_raw_fd(given) });
    let given = Given::from_file(order.streams, given);
    let failure = enter_as(order, entrance.groups, given)
        .map_or_else(|cause| cause, |input| exec(order, input, &mut progress));
    progress.fail(&failure);
    ExitCode::FAILURE
}

/// Its standard input.
fn enter_as(order: &Order, groups: Groups, given: Given) -> Result<Stdio, CannotConfine> {
    if order.streams == Streams::Terminal {
        rustix::process::setsid().map_err(|error| CannotConfine::Process(error.into()))?;
    }
    let input = given.take_on().map_err(CannotConfine::Process)?;
    // While paths can still be opened that the command will not reach.
    let mut rules = rules(order.sandbox())?;
    rules.as_mut().map_or(Ok(()), |rules| rules.add(order))?;
    give_up(order.sandbox())?;
    confine(order, groups, rules)?;
    Ok(input.unwrap_or_else(Stdio::inherit))
}

/// Becomes the command of an order. Says why not.
pub(crate) fn exec(order: &Order, input: Stdio, progress: &mut Progress) -> CannotConfine {
    let program = match &order.installed {
        None => Ok(PathBuf::from(&order.argv[0])),
        Some(installed) => program::find(order, installed),
    };
    let program = match program {
        Ok(program) => program,
        Err(why) => return why.into(),
    };
    progress.say(READY);
    let cause = Command::new(program)
        .args(&order.argv[1..])
        .env_clear()
        .envs(order.env.iter().map(|(key, value)| (key, value)))
        .stdin(input)
        .exec();
    CannotConfine::Start { program: order.argv[0].clone(), cause }
}

/// The rules of Landlock for a sandbox, if it has any.
pub(crate) fn rules(sandbox: Sandbox) -> Result<Option<Rules>, RulesetError> {
    match sandbox.tier {
        Tier::T0 => Ok(None),
        Tier::T1 | Tier::T2 | Tier::T3 => Rules::new(sandbox).map(Some),
    }
}

/// Gives up what no command in such a sandbox has.
pub(crate) fn give_up(sandbox: Sandbox) -> Result<(), CannotConfine> {
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    drop_rights(sandbox.identity).map_err(|error| CannotConfine::Rights(error.into()))?;
    if sandbox.tier == Tier::T0 {
        return Ok(());
    }
    for filter in seccomp::filters(sandbox)? {
        seccompiler::apply_filter(&filter)?;
    }
    Ok(())
}

/// Makes this process, which has given up the rest, one that may do only what the order allows.
pub(crate) fn confine(
    order: &Order,
    groups: Groups,
    rules: Option<Rules>,
) -> Result<(), CannotConfine> {
    limit(order, groups).map_err(|error| CannotConfine::Limits(error.into()))?;
    close_descriptors().map_err(CannotConfine::Descriptors)?;
    let cwd = order.inside.join(&order.cwd);
    std::env::set_current_dir(&cwd).map_err(|cause| CannotConfine::Cwd { cwd, cause })?;
    let Some(rules) = rules else { return Ok(()) };
    let status = rules.restrict_self()?;
    match (order.tier, status.ruleset) {
        (Tier::T1, RulesetStatus::NotEnforced) => Err(CannotConfine::NoLandlock),
        _ => Ok(()),
    }
}

fn limit(order: &Order, groups: Groups) -> rustix::io::Result<()> {
    let limits = &order.limits;
    let set_both = |resource, current: u64, maximum: u64| {
        // Nobody can be allowed more than the supervisor is.
        let have = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let (current, maximum) = (Some(current.min(have)), Some(maximum.min(have)));
        setrlimit(resource, Rlimit { current, maximum })
    };
    let set = |resource, most: u64| set_both(resource, most, most);
    set(Resource::Core, 0)?;
    set(Resource::Fsize, limits.file_bytes)?;
    set(Resource::Nofile, limits.open_files)?;
    // At the lower number it is told, at the higher one killed.
    set_both(Resource::Cpu, limits.cpu_seconds, limits.cpu_seconds.saturating_add(1))?;
    if !groups.memory {
        set(Resource::Data, limits.memory_bytes)?;
    }
    match order.user_processes {
        Some(most) => set(Resource::Nproc, most),
        None => Ok(()),
    }
}

/// Whatever is open besides the standard streams closes with the next program.
fn close_descriptors() -> io::Result<()> {
    // SAFETY: the descriptors stay open until then; only a flag of theirs changes.
    let done = unsafe { libc::close_range(3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC as i32) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn drop_rights(identity: Option<Identity>) -> rustix::io::Result<()> {
    if let Some(Identity { uid, gid }) = identity {
        for right in CapabilitySet::all().iter() {
            // Those that this kernel does not know are not there to be dropped.
            let _ = rustix::thread::remove_capability_from_bounding_set(right);
        }
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        rustix::thread::set_thread_groups(&[])?;
        rustix::thread::set_thread_res_gid(gid, gid, gid)?;
        rustix::thread::set_thread_res_uid(uid, uid, uid)?;
    }
    rustix::thread::set_no_new_privs(true)?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    rustix::thread::set_capabilities(None, sets)
}
