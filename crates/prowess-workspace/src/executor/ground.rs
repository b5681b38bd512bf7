//! What a canary finds outside of its sandbox, if it gets there.

use std::io::ErrorKind;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use super::order::identity;
use crate::supervisor::{Attempts, Order, start_time};

/// What a canary can find outside.
pub(crate) struct Ground {
    folder: tempfile::TempDir,
    tcp: TcpListener,
    udp: UdpSocket,
    _unix: UnixListener,
    _abstract: UnixListener,
    abstract_name: String,
}

impl Ground {
    /// A workspace, and beside it what nobody inside may reach though everybody could.
    pub(crate) fn new() -> std::io::Result<Self> {
        let temporary = std::env::temp_dir();
        remove_abandoned(&temporary);
        let prefix = format!("{PREFIX}{}-", owner());
        let folder = tempfile::Builder::new().prefix(&prefix).tempdir_in(&temporary)?;
        let at = |name: &str| folder.path().join(name);
        open_to_all(folder.path(), 0o711)?;
        for name in ["skills", "work", "out", "runs"] {
            std::fs::create_dir_all(at("workspace").join(name))?;
            open_to_all(&at("workspace").join(name), 0o777)?;
        }
        open_to_all(&at("workspace"), 0o711)?;
        std::fs::create_dir(at("outside"))?;
        open_to_all(&at("outside"), 0o777)?;
        std::fs::write(at("outside/secret"), "secret")?;
        open_to_all(&at("outside/secret"), 0o666)?;
        if let Some(who) = identity() {
            // So that its mode is theirs to change.
            chown(at("outside/secret"), Some(who.uid), Some(who.gid))?;
        }
        let unix = UnixListener::bind(at("outside/socket"))?;
        open_to_all(&at("outside/socket"), 0o777)?;
        let name = folder.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let hidden = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        let udp = UdpSocket::bind("127.0.0.1:0")?;
        udp.set_nonblocking(true)?;
        Ok(Self {
            tcp: TcpListener::bind("127.0.0.1:0")?,
            udp,
            _unix: unix,
            _abstract: hidden,
            abstract_name: name,
            folder,
        })
    }

    /// The workspace of the test.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    /// What is to be attempted from inside, by a command with this order: so many threads, and to
    /// reach these sockets, too.
    pub(crate) fn attempts(
        &self,
        order: Order,
        threads: u64,
        sockets: Vec<PathBuf>,
    ) -> std::io::Result<Attempts> {
        let outside = self.folder.path().join("outside");
        let own = [outside.join("socket")];
        Ok(Attempts {
            secret: outside.join("secret"),
            sockets: own.into_iter().chain(sockets).collect(),
            abstract_socket: self.abstract_name.clone(),
            tcp: self.tcp.local_addr()?,
            udp: self.udp.local_addr()?,
            threads,
            variables: order.env.into_iter().map(|(name, _)| name).collect(),
            held: order.inside.join("work/held"),
            outside,
        })
    }

    /// Whether something arrived from inside.
    pub(crate) fn was_reached(&self) -> bool {
        self.udp.recv(&mut [0; 16]).is_ok()
    }

    /// Whether somebody still holds the file that was to be held.
    pub(crate) fn is_held(&self) -> bool {
        let Ok(file) = std::fs::File::open(self.workspace().join("work/held")) else { return true };
        let tried = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
        tried.is_err_and(|error| std::io::Error::from(error).kind() == ErrorKind::WouldBlock)
    }
}

/// How the folders of self-tests begin; whose they are follows.
const PREFIX: &str = "prowess-selftest-";

/// This process, unlike any other.
fn owner() -> String {
    let own = std::process::id();
    format!("{own}-{}", start_time(own))
}

/// Removes what a program left that was killed during its self-test.
fn remove_abandoned(temporary: &Path) {
    let Ok(entries) = std::fs::read_dir(temporary) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| {
            let mut words = name.strip_prefix(PREFIX)?.split('-');
            Some((words.next()?.parse::<u32>().ok()?, words.next()?.to_owned()))
        });
        if owner.is_some_and(|(pid, started)| start_time(pid) != started) {
            // Whoever may not remove it leaves it to its owner.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn open_to_all(path: &Path, mode: u32) -> std::io::Result<()> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}
