//! What is asked of the database about sessions.

use jiff::Timestamp;
use prowess_runtime::{
    AgentName, Event, Message, Revision, Session, SessionKey, SessionSummary, StoreError,
    StoredSession,
};
use serde::de::DeserializeOwned;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use super::pool::Failed;
use crate::stored::read;
use crate::version::rows::{signed, time};

pub(super) type Result<T> = std::result::Result<T, Failed<StoreError>>;

impl From<StoreError> for Failed<StoreError> {
    fn from(error: StoreError) -> Self {
        Self::Said(error)
    }
}

pub(super) async fn get(
    connection: &mut PgConnection,
    key: &SessionKey,
    now: Timestamp,
) -> Result<Option<StoredSession>> {
    let row = sqlx::query(
        "SELECT revision, state FROM sessions WHERE app = $1 AND user_name = $2 AND session = $3
         AND revision > 0 AND (expires IS NULL OR expires > $4)",
    )
    .bind(key.app())
    .bind(key.user())
    .bind(key.session())
    .bind(now.as_millisecond())
    .fetch_optional(connection)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let session: Session = read(key, row.try_get(1)?)?;
    Ok(Some(StoredSession::new(revision(&row, 0)?, session)))
}

fn revision(row: &PgRow, at: usize) -> std::result::Result<Revision, sqlx::Error> {
    Ok(Revision(row.try_get::<i64, _>(at)?.unsigned_abs()))
}

fn read_all<T: DeserializeOwned>(key: &SessionKey, rows: &[PgRow]) -> Result<Vec<T>> {
    rows.iter().map(|row| Ok(read(key, row.try_get(0)?)?)).collect()
}

pub(super) async fn messages(
    connection: &mut PgConnection,
    key: &SessionKey,
    agent: &AgentName,
    now: Timestamp,
) -> Result<Vec<Message>> {
    let rows = sqlx::query(
        "SELECT m.message FROM sessions s JOIN messages m ON m.session_id = s.id
         WHERE s.app = $1 AND s.user_name = $2 AND s.session = $3
         AND (s.expires IS NULL OR s.expires > $4) AND m.agent = $5 ORDER BY m.place",
    )
    .bind(key.app())
    .bind(key.user())
    .bind(key.session())
    .bind(now.as_millisecond())
    .bind(agent.as_str())
    .fetch_all(connection)
    .await?;
    read_all(key, &rows)
}

pub(super) async fn events(
    connection: &mut PgConnection,
    key: &SessionKey,
    skip: u64,
    most: usize,
    now: Timestamp,
) -> Result<Vec<Event>> {
    let rows = sqlx::query(
        "SELECT e.event FROM sessions s JOIN events e ON e.session_id = s.id
         WHERE s.app = $1 AND s.user_name = $2 AND s.session = $3
         AND (s.expires IS NULL OR s.expires > $4) AND e.place > $5 ORDER BY e.place LIMIT $6",
    )
    .bind(key.app())
    .bind(key.user())
    .bind(key.session())
    .bind(now.as_millisecond())
    .bind(signed(skip))
    .bind(signed(most as u64))
    .fetch_all(connection)
    .await?;
    read_all(key, &rows)
}

pub(super) async fn list(
    connection: &mut PgConnection,
    now: Timestamp,
) -> Result<Vec<SessionSummary>> {
    let rows = sqlx::query(
        "SELECT app, user_name, session, revision, created, updated, expires FROM sessions
         WHERE revision > 0 AND (expires IS NULL OR expires > $1)
         ORDER BY app, user_name, session",
    )
    .bind(now.as_millisecond())
    .fetch_all(connection)
    .await?;
    rows.iter().map(summary).collect()
}

fn summary(row: &PgRow) -> Result<SessionSummary> {
    let key = SessionKey::new(row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)
        .map_err(|error| StoreError::Unavailable { cause: error.to_string() })?;
    let (created, updated) = (time(row.try_get(4)?), time(row.try_get(5)?));
    let mut summary = SessionSummary::new(key, revision(row, 3)?, created, updated);
    summary.expires = row.try_get::<Option<i64>, _>(6)?.map(time);
    Ok(summary)
}
