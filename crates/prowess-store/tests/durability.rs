//! What a database of sessions survives: kills, other processes, full disks, strangers' files.

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use prowess_runtime::{
    AgentName, Event, Message, Revision, SessionDelta, SessionKey, SessionStore, StoreError,
    ToolCall,
};
use prowess_store::{OpenError, SqliteSessions};
use rusqlite::Connection;
use serde_json::json;
use support::child::{DATABASE, NAME, child, database_of_child, tell, told};
use support::{
    Clock, agent, assert_absent, count_up, event, events, key, keys, main_agent, number, remember,
    say, see, transcript,
};

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("prowess.db");
    (folder, database)
}

fn assert_sound(database: &Path) {
    let connection = Connection::open(database).unwrap();
    let check = connection.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
    assert_eq!(check.unwrap(), "ok");
    let mut orphans = connection.prepare("PRAGMA foreign_key_check").unwrap();
    assert!(!orphans.exists([]).unwrap());
}

/// Numbers that look random, the same ones in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// What a session of [`kill_9_loses_nothing_that_was_acknowledged`] holds follows from its revision.
mod life {
    use super::{AgentName, Event, Message, SessionDelta, SessionKey, agent, event, key, remember};

    pub(super) const SESSIONS: usize = 5;
    /// A session that has come so far is deleted.
    pub(super) const LAST: u64 = 30;

    pub(super) fn session(at: usize) -> SessionKey {
        key(&format!("life {at}"))
    }

    pub(super) fn agents() -> [AgentName; 2] {
        [agent("even"), agent("odd")]
    }

    pub(super) fn agent_of(revision: u64) -> AgentName {
        agents()[(revision % 2) as usize].clone()
    }

    pub(super) fn events_of(revision: u64) -> Vec<String> {
        (0..revision % 4).map(|at| format!("event {revision}.{at}")).collect()
    }

    pub(super) fn messages_of(revision: u64) -> Vec<String> {
        (0..revision % 3).map(|at| format!("message {revision}.{at}")).collect()
    }

    /// What leads to this revision.
    pub(super) fn commit(revision: u64) -> (SessionDelta, Vec<Event>) {
        let agent = agent_of(revision);
        let messages = messages_of(revision).into_iter().map(Message::user).collect();
        let events = events_of(revision).iter().map(|text| event(&agent, text)).collect();
        (remember(&agent, "revision", revision).with_messages(messages), events)
    }
}

/// Commits to several sessions at once for ever, and tells what was acknowledged.
#[test]
fn child_commits_until_it_is_killed() {
    let Some(database) = database_of_child() else { return };
    let store = Arc::new(SqliteSessions::open(database).unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let tasks: Vec<_> =
            (0..life::SESSIONS).map(|at| tokio::spawn(live(Arc::clone(&store), at))).collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

async fn live(store: Arc<SqliteSessions>, at: usize) {
    let key = life::session(at);
    let mut revision = store.get(&key).await.unwrap().unwrap_or_default().revision;
    loop {
        if revision.0 == life::LAST {
            assert!(store.delete(&key).await.unwrap());
            revision = Revision(0);
        } else {
            let (delta, events) = life::commit(revision.0 + 1);
            revision = store.commit(&key, revision, delta, events).await.unwrap();
        }
        tell(&format!("{at} {}", revision.0));
    }
}

/// The revision of a session, after a look at everything that it holds.
async fn examine(store: &SqliteSessions, key: &SessionKey) -> u64 {
    let Some(stored) = store.get(key).await.unwrap() else {
        assert_absent(store, key).await;
        return 0;
    };
    let all = 1..=stored.revision.0;
    let expected: Vec<String> = all.clone().flat_map(life::events_of).collect();
    assert_eq!(events(store, key).await, expected);
    for agent in life::agents() {
        let own = || all.clone().filter(|revision| life::agent_of(*revision) == agent);
        let expected: Vec<String> = own().flat_map(life::messages_of).collect();
        assert_eq!(transcript(store, key, &agent).await, expected);
        let state = stored.session.state(&agent);
        let last = state.context.get("revision").and_then(serde_json::Value::as_u64);
        assert_eq!(last, own().next_back());
    }
    stored.revision.0
}

#[tokio::test]
async fn kill_9_loses_nothing_that_was_acknowledged() {
    const KILLS: usize = 200;
    let (_folder, database) = folder();
    let mut dice = Dice(0x5eed);
    let mut acknowledged = [0_u64; life::SESSIONS];
    let mut lines = 0;
    for kill in 0..KILLS {
        let mut child = child("child_commits_until_it_is_killed", &database).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut hear = |line: &str| {
            let Some((session, revision)) = told(line).and_then(|told| told.split_once(' ')) else {
                return 0;
            };
            acknowledged[session.parse::<usize>().unwrap()] = revision.parse().unwrap();
            1
        };
        // Some die before they have done anything, some while they do it.
        let mut wanted = dice.roll(60);
        if wanted < 10 {
            std::thread::sleep(Duration::from_micros(dice.roll(10_000)));
            wanted = 0;
        }
        let mut line = String::new();
        while wanted > 0 {
            line.clear();
            assert!(out.read_line(&mut line).unwrap() > 0, "the child ended by itself");
            let heard = hear(&line);
            wanted -= heard;
            lines += heard;
        }
        std::thread::sleep(Duration::from_micros(dice.roll(2_000)));
        child.kill().unwrap();
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        lines += rest.split_inclusive('\n').map(&mut hear).sum::<u64>();
        assert_eq!(child.wait().unwrap().signal(), Some(9));

        let store = SqliteSessions::open(&database).unwrap();
        for (at, acknowledged) in acknowledged.iter_mut().enumerate() {
            let found = examine(&store, &life::session(at)).await;
            // What was under way is there as a whole or not at all.
            let next = if *acknowledged == life::LAST { 0 } else { *acknowledged + 1 };
            let possible = [*acknowledged, next];
            assert!(possible.contains(&found), "kill {kill}: {found}, not one of {possible:?}");
            *acknowledged = found;
        }
        assert_sound(&database);
    }
    assert!(lines > KILLS as u64, "{lines}");
}

#[test]
fn child_counts_up() {
    let Some(database) = database_of_child() else { return };
    let name = std::env::var(NAME).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let store = SqliteSessions::open(database).unwrap();
        for at in 0..COMMITS {
            count_up(&store, &key("shared"), &format!("{name} {at}")).await;
        }
    });
}

