//! One run: from the order to the report.

#![allow(unsafe_code, reason = "the last steps before another program have no safe words")]

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::MemfdFlags;
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{PidfdFlags, Signal};

use super::cgroup::Cgroups;
use super::confine::{self, Entrance, Progress, READY};
use super::order::{Ended, Order, Report, VERSION, receive, receive_bytes, send};
use super::{ASKED, ENTER, bubblewrap, disk, processes};
use crate::executor::{LimitHit, Tier};

/// Why an order is not carried out.
#[derive(Debug, thiserror::Error)]
enum CannotRun {
    #[error("the order cannot be read: {0}")]
    Order(io::Error),
    #[error("the groups that limit memory and processes cannot be made")]
    Groups,
    #[error("no memory: {0}")]
    Memory(io::Error),
    #[error("{program}: {cause}")]
    Start { program: String, cause: io::Error },
    #[error("the namespaces could not be set up")]
    Namespaces,
    /// What the process said that should have become the command.
    #[error("{cause}")]
    Confine { cause: String },
    #[error("the command cannot be watched: {0}")]
    Watch(io::Error),
}

/// Takes an order from the standard input, carries it out, and reports there.
pub(crate) fn run() -> ExitCode {
    let Ok(control) = std::io::stdin().as_fd().try_clone_to_owned() else {
        return ExitCode::FAILURE;
    };
    let control = UnixStream::from(control);
    // Before there is an order: whoever gives it does not wait for this.
    let mut cgroups = Cgroups::new();
    let report = prepare(&control)
        .map_err(CannotRun::Order)
        .and_then(|(order, stdin)| carry_out(order, &stdin, &control, &mut cgroups))
        .unwrap_or_else(|why| Report::Refused { cause: why.to_string() });
    drop(cgroups);
    // If nobody listens any more, nobody is told.
    let _ = send(&control, &report);
    ExitCode::SUCCESS
}

