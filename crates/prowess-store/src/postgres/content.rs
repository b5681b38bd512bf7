//! Content in a PostgreSQL database.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use moka::sync::Cache;
use prowess_catalog::{ContentError, ContentStore};
use prowess_format::Digest;
use sqlx::PgConnection;
use tokio::runtime::Handle;

use super::pool::{Failed, Pool};
use crate::unavailable::Unavailable;

/// So many bytes are kept at hand: content never changes.
const CACHE_BYTES: u64 = 32 << 20;

/// Who has put something within this time need not say so again.
const STILL_YOUNG: Duration = Duration::from_secs(600);

/// What was put within this time is not garbage: whoever has put it, on whichever machine, may not
/// have said yet who needs it. Longer than a cache takes something for young.
const GRACE: &str = "interval '1 hour'";

/// Content in a PostgreSQL database, beside the sessions that refer to it. Cheap to clone.
///
/// It is called on threads that may block, while the runtime runs in which the store was opened.
#[derive(Clone)]
pub struct PostgresContent {
    pool: Pool,
    runtime: Handle,
    cache: Cache<Digest, Kept>,
}

/// Content that is at hand.
#[derive(Clone)]
struct Kept {
    bytes: Arc<[u8]>,
    /// When this process has put it last, if it has.
    put: Option<Instant>,
}

impl std::fmt::Debug for PostgresContent {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PostgresContent").finish_non_exhaustive()
    }
}

/// Why content could not be kept or given.
enum NotDone {
    Away(Unavailable),
    Corrupt(Digest),
}

impl From<Unavailable> for NotDone {
    fn from(error: Unavailable) -> Self {
        Self::Away(error)
    }
}

impl From<NotDone> for ContentError {
    fn from(error: NotDone) -> Self {
        match error {
            NotDone::Corrupt(digest) => Self::Corrupt(digest),
            NotDone::Away(Unavailable(cause)) => Self::Unavailable(cause),
        }
    }
}

type Result<T> = std::result::Result<T, Failed<NotDone>>;

impl PostgresContent {
    pub(super) fn new(pool: Pool) -> Self {
        let weigh = |_: &Digest, kept: &Kept| u32::try_from(kept.bytes.len()).unwrap_or(u32::MAX);
        let cache = Cache::builder().max_capacity(CACHE_BYTES).weigher(weigh).build();
        Self { pool, runtime: Handle::current(), cache }
    }
}

/// Makes it young again, if it is there and right.
const TOUCH: &str = "
    UPDATE content SET put = clock_timestamp() WHERE digest = $1 AND sha256(bytes) = $1
";

const PUT: &str = "
    INSERT INTO content (digest, bytes, put) VALUES ($1, $2, clock_timestamp())
    ON CONFLICT (digest) DO UPDATE SET bytes = excluded.bytes, put = excluded.put
";

async fn put(connection: &mut PgConnection, digest: &Digest, bytes: &[u8]) -> Result<()> {
    let name = digest.as_bytes().as_slice();
    let touched = sqlx::query(TOUCH).bind(name).execute(&mut *connection).await;
    if touched.map_err(Failed::at_commit)?.rows_affected() > 0 {
        return Ok(());
    }
    let put = sqlx::query(PUT).bind(name).bind(bytes).execute(connection).await;
    put.map_err(Failed::at_commit)?;
    Ok(())
}

async fn get(connection: &mut PgConnection, digest: &Digest) -> Result<Option<Vec<u8>>> {
    let name = digest.as_bytes().as_slice();
    let bytes: Option<Vec<u8>> = sqlx::query_scalar("SELECT bytes FROM content WHERE digest = $1")
        .bind(name)
        .fetch_optional(&mut *connection)
        .await?;
    if bytes.as_ref().is_none_or(|bytes| Digest::of(bytes) == *digest) {
        return Ok(bytes);
    }
    // Nobody may be given it; somebody can put it again.
    sqlx::query("DELETE FROM content WHERE digest = $1 AND sha256(bytes) <> $1")
        .bind(name)
        .execute(connection)
        .await?;
    Err(Failed::Said(NotDone::Corrupt(*digest)))
}

async fn collect(connection: &mut PgConnection, referenced: &[Vec<u8>]) -> Result<usize> {
    let sql = format!(
        "DELETE FROM content WHERE put < clock_timestamp() - {GRACE} AND NOT EXISTS
         (SELECT FROM unnest($1::bytea[]) needed (digest) WHERE needed.digest = content.digest)"
    );
    let removed = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(referenced).execute(connection).await;
    let removed = removed.map_err(Failed::at_commit)?.rows_affected();
    Ok(usize::try_from(removed).unwrap_or(usize::MAX))
}

impl ContentStore for PostgresContent {
    fn put(&self, bytes: &[u8]) -> std::result::Result<Digest, ContentError> {
        let digest = Digest::of(bytes);
        let put_before = self.cache.get(&digest).and_then(|kept| kept.put);
        if put_before.is_some_and(|put| put.elapsed() < STILL_YOUNG) {
            return Ok(digest);
        }
        let (now, bytes): (_, Arc<[u8]>) = (Instant::now(), bytes.into());
        let kept = Kept { bytes: Arc::clone(&bytes), put: Some(now) };
        let put = async move |connection: &mut _| put(connection, &digest, &bytes).await;
        self.runtime.block_on(self.pool.ask(put))?;
        self.cache.insert(digest, kept);
        Ok(digest)
    }

    fn get(&self, digest: &Digest) -> std::result::Result<Option<Arc<[u8]>>, ContentError> {
        if let Some(kept) = self.cache.get(digest) {
            return Ok(Some(kept.bytes));
        }
        let digest = *digest;
        let get = async move |connection: &mut _| get(connection, &digest).await;
        let Some(bytes) = self.runtime.block_on(self.pool.ask(get))? else { return Ok(None) };
        let bytes: Arc<[u8]> = bytes.into();
        self.cache.insert(digest, Kept { bytes: Arc::clone(&bytes), put: None });
        Ok(Some(bytes))
    }

    fn collect_garbage(
        &self,
        referenced: &HashSet<Digest>,
    ) -> std::result::Result<usize, ContentError> {
        let referenced: Vec<_> = referenced.iter().map(|it| it.as_bytes().to_vec()).collect();
        let collect = async move |connection: &mut _| collect(connection, &referenced).await;
        Ok(self.runtime.block_on(self.pool.ask(collect))?)
    }
}
