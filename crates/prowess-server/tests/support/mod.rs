//! A real server on a real port, and HTTP that is written by hand, so that anything can be sent.

#![allow(dead_code, unreachable_pub)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prowess_catalog::{Catalog, MemoryContent, MemorySource};
use prowess_format::ArgumentKind;
use prowess_runtime::{Handlers, Parameter, Runtime, ToolDeclaration, ToolOutcome, tool_fn};
use prowess_server::{Ended, Server, ServerBuilder, ServerSettings, SessionEvents};
use prowess_store::{Actor, KeyStore, Registry, Role, SqliteKeys, SqliteStore, VersionSource};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A server at work.
pub struct Running {
    pub address: SocketAddr,
    pub folder: Arc<tempfile::TempDir>,
    pub store: SqliteStore,
    pub keys: SqliteKeys,
    pub runtime: Runtime,
    stop: Option<oneshot::Sender<()>>,
    served: Option<JoinHandle<Ended>>,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// The code of a problem, which is one in every respect.
    pub fn code(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{}", self.head);
        let value = self.json();
        assert_eq!(value["status"], self.status, "{value}");
        assert_eq!(value["detail"], value["message"], "{value}");
        for key in ["type", "title", "detail", "code"] {
            assert!(value[key].as_str().is_some_and(|text| !text.is_empty()), "{value}");
        }
        value["code"].as_str().unwrap().to_owned()
    }
}

const SKILL: &str = "---\nname: greet\ndescription: Says hello. Use it to greet people.\n---\n# Greet\nSay hello.\n";

pub fn settings(change: impl FnOnce(&mut ServerSettings)) -> ServerSettings {
    let mut settings = ServerSettings::default();
    change(&mut settings);
    settings
}

/// Everything that a server is made of.
pub fn parts(folder: &tempfile::TempDir) -> (ServerBuilder, SqliteStore, Runtime) {
    let store = SqliteStore::open(folder.path().join("prowess.db")).unwrap();
    let registry = Arc::new(Registry::new(Arc::new(store.versions())));
    let catalog = Catalog::builder()
        .source(VersionSource::new("registry", Arc::clone(&registry)))
        .source(MemorySource::new("built-in").with_skill("greet", SKILL))
        .build();
    let events = SessionEvents::new();
    let declaration =
        |name: &str| ToolDeclaration::new(name, "For tests.", json!({"type": "object"}));
    let taking = |name: &str, millis: u64| {
        tool_fn(declaration(name), move |_| async move {
            tokio::time::sleep(Duration::from_millis(millis)).await;
            ToolOutcome::text("at last")
        })
    };
    let runtime = Runtime::builder(catalog.clone())
        .sessions(Arc::new(store.sessions()))
        .content(Arc::new(MemoryContent::default()))
        .toolkit(Arc::new(do_it()))
        .toolkit(Arc::new(made()))
        .toolkit(Arc::new(failing()))
        .tool(taking("slow", 700))
        .tool(taking("very_slow", 1600))
        .tool(taking("for_ever", 1_000_000))
        .sink(Arc::new(events.clone()))
        .build()
        .unwrap();
    let builder =
        Server::builder(runtime.clone(), registry, Arc::new(store.usage()), Arc::new(store.keys()));
    (builder.catalog(catalog).events(events), store, runtime)
}

impl Running {
    pub async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub async fn with(change: impl FnOnce(&mut ServerSettings)) -> Self {
        Self::at(tempfile::tempdir().unwrap(), change).await
    }

    /// Over what is there already.
    pub async fn at(folder: tempfile::TempDir, change: impl FnOnce(&mut ServerSettings)) -> Self {
        Self::built(folder, |builder| builder.settings(settings(change))).await
    }

