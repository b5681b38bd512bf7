//! A server that is reached by `rediss://`.

mod support;

use std::path::Path;
use std::process::Command;

use prowess_store::RedisStore;
use support::redis_server::RedisServer;
use support::{key, say, skip};

/// Where the child finds the server.
const ADDRESS: &str = "PROWESS_TEST_REDIS_TLS_ADDRESS";

/// A certificate for this machine that nobody knows; false if there is no program for it.
fn make_certificate(folder: &Path) -> bool {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(folder)
        .output();
    made.is_ok_and(|output| output.status.success())
}

#[test]
fn a_server_is_reached_by_tls_if_its_certificate_is_trusted() {
    let test = "a_server_is_reached_by_tls_if_its_certificate_is_trusted";
    let folder = tempfile::tempdir().unwrap();
    if !make_certificate(folder.path()) {
        skip(test, "there is no openssl to make a certificate; install it");
        return;
    }
    let file = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (certificate, secret) = (file("cert.pem"), file("key.pem"));
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let settings = [
        "--tls-port",
        &port.to_string(),
        "--tls-cert-file",
        &certificate,
        "--tls-key-file",
        &secret,
        "--tls-auth-clients",
        "no",
    ];
    let Some(_server) = RedisServer::start_with(test, &settings) else { return };
    // Which certificates are trusted is read from the environment.
    let child = |trusted: &str| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "what_the_child_does", "--nocapture"])
            .env(ADDRESS, format!("rediss://localhost:{port}/0"))
            .env("SSL_CERT_FILE", trusted)
            .env_remove("SSL_CERT_DIR")
            .output()
            .unwrap()
    };
    let answer = child(&certificate);
    assert!(answer.status.success(), "{answer:?}");
    assert!(String::from_utf8_lossy(&answer.stdout).contains("committed"), "{answer:?}");
    assert!(make_certificate(folder.path()));
    let answer = child(&certificate);
    assert!(!answer.status.success(), "a certificate is accepted that nobody knows");
    assert!(String::from_utf8_lossy(&answer.stderr).contains("Unavailable"), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_child_does() {
    let Ok(address) = std::env::var(ADDRESS) else { return };
    let store = RedisStore::open(&address, RedisStore::PREFIX).await.unwrap();
    say(&store.sessions(), &key("a"), 0, "x").await.unwrap();
    println!("committed");
}
