//! What is asked of the database, on its own thread.

use jiff::Timestamp;
use prowess_runtime::{
    AgentName, Event, Message, Revision, Session, SessionDelta, SessionKey, SessionSummary,
    StoreError, StoredSession,
};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::leases;
use super::usage::count_events;
use crate::stored::{read, write};
use crate::unavailable::Unavailable;

pub(super) type Result<T> = std::result::Result<T, StoreError>;

pub(super) trait OrUnavailable<T> {
    fn or_unavailable(self) -> Result<T>;
}

impl<T> OrUnavailable<T> for rusqlite::Result<T> {
    fn or_unavailable(self) -> Result<T> {
        self.map_err(|error| Unavailable::from(error).into())
    }
}

pub(super) fn millis(time: Timestamp) -> i64 {
    time.as_millisecond()
}

/// A session's row.
struct Found {
    id: i64,
    revision: u64,
    state: String,
}

fn find(connection: &Connection, key: &SessionKey, now: Timestamp) -> Result<Option<Found>> {
    let mut statement = connection
        .prepare_cached(
            "SELECT id, revision, state FROM sessions
             WHERE app = ?1 AND user = ?2 AND session = ?3 AND (expires IS NULL OR expires > ?4)",
        )
        .or_unavailable()?;
    let found =
        |row: &Row<'_>| Ok(Found { id: row.get(0)?, revision: row.get(1)?, state: row.get(2)? });
    statement
        .query_row(params![key.app(), key.user(), key.session(), millis(now)], found)
        .optional()
        .or_unavailable()
}

pub(super) fn get(
    connection: &Connection,
    key: &SessionKey,
    now: Timestamp,
) -> Result<Option<StoredSession>> {
    let Some(found) = find(connection, key, now)? else { return Ok(None) };
    let session: Session = read(key, &found.state)?;
    Ok(Some(StoredSession::new(Revision(found.revision), session)))
}

/// Changes a session inside a transaction that somebody else commits.
pub(super) fn commit(
    connection: &Connection,
    key: &SessionKey,
    expected: Revision,
    delta: &SessionDelta,
    events: &[Event],
    now: Timestamp,
    expires: Option<Timestamp>,
) -> Result<Revision> {
    leases::check(connection, key, delta.fence, now)?;
    let found = find(connection, key, now)?;
    let actual = Revision(found.as_ref().map_or(0, |found| found.revision));
    if actual != expected {
        return Err(StoreError::Conflict { expected, actual });
    }
    let mut session: Session = match &found {
        Some(found) => read(key, &found.state)?,
        None => Session::default(),
    };
    session.apply(delta);
    let state = write(key, &session)?;
    let revision = Revision(expected.0 + 1);
    let id = match found {
        Some(found) => {
            let mut statement = connection
                .prepare_cached(
                    "UPDATE sessions SET revision = ?2, state = ?3, updated = ?4, expires = ?5
                     WHERE id = ?1",
                )
                .or_unavailable()?;
            statement
                .execute(params![found.id, revision.0, state, millis(now), expires.map(millis)])
                .or_unavailable()?;
            found.id
        }
        None => {
            delete(connection, key)?;
            let mut statement = connection
                .prepare_cached(
                    "INSERT INTO sessions (app, user, session, revision, state, created, updated, expires)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7)",
                )
                .or_unavailable()?;
            let values = params![
                key.app(),
                key.user(),
                key.session(),
                revision.0,
                state,
                millis(now),
                expires.map(millis)
            ];
            statement.insert(values).or_unavailable()?
        }
    };
    append_messages(connection, key, id, delta)?;
    append_events(connection, key, id, revision, events)?;
    count_events(connection, key, events).or_unavailable()?;
    Ok(revision)
}

fn append_messages(
    connection: &Connection,
    key: &SessionKey,
    id: i64,
    delta: &SessionDelta,
) -> Result<()> {
    let mut statement = connection
        .prepare_cached(
            "INSERT INTO messages (session_id, agent, place, message)
             SELECT ?1, ?2, coalesce(max(place), 0) + 1, ?3 FROM messages
             WHERE session_id = ?1 AND agent = ?2",
        )
        .or_unavailable()?;
    for message in &delta.messages {
        let text = write(key, message)?;
        statement.execute(params![id, delta.agent.as_str(), text]).or_unavailable()?;
    }
    Ok(())
}

