//! What is particular to the store in Redis.

mod support;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use prowess_catalog::{ContentFile, ContentStore, ResourcePath, SkillContents};
use prowess_format::{Digest, Options, Skill};
use prowess_runtime::{Event, EventKind, Lifetime, Revision, SessionStore};
use prowess_store::{
    About, Actor, Durability, NewVersion, Notice, RedisOpenError, RedisStore, UsageStore,
    VersionStore,
};
use redis::{Connection, cmd};
use support::redis_server::{ALWAYS, EVERY_SECOND, IN_MEMORY, RedisServer};
use support::{Clock, key, keys, main_agent, remember, say};

const HOUR: Duration = Duration::from_secs(3600);
const PATIENCE: Duration = Duration::from_secs(60);
const PENDING: &str = "prowess:{registry}:pending";
const MEMBER: &str = "prowess\0local\0a";

async fn open(server: &RedisServer) -> RedisStore {
    RedisStore::open(&server.url(), RedisStore::PREFIX).await.unwrap()
}

async fn refused(server: &RedisServer, prefix: &str) -> RedisOpenError {
    RedisStore::open(&server.url(), prefix).await.unwrap_err()
}

#[tokio::test]
async fn keys_of_others_and_of_newer_programs_are_left_alone() {
    let Some(server) = RedisServer::start("keys_of_others_and_of_newer_programs_are_left_alone")
    else {
        return;
    };
    let mut connection = server.connection();
    cmd("SET").arg("theirs:{registry}:layout").arg("something").exec(&mut connection).unwrap();
    cmd("RPUSH").arg("list:{registry}:layout").arg("x").exec(&mut connection).unwrap();
    cmd("SET").arg("other:key").arg("x").exec(&mut connection).unwrap();
    cmd("SET").arg("new:{registry}:layout").arg("prowess-store 2").exec(&mut connection).unwrap();
    for foreign in ["theirs", "list", "other"] {
        let error = refused(&server, foreign).await;
        assert!(matches!(error, RedisOpenError::Foreign(_)), "{foreign}: {error}");
        assert_eq!(error.code(), "store_foreign");
    }
    let error = refused(&server, "new").await;
    assert!(matches!(error, RedisOpenError::Newer { layout: 2, known: 1 }), "{error}");
    for prefix in ["", "a{b}", "a*", "a b"] {
        assert!(matches!(refused(&server, prefix).await, RedisOpenError::Prefix(_)), "{prefix}");
    }
    let keys: u64 = cmd("DBSIZE").query(&mut connection).unwrap();
    assert_eq!(keys, 4);
    let error = RedisStore::open("http://secret@nowhere", "prowess").await.unwrap_err();
    assert_eq!(error.code(), "invalid_address");
    assert!(!error.to_string().contains("secret"), "{error}");
    // Two prefixes are two stores, and each can be opened again.
    let (one, two) = (open(&server).await, RedisStore::open(&server.url(), "two").await.unwrap());
    say(&one.sessions(), &key("a"), 0, "x").await.unwrap();
    assert_eq!(two.sessions().get(&key("a")).await.unwrap(), None);
    assert!(open(&server).await.sessions().get(&key("a")).await.unwrap().is_some());
}

#[tokio::test]
async fn the_server_says_what_an_acknowledged_write_means() {
    let test = "the_server_says_what_an_acknowledged_write_means";
    let expected = [
        (IN_MEMORY, Durability::None),
        (ALWAYS, Durability::Always),
        (EVERY_SECOND, Durability::EverySecond),
        (&["--rename-command", "CONFIG", ""], Durability::Unknown),
    ];
    for (settings, durability) in expected {
        let Some(server) = RedisServer::start_with(test, settings) else { return };
        let store = open(&server).await;
        assert_eq!(store.durability(), durability);
        say(&store.sessions(), &key("a"), 0, "x").await.unwrap();
    }
}

