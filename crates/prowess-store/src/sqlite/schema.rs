//! The tables, and how they came to be.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::open::OpenError;

/// Each step brings a database from one version to the next.
const STEPS: &[&str] = &[
    "
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
",
    "
    -- Files of versions, by what they hold.
    CREATE TABLE files (
        digest BLOB PRIMARY KEY,
        bytes BLOB NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE skills (
        id TEXT PRIMARY KEY,
        origin TEXT NOT NULL,
        revision INTEGER NOT NULL,
        -- None as long as nobody has activated one.
        active_version INTEGER,
        version_count INTEGER NOT NULL,
        -- The version that the program shipped last.
        shipped INTEGER,
        created INTEGER NOT NULL,
        updated INTEGER NOT NULL,
        -- Set when it was deleted: its versions stay.
        deleted INTEGER
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE versions (
        skill TEXT NOT NULL REFERENCES skills (id),
        number INTEGER NOT NULL,
        tree_digest TEXT NOT NULL,
        digest BLOB NOT NULL,
        about TEXT NOT NULL,
        manifest TEXT NOT NULL,
        created INTEGER NOT NULL,
        created_by TEXT NOT NULL,
        change_summary TEXT,
        PRIMARY KEY (skill, number)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX versions_by_tree ON versions (skill, tree_digest);
    CREATE TABLE audit (
        place INTEGER PRIMARY KEY AUTOINCREMENT,
        time INTEGER NOT NULL,
        actor TEXT NOT NULL,
        action TEXT NOT NULL,
        subject TEXT NOT NULL,
        detail TEXT NOT NULL
    ) STRICT;
    -- What skills were used for, counted. An empty agent or code is none; version -1 is unknown.
    CREATE TABLE usage (
        skill TEXT NOT NULL,
        day TEXT NOT NULL,
        kind TEXT NOT NULL,
        version INTEGER NOT NULL,
        agent TEXT NOT NULL,
        code TEXT NOT NULL,
        count INTEGER NOT NULL,
        errors INTEGER NOT NULL,
        elapsed_us INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        tokens INTEGER NOT NULL,
        last INTEGER NOT NULL,
        PRIMARY KEY (skill, day, kind, version, agent, code)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX usage_by_last ON usage (skill, kind, last);
    -- The agents that are counted apart.
    CREATE TABLE usage_agents (
        skill TEXT NOT NULL,
        day TEXT NOT NULL,
        agent TEXT NOT NULL,
        PRIMARY KEY (skill, day, agent)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE usage_sessions (
        skill TEXT NOT NULL,
        day TEXT NOT NULL,
        session TEXT NOT NULL,
        PRIMARY KEY (skill, session, day)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE keys (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        role TEXT NOT NULL,
        hash BLOB NOT NULL,
        created INTEGER NOT NULL,
        expires INTEGER,
        revoked INTEGER
    ) STRICT, WITHOUT ROWID;
",
    "
    -- Who works on a session. A number is never given twice.
    CREATE TABLE leases (
        fence INTEGER PRIMARY KEY AUTOINCREMENT,
        app TEXT NOT NULL,
        user TEXT NOT NULL,
        session TEXT NOT NULL,
        holder TEXT NOT NULL,
        expires INTEGER NOT NULL,
        UNIQUE (app, user, session)
    ) STRICT;
",
    "
    -- The version that waits to be activated.
    ALTER TABLE skills ADD COLUMN pending INTEGER;
    UPDATE skills SET pending = (SELECT max(number) FROM versions WHERE skill = id)
    WHERE active_version IS NULL;
",
    "
    -- The name of a key that was revoked may be given again.
    CREATE TABLE new_keys (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        role TEXT NOT NULL,
        hash BLOB NOT NULL,
        created INTEGER NOT NULL,
        expires INTEGER,
        revoked INTEGER
    ) STRICT, WITHOUT ROWID;
    INSERT INTO new_keys SELECT id, name, role, hash, created, expires, revoked FROM keys;
    DROP TABLE keys;
    ALTER TABLE new_keys RENAME TO keys;
    CREATE UNIQUE INDEX keys_by_name ON keys (name) WHERE revoked IS NULL;
",
];

/// What a database of ours says it is.
const APPLICATION_ID: i64 = 0x5052_4f57;

/// So long a database that is opened may be in use by others before that is an error.
const PATIENCE: Duration = Duration::from_secs(30);

/// So long a change or a question waits for others. Whoever asks waits longer than that, also for a
/// change before it: what fails has failed before anybody is told that there was no answer.
pub(super) const WAIT: Duration = Duration::from_secs(10);

/// Prepares a connection, and brings its database to the newest version. A database that is not
/// ours is left as it is.
pub(super) fn prepare(connection: &mut Connection) -> Result<(), OpenError> {
    connection.busy_timeout(PATIENCE)?;
    connection.set_prepared_statement_cache_capacity(64);
    // Where several make a database at once, SQLite does not wait by itself.
    let deadline = Instant::now() + PATIENCE;
    loop {
        match try_to_prepare(connection) {
            Err(OpenError::Sqlite(error)) if is_busy(&error) && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Ok(()) => return Ok(connection.busy_timeout(WAIT)?),
            failed => return failed,
        }
    }
}

/// Prepares a further connection, which changes nothing.
pub(super) fn prepare_to_read(connection: &Connection) -> Result<(), OpenError> {
    connection.busy_timeout(PATIENCE)?;
    connection.set_prepared_statement_cache_capacity(64);
    connection.pragma_update(None, "query_only", "ON")?;
    connection.busy_timeout(WAIT)?;
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_database_keeps_what_it_holds() {
        let mut connection = Connection::open_in_memory().unwrap();
        STEPS[..2].iter().for_each(|step| connection.execute_batch(step).unwrap());
        connection.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
        connection.pragma_update(None, "user_version", 2).unwrap();
        let held = "
            INSERT INTO skills VALUES ('used', 'custom', 3, 1, 2, NULL, 0, 0, NULL),
                ('waiting', 'custom', 2, NULL, 2, NULL, 0, 0, NULL);
            INSERT INTO versions SELECT skills.id, number, 'v1:', x'', '{}', '[]', 0, 'local', NULL
                FROM skills, (SELECT 1 AS number UNION SELECT 2);
            INSERT INTO keys VALUES ('0a', 'ci', 'admin', x'00', 1, NULL, 2);
        ";
        connection.execute_batch(held).unwrap();
        prepare(&mut connection).unwrap();
        let pending = |id: &str| {
            let sql = "SELECT pending FROM skills WHERE id = ?1";
            connection.query_row(sql, [id], |row| row.get::<_, Option<u64>>(0)).unwrap()
        };
        assert_eq!((pending("used"), pending("waiting")), (None, Some(2)));
        let key = "SELECT id || name || role || created || revoked FROM keys";
        let key: String = connection.query_row(key, [], |row| row.get(0)).unwrap();
        assert_eq!(key, "0aciadmin12");
        assert_eq!(version(&connection).unwrap(), STEPS.len());
    }
}
