//! Servers in processes of their own, and the load on them, from another one.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::service::{Client, Service, skill};

/// How many bytes the text of a skill has, about.
pub(crate) const TEXT: usize = 2_000;
/// Connections at the same time: enough for loads that share a commit of some milliseconds.
pub(crate) const CONNECTIONS: usize = 128;

/// A process that is killed when this is dropped.
pub(crate) struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Ours, with this home.
pub(crate) fn prowess(home: &Path) -> Result<Service> {
    Service::start(&crate::discovery::prowess()?, home)
}

/// The id of a skill; all are equally long.
pub(crate) fn id(at: usize) -> String {
    format!("skill-{at:05}")
}

/// Creates skills over HTTP.
pub(crate) fn fill(address: SocketAddr, skills: usize) -> Result<()> {
    let mut client = Client::new(address);
    for at in 0..skills {
        let answer = client.post("/api/v1/skills", &skill(&id(at), TEXT))?;
        ensure!(answer.status == 201, "{}", answer.brief());
    }
    Ok(())
}

/// A bare handler that answers as this one did.
pub(crate) struct Floor {
    pub(crate) address: SocketAddr,
    _process: Process,
}

impl Floor {
    pub(crate) fn like(address: SocketAddr, path: &str) -> Result<Self> {
        let answer = Client::new(address).get(path)?;
        ensure!(answer.status == 200, "{path}: {}", answer.brief());
        let content_type = answer.header("content-type").context("no content type")?;
        let body = String::from_utf8(answer.body.clone())?;
        let input = json!({"content_type": content_type, "body": body});
        let mut child = helper(&[], "floor", &input)?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no output")?).read_line(&mut line)?;
        let process = Process(child);
        let said: Value = serde_json::from_str(&line)?;
        let url = said["url"].as_str().context("the floor does not say where it is")?;
        let address = url.trim_start_matches("http://").parse()?;
        Ok(Self { address, _process: process })
    }
}

/// The program beside this one, started by another one if that is named, with this on its standard
/// input.
fn helper(through: &[&str], part: &str, input: &Value) -> Result<Child> {
    let own = std::env::current_exe()?;
    let path = own.parent().context("no folder")?.join("prowess-bench-http");
    ensure!(path.exists(), "{} is not built", path.display());
    let mut words = through.iter().map(OsStr::new).chain([path.as_os_str()]);
    let mut command = Command::new(words.next().context("no program")?);
    command.args(words).arg(part).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let mut stdin = child.stdin.take().context("no input")?;
    stdin.write_all(input.to_string().as_bytes())?;
    Ok(child)
}

/// What the connections ask for, in turn.
#[derive(Clone, Debug)]
pub(crate) struct Requests(Vec<Value>);

impl Requests {
    /// So many skills, one after another.
    pub(crate) fn get(skills: usize) -> Self {
        let path = |at| format!("/api/v1/skills/{}", id(at));
        Self((0..skills).map(|at| json!({"method": "GET", "path": path(at)})).collect())
    }

    /// Counted loads of so many skills, in many sessions.
    pub(crate) fn load(skills: usize) -> Self {
        let load = |at: usize| {
            let path = format!("/api/v1/skills/{}/load", id(at % skills));
            let body = json!({"session_id": format!("session-{at:04}"), "agent": "bench"});
            json!({"method": "POST", "path": path, "body": body})
        };
        Self((0..1_000).map(load).collect())
    }

    /// Lists with so many filters, each of which some skills pass.
    pub(crate) fn lists(filters: usize) -> Self {
        let path = |at| format!("/api/v1/skills?limit=20&q={at:02}");
        Self((0..filters).map(|at| json!({"method": "GET", "path": path(at)})).collect())
    }

    /// One address.
    pub(crate) fn one(path: &str) -> Self {
        Self(vec![json!({"method": "GET", "path": path})])
    }

    /// These and those, alternately, until both are through.
    pub(crate) fn and(self, others: Self) -> Self {
        let length = self.0.len().max(others.0.len());
        let pairs = self.0.into_iter().cycle().zip(others.0.into_iter().cycle()).take(length);
        Self(pairs.flat_map(|(a, b)| [a, b]).collect())
    }
}

