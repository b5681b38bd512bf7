//! What is sent, before it is answered.

mod support;

use std::time::{Duration, Instant};

use prowess_store::Role;
use serde_json::json;
use support::{Running, read_answer};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// Sends a head that promises so many bytes, and the first ones of them.
async fn begin(server: &Running, head: &str, length: usize, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let text = format!(
        "{head} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn all_bodies_together_have_room_to_its_last_byte() {
    let server = Running::with(|it| (it.max_body_bytes, it.max_bodies_bytes) = (1000, 1500)).await;
    let frame = json!({"session_id": ""}).to_string().len();
    let body = |size: usize| json!({"session_id": "x".repeat(size - frame)});
    // It holds 999 bytes, and more do not come.
    let mut held = begin(&server, "POST /api/v1/sessions", 1000, &" ".repeat(999)).await;
    let end = Instant::now() + Duration::from_secs(10);
    let mut over = server.post("/api/v1/sessions", body(502)).await;
    while over.status != 503 {
        assert!(Instant::now() < end, "there is room for more than there is");
        over = server.post("/api/v1/sessions", body(502)).await;
    }
    assert_eq!(over.code(), "no_room_for_body");
    assert_eq!(over.header("retry-after"), Some("1"));
    let fits = server.post("/api/v1/sessions", body(501)).await;
    assert_eq!(fits.status, 422, "it is read: {}", fits.text());
    assert_eq!(server.get("/api/v1/sessions").await.status, 200, "who sends nothing needs no room");
    held.write_all(b"{").await.unwrap();
    assert_eq!(read_answer(&mut held).await.status, 400);
    let end = Instant::now() + Duration::from_secs(10);
    while server.post("/api/v1/sessions", body(1000)).await.status == 503 {
        assert!(Instant::now() < end, "room is given back");
    }
}

#[tokio::test]
async fn who_may_not_is_told_before_anything_is_read() {
    let server = Running::start().await;
    let key = server.key("vic", Role::Viewer).await;
    for head in ["POST /api/v1/skills", "PUT /api/v1/skills/a", "POST /api/v1/skills/import"] {
        let (method, path) = head.split_once(' ').unwrap();
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let text = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx-api-key: {key}\r\ncontent-type: application/json\r\ncontent-length: 9000000\r\n\r\n{{"
        );
        stream.write_all(text.as_bytes()).await.unwrap();
        let answer = tokio::time::timeout(Duration::from_secs(5), read_answer(&mut stream)).await;
        let answer = answer.unwrap_or_else(|_| panic!("{head} waits for the body"));
        assert_eq!((answer.status, answer.code().as_str()), (403, "forbidden"), "{head}");
    }
}