fn append_events(
    connection: &Connection,
    key: &SessionKey,
    id: i64,
    revision: Revision,
    events: &[Event],
) -> Result<()> {
    let mut statement = connection
        .prepare_cached(
            "INSERT INTO events (session_id, place, revision, event)
             SELECT ?1, coalesce(max(place), 0) + 1, ?2, ?3 FROM events WHERE session_id = ?1",
        )
        .or_unavailable()?;
    for event in events {
        let text = write(key, event)?;
        statement.execute(params![id, revision.0, text]).or_unavailable()?;
    }
    Ok(())
}

pub(super) fn messages(
    connection: &Connection,
    key: &SessionKey,
    agent: &AgentName,
    now: Timestamp,
) -> Result<Vec<Message>> {
    // One statement, one point in time: between two, another process may give the id away.
    let mut statement = connection
        .prepare_cached(
            "SELECT message FROM sessions JOIN messages ON session_id = id
             WHERE app = ?1 AND user = ?2 AND session = ?3 AND (expires IS NULL OR expires > ?4)
             AND agent = ?5 ORDER BY place",
        )
        .or_unavailable()?;
    let rows = statement
        .query_map(
            params![key.app(), key.user(), key.session(), millis(now), agent.as_str()],
            |row| row.get::<_, String>(0),
        )
        .or_unavailable()?;
    rows.map(|text| read(key, &text.or_unavailable()?)).collect()
}

pub(super) fn events(
    connection: &Connection,
    key: &SessionKey,
    skip: u64,
    most: usize,
    now: Timestamp,
) -> Result<Vec<Event>> {
    // One statement, one point in time.
    let mut statement = connection
        .prepare_cached(
            "SELECT event FROM sessions JOIN events ON session_id = id
             WHERE app = ?1 AND user = ?2 AND session = ?3 AND (expires IS NULL OR expires > ?4)
             AND place > ?5 ORDER BY place LIMIT ?6",
        )
        .or_unavailable()?;
    let bounded = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let (skip, most) = (bounded(skip), bounded(most as u64));
    let rows = statement
        .query_map(params![key.app(), key.user(), key.session(), millis(now), skip, most], |row| {
            row.get::<_, String>(0)
        })
        .or_unavailable()?;
    rows.map(|text| read(key, &text.or_unavailable()?)).collect()
}

pub(super) fn list(connection: &Connection, now: Timestamp) -> Result<Vec<SessionSummary>> {
    let mut statement = connection
        .prepare_cached(
            "SELECT app, user, session, revision, created, updated, expires FROM sessions
             WHERE expires IS NULL OR expires > ?1 ORDER BY app, user, session",
        )
        .or_unavailable()?;
    let rows = statement
        .query_map(params![millis(now)], |row| {
            let names: [String; 3] = [row.get(0)?, row.get(1)?, row.get(2)?];
            let times: [i64; 2] = [row.get(4)?, row.get(5)?];
            Ok((names, row.get::<_, u64>(3)?, times, row.get::<_, Option<i64>>(6)?))
        })
        .or_unavailable()?;
    let time = |millis: i64| Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MIN);
    let mut sessions = Vec::new();
    for row in rows {
        let ([app, user, session], revision, [created, updated], expires) = row.or_unavailable()?;
        let key = SessionKey::new(&app, &user, &session)
            .map_err(|error| StoreError::Unavailable { cause: error.to_string() })?;
        let mut summary =
            SessionSummary::new(key, Revision(revision), time(created), time(updated));
        summary.expires = expires.map(time);
        sessions.push(summary);
    }
    Ok(sessions)
}

/// Removes a session, whether its time is over or not, and says whether there was one.
pub(super) fn delete(connection: &Connection, key: &SessionKey) -> Result<bool> {
    let mut statement = connection
        .prepare_cached("DELETE FROM sessions WHERE app = ?1 AND user = ?2 AND session = ?3")
        .or_unavailable()?;
    let removed =
        statement.execute(params![key.app(), key.user(), key.session()]).or_unavailable()?;
    Ok(removed > 0)
}

/// Removes all sessions whose time is over.
pub(super) fn purge(connection: &Connection, now: Timestamp) -> Result<usize> {
    let mut statement = connection
        .prepare_cached("DELETE FROM sessions WHERE expires IS NOT NULL AND expires <= ?1")
        .or_unavailable()?;
    statement.execute(params![millis(now)]).or_unavailable()
}
