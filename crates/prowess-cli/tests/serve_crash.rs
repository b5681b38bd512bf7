//! `kill -9` during writes (S11): what was acknowledged is there afterwards, and nothing is
//! damaged. `./dev bench serve` does the same a thousand times.

#[path = "support/service/mod.rs"]
mod service;

use std::path::Path;

const KILLS: usize = 50;

#[test]
fn nothing_acknowledged_is_lost_by_50_kills_during_writes() {
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_prowess"));
    let done = service::kill_during_writes(program, folder.path(), KILLS, |_| {}).unwrap();
    assert!(done.problems.is_empty(), "{:#?}", done.problems);
    assert_eq!(done.kills, KILLS);
    // Otherwise nothing was at stake.
    assert!(done.acknowledged > KILLS && done.loads > 0, "{done:?}");
    assert!(done.in_flight > KILLS / 2, "{done:?}");
}

/// The control: a server that loses what it has acknowledged is found out.
#[test]
fn a_loss_after_a_kill_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_prowess"));
    let lose = |_: &service::Kills| {
        let database = rusqlite::Connection::open(folder.path().join("prowess.db")).unwrap();
        let lost =
            "DELETE FROM versions WHERE skill LIKE 'r%'; DELETE FROM skills WHERE id LIKE 'r%';
                    UPDATE usage SET count = 0;";
        database.execute_batch(lost).unwrap();
    };
    let done = service::kill_during_writes(program, folder.path(), 3, lose).unwrap();
    let says = |what: &str| done.problems.iter().any(|problem| problem.contains(what));
    assert!(says("is lost"), "{done:?}");
    assert!(done.loads == 0 || says("loads are counted"), "{done:?}");
}

#[test]
fn whoever_is_asked_to_end_leaves_a_whole_database_with_what_it_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_prowess"));
    let server = service::Service::start(program, folder.path()).unwrap();
    let created = server.client().post("/api/v1/skills", &service::skill("kept", 300)).unwrap();
    assert_eq!(created.status, 201, "{}", created.brief());
    let ended = server.terminate().unwrap();
    assert!(ended.success(), "{ended}");
    assert_eq!(service::damage(folder.path()).unwrap(), Vec::<String>::new());
    let server = service::Service::start(program, folder.path()).unwrap();
    let kept = server.client().get("/api/v1/skills/kept").unwrap();
    assert_eq!(kept.status, 200, "{}", kept.brief());
}
