//! A real Redis server for tests, on a free port and in a folder of its own.

#![allow(dead_code)]

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Names the program; `redis-server` unless it is set.
const PROGRAM: &str = "PROWESS_TEST_REDIS_SERVER";

/// Nothing is on the disk.
pub(crate) const IN_MEMORY: &[&str] = &["--appendonly", "no"];
/// What is acknowledged is on the disk.
pub(crate) const ALWAYS: &[&str] = &["--appendonly", "yes", "--appendfsync", "always"];
/// What was acknowledged is on the disk soon.
pub(crate) const EVERY_SECOND: &[&str] = &["--appendonly", "yes", "--appendfsync", "everysec"];

/// A server that is ended when this is dropped.
pub(crate) struct RedisServer {
    child: Child,
    folder: tempfile::TempDir,
    address: SocketAddr,
    /// What the command begins with, if the server is elsewhere.
    through: Vec<String>,
    settings: Vec<String>,
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

impl RedisServer {
    /// A server without keys; `None` if there is no program for it, which is told.
    pub(crate) fn start(test: &str) -> Option<Self> {
        Self::start_with(test, IN_MEMORY)
    }

    /// The same with these settings.
    pub(crate) fn start_with(test: &str, settings: &[&str]) -> Option<Self> {
        Self::start_at(test, Ipv4Addr::LOCALHOST, &[], settings)
    }

    /// The same at another address, where commands that begin so are.
    pub(crate) fn start_at(
        test: &str,
        address: Ipv4Addr,
        through: &[String],
        settings: &[&str],
    ) -> Option<Self> {
        let settings: Vec<String> = settings.iter().map(|it| (*it).to_owned()).collect();
        // Another process may take the port in between; then the next one is tried.
        for _ in 0..20 {
            let folder = tempfile::tempdir().unwrap();
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let address = SocketAddr::from((address, listener.local_addr().unwrap().port()));
            drop(listener);
            let Some(child) = spawn(address, through, &folder, &settings) else {
                let program = program().to_string_lossy().into_owned();
                let why = format!("there is no {program}; install it, or name one in {PROGRAM}");
                super::skip(test, &why);
                return None;
            };
            let (through, settings) = (through.to_vec(), settings.clone());
            let mut server = Self { child, folder, address, through, settings };
            if server.answers() {
                return Some(server);
            }
        }
        panic!("{} does not start", program().to_string_lossy());
    }

    /// The only node of a cluster: it refuses what would not be on one node of a larger one.
    pub(crate) fn start_cluster(test: &str) -> Option<Self> {
        let server = Self::start_with(test, &["--appendonly", "no", "--cluster-enabled", "yes"])?;
        let mut connection = server.connection();
        let mut assign = redis::cmd("CLUSTER");
        assign.arg("ADDSLOTSRANGE").arg(0).arg(16383);
        assign.exec(&mut connection).unwrap();
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let info: String = redis::cmd("CLUSTER").arg("INFO").query(&mut connection).unwrap();
            if info.contains("cluster_state:ok") {
                return Some(server);
            }
            assert!(Instant::now() < end, "{info}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}/0", self.address)
    }

    pub(crate) fn connection(&self) -> redis::Connection {
        redis::Client::open(self.url()).unwrap().get_connection().unwrap()
    }

    /// Ends it as a crash would.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again, at the same address and with what is on the disk.
    pub(crate) fn start_again(&mut self) {
        self.kill();
        let end = Instant::now() + Duration::from_secs(30);
        while Instant::now() < end {
            let child = spawn(self.address, &self.through, &self.folder, &self.settings);
            self.child = child.unwrap();
            if self.answers() {
                return;
            }
        }
        panic!("it does not start again");
    }

    /// It is there, and does nothing.
    pub(crate) fn pause(&self) {
        self.signal("-STOP");
    }

    /// It goes on.
    pub(crate) fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    fn answers(&mut self) -> bool {
        let end = Instant::now() + Duration::from_secs(20);
        while Instant::now() < end && self.child.try_wait().unwrap().is_none() {
            let connection = redis::Client::open(self.url()).unwrap().get_connection();
            let answer = connection.and_then(|mut it| redis::cmd("PING").query::<String>(&mut it));
            if answer.is_ok() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }
}

fn program() -> std::ffi::OsString {
    std::env::var_os(PROGRAM).unwrap_or("redis-server".into())
}

/// The program, if there is one.
fn spawn(
    address: SocketAddr,
    through: &[String],
    folder: &tempfile::TempDir,
    settings: &[String],
) -> Option<Child> {
    let words: Vec<_> = through.iter().map(Into::into).chain([program()]).collect();
    Command::new(&words[0])
        .args(&words[1..])
        .args(["--bind", &address.ip().to_string(), "--protected-mode", "no", "--save", ""])
        .args(["--port", &address.port().to_string()])
        .arg("--dir")
        .arg(folder.path())
        .args(settings)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()
}