const COMMITS: u64 = 100;

/// That nothing of what these have counted is lost, or there twice, or in another order.
async fn assert_counted(store: &SqliteSessions, names: &[&str]) {
    let key = key("shared");
    let total = COMMITS * names.len() as u64;
    let stored = store.get(&key).await.unwrap().unwrap();
    assert_eq!((stored.revision.0, number(&stored)), (total, total));
    let events = events(store, &key).await;
    assert_eq!(events.len() as u64, total);
    for name in names {
        let prefix = format!("{name} ");
        let own = events.iter().filter_map(|text| text.strip_prefix(&prefix));
        assert!(own.eq((0..COMMITS).map(|at| at.to_string())), "{name}");
    }
    assert_eq!(transcript(store, &key, &main_agent()).await, events);
}

#[tokio::test]
async fn two_processes_share_a_database() {
    let (_folder, database) = folder();
    // Neither finds a database: one of them makes it.
    let children =
        ["a", "b"].map(|name| child("child_counts_up", &database).env(NAME, name).spawn().unwrap());
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    assert_counted(&SqliteSessions::open(&database).unwrap(), &["a", "b"]).await;
    assert_sound(&database);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_handles_share_a_database() {
    let (_folder, database) = folder();
    let handles = [0, 1].map(|_| Arc::new(SqliteSessions::open(&database).unwrap()));
    let names = ["a", "b", "c", "d"];
    let tasks: Vec<_> = names
        .into_iter()
        .enumerate()
        .map(|(at, name)| {
            let store = Arc::clone(&handles[at % 2]);
            tokio::spawn(async move {
                for at in 0..COMMITS {
                    count_up(&*store, &key("shared"), &format!("{name} {at}")).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    for store in &handles {
        assert_counted(store, &names).await;
    }
}

/// A reader never sees the session that came in the place of the one that it looks for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_come_and_go_in_another_process_are_not_mixed_up() {
    let (_folder, database) = folder();
    let writer = SqliteSessions::open(&database).unwrap();
    let reader = SqliteSessions::open(&database).unwrap();
    let writing = tokio::spawn(async move {
        for _ in 0..1_000 {
            for name in ["alice", "bob"] {
                say(&writer, &key(name), 0, name).await.unwrap();
                assert!(writer.delete(&key(name)).await.unwrap());
            }
        }
    });
    while !writing.is_finished() {
        for name in ["alice", "bob"] {
            let messages = transcript(&reader, &key(name), &main_agent()).await;
            assert!(messages.iter().all(|text| text == name), "{name} is given {messages:?}");
            let events = events(&reader, &key(name)).await;
            assert!(events.iter().all(|text| text == name), "{name} is given {events:?}");
        }
    }
    writing.await.unwrap();
}

/// How many transactions are in the journal of a database.
fn transactions(database: &Path) -> usize {
    const HEADER: usize = 32;
    const FRAME_HEADER: usize = 24;
    let journal = fs::read(database.with_extension("db-wal")).unwrap();
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
    let page = number(&journal[8..12]) as usize;
    // The last frame of a transaction says how long the database is then.
    let frames = journal[HEADER..].chunks_exact(FRAME_HEADER + page);
    frames.filter(|frame| number(&frame[4..8]) != 0).count()
}

/// Each of them still succeeds or fails by itself.
#[tokio::test]
async fn commits_that_wait_at_the_same_time_share_a_transaction() {
    const COMMITS: usize = 300;
    let (_folder, database) = folder();
    let store = SqliteSessions::open(&database).unwrap();
    let agent = main_agent();
    let deep = (0..200).fold(json!(0), |value, _| json!([value]));
    let call = Message::calling([ToolCall::new("1", "tool", deep)]);
    let keys: Vec<SessionKey> = (0..COMMITS).map(|at| key(&at.to_string())).collect();
    let before = transactions(&database);
    let lock = Connection::open(&database).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let waiting: Vec<_> = keys
        .iter()
        .enumerate()
        .map(|(at, key)| {
            let expected = Revision(u64::from(at % 3 == 1));
            let mut messages = vec![Message::user("first")];
            // Its first message is written before the second one is refused.
            messages.extend((at % 3 == 2).then(|| call.clone()));
            let delta = remember(&agent, "said", "x").with_messages(messages);
            store.commit(key, expected, delta, vec![event(&agent, "x")])
        })
        .collect();
    lock.execute_batch("ROLLBACK").unwrap();
    for (at, (key, commit)) in keys.iter().zip(waiting).enumerate() {
        match (at % 3, commit.await) {
            (0, Ok(Revision(1))) => assert_eq!(events(&store, key).await, ["x"]),
            (1, Err(StoreError::Conflict { .. })) | (2, Err(StoreError::Unstorable { .. })) => {
                assert_absent(&store, key).await;
            }
            (_, other) => panic!("{at}: {other:?}"),
        }
    }
    // The first may have begun to wait alone, and no more than 256 go together.
    let shared = transactions(&database) - before;
    assert!((2..=3).contains(&shared), "{shared}");
    assert_sound(&database);
}

#[test]
fn a_new_database_is_waited_for_while_somebody_else_makes_it() {
    let (_folder, database) = folder();
    let other = Connection::open(&database).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let opening = std::thread::spawn(move || SqliteSessions::open(database).map(drop));
    // Whoever does not wait has given up by then.
    std::thread::sleep(Duration::from_millis(100));
    other.execute_batch("ROLLBACK").unwrap();
    opening.join().unwrap().unwrap();
}

#[test]
fn many_may_open_a_new_database_at_once() {
    for _ in 0..5 {
        let (_folder, database) = folder();
        let start = Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    SqliteSessions::open(&database).unwrap();
                });
            }
        });
    }
}

