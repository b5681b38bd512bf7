//! What a store in PostgreSQL does while the server is away, and after it.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use prowess_catalog::ContentStore;
use prowess_runtime::{Revision, SessionKey, SessionStore, StoreError};
use prowess_store::{
    Actor, KeyStore, Notice, PostgresSettings, PostgresStore, Role, UsageKind, UsageStore, Use,
    VersionStore,
};
use support::postgres_server::{PostgresServer, Sync};
use support::{event, events, key, main_agent, remember, say};

/// Short, so that a test is.
fn settings() -> PostgresSettings {
    let mut settings = PostgresSettings::default();
    settings.connect_time = Duration::from_secs(1);
    settings.statement_time = Duration::from_secs(2);
    settings
}

/// What no operation takes: its limits, and much time for a machine that does other things.
const LIMIT: Duration = Duration::from_secs(1 + 2 + 1 + 20);

/// A server of the test's own, and a store in it.
async fn ground(test: &str, settings: PostgresSettings) -> Option<(PostgresServer, PostgresStore)> {
    let server = PostgresServer::start(test, Sync::Disk)?;
    let store = PostgresStore::open_with(&server.url("postgres"), settings).await.unwrap();
    Some((server, store))
}

fn assert_unavailable(result: Result<u64, StoreError>) {
    let error = result.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    assert_eq!(error.code(), "store_unavailable");
}

