//! What the supervisor is told, and what it reports: JSON in frames, each after its length.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::executor::{LimitHit, Limits, Network, Tier};

/// Both sides must speak the same version.
pub(crate) const VERSION: u32 = 3;

/// The most bytes of an order or a report: more than the system takes as a command.
const MOST_BYTES: u64 = 256 << 20;

/// What is to be run, and how.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) version: u32,
    pub(crate) tier: Tier,
    /// The program that sets up namespaces.
    pub(crate) bwrap: Option<PathBuf>,
    /// The program and its arguments.
    pub(crate) argv: Vec<String>,
    /// If the program must be one that no run can have put there.
    pub(crate) installed: Option<Installed>,
    pub(crate) env: Vec<(String, String)>,
    /// The workspace on this machine.
    pub(crate) workspace: PathBuf,
    /// What the command sees as the workspace.
    pub(crate) inside: PathBuf,
    /// Where it begins, below the workspace.
    pub(crate) cwd: String,
    /// What it may write, below the workspace.
    pub(crate) writable: Vec<String>,
    /// What it may read besides the usual, on this machine.
    pub(crate) readable: Vec<PathBuf>,
    /// Whom to become; `None`: nobody else.
    pub(crate) identity: Option<Identity>,
    pub(crate) network: Network,
    pub(crate) limits: Limits,
    /// Which limits must hold for all processes together, or nothing is started.
    pub(crate) needs: Groups,
    /// How many processes whom the command runs as may have, if that is what limits them; the
    /// supervisor finds out.
    #[serde(default)]
    pub(crate) user_processes: Option<u64>,
    /// What comes with the order for the command.
    #[serde(default)]
    pub(crate) streams: Streams,
}

impl Order {
    pub(crate) fn sandbox(&self) -> Sandbox {
        Sandbox { tier: self.tier, network: self.network, identity: self.identity }
    }
}

/// What must hold for a program that no run can have put there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Installed {
    /// The skill whose files it may be, below the workspace.
    pub(crate) skill: Option<String>,
    /// The last names, in lower case, that it must not turn out to have.
    pub(crate) denied: Vec<String>,
}

/// What comes for the command behind its order, as an open descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Streams {
    /// Nothing: its input is in the order.
    #[default]
    Usual,
    /// Its standard input.
    Input,
    /// A terminal: all its standard streams.
    Terminal,
}

/// What the supervisor is asked while a command runs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// To end it: gently first.
    Stop,
}

/// What a sandbox is, whatever runs in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sandbox {
    pub(crate) tier: Tier,
    pub(crate) network: Network,
    /// Whom to become; `None`: nobody else.
    pub(crate) identity: Option<Identity>,
}

/// A user and a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// What the supervisor reports, once.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    /// Nothing was started.
    Refused { cause: String },
    /// Nothing was started, because the program may not be.
    NotAllowed { cause: String },
    /// It ended.
    Ended(Ended),
}

/// How a command ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ended {
    /// As a shell would report it.
    pub(crate) exit_code: i32,
    pub(crate) timed_out: bool,
    pub(crate) was_stopped: bool,
    pub(crate) limits_hit: Vec<LimitHit>,
    /// Whether the limits of memory and processes held for all processes together.
    pub(crate) groups: Groups,
    /// Processes that could not be ended.
    pub(crate) survivors: usize,
}

/// Which limits held for all processes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Groups {
    pub(crate) memory: bool,
    pub(crate) pids: bool,
}

pub(crate) fn send(mut to: impl Write, value: &impl Serialize) -> io::Result<()> {
    send_bytes(&mut to, &serde_json::to_vec(value)?)
}

pub(crate) fn send_bytes(mut to: impl Write, bytes: &[u8]) -> io::Result<()> {
    let too_long = |_| io::Error::new(io::ErrorKind::InvalidInput, "the frame is too long");
    let length = u32::try_from(bytes.len()).map_err(too_long)?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(bytes)
}

pub(crate) fn receive<T: DeserializeOwned>(from: impl Read) -> io::Result<T> {
    Ok(serde_json::from_slice(&receive_bytes(from, MOST_BYTES)?)?)
}

/// A frame that has no more bytes than this.
pub(crate) fn receive_bytes(mut from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if u64::from(length) > most {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the frame is too long"));
    }
    let mut bytes = Vec::new();
    from.take(u64::from(length)).read_to_end(&mut bytes)?;
    match bytes.len() == length as usize {
        true => Ok(bytes),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