fn prepare(mut control: &UnixStream) -> io::Result<(Order, Vec<u8>)> {
    // Signals to the program that asked are not for us.
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let order: Order = receive(&mut control)?;
    if order.version != VERSION {
        let text = format!("it speaks version {}, the supervisor {VERSION}", order.version);
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let stdin = receive_bytes(&mut control, order.limits.stdin_bytes)?;
    Ok((order, stdin))
}

fn carry_out(
    mut order: Order,
    stdin: &[u8],
    control: &UnixStream,
    cgroups: &mut Cgroups,
) -> Result<Report, CannotRun> {
    let watched = Watched::new(&order);
    cgroups.limit(&order.limits);
    let groups = cgroups.groups();
    if (order.needs.memory && !groups.memory) || (order.needs.pids && !groups.pids) {
        return Err(CannotRun::Groups);
    }
    order.user_processes = process_limit(&order, groups.pids);
    let begun = Instant::now();
    let progress = memory(b"").map_err(CannotRun::Memory)?;
    let started = start(&order, stdin, cgroups, &progress);
    let mut progress = Progress::new(progress);
    let said = |progress: &mut Progress| progress.said().unwrap_or_default();
    let child = match started {
        Ok(child) => child,
        Err(error) => {
            return Err(match said(&mut progress) {
                text if text.is_empty() || text == READY => {
                    CannotRun::Start { program: order.argv[0].clone(), cause: error }
                }
                cause => CannotRun::Confine { cause },
            });
        }
    };
    let mut end = watch(child, &order, control, begun, &watched)?;
    let survivors = processes::end_all();
    match said(&mut progress).as_str() {
        READY => {}
        // Its time was over before it began.
        "" if end.timed_out => {}
        "" => return Err(CannotRun::Namespaces),
        cause => return Err(CannotRun::Confine { cause: cause.to_owned() }),
    }
    end.limits_hit.extend(cgroups.limits_hit());
    end.limits_hit.extend(match end.exit_code - 128 {
        libc::SIGXCPU => Some(LimitHit::Cpu),
        libc::SIGXFSZ => Some(LimitHit::FileSize),
        _ => None,
    });
    Ok(Report::Ended(Ended { groups, survivors, ..end }))
}

/// A file in memory that holds these bytes.
fn memory(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("prowess", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

/// How many processes the user may have that a command runs as, where that is what limits it.
fn process_limit(order: &Order, is_grouped: bool) -> Option<u64> {
    match (order.tier, order.identity) {
        // Users are counted by namespace.
        (Tier::T2, None) => Some(order.limits.processes),
        _ if is_grouped => None,
        _ => {
            let own = || rustix::process::getuid().as_raw();
            let uid = order.identity.map_or_else(own, |it| it.uid);
            Some(threads_of(uid) + order.limits.processes)
        }
    }
}

/// How many threads a user has now.
fn threads_of(uid: u32) -> u64 {
    use std::os::unix::fs::MetadataExt;

    let Ok(entries) = std::fs::read_dir("/proc") else { return 0 };
    let theirs = entries.flatten().filter(|entry| {
        let is_process = entry.file_name().as_bytes().first().is_some_and(u8::is_ascii_digit);
        is_process && entry.metadata().is_ok_and(|about| about.uid() == uid)
    });
    let threads =
        |entry: std::fs::DirEntry| Some(std::fs::read_dir(entry.path().join("task")).ok()?.count());
    theirs.filter_map(threads).map(|count| count as u64).sum()
}

/// Starts the command of an order.
fn start(order: &Order, stdin: &[u8], cgroups: &Cgroups, progress: &File) -> io::Result<Child> {
    let input = match stdin.is_empty() {
        true => Stdio::null(),
        false => Stdio::from(memory(stdin)?),
    };
    let entrances = cgroups.entrances();
    let groups = cgroups.groups();
    match order.tier {
        Tier::T0 | Tier::T1 => {
            let mut command = confine::command(order);
            let order = order.clone();
            let mut progress = Progress::new(progress.try_clone()?);
            let prepare = move || {
                rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
                rustix::process::setsid()?;
                join(&entrances)?;
                confine::confine(&order, groups).map_err(|cause| {
                    progress.say(&cause.to_string());
                    Errno::PERM
                })?;
                // Becoming somebody else has undone it.
                rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
                progress.say(READY);
                Ok(())
            };
            // SAFETY: this process has one thread, so that its copy can do whatever it could.
            unsafe { command.pre_exec(prepare) };
            command.stdin(input).spawn()
        }
        Tier::T2 | Tier::T3 => {
            let bwrap = order.bwrap.as_ref().ok_or(io::ErrorKind::NotFound)?;
            let supervisor = std::env::current_exe()?;
            let mut texts: Vec<(&str, File)> = Vec::new();
            for (path, text) in bubblewrap::people(order) {
                texts.push((path, memory(text.as_bytes())?));
            }
            let numbers: Vec<_> =
                texts.iter().map(|(path, file)| (*path, file.as_raw_fd())).collect();
            let mut words = Vec::new();
            for word in bubblewrap::arguments(order, &supervisor, &numbers) {
                words.extend_from_slice(word.as_bytes());
                words.push(0);
            }
            let words = memory(&words)?;
            let progress = progress.try_clone()?;
            let entrance =
                Entrance { order: order.clone(), groups, progress: progress.as_raw_fd() };
            let mut letter = memory(b"")?;
            super::order::send(&letter, &entrance)?;
            letter.seek(SeekFrom::Start(0))?;
            let mut command = Command::new(bwrap);
            command.arg("--args").arg(words.as_raw_fd().to_string()).arg("--");
            command.args([bubblewrap::SUPERVISOR, ASKED, ENTER]);
            command.arg(letter.as_raw_fd().to_string()).env_clear().current_dir("/");
            let mut passed: Vec<OwnedFd> = texts.into_iter().map(|(_, file)| file.into()).collect();
            passed.extend([words, letter, progress].map(OwnedFd::from));
            let prepare = move || {
                rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
                join(&entrances)?;
                for descriptor in &passed {
                    fcntl_setfd(descriptor, FdFlags::empty())?;
                }
                Ok(())
            };
            // SAFETY: as above.
            unsafe { command.pre_exec(prepare) };
            command.stdin(input).spawn()
        }
    }
}

/// Joins the groups of the run.
fn join(entrances: &[PathBuf]) -> io::Result<()> {
    entrances.iter().try_for_each(|entrance| std::fs::write(entrance, "0"))
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

/// Waits until a command ends, its time is over, it fills the disk, or nobody waits for it.
fn watch(
    mut child: Child,
    order: &Order,
    control: &UnixStream,
    begun: Instant,
    watched: &Watched,
) -> Result<Ended, CannotRun> {
    let pid = rustix::process::Pid::from_child(&child);
    let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::empty());
    let pidfd = pidfd.map_err(|error| CannotRun::Watch(error.into()))?;
    // Of namespaces, the two processes that hold them end when the command does.
    let depth = if order.tier == Tier::T2 { 2 } else { 0 };
    let over = later(begun, order.limits.wall);
    let mut ending: Option<Instant> = None;
    let mut timed_out = false;
    let mut limits_hit = Vec::new();
    let mut look = begun + LOOK_EVERY;
    loop {
        let deadline = ending.unwrap_or(over);
        let wait = deadline.min(look).saturating_duration_since(Instant::now());
        let (has_ended, is_alone) =
            wait_for(pidfd.as_fd(), control.as_fd(), wait).map_err(CannotRun::Watch)?;
        if has_ended {
            break;
        }
        if is_alone || ending.is_some_and(|deadline| Instant::now() >= deadline) {
            processes::end_all();
            break;
        }
        if ending.is_none() && Instant::now() >= deadline {
            timed_out = true;
            limits_hit.push(LimitHit::Wall);
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
            look = Instant::now() + LOOK_EVERY.max(started.elapsed() * LOOK_SHARE);
        }
    }
    // If it was ended here, its status is gone with it.
    let status = child.wait().unwrap_or(ExitStatus::from_raw(libc::SIGKILL));
    let exit_code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ok(Ended { exit_code, timed_out, limits_hit, groups: Default::default(), survivors: 0 })
}

/// A moment so much later, or as late as never.
pub(crate) fn later(moment: Instant, by: Duration) -> Instant {
    const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    moment + by.min(NEVER)
}

/// Whether the command has ended, and whether nobody waits for it any more.
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