/// Everything fails, and in time.
async fn assert_away(store: &PostgresStore) {
    let begun = Instant::now();
    let sessions = store.sessions();
    assert_unavailable(say(&sessions, &key("a"), 1, "lost").await);
    assert_eq!(sessions.get(&key("a")).await.unwrap_err().code(), "store_unavailable");
    let lease = sessions.lease(&key("a"), "me", Duration::from_secs(1)).await;
    assert_eq!(lease.unwrap_err().code(), "store_unavailable");
    let changes = store.versions().changes(None).await;
    assert_eq!(changes.unwrap_err().code(), "store_unavailable");
    let made = store.keys().create("late", Role::Viewer, None, &Actor::local()).await;
    assert_eq!(made.unwrap_err().code(), "store_unavailable");
    let counted = store.usage().record(vec![Use::new(UsageKind::Load, "pdf")]).await;
    assert_eq!(counted.unwrap_err().code(), "store_unavailable");
    let content = store.content();
    let put = tokio::task::spawn_blocking(move || content.put(b"late")).await.unwrap();
    assert_eq!(put.unwrap_err().code(), "store_unavailable");
    assert!(begun.elapsed() < LIMIT * 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_server_is_stopped_writes_fail_and_after_it_the_same_store_works() {
    let test = "while_a_server_is_stopped_writes_fail_and_after_it_the_same_store_works";
    let Some((server, store)) = ground(test, settings()).await else { return };
    let mut revision = 0;
    for mode in ["fast", "immediate"] {
        // Several connections, all of which are lost.
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..8 {
            let sessions = store.sessions();
            let key = key(&format!("{mode} {number}"));
            tasks.spawn(async move { say(&sessions, &key, 0, "kept").await.unwrap() });
        }
        tasks.join_all().await;
        revision = say(&store.sessions(), &key("a"), revision, "kept").await.unwrap();
        server.stop(mode);
        assert_away(&store).await;
        server.begin();
        // Without a single failure: connections that are lost are made anew.
        let stored = store.sessions().get(&key("a")).await.unwrap().unwrap();
        assert_eq!(stored.revision, Revision(revision));
        revision = say(&store.sessions(), &key("a"), revision, "kept").await.unwrap();
        for number in 0..8 {
            let key = key(&format!("{mode} {number}"));
            assert_eq!(events(&store.sessions(), &key).await, ["kept"]);
        }
    }
    assert_eq!(events(&store.sessions(), &key("a")).await, ["kept"; 4]);
    assert!(store.keys().list().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_server_is_paused_writes_fail_in_time_and_after_it_the_same_store_works() {
    let test = "while_a_server_is_paused_writes_fail_in_time_and_after_it_the_same_store_works";
    let Some((server, store)) = ground(test, settings()).await else { return };
    say(&store.sessions(), &key("a"), 0, "kept").await.unwrap();
    server.pause();
    assert_away(&store).await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..100 {
        let sessions = store.sessions();
        tasks.spawn(async move {
            let begun = Instant::now();
            assert_unavailable(say(&sessions, &key(&format!("s{number}")), 0, "lost").await);
            begun.elapsed()
        });
    }
    let slowest = tasks.join_all().await.into_iter().max().unwrap();
    assert!(slowest < LIMIT, "{slowest:?}");
    server.resume();
    let end = Instant::now() + Duration::from_secs(60);
    // What was sent while it was paused may be done now, or not: read, then write.
    loop {
        let revision = match store.sessions().get(&key("a")).await {
            Ok(stored) => stored.unwrap().revision.0,
            Err(error) => {
                assert!(Instant::now() < end, "{error}");
                continue;
            }
        };
        match say(&store.sessions(), &key("a"), revision, "kept too").await {
            Ok(_) => break,
            Err(error) => assert!(Instant::now() < end, "{error}"),
        }
    }
    let told = events(&store.sessions(), &key("a")).await;
    assert_eq!(
        (told.first().unwrap().as_str(), told.last().unwrap().as_str()),
        ("kept", "kept too")
    );
    assert!(told.len() <= 3, "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_callers_do_not_pile_up_while_the_server_is_away() {
    let mut few = settings();
    (few.connections, few.waiting) = (2, 8);
    let test = "many_callers_do_not_pile_up_while_the_server_is_away";
    let Some((server, store)) = ground(test, few).await else { return };
    say(&store.sessions(), &key("a"), 0, "kept").await.unwrap();
    server.pause();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..2_000 {
        let sessions = store.sessions();
        tasks.spawn(async move {
            match say(&sessions, &key(&format!("s{number}")), 0, "x").await.unwrap_err() {
                StoreError::Unavailable { cause } => cause.contains("operations wait"),
                error => panic!("{error}"),
            }
        });
    }
    let refused = tasks.join_all().await.into_iter().filter(|it| *it).count();
    assert_eq!(refused, 2_000 - 10);
    server.resume();
    let end = Instant::now() + Duration::from_secs(60);
    while let Err(error) = store.sessions().get(&key("a")).await {
        assert!(Instant::now() < end, "{error}");
    }
}

/// What a writer was told.
#[derive(Default)]
struct Told {
    acknowledged: Vec<String>,
    failed: Vec<String>,
}

/// Writes until it is told to stop, whatever comes.
async fn keep_writing(sessions: impl SessionStore, key: SessionKey, stop: Arc<AtomicBool>) -> Told {
    let agent = main_agent();
    let mut told = Told::default();
    for number in 0.. {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        let Ok(stored) = sessions.get(&key).await else { continue };
        let text = number.to_string();
        let revision = stored.unwrap_or_default().revision;
        let delta = remember(&agent, "said", text.as_str());
        match sessions.commit(&key, revision, delta, vec![event(&agent, &text)]).await {
            Ok(_) => told.acknowledged.push(text),
            // One that was sent before may have been done after all.
            Err(StoreError::Unavailable { .. } | StoreError::Conflict { .. }) => {
                told.failed.push(text);
            }
            Err(error) => panic!("{error}"),
        }
    }
    told
}

/// Writers write while something is done to the server; nothing acknowledged is lost, and nothing
/// is there twice.
async fn nothing_is_lost_while(store: &PostgresStore, disturb: impl AsyncFnOnce()) {
    const WRITERS: usize = 6;
    let stop = Arc::new(AtomicBool::new(false));
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let (sessions, stop) = (store.sessions(), Arc::clone(&stop));
        let key = key(&format!("writer {writer}"));
        tasks.spawn(async move { (key.clone(), keep_writing(sessions, key, stop).await) });
    }
    disturb().await;
    stop.store(true, Ordering::SeqCst);
    let mut failures = 0;
    for (key, told) in tasks.join_all().await {
        let kept = events(&store.sessions(), &key).await;
        assert!(!told.acknowledged.is_empty(), "{key} never wrote");
        failures += told.failed.len();
        let mut expected = told.acknowledged.iter().peekable();
        for text in &kept {
            match expected.next_if_eq(&text) {
                Some(_) => {}
                None => assert!(told.failed.contains(text), "{text} is there twice"),
            }
        }
        assert_eq!(expected.next(), None, "{key} has lost something");
        let stored = store.sessions().get(&key).await.unwrap().unwrap();
        assert_eq!(stored.revision.0, kept.len() as u64);
    }
    println!("{failures} writes failed");
}

/// Waits until all that were disturbed write again.
async fn settle(store: &PostgresStore) {
    let end = Instant::now() + Duration::from_secs(60);
    let mut written = 0;
    while written < 20 {
        let sessions = store.sessions();
        let revision = sessions.get(&key("settle")).await.ok().map(Option::unwrap_or_default);
        let Some(stored) = revision else {
            assert!(Instant::now() < end, "it does not come back");
            continue;
        };
        written +=
            usize::from(say(&sessions, &key("settle"), stored.revision.0, "x").await.is_ok());
        assert!(Instant::now() < end, "it does not come back");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_when_connections_are_cut() {
    let test = "nothing_acknowledged_is_lost_when_connections_are_cut";
    let Some((server, store)) = ground(test, settings()).await else { return };
    let database = server.database().await;
    nothing_is_lost_while(&store, async || {
        let mut other = database.connection().await;
        for _ in 0..20 {
            settle_a_little(&store).await;
            sqlx::query(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE application_name = 'prowess'",
            )
            .execute(&mut other)
            .await
            .unwrap();
        }
        settle(&store).await;
    })
    .await;
}

/// Lets some writes go through.
async fn settle_a_little(store: &PostgresStore) {
    for _ in 0..5 {
        let _ = store.sessions().list().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_when_the_server_dies_and_comes_back() {
    let test = "nothing_acknowledged_is_lost_when_the_server_dies_and_comes_back";
    let Some((server, store)) = ground(test, settings()).await else { return };
    nothing_is_lost_while(&store, async || {
        for mode in ["immediate", "fast", "immediate"] {
            settle(&store).await;
            server.stop(mode);
            server.begin();
        }
        settle(&store).await;
        server.pause();
        tokio::time::sleep(Duration::from_millis(500)).await;
        server.resume();
        settle(&store).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_listens_is_told_to_look_after_the_server_was_away() {
    let test = "whoever_listens_is_told_to_look_after_the_server_was_away";
    let Some((server, store)) = ground(test, settings()).await else { return };
    let mut listener = store.notices().listen();
    let hear = async |listener: &mut prowess_store::Listener, expected: Notice| {
        let wait = async { while listener.next().await != expected {} };
        tokio::time::timeout(Duration::from_secs(60), wait).await.unwrap();
    };
    hear(&mut listener, Notice::Anything).await;
    for revision in 0..2 {
        server.stop("immediate");
        server.begin();
        hear(&mut listener, Notice::Anything).await;
        say(&store.sessions(), &key("a"), revision, "x").await.unwrap();
        hear(&mut listener, Notice::Session(Arc::new(key("a")))).await;
    }
}
