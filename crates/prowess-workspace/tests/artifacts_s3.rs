//! Artifacts in a bucket of a real S3 server: the same rules, and what only a server can do.

#![cfg(feature = "s3")]

mod artifact_rules;
mod common;
mod s3_server;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use artifact_rules::{self as rules, Store, block_on, load, save, scope, versions};
use common::{role, said, say, spawn, tree};
use prowess_workspace::{ArtifactStore, S3Artifacts, S3Credentials, S3Settings};
use s3_server::{ACCESS_KEY, BUCKET, S3Server, SECRET_KEY};

fn settings(server: &S3Server) -> S3Settings {
    S3Settings::new(BUCKET).with_endpoint(server.endpoint())
}

fn credentials() -> S3Credentials {
    S3Credentials::new(ACCESS_KEY, SECRET_KEY, None)
}

/// Versions of `report` are saved into the bucket at this endpoint.
#[test]
fn child() {
    let Some((role, endpoint)) = role() else { return };
    let endpoint = endpoint.to_str().unwrap();
    let store = open(S3Settings::new(BUCKET).with_endpoint(endpoint));
    let count = if role == "save forever" { u64::MAX } else { 25 };
    for at in 0..count {
        let text = format!("{} {at} {}", std::process::id(), "x".repeat(20_000));
        let version = save(&store, "s", "report", &text);
        say(format!("{version} {} {at}", std::process::id()));
    }
}

/// Every acknowledged version is there, with what was saved under its number.
fn assert_kept(store: &dyn ArtifactStore, acknowledged: &[String]) -> BTreeMap<u64, String> {
    let mut kept = BTreeMap::new();
    for line in acknowledged {
        let (version, rest) = line.split_once(' ').unwrap();
        let version: u64 = version.parse().unwrap();
        let text = load(store, "s", "report", Some(version)).unwrap();
        assert!(text.starts_with(&format!("{rest} ")), "{line}");
        assert!(kept.insert(version, text).is_none(), "given twice: {version}");
    }
    kept
}

/// Versions are whole, and none is left out.
fn assert_contiguous(store: &dyn ArtifactStore) -> u64 {
    let found = versions(store, "s", "report");
    assert_eq!(found, (0..found.len() as u64).collect::<Vec<_>>());
    for version in &found {
        let text = load(store, "s", "report", Some(*version)).unwrap();
        assert!(text.ends_with(&"x".repeat(20_000)), "version {version} is cut");
    }
    found.len() as u64
}

fn open(settings: S3Settings) -> S3Artifacts {
    S3Artifacts::open(settings, &credentials()).unwrap()
}

/// Every rule of all stores.
#[test]
fn the_rules_of_all_stores_hold() {
    let Some(server) = S3Server::start("the_rules_of_all_stores_hold") else { return };
    let fresh = |prefix: &str| open(settings(&server).with_prefix(prefix));
    rules::versions_count_from_zero_and_the_newest_is_given(&fresh("count"));
    rules::sessions_are_kept_apart_and_the_user_s_are_shared(&fresh("sessions/"));
    rules::scopes_that_look_alike_are_different(&fresh(""));
    rules::deleting_removes_all_versions_of_one_name(&fresh("a/delete"));
    rules::hostile_names_are_refused_and_odd_ones_are_only_names(&fresh("names"));
    rules::any_bytes_come_back_as_they_were(&fresh("bytes"));
    rules::what_is_too_large_is_refused_at_the_edge(&fresh("limit").with_max_bytes(10));
}

#[test]
fn savers_at_once_lose_no_version() {
    let Some(server) = S3Server::start("savers_at_once_lose_no_version") else { return };
    let fresh = || Arc::new(open(settings(&server))) as Store;
    rules::savers_at_once_lose_no_version(&fresh(), &fresh());
}

#[test]
fn saving_and_deleting_at_once() {
    let Some(server) = S3Server::start("saving_and_deleting_at_once") else { return };
    let store = Arc::new(open(settings(&server))) as Store;
    rules::saving_and_deleting_at_once_gives_whole_versions_or_none(&store);
    rules::a_save_behind_a_delete_is_kept(&store);
}

