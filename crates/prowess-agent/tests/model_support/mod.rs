//! A provider on the loopback interface that says what it was told to say.
//!
//! What it says is in `tests/fixtures`. A file has the shape of what the page shows that it names
//! as its `source`; the words and numbers in it are ours, the same for all providers.

#![allow(dead_code, reason = "every test file uses some of it")]

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use prowess_agent::{
    ApiKey, ChatModel, Fold, ModelError, ModelRequest, ModelResponse, ProviderModel,
    ProviderSettings, RetryPolicy,
};
use prowess_runtime::{Message, ToolDeclaration, ToolResult};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Names of models, one per provider.
pub(crate) const MODELS: [&str; 4] =
    ["openai:gpt-5", "anthropic:claude-sonnet-4-5", "gemini:gemini-2.5-flash", "ollama:qwen3"];

/// A key that must not be seen.
pub(crate) const KEY: &str = "sk-test-7f3a9c51e0d24b68-never-seen";

/// What the provider answers to one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    chunks: Vec<String>,
    end: End,
}

/// What happens after the last bit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum End {
    #[default]
    Whole,
    /// The connection breaks.
    Break,
    /// Nothing more comes.
    Hang,
    /// Nothing comes at all.
    Silence,
}

impl Answer {
    fn of(status: u16, kind: &str, chunks: Vec<String>) -> Self {
        let headers = vec![("content-type".to_owned(), kind.to_owned())];
        Self { status, headers, chunks, end: End::Whole }
    }

    /// What a fixture says, such as `openai/text`.
    pub(crate) fn fixture(name: &str) -> Self {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/{name}.json"));
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        let fixture: Value = serde_json::from_str(&text).unwrap();
        assert!(fixture["source"].as_str().unwrap().starts_with("https://"), "{name}: no source");
        let list = |key: &str| fixture[key].as_array().cloned();
        if let Some(events) = list("events") {
            return Self::of(200, "text/event-stream", events.iter().map(sse).collect());
        }
        if let Some(lines) = list("lines") {
            let lines = lines.iter().map(|line| format!("{line}\n")).collect();
            return Self::of(200, "application/x-ndjson", lines);
        }
        let status = fixture["status"].as_u64().map_or(200, |it| u16::try_from(it).unwrap());
        Self::of(status, "application/json", vec![fixture["body"].to_string()])
    }

    /// A body of our own.
    pub(crate) fn body(status: u16, kind: &str, body: impl Into<String>) -> Self {
        Self::of(status, kind, vec![body.into()])
    }

    /// Never answers.
    pub(crate) fn silence() -> Self {
        Self { end: End::Silence, ..Self::default() }
    }

    pub(crate) fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Only so many bits, and then the connection breaks.
    pub(crate) fn broken_after(mut self, bits: usize) -> Self {
        self.chunks.truncate(bits);
        self.end = End::Break;
        self
    }

    /// Only so many bits, and then the answer ends as if it were whole.
    pub(crate) fn ended_after(mut self, bits: usize) -> Self {
        self.chunks.truncate(bits);
        self
    }

    /// Only so many bits, and then nothing more comes.
    pub(crate) fn hanging_after(mut self, bits: usize) -> Self {
        self.chunks.truncate(bits);
        self.end = End::Hang;
        self
    }

    /// Puts a text in place of another.
    pub(crate) fn replacing(mut self, from: &str, to: &str) -> Self {
        for chunk in &mut self.chunks {
            *chunk = chunk.replace(from, to);
        }
        self
    }
}

