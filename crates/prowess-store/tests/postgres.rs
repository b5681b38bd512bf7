//! What only a PostgreSQL database can be asked.

mod support;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use prowess_catalog::ContentStore;
use prowess_format::Digest;
use prowess_runtime::{
    Event, EventKind, Message, Revision, SessionDelta, SessionStore, StoreError,
};
use prowess_store::{
    KeyStore, OpenError, PostgresSettings, PostgresStore, UsageKind, UsageStore, VersionStore,
};
use sqlx::{AssertSqlSafe, PgConnection};
use support::postgres_server::{self, Database};
use support::{Clock, event, key, main_agent, remember, say, transcript};

const HOUR: Duration = Duration::from_secs(3600);

/// A database, or nothing where there is no server.
async fn database(test: &str) -> Option<Database> {
    Some(postgres_server::shared(test)?.database().await)
}

async fn run(connection: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(connection).await.unwrap();
}

async fn count(connection: &mut PgConnection, table: &str) -> i64 {
    let sql = AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
    sqlx::query_scalar(sql).fetch_one(connection).await.unwrap()
}

#[tokio::test]
async fn a_database_of_a_newer_program_is_left_alone() {
    let Some(database) = database("a_database_of_a_newer_program_is_left_alone").await else {
        return;
    };
    drop(PostgresStore::open(&database.url()).await.unwrap());
    let mut connection = database.connection().await;
    run(&mut connection, "UPDATE prowess_schema SET version = 99").await;
    let error = PostgresStore::open(&database.url()).await.unwrap_err();
    assert!(matches!(error, OpenError::Newer { version: 99, .. }), "{error}");
}

#[tokio::test]
async fn a_database_of_another_program_is_left_alone() {
    let Some(database) = database("a_database_of_another_program_is_left_alone").await else {
        return;
    };
    let mut connection = database.connection().await;
    run(&mut connection, "CREATE TABLE sessions (theirs text)").await;
    let error = PostgresStore::open(&database.url()).await.unwrap_err();
    assert!(matches!(error, OpenError::Foreign), "{error}");
    let sql = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
    let tables: i64 = sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap();
    assert_eq!(tables, 1);
}

