//! Artifacts in a bucket whose server is away, stands still, loses answers, or refuses.

#![cfg(feature = "s3")]

mod artifact_rules;
mod s3_server;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use artifact_rules::{block_on, load, save, scope, versions};
use prowess_workspace::{
    ArtifactError, ArtifactStore, S3Artifacts, S3Credentials, S3Settings, StoreTrouble,
};
use s3_server::{ACCESS_KEY, BUCKET, S3Server, SECRET_KEY, free_address};

fn settings(address: SocketAddr) -> S3Settings {
    let mut settings = S3Settings::new(BUCKET).with_endpoint(format!("http://{address}"));
    settings.connect_timeout_ms = 500;
    settings.request_timeout_ms = 500;
    settings.operation_timeout_ms = 2_000;
    settings.max_retries = 1;
    settings
}

fn open(settings: S3Settings) -> S3Artifacts {
    S3Artifacts::open(settings, &S3Credentials::new(ACCESS_KEY, SECRET_KEY, None)).unwrap()
}

/// Whatever is asked of the store fails, in time, with this trouble.
fn assert_fails(store: &S3Artifacts, trouble: StoreTrouble, words: &[&str]) {
    let scope = scope("s");
    let start = Instant::now();
    let failures: Vec<(&str, ArtifactError)> = vec![
        ("save the artifact 'a'", {
            let save = store.save(&scope, "a", "text/plain", b"x"[..].into());
            block_on(save).unwrap_err()
        }),
        ("load the artifact 'a'", block_on(store.load(&scope, "a", None)).unwrap_err()),
        ("load the artifact 'a'", block_on(store.load(&scope, "a", Some(0))).unwrap_err()),
        ("list the artifacts of a session", block_on(store.list(&scope)).unwrap_err()),
        ("list the versions of 'a'", block_on(store.versions(&scope, "a")).unwrap_err()),
        ("delete the artifact 'a'", block_on(store.delete(&scope, "a")).unwrap_err()),
    ];
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    for (doing, error) in failures {
        let text = error.to_string();
        let ArtifactError::Store { trouble: found, .. } = &error else { panic!("{error:?}") };
        assert_eq!((*found, error.code()), (trouble, trouble.code()), "{text}");
        assert!(text.starts_with(&format!("cannot {doing} in the bucket '")), "{text}");
        assert!(text.ends_with(trouble.remedy()), "{text}");
        for word in words {
            assert!(text.contains(word), "{word}: {text}");
        }
        for shown in [text, format!("{error:?}"), format!("{store:?}")] {
            assert!(!shown.contains(SECRET_KEY) && !shown.contains(ACCESS_KEY), "{shown}");
        }
    }
}

#[test]
fn a_server_that_is_away_is_named() {
    let address = free_address();
    let store = open(settings(address));
    let place = format!("the bucket 'artifacts' at http://{address}");
    assert_fails(&store, StoreTrouble::Unavailable, &[&place, "refused"]);
}

#[test]
fn a_server_that_stands_still_is_not_waited_for() {
    let test = "a_server_that_stands_still_is_not_waited_for";
    let Some(server) = S3Server::start(test) else { return };
    let store = open(settings(server.address()));
    assert_eq!(save(&store, "s", "a", "before"), 0);
    server.pause();
    assert_fails(&store, StoreTrouble::Unavailable, &["timed out"]);
    server.resume();
    // Then it goes on. What was not acknowledged may have come in front, and is whole.
    let patient = open(S3Settings::new(BUCKET).with_endpoint(server.endpoint()));
    let version = save(&patient, "s", "a", "behind");
    assert_eq!(load(&patient, "s", "a", Some(version)).as_deref(), Some("behind"));
    let found = versions(&patient, "s", "a");
    assert_eq!(found, (0..=version).collect::<Vec<_>>());
}

#[test]
fn an_operation_has_its_time_at_the_edge() {
    let test = "an_operation_has_its_time_at_the_edge";
    let Some(server) = S3Server::start(test) else { return };
    let mut short = settings(server.address());
    short.operation_timeout_ms = 1;
    let store = open(short);
    server.pause();
    let error = block_on(store.versions(&scope("s"), "a")).unwrap_err();
    server.resume();
    assert!(error.to_string().contains("`operation_timeout_ms` = 1;"), "{error}");
    assert_eq!(error.code(), "artifact_store_unavailable");
    // The whole is bounded, however long one request may take.
    let mut bounded = settings(server.address());
    (bounded.request_timeout_ms, bounded.operation_timeout_ms) = (60_000, 300);
    let store = open(bounded);
    save(&store, "s", "a", "x");
    server.pause();
    let start = Instant::now();
    let error = block_on(store.versions(&scope("s"), "a")).unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(5));
    assert!(error.to_string().contains("`operation_timeout_ms` = 300;"), "{error}");
    server.resume();
}

