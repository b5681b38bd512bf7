//! Many at once (S11): every update is a version of its own or a clean conflict, and every load is
//! counted once.

#[path = "support/service/mod.rs"]
mod service;

use std::path::Path;

use service::{Service, concurrent_loads, concurrent_updates};

const WRITERS: usize = 5;
const UPDATES: usize = 100;
const LOADS: usize = 400;
const SESSIONS: usize = 50;

fn serve(folder: &tempfile::TempDir) -> Service {
    Service::start(Path::new(env!("CARGO_BIN_EXE_prowess")), folder.path()).unwrap()
}

#[test]
fn five_writers_with_100_updates_each_make_500_contiguous_versions_and_clean_conflicts() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(&folder);
    let done = concurrent_updates(server.address(), "contended", WRITERS, UPDATES).unwrap();
    assert_eq!(done.others, Vec::<String>::new());
    assert_eq!(done.astray, Vec::<String>::new());
    assert_eq!(done.acknowledged, WRITERS * UPDATES);
    // The first version made the skill.
    let expected: Vec<u64> = (1..=WRITERS as u64 * UPDATES as u64 + 1).collect();
    assert_eq!(done.numbers, expected);
    // Otherwise they did not get into each other's way.
    assert!(done.conflicts > 0, "nobody was ever in the way");
}

#[test]
fn four_hundred_loads_at_once_in_50_sessions_count_400_and_50() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(&folder);
    let done = concurrent_loads(server.address(), "loaded", LOADS, SESSIONS).unwrap();
    assert_eq!(done.others, Vec::<String>::new());
    assert_eq!((done.counted, done.sessions), (LOADS as u64, SESSIONS as u64));
    assert_eq!(done.by_version, LOADS as u64);
}
