//! What every store of sessions promises, on each of them.

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use prowess_runtime::{
    Caps, Lifetime, MemorySessions, Message, Revision, SessionDelta, SessionKey, StoreError,
    ToolCall,
};
use serde_json::{Value, json};
use support::acts::{Act, SESSIONS, act, observe, perform};
use support::place::{self, Place, on_each_store};
use support::{
    Clock, agent, assert_absent, count_up, event, events, key, keys, main_agent, number, page,
    remember, said, say, say_as, see, transcript,
};

on_each_store! {
    what_was_never_committed_is_not_there
    revisions_begin_at_one_and_have_no_gaps
    a_conflict_names_the_revision_and_changes_nothing
    state_messages_and_events_are_committed_together
    a_commit_may_change_nothing
    messages_are_kept_per_agent_in_order
    events_are_given_in_pages
    agents_of_a_session_have_states_of_their_own
    similar_names_are_different_sessions
    the_list_is_complete_and_in_the_order_of_keys
    deleting_removes_everything
    of_two_deletions_one_finds_the_session
    unusual_names_are_names
    unusual_texts_come_back_as_they_were
    what_is_nested_deeply_comes_back_or_is_refused
    a_session_lives_until_its_time_is_over
    a_commit_renews_a_session
    an_expired_session_begins_again
    an_expired_session_cannot_be_deleted
    a_lifetime_beyond_all_time_is_for_ever
    many_tasks_commit_to_one_session_and_nothing_is_lost
    many_sessions_do_not_disturb_each_other
}

const HOUR: Duration = Duration::from_secs(3600);
const TICK: Duration = Duration::from_millis(1);

async fn what_was_never_committed_is_not_there(place: Place) {
    let store = place.sessions(Lifetime::default()).await;
    assert_absent(&*store, &key("a")).await;
    assert!(!store.delete(&key("a")).await.unwrap());
    assert_eq!(keys(&*store).await, [""; 0]);
}

async fn revisions_begin_at_one_and_have_no_gaps(place: Place) {
    let store = place.sessions(Lifetime::default()).await;
    let key = key("a");
    for revision in 0..20 {
        assert_eq!(say(&*store, &key, revision, "x").await.unwrap(), revision + 1);
        let stored = store.get(&key).await.unwrap().unwrap();
        assert_eq!(stored.revision, Revision(revision + 1));
    }
}

async fn a_conflict_names_the_revision_and_changes_nothing(place: Place) {
    let store = place.sessions(Lifetime::default()).await;
    let key = key("a");
    for wrong in [1, 2, u64::MAX] {
        let error = say(&*store, &key, wrong, "too early").await.unwrap_err();
        assert_conflict(&error, wrong, 0);
        assert_absent(&*store, &key).await;
    }
    for revision in 0..3 {
        say(&*store, &key, revision, "kept").await.unwrap();
    }
    let before = see(&*store, &key).await;
    let listed = store.list().await.unwrap();
    for wrong in [0, 1, 2, 4, i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX] {
        let error = say(&*store, &key, wrong, "lost").await.unwrap_err();
        assert_conflict(&error, wrong, 3);
        assert_eq!(see(&*store, &key).await, before, "{wrong}");
        assert_eq!(store.list().await.unwrap(), listed, "{wrong}");
    }
    assert_eq!(say(&*store, &key, 3, "kept").await.unwrap(), 4);
}

fn assert_conflict(error: &StoreError, expected: u64, actual: u64) {
    let conflict = StoreError::Conflict { expected: Revision(expected), actual: Revision(actual) };
    assert_eq!(format!("{error:?}"), format!("{conflict:?}"));
    assert_eq!(error.code(), "conflict");
}

async fn state_messages_and_events_are_committed_together(place: Place) {
    let store = place.sessions(Lifetime::default()).await;
    let key = key("a");
    let agent = main_agent();
    let messages = vec![Message::user("question"), Message::assistant("answer")];
    let happened = vec![event(&agent, "one"), event(&agent, "two").with_skill("pdf")];
    let delta = remember(&agent, "said", "question").with_messages(messages.clone());
    store.commit(&key, Revision(0), delta, happened.clone()).await.unwrap();

    let (stored, transcript, events) = see(&*store, &key).await;
    assert_eq!(stored.unwrap().revision, Revision(1));
    assert_eq!(said(&*store, &key, &agent).await, "question");
    assert_eq!((transcript, events), (messages, happened));
}

