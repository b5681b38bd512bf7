//! The tables, and how they came to be.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::OpenError;

/// Each step brings a database from one version to the next.
const STEPS: &[&str] = &["
    CREATE TABLE sessions (
        id INTEGER PRIMARY KEY,
        app TEXT NOT NULL,
        user TEXT NOT NULL,
        session TEXT NOT NULL,
        revision INTEGER NOT NULL,
        state TEXT NOT NULL,
        created INTEGER NOT NULL,
        updated INTEGER NOT NULL,
        expires INTEGER,
        UNIQUE (app, user, session)
    ) STRICT;
    CREATE INDEX sessions_by_expiry ON sessions (expires) WHERE expires IS NOT NULL;
    CREATE TABLE messages (
        session_id INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        agent TEXT NOT NULL,
        place INTEGER NOT NULL,
        message TEXT NOT NULL,
        PRIMARY KEY (session_id, agent, place)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE events (
        session_id INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        place INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        event TEXT NOT NULL,
        PRIMARY KEY (session_id, place)
    ) STRICT, WITHOUT ROWID;
"];

/// What a database of ours says it is.
const APPLICATION_ID: i64 = 0x5052_4f57;

/// So long others are waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Prepares a connection, and brings its database to the newest version.
pub(super) fn prepare(connection: &mut Connection) -> Result<(), OpenError> {
    connection.busy_timeout(PATIENCE)?;
    // Who changes the journal mode is told at once that others are there, and must try again.
    let end = Instant::now() + PATIENCE;
    loop {
        match try_to_prepare(connection) {
            Err(OpenError::Sqlite(error)) if is_busy(&error) && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(5));
            }
            done => return done,
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
}

fn try_to_prepare(connection: &mut Connection) -> Result<(), OpenError> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // What is acknowledged is on the disk.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    connection.set_prepared_statement_cache_capacity(32);
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let version: usize = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let application: i64 =
        transaction.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 =
        transaction.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
    if application != APPLICATION_ID && tables > 0 {
        return Err(OpenError::Foreign);
    }
    if version > STEPS.len() {
        return Err(OpenError::Newer { version, known: STEPS.len() });
    }
    for step in &STEPS[version..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", STEPS.len())?;
    transaction.commit()?;
    Ok(())
}
