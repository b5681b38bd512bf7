//! A small HTTP server on loopback that can misbehave.

#![allow(dead_code, reason = "every test file uses some of it")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

/// What was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// As it came, without the query.
    pub(crate) path: String,
    /// Decoded.
    pub(crate) query: BTreeMap<String, String>,
    /// Names in small letters.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

/// What is answered.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) manner: Manner,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// At once, with its length.
    Plain,
    /// Without its length, for ever.
    Endless,
    /// Half of it.
    BreakOff,
    /// Nothing at all, and the connection stays.
    Silent,
}

impl Answer {
    pub(crate) fn ok(body: &Value) -> Self {
        Self::json(200, body)
    }

    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::of(status, "application/json;charset=UTF-8", body.to_string())
    }

    pub(crate) fn html(status: u16, body: &str) -> Self {
        Self::of(status, "text/html", body)
    }

    pub(crate) fn of(status: u16, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("Content-Type".to_owned(), kind.to_owned())];
        Self { status, headers, body: body.into(), manner: Manner::Plain }
    }

    pub(crate) fn redirect(to: &str) -> Self {
        Self::html(302, "").with("Location", to)
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn in_manner(mut self, manner: Manner) -> Self {
        self.manner = manner;
        self
    }
}

type Handler = dyn Fn(&Request) -> Answer + Send + Sync;

pub(crate) struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    seen: Arc<Mutex<Vec<Request>>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(handler: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::<AtomicBool>::default();
        let seen = Arc::<Mutex<Vec<Request>>>::default();
        let handler: Arc<Handler> = Arc::new(handler);
        let (stopped, all) = (Arc::clone(&stop), Arc::clone(&seen));
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => {
                        let (handler, stop) = (Arc::clone(&handler), Arc::clone(&stopped));
                        let all = Arc::clone(&all);
                        std::thread::spawn(move || serve(&stream, &*handler, &stop, &all));
                    }
                    Err(_) => std::thread::sleep(Duration::from_millis(2)),
                }
            }
        });
        Self { address, stop, seen, thread: Some(thread) }
    }

    /// Answers one after the other; the last one again and again.
    pub(crate) fn of(answers: Vec<Answer>) -> Self {
        let at = Mutex::new(0);
        Self::start(move |_| {
            let mut at = at.lock().unwrap();
            let answer = answers[(*at).min(answers.len() - 1)].clone();
            *at += 1;
            answer
        })
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// Everything that was asked so far.
    pub(crate) fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

fn serve(stream: &TcpStream, handler: &Handler, stop: &AtomicBool, seen: &Mutex<Vec<Request>>) {
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(10))).unwrap();
    let Some(request) = read(stream) else {
        return;
    };
    seen.lock().unwrap().push(request.clone());
    let answer = handler(&request);
    // Whoever has heard enough goes away; that is no failure.
    let _ = send(stream, &answer, stop);
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.insert(name.to_lowercase(), value.trim().to_owned());
        }
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap_or(0));
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let query = pairs.map(|(name, value)| (decoded(name), decoded(value))).collect();
    let (path, body) = (path.to_owned(), String::from_utf8_lossy(&body).into_owned());
    Some(Request { method, path, query, headers, body })
}

/// A part of a query as it was meant.
fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        let code = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        match (first, code) {
            (b'%', Some(code)) => {
                bytes.push(code);
                rest = &after[2..];
                continue;
            }
            (b'+', _) => bytes.push(b' '),
            (byte, _) => bytes.push(*byte),
        }
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn send(mut stream: &TcpStream, answer: &Answer, stop: &AtomicBool) -> std::io::Result<()> {
    if answer.manner == Manner::Silent {
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
        return Ok(());
    }
    let mut head = format!("HTTP/1.1 {} Said\r\nConnection: close\r\n", answer.status);
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if answer.manner != Manner::Endless {
        head.push_str(&format!("Content-Length: {}\r\n", answer.body.len()));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes())?;
    match answer.manner {
        Manner::Plain => stream.write_all(&answer.body),
        Manner::BreakOff => stream.write_all(&answer.body[..answer.body.len() / 2]),
        Manner::Silent => Ok(()),
        Manner::Endless => {
            let part = [b' '; 64 << 10];
            while !stop.load(Ordering::Relaxed) {
                stream.write_all(&part)?;
            }
            Ok(())
        }
    }
}
