//! A real S3 server for tests: versitygw on a free port, with buckets in a folder of its own.

#![allow(dead_code, reason = "every test file uses a part of it")]

use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Names the program. `./dev test` sets it.
const PROGRAM: &str = "PROWESS_TEST_S3_SERVER";

pub(crate) const BUCKET: &str = "artifacts";
pub(crate) const ACCESS_KEY: &str = "test-access-key";
pub(crate) const SECRET_KEY: &str = "test-secret-key-that-nobody-may-see";

/// A server that is ended when this is dropped.
pub(crate) struct S3Server {
    child: Child,
    folder: tempfile::TempDir,
    address: SocketAddr,
}

impl Drop for S3Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl S3Server {
    /// A server with an empty bucket; `None` if there is no program for it, which is told.
    pub(crate) fn start(test: &str) -> Option<Self> {
        let Some(program) = std::env::var_os(PROGRAM).map(PathBuf::from) else {
            skip(test, &format!("{PROGRAM} names no S3 server; ./dev test installs one"));
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        for name in ["buckets", "buckets/artifacts", "metadata"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        // Another process may take the port in between; then the next one is tried.
        for _ in 0..10 {
            let address = free_address();
            let mut child = serve(&program, folder.path(), address);
            if answers(&mut child, address) {
                return Some(Self { child, folder, address });
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        panic!("{} does not start", program.display());
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the server keeps the objects of the bucket.
    pub(crate) fn bucket(&self) -> PathBuf {
        self.folder.path().join("buckets").join(BUCKET)
    }

    /// Where the server describes the object that it keeps in this file.
    pub(crate) fn metadata_of(&self, file: &Path) -> PathBuf {
        let key = file.strip_prefix(self.folder.path().join("buckets")).unwrap();
        self.folder.path().join("metadata").join(key)
    }

    /// Makes it stand still, with its connections open, and waits until all its threads do.
    pub(crate) fn pause(&self) {
        self.signal("-STOP");
        let end = Instant::now() + Duration::from_secs(20);
        while !self.stands_still() {
            assert!(Instant::now() < end, "the server does not stand still");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Lets it go on.
    pub(crate) fn resume(&self) {
        self.signal("-CONT");
    }

    fn stands_still(&self) -> bool {
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        threads.flatten().all(|thread| {
            let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with('T'))
        })
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Ends it at once, as a crash does.
    pub(crate) fn crash(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again, on the same port and folder.
    pub(crate) fn restart(&mut self) {
        let program: PathBuf = std::env::var_os(PROGRAM).unwrap().into();
        self.child = serve(&program, self.folder.path(), self.address);
        assert!(answers(&mut self.child, self.address));
    }
}

fn serve(program: &Path, folder: &Path, address: SocketAddr) -> Child {
    Command::new(program)
        .arg("--port")
        .arg(address.to_string())
        .args(["--quiet", "--keep-alive", "posix", "--sidecar"])
        .arg(folder.join("metadata"))
        .arg(folder.join("buckets"))
        .env("ROOT_ACCESS_KEY_ID", ACCESS_KEY)
        .env("ROOT_SECRET_ACCESS_KEY", SECRET_KEY)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn answers(child: &mut Child, address: SocketAddr) -> bool {
    let end = Instant::now() + Duration::from_secs(20);
    while Instant::now() < end {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        if TcpStream::connect(address).is_ok() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

/// Where nobody listens now.
pub(crate) fn free_address() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap()
}

/// Says that a test could not run here, and why. `./dev test` counts and prints it.
fn skip(test: &str, why: &str) {
    println!("SKIPPED {test}: {why}");
    if let Ok(log) = std::env::var("PROWESS_SKIP_LOG") {
        let mut log = fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        writeln!(log, "{test}: {why}").unwrap();
    }
}
