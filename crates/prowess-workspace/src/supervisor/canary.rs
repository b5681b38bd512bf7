//! Attempts to break out, made from inside of a sandbox, so that what is enforced is known and not
//! assumed.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::net::{AddressFamily, SocketType};
use serde::{Deserialize, Serialize};

use super::{ASKED, CANARY};

/// What is attempted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Attempts {
    /// A file that everybody may read and write, outside.
    pub(crate) secret: PathBuf,
    /// A folder that everybody may write, outside.
    pub(crate) outside: PathBuf,
    /// Sockets that somebody listens on.
    pub(crate) sockets: Vec<PathBuf>,
    pub(crate) abstract_socket: String,
    pub(crate) tcp: SocketAddr,
    pub(crate) udp: SocketAddr,
    /// So many threads are begun.
    pub(crate) threads: u64,
    /// The variables that a run has.
    pub(crate) variables: Vec<String>,
    /// A file in the workspace that a process holds that outlives the run.
    pub(crate) held: PathBuf,
}

/// Which attempts succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Finding {
    pub(crate) read: bool,
    pub(crate) wrote: bool,
    pub(crate) changed: bool,
    pub(crate) saw: bool,
    pub(crate) connected: bool,
    /// Kinds of sockets beyond those of the internet and of this machine that could be made.
    pub(crate) odd_sockets: Vec<u16>,
    pub(crate) connected_here: bool,
    /// Variables of others.
    pub(crate) variables: BTreeSet<String>,
    pub(crate) threads: u64,
    /// Whether a process is left that holds the file.
    pub(crate) left_one: bool,
}

/// How much memory could be taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hoard {
    /// Whether a little could be taken: else the rest says nothing.
    pub(crate) is_able: bool,
    /// By several processes together.
    pub(crate) together: bool,
    /// By one process.
    pub(crate) alone: bool,
    /// By one process, as memory that it could share.
    pub(crate) shared: bool,
}

/// What is said in an argument, and answered on the standard output.
pub(crate) fn main(words: &[&str]) -> ExitCode {
    match words {
        ["attempt", attempts] => match serde_json::from_str(attempts) {
            Ok(attempts) => answer(&attempt(&attempts)),
            Err(_) => ExitCode::FAILURE,
        },
        ["hoard", bytes] => match bytes.parse() {
            Ok(bytes) => answer(&hoard(bytes)),
            Err(_) => ExitCode::FAILURE,
        },
        ["fill", bytes] => fill(vec(bytes.parse().unwrap_or(0))),
        ["fill-shared", bytes] => fill(shared(bytes.parse().unwrap_or(0))),
        ["daemon", held] => {
            let _ = rustix::process::setsid();
            exit(
                again(&["linger", held]).stdin(Stdio::null()).stdout(Stdio::null()).spawn().is_ok(),
            )
        }
        ["linger", held] => exit(linger(Path::new(held)).is_ok()),
        _ => ExitCode::FAILURE,
    }
}

fn exit(is_done: bool) -> ExitCode {
    if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn answer(value: &impl Serialize) -> ExitCode {
    exit(serde_json::to_writer(std::io::stdout(), value).is_ok())
}

/// This program again, for another part.
fn again(words: &[&str]) -> Command {
    let mut own = own_words().into_iter();
    let mut command = Command::new(own.next().unwrap_or_default());
    command.args(own).args([ASKED, CANARY]).args(words);
    command
}

/// The words that start this program; in a container, with a loader of its own.
fn own_words() -> Vec<OsString> {
    let words = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let words = words.split(|byte| *byte == 0).take_while(|word| *word != ASKED.as_bytes());
    let words: Vec<OsString> = words.map(|word| OsString::from_vec(word.to_vec())).collect();
    match words.iter().all(|word| word.is_empty()) {
        // Some sandboxes do not show it; they have no loader of their own, either.
        true => std::env::args_os().take(1).collect(),
        false => words,
    }
}

fn attempt(attempts: &Attempts) -> Finding {
    let is_written = || std::fs::write(&attempts.secret, "overwritten").is_ok();
    let is_made = || std::fs::write(attempts.outside.join("made"), "made").is_ok();
    let abstract_address =
        std::os::unix::net::SocketAddr::from_abstract_name(&attempts.abstract_socket);
    let is_reached = || abstract_address.is_ok_and(|it| UnixStream::connect_addr(&it).is_ok());
    let send = || UdpSocket::bind("0.0.0.0:0")?.send_to(b"canary", attempts.udp);
    let is_answered = |socket: &PathBuf| UnixStream::connect(socket).is_ok();
    // Whether it arrives is seen outside.
    let _ = send();
    let timeout = Duration::from_secs(1);
    Finding {
        read: std::fs::read(&attempts.secret).is_ok()
            || std::fs::read_dir(&attempts.outside).is_ok(),
        saw: attempts.secret.metadata().is_ok(),
        changed: is_changed(&attempts.secret),
        connected: TcpStream::connect_timeout(&attempts.tcp, timeout).is_ok(),
        odd_sockets: odd_sockets(),
        connected_here: attempts.sockets.iter().any(is_answered) || is_reached(),
        variables: variables_of_others(&attempts.variables),
        threads: begin_threads(attempts.threads),
        left_one: leave_one(&attempts.held),
        wrote: is_written() | is_made(),
    }
}

fn is_changed(path: &Path) -> bool {
    let mode = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666)).is_ok();
    let now = rustix::fs::Timespec { tv_sec: 1, tv_nsec: 0 };
    let times = rustix::fs::Timestamps { last_access: now, last_modification: now };
    let flags = rustix::fs::AtFlags::empty();
    mode | rustix::fs::utimensat(rustix::fs::CWD, path, &times, flags).is_ok()
}

