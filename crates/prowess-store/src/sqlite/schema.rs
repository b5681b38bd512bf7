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

/// So long a database may be in use by others before that is an error.
const PATIENCE: Duration = Duration::from_secs(30);

/// Prepares a connection, and brings its database to the newest version. A database that is not
/// ours is left as it is.
pub(super) fn prepare(connection: &mut Connection) -> Result<(), OpenError> {
    connection.busy_timeout(PATIENCE)?;
    connection.set_prepared_statement_cache_capacity(32);
    // Where several make a database at once, SQLite does not wait by itself.
    let deadline = Instant::now() + PATIENCE;
    loop {
        match try_to_prepare(connection) {
            Err(OpenError::Sqlite(error)) if is_busy(&error) && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            prepared => return prepared,
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
}

fn try_to_prepare(connection: &mut Connection) -> Result<(), OpenError> {
    // Before anything is changed; the mode of the journal is written into the file.
    let look = connection.transaction()?;
    version(&look)?;
    drop(look);
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // What is acknowledged is on the disk.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    for step in &STEPS[version(&transaction)?..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", STEPS.len())?;
    transaction.commit()?;
    Ok(())
}

/// The version of a database that is ours, or nobody's yet.
fn version(connection: &Connection) -> Result<usize, OpenError> {
    let number = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let application = number("PRAGMA application_id")?;
    let version = number("PRAGMA user_version")?;
    let tables = number("SELECT count(*) FROM sqlite_master")?;
    if application != APPLICATION_ID && (application, version, tables) != (0, 0, 0) {
        return Err(OpenError::Foreign);
    }
    let known = STEPS.len();
    match usize::try_from(version) {
        Ok(version) if version <= known => Ok(version),
        Ok(version) => Err(OpenError::Newer { version, known }),
        Err(_) => Err(OpenError::Foreign),
    }
}
