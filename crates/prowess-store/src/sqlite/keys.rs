//! Keys in a SQLite database.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;

use super::database::Database;
use crate::key::rows::{KeyRow, created, in_millis, new_key, no_key, revoked};
use crate::key::{ApiKey, KeyError, KeyFuture, KeyStore, Role, Secret, StoredKey};
use crate::unavailable::Unavailable;
use crate::version::Actor;

impl From<rusqlite::Error> for KeyError {
    fn from(error: rusqlite::Error) -> Self {
        Unavailable::from(error).into()
    }
}

/// Keys in a SQLite database.
#[derive(Clone, Debug)]
pub struct SqliteKeys {
    database: Database,
}

impl SqliteKeys {
    pub(super) fn new(database: Database) -> Self {
        Self { database }
    }
}

const COLUMNS: &str = "id, name, role, hash, created, expires, revoked";
/// The order of keys of one name: each was revoked before the next one was made.
const AGE: &str = "revoked IS NULL, revoked, created, id";

fn millis(time: Timestamp) -> i64 {
    time.as_millisecond()
}

fn row(row: &Row<'_>) -> rusqlite::Result<KeyRow> {
    Ok(KeyRow {
        texts: [row.get(0)?, row.get(1)?, row.get(2)?],
        hash: row.get(3)?,
        times: (row.get(4)?, row.get(5)?, row.get(6)?),
    })
}

fn find(connection: &Connection, id: &str) -> Result<Option<StoredKey>, KeyError> {
    let sql = format!("SELECT {COLUMNS} FROM keys WHERE id = ?1");
    let raw = connection.prepare_cached(&sql)?.query_row([id], row).optional()?;
    raw.map(KeyRow::read).transpose()
}

fn list(connection: &Connection) -> Result<Vec<ApiKey>, KeyError> {
    let sql = format!("SELECT {COLUMNS} FROM keys ORDER BY name, {AGE}");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([], row)?;
    rows.map(|raw| Ok(raw?.read()?.key)).collect()
}

/// Writes down what was done, in the same transaction.
fn note(
    connection: &Connection,
    now: Timestamp,
    actor: &Actor,
    action: &str,
    key: &ApiKey,
    detail: &Value,
) -> Result<(), KeyError> {
    connection
        .prepare_cached(
            "INSERT INTO audit (time, actor, action, subject, detail) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![millis(now), &*actor.0, action, key.name, detail.to_string()])?;
    Ok(())
}

fn create(
    connection: &Connection,
    key: &ApiKey,
    hash: &[u8; 32],
    actor: &Actor,
) -> Result<(), KeyError> {
    let exists = connection
        .prepare_cached(
            "SELECT 1 FROM keys WHERE (name = ?1 AND revoked IS NULL) OR id = ?1 OR id = ?2",
        )?
        .exists(params![key.name, key.id])?;
    if exists {
        return Err(KeyError::Exists(key.name.clone()));
    }
    connection
        .prepare_cached(
            "INSERT INTO keys (id, name, role, hash, created, expires)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            key.id,
            key.name,
            key.role.as_str(),
            hash.as_slice(),
            millis(key.created),
            key.expires.map(millis)
        ])?;
    note(connection, key.created, actor, "key.create", key, &created(key))
}

fn revoke(
    connection: &Connection,
    key: &str,
    actor: &Actor,
    now: Timestamp,
) -> Result<ApiKey, KeyError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM keys WHERE name = ?1 OR id = ?1
         ORDER BY name = ?1, {AGE}"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([key], row)?;
    let Some(raw) = rows.last() else {
        return Err(no_key(key));
    };
    let mut found = raw?.read()?.key;
    if found.revoked.is_some() {
        return Ok(found);
    }
    found.revoked = Some(now);
    connection
        .prepare_cached("UPDATE keys SET revoked = ?2 WHERE id = ?1")?
        .execute(params![found.id, millis(now)])?;
    note(connection, now, actor, "key.revoke", &found, &revoked(&found))?;
    Ok(found)
}

impl KeyStore for SqliteKeys {
    fn create<'a>(
        &'a self,
        name: &'a str,
        role: Role,
        expires: Option<Timestamp>,
        actor: &'a Actor,
    ) -> KeyFuture<'a, (ApiKey, Secret)> {
        Box::pin(async move {
            let (key, secret, hash) = new_key(name, role, expires)?;
            let (stored, actor) = (key.clone(), actor.clone());
            self.database
                .write(move |connection| create(connection, &stored, &hash, &actor))
                .await?;
            Ok((key, secret))
        })
    }

    fn list(&self) -> KeyFuture<'_, Vec<ApiKey>> {
        self.database.read(list)
    }

    fn revoke<'a>(&'a self, key: &'a str, actor: &'a Actor) -> KeyFuture<'a, ApiKey> {
        let (key, actor) = (key.to_owned(), actor.clone());
        let now = in_millis(Timestamp::now());
        self.database.write(move |connection| revoke(connection, &key, &actor, now))
    }

    fn find<'a>(&'a self, id: &'a str) -> KeyFuture<'a, Option<StoredKey>> {
        let id = id.to_owned();
        self.database.read(move |connection| find(connection, &id))
    }

    fn usable(&self) -> KeyFuture<'_, u64> {
        let now = millis(Timestamp::now());
        self.database.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT count(*) FROM keys
                 WHERE revoked IS NULL AND (expires IS NULL OR expires > ?1)",
            )?;
            Ok(statement.query_row([now], |row| row.get::<_, u64>(0))?)
        })
    }

    fn has_any(&self) -> KeyFuture<'_, bool> {
        // Keys that end stay in their table.
        self.database.read(|connection| {
            Ok(connection.prepare_cached("SELECT 1 FROM keys LIMIT 1")?.exists([])?)
        })
    }
}
