//! A small server on loopback. It ends with the test.

#![allow(dead_code)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// What was asked for.
pub(crate) struct Request {
    pub(crate) path: String,
    /// In small letters.
    pub(crate) headers: BTreeMap<String, String>,
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
    /// A byte now and then.
    Slow(Duration),
    /// Half of it.
    BreakOff,
    /// Nothing at all.
    Silent,
}

impl Answer {
    pub(crate) fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, headers: Vec::new(), body: body.into(), manner: Manner::Plain }
    }

    pub(crate) fn status(status: u16) -> Self {
        Self { status, ..Self::ok("") }
    }

    pub(crate) fn redirect(to: &str) -> Self {
        Self::status(302).with("Location", to)
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
    requests: Arc<AtomicUsize>,
    handler: Arc<Mutex<Arc<Handler>>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(handler: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        Self::start_at(IpAddr::V4(Ipv4Addr::LOCALHOST), 0, handler)
    }

    pub(crate) fn start_at(
        address: IpAddr,
        port: u16,
        handler: impl Fn(&Request) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((address, port)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, requests) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let handler: Arc<Handler> = Arc::new(handler);
        let handler = Arc::new(Mutex::new(handler));
        let shared = (Arc::clone(&stop), Arc::clone(&requests), Arc::clone(&handler));
        let thread = std::thread::spawn(move || {
            let (stop, requests, handler) = shared;
            while !stop.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => {
                        let handler = Arc::clone(&handler.lock().unwrap());
                        let (stop, requests) = (Arc::clone(&stop), Arc::clone(&requests));
                        std::thread::spawn(move || serve(&stream, &*handler, &stop, &requests));
                    }
                    Err(_) => std::thread::sleep(Duration::from_millis(2)),
                }
            }
        });
        Self { address, stop, requests, handler, thread: Some(thread) }
    }

    /// Always the same answer.
    pub(crate) fn of(answer: Answer) -> Self {
        Self::start(move |_| answer.clone())
    }

    /// Answers otherwise from now on.
    pub(crate) fn answer(&self, handler: impl Fn(&Request) -> Answer + Send + Sync + 'static) {
        *self.handler.lock().unwrap() = Arc::new(handler);
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// How often it was asked, or connected to.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
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

fn serve(stream: &TcpStream, handler: &Handler, stop: &AtomicBool, requests: &AtomicUsize) {
    requests.fetch_add(1, Ordering::SeqCst);
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    if reader.read_line(&mut line).is_err() {
        return;
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
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
    let answer = handler(&Request { path, headers });
    // Whoever has heard enough goes away; that is no failure.
    let _ = send(stream, &answer, stop);
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
    let has_length = answer.headers.iter().any(|(name, _)| name == "Content-Length");
    if answer.manner != Manner::Endless && !has_length {
        head.push_str(&format!("Content-Length: {}\r\n", answer.body.len()));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes())?;
    match answer.manner {
        Manner::Plain => stream.write_all(&answer.body),
        Manner::BreakOff => stream.write_all(&answer.body[..answer.body.len() / 2]),
        Manner::Silent => Ok(()),
        Manner::Endless => {
            let part = [b'x'; 64 << 10];
            while !stop.load(Ordering::Relaxed) {
                stream.write_all(&part)?;
            }
            Ok(())
        }
        Manner::Slow(pause) => {
            for byte in &answer.body {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                stream.write_all(&[*byte])?;
                std::thread::sleep(pause);
            }
            Ok(())
        }
    }
}