async fn a_commit_may_change_nothing(place: Place) {
    let store = place.sessions(Lifetime::default()).await;
    let key = key("a");
    for revision in 0..2 {
        let committed =
            store.commit(&key, Revision(revision), SessionDelta::default(), Vec::new()).await;
        assert_eq!(committed.unwrap(), Revision(revision + 1));
    }
    let (stored, messages, events) = see(&*store, &key).await;
    assert!(stored.unwrap().session.agents.is_empty());
    assert_eq!((messages.len(), events.len()), (0, 0));
    assert_eq!(keys(&*store).await, ["prowess/local/a"]);
}

async fn messages_are_kept_per_agent_in_order(place: Place) {
    let store = place.sessions(Lifetime::default()).await;
    let key = key("a");
    let (main, helper) = (main_agent(), agent("helper"));
    for (at, agent) in [&main, &helper, &main, &main, &helper].into_iter().enumerate() {
        let messages = ["x", "y"].map(|part| Message::user(format!("{at}{part}"))).to_vec();
        let delta = SessionDelta::new(agent.clone(), Caps::default()).with_messages(messages);
        store.commit(&key, Revision(at as u64), delta, Vec::new()).await.unwrap();
    }
    let of_main = ["0x", "0y", "2x", "2y", "3x", "3y"];
    assert_eq!(transcript(&*store, &key, &main).await, of_main);
    assert_eq!(transcript(&*store, &key, &helper).await, ["1x", "1y", "4x", "4y"]);
    assert_eq!(transcript(&*store, &key, &agent("nobody")).await, [""; 0]);
}

async fn events_are_given_in_pages(place: Place) {
    let store = place.sessions(Lifetime::default()).await;
    let key = key("a");
    let agent = main_agent();
    for (revision, texts) in [&["0", "1"][..], &[], &["2", "3", "4"]].into_iter().enumerate() {
        let happened = texts.iter().map(|text| event(&agent, text)).collect();
        let delta = remember(&agent, "said", "x");
        store.commit(&key, Revision(revision as u64), delta, happened).await.unwrap();
    }
    let all: &[&str] = &["0", "1", "2", "3", "4"];
    for (skip, most, expected) in [
        (0, 0, &all[..0]),
        (0, 1, &all[..1]),
        (0, 5, all),
        (0, 6, all),
        (0, usize::MAX, all),
        (1, 3, &all[1..4]),
        (4, 1, &all[4..]),
        (4, usize::MAX, &all[4..]),
        (5, 1, &[]),
        (6, usize::MAX, &[]),
        (i64::MAX as u64, 1, &[]),
        (u64::MAX, 0, &[]),
        (u64::MAX, usize::MAX, &[]),
    ] {
        assert_eq!(page(&*store, &key, skip, most).await, expected, "{skip} {most}");
    }
}

async fn agents_of_a_session_have_states_of_their_own(place: Place) {
    let store = place.sessions(Lifetime::default()).await;
    let key = key("a");
    let names = ["main", "Main", "main ", "maın", "m%"];
    for (revision, name) in names.into_iter().enumerate() {
        say_as(&*store, &key, &agent(name), revision as u64, name).await.unwrap();
    }
    for name in names {
        assert_eq!(said(&*store, &key, &agent(name)).await, name);
        assert_eq!(transcript(&*store, &key, &agent(name)).await, [name]);
    }
    // Events belong to the session.
    assert_eq!(events(&*store, &key).await, names);
    assert_eq!(said(&*store, &key, &agent("nobody")).await, Value::Null);
}