/// Commits to many sessions at once until the disk is full, and tells what came of it.
#[test]
fn child_fills_the_disk() {
    let Some(database) = database_of_child() else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let store = Arc::new(SqliteSessions::open(database).unwrap());
        let tasks: Vec<_> = (0..16)
            .map(|at| {
                let store = Arc::clone(&store);
                tokio::spawn(async move {
                    let key = key(&format!("{at}"));
                    let mut revision = 0;
                    // Long texts and short ones: where the former do not fit, the latter may.
                    for attempt in 0..20 {
                        let text = "x".repeat(if (attempt + at) % 4 == 0 { 300_000 } else { 10 });
                        match say(&*store, &key, revision, &text).await {
                            Ok(next) => revision = next,
                            Err(error) => tell(&format!("refused {error}")),
                        }
                    }
                    tell(&format!("{at} {revision}"));
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

#[tokio::test]
async fn what_a_full_disk_refuses_is_not_there() {
    let (_folder, database) = folder();
    let command = child("child_fills_the_disk", &database);
    // No file becomes longer than 8 MiB.
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 16384; exec \"$0\" \"$@\""])
        .arg(command.get_program())
        .args(command.get_args())
        .env(DATABASE, &database)
        .output()
        .unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let told: Vec<&str> = output.split_inclusive('\n').filter_map(told).collect();
    let refusals: Vec<&str> =
        told.iter().filter_map(|line| line.strip_prefix("refused ")).collect();
    assert!(!refusals.is_empty(), "{output}");
    let store = SqliteSessions::open(&database).unwrap();
    let mut sessions = 0;
    for line in told.iter().filter(|line| !line.starts_with("refused ")) {
        let (session, revision) = line.split_once(' ').unwrap();
        let (stored, messages, events) = see(&store, &key(session)).await;
        let acknowledged: usize = revision.parse().unwrap();
        let found = stored.map_or(0, |stored| stored.revision.0 as usize);
        assert_eq!(found, acknowledged, "session {session}");
        assert_eq!((messages.len(), events.len()), (found, found), "session {session}");
        sessions += 1;
    }
    assert_eq!(sessions, 16, "{output}");
    for refusal in refusals {
        let causes = ["disk I/O error", "database or disk is full", "session is at revision"];
        assert!(causes.iter().any(|cause| refusal.contains(cause)), "{refusal}");
    }
    assert_sound(&database);
}

#[tokio::test]
async fn everything_is_there_after_reopening() {
    let (_folder, database) = folder();
    let mut before = None;
    for revision in 0..5 {
        let store = SqliteSessions::open(&database).unwrap();
        if let Some(before) = &before {
            assert_eq!(&see(&store, &key("a")).await, before);
        }
        say(&store, &key("a"), revision, "x").await.unwrap();
        say(&store, &key(&format!("b{revision}")), 0, "x").await.unwrap();
        before = Some(see(&store, &key("a")).await);
        assert_eq!(keys(&store).await.len() as u64, revision + 2);
    }
}

#[test]
fn folders_on_the_way_are_made() {
    let (_folder, database) = folder();
    let deep = database.with_file_name("deep").join("er").join("prowess.db");
    SqliteSessions::open(&deep).unwrap();
    assert!(deep.is_file());
    let error = SqliteSessions::open(deep.join("prowess.db")).unwrap_err();
    assert!(matches!(&error, OpenError::Folder { path, .. } if *path == deep), "{error}");
}

/// A database that somebody else has made.
fn stranger(database: &Path, sql: &str) -> Vec<u8> {
    let connection = Connection::open(database).unwrap();
    connection.execute_batch(sql).unwrap();
    drop(connection);
    fs::read(database).unwrap()
}

#[test]
fn a_database_of_another_program_is_refused_and_left_as_it_is() {
    for sql in [
        "CREATE TABLE bookmarks (url TEXT); INSERT INTO bookmarks VALUES ('x');",
        "PRAGMA journal_mode = WAL; CREATE TABLE sessions (id INTEGER PRIMARY KEY);",
        "PRAGMA application_id = 7; CREATE TABLE sessions (id INTEGER PRIMARY KEY);",
        "PRAGMA user_version = 1; CREATE TABLE sessions (id INTEGER PRIMARY KEY);",
        "PRAGMA user_version = 99; CREATE TABLE sessions (id INTEGER PRIMARY KEY);",
        "PRAGMA user_version = -1; CREATE TABLE sessions (id INTEGER PRIMARY KEY);",
        // Somebody has begun, and has no tables yet.
        "PRAGMA application_id = 7;",
        "PRAGMA user_version = 1;",
    ] {
        let (folder, database) = folder();
        let before = stranger(&database, sql);
        let error = SqliteSessions::open(&database).unwrap_err();
        assert!(matches!(error, OpenError::Foreign), "{sql} {error}");
        assert_eq!(error.to_string(), "the database belongs to another program");
        assert!(fs::read(&database).unwrap() == before, "{sql}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{sql}");
    }
}

#[test]
fn a_newer_database_is_refused_and_left_as_it_is() {
    let (_folder, database) = folder();
    let ours = database.with_file_name("ours.db");
    SqliteSessions::open(&ours).unwrap();
    let ours = Connection::open(&ours).unwrap();
    let pragma = |name| ours.pragma_query_value(None, name, |row| row.get::<_, usize>(0)).unwrap();
    let (application, known) = (pragma("application_id"), pragma("user_version"));
    let next = known + 1;
    let sql = format!("PRAGMA application_id = {application}; PRAGMA user_version = {next};");
    let before = stranger(&database, &(sql + "CREATE TABLE sessions (id INTEGER PRIMARY KEY);"));
    let error = SqliteSessions::open(&database).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("the database has version {next}, this program knows {known}: update it")
    );
    assert!(matches!(error, OpenError::Newer { version, .. } if version == next));
    assert!(fs::read(&database).unwrap() == before);
}

#[tokio::test]
async fn only_its_owner_can_read_a_database() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, database) = folder();
    let store = SqliteSessions::open(&database).unwrap();
    store.list().await.unwrap();
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", path.display());
    }
}

