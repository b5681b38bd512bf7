//! A real `prowess serve` in a process of its own, a client for it, and what both must survive.
//!
//! The tests and `./dev bench serve` use the same.

#![allow(dead_code, unused_imports, reason = "every user uses a part of it")]

mod client;
mod failover;
mod kills;
mod trials;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

pub(crate) use client::{Answer, Client};
pub(crate) use failover::{Failovers, kill_instances};
pub(crate) use kills::{Kills, kill_during_writes};
pub(crate) use trials::{Loads, Updates, concurrent_loads, concurrent_updates, versions};

/// A server that is killed when this is dropped.
pub(crate) struct Service {
    child: Child,
    address: SocketAddr,
    home: PathBuf,
    said: Value,
    /// Kept, so that whatever it says later finds an open end.
    _stdout: BufReader<ChildStdout>,
}

impl Drop for Service {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Service {
    /// Starts the program on a free port of this machine, with this home, and waits until it
    /// listens.
    pub(crate) fn start(program: &Path, home: &Path) -> Result<Self> {
        Self::start_on(program, home, None)
    }

    /// The same, on a store elsewhere.
    pub(crate) fn start_on(program: &Path, home: &Path, store: Option<&str>) -> Result<Self> {
        Self::start_through(&[], program, home, store)
    }

    /// The same, started by another program, which becomes it.
    pub(crate) fn start_through(
        through: &[&str],
        program: &Path,
        home: &Path,
        store: Option<&str>,
    ) -> Result<Self> {
        fs::create_dir_all(home)?;
        let log = home.join("serve.log");
        let mut words = through.iter().map(OsStr::new).chain([program.as_os_str()]);
        let mut child = Command::new(words.next().context("no program")?)
            .args(words)
            .args(["serve", "--port", "0", "--json"])
            .current_dir(home)
            .env("PROWESS_HOME", home)
            .envs(store.map(|url| ("PROWESS_STORE_URL", url)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::options().create(true).append(true).open(&log)?)
            .spawn()
            .with_context(|| format!("{} does not start", program.display()))?;
        let mut stdout = BufReader::new(child.stdout.take().context("no standard output")?);
        let mut line = String::new();
        stdout.read_line(&mut line)?;
        let said: Value = serde_json::from_str(&line).unwrap_or_default();
        let address = said["url"].as_str().and_then(|url| url.strip_prefix("http://"));
        let Some(address) = address.and_then(|it| it.trim_end_matches('/').parse().ok()) else {
            let _ = child.kill();
            let _ = child.wait();
            let log = fs::read_to_string(&log).unwrap_or_default();
            bail!("prowess serve did not say where it listens, but '{}': {log}", line.trim());
        };
        Ok(Self { child, address, home: home.to_owned(), said, _stdout: stdout })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it said when it began.
    pub(crate) fn said(&self) -> &Value {
        &self.said
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.address)
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Ends it at once, as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to end, and says how it did.
    pub(crate) fn terminate(mut self) -> Result<std::process::ExitStatus> {
        let id = self.child.id().to_string();
        ensure!(Command::new("kill").args(["-TERM", &id]).status()?.success(), "kill failed");
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            ensure!(Instant::now() < end, "prowess serve does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// What it wrote to its standard error, for whoever looks into a failure.
    pub(crate) fn log(&self) -> String {
        let mut text = String::new();
        let log = File::open(self.home.join("serve.log"));
        let _ = log.map(|mut log| log.read_to_string(&mut text));
        text
    }
}

/// What `POST /skills` takes, with a text of about `bytes` bytes.
pub(crate) fn skill(id: &str, bytes: usize) -> Value {
    json!({
        "id": id,
        "name": format!("Skill {id}"),
        "description": format!("Explains how {id} is done, step by step, and when to leave it."),
        "category": "custom",
        "core_content": text(&format!("# Skill {id}"), bytes),
    })
}

/// A text that begins with these words and has about so many bytes.
pub(crate) fn text(begin: &str, bytes: usize) -> String {
    let mut text = format!("{begin}\n\n");
    let mut step = 0;
    while text.len() < bytes {
        step += 1;
        text.push_str(&format!("{step}. Read the table, note what is new, and write it down.\n"));
    }
    text
}

/// What SQLite says about the database of this home, which nobody uses now; nothing if it is whole.
pub(crate) fn damage(home: &Path) -> Result<Vec<String>> {
    let database = rusqlite::Connection::open(home.join("prowess.db"))?;
    let mut check = database.prepare("PRAGMA integrity_check")?;
    let lines = check.query_map([], |row| row.get::<_, String>(0))?;
    let lines: Vec<String> = lines.collect::<rusqlite::Result<_>>()?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}