async fn similar_names_are_different_sessions(place: Place) {
    let store = place.sessions(Lifetime::default()).await;
    let names = [
        "a/b/c",
        "a/b/C",
        "a/B/c",
        "A/b/c",
        "a/c/b",
        "c/b/a",
        "ab/b/c",
        "a/bb/c",
        "a/b/cc",
        "a/b/c ",
        " a/b/c",
        "a/b/_",
        "a/b/%",
        "a/%/c",
        "%/b/c",
        "a/b/é",
        "a/b/e\u{301}",
    ];
    for name in names {
        assert_eq!(say(&*store, &key(name), 0, name).await.unwrap(), 1, "{name}");
    }
    for name in names {
        let key = key(name);
        assert_eq!(said(&*store, &key, &main_agent()).await, name);
        assert_eq!(transcript(&*store, &key, &main_agent()).await, [name]);
        assert_eq!(events(&*store, &key).await, [name]);
    }
    // Each goes alone.
    for (at, name) in names.into_iter().enumerate() {
        assert!(store.delete(&key(name)).await.unwrap(), "{name}");
        assert_absent(&*store, &key(name)).await;
        for other in &names[at + 1..] {
            assert_eq!(transcript(&*store, &key(other), &main_agent()).await, [*other], "{name}");
        }
    }
}

async fn the_list_is_complete_and_in_the_order_of_keys(place: Place) {
    let clock = Clock::default();
    let store = place.sessions(clock.lifetime(HOUR)).await;
    let mut expected = BTreeSet::new();
    // Neither in this order nor in its reverse; `b!` comes before `b/`, and belongs behind it.
    for app in ["b", "a", "b!", "ä", "B"] {
        for user in ["2", "10", "1"] {
            for session in ["y", "x", "😀", "x y"] {
                let key = SessionKey::new(app, user, session).unwrap();
                say(&*store, &key, 0, "x").await.unwrap();
                expected.insert(key);
            }
        }
    }
    clock.pass(TICK);
    let renewed = key("a/1/x");
    say(&*store, &renewed, 1, "x").await.unwrap();

    let list = store.list().await.unwrap();
    let keys: Vec<&SessionKey> = list.iter().map(|summary| &summary.key).collect();
    assert_eq!(keys, expected.iter().collect::<Vec<_>>());
    let at = |millis| jiff::Timestamp::from_millisecond(millis).unwrap();
    for summary in &list {
        let (revision, updated) = if summary.key == renewed { (2, 1) } else { (1, 0) };
        assert_eq!(summary.revision, Revision(revision));
        assert_eq!((summary.created, summary.updated), (at(0), at(updated)));
        assert_eq!(summary.expires, Some(at(updated + 3_600_000)));
    }
}

async fn deleting_removes_everything(place: Place) {
    let store = place.sessions(Lifetime::default()).await;
    let (key, other) = (key("a"), key("b"));
    let helper = agent("helper");
    for revision in 0..3 {
        say(&*store, &key, revision, "old").await.unwrap();
        say(&*store, &other, revision, "other").await.unwrap();
    }
    say_as(&*store, &key, &helper, 3, "old").await.unwrap();
    let untouched = see(&*store, &other).await;
    assert!(store.delete(&key).await.unwrap());
    assert!(!store.delete(&key).await.unwrap());
    assert_absent(&*store, &key).await;

    assert_conflict(&say(&*store, &key, 4, "x").await.unwrap_err(), 4, 0);
    assert_eq!(say(&*store, &key, 0, "new").await.unwrap(), 1);
    assert_eq!(transcript(&*store, &key, &main_agent()).await, ["new"]);
    assert_eq!(transcript(&*store, &key, &helper).await, [""; 0]);
    assert_eq!(said(&*store, &key, &helper).await, Value::Null);
    assert_eq!(events(&*store, &key).await, ["new"]);
    assert_eq!(see(&*store, &other).await, untouched);
}

async fn of_two_deletions_one_finds_the_session(place: Place) {
    let store = place.sessions(Lifetime::default()).await;
    let key = key("a");
    for round in 0..100 {
        say(&*store, &key, 0, "x").await.unwrap();
        let arrived = Arc::new(AtomicUsize::new(0));
        let threads: [_; 2] = std::array::from_fn(|_| {
            let (store, key, arrived) = (Arc::clone(&store), key.clone(), Arc::clone(&arrived));
            tokio::task::spawn_blocking(move || {
                arrived.fetch_add(1, Ordering::SeqCst);
                while arrived.load(Ordering::SeqCst) < 2 {
                    std::hint::spin_loop();
                }
                tokio::runtime::Handle::current().block_on(store.delete(&key)).unwrap()
            })
        });
        let mut found = 0;
        for thread in threads {
            found += u32::from(thread.await.unwrap());
        }
        assert_eq!(found, 1, "round {round}");
    }
}