#[tokio::test]
async fn no_script_touches_the_text_of_a_session() {
    let Some(server) = RedisServer::start("no_script_touches_the_text_of_a_session") else {
        return;
    };
    let store = open(&server).await;
    let text = "\0 \\u0000 \\ud800 \u{10ffff} \u{2028} 1e400 0.10 \"\\\" /";
    say(&store.sessions(), &key("a"), 0, text).await.unwrap();
    let mut connection = server.connection();
    let base = "prowess:{s:prowess/local/a}";
    let state: String =
        cmd("HGET").arg(format!("{base}:meta")).arg("state").query(&mut connection).unwrap();
    let stored = store.sessions().get(&key("a")).await.unwrap().unwrap();
    assert_eq!(state, serde_json::to_string(&stored.session).unwrap());
    let heard: Vec<String> = cmd("LRANGE")
        .arg(format!("{base}:m:{}", main_agent().as_str()))
        .arg(0)
        .arg(-1)
        .query(&mut connection)
        .unwrap();
    let messages = store.sessions().messages(&key("a"), &main_agent()).await.unwrap();
    assert_eq!(heard, [serde_json::to_string(&messages[0]).unwrap()]);
    assert_eq!(messages[0].text(), text);
}

/// A commit that uses a skill.
async fn use_skill(store: &RedisStore, expected: u64) {
    let agent = main_agent();
    let event = Event::new(EventKind::SkillLoaded, &agent, 0, "x").with_skill("greet");
    let delta = remember(&agent, "said", "x");
    store.sessions().commit(&key("a"), Revision(expected), delta, vec![event]).await.unwrap();
}

async fn counted(store: &RedisStore) -> u64 {
    store.usage().totals().await.unwrap().iter().map(|row| row.count).sum()
}

