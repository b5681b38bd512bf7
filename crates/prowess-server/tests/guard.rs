//! What a request must be like to be answered.

mod support;

use std::time::{Duration, Instant};

use serde_json::json;
use support::{Running, read_answer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test]
async fn the_server_lives_is_ready_and_describes_itself() {
    let server = Running::start().await;
    for path in ["/health", "/ready", "/api/v1/health", "/api/v1/ready"] {
        let answer = server.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert_eq!(answer.json()["status"], "ok");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert!(answer.header("x-request-id").is_some());
    }
    let description = server.get("/api/v1/openapi.json").await.json();
    assert_eq!(description["openapi"], "3.1.0");
    assert!(description["paths"]["/api/v1/sessions/{session_id}/calls"]["post"].is_object());
    let docs = server.get("/docs/").await;
    assert!(docs.status == 200 && docs.text().contains("swagger"), "{}", docs.head);
    assert_eq!(docs.header("x-frame-options"), Some("DENY"));
    let policy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:";
    assert_eq!(docs.header("content-security-policy"), Some(policy));
    for script in docs.text().split("<script").skip(1) {
        assert!(script.starts_with(" src=\"./"), "the policy forbids what is inline: {script}");
    }
    let script = server.get("/docs/swagger-initializer.js").await.text();
    assert!(script.contains("/api/v1/openapi.json"), "{script}");
    assert_eq!(server.get("/docs").await.status, 303);
}

#[tokio::test]
async fn whatever_fails_is_a_problem() {
    let server = Running::start().await;
    let table = [
        ("GET", "/nothing", vec![], None, 404, "not_found"),
        ("GET", "/api/v1/sessions/none", vec![], None, 404, "session_not_found"),
        ("PATCH", "/api/v1/sessions", vec![], None, 405, "method_not_allowed"),
        ("GET", "/api/v1/sessions?limit=x", vec![], None, 422, "invalid_request"),
        ("GET", "/api/v1/sessions?limit=0", vec![], None, 422, "invalid_request"),
        ("GET", "/api/v1/sessions?limit=501", vec![], None, 422, "invalid_request"),
        ("GET", "/api/v1/sessions?cursor=a/b", vec![], None, 422, "invalid_request"),
        ("GET", "/api/v1/sessions/a?app=%2F", vec![], None, 422, "invalid_request"),
        ("GET", "/api/v1/sessions/a%2Fb", vec![], None, 422, "invalid_request"),
        ("GET", "/api/v1/sessions/%FF", vec![], None, 422, "invalid_request"),
        (
            "POST",
            "/api/v1/sessions",
            vec![("content-type", "text/plain")],
            Some(json!({})),
            415,
            "unsupported_media_type",
        ),
        ("POST", "/api/v1/sessions", vec![], Some(json!({"id": 1})), 422, "invalid_request"),
        (
            "POST",
            "/api/v1/sessions",
            vec![],
            Some(json!({"session_id": ".."})),
            422,
            "invalid_request",
        ),
        (
            "POST",
            "/api/v1/sessions",
            vec![],
            Some(json!({"session_id": "a".repeat(129)})),
            422,
            "invalid_request",
        ),
    ];
    for (method, path, headers, body, status, code) in table {
        let answer = server.send(method, path, &headers, body).await;
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{method} {path}");
    }
    let broken = server
        .raw(b"POST /api/v1/sessions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 5\r\n\r\n{\n\"a}")
        .await;
    assert_eq!((broken.status, broken.code().as_str()), (400, "invalid_json"));
    assert_eq!(broken.json()["details"][0]["line"], 2);
    let allowed = server.send("PATCH", "/api/v1/sessions", &[], None).await;
    assert_eq!(allowed.header("allow"), Some("GET,HEAD,POST"));
}