async fn unusual_names_are_names(place: Place) {
    let store = place.sessions(Lifetime::default()).await;
    let long = "n".repeat(SessionKey::MAX_NAME_BYTES);
    let long_and_wide = "ß".repeat(SessionKey::MAX_NAME_BYTES / 2);
    let names = [
        "漢字",
        "😀👩‍👩‍👧",
        "it's",
        "\"quoted\"",
        "'; DROP TABLE sessions; --",
        "%",
        "_",
        "?1",
        "\\",
        "a b",
        " a ",
        ".",
        "..",
        "NULL",
        "0",
        "-1",
        "1e3",
        "\u{feff}",
        "\u{202e}abc",
        &long,
        &long_and_wide,
    ];
    for name in names {
        let key = SessionKey::new(name, name, name).unwrap();
        let agent = agent(name);
        say_as(&*store, &key, &agent, 0, name).await.unwrap();
        assert_eq!(say_as(&*store, &key, &agent, 1, name).await.unwrap(), 2, "{name}");
    }
    let list = store.list().await.unwrap();
    assert_eq!(list.len(), names.len());
    for name in names {
        let key = SessionKey::new(name, name, name).unwrap();
        assert!(list.iter().any(|summary| summary.key == key), "{name}");
        assert_eq!(said(&*store, &key, &agent(name)).await, name);
        assert_eq!(transcript(&*store, &key, &agent(name)).await, [name; 2]);
        assert_eq!(events(&*store, &key).await, [name; 2]);
        assert!(store.delete(&key).await.unwrap(), "{name}");
        assert_absent(&*store, &key).await;
    }
}

async fn unusual_texts_come_back_as_they_were(place: Place) {
    let store = place.sessions(Lifetime::default()).await;
    let key = key("a");
    let agent = main_agent();
    let long = "x".repeat(1 << 20);
    let brackets = "\\\"[{".repeat(500);
    let texts =
        ["", "\0", "a\0b", "\r\n\t\u{7f}", "\u{2028}", "\"\\", "'", "\u{10ffff}", &long, &brackets];
    for (revision, text) in texts.into_iter().enumerate() {
        say(&*store, &key, revision as u64, text).await.unwrap();
        assert_eq!(said(&*store, &key, &agent).await, text);
    }
    assert_eq!(transcript(&*store, &key, &agent).await, texts);
    assert_eq!(events(&*store, &key).await, texts);

    let numbers = json!([0, -0.0, 0.1, 1e300, 5e-324, u64::MAX, i64::MIN, 1.0, [], {}, null, true]);
    let wide = json!(vec![json!([{}]); 300]);
    let call = ToolCall::new("1", "tool", json!({"b": numbers, "a": {"": numbers}, "c": wide}));
    let messages = vec![Message::calling([call])];
    let delta = remember(&agent, "numbers", numbers.clone()).with_messages(messages.clone());
    store.commit(&key, Revision(texts.len() as u64), delta, Vec::new()).await.unwrap();
    let (stored, transcript, _) = see(&*store, &key).await;
    assert_eq!(stored.unwrap().session.state(&agent).context["numbers"], numbers);
    assert_eq!(transcript[texts.len()..], messages);
}

/// A session that was acknowledged and cannot be read any more would be lost.
async fn what_is_nested_deeply_comes_back_or_is_refused(place: Place) {
    let store = place.sessions(Lifetime::default()).await;
    let key = key("a");
    let agent = main_agent();
    let mut revision = 0;
    for depth in [1, 100].into_iter().chain(115..=135).chain([1_000]) {
        let value = (0..depth).fold(json!("deep"), |value, _| json!([value]));
        let call = ToolCall::new("1", "tool", value.clone());
        for delta in [
            remember(&agent, "said", value.clone()),
            remember(&agent, "said", "x").with_messages(vec![Message::calling([call])]),
        ] {
            let before = see(&*store, &key).await;
            match store.commit(&key, Revision(revision), delta, Vec::new()).await {
                Ok(Revision(next)) => {
                    revision = next;
                    assert_eq!(see(&*store, &key).await.0.unwrap().revision, Revision(next));
                }
                Err(error) => {
                    assert!(depth > 123, "{depth} {error}");
                    assert_eq!(error.code(), "session_unstorable");
                    assert_eq!(see(&*store, &key).await, before, "{depth}");
                }
            }
        }
    }
    assert!(say(&*store, &key, revision, "still there").await.is_ok());
}

