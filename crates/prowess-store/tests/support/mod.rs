//! What the tests of the stores share.

#![allow(dead_code)]

pub(crate) mod acts;
pub(crate) mod child;
pub(crate) mod place;
pub(crate) mod postgres_server;
#[path = "../redis_server/mod.rs"]
pub(crate) mod redis_server;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use prowess_runtime::{
    AgentName, Caps, Change, Event, EventKind, Lifetime, Message, Revision, SessionDelta,
    SessionKey, SessionStore, StoreError, StoredSession,
};
use serde_json::{Value, json};

/// Says that a test could not run here, and why. `./dev test` counts and prints it.
pub(crate) fn skip(test: &str, why: &str) {
    use std::io::Write;
    println!("SKIPPED {test}: {why}");
    if let Ok(log) = std::env::var("PROWESS_SKIP_LOG") {
        let mut log = std::fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        writeln!(log, "{test}: {why}").unwrap();
    }
}

/// A clock that stands still until it is told otherwise.
#[derive(Clone, Default)]
pub(crate) struct Clock(Arc<AtomicI64>);

impl Clock {
    pub(crate) fn pass(&self, time: Duration) {
        self.0.fetch_add(i64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }

    /// Sessions live so long by this clock.
    pub(crate) fn lifetime(&self, ttl: Duration) -> Lifetime {
        let clock = self.clone();
        Lifetime::of(ttl).with_clock(move || {
            jiff::Timestamp::from_millisecond(clock.0.load(Ordering::SeqCst)).unwrap()
        })
    }
}

pub(crate) fn key(text: &str) -> SessionKey {
    text.parse().unwrap()
}

pub(crate) fn agent(name: &str) -> AgentName {
    AgentName::new(name).unwrap()
}

pub(crate) fn main_agent() -> AgentName {
    AgentName::default()
}

/// What the state of an agent remembers for a skill.
pub(crate) fn remember(agent: &AgentName, skill: &str, value: impl Into<Value>) -> SessionDelta {
    let change = Change::SetContext { skill: skill.to_owned(), value: value.into() };
    SessionDelta::new(agent.clone(), Caps::default()).with_setup(vec![change])
}

pub(crate) fn event(agent: &AgentName, text: &str) -> Event {
    Event::new(EventKind::ToolCalled, agent, 0, text)
}

/// A commit whose text is in the state, in the transcript and in an event.
pub(crate) async fn say(
    store: &dyn SessionStore,
    key: &SessionKey,
    expected: u64,
    text: &str,
) -> Result<u64, StoreError> {
    say_as(store, key, &main_agent(), expected, text).await
}

/// The same, as this agent.
pub(crate) async fn say_as(
    store: &dyn SessionStore,
    key: &SessionKey,
    agent: &AgentName,
    expected: u64,
    text: &str,
) -> Result<u64, StoreError> {
    let delta = remember(agent, "said", text).with_messages(vec![Message::user(text)]);
    let events = vec![event(agent, text)];
    store.commit(key, Revision(expected), delta, events).await.map(|revision| revision.0)
}

/// Commits again and again until nobody was faster, each time from what is there.
pub(crate) async fn insist(
    store: &dyn SessionStore,
    key: &SessionKey,
    decide: impl Fn(&StoredSession) -> (SessionDelta, Vec<Event>),
) -> u64 {
    for _ in 0..10_000 {
        let stored = store.get(key).await.unwrap().unwrap_or_default();
        let (delta, events) = decide(&stored);
        // Others may be faster.
        tokio::task::yield_now().await;
        match store.commit(key, stored.revision, delta, events).await {
            Ok(revision) => return revision.0,
            Err(StoreError::Conflict { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("somebody else was always faster");
}

/// Adds one to a number in the state, and says so in the transcript and in an event.
pub(crate) async fn count_up(store: &dyn SessionStore, key: &SessionKey, text: &str) -> u64 {
    let agent = main_agent();
    insist(store, key, |stored| {
        let count = number(stored) + 1;
        let delta = remember(&agent, "count", count).with_messages(vec![Message::user(text)]);
        (delta, vec![event(&agent, text)])
    })
    .await
}

/// The number that [`count_up`] counts.
pub(crate) fn number(stored: &StoredSession) -> u64 {
    let state = stored.session.state(&main_agent());
    state.context.get("count").and_then(Value::as_u64).unwrap_or_default()
}

/// What an agent's state remembers of what was said.
pub(crate) async fn said(store: &dyn SessionStore, key: &SessionKey, agent: &AgentName) -> Value {
    let stored = store.get(key).await.unwrap().unwrap_or_default();
    stored.session.state(agent).context.get("said").cloned().unwrap_or(json!(null))
}

/// The texts of an agent's transcript.
pub(crate) async fn transcript(
    store: &dyn SessionStore,
    key: &SessionKey,
    agent: &AgentName,
) -> Vec<String> {
    store.messages(key, agent).await.unwrap().iter().map(Message::text).collect()
}

/// The texts of a page of events.
pub(crate) async fn page(
    store: &dyn SessionStore,
    key: &SessionKey,
    skip: u64,
    most: usize,
) -> Vec<String> {
    let events = store.events(key, skip, most).await.unwrap();
    events.into_iter().map(|event| event.message).collect()
}

/// The texts of all events.
pub(crate) async fn events(store: &dyn SessionStore, key: &SessionKey) -> Vec<String> {
    page(store, key, 0, usize::MAX).await
}

/// The keys of all sessions, as the store lists them.
pub(crate) async fn keys(store: &dyn SessionStore) -> Vec<String> {
    store.list().await.unwrap().iter().map(|summary| summary.key.to_string()).collect()
}

/// All that can be seen of a session: its state, the transcript of its main agent, its events.
pub(crate) async fn see(
    store: &dyn SessionStore,
    key: &SessionKey,
) -> (Option<StoredSession>, Vec<Message>, Vec<Event>) {
    (
        store.get(key).await.unwrap(),
        store.messages(key, &main_agent()).await.unwrap(),
        store.events(key, 0, usize::MAX).await.unwrap(),
    )
}

/// That nothing can be seen of a session.
pub(crate) async fn assert_absent(store: &dyn SessionStore, key: &SessionKey) {
    assert_eq!(see(store, key).await, (None, Vec::new(), Vec::new()), "{key}");
    assert!(!keys(store).await.contains(&key.to_string()), "{key}");
}
