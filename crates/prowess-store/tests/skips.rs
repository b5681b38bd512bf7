//! A test without the server that it needs says so where `./dev test` looks.

mod support;

use std::process::Command;

use support::postgres_server::{PostgresServer, Sync};
use support::redis_server::RedisServer;

/// Tells the child that it is one.
const CHILD: &str = "PROWESS_TEST_SKIPS";

#[test]
fn a_server_that_is_missing_is_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let nowhere = folder.path().join("nowhere");
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "what_the_child_does"])
        .env(CHILD, "1")
        .env("PROWESS_TEST_REDIS_SERVER", &nowhere)
        .env("PROWESS_TEST_POSTGRES", &nowhere)
        .env("PROWESS_SKIP_LOG", &log)
        .output()
        .unwrap();
    assert!(child.status.success(), "{child:?}");
    let told = std::fs::read_to_string(log).unwrap_or_default();
    let tests: Vec<_> = told.lines().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(tests, ["on Redis", "on a cluster", "on PostgreSQL"], "{told}");
}

#[test]
fn what_the_child_does() {
    if std::env::var_os(CHILD).is_some() {
        assert!(RedisServer::start("on Redis").is_none());
        assert!(RedisServer::start_cluster("on a cluster").is_none());
        assert!(PostgresServer::start("on PostgreSQL", Sync::None).is_none());
    }
}