    /// With something more than others have.
    pub async fn built(
        folder: tempfile::TempDir,
        more: impl FnOnce(ServerBuilder) -> ServerBuilder,
    ) -> Self {
        let folder = Arc::new(folder);
        let (builder, store, runtime) = parts(&folder);
        let bound = more(builder).bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let (stop, stopped) = oneshot::channel();
        let address = bound.local_addr;
        let served = tokio::spawn(bound.serve(async {
            let _ = stopped.await;
        }));
        let keys = store.keys();
        Self { address, folder, store, keys, runtime, stop: Some(stop), served: Some(served) }
    }

    /// A key that is whole.
    pub async fn key(&self, name: &str, role: Role) -> String {
        let (_, secret) = self.keys.create(name, role, None, &Actor::local()).await.unwrap();
        secret.expose().to_owned()
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], None).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, &[], Some(body)).await
    }

    pub async fn get_as(&self, key: &str, path: &str) -> Answer {
        self.send("GET", path, &[("authorization", &format!("Bearer {key}"))], None).await
    }

    /// Sends a body of any kind.
    pub async fn send_bytes(&self, path: &str, kind: &str, body: &[u8]) -> Answer {
        let mut bytes = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
            self.address,
            body.len()
        )
        .into_bytes();
        bytes.extend_from_slice(body);
        self.raw(&bytes).await
    }

    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Value>,
    ) -> Answer {
        let mut text = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "host") {
            text.push_str(&format!("host: {}\r\n", self.address));
        }
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        if !body.is_empty() && !headers.iter().any(|(name, _)| *name == "content-type") {
            text.push_str("content-type: application/json\r\n");
        }
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            text.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        text.push_str("\r\n");
        text.push_str(&body);
        self.raw(text.as_bytes()).await
    }

    /// Sends these bytes and reads until the end.
    pub async fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let _ = stream.write_all(bytes).await;
        read_answer(&mut stream).await
    }

    /// What ends it, and what comes of that.
    pub fn take_ending(&mut self) -> (oneshot::Sender<()>, JoinHandle<Ended>) {
        (self.stop.take().unwrap(), self.served.take().unwrap())
    }
}

pub async fn read_answer(stream: &mut TcpStream) -> Answer {
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all).await;
    let at = all.windows(4).position(|it| it == b"\r\n\r\n").unwrap_or(all.len());
    let head = String::from_utf8(all[..at].to_vec()).unwrap();
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    let rest = all.get(at + 4..).unwrap_or_default();
    let is_chunked = head.to_lowercase().contains("transfer-encoding: chunked");
    let body = if is_chunked { dechunked(rest) } else { rest.to_vec() };
    Answer { status, head, body }
}

pub fn dechunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(at) = rest.windows(2).position(|it| it == b"\r\n") {
        let size = std::str::from_utf8(&rest[..at]).unwrap();
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        let chunk = &rest[at + 2..];
        if size == 0 || chunk.len() < size {
            break;
        }
        body.extend_from_slice(&chunk[..size]);
        rest = chunk.get(size + 2..).unwrap_or_default();
    }
    body
}

/// What the skill `made` is given: something new above its body whenever it is loaded, and rows.
fn made() -> Handlers {
    let count = Arc::new(AtomicU64::new(0));
    let next = move |_| {
        let number = count.fetch_add(1, Ordering::Relaxed) + 1;
        async move { ToolOutcome::text(format!("## Made\n- Number: {number}\n")) }
    };
    Handlers::for_skill("made")
        .opening(next)
        .method("rows", [], |_| async { ToolOutcome::text("id | name\n1 | ann") })
}

/// What the skill `failing` is given.
fn failing() -> Handlers {
    let fails = |_| async { ToolOutcome::error("database_gone", "the database is gone") };
    Handlers::for_skill("failing").opening(fails).method("rows", [], fails)
}

/// What the tool of the skills in these tests is bound to.
pub fn do_it() -> Handlers {
    let n = Parameter::required("n", ArgumentKind::Integer);
    let done = |it: Value| async move { ToolOutcome::text(format!("done {} times", it["n"])) };
    Handlers::for_all().method("do_it", [n], done)
}