#[tokio::test]
async fn a_web_site_that_leads_its_own_name_here_is_refused() {
    let server = Running::start().await;
    let host = |host: &'static str| {
        let server = &server;
        async move { server.send("GET", "/api/v1/sessions", &[("host", host)], None).await }
    };
    for good in ["localhost", "127.0.0.1:80", "[::1]"] {
        assert_eq!(host(good).await.status, 200, "the control {good}");
    }
    for bad in ["evil.example.com", "localhost.evil.com", "10.1.2.3", "127.0.0.1.nip.io"] {
        let answer = host(bad).await;
        assert_eq!((answer.status, answer.code().as_str()), (421, "wrong_host"), "{bad}");
    }
    let open = server.send("GET", "/health", &[("host", "evil.example.com")], None).await;
    assert_eq!(open.status, 421, "health too");
    let named = Running::with(|it| it.allowed_hosts = vec!["skills.example.com".into()]).await;
    let host = [("host", "Skills.Example.com:443")];
    assert_eq!(named.send("GET", "/health", &host, None).await.status, 200);
}

#[tokio::test]
async fn pages_of_other_sites_are_refused_unless_they_are_allowed() {
    let server =
        Running::with(|it| it.allowed_origins = vec!["https://app.example.com".into()]).await;
    let own = format!("http://{}", server.address);
    let body = || Some(json!({}));
    let post = |origin: String| {
        let server = &server;
        async move { server.send("POST", "/api/v1/sessions", &[("origin", &origin)], body()).await }
    };
    let control = post(own).await;
    assert_eq!((control.status, control.header("access-control-allow-origin")), (201, None));
    for bad in ["https://evil.example.com", "null", "http://localhost:1"] {
        let answer = post(bad.into()).await;
        assert_eq!((answer.status, answer.code().as_str()), (403, "origin_not_allowed"), "{bad}");
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
    let allowed = post("https://app.example.com".into()).await;
    assert_eq!(allowed.status, 201);
    let origin = allowed.header("access-control-allow-origin");
    assert_eq!(origin, Some("https://app.example.com"));
    let preflight = |origin: &'static str| {
        let headers = [("origin", origin), ("access-control-request-method", "POST")];
        let server = &server;
        async move { server.send("OPTIONS", "/api/v1/sessions", &headers, None).await }
    };
    let yes = preflight("https://app.example.com").await;
    assert_eq!(yes.status, 204);
    assert!(yes.header("access-control-allow-headers").unwrap().contains("authorization"));
    let no = preflight("https://evil.example.com").await;
    assert_eq!((no.status, no.header("access-control-allow-methods")), (403, None));
    let before = server.get("/api/v1/sessions").await.json()["total"].clone();
    assert_eq!(before, 2, "what was refused has made nothing");
}

#[tokio::test]
async fn a_body_may_be_as_large_as_the_limit_and_no_larger() {
    let server = Running::with(|it| it.max_body_bytes = 1000).await;
    let frame = json!({"session_id": ""}).to_string().len();
    let body = |size: usize| json!({"session_id": "x".repeat(size - frame)});
    let at_edge = server.post("/api/v1/sessions", body(1000)).await;
    assert_eq!(at_edge.status, 422, "it is read: {}", at_edge.text());
    let over = server.post("/api/v1/sessions", body(1001)).await;
    assert_eq!((over.status, over.code().as_str()), (413, "body_too_large"));
    let mut chunked = b"POST /api/v1/sessions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for _ in 0..11 {
        chunked.extend(format!("64\r\n{}\r\n", " ".repeat(100)).bytes());
    }
    chunked.extend(b"0\r\n\r\n");
    assert_eq!(server.raw(&chunked).await.status, 413, "without a length too");
    let lie = b"POST /api/v1/sessions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 99999999999\r\n\r\n";
    let started = Instant::now();
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(lie).await.unwrap();
    assert_eq!(read_answer(&mut stream).await.status, 413);
    assert!(started.elapsed() < Duration::from_secs(5), "nobody waits for it");
}

#[tokio::test]
async fn json_may_be_as_deep_as_the_limit_and_no_deeper() {
    let server = Running::start().await;
    server.post("/api/v1/sessions", json!({"session_id": "s"})).await;
    let call = |depth: usize| {
        // Body, calls, call: three levels are around the arguments.
        let arguments = (0..depth - 3).fold(json!(1), |inner, _| json!([inner]));
        json!({"calls": [{"id": depth.to_string(), "name": "none", "arguments": arguments}]})
    };
    let path = "/api/v1/sessions/s/calls";
    assert_eq!(server.post(path, call(64)).await.status, 200);
    let deeper = server.post(path, call(65)).await;
    assert_eq!((deeper.status, deeper.code().as_str()), (422, "json_too_deep"));
    assert!(deeper.json()["details"][0]["column"].as_u64() > Some(64));
    let bomb = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n{}",
        "[".repeat(1_000_000)
    );
    assert_eq!(server.raw(bomb.as_bytes()).await.status, 422);
}

