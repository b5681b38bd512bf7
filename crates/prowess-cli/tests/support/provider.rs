//! A server on the loopback interface that speaks like OpenAI, and says what it was told to say.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// No request is longer.
const MOST_BYTES: usize = 4 << 20;
/// Nobody waits longer for the other side.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is answered to one request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// These bits of text, and a pause after each.
    Text(Vec<String>, Duration),
    /// A thought, and then a text.
    Thought(String, String),
    /// Calls: tool and arguments.
    Calls(Vec<(String, Value)>),
    /// A text that never ends.
    Endless(String),
    /// A text that is as long as it may be.
    Cut(String),
    /// A failure.
    Status(u16, String),
}

impl Reply {
    pub(crate) fn text(text: &str) -> Self {
        let bits = text.split_inclusive(' ').map(str::to_owned).collect();
        Self::Text(bits, Duration::ZERO)
    }

    /// A pause before each word.
    pub(crate) fn slow(text: &str, pause: Duration) -> Self {
        let bits = [""].into_iter().chain(text.split_inclusive(' '));
        Self::Text(bits.map(str::to_owned).collect(), pause)
    }

    pub(crate) fn call(tool: &str, arguments: Value) -> Self {
        Self::Calls(vec![(tool.to_owned(), arguments)])
    }

    pub(crate) fn failing(status: u16, message: &str) -> Self {
        Self::Status(status, json!({"error": {"message": message, "type": "test"}}).to_string())
    }
}

/// The server; it goes with the test.
pub(crate) struct Provider {
    pub(crate) url: String,
    came: Arc<Mutex<Vec<Value>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Provider {
    /// Gives these answers, one per request.
    pub(crate) fn answering(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let came: Arc<Mutex<Vec<Value>>> = Arc::default();
        let is_over = Arc::new(AtomicBool::new(false));
        let replies = Arc::new(Mutex::new(replies.into_iter().collect::<VecDeque<_>>()));
        let (seen, over) = (Arc::clone(&came), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            let mut all: Vec<JoinHandle<()>> = Vec::new();
            while !over.load(Ordering::Relaxed) {
                let Ok((socket, _)) = listener.accept() else {
                    std::thread::sleep(Duration::from_millis(5));
                    continue;
                };
                let (seen, replies, over) = (seen.clone(), replies.clone(), over.clone());
                all.push(std::thread::spawn(move || {
                    // Who hangs up has heard enough.
                    let _ = serve(socket, &seen, &replies, &over);
                }));
            }
            for one in all {
                one.join().unwrap();
            }
        });
        Self { url, came, is_over, thread: Some(thread) }
    }

    /// What came, in order.
    pub(crate) fn came(&self) -> Vec<Value> {
        self.came.lock().unwrap().clone()
    }

    /// The messages of a request: role and text.
    pub(crate) fn messages(&self, at: usize) -> Vec<(String, String)> {
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        let all = self.came()[at]["messages"].as_array().cloned().unwrap();
        all.iter().map(|it| (text(&it["role"]), text(&it["content"]))).collect()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(
    mut socket: TcpStream,
    seen: &Mutex<Vec<Value>>,
    replies: &Mutex<VecDeque<Reply>>,
    is_over: &AtomicBool,
) -> std::io::Result<()> {
    socket.set_nonblocking(false)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    let Some(request) = request(&mut socket)? else { return Ok(()) };
    seen.lock().unwrap().push(request);
    let reply = replies.lock().unwrap().pop_front();
    let reply = reply.unwrap_or_else(|| Reply::failing(400, "no answer is prepared"));
    if let Reply::Status(status, body) = &reply {
        let length = body.len();
        return write!(
            socket,
            "HTTP/1.1 {status} Told\r\ncontent-type: application/json\r\ncontent-length: \
             {length}\r\nconnection: close\r\n\r\n{body}"
        );
    }
    write!(
        socket,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    )?;
    let mut say = |delta: Value, finish: Option<&str>| -> std::io::Result<()> {
        let chunk = json!({
            "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "test",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        });
        write!(socket, "data: {chunk}\n\n")?;
        socket.flush()
    };
    let mut finish = "stop";
    match &reply {
        Reply::Text(bits, pause) => {
            for bit in bits {
                say(json!({"content": bit}), None)?;
                std::thread::sleep(*pause);
            }
        }
        Reply::Thought(thought, text) => {
            say(json!({"reasoning_content": thought}), None)?;
            say(json!({"content": text}), None)?;
        }
        Reply::Cut(text) => {
            finish = "length";
            say(json!({"content": text}), None)?;
        }
        Reply::Calls(calls) => {
            finish = "tool_calls";
            let all: Vec<Value> = calls
                .iter()
                .enumerate()
                .map(|(at, (name, arguments))| {
                    let id = format!("call_{}_{at}", seen.lock().unwrap().len());
                    let function = json!({"name": name, "arguments": arguments.to_string()});
                    json!({"index": at, "id": id, "type": "function", "function": function})
                })
                .collect();
            say(json!({"tool_calls": all}), None)?;
        }
        Reply::Endless(text) => {
            say(json!({"content": text}), None)?;
            let began = Instant::now();
            while !is_over.load(Ordering::Relaxed) && began.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(20));
                say(json!({"content": ""}), None)?;
            }
            return Ok(());
        }
        Reply::Status(..) => {}
    }
    say(json!({}), Some(finish))?;
    let usage = json!({
        "prompt_tokens": 1200, "completion_tokens": 34, "total_tokens": 1234,
        "prompt_tokens_details": {"cached_tokens": 1024},
    });
    let last = json!({
        "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "test",
        "choices": [], "usage": usage,
    });
    write!(socket, "data: {last}\n\ndata: [DONE]\n\n")
}

/// The body of a request.
fn request(socket: &mut TcpStream) -> std::io::Result<Option<Value>> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 8192];
    while bytes.len() < MOST_BYTES {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.and_then(|it| it.trim().parse().ok()).unwrap_or(0);
            if bytes.len() >= end + 4 + length {
                return Ok(serde_json::from_slice(&bytes[end + 4..end + 4 + length]).ok());
            }
        }
        match socket.read(&mut buffer)? {
            0 => return Ok(None),
            count => bytes.extend_from_slice(&buffer[..count]),
        }
    }
    Ok(None)
}
