//! Keys in a PostgreSQL database.

use jiff::Timestamp;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use super::pool::Failed;
use super::versions::note;
use super::{Database, storable};
use crate::key::rows::{KeyRow, created, in_millis, new_key, no_key, revoked};
use crate::key::{ApiKey, KeyError, KeyFuture, KeyStore, Role, Secret, StoredKey};
use crate::version::Actor;

/// Keys in a PostgreSQL database.
#[derive(Clone, Debug)]
pub struct PostgresKeys {
    database: Database,
}

impl PostgresKeys {
    pub(super) fn new(database: Database) -> Self {
        Self { database }
    }
}

type Result<T> = std::result::Result<T, Failed<KeyError>>;

impl From<KeyError> for Failed<KeyError> {
    fn from(error: KeyError) -> Self {
        Self::Said(error)
    }
}

fn read(row: &PgRow) -> Result<StoredKey> {
    let row = KeyRow {
        texts: [row.try_get(0)?, row.try_get(1)?, row.try_get(2)?],
        hash: row.try_get(3)?,
        times: (row.try_get(4)?, row.try_get(5)?, row.try_get(6)?),
    };
    Ok(row.read()?)
}

async fn find(connection: &mut PgConnection, id: &str) -> Result<Option<StoredKey>> {
    let row = sqlx::query(
        "SELECT id, name, role, hash, created, expires, revoked FROM keys WHERE id = $1",
    )
    .bind(storable(id))
    .fetch_optional(connection)
    .await?;
    row.as_ref().map(read).transpose()
}

async fn list(connection: &mut PgConnection) -> Result<Vec<ApiKey>> {
    let rows = sqlx::query(
        "SELECT id, name, role, hash, created, expires, revoked FROM keys
         ORDER BY name, revoked NULLS LAST, created, id",
    )
    .fetch_all(connection)
    .await?;
    rows.iter().map(|row| Ok(read(row)?.key)).collect()
}

async fn create(
    connection: &mut PgConnection,
    key: &ApiKey,
    hash: &[u8; 32],
    actor: &Actor,
) -> Result<()> {
    let exists: bool = sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM keys
         WHERE (name = $1 AND revoked IS NULL) OR id = $1 OR id = $2)",
    )
    .bind(&key.name)
    .bind(&key.id)
    .fetch_one(&mut *connection)
    .await?;
    if exists {
        return Err(KeyError::Exists(key.name.clone()).into());
    }
    sqlx::query(
        "INSERT INTO keys (id, name, role, hash, created, expires)
         VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(&key.id)
    .bind(&key.name)
    .bind(key.role.as_str())
    .bind(hash.as_slice())
    .bind(key.created.as_millisecond())
    .bind(key.expires.map(Timestamp::as_millisecond))
    .execute(&mut *connection)
    .await?;
    note(connection, actor, "key.create", &key.name, &created(key), key.created).await
}

async fn revoke(
    connection: &mut PgConnection,
    key: &str,
    actor: &Actor,
    now: Timestamp,
) -> Result<ApiKey> {
    let row = sqlx::query(
        "SELECT id, name, role, hash, created, expires, revoked FROM keys
         WHERE name = $1 OR id = $1
         ORDER BY name = $1 DESC, revoked DESC NULLS FIRST, created DESC, id DESC LIMIT 1",
    )
    .bind(storable(key))
    .fetch_optional(&mut *connection)
    .await?;
    let mut found = read(&row.ok_or_else(|| no_key(key))?)?.key;
    if found.revoked.is_some() {
        return Ok(found);
    }
    found.revoked = Some(now);
    sqlx::query("UPDATE keys SET revoked = $2 WHERE id = $1")
        .bind(&found.id)
        .bind(now.as_millisecond())
        .execute(&mut *connection)
        .await?;
    note(connection, actor, "key.revoke", &found.name, &revoked(&found), now).await?;
    Ok(found)
}

impl KeyStore for PostgresKeys {
    fn create<'a>(
        &'a self,
        name: &'a str,
        role: Role,
        expires: Option<Timestamp>,
        actor: &'a Actor,
    ) -> KeyFuture<'a, (ApiKey, Secret)> {
        let (new, actor) = (new_key(name, role, expires), actor.clone());
        Box::pin(async move {
            let (key, secret, hash) = new?;
            let stored = key.clone();
            let create =
                async move |connection: &mut _| create(connection, &stored, &hash, &actor).await;
            self.database.pool.change(create).await?;
            Ok((key, secret))
        })
    }

    fn list(&self) -> KeyFuture<'_, Vec<ApiKey>> {
        Box::pin(self.database.pool.ask(list))
    }

    fn revoke<'a>(&'a self, key: &'a str, actor: &'a Actor) -> KeyFuture<'a, ApiKey> {
        let (key, actor) = (key.to_owned(), actor.clone());
        let now = in_millis(Timestamp::now());
        Box::pin(
            self.database
                .pool
                .change(async move |connection| revoke(connection, &key, &actor, now).await),
        )
    }

    fn find<'a>(&'a self, id: &'a str) -> KeyFuture<'a, Option<StoredKey>> {
        let id = id.to_owned();
        Box::pin(self.database.pool.ask(async move |connection| find(connection, &id).await))
    }

    fn usable(&self) -> KeyFuture<'_, u64> {
        let now = Timestamp::now().as_millisecond();
        Box::pin(self.database.pool.ask(async move |connection| {
            let count: i64 = sqlx::query_scalar(
                "SELECT count(*) FROM keys
                 WHERE revoked IS NULL AND (expires IS NULL OR expires > $1)",
            )
            .bind(now)
            .fetch_one(connection)
            .await?;
            Ok(count.unsigned_abs())
        }))
    }

    fn has_any(&self) -> KeyFuture<'_, bool> {
        // Keys that end stay in their table.
        Box::pin(self.database.pool.ask(async move |connection| {
            let sql = "SELECT EXISTS (SELECT FROM keys)";
            Ok(sqlx::query_scalar(sql).fetch_one(connection).await?)
        }))
    }
}
