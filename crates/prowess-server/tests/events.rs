//! What happens in a session, as it is told.

mod support;

use std::time::{Duration, Instant};

use prowess_store::{Actor, KeyStore, Role};
use serde_json::json;
use support::{Answer, Running, dechunked};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The ids and data of the events in a text.
fn told(text: &str) -> Vec<(u64, String)> {
    let frames = text.split("\n\n").filter(|frame| frame.starts_with("id: "));
    let field = |frame: &str, name: &str| {
        frame.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned()
    };
    frames.map(|it| (field(it, "id: ").parse().unwrap(), field(it, "data: "))).collect()
}

async fn call(server: &Running, id: String) -> Answer {
    let call =
        json!({"calls": [{"id": id, "name": "load_skill", "arguments": {"skill": "greet"}}]});
    server.post("/api/v1/sessions/s/calls", call).await
}

/// Reads events until there are enough of them, or the stream ends.
async fn follow(server: &Running, after: u64, enough: usize) -> Vec<(u64, String)> {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = format!(
        "GET /api/v1/sessions/s/events HTTP/1.1\r\nhost: localhost\r\nlast-event-id: {after}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut all = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = tokio::time::timeout(Duration::from_secs(20), stream.read(&mut buffer)).await;
        let count = read.expect("events come in time").unwrap();
        all.extend_from_slice(&buffer[..count]);
        let at = all.windows(4).position(|it| it == b"\r\n\r\n").map_or(all.len(), |at| at + 4);
        let text = String::from_utf8(dechunked(&all[at..])).unwrap();
        let events = told(&text);
        if events.len() >= enough || count == 0 {
            return events;
        }
    }
}

#[tokio::test]
async fn events_are_told_in_their_order_and_again_from_where_somebody_was() {
    let server = Running::start().await;
    server.post("/api/v1/sessions", json!({"session_id": "s"})).await;
    call(&server, "c1".into()).await;
    let all = server.get("/api/v1/sessions/s/events?follow=false").await;
    assert_eq!(all.header("content-type"), Some("text/event-stream"));
    assert!(all.text().starts_with("retry: 1000\n\n"));
    let events = told(&all.text());
    let ids: Vec<u64> = events.iter().map(|it| it.0).collect();
    assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>());
    assert!(all.text().contains("event: skill_loaded\n"), "{}", all.text());
    let rest = server.get("/api/v1/sessions/s/events?follow=false&after=1").await;
    assert_eq!(told(&rest.text()), events[1..]);
    let header = [("last-event-id", "1")];
    let path = "/api/v1/sessions/s/events?follow=false&after=0";
    let rest = server.send("GET", path, &header, None).await;
    assert_eq!(told(&rest.text()), events[1..], "the header counts");
    let wrong = server.send("GET", path, &[("last-event-id", "x")], None).await;
    assert_eq!(wrong.status, 422);
}

#[tokio::test]
async fn nothing_is_lost_or_told_twice_while_many_write_and_a_listener_comes_and_goes() {
    let server = Running::start().await;
    server.post("/api/v1/sessions", json!({"session_id": "s"})).await;
    let server = std::sync::Arc::new(server);
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let server = std::sync::Arc::clone(&server);
            tokio::spawn(async move {
                for number in 0..10 {
                    let answer = call(&server, format!("{writer}-{number}")).await;
                    assert_eq!(answer.status, 200, "{}", answer.text());
                }
            })
        })
        .collect();
    let mut heard: Vec<(u64, String)> = Vec::new();
    while heard.len() < 30 {
        let after = heard.last().map_or(0, |last| last.0);
        heard.extend(follow(&server, after, 3).await);
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let all = told(&server.get("/api/v1/sessions/s/events?follow=false").await.text());
    assert!(all.len() >= 40, "{}", all.len());
    let after = heard.last().unwrap().0;
    let rest = format!("/api/v1/sessions/s/events?follow=false&after={after}");
    heard.extend(told(&server.get(&rest).await.text()));
    assert_eq!(heard, all);
}

#[tokio::test]
async fn a_listener_is_woken_at_once() {
    let server = Running::start().await;
    server.post("/api/v1/sessions", json!({"session_id": "s"})).await;
    let listening = follow(&server, 0, 1);
    let acting = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let started = Instant::now();
        call(&server, "c1".into()).await;
        started
    };
    let (events, started) = tokio::join!(listening, acting);
    assert!(!events.is_empty());
    assert!(started.elapsed() < Duration::from_millis(700), "{:?}", started.elapsed());
}

