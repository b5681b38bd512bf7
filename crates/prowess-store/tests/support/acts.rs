//! Random lives of a few sessions, and what stores say to them.

use proptest::prelude::*;
use prowess_format::Digest;
use prowess_runtime::{
    Change, Event, LoadedSkill, Message, Reset, Revision, SessionDelta, SessionStore,
    SessionSummary, StateDelta, StoreError, StoredSession, ToolCall,
};
use serde_json::Value;

use super::{agent, event, key};

/// A step of a random life of a few sessions.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Commit { session: usize, expected: Expected, delta: Box<SessionDelta>, events: Vec<Event> },
    Delete { session: usize },
    Wait { millis: u64 },
    Page { session: usize, skip: u64, most: usize },
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Expected {
    Actual,
    Other(u64),
}

pub(crate) const SESSIONS: [&str; 4] = ["a/b/c", "a/b/cc", "a/bb/c", "z/b/c"];
const AGENTS: [&str; 2] = ["main", "helper"];

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..4)
                .prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn change() -> impl Strategy<Value = Change> {
    let skill = || prop::sample::select(vec!["pdf", "xlsx", "sql"]).prop_map(str::to_owned);
    prop_oneof![
        (skill(), value()).prop_map(|(skill, value)| Change::SetContext { skill, value }),
        (skill(), any::<u8>(), prop::option::of(any::<String>())).prop_map(
            |(skill, text, model)| {
                let skill = Box::new(LoadedSkill::new(skill, Digest::of(&[text])));
                Change::Load { skill, model }
            }
        ),
        skill().prop_map(|skill| Change::Unload { skill }),
        skill().prop_map(|skill| Change::Touch { skill }),
        prop::sample::select(vec![Reset::Keep, Reset::Clear])
            .prop_map(|reset| Change::BeginTurn { reset }),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        any::<String>().prop_map(Message::user),
        (any::<String>(), value())
            .prop_map(|(id, arguments)| Message::calling([ToolCall::new(id, "tool", arguments)])),
    ]
}

pub(crate) fn act() -> impl Strategy<Value = Act> {
    let expected = prop_oneof![
        6 => Just(Expected::Actual),
        1 => (0_u64..6).prop_map(Expected::Other),
        1 => any::<u64>().prop_map(Expected::Other),
    ];
    let delta = (
        prop::collection::vec(change(), 0..3),
        // Some calls come twice.
        prop::collection::vec((0_usize..4, "[a-h]", prop::collection::vec(change(), 0..3)), 0..3),
        prop::collection::vec(message(), 0..4),
    );
    let delta = delta.prop_map(|(setup, calls, messages)| {
        let deltas = calls.into_iter().map(|(at, id, changes)| StateDelta::new(at, id, changes));
        let delta = SessionDelta::default().with_setup(setup).with_messages(messages);
        delta.with_deltas(deltas.collect())
    });
    let session = 0..SESSIONS.len();
    let commit = (session.clone(), 0..AGENTS.len(), expected, delta, 0_usize..4);
    prop_oneof![
        8 => commit.prop_map(|(session, name, expected, mut delta, events)| {
            delta.agent = agent(AGENTS[name]);
            let events = (0..events).map(|at| event(&delta.agent, &at.to_string())).collect();
            Act::Commit { session, expected, delta: Box::new(delta), events }
        }),
        1 => session.clone().prop_map(|session| Act::Delete { session }),
        1 => (0_u64..150).prop_map(|millis| Act::Wait { millis }),
        2 => (session, 0_u64..12, 0_usize..12)
            .prop_map(|(session, skip, most)| Act::Page { session, skip, most }),
    ]
}

/// An answer of a store; its errors by their texts.
pub(crate) type Answer<T> = Result<T, String>;

fn answer<T>(result: Result<T, StoreError>) -> Answer<T> {
    result.map_err(|error| format!("{} {error}", error.code()))
}

/// What a store says to an act.
#[derive(Debug, PartialEq)]
pub(crate) enum Said {
    Nothing,
    Committed(Answer<Revision>),
    Deleted(Answer<bool>),
    Page(Answer<Vec<Event>>),
}

/// Does something on a store.
pub(crate) async fn perform(store: &dyn SessionStore, act: &Act) -> Said {
    match act {
        Act::Wait { .. } => Said::Nothing,
        Act::Commit { session, expected, delta, events } => {
            let key = key(SESSIONS[*session]);
            let expected = match expected {
                Expected::Actual => store.get(&key).await.unwrap().unwrap_or_default().revision,
                Expected::Other(revision) => Revision(*revision),
            };
            let committed =
                store.commit(&key, expected, SessionDelta::clone(delta), events.clone()).await;
            Said::Committed(answer(committed))
        }
        Act::Delete { session } => {
            Said::Deleted(answer(store.delete(&key(SESSIONS[*session])).await))
        }
        Act::Page { session, skip, most } => {
            Said::Page(answer(store.events(&key(SESSIONS[*session]), *skip, *most).await))
        }
    }
}

/// What a store says of a session.
#[derive(Debug, PartialEq)]
pub(crate) struct Seen {
    stored: Answer<Option<StoredSession>>,
    events: Answer<Vec<Event>>,
    messages: Vec<Answer<Vec<Message>>>,
}

/// What a store says of everything that it holds.
pub(crate) async fn observe(store: &dyn SessionStore) -> (Answer<Vec<SessionSummary>>, Vec<Seen>) {
    let list = answer(store.list().await);
    let mut seen = Vec::new();
    for name in SESSIONS {
        let key = key(name);
        let mut messages = Vec::new();
        for name in AGENTS {
            messages.push(answer(store.messages(&key, &agent(name)).await));
        }
        let stored = answer(store.get(&key).await);
        let events = answer(store.events(&key, 0, usize::MAX).await);
        seen.push(Seen { stored, events, messages });
    }
    (list, seen)
}
