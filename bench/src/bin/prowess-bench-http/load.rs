//! The load: one thread, many connections that stay open, one request at a time on each.
//!
//! It does as little as possible for a request (one write, one read, a look at the head), because
//! it shares the machine with the server.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::event::{Timespec, epoll};
use serde_json::{Value, json};

/// Whoever does not answer for so long has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Reads what to do from standard input, does it, and prints what was measured.
///
/// The input is `{"address", "connections", "warmup_ms", "run_ms", "requests": [{"method", "path",
/// "body"}]}`; the connections take the requests in turn, again and again.
pub(crate) fn run() -> Result<()> {
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input)?;
    let input: Value = serde_json::from_str(&input)?;
    let address: SocketAddr = input["address"].as_str().context("no address")?.parse()?;
    let number = |name: &str| input[name].as_u64().with_context(|| format!("no {name}"));
    let requests = input["requests"].as_array().context("no requests")?;
    let requests: Vec<Vec<u8>> =
        requests.iter().map(|it| encode(it, address)).collect::<Result<_>>()?;
    ensure!(!requests.is_empty(), "no requests");
    let connections = usize::try_from(number("connections")?)?;
    let mut load = Load::new(address, connections, &requests)?;
    load.keep_busy(Duration::from_millis(number("warmup_ms")?))?;
    load.samples.clear();
    (load.errors, load.bytes) = (0, 0);
    let begun = Instant::now();
    load.keep_busy(Duration::from_millis(number("run_ms")?))?;
    let seconds = begun.elapsed().as_secs_f64();
    println!("{}", load.report(seconds));
    Ok(())
}

fn encode(request: &Value, address: SocketAddr) -> Result<Vec<u8>> {
    let method = request["method"].as_str().context("no method")?;
    let path = request["path"].as_str().context("no path")?;
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n");
    match &request["body"] {
        Value::Null => text.push_str("\r\n"),
        body => {
            let body = body.to_string();
            text.push_str("Content-Type: application/json\r\n");
            text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        }
    }
    Ok(text.into_bytes())
}

struct Load<'a> {
    requests: &'a [Vec<u8>],
    next: usize,
    connections: Vec<Connection>,
    epoll: rustix::fd::OwnedFd,
    /// How long each request took, in nanoseconds.
    samples: Vec<u64>,
    errors: usize,
    first_error: Option<String>,
    bytes: usize,
}

struct Connection {
    stream: TcpStream,
    sent: Instant,
    answer: Vec<u8>,
    /// How long the answer will be, as soon as its head is there.
    length: Option<usize>,
}

impl<'a> Load<'a> {
    fn new(address: SocketAddr, connections: usize, requests: &'a [Vec<u8>]) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut load = Self {
            requests,
            next: 0,
            connections: Vec::new(),
            epoll,
            samples: Vec::with_capacity(1 << 20),
            errors: 0,
            first_error: None,
            bytes: 0,
        };
        for at in 0..connections {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let data = epoll::EventData::new_u64(at as u64);
            epoll::add(&load.epoll, &stream, data, epoll::EventFlags::IN)?;
            let answer = Vec::with_capacity(1 << 16);
            load.connections.push(Connection {
                stream,
                sent: Instant::now(),
                answer,
                length: None,
            });
        }
        Ok(load)
    }

    /// Keeps every connection busy for so long, and ends with all of them answered.
    fn keep_busy(&mut self, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        for at in 0..self.connections.len() {
            self.send(at)?;
        }
        let mut busy = self.connections.len();
        let mut events: Vec<epoll::Event> = Vec::with_capacity(1024);
        let patience = Timespec::try_from(PATIENCE)?;
        while busy > 0 {
            events.clear();
            epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&patience))?;
            ensure!(!events.is_empty(), "{busy} requests were not answered in {PATIENCE:?}");
            for event in &events {
                let at = usize::try_from(event.data.u64())?;
                if !self.receive(at)? {
                    continue;
                }
                match Instant::now() < end {
                    true => self.send(at)?,
                    false => busy -= 1,
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, at: usize) -> Result<()> {
        let request = &self.requests[self.next];
        self.next = (self.next + 1) % self.requests.len();
        let connection = &mut self.connections[at];
        connection.answer.clear();
        connection.length = None;
        connection.sent = Instant::now();
        // Small, and nothing else is on its way: there is room for it.
        connection.stream.write_all(request).context("a request could not be sent")
    }

    /// Reads what is there; whether the answer is complete.
    fn receive(&mut self, at: usize) -> Result<bool> {
        let connection = &mut self.connections[at];
        let begin = connection.answer.len();
        if connection.answer.capacity() - begin < 1 << 15 {
            connection.answer.reserve(1 << 16);
        }
        let room = rustix::buffer::spare_capacity(&mut connection.answer);
        match rustix::io::read(&connection.stream, room).map_err(std::io::Error::from) {
            Ok(0) => bail!("the server closed a connection"),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        if connection.length.is_none() {
            connection.length = length(&connection.answer)?;
        }
        let length = connection.length;
        if length.is_none_or(|length| connection.answer.len() < length) {
            return Ok(false);
        }
        ensure!(length == Some(connection.answer.len()), "more was answered than asked for");
        self.samples.push(u64::try_from(connection.sent.elapsed().as_nanos())?);
        self.bytes += connection.answer.len();
        if connection.answer.get(9) != Some(&b'2') {
            self.errors += 1;
            let text = String::from_utf8_lossy(&connection.answer);
            self.first_error.get_or_insert_with(|| text.chars().take(600).collect());
        }
        Ok(true)
    }

    fn report(mut self, seconds: f64) -> Value {
        self.samples.sort_unstable();
        let share = |percent: usize| match self.samples.len() {
            0 => 0.0,
            length => self.samples[(length - 1) * percent / 100] as f64 / 1e9,
        };
        json!({
            "requests": self.samples.len(), "seconds": seconds, "bytes": self.bytes,
            "p50": share(50), "p99": share(99), "longest": share(100),
            "errors": self.errors, "first_error": self.first_error,
        })
    }
}

/// The length of an answer with its head, if that is there.
fn length(answer: &[u8]) -> Result<Option<usize>> {
    let Some(end) = memchr::memmem::find(answer, b"\r\n\r\n") else {
        return Ok(None);
    };
    const NAME: &[u8] = b"content-length:";
    for line in answer[..end].split(|byte| *byte == b'\n') {
        if line.len() > NAME.len() && line[..NAME.len()].eq_ignore_ascii_case(NAME) {
            let value = std::str::from_utf8(&line[NAME.len()..])?.trim();
            return Ok(Some(end + 4 + value.parse::<usize>()?));
        }
    }
    bail!("an answer without its length: {}", String::from_utf8_lossy(&answer[..end]))
}