#[test]
fn wrong_credentials_and_missing_buckets_are_named() {
    let test = "wrong_credentials_and_missing_buckets_are_named";
    let Some(server) = S3Server::start(test) else { return };
    for (id, secret, code) in [
        (ACCESS_KEY, "another secret", "SignatureDoesNotMatch (403)"),
        ("another-key", SECRET_KEY, "the server says "),
    ] {
        let credentials = S3Credentials::new(id, secret, None);
        let store = S3Artifacts::open(settings(server.address()), &credentials).unwrap();
        assert_fails(&store, StoreTrouble::Denied, &[code, "check the credentials"]);
    }
    let mut missing = settings(server.address());
    missing.bucket = "nowhere".into();
    assert_fails(&open(missing), StoreTrouble::NoBucket, &["'nowhere'", "NoSuchBucket"]);
}

/// What a connection through a proxy is about.
fn request_of(client: &mut TcpStream) -> Vec<u8> {
    let (mut request, mut buffer) = (Vec::new(), [0; 65536]);
    loop {
        let count = client.read(&mut buffer).unwrap_or(0);
        request.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&request).to_lowercase();
        let Some(head) = text.find("\r\n\r\n").map(|at| at + 4) else {
            assert!(count > 0 || request.is_empty(), "{text}");
            if count == 0 {
                return request;
            }
            continue;
        };
        let length = text.split_once("content-length: ").map_or(0, |(_, rest)| {
            rest.split_once("\r\n").unwrap().0.trim().parse::<usize>().unwrap()
        });
        if request.len() >= head + length || count == 0 {
            return request;
        }
    }
}

/// A way to the server on which the first answers to saving are lost.
fn losing(server: SocketAddr, lost: usize) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    thread::spawn(move || {
        for client in listener.incoming() {
            let counted = Arc::clone(&counted);
            thread::spawn(move || {
                let mut client = client.unwrap();
                let request = request_of(&mut client);
                if request.is_empty() {
                    return;
                }
                // One request per connection, so that the end of the answer is that of the connection.
                let text = String::from_utf8_lossy(&request).into_owned();
                let mut upstream = TcpStream::connect(server).unwrap();
                upstream.write_all(&request).unwrap();
                upstream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
                let mut answer = Vec::new();
                let _ = upstream.read_to_end(&mut answer);
                let is_save = text.starts_with("PUT ") && !text.contains("conditional-put");
                if is_save && counted.fetch_add(1, Ordering::SeqCst) < lost {
                    assert!(answer.starts_with(b"HTTP/1.1 200"), "{text}");
                    return;
                }
                let _ = client.write_all(&answer);
            });
        }
    });
    (address, count)
}

#[test]
fn a_save_whose_answer_is_lost_counts_once() {
    let Some(server) = S3Server::start("a_save_whose_answer_is_lost_counts_once") else { return };
    let direct = open(settings(server.address()));
    assert_eq!(save(&direct, "s", "a", "first"), 0);
    let (address, puts) = losing(server.address(), 1);
    let mut patient = settings(address);
    (patient.request_timeout_ms, patient.operation_timeout_ms) = (10_000, 60_000);
    patient.max_retries = 3;
    let store = open(patient);
    assert_eq!(save(&store, "s", "a", "second"), 1);
    assert!(puts.load(Ordering::SeqCst) >= 1);
    assert_eq!(versions(&direct, "s", "a"), [0, 1]);
    // A delete whose answer is lost has deleted, and says so.
    let (address, _) = losing(server.address(), 1);
    let mut patient = settings(address);
    (patient.request_timeout_ms, patient.operation_timeout_ms) = (10_000, 60_000);
    assert!(block_on(open(patient).delete(&scope("s"), "a")).unwrap());
    assert_eq!(versions(&direct, "s", "a"), Vec::<u64>::new());
    assert_eq!(save(&direct, "s", "a", "anew"), 0);
}

/// A server that says yes to everything: the control for what must not be trusted.
fn yes_sayer() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            thread::spawn(move || {
                let request = request_of(&mut client);
                let body = match request.starts_with(b"GET") {
                    true => "<ListBucketResult><KeyCount>0</KeyCount></ListBucketResult>",
                    false => "",
                };
                let length = body.len();
                let _ = write!(
                    client,
                    "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nConnection: close\r\n\
                     Content-Length: {length}\r\n\r\n{body}"
                );
            });
        }
    });
    address
}

#[test]
fn a_server_that_would_overwrite_versions_is_refused() {
    let store = open(settings(yes_sayer()));
    let scope = scope("s");
    let save = store.save(&scope, "a", "text/plain", b"x"[..].into());
    let error = block_on(save).unwrap_err();
    assert_eq!(error.code(), "artifact_store_unsafe");
    assert!(error.to_string().contains("`If-None-Match`"), "{error}");
}
