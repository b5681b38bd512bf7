//! What `prowess serve` says of its store when it starts, and what `[store]` changes.

#[path = "../../prowess-store/tests/redis_server/mod.rs"]
mod redis_server;
#[path = "support/service/mod.rs"]
mod service;
mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use redis_server::{ALWAYS, EVERY_SECOND, RedisServer};
use service::Service;
use support::{Run, Sandbox, skip};

fn start(store: &str, settings: &str) -> anyhow::Result<Service> {
    let home = tempfile::tempdir()?.keep();
    fs::write(home.join("prowess.toml"), settings)?;
    let started = Service::start_on(Path::new(env!("CARGO_BIN_EXE_prowess")), &home, Some(store));
    fs::remove_dir_all(home)?;
    started
}

/// Opens a store, and ends.
fn look(settings: &str, store: Option<&str>) -> Run {
    let sandbox = Sandbox::new();
    sandbox.write("prowess.toml", settings);
    let mut command = Command::new(env!("CARGO_BIN_EXE_prowess"));
    command.args(["session", "list"]).env("PROWESS_HOME", sandbox.path());
    command.envs(store.map(|url| ("PROWESS_STORE_URL", url)));
    sandbox.run(command, b"")
}

#[test]
fn what_a_redis_may_lose_is_said_at_the_start() {
    let test = "what_a_redis_may_lose_is_said_at_the_start";
    let Some(server) = RedisServer::start_with(test, EVERY_SECOND) else { return };
    let said = start(&server.url(), "").unwrap().said()["caution"].clone();
    assert!(said.as_str().is_some_and(|said| said.contains("appendfsync everysec")), "{said}");
    let Some(server) = RedisServer::start_with(test, ALWAYS) else { return };
    let service = start(&server.url(), "").unwrap();
    assert_eq!(service.said().get("caution"), None);
}

#[test]
fn a_redis_that_removes_keys_is_refused_unless_somebody_accepts_that() {
    let test = "a_redis_that_removes_keys_is_refused_unless_somebody_accepts_that";
    let evicting = ["--appendonly", "no", "--maxmemory-policy", "volatile-ttl"];
    let Some(server) = RedisServer::start_with(test, &evicting) else { return };
    let refused = look("", Some(&server.url()));
    assert!(refused.code != 0 && refused.stderr.contains("allow_eviction = true"), "{refused:?}");
    start(&server.url(), "[store]\nallow_eviction = true\n").unwrap();
}

#[test]
fn a_limit_that_is_none_is_named() {
    for (settings, named) in [
        ("connections = 0", "connections must be 1 to 1000"),
        ("answer_seconds = 3601", "answer_seconds must be 1 to 3600"),
        ("answer_second = 1", "unknown field `answer_second`"),
    ] {
        let run = look(&format!("[store]\n{settings}\n"), None);
        assert!(run.code != 0 && run.stderr.contains(named), "{settings}: {run:?}");
    }
}
