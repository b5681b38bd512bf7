//! What every session store promises, asked of each of them (S03, 4).

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use prowess_runtime::{
    AgentName, Caps, Change, Event, EventKind, Lifetime, MemorySessions, Message, Revision,
    SessionDelta, SessionKey, SessionStore, StoreError,
};
use prowess_store::SqliteSessions;
use serde_json::json;
use tempfile::TempDir;

/// A store of each kind, with a clock that the test sets.
struct Stores {
    _folder: TempDir,
    clock: Arc<AtomicI64>,
    stores: Vec<(&'static str, Arc<dyn SessionStore>)>,
}

fn stores() -> Stores {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(AtomicI64::new(1_000));
    let lifetime = || {
        let clock = Arc::clone(&clock);
        let now = move || jiff::Timestamp::from_second(clock.load(Ordering::SeqCst)).unwrap();
        Lifetime::of(Duration::from_secs(60)).with_clock(now)
    };
    let sqlite = SqliteSessions::open(folder.path().join("prowess.db")).unwrap();
    let stores: Vec<(&'static str, Arc<dyn SessionStore>)> = vec![
        ("memory", Arc::new(MemorySessions::new().with_lifetime(lifetime()))),
        ("sqlite", Arc::new(sqlite.with_lifetime(lifetime()))),
    ];
    Stores { _folder: folder, clock, stores }
}

fn key(session: &str) -> SessionKey {
    session.parse().unwrap()
}

/// A commit of a number, with a message and an event.
fn numbered(number: u64) -> (SessionDelta, Vec<Event>) {
    let agent = AgentName::default();
    let change = Change::SetContext { skill: "count".to_owned(), value: json!(number) };
    let delta = SessionDelta::new(agent.clone(), Caps::default())
        .with_setup(vec![change])
        .with_messages(vec![Message::user(number.to_string())]);
    (delta, vec![Event::new(EventKind::ToolCalled, &agent, 0, number.to_string())])
}

async fn commit(
    store: &dyn SessionStore,
    session: &str,
    expected: u64,
    number: u64,
) -> Result<u64, StoreError> {
    let (delta, events) = numbered(number);
    store.commit(&key(session), Revision(expected), delta, events).await.map(|revision| revision.0)
}

/// The number in the state, the messages, the events.
async fn content(
    store: &dyn SessionStore,
    session: &str,
) -> (Option<u64>, Vec<String>, Vec<String>) {
    let (key, agent) = (key(session), AgentName::default());
    let stored = store.get(&key).await.unwrap();
    let number = stored.and_then(|it| it.session.state(&agent).context.get("count")?.as_u64());
    let messages = store.messages(&key, &agent).await.unwrap();
    let events = store.events(&key, 0, usize::MAX).await.unwrap();
    (
        number,
        messages.iter().map(Message::text).collect(),
        events.into_iter().map(|event| event.message).collect(),
    )
}

#[tokio::test]
async fn a_commit_counts_only_at_the_revision_it_expects() {
    for (name, store) in stores().stores {
        let store = store.as_ref();
        assert_eq!(commit(store, "a", 0, 1).await.unwrap(), 1, "{name}");
        assert_eq!(commit(store, "a", 1, 2).await.unwrap(), 2, "{name}");
        for expected in [0, 1, 3] {
            let conflict = commit(store, "a", expected, 9).await.unwrap_err();
            let is_right = matches!(conflict, StoreError::Conflict { expected: e, actual }
                if (e.0, actual.0) == (expected, 2));
            assert!(is_right, "{name}: {conflict}");
        }
        let texts = || vec!["1".to_owned(), "2".to_owned()];
        assert_eq!(
            content(store, "a").await,
            (Some(2), texts(), texts()),
            "{name}: all or nothing"
        );
    }
}

#[tokio::test]
async fn events_can_be_read_in_parts() {
    for (name, store) in stores().stores {
        for number in 0..5 {
            commit(store.as_ref(), "a", number, number).await.unwrap();
        }
        let part = |skip, most| {
            let store = Arc::clone(&store);
            async move {
                let events = store.events(&key("a"), skip, most).await.unwrap();
                events.into_iter().map(|event| event.message).collect::<Vec<_>>()
            }
        };
        assert_eq!(part(1, 2).await, ["1", "2"], "{name}");
        assert_eq!(part(4, 10).await, ["4"], "{name}");
        assert!(part(5, 10).await.is_empty() && part(u64::MAX, 10).await.is_empty(), "{name}");
    }
}

#[tokio::test]
async fn sessions_are_listed_in_order_and_deleted_with_everything() {
    for (name, store) in stores().stores {
        let store = store.as_ref();
        for session in ["b", "a", "x/y/z"] {
            commit(store, session, 0, 1).await.unwrap();
        }
        let listed = store.list().await.unwrap();
        let keys: Vec<String> = listed.iter().map(|it| it.key.to_string()).collect();
        assert_eq!(keys, ["prowess/local/a", "prowess/local/b", "x/y/z"], "{name}");
        assert!(store.delete(&key("a")).await.unwrap(), "{name}");
        assert!(!store.delete(&key("a")).await.unwrap(), "{name}");
        assert_eq!(content(store, "a").await, (None, vec![], vec![]), "{name}");
        assert_eq!(content(store, "b").await.0, Some(1), "{name}");
        assert_eq!(commit(store, "a", 0, 7).await.unwrap(), 1, "{name}: begins anew");
        let texts = || vec!["7".to_owned()];
        assert_eq!(content(store, "a").await, (Some(7), texts(), texts()), "{name}");
    }
}

#[tokio::test]
async fn a_session_lives_so_long_after_its_last_commit() {
    let Stores { _folder, clock, stores } = stores();
    for (name, store) in stores {
        let store = store.as_ref();
        clock.store(1_000, Ordering::SeqCst);
        commit(store, "a", 0, 1).await.unwrap();
        clock.store(1_059, Ordering::SeqCst);
        commit(store, "a", 1, 2).await.unwrap();
        clock.store(1_118, Ordering::SeqCst);
        assert_eq!(content(store, "a").await.0, Some(2), "{name}: a second before the end");
        clock.store(1_119, Ordering::SeqCst);
        assert_eq!(content(store, "a").await, (None, vec![], vec![]), "{name}");
        assert!(store.list().await.unwrap().is_empty(), "{name}");
        assert!(commit(store, "a", 2, 3).await.is_err(), "{name}: it is gone");
        assert_eq!(commit(store, "a", 0, 3).await.unwrap(), 1, "{name}");
        let texts = || vec!["3".to_owned()];
        assert_eq!(content(store, "a").await, (Some(3), texts(), texts()), "{name}");
    }
}

/// Everybody adds one, as often as it takes: nothing is lost and nothing counts twice.
#[test]
fn many_who_commit_at_once_lose_nothing() {
    const THREADS: u64 = 6;
    const EACH: u64 = 15;
    for (name, store) in stores().stores {
        let start = Barrier::new(THREADS as usize);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                    start.wait();
                    runtime.block_on(async {
                        let mut left = EACH;
                        while left > 0 {
                            let stored = store.get(&key("a")).await.unwrap().unwrap_or_default();
                            let at = stored.revision.0;
                            match commit(store.as_ref(), "a", at, at + 1).await {
                                Ok(_) => left -= 1,
                                Err(StoreError::Conflict { .. }) => {}
                                Err(error) => panic!("{error}"),
                            }
                        }
                    });
                });
            }
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (number, messages, events) = runtime.block_on(content(store.as_ref(), "a"));
        let all: Vec<String> = (1..=THREADS * EACH).map(|number| number.to_string()).collect();
        assert_eq!((number, &messages, &events), (Some(THREADS * EACH), &all, &all), "{name}");
    }
}