#[tokio::test]
async fn what_cannot_be_reached_is_said_so() {
    let nowhere = PostgresStore::open("postgres://nobody@localhost/x?host=/nowhere").await;
    assert!(matches!(nowhere.unwrap_err(), OpenError::Unreachable(_)));
    let wrong = PostgresStore::open("redis://localhost").await.unwrap_err();
    assert!(matches!(wrong, OpenError::Address(_)), "{wrong}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_open_an_empty_database_at_once() {
    let Some(database) = database("many_open_an_empty_database_at_once").await else { return };
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..8 {
        let url = database.url();
        tasks.spawn(async move {
            let store = PostgresStore::open(&url).await.unwrap();
            say(&store.sessions(), &key(&format!("s{number}")), 0, "x").await.unwrap();
        });
    }
    tasks.join_all().await;
    let store = PostgresStore::open(&database.url()).await.unwrap();
    assert_eq!(store.sessions().list().await.unwrap().len(), 8);
}

#[tokio::test]
async fn of_several_servers_the_one_that_is_there_is_used() {
    let Some(database) = database("of_several_servers_the_one_that_is_there_is_used").await else {
        return;
    };
    let urls = format!("postgres://nobody@localhost/x?host=/nowhere,{}", database.url());
    let store = PostgresStore::open(&urls).await.unwrap();
    say(&store.sessions(), &key("a"), 0, "x").await.unwrap();
}

#[tokio::test]
async fn what_is_stored_is_as_it_was_written() {
    let Some(database) = database("what_is_stored_is_as_it_was_written").await else { return };
    let store = PostgresStore::open(&database.url()).await.unwrap();
    let (key, agent) = (key("a"), main_agent());
    let delta = remember(&agent, "z", "a\0b").with_messages(vec![Message::user("\0")]);
    let events = vec![event(&agent, "b\0"), event(&agent, "").with_skill("invented\0name")];
    store.sessions().commit(&key, Revision(0), delta, events).await.unwrap();
    let mut connection = database.connection().await;
    let state: String =
        sqlx::query_scalar("SELECT state FROM sessions").fetch_one(&mut connection).await.unwrap();
    assert!(state.contains(r"a\u0000b"), "{state}");
    let stored = store.sessions().get(&key).await.unwrap().unwrap();
    assert_eq!(serde_json::to_string(&stored.session).unwrap(), state);
    assert_eq!(transcript(&store.sessions(), &key, &agent).await, ["\0"]);
    let events = store.sessions().events(&key, 0, 9).await.unwrap();
    assert_eq!(events[1].skill.as_deref(), Some("invented\0name"));
    // Whoever asks for what cannot be there is told that it is not.
    assert!(store.keys().find("\0").await.unwrap().is_none());
    assert!(store.usage().usage("\0").await.unwrap().rows.is_empty());
    store.sessions().lease(&key, "holder\0", HOUR).await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_read_is_said_so_and_hurts_nobody_else() {
    let Some(database) = database("what_cannot_be_read_is_said_so_and_hurts_nobody_else").await
    else {
        return;
    };
    let store = PostgresStore::open(&database.url()).await.unwrap().sessions();
    for name in ["a", "b"] {
        say(&store, &key(name), 0, "x").await.unwrap();
    }
    let mut connection = database.connection().await;
    run(&mut connection, "UPDATE sessions SET state = '{' WHERE session = 'a'").await;
    assert_eq!(store.get(&key("a")).await.unwrap_err().code(), "session_corrupt");
    assert_eq!(say(&store, &key("a"), 1, "y").await.unwrap_err().code(), "session_corrupt");
    say(&store, &key("b"), 1, "y").await.unwrap();
    assert!(store.delete(&key("a")).await.unwrap());
    say(&store, &key("a"), 0, "z").await.unwrap();
}

#[tokio::test]
async fn what_is_over_is_removed_with_everything() {
    let Some(database) = database("what_is_over_is_removed_with_everything").await else { return };
    let clock = Clock::default();
    let store = PostgresStore::open(&database.url()).await.unwrap().sessions();
    let store = store.with_lifetime(clock.lifetime(HOUR));
    for number in 0..5 {
        say(&store, &key(&format!("old {number}")), 0, "x").await.unwrap();
    }
    let fence = store.lease(&key("old 0"), "worker", HOUR).await.unwrap();
    // Somebody has taken one that never came to be, and is gone.
    store.lease(&key("never"), "worker", Duration::ZERO).await.unwrap();
    clock.pass(HOUR);
    say(&store, &key("young"), 0, "x").await.unwrap();
    let mut connection = database.connection().await;
    run(&mut connection, "UPDATE sessions SET lease_expires = 0 WHERE session = 'never'").await;
    assert_eq!(store.purge().await.unwrap(), 4, "on one of them somebody works");
    assert_eq!(store.purge().await.unwrap(), 0);
    assert_eq!(count(&mut connection, "sessions").await, 2);
    store.release(&key("old 0"), fence).await.unwrap();
    assert_eq!(store.purge().await.unwrap(), 1);
    for table in ["sessions", "messages", "events"] {
        assert_eq!(count(&mut connection, table).await, 1, "{table}");
    }
}

#[tokio::test]
async fn nothing_is_left_of_what_is_deleted_or_released() {
    let Some(database) = database("nothing_is_left_of_what_is_deleted_or_released").await else {
        return;
    };
    let store = PostgresStore::open(&database.url()).await.unwrap().sessions();
    let key = key("a");
    let fence = store.lease(&key, "worker", HOUR).await.unwrap();
    let delta = remember(&main_agent(), "said", "x")
        .with_messages(vec![Message::user("x")])
        .with_fence(Some(fence));
    store.commit(&key, Revision(0), delta, vec![event(&main_agent(), "x")]).await.unwrap();
    assert!(store.delete(&key).await.unwrap());
    let mut connection = database.connection().await;
    for (table, rows) in [("sessions", 1), ("messages", 0), ("events", 0)] {
        assert_eq!(count(&mut connection, table).await, rows, "{table}");
    }
    store.release(&key, fence).await.unwrap();
    assert_eq!(count(&mut connection, "sessions").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn content_that_nobody_needs_goes_after_an_hour() {
    let Some(database) = database("content_that_nobody_needs_goes_after_an_hour").await else {
        return;
    };
    let mut connection = database.connection().await;
    let content = PostgresStore::open(&database.url()).await.unwrap().content();
    let other = PostgresStore::open(&database.url()).await.unwrap().content();
    let put = content.clone();
    let put = move || [&b"a"[..], b"b", b"c"].map(|bytes| put.put(bytes).unwrap());
    let [needed, unneeded, young] = tokio::task::spawn_blocking(put).await.unwrap();
    run(&mut connection, "UPDATE content SET put = put - interval '61 minutes'").await;
    let bytes = Digest::of(b"c").as_bytes().to_vec();
    sqlx::query("UPDATE content SET put = now() - interval '59 minutes' WHERE digest = $1")
        .bind(bytes)
        .execute(&mut connection)
        .await
        .unwrap();
    let collected = tokio::task::spawn_blocking(move || {
        let collected = other.collect_garbage(&HashSet::from([needed])).unwrap();
        let is_there = |digest| other.get(digest).unwrap().is_some();
        (collected, [&needed, &unneeded, &young].map(is_there))
    });
    assert_eq!(collected.await.unwrap(), (1, [true, false, true]));
}

#[tokio::test(flavor = "multi_thread")]
async fn content_that_is_wrong_is_given_to_nobody_and_can_be_put_again() {
    let Some(database) =
        database("content_that_is_wrong_is_given_to_nobody_and_can_be_put_again").await
    else {
        return;
    };
    let mut connection = database.connection().await;
    let store = PostgresStore::open(&database.url()).await.unwrap();
    let (one, two) = (store.content(), PostgresStore::open(&database.url()).await.unwrap());
    let digest = tokio::task::spawn_blocking(move || one.put(b"right").unwrap()).await.unwrap();
    run(&mut connection, "UPDATE content SET bytes = 'wrong'").await;
    let two = two.content();
    let results = tokio::task::spawn_blocking(move || {
        let wrong = two.get(&digest).unwrap_err();
        assert_eq!(two.get(&digest).unwrap(), None);
        two.put(b"right").unwrap();
        (wrong.code(), two.get(&digest).unwrap())
    });
    assert_eq!(results.await.unwrap(), ("content_corrupt", Some(Arc::from(&b"right"[..]))));
}

/// Many sessions count the same things at once, in different orders.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_count_the_same_at_once_do_not_hold_each_other() {
    const SESSIONS: usize = 16;
    const COMMITS: u64 = 15;
    let Some(database) =
        database("sessions_that_count_the_same_at_once_do_not_hold_each_other").await
    else {
        return;
    };
    let store = PostgresStore::open(&database.url()).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for session in 0..SESSIONS {
        let sessions = store.sessions();
        tasks.spawn(async move {
            for revision in 0..COMMITS {
                let mut events: Vec<Event> = (0..10)
                    .map(|number| {
                        let agent = main_agent();
                        let mut event = Event::new(EventKind::SkillLoaded, &agent, 0, "loaded");
                        event.skill = Some(format!("skill-{number}"));
                        event.digest = Some(Digest::of(b"text"));
                        event
                    })
                    .collect();
                if session % 2 == 0 {
                    events.reverse();
                }
                let (key, delta) = (key(&format!("s{session}")), SessionDelta::default());
                sessions.commit(&key, Revision(revision), delta, events).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    for row in store.usage().totals().await.unwrap() {
        assert_eq!((row.kind, row.count), (UsageKind::Load, SESSIONS as u64 * COMMITS));
    }
    let usage = store.usage().usage("skill-3").await.unwrap();
    assert_eq!(usage.unique_sessions, SESSIONS as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn more_callers_than_may_wait_are_refused_at_once() {
    let Some(database) = database("more_callers_than_may_wait_are_refused_at_once").await else {
        return;
    };
    let mut settings = PostgresSettings::default();
    (settings.connections, settings.waiting) = (1, 2);
    let store = PostgresStore::open_with(&database.url(), settings).await.unwrap().sessions();
    say(&store, &key("a"), 0, "x").await.unwrap();
    // Whoever holds the row holds up the one connection.
    let mut holder = database.connection().await;
    run(&mut holder, "BEGIN; LOCK TABLE sessions").await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let store = store.clone();
        tasks.spawn(async move { store.get(&key("a")).await });
    }
    for _ in 0..7 {
        let refused = tasks.join_next().await.unwrap().unwrap().unwrap_err();
        let StoreError::Unavailable { cause } = refused else { panic!("{refused:?}") };
        assert_eq!(cause, "2 operations wait for PostgreSQL already");
    }
    run(&mut holder, "ROLLBACK").await;
    for served in tasks.join_all().await {
        assert!(served.unwrap().is_some());
    }
}

#[tokio::test]
async fn a_key_is_whole_nowhere_in_the_database() {
    use prowess_store::{Actor, PresentedKey, Role};
    let Some(database) = database("a_key_is_whole_nowhere_in_the_database").await else { return };
    let store = PostgresStore::open(&database.url()).await.unwrap();
    let (key, secret) =
        store.keys().create("ci", Role::Viewer, None, &Actor::local()).await.unwrap();
    let presented = PresentedKey::parse(secret.expose()).unwrap();
    assert!(store.keys().find(&key.id).await.unwrap().unwrap().has_secret(&presented));
    let mut connection = database.connection().await;
    let whole: String = sqlx::query_scalar(
        "SELECT string_agg(row::text, '') FROM
         (SELECT k::text FROM keys k UNION ALL SELECT a::text FROM audit a) row",
    )
    .fetch_one(&mut connection)
    .await
    .unwrap();
    assert!(whole.contains(&key.id) && !whole.contains(&secret.expose()[21..]));
    assert!(store.versions().audit(None, 9).await.unwrap()[0].time <= Timestamp::now());
}
