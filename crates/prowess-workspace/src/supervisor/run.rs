//! One run: from the order to the report.

#![allow(unsafe_code, reason = "the last steps before another program have no safe words")]

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus, pidfd_open,
    set_parent_process_death_signal, waitid,
};

use super::candidate::Candidate;
use super::cgroup::Cgroups;
use super::confine::{CannotConfine, Entrance, NOT_ALLOWED, Progress, READY, memory};
use super::order::{Ended, Order, Report, Request, Sandbox, VERSION, receive, receive_bytes, send};
use super::streams::Given;
use super::{ASKED, ENTER, bubblewrap, disk, processes};
use crate::executor::{LimitHit, Tier};

/// Why an order is not carried out.
#[derive(Debug, thiserror::Error)]
enum CannotRun {
    #[error("this process cannot look after others: {0}")]
    Supervise(io::Error),
    #[error("the sandbox that is expected cannot be read: {0}")]
    Expected(serde_json::Error),
    #[error("the order cannot be read: {0}")]
    Order(io::Error),
    #[error("the groups that limit memory and processes cannot be made")]
    Groups,
    #[error(transparent)]
    Confine(#[from] CannotConfine),
    #[error("{program}: {cause}")]
    Start { program: String, cause: io::Error },
    #[error("the sandbox could not be set up")]
    Sandbox,
    /// What the process said that should have become the command.
    #[error("{cause}")]
    Said { cause: String },
    #[error("{cause}")]
    NotAllowed { cause: String },
    #[error("the command cannot be watched: {0}")]
    Watch(io::Error),
}

/// Takes an order from the standard input, carries it out, and reports there. Until then it expects
/// one for this sandbox.
pub(crate) fn run(sandbox: &str) -> ExitCode {
    let Ok(control) = std::io::stdin().as_fd().try_clone_to_owned() else {
        return ExitCode::FAILURE;
    };
    let control = UnixStream::from(control);
    expect_all_signals();
    // Before there is an order: whoever gives it does not wait for this.
    let sandbox = serde_json::from_str(sandbox).map_err(CannotRun::Expected);
    let mut cgroups = match &sandbox {
        Ok(Sandbox { tier: Tier::T3, .. }) => Cgroups::of_container(),
        _ => Cgroups::new(),
    };
    let candidate = sandbox.and_then(|sandbox| prepare(sandbox, &cgroups));
    let report = take(&control)
        .map_err(CannotRun::Order)
        .and_then(|(order, input)| carry_out(order, input, &control, &mut cgroups, candidate?));
    let report = report.unwrap_or_else(|why| {
        processes::end_all();
        match why {
            CannotRun::NotAllowed { cause } => Report::NotAllowed { cause },
            why => Report::Refused { cause: why.to_string() },
        }
    });
    drop(cgroups);
    // If nobody listens any more, nobody is told.
    let _ = send(&control, &report);
    ExitCode::SUCCESS
}

/// Whatever the program ignores that asked for the run, as one in the background does with Ctrl-C,
/// its command does not.
fn expect_all_signals() {
    const LAST: i32 = 64;
    // Whoever cannot write any more is told so otherwise; the command is given this one back.
    for signal in (1..=LAST).filter(|signal| *signal != libc::SIGPIPE) {
        // SAFETY: no handler of ours is lost; those that cannot be set stay as they are.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: the set is made before it is used, and is not kept.
    unsafe {
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Does what can be done before there is an order.
fn prepare(sandbox: Sandbox, cgroups: &Cgroups) -> Result<Option<Candidate>, CannotRun> {
    // Signals to the program that asked are not for us.
    let _ = rustix::process::setsid();
    let own = Some(rustix::process::getpid());
    let reaps = rustix::process::set_child_subreaper(own);
    reaps.map_err(|error| CannotRun::Supervise(error.into()))?;
    Ok(candidate(sandbox, cgroups, &mut Given::Nothing)?)
}

/// A process for the command, where it needs no namespaces.
fn candidate(
    sandbox: Sandbox,
    cgroups: &Cgroups,
    given: &mut Given,
) -> Result<Option<Candidate>, CannotConfine> {
    match sandbox.tier {
        Tier::T0 | Tier::T1 | Tier::T3 => {
            Candidate::new(sandbox, cgroups, std::mem::take(given)).map(Some)
        }
        Tier::T2 => Ok(None),
    }
}

/// What a command reads: these bytes, or what came for it.
struct Input {
    bytes: Vec<u8>,
    given: Given,
}

fn take(mut control: &UnixStream) -> io::Result<(Order, Input)> {
    let order: Order = receive(&mut control)?;
    if order.version != VERSION {
        let text = format!("it speaks version {}, the supervisor {VERSION}", order.version);
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let bytes = receive_bytes(&mut control, order.limits.stdin_bytes)?;
    let given = Given::take(order.streams, control)?;
    Ok((order, Input { bytes, given }))
}

fn carry_out(
    mut order: Order,
    mut input: Input,
    control: &UnixStream,
    cgroups: &mut Cgroups,
    expected: Option<Candidate>,
) -> Result<Report, CannotRun> {
    let watched = Watched::new(&order);
    cgroups.limit(&order.limits);
    let groups = cgroups.groups();
    if (order.needs.memory && !groups.memory) || (order.needs.pids && !groups.pids) {
        return Err(CannotRun::Groups);
    }
    let begun = Instant::now();
    let candidate = match expected.filter(|it| it.fits(&order, groups)) {
        Some(candidate) => Some(candidate),
        None => {
            processes::end_all();
            candidate(order.sandbox(), cgroups, &mut input.given)?
        }
    };
    order.user_processes = process_limit(&order, groups.pids, candidate.as_ref());
    let started = match candidate {
        Some(candidate) => candidate.start(&order, &input.bytes),
        None => start_in_namespaces(&order, input, cgroups),
    };
    let (process, mut progress) =
        started.map_err(|cause| CannotRun::Start { program: order.argv[0].clone(), cause })?;
    let mut end = watch(process.as_fd(), &order, control, begun, &watched)?;
    let survivors = processes::end_all();
    match progress.said().unwrap_or_default().as_str() {
        READY => {}
        // Its time was over before it began, or nobody wanted it any more.
        "" if end.timed_out || end.was_stopped => {}
        "" => return Err(CannotRun::Sandbox),
        said => {
            return Err(match said.strip_prefix(NOT_ALLOWED) {
                Some(cause) => CannotRun::NotAllowed { cause: cause.to_owned() },
                None => CannotRun::Said { cause: said.to_owned() },
            });
        }
    }
    end.limits_hit.extend(cgroups.limits_hit());
    end.limits_hit.extend(match end.exit_code - 128 {
        libc::SIGXCPU => Some(LimitHit::Cpu),
        libc::SIGXFSZ => Some(LimitHit::FileSize),
        _ => None,
    });
    Ok(Report::Ended(Ended { groups, survivors, ..end }))
}

/// How many processes the user may have that a command runs as, where that is what limits it.
fn process_limit(order: &Order, is_grouped: bool, candidate: Option<&Candidate>) -> Option<u64> {
    match (order.tier, order.identity) {
        // Users are counted by namespace.
        (Tier::T2, None) => Some(order.limits.processes),
        (Tier::T3, _) => None,
        _ if is_grouped => None,
        _ => {
            let own = || rustix::process::getuid().as_raw();
            let uid = order.identity.map_or_else(own, |it| it.uid);
            Some(threads_of(uid, candidate.map(Candidate::pid)) + order.limits.processes)
        }
    }
}

/// How many threads a user has now, those of one process left out.
fn threads_of(uid: u32, except: Option<Pid>) -> u64 {
    use std::os::unix::fs::MetadataExt;

    let Ok(entries) = std::fs::read_dir("/proc") else { return 0 };
    let theirs = entries.flatten().filter(|entry| {
        let pid = entry.file_name().to_str().and_then(|name| Pid::from_raw(name.parse().ok()?));
        pid.is_some() && pid != except && entry.metadata().is_ok_and(|about| about.uid() == uid)
    });
    let threads =
        |entry: std::fs::DirEntry| Some(std::fs::read_dir(entry.path().join("task")).ok()?.count());
    theirs.filter_map(threads).map(|count| count as u64).sum()
}

/// Starts the command of an order in namespaces. The process that holds them, and how far it gets.
fn start_in_namespaces(
    order: &Order,
    input: Input,
    cgroups: &Cgroups,
) -> io::Result<(OwnedFd, Progress)> {
    let Input { bytes, given } = input;
    let input = match bytes.is_empty() {
        true => Stdio::null(),
        false => Stdio::from(memory(&bytes)?),
    };
    let bwrap = order.bwrap.as_ref().ok_or(io::ErrorKind::NotFound)?;
    let supervisor = std::env::current_exe()?;
    let mut texts: Vec<(&str, File)> = Vec::new();
    for (path, text) in bubblewrap::people(order) {
        texts.push((path, memory(text.as_bytes())?));
    }
    let numbers: Vec<_> = texts.iter().map(|(path, file)| (*path, file.as_raw_fd())).collect();
    let mut words = Vec::new();
    for word in bubblewrap::arguments(order, &supervisor, &numbers) {
        words.extend_from_slice(word.as_bytes());
        words.push(0);
    }
    let words = memory(&words)?;
    let progress = memory(b"")?;
    let theirs = progress.try_clone()?;
    let groups = cgroups.groups();
    // Not as its own streams: whoever holds the namespaces would hold them open.
    let given = given.into_file();
    let entrance = Entrance {
        order: order.clone(),
        groups,
        progress: theirs.as_raw_fd(),
        given: given.as_ref().map(AsRawFd::as_raw_fd),
    };
    let mut letter = memory(b"")?;
    send(&letter, &entrance)?;
    letter.seek(SeekFrom::Start(0))?;
    let mut command = Command::new(bwrap);
    command.arg("--args").arg(words.as_raw_fd().to_string()).arg("--");
    command.args([bubblewrap::SUPERVISOR, ASKED, ENTER]);
    command.arg(letter.as_raw_fd().to_string()).env_clear().current_dir("/").stdin(input);
    let mut passed: Vec<File> = texts.into_iter().map(|(_, file)| file).collect();
    passed.extend([words, letter, theirs]);
    passed.extend(given);
    let entrances = cgroups.entrances();
    let prepare = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        entrances.join()?;
        for descriptor in &passed {
            fcntl_setfd(descriptor, FdFlags::empty())?;
        }
        Ok(())
    };
    // SAFETY: this process has one thread, so that its copy can do whatever it could.
    unsafe { command.pre_exec(prepare) };
    let process = pidfd_open(Pid::from_child(&command.spawn()?), PidfdFlags::empty())?;
    Ok((process, Progress::new(progress)))
}

/// The folders that a command can fill.
struct Watched {
    folders: Vec<PathBuf>,
    bytes: u64,
    files: u64,
}

impl Watched {
    fn new(order: &Order) -> Self {
        let folder = |name: &String| order.workspace.join(Path::new(OsStr::new(name)));
        let folders: Vec<PathBuf> = order.writable.iter().map(folder).collect();
        // In one that is full already, files can still be removed.
        let (bytes, files) = disk::held(&folders);
        Self {
            bytes: order.limits.disk_bytes.max(bytes),
            files: order.limits.disk_files.max(files),
            folders,
        }
    }

    fn is_over(&self) -> bool {
        disk::holds_more(&self.folders, self.bytes, self.files)
    }
}

/// How often it is looked how much a workspace holds, and how much of the time that may take.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const LOOK_SHARE: u32 = 20;
/// However long looking takes: whoever slows it down, or a busy machine, buys no more time than this.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_secs(1);

/// How long it is not looked again after a look that took so long.
fn pause_after(look: Duration) -> Duration {
    look.saturating_mul(LOOK_SHARE).clamp(LOOK_EVERY, LOOK_AT_LEAST_EVERY)
}

/// Waits until a command ends, its time is over, it fills the disk, it is to be stopped, or nobody
/// waits for it.
fn watch(
    process: BorrowedFd<'_>,
    order: &Order,
    control: &UnixStream,
    begun: Instant,
    watched: &Watched,
) -> Result<Ended, CannotRun> {
    // Of namespaces, the two processes that hold them end when the command does.
    let depth = if order.tier == Tier::T2 { 2 } else { 0 };
    let over = later(begun, order.limits.wall);
    let mut ending: Option<Instant> = None;
    let (mut timed_out, mut was_stopped) = (false, false);
    let mut limits_hit = Vec::new();
    let mut look = begun + LOOK_EVERY;
    loop {
        let deadline = ending.unwrap_or(over);
        let wait = deadline.min(look).saturating_duration_since(Instant::now());
        let (has_ended, is_called) =
            wait_for(process, control.as_fd(), wait).map_err(CannotRun::Watch)?;
        if has_ended {
            break;
        }
        // Whoever says nothing when there is something to read has gone.
        let request = is_called.then(|| receive::<Request>(control));
        let is_alone = matches!(request, Some(Err(_)));
        if is_alone || ending.is_some_and(|deadline| Instant::now() >= deadline) {
            processes::end_all();
            break;
        }
        let is_over = Instant::now() >= deadline;
        let is_stopped = matches!(request, Some(Ok(Request::Stop)));
        if ending.is_none() && (is_over || is_stopped) {
            (timed_out, was_stopped) = (is_over, is_stopped);
            limits_hit.extend(is_over.then_some(LimitHit::Wall));
            processes::ask_to_end(depth);
            ending = Some(later(Instant::now(), order.limits.grace));
        }
        if Instant::now() >= look {
            let started = Instant::now();
            if watched.is_over() {
                limits_hit.push(LimitHit::Disk);
                processes::end_all();
                break;
            }
            look = Instant::now() + pause_after(started.elapsed());
        }
    }
    // If it was ended here, its status is gone with it.
    let status = waitid(WaitId::PidFd(process), WaitIdOptions::EXITED).ok().flatten();
    let signal = |status: &WaitIdStatus| Some(128 + status.terminating_signal()?);
    let code = |status: WaitIdStatus| status.exit_status().or_else(|| signal(&status));
    let exit_code = status.and_then(code).unwrap_or(128 + libc::SIGKILL);
    let groups = Default::default();
    Ok(Ended { exit_code, timed_out, was_stopped, limits_hit, groups, survivors: 0 })
}

/// A moment so much later, or as late as never.
pub(crate) fn later(moment: Instant, by: Duration) -> Instant {
    const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    moment + by.min(NEVER)
}

/// Whether the command has ended, and whether there is something on the line.
fn wait_for(
    child: BorrowedFd<'_>,
    control: BorrowedFd<'_>,
    most: Duration,
) -> io::Result<(bool, bool)> {
    let mut waited = [
        PollFd::from_borrowed_fd(child, PollFlags::IN),
        PollFd::from_borrowed_fd(control, PollFlags::IN | PollFlags::RDHUP),
    ];
    let most = Timespec::try_from(most).map_err(|_| io::ErrorKind::InvalidInput)?;
    match poll(&mut waited, Some(&most)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let [child, control] = &waited;
    Ok((!child.revents().is_empty(), !control.revents().is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_look_buys_little_time() {
        let table =
            [(0, 100), (5, 100), (6, 120), (49, 980), (50, 1000), (250, 1000), (9000, 1000)];
        for (look, pause) in table {
            assert_eq!(pause_after(Duration::from_millis(look)), Duration::from_millis(pause));
        }
        assert_eq!(pause_after(Duration::MAX), LOOK_AT_LEAST_EVERY);
    }
}