/// The families that matter: netlink, packet, key, alg, vsock, xdp.
fn odd_sockets() -> Vec<u16> {
    let is_made = |family: &u16| {
        let family = AddressFamily::from_raw(*family);
        [SocketType::RAW, SocketType::DGRAM, SocketType::STREAM, SocketType::SEQPACKET]
            .into_iter()
            .any(|kind| rustix::net::socket(family, kind, None).is_ok())
    };
    [16, 17, 15, 38, 40, 44].into_iter().filter(is_made).collect()
}

fn variables_of_others(known: &[String]) -> BTreeSet<String> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return BTreeSet::new() };
    let texts = entries.flatten().filter_map(|it| std::fs::read(it.path().join("environ")).ok());
    let mut found = BTreeSet::new();
    for text in texts {
        for variable in text.split(|byte| *byte == 0).filter(|it| !it.is_empty()) {
            let text = String::from_utf8_lossy(variable);
            let name = text.split('=').next().unwrap_or_default();
            if !known.iter().any(|known| known == name) {
                found.insert(name.to_owned());
            }
        }
    }
    found
}

/// Begins threads until no more can be, and says how many there were.
fn begin_threads(most: u64) -> u64 {
    let (hold, held) = mpsc::channel::<()>();
    let held = std::sync::Arc::new(std::sync::Mutex::new(held));
    let mut threads = Vec::new();
    for _ in 0..most {
        let held = held.clone();
        let wait = move || {
            // Until all are begun.
            let _ = held.lock().map(|held| held.recv());
        };
        match std::thread::Builder::new().stack_size(32 << 10).spawn(wait) {
            Ok(thread) => threads.push(thread),
            Err(_) => break,
        }
    }
    drop(hold);
    let begun = threads.len() as u64;
    for thread in threads {
        let _ = thread.join();
    }
    begun
}

/// Leaves a process behind, as a daemon would be.
fn leave_one(held: &Path) -> bool {
    let Some(path) = held.to_str() else { return false };
    let begun = Instant::now();
    let start = || again(&["daemon", path]).stdin(Stdio::null()).stdout(Stdio::null()).status();
    let mut is_started = false;
    while begun.elapsed() < Duration::from_secs(30) {
        // Processes of the same user may fill a limit that all of them share, for a moment.
        is_started = is_started || start().is_ok_and(|status| status.success());
        if is_started && std::fs::read(held).is_ok_and(|text| !text.is_empty()) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(if is_started { 1 } else { 50 }));
    }
    false
}

fn linger(held: &Path) -> std::io::Result<()> {
    let _ = rustix::process::setsid();
    let mut file = std::fs::File::options().create(true).append(true).open(held)?;
    rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
    file.write_all(b"held")?;
    std::thread::sleep(Duration::from_secs(60));
    Ok(())
}

/// How many processes take memory together.
const HOARDERS: u64 = 3;

/// Takes more memory than there is: half of it, three times; and twice of it, once.
fn hoard(limit: u64) -> Hoard {
    let together = filled("fill", limit / 2, HOARDERS) == HOARDERS;
    let alone = together && filled("fill", limit * 2, 1) == 1;
    let is_able = filled("fill", 1 << 20, 1) == 1;
    Hoard { is_able, together, alone, shared: together && filled("fill-shared", limit * 2, 1) == 1 }
}

fn filled(how: &str, bytes: u64, processes: u64) -> u64 {
    let start = || {
        again(&[how, &bytes.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()
    };
    let mut children: Vec<_> = (0..processes).filter_map(|_| start()).collect();
    let mut said = Vec::new();
    for child in &mut children {
        let mut byte = [0];
        said.push(child.stdout.as_mut().is_some_and(|it| it.read_exact(&mut byte).is_ok()));
    }
    // One that had it may have been killed so that another one could have it: only those count
    // that still had it when all had spoken.
    let end = |mut child: std::process::Child| {
        drop(child.stdin.take());
        child.wait().is_ok_and(|status| status.success())
    };
    said.into_iter().zip(children).map(|(said, child)| u64::from(end(child) && said)).sum()
}

/// So much memory.
fn vec(bytes: usize) -> Option<Vec<u8>> {
    let mut memory: Vec<u8> = Vec::new();
    memory.try_reserve_exact(bytes).ok()?;
    memory.resize(bytes, 1);
    Some(memory)
}

/// So much memory that other processes could see, in files that have no name.
fn shared(bytes: usize) -> Option<Vec<std::fs::File>> {
    const PART: usize = 1 << 20;
    let part = vec![1; PART];
    let make = |_| {
        let name = "prowess-canary";
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let mut file = std::fs::File::from(rustix::fs::memfd_create(name, flags).ok()?);
        // Below the limit of a single file.
        (0..16).try_for_each(|_| file.write_all(&part)).ok()?;
        Some(file)
    };
    (0..bytes.div_ceil(16 * PART)).map(make).collect()
}

/// Has memory, says so, and keeps it until nobody listens.
fn fill<T>(memory: Option<T>) -> ExitCode {
    let Some(memory) = memory else { return ExitCode::FAILURE };
    let memory = std::hint::black_box(memory);
    let said = std::io::stdout().write_all(&[1]);
    let said = said.and_then(|()| std::io::stdout().flush());
    let _ = std::io::stdin().read(&mut [0]);
    drop(memory);
    exit(said.is_ok())
}