#[tokio::test]
async fn who_sends_slowly_is_not_waited_for_and_others_are_served() {
    let server = Running::with(|it| (it.header_seconds, it.body_seconds) = (1, 1)).await;
    let slow = |bytes: &'static [u8]| {
        let address = server.address;
        async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(bytes).await.unwrap();
            let started = Instant::now();
            let answer = read_answer(&mut stream).await;
            (answer.status, started.elapsed())
        }
    };
    let head = slow(b"GET /health HTTP/1.1\r\nhost: loc");
    let nothing = slow(b"");
    let body = slow(b"POST /api/v1/sessions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{");
    let idle = slow(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let (head, nothing, body, idle, quick) =
        tokio::join!(head, nothing, body, idle, server.get("/health"));
    assert_eq!(quick.status, 200);
    assert_eq!((body.0, idle.0), (408, 200));
    for (status, elapsed) in [head, nothing, body, idle] {
        assert!(elapsed < Duration::from_secs(8), "{status} took {elapsed:?}");
    }
}

#[tokio::test]
async fn as_many_connections_as_may_be_are_served_and_others_wait() {
    let server = Running::with(|it| (it.max_connections, it.header_seconds) = (2, 60)).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        let mut some = [0; 12];
        stream.read_exact(&mut some).await.unwrap();
        held.push(stream);
    }
    let waiting = server.get("/health");
    tokio::pin!(waiting);
    let waited = tokio::time::timeout(Duration::from_millis(300), waiting.as_mut()).await;
    assert!(waited.is_err(), "there are only two places");
    held.pop();
    assert_eq!(waiting.await.status, 200);
}

#[tokio::test]
async fn requests_are_limited_at_their_edge_and_those_who_are_refused_are_told_when_to_come_again()
{
    let server = Running::with(|it| it.requests_per_second = Some(5)).await;
    let mut statuses = Vec::new();
    let mut last = None;
    let started = Instant::now();
    for _ in 0..6 {
        let answer = server.get("/api/v1/sessions").await;
        statuses.push(answer.status);
        last = Some(answer);
    }
    // On a slow machine a token comes back meanwhile.
    if started.elapsed() < Duration::from_millis(200) {
        assert_eq!(statuses, [200, 200, 200, 200, 200, 429]);
        let last = last.unwrap();
        assert_eq!(last.code(), "too_many_requests");
        assert_eq!(last.header("retry-after"), Some("1"));
    }
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(server.get("/api/v1/sessions").await.status, 200);
}

#[tokio::test]
async fn a_request_has_the_id_that_its_sender_gives_it_if_it_is_one() {
    let server = Running::start().await;
    let id = |id: &'static str| {
        let server = &server;
        async move {
            let answer = server.send("GET", "/health", &[("x-request-id", id)], None).await;
            answer.header("x-request-id").unwrap().to_owned()
        }
    };
    assert_eq!(id("trace-1:a.b_c").await, "trace-1:a.b_c");
    for bad in ["<script>", "a b", ""] {
        assert_ne!(id(bad).await, bad);
    }
    assert_ne!(id("").await, id("").await);
}

#[tokio::test]
async fn an_address_has_as_many_connections_as_may_be_and_not_one_more() {
    let server = Running::with(|it| it.max_connections_per_address = 2).await;
    let connect = async || {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let head = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n";
        let _ = stream.write_all(head).await;
        let mut status = [0; 12];
        let is_answered = stream.read_exact(&mut status).await.is_ok();
        (is_answered, stream)
    };
    let (first, second) = (connect().await, connect().await);
    assert!(first.0 && second.0);
    assert!(!connect().await.0, "the third is closed");
    drop(first);
    let mut is_answered = false;
    for _ in 0..100 {
        is_answered = connect().await.0;
        if is_answered {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(is_answered, "a place that was given back is taken again");
}