#[test]
fn a_file_that_is_no_database_is_refused_and_left_as_it_is() {
    for content in ["xy", "This is no database, and it is longer than a header of one. ", "\0\0"] {
        for times in [1, 10, 1_000] {
            let (_folder, database) = folder();
            let content = content.repeat(times);
            fs::write(&database, &content).unwrap();
            let error =
                SqliteSessions::open(&database).expect_err(&format!("{content:.10} {times}"));
            assert!(matches!(error, OpenError::Sqlite(_)), "{error}");
            let text = error.to_string();
            assert_eq!(text, "file is not a database");
            assert_eq!(fs::read_to_string(&database).unwrap(), content);
        }
    }
}

#[tokio::test]
async fn a_corrupt_session_is_named_and_hurts_no_other() {
    let (_folder, database) = folder();
    let store = SqliteSessions::open(&database).unwrap();
    for name in ["a", "b", "c"] {
        say(&store, &key(name), 0, name).await.unwrap();
    }
    let connection = Connection::open(&database).unwrap();
    for (state, cause) in [
        ("{", "EOF"),
        ("", "EOF"),
        ("null", "invalid type"),
        (r#"{"agents":{"main":{"version":2}}}"#, "update it"),
    ] {
        connection.execute("UPDATE sessions SET state = ?1 WHERE session = 'b'", [state]).unwrap();
        for error in [
            store.get(&key("b")).await.unwrap_err(),
            say(&store, &key("b"), 1, "x").await.unwrap_err(),
        ] {
            let StoreError::Corrupt { key, cause: said } = &error else { panic!("{error}") };
            assert_eq!(key.to_string(), "prowess/local/b");
            assert!(said.contains(cause), "{said}");
            assert!(error.to_string().contains("prowess/local/b"), "{error}");
        }
    }
    // What can be read is given: the list, the transcript, the events, the other sessions.
    assert_eq!(keys(&store).await.len(), 3);
    assert_eq!(events(&store, &key("b")).await, ["b"]);
    for name in ["a", "c"] {
        assert_eq!(say(&store, &key(name), 1, name).await.unwrap(), 2);
        assert_eq!(transcript(&store, &key(name), &main_agent()).await, [name; 2]);
    }
    connection.execute("UPDATE events SET event = '{'", []).unwrap();
    let error = store.events(&key("a"), 0, 1).await.unwrap_err();
    assert_eq!(error.code(), "session_corrupt");
    connection.execute("UPDATE messages SET message = '{'", []).unwrap();
    let error = store.messages(&key("a"), &main_agent()).await.unwrap_err();
    assert_eq!(error.code(), "session_corrupt");
    // It can be removed, and begun again.
    assert!(store.delete(&key("b")).await.unwrap());
    assert_eq!(say(&store, &key("b"), 0, "new").await.unwrap(), 1);
}

#[tokio::test]
async fn purging_removes_what_is_over_and_counts_it() {
    const HOUR: Duration = Duration::from_secs(3600);
    let (_folder, database) = folder();
    let clock = Clock::default();
    let store = SqliteSessions::open(&database).unwrap().with_lifetime(clock.lifetime(HOUR));
    assert_eq!(store.purge().await.unwrap(), 0);
    for name in ["a", "b", "c"] {
        say(&store, &key(name), 0, name).await.unwrap();
    }
    clock.pass(HOUR / 2);
    say(&store, &key("c"), 1, "c").await.unwrap();
    say(&store, &key("d"), 0, "d").await.unwrap();
    clock.pass(HOUR / 2 - Duration::from_millis(1));
    assert_eq!(store.purge().await.unwrap(), 0);
    clock.pass(Duration::from_millis(1));
    assert_eq!(store.purge().await.unwrap(), 2);
    assert_eq!(store.purge().await.unwrap(), 0);
    // Nothing of them is left in the file; the others are as they were.
    let connection = Connection::open(&database).unwrap();
    for (table, rows) in [("sessions", 2), ("messages", 3), ("events", 3)] {
        let count = connection
            .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get::<_, i64>(0));
        assert_eq!(count.unwrap(), rows, "{table}");
    }
    assert_eq!(transcript(&store, &key("c"), &main_agent()).await, ["c"; 2]);
    // A session that never expires is not purged.
    let for_ever = SqliteSessions::open(&database).unwrap();
    say(&for_ever, &key("e"), 0, "e").await.unwrap();
    clock.pass(HOUR * 1_000_000);
    assert_eq!(store.purge().await.unwrap(), 2);
    assert_eq!(keys(&store).await, ["prowess/local/e"]);
}