#[tokio::test]
async fn events_of_other_processes_are_told_within_a_look() {
    let server = Running::start().await;
    server.post("/api/v1/sessions", json!({"session_id": "s"})).await;
    let other = support::parts(&server.folder).2;
    let listening = follow(&server, 0, 1);
    let acting = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let call = prowess_runtime::ToolCall::new("x", "load_skill", json!({"skill": "greet"}));
        other.dispatch(&"s".parse().unwrap(), &Default::default(), call).await.unwrap();
    };
    let (events, ()) = tokio::join!(listening, acting);
    assert!(!events.is_empty());
}

#[tokio::test]
async fn a_stream_ends_with_its_session_and_with_its_key() {
    let server = Running::start().await;
    let key = server.key("ci", Role::Viewer).await;
    let bearer = format!("Bearer {key}");
    let headers = [("authorization", bearer.as_str())];
    for session in ["a", "b"] {
        let body = Some(json!({"session_id": session}));
        server.send("POST", "/api/v1/sessions", &headers, body).await;
    }
    let gone = server.send("GET", "/api/v1/sessions/a/events", &headers, None);
    let revoked = server.send("GET", "/api/v1/sessions/b/events", &headers, None);
    let acting = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        server.send("DELETE", "/api/v1/sessions/a", &headers, None).await;
        server.keys.revoke("ci", &Actor::local()).await.unwrap();
    };
    let all = async { tokio::join!(gone, revoked, acting) };
    let (gone, revoked, ()) = tokio::time::timeout(Duration::from_secs(12), all).await.unwrap();
    assert_eq!((gone.status, revoked.status), (200, 200));
}

#[tokio::test]
async fn a_stream_ends_with_its_key_also_while_there_is_something_to_tell() {
    let server = Running::start().await;
    let key = server.key("ci", Role::Viewer).await;
    let admin = server.key("root", Role::Admin).await;
    let (header, of_admin) = ([("x-api-key", key.as_str())], [("x-api-key", admin.as_str())]);
    let body = Some(json!({"session_id": "s"}));
    server.send("POST", "/api/v1/sessions", &header, body).await;
    let acting = async {
        for number in 0.. {
            let id = number.to_string();
            let load = json!({"calls": [{"id": id, "name": "load_skill", "arguments": {"skill": "greet"}}]});
            let path = "/api/v1/sessions/s/calls?user=ci";
            let called = server.send("POST", path, &of_admin, Some(load)).await;
            assert_eq!(called.status, 200, "{}", called.text());
            if number == 3 {
                server.keys.revoke("ci", &Actor::local()).await.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let listening = async {
        let stream = server.send("GET", "/api/v1/sessions/s/events", &header, None);
        tokio::time::timeout(Duration::from_secs(10), stream).await
    };
    let heard = tokio::select! {
        heard = listening => heard.expect("it goes on for ever"),
        () = acting => unreachable!(),
    };
    assert!(!told(&heard.text()).is_empty(), "the control");
}

#[tokio::test]
async fn everybody_has_as_many_streams_as_may_be_and_not_one_more() {
    let server = Running::with(|it| it.max_streams = 2).await;
    let mut keys = Vec::new();
    for name in ["one", "two"] {
        let key = server.key(name, Role::Viewer).await;
        let header = [("x-api-key", key.as_str())];
        let body = Some(json!({"session_id": "s"}));
        assert_eq!(server.send("POST", "/api/v1/sessions", &header, body).await.status, 201);
        keys.push(key);
    }
    let open = async |key: &str| {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let path = "/api/v1/sessions/s/events";
        let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: {key}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.unwrap();
        (String::from_utf8(status.to_vec()).unwrap(), stream)
    };
    let (first, second) = (open(&keys[0]).await, open(&keys[0]).await);
    assert_eq!((first.0.as_str(), second.0.as_str()), ("HTTP/1.1 200", "HTTP/1.1 200"));
    let header = [("x-api-key", keys[0].as_str())];
    let over = server.send("GET", "/api/v1/sessions/s/events", &header, None).await;
    assert_eq!((over.status, over.code().as_str()), (429, "too_many_streams"));
    assert_eq!(open(&keys[1]).await.0, "HTTP/1.1 200", "others are not hurt");
    // Who ends one may begin another.
    drop(first);
    let mut last = String::new();
    for _ in 0..100 {
        last = open(&keys[0]).await.0;
        if last == "HTTP/1.1 200" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(last, "HTTP/1.1 200");
}