fn sse(event: &Value) -> String {
    let data = event["data"].as_str().map_or_else(|| event["data"].to_string(), str::to_owned);
    match event["event"].as_str() {
        Some(name) => format!("event: {name}\ndata: {data}\n\n"),
        None => format!("data: {data}\n\n"),
    }
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Came {
    pub(crate) path: String,
    pub(crate) head: String,
    pub(crate) body: Value,
}

/// The provider.
pub(crate) struct Server {
    pub(crate) url: String,
    came: Arc<Mutex<Vec<Came>>>,
    hung_up: Arc<tokio::sync::Notify>,
}

impl Server {
    /// Gives these answers, one per request, and the last one again and again.
    pub(crate) async fn answering(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let came = Arc::new(Mutex::new(Vec::new()));
        let hung_up = Arc::new(tokio::sync::Notify::new());
        let answers = Arc::new(Mutex::new(answers.into_iter().collect::<VecDeque<_>>()));
        let (seen, notify) = (Arc::clone(&came), Arc::clone(&hung_up));
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (seen, answers) = (Arc::clone(&seen), Arc::clone(&answers));
                tokio::spawn(serve(socket, seen, answers, Arc::clone(&notify)));
            }
        });
        Self { url, came, hung_up }
    }

    /// What came, in order.
    pub(crate) fn came(&self) -> Vec<Came> {
        self.came.lock().unwrap().clone()
    }

    /// Waits until a client hangs up before the answer is whole.
    pub(crate) async fn sees_hang_up(&self) {
        tokio::time::timeout(Duration::from_secs(10), self.hung_up.notified()).await.unwrap();
    }

    /// A model here, which waits little.
    pub(crate) fn model(&self, name: &str) -> ProviderModel {
        self.model_with(name, |settings| settings)
    }

    pub(crate) fn model_with(
        &self,
        name: &str,
        change: impl FnOnce(ProviderSettings) -> ProviderSettings,
    ) -> ProviderModel {
        let retry = RetryPolicy::default().with_first_delay_ms(2).with_max_attempts(3);
        let settings = ProviderSettings::default().with_base_url(&self.url).with_retry(retry);
        ProviderModel::new(name, change(settings), Some(ApiKey::new(KEY))).unwrap()
    }
}

async fn serve(
    mut socket: TcpStream,
    seen: Arc<Mutex<Vec<Came>>>,
    answers: Arc<Mutex<VecDeque<Answer>>>,
    hung_up: Arc<tokio::sync::Notify>,
) {
    let Some(came) = request(&mut socket).await else { return };
    seen.lock().unwrap().push(came);
    let answer = {
        let mut answers = answers.lock().unwrap();
        let next = answers.front().cloned().unwrap_or_default();
        if answers.len() > 1 {
            answers.pop_front();
        }
        next
    };
    if answer.end != End::Silence {
        let mut head = format!("HTTP/1.1 {} Told\r\ntransfer-encoding: chunked\r\n", answer.status);
        head.push_str("connection: close\r\n");
        for (name, value) in &answer.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if socket.write_all(format!("{head}\r\n").as_bytes()).await.is_err() {
            return;
        }
        for chunk in &answer.chunks {
            let chunk = format!("{:x}\r\n{chunk}\r\n", chunk.len());
            if socket.write_all(chunk.as_bytes()).await.is_err() {
                hung_up.notify_one();
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    match answer.end {
        End::Whole => drop(socket.write_all(b"0\r\n\r\n").await),
        End::Break => {}
        End::Hang | End::Silence => {
            let mut rest = [0; 1];
            if matches!(socket.read(&mut rest).await, Ok(0) | Err(_)) {
                hung_up.notify_one();
            }
        }
    }
}

async fn request(socket: &mut TcpStream) -> Option<Came> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let length = head.lines().find_map(|line| {
                line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok()
            });
            let length: usize = length.unwrap_or(0);
            if bytes.len() >= end + 4 + length {
                let body = serde_json::from_slice(&bytes[end + 4..end + 4 + length]).ok()?;
                let path = head.split_whitespace().nth(1)?.to_owned();
                return Some(Came { path, head, body });
            }
        }
        match socket.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

/// A provider's folder of fixtures.
pub(crate) fn folder(model: &str) -> &str {
    model.split_once(':').unwrap().0
}

pub(crate) fn weather() -> ToolDeclaration {
    let parameters = json!({
        "type": "object",
        "properties": {"location": {"type": "string"}},
        "required": ["location"],
    });
    ToolDeclaration::new("get_weather", "Says how the weather is.", parameters)
}

pub(crate) fn asking(text: &str) -> ModelRequest {
    ModelRequest::new([Message::user(text)]).with_system("Be brief.").with_tools(vec![weather()])
}

pub(crate) fn result(call_id: &str, content: &str, is_error: bool) -> Message {
    let result: ToolResult = serde_json::from_value(json!({
        "call_id": call_id, "name": "get_weather", "content": content, "is_error": is_error,
    }))
    .unwrap();
    Message::answering(result)
}

/// What a stream comes to.
pub(crate) async fn folded(
    model: &dyn ChatModel,
    request: &ModelRequest,
) -> Result<ModelResponse, ModelError> {
    let mut fold = Fold::new();
    let mut events = model.stream(request);
    while let Some(event) = events.next().await {
        fold.push(&event?);
    }
    fold.finish()
}