async fn a_session_lives_until_its_time_is_over(place: Place) {
    let clock = Clock::default();
    let store = place.sessions(clock.lifetime(HOUR)).await;
    // Each is looked at in one way only: a store may forget what it finds expired.
    let names = ["get", "messages", "events", "list"];
    for name in names {
        say(&*store, &key(name), 0, name).await.unwrap();
    }
    clock.pass(TICK);
    let young = key("young");
    say(&*store, &young, 0, "young").await.unwrap();
    clock.pass(HOUR - TICK - TICK);
    assert_eq!(keys(&*store).await.len(), 5);
    for name in names {
        let (stored, messages, events) = see(&*store, &key(name)).await;
        assert_eq!((stored.unwrap().revision, messages.len(), events.len()), (Revision(1), 1, 1));
    }
    // To the tick.
    clock.pass(TICK);
    assert_eq!(store.get(&key("get")).await.unwrap(), None);
    assert_eq!(transcript(&*store, &key("messages"), &main_agent()).await, [""; 0]);
    assert_eq!(events(&*store, &key("events")).await, [""; 0]);
    assert_eq!(keys(&*store).await, ["prowess/local/young"]);
    for name in names {
        assert_absent(&*store, &key(name)).await;
    }
    assert_eq!(events(&*store, &young).await, ["young"]);
    clock.pass(TICK);
    assert_absent(&*store, &young).await;
}

async fn a_commit_renews_a_session(place: Place) {
    let clock = Clock::default();
    let store = place.sessions(clock.lifetime(HOUR)).await;
    let key = key("a");
    for revision in 0..5 {
        assert_eq!(say(&*store, &key, revision, "x").await.unwrap(), revision + 1);
        clock.pass(HOUR - TICK);
        // Looking does not renew, and neither does a commit that fails.
        see(&*store, &key).await;
        say(&*store, &key, revision, "x").await.unwrap_err();
    }
    assert_eq!(events(&*store, &key).await.len(), 5);
    clock.pass(TICK);
    assert_absent(&*store, &key).await;
}

async fn an_expired_session_begins_again(place: Place) {
    let clock = Clock::default();
    let store = place.sessions(clock.lifetime(HOUR)).await;
    let key = key("a");
    let helper = agent("helper");
    say(&*store, &key, 0, "old").await.unwrap();
    say_as(&*store, &key, &helper, 1, "old").await.unwrap();
    clock.pass(HOUR);
    assert_conflict(&say(&*store, &key, 2, "x").await.unwrap_err(), 2, 0);
    assert_absent(&*store, &key).await;
    assert_eq!(say(&*store, &key, 0, "new").await.unwrap(), 1);
    assert_eq!(said(&*store, &key, &main_agent()).await, "new");
    assert_eq!(said(&*store, &key, &helper).await, Value::Null);
    assert_eq!(transcript(&*store, &key, &main_agent()).await, ["new"]);
    assert_eq!(transcript(&*store, &key, &helper).await, [""; 0]);
    assert_eq!(events(&*store, &key).await, ["new"]);
    let created = store.list().await.unwrap()[0].created;
    assert_eq!(created.as_millisecond(), 3_600_000);
}

async fn an_expired_session_cannot_be_deleted(place: Place) {
    let clock = Clock::default();
    let store = place.sessions(clock.lifetime(HOUR)).await;
    let key = key("a");
    say(&*store, &key, 0, "x").await.unwrap();
    clock.pass(HOUR);
    assert!(!store.delete(&key).await.unwrap());
    assert_absent(&*store, &key).await;
}

async fn a_lifetime_beyond_all_time_is_for_ever(place: Place) {
    let store = place.sessions(Lifetime::of(Duration::MAX)).await;
    let key = key("a");
    say(&*store, &key, 0, "x").await.unwrap();
    assert_eq!(events(&*store, &key).await, ["x"]);
    assert_eq!(keys(&*store).await.len(), 1);
}