/// Brings the server to where a process has died that had committed and not yet counted.
fn undo_counting(connection: &mut Connection) {
    let outbox: Vec<(String, u64)> = cmd("ZRANGE")
        .arg("prowess:{s:prowess/local/a}:outbox")
        .arg(0)
        .arg(-1)
        .arg("WITHSCORES")
        .query(connection)
        .unwrap();
    let number = outbox.last().unwrap().1;
    let left = format!("{number} {}", number - 1);
    cmd("HSET").arg(PENDING).arg(MEMBER).arg(left).exec(connection).unwrap();
    for part in [":usage:", ":used", ":users:", ":visits:", ":days:", ":agents:", ":loads"] {
        cmd("DEL").arg(format!("prowess:{{registry}}{part}")).exec(connection).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_crash_left_uncounted_is_counted_once_by_whoever_comes_next() {
    let test = "what_a_crash_left_uncounted_is_counted_once_by_whoever_comes_next";
    let Some(server) = RedisServer::start_cluster(test) else { return };
    let store = open(&server).await;
    let mut connection = server.connection();
    use_skill(&store, 0).await;
    assert_eq!(counted(&store).await, 1);
    let pending = |connection: &mut Connection| -> bool {
        cmd("HEXISTS").arg(PENDING).arg(MEMBER).query(connection).unwrap()
    };
    assert!(!pending(&mut connection));

    // Whoever reads, also many at once.
    undo_counting(&mut connection);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let store = open(&server).await;
        tasks.spawn(async move { counted(&store).await });
    }
    assert_eq!(tasks.join_all().await, [1; 8]);
    assert!(pending(&mut connection));
    assert_eq!(counted(&store).await, 1);

    // Whoever commits: what is older is gone from the outbox with the next one.
    undo_counting(&mut connection);
    use_skill(&store, 1).await;
    assert!(!pending(&mut connection));
    assert_eq!(counted(&store).await, 2);
    assert_eq!(store.usage().usage("").await.unwrap().unique_sessions, 1);

    // Whoever deletes.
    let before = counted(&store).await;
    use_skill(&store, 2).await;
    undo_counting(&mut connection);
    assert!(store.sessions().delete(&key("a")).await.unwrap());
    // What was counted before has been removed with the counters above.
    assert_eq!((before, counted(&store).await), (2, 1));
    assert!(!pending(&mut connection));
    let left: Vec<String> = cmd("KEYS").arg("prowess:{s:*").query(&mut connection).unwrap();
    assert_eq!(left, ["prowess:{s:prowess/local/a}:floor"]);
}

#[tokio::test]
async fn who_was_given_up_must_announce_itself_again() {
    let Some(server) = RedisServer::start("who_was_given_up_must_announce_itself_again") else {
        return;
    };
    let store = open(&server).await;
    let mut connection = server.connection();
    // Somebody was announced long ago, and has not committed.
    cmd("HSET").arg(PENDING).arg(MEMBER).arg("1000 999").exec(&mut connection).unwrap();
    cmd("ZADD")
        .arg("prowess:{registry}:sessions")
        .arg(0)
        .arg(MEMBER)
        .exec(&mut connection)
        .unwrap();
    assert_eq!(counted(&store).await, 0);
    let pending: u64 = cmd("HLEN").arg(PENDING).query(&mut connection).unwrap();
    let listed: u64 =
        cmd("ZCARD").arg("prowess:{registry}:sessions").query(&mut connection).unwrap();
    assert_eq!((pending, listed), (0, 0));
    let floor: String =
        cmd("GET").arg("prowess:{s:prowess/local/a}:floor").query(&mut connection).unwrap();
    assert_eq!(floor, "1000");
    // Others are not disturbed.
    use_skill(&store, 0).await;
    assert_eq!(counted(&store).await, 1);
}

fn time_left(connection: &mut Connection, part: &str) -> i64 {
    cmd("PTTL").arg(format!("prowess:{{s:prowess/local/a}}{part}")).query(connection).unwrap()
}

#[tokio::test]
async fn memory_is_freed_after_the_end_of_a_session_by_the_clock_of_the_system() {
    let test = "memory_is_freed_after_the_end_of_a_session_by_the_clock_of_the_system";
    let Some(server) = RedisServer::start(test) else { return };
    let store = open(&server).await;
    let mut connection = server.connection();
    let transcript = format!(":m:{}", main_agent().as_str());
    let parts = [":meta", ":events", ":agents", transcript.as_str()];
    let sessions = store.sessions().with_lifetime(Lifetime::of(HOUR));
    say(&sessions, &key("a"), 0, "x").await.unwrap();
    for part in parts {
        let left = time_left(&mut connection, part);
        assert!((3_600_000..=7_200_000).contains(&left), "{part} {left}");
    }
    // For ever from now on.
    say(&store.sessions(), &key("a"), 1, "x").await.unwrap();
    for part in parts {
        assert_eq!(time_left(&mut connection, part), -1, "{part}");
    }
    // By another clock the server does nothing by itself.
    let clock = Clock::default();
    let sessions = store.sessions().with_lifetime(clock.lifetime(HOUR));
    say(&sessions, &key("a"), 2, "x").await.unwrap();
    assert_eq!(time_left(&mut connection, ":meta"), -1);
    say(&sessions, &key("b"), 0, "x").await.unwrap();
    assert_eq!(sessions.purge().await.unwrap(), 0);
    clock.pass(HOUR);
    assert_eq!(sessions.purge().await.unwrap(), 2);
    assert_eq!(sessions.purge().await.unwrap(), 0);
    let left: Vec<String> = cmd("KEYS").arg("prowess:{s:*").query(&mut connection).unwrap();
    assert!(left.iter().all(|key| key.ends_with(":floor")), "{left:?}");
}

#[tokio::test]
async fn what_the_server_has_freed_leaves_the_list() {
    let Some(server) = RedisServer::start("what_the_server_has_freed_leaves_the_list") else {
        return;
    };
    let store = open(&server).await;
    for name in ["a", "b"] {
        say(&store.sessions(), &key(name), 0, "x").await.unwrap();
    }
    let mut connection = server.connection();
    cmd("DEL").arg("prowess:{s:prowess/local/a}:meta").exec(&mut connection).unwrap();
    assert_eq!(keys(&store.sessions()).await, ["prowess/local/b"]);
    let listed: Vec<String> = cmd("ZRANGE")
        .arg("prowess:{registry}:sessions")
        .arg(0)
        .arg(-1)
        .query(&mut connection)
        .unwrap();
    assert_eq!(listed, ["prowess\0local\0b"]);
    say(&store.sessions(), &key("a"), 0, "again").await.unwrap();
    assert_eq!(keys(&store.sessions()).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_is_shared_verified_and_collected_when_it_is_old() {
    let test = "content_is_shared_verified_and_collected_when_it_is_old";
    let Some(server) = RedisServer::start_cluster(test) else { return };
    let (one, two) = (open(&server).await, open(&server).await);
    let mut connection = server.connection();
    let done = tokio::task::spawn_blocking(move || {
        let (one, two) = (one.content(), two.content());
        let bytes = b"\0\xff content";
        let digest = one.put(bytes).unwrap();
        assert_eq!(digest, Digest::of(bytes));
        assert_eq!(one.put(bytes).unwrap(), digest);
        assert_eq!(two.get(&digest).unwrap().as_deref(), Some(&bytes[..]));
        assert_eq!(two.get(&Digest::of(b"nothing")).unwrap(), None);
        let empty = one.put(b"").unwrap();
        assert_eq!(two.get(&empty).unwrap().as_deref(), Some(&b""[..]));
        // Young content is spared, and what somebody needs.
        assert_eq!(one.collect_garbage(&HashSet::new()).unwrap(), 0);
        let eager = one.clone().with_grace(Duration::ZERO);
        assert_eq!(eager.collect_garbage(&HashSet::from([digest])).unwrap(), 1);
        assert_eq!(one.get(&empty).unwrap(), None);
        assert_eq!(one.get(&digest).unwrap().as_deref(), Some(&bytes[..]));
        assert_eq!(eager.collect_garbage(&HashSet::new()).unwrap(), 1);
        assert_eq!(one.get(&digest).unwrap(), None);
        let names: u64 =
            cmd("ZCARD").arg("prowess:{registry}:content").query(&mut connection).unwrap();
        assert_eq!(names, 0);
        // What is not what its name says is given to nobody, and can be put again.
        let digest = one.put(b"right").unwrap();
        let name = format!("prowess:{{c:{}}}", digest.hex());
        cmd("HSET").arg(&name).arg("bytes").arg("wrong").exec(&mut connection).unwrap();
        assert_eq!(two.get(&digest).unwrap_err().code(), "content_corrupt");
        assert_eq!(two.put(b"right").unwrap(), digest);
        assert_eq!(two.get(&digest).unwrap().as_deref(), Some(&b"right"[..]));
    });
    done.await.unwrap();
}

async fn heard(listener: &mut prowess_store::Listener, expected: &Notice) {
    let heard = async { while listener.next().await != *expected {} };
    tokio::time::timeout(PATIENCE, heard).await.unwrap_or_else(|_| panic!("{expected:?}"));
}

/// How many listen to changes.
fn listening(connection: &mut Connection) -> u64 {
    let answer: (String, u64) =
        cmd("PUBSUB").arg("NUMSUB").arg("prowess:notices").query(connection).unwrap();
    answer.1
}

async fn until_so_many_listen(server: &RedisServer, many: u64) {
    let end = Instant::now() + PATIENCE;
    let mut connection = server.connection();
    while listening(&mut connection) != many {
        assert!(Instant::now() < end);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_are_told_of_changes_and_of_what_they_may_have_missed() {
    let test = "others_are_told_of_changes_and_of_what_they_may_have_missed";
    let Some(mut server) = RedisServer::start_with(test, ALWAYS) else { return };
    let (one, two) = (open(&server).await, open(&server).await);
    until_so_many_listen(&server, 2).await;
    let mut listener = two.notices().listen();
    say(&one.sessions(), &key("a"), 0, "x").await.unwrap();
    let session = Notice::Session(key("a").into());
    heard(&mut listener, &session).await;
    let text = "---\nname: greet\ndescription: For tests.\n---\nText.\n";
    let about = About::of(&Skill::parse_bytes(text.as_bytes(), &Options::new()).skill.unwrap());
    let file = ContentFile::new(ResourcePath::parse("SKILL.md").unwrap(), false, text);
    let contents = SkillContents::of(vec![file]).into();
    let new = NewVersion::new("greet".parse().unwrap(), contents, about, Actor::local());
    one.versions().append(new).await.unwrap();
    heard(&mut listener, &Notice::Skills).await;
    assert!(one.sessions().delete(&key("a")).await.unwrap());
    heard(&mut listener, &session).await;

    server.start_again();
    heard(&mut listener, &Notice::Anything).await;
    until_so_many_listen(&server, 2).await;
    let end = Instant::now() + PATIENCE;
    while say(&one.sessions(), &key("b"), 0, "x").await.is_err() {
        assert!(Instant::now() < end);
    }
    heard(&mut listener, &Notice::Session(key("b").into())).await;

    // As long as a part of the store is there, somebody listens.
    let store = prowess_store::Store::from(&two);
    drop(two);
    drop(one);
    until_so_many_listen(&server, 1).await;
    say(&*store.sessions, &key("c"), 0, "x").await.unwrap();
    heard(&mut listener, &Notice::Session(key("c").into())).await;
    drop(store);
    until_so_many_listen(&server, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_memory_refuses_and_keeps_what_it_has() {
    let test = "a_server_without_memory_refuses_and_keeps_what_it_has";
    let Some(server) = RedisServer::start(test) else { return };
    let store = open(&server).await;
    say(&store.sessions(), &key("a"), 0, "x").await.unwrap();
    let mut connection = server.connection();
    cmd("CONFIG").arg("SET").arg("maxmemory").arg(1).exec(&mut connection).unwrap();
    for name in ["a", "b"] {
        let expected = u64::from(name == "a");
        let error = say(&store.sessions(), &key(name), expected, "y").await.unwrap_err();
        assert_eq!(error.code(), "store_unavailable", "{error}");
    }
    assert_eq!(keys(&store.sessions()).await, ["prowess/local/a"]);
    cmd("CONFIG").arg("SET").arg("maxmemory").arg(0).exec(&mut connection).unwrap();
    say(&store.sessions(), &key("a"), 1, "y").await.unwrap();
    let heard = support::transcript(&store.sessions(), &key("a"), &main_agent()).await;
    assert_eq!(heard, ["x", "y"]);
    assert_eq!(support::events(&store.sessions(), &key("a")).await, heard);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_that_the_server_has_forgotten_are_loaded_again() {
    let test = "scripts_that_the_server_has_forgotten_are_loaded_again";
    let Some(server) = RedisServer::start(test) else { return };
    let store = open(&server).await;
    let mut connection = server.connection();
    for revision in 0..3 {
        cmd("SCRIPT").arg("FLUSH").exec(&mut connection).unwrap();
        use_skill(&store, revision).await;
    }
    assert_eq!(counted(&store).await, 3);
}

#[tokio::test]
async fn the_node_of_a_cluster_refuses_a_script_whose_keys_are_on_two() {
    let test = "the_node_of_a_cluster_refuses_a_script_whose_keys_are_on_two";
    let (Some(single), Some(node)) = (RedisServer::start(test), RedisServer::start_cluster(test))
    else {
        return;
    };
    // So the suite would fail there if a script of ours did so.
    let run = |server: &RedisServer| {
        let script =
            "#!lua\nredis.call('SET', KEYS[1], 1); redis.call('SET', 'prowess:{registry}', 1)";
        let mut eval = cmd("EVAL");
        eval.arg(script).arg(1).arg("prowess:{s:a}").exec(&mut server.connection())
    };
    run(&single).unwrap();
    let error = run(&node).unwrap_err();
    assert!(error.to_string().contains("same slot"), "{error}");
}