#[test]
fn processes_at_once_lose_no_version() {
    let Some(server) = S3Server::start("processes_at_once_lose_no_version") else { return };
    let endpoint = server.endpoint();
    let mut children: Vec<_> = (0..3).map(|_| spawn("save some", Path::new(&endpoint))).collect();
    let mut acknowledged: Vec<String> = Vec::new();
    for child in &mut children {
        acknowledged.extend(said(child));
        assert!(child.wait().unwrap().success());
    }
    let store = open(settings(&server));
    assert_eq!(assert_kept(&store, &acknowledged).len(), 75);
    assert_eq!(assert_contiguous(&store), 75);
}

#[test]
fn a_saver_that_is_killed_loses_nothing_that_it_acknowledged() {
    let test = "a_saver_that_is_killed_loses_nothing_that_it_acknowledged";
    let Some(server) = S3Server::start(test) else { return };
    let endpoint = server.endpoint();
    let mut acknowledged: Vec<String> = Vec::new();
    for round in 0..10_u64 {
        let mut child = spawn("save forever", Path::new(&endpoint));
        let mut lines = said(&mut child);
        acknowledged.extend(lines.next());
        std::thread::sleep(Duration::from_micros(round * 1777));
        child.kill().unwrap();
        child.wait().unwrap();
        acknowledged.extend(lines);
    }
    assert!(acknowledged.len() >= 10);
    let store = open(settings(&server));
    assert_kept(&store, &acknowledged);
    assert!(assert_contiguous(&store) >= acknowledged.len() as u64);
}

#[test]
fn a_server_that_crashes_loses_nothing_that_it_acknowledged() {
    let test = "a_server_that_crashes_loses_nothing_that_it_acknowledged";
    let Some(mut server) = S3Server::start(test) else { return };
    let endpoint = server.endpoint();
    let mut children: Vec<_> = (0..2).map(|_| spawn("save some", Path::new(&endpoint))).collect();
    for _ in 0..2 {
        std::thread::sleep(Duration::from_millis(150));
        server.crash();
        server.restart();
    }
    let mut acknowledged: Vec<String> = Vec::new();
    for child in &mut children {
        acknowledged.extend(said(child));
        // Its requests were repeated until the server was there again.
        assert!(child.wait().unwrap().success());
    }
    let store = open(settings(&server));
    let kept = assert_kept(&store, &acknowledged);
    assert_eq!(kept.len(), 50);
    // No save counts twice, though its answer may have been lost.
    assert_eq!(versions(&store, "s", "report"), kept.keys().copied().collect::<Vec<_>>());
    // A number is left out only if the server lost its mind over it: each saver had one request
    // under way in each crash, and what is left of it refuses that number.
    let [first] = &files(&server, "0")[..] else { panic!() };
    for missing in (0..=*kept.keys().max().unwrap()).filter(|it| !kept.contains_key(it)) {
        assert!(server.metadata_of(&first.with_file_name(missing.to_string())).exists());
    }
    assert!(*kept.keys().max().unwrap() < 54);
}

/// What a crash leaves between the two parts of the server's work: the description, not the object.
#[test]
fn a_number_that_the_server_refuses_without_having_it_is_passed_over() {
    let test = "a_number_that_the_server_refuses_without_having_it_is_passed_over";
    let Some(server) = S3Server::start(test) else { return };
    let mut once = settings(&server);
    once.max_retries = 1;
    let store = open(once);
    assert_eq!(save(&store, "s", "a", "first"), 0);
    assert_eq!(save(&store, "s", "a", "second"), 1);
    let [second] = &files(&server, "1")[..] else { panic!() };
    std::fs::remove_file(second).unwrap();
    assert!(server.metadata_of(second).exists());
    // The control: the server has nothing there, and takes nothing.
    assert_eq!(versions(&store, "s", "a"), [0]);
    assert_eq!(save(&store, "s", "a", "third"), 2);
    assert_eq!(save(&store, "s", "a", "fourth"), 3);
    assert_eq!(versions(&store, "s", "a"), [0, 2, 3]);
    assert_eq!(load(&store, "s", "a", Some(1)), None);
    assert_eq!(load(&store, "s", "a", None).as_deref(), Some("fourth"));
    assert!(block_on(store.delete(&scope("s"), "a")).unwrap());
    assert_eq!(save(&store, "s", "a", "anew"), 0);
}