async fn many_tasks_commit_to_one_session_and_nothing_is_lost(place: Place) {
    const TASKS: u64 = 64;
    const COMMITS: u64 = 20;
    let store = place.sessions(Lifetime::default()).await;
    let key = key("a");
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let (store, key) = (Arc::clone(&store), key.clone());
            tokio::spawn(async move {
                let mut last = 0;
                for at in 0..COMMITS {
                    let revision = count_up(&*store, &key, &format!("{task} {at}")).await;
                    assert!(revision > last);
                    last = revision;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let stored = store.get(&key).await.unwrap().unwrap();
    assert_eq!((stored.revision.0, number(&stored)), (TASKS * COMMITS, TASKS * COMMITS));
    let events = events(&*store, &key).await;
    assert_eq!(events.len() as u64, TASKS * COMMITS);
    // Each once, those of a task in its order, and the transcript tells the same story.
    for task in 0..TASKS {
        let prefix = format!("{task} ");
        let of_task = events.iter().filter_map(|text| text.strip_prefix(&prefix));
        assert!(of_task.eq((0..COMMITS).map(|at| at.to_string())), "{task}");
    }
    assert_eq!(transcript(&*store, &key, &main_agent()).await, events);
}

async fn many_sessions_do_not_disturb_each_other(place: Place) {
    const SESSIONS: usize = 64;
    const COMMITS: u64 = 20;
    let store = place.sessions(Lifetime::default()).await;
    let tasks: Vec<_> = (0..SESSIONS)
        .map(|at| {
            let (store, key) = (Arc::clone(&store), key(&format!("session {at:02}")));
            tokio::spawn(async move {
                // Without trying again: nobody else commits to this session.
                for revision in 0..COMMITS {
                    let text = format!("{key} {revision}");
                    assert_eq!(say(&*store, &key, revision, &text).await.unwrap(), revision + 1);
                }
                let expected: Vec<String> =
                    (0..COMMITS).map(|revision| format!("{key} {revision}")).collect();
                assert_eq!(events(&*store, &key).await, expected);
                assert_eq!(transcript(&*store, &key, &main_agent()).await, expected);
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let list = store.list().await.unwrap();
    assert_eq!(list.len(), SESSIONS);
    assert!(list.iter().all(|summary| summary.revision == Revision(COMMITS)));
}

/// Random lives of a few sessions, in memory and in another store.
fn say_the_same_as_memory(store: &str, lives: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let clock = Clock::default();
    let lifetime = || clock.lifetime(Duration::from_millis(400));
    let opened = runtime.block_on(async {
        let place = match store {
            "postgres" => place::postgres("postgres_says_the_same_as_memory").await?,
            "redis" => place::redis("redis_says_the_same_as_memory").await?,
            _ => place::sqlite("sqlite_says_the_same_as_memory").await?,
        };
        Some((place.sessions(lifetime()).await, place))
    });
    let Some((store, _place)) = opened else { return };
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(cases.unwrap_or(lives))
    };
    let acts = prop::collection::vec(act(), 1..30);
    let outcome = TestRunner::new(config).run(&acts, |acts| {
        // Each life begins with nothing: a new store here, an emptied one there.
        let memory = MemorySessions::new().with_lifetime(lifetime());
        runtime.block_on(async {
            for name in SESSIONS {
                store.delete(&key(name)).await.unwrap();
            }
            for act in &acts {
                if let Act::Wait { millis } = act {
                    clock.pass(Duration::from_millis(*millis));
                }
                prop_assert_eq!(perform(&memory, act).await, perform(&*store, act).await);
            }
            prop_assert_eq!(observe(&memory).await, observe(&*store).await);
            Ok(())
        })
    });
    outcome.unwrap();
}

#[test]
fn sqlite_says_the_same_as_memory() {
    say_the_same_as_memory("sqlite", 256);
}

#[test]
fn postgres_says_the_same_as_memory() {
    say_the_same_as_memory("postgres", 64);
}

#[test]
fn redis_says_the_same_as_memory() {
    say_the_same_as_memory("redis", 64);
}