/// What a load measured.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// Requests per second.
    pub(crate) rate: f64,
    /// Seconds.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// How many answers were no success, and the first one of them.
    pub(crate) errors: usize,
    pub(crate) first_error: Option<String>,
}

/// Loads a server for so long, after a third of that to warm up.
pub(crate) fn load(
    address: SocketAddr,
    requests: &Requests,
    connections: usize,
    time: Duration,
) -> Result<Measured> {
    load_through(&[], address, requests, connections, time)
}

/// The same, where the load is started by another program.
pub(crate) fn load_through(
    through: &[&str],
    address: SocketAddr,
    requests: &Requests,
    connections: usize,
    time: Duration,
) -> Result<Measured> {
    let input = json!({
        "address": address.to_string(), "connections": connections,
        "warmup_ms": time.as_millis() as u64 / 3, "run_ms": time.as_millis() as u64,
        "requests": requests.0,
    });
    let output = helper(through, "load", &input)?.wait_with_output()?;
    ensure!(output.status.success(), "the load on {address} failed");
    let said: Value = serde_json::from_slice(&output.stdout)?;
    let number = |name: &str| said[name].as_f64().with_context(|| format!("no {name}"));
    Ok(Measured {
        rate: number("requests")? / number("seconds")?,
        p50: number("p50")?,
        p99: number("p99")?,
        errors: number("errors")? as usize,
        first_error: said["first_error"].as_str().map(str::to_owned),
    })
}

/// The middle one.
pub(crate) fn median(samples: impl IntoIterator<Item = f64>) -> f64 {
    let mut samples: Vec<f64> = samples.into_iter().collect();
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// The peer: FastAPI on uvloop, one worker, with a Redis of its own.
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    _server: Process,
    _redis: Process,
    _folder: tempfile::TempDir,
}

impl Peer {
    /// The peer with the skills of ours; an error says why there is none.
    pub(crate) fn with_skills_of(ours: SocketAddr, skills: usize) -> Result<Self> {
        let python = std::env::var_os("PROWESS_PEERS_SERVE").map(PathBuf::from);
        let python = python.context("PROWESS_PEERS_SERVE names no Python with FastAPI")?;
        let redis = std::env::var_os("PROWESS_TEST_REDIS_SERVER").map(PathBuf::from);
        let redis = redis.context("PROWESS_TEST_REDIS_SERVER names no redis-server")?;
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("skills.json");
        fs::write(&file, serde_json::to_vec(&copy(ours, skills)?)?)?;
        let redis_at = free_address()?;
        let redis = Process(
            Command::new(redis)
                .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port"])
                .arg(redis_at.port().to_string())
                .current_dir(folder.path())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()?,
        );
        answers(redis_at)?;
        let address = free_address()?;
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/serve_fastapi");
        let server = Process(
            Command::new(python)
                .args(["-m", "uvicorn", "app:app", "--workers", "1", "--loop", "uvloop"])
                .args(["--http", "httptools", "--no-access-log", "--log-level", "warning"])
                .args(["--host", "127.0.0.1", "--port", &address.port().to_string()])
                .env("REDIS_PORT", redis_at.port().to_string())
                .env("SKILLS_FILE", &file)
                .env("PYTHONDONTWRITEBYTECODE", "1")
                .current_dir(source)
                .stdin(Stdio::null())
                .spawn()?,
        );
        answers(address)?;
        Ok(Self { address, _server: server, _redis: redis, _folder: folder })
    }
}

/// The skills of ours, with what the peer knows of one.
fn copy(ours: SocketAddr, skills: usize) -> Result<Vec<Value>> {
    let mut client = Client::new(ours);
    let copy = |at| -> Result<Value> {
        let answer = client.get(&format!("/api/v1/skills/{}", id(at)))?;
        ensure!(answer.status == 200, "{}", answer.brief());
        let mut skill = answer.json();
        for name in ["resources", "scripts", "tool_configs", "resource_configs"] {
            if !skill[name].is_array() {
                skill[name] = json!([]);
            }
        }
        Ok(skill)
    };
    (0..skills).map(copy).collect()
}

/// Where nobody listens now.
fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// Waits until somebody listens there.
fn answers(address: SocketAddr) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(60);
    while Instant::now() < end {
        if TcpStream::connect(address).is_ok() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    bail!("nobody listens at {address}")
}
