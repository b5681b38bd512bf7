//! How a server ends.

mod support;

use std::time::{Duration, Instant};

use prowess_server::Ended;
use serde_json::json;
use support::Running;
use tokio::net::TcpStream;

fn slow(id: &str) -> serde_json::Value {
    json!({"calls": [{"id": id, "name": "slow"}]})
}

#[tokio::test]
async fn what_was_begun_is_finished_streams_end_and_nobody_new_is_let_in() {
    let mut server = Running::start().await;
    server.post("/api/v1/sessions", json!({"session_id": "s"})).await;
    let started = Instant::now();
    let (stop, ended) = {
        let address = server.address;
        let server = &mut server;
        server.stop_after(Duration::from_millis(200), address)
    };
    let call = server.post("/api/v1/sessions/s/calls", slow("c1"));
    let stream = server.get("/api/v1/sessions/s/events");
    let (call, stream, refused) = tokio::join!(call, stream, stop);
    assert_eq!(call.json()["results"][0]["content"], "at last", "{}", call.text());
    assert_eq!(stream.status, 200);
    assert!(refused, "a new connection was accepted");
    assert_eq!(ended.await.unwrap(), Ended::Finished);
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_call_is_finished_and_kept_even_if_nobody_waits_for_it() {
    let server = Running::start().await;
    server.post("/api/v1/sessions", json!({"session_id": "s"})).await;
    let call = server.post("/api/v1/sessions/s/calls", slow("c1"));
    assert!(tokio::time::timeout(Duration::from_millis(200), call).await.is_err());
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let started = Instant::now();
    let again = server.post("/api/v1/sessions/s/calls", slow("c1")).await.json();
    assert_eq!(again["results"][0]["code"], "repeated");
    assert_eq!(again["results"][0]["content"], "at last");
    assert!(started.elapsed() < Duration::from_millis(600), "it did not run again");
}

#[tokio::test]
async fn a_call_that_takes_longer_than_it_may_is_answered_and_goes_on() {
    // A second is more than the tool needs; nothing fits into none, so a test of the edge needs both.
    let server = Running::with(|it| it.request_seconds = 1).await;
    server.post("/api/v1/sessions", json!({"session_id": "s"})).await;
    assert_eq!(server.post("/api/v1/sessions/s/calls", slow("c1")).await.status, 200);
    let two = json!({"calls": [{"id": "a", "name": "very_slow"}]});
    let answer = server.post("/api/v1/sessions/s/calls", two.clone()).await;
    assert_eq!(answer.status, 200, "calls have a time of their own: {}", answer.text());
    let short = Running::with(|it| it.call_seconds = 1).await;
    short.post("/api/v1/sessions", json!({"session_id": "s"})).await;
    let answer = short.post("/api/v1/sessions/s/calls", two.clone()).await;
    assert_eq!((answer.status, answer.code().as_str()), (503, "timeout"));
    assert_eq!(answer.header("retry-after"), Some("1"));
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let again = short.post("/api/v1/sessions/s/calls", two).await.json();
    assert_eq!(again["results"][0]["code"], "repeated");
}

#[tokio::test]
async fn what_takes_longer_than_the_end_may_is_broken_off() {
    let mut server = Running::with(|it| it.shutdown_seconds = 1).await;
    server.post("/api/v1/sessions", json!({"session_id": "s"})).await;
    let (stop, ended) = server.stop_after(Duration::from_millis(100), server.address);
    let call = server
        .post("/api/v1/sessions/s/calls", json!({"calls": [{"id": "c", "name": "for_ever"}]}));
    let started = Instant::now();
    let (call, _) = tokio::join!(call, stop);
    assert_eq!(call.status, 0, "the connection is cut");
    assert_eq!(ended.await.unwrap(), Ended::BrokenOff);
    assert!(started.elapsed() < Duration::from_secs(5));
}

impl Running {
    /// Ends the server after a while, and says whether it refuses new connections then.
    fn stop_after(
        &mut self,
        time: Duration,
        address: std::net::SocketAddr,
    ) -> (impl Future<Output = bool> + use<>, tokio::task::JoinHandle<Ended>) {
        let (stop, served) = self.take_ending();
        let stopping = async move {
            tokio::time::sleep(time).await;
            let _ = stop.send(());
            tokio::time::sleep(Duration::from_millis(100)).await;
            TcpStream::connect(address).await.is_err()
        };
        (stopping, served)
    }
}