#[test]
fn more_than_one_page_is_listed() {
    let Some(server) = S3Server::start("more_than_one_page_is_listed") else { return };
    let store = open(settings(&server));
    save(&store, "s", "a", "0");
    // As the server keeps it: what it lists is what lies there.
    let [version] = &files(&server, "0")[..] else { panic!() };
    let whole = std::fs::read(version).unwrap();
    for at in 1..2345 {
        std::fs::write(version.with_file_name(at.to_string()), &whole).unwrap();
    }
    assert_eq!(versions(&store, "s", "a"), (0..2345).collect::<Vec<_>>());
    assert_eq!(save(&store, "s", "a", "next"), 2345);
    assert_eq!(load(&store, "s", "a", None).as_deref(), Some("next"));
    assert_eq!(load(&store, "s", "a", Some(2344)).as_deref(), Some("0"));
    assert_eq!(block_on(store.list(&scope("s"))).unwrap(), ["a"]);
    assert!(block_on(store.delete(&scope("s"), "a")).unwrap());
    assert_eq!(versions(&store, "s", "a"), Vec::<u64>::new());
    assert_eq!(save(&store, "s", "a", "anew"), 0);
}

/// The objects of this name, where the server keeps them.
fn files(server: &S3Server, name: &str) -> Vec<std::path::PathBuf> {
    let all = tree(&server.bucket()).into_keys().map(|file| server.bucket().join(file));
    all.filter(|file| file.file_name().is_some_and(|it| it == name)).collect()
}

#[test]
fn deleting_leaves_one_small_marker_per_name() {
    let Some(server) = S3Server::start("deleting_leaves_one_small_marker_per_name") else { return };
    let store = open(settings(&server));
    for _ in 0..3 {
        for _ in 0..3 {
            save(&store, "s", "secret plan", "the content of the plan");
        }
        assert!(block_on(store.delete(&scope("s"), "secret plan")).unwrap());
    }
    let left = tree(&server.bucket());
    let left: Vec<_> = left.iter().filter(|(file, _)| !file.ends_with("conditional-put")).collect();
    let [(marker, text)] = left[..] else { panic!("{left:?}") };
    assert!(marker.ends_with("ended/2"), "{marker:?}");
    assert!(text.len() < 300 && !text.contains("the content"), "{text}");
    // What came late into a generation that has ended is never seen, and goes.
    let late = server.bucket().join(marker.parent().unwrap().parent().unwrap()).join("0/7");
    std::fs::create_dir_all(late.parent().unwrap()).unwrap();
    std::fs::write(&late, "late").unwrap();
    assert_eq!(versions(&store, "s", "secret plan"), Vec::<u64>::new());
    assert_eq!(block_on(store.list(&scope("s"))).unwrap(), Vec::<String>::new());
    assert_eq!(save(&store, "s", "secret plan", "anew"), 0);
    assert!(!late.exists());
}

#[test]
fn damage_is_noticed() {
    let Some(server) = S3Server::start("damage_is_noticed") else { return };
    let store = open(settings(&server));
    save(&store, "s", "a", "content");
    let [file] = &files(&server, "0")[..] else { panic!() };
    let whole = std::fs::read(file).unwrap();
    let changed = String::from_utf8(whole.clone()).unwrap().replace("content", "contend");
    let renamed = String::from_utf8(whole.clone()).unwrap().replace("\"a\"", "\"b\"");
    let damages = [
        &b"x"[..],
        b"{}",
        &whole[..whole.len() - 1],
        changed.as_bytes(),
        renamed.as_bytes(),
        b"\n\n",
    ];
    for damage in damages {
        std::fs::write(file, damage).unwrap();
        let error = block_on(store.load(&scope("s"), "a", None)).unwrap_err();
        assert_eq!(error.code(), "artifact_damaged");
    }
    // The next version is whole.
    assert_eq!(save(&store, "s", "a", "more"), 1);
    assert_eq!(load(&store, "s", "a", None).as_deref(), Some("more"));
}
