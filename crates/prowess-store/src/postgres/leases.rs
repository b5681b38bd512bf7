//! Who works on a session. The time of a lease is the server's, whatever the clocks of those who
//! take it say.

use std::sync::LazyLock;
use std::time::Duration;

use prowess_runtime::{Fence, SessionKey, StoreError};
use sqlx::{PgConnection, Row};

use super::pool::Failed;
use super::session_queries::Result;
use super::storable;
use crate::version::rows::signed;

/// What time it is, in milliseconds since 1970.
pub(super) const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// A lease is not longer, in milliseconds: a few hundred thousand years.
const LONGEST: i64 = 1 << 53;

/// So often it is looked again who has a session, if they come and go.
const TRIES: usize = 100;

/// Who has a session, and for how long.
pub(super) struct Lease {
    pub(super) fence: Fence,
    pub(super) holder: String,
    /// In milliseconds; not above 0 if its time is over.
    pub(super) left: i64,
}

impl Lease {
    /// What others are told as long as its time is not over.
    fn still_held(&self) -> Option<StoreError> {
        let left = u64::try_from(self.left).ok().filter(|left| *left > 0)?;
        let expires_in = Duration::from_millis(left);
        Some(StoreError::Leased { holder: self.holder.clone(), expires_in })
    }
}

/// Whether whoever has this lease, or none, may change a session.
pub(super) fn check(
    key: &SessionKey,
    held: Option<&Lease>,
    fence: Option<Fence>,
) -> std::result::Result<(), StoreError> {
    match fence {
        Some(fence) if held.is_none_or(|lease| lease.fence != fence) => {
            Err(StoreError::Fenced { key: key.clone(), fence })
        }
        Some(_) => Ok(()),
        None => held.and_then(Lease::still_held).map_or(Ok(()), Err),
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(LONGEST).min(LONGEST)
}

/// The number is given once the row is ours, so that later ones are higher.
static TAKE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "INSERT INTO sessions AS held
         (app, user_name, session, revision, state, created, updated, fence, holder, lease_expires)
         VALUES ($1, $2, $3, 0, '', 0, 0, nextval('fences'), $4, {NOW} + $5)
         ON CONFLICT (app, user_name, session) DO UPDATE
         SET fence = nextval('fences'), holder = $4, lease_expires = {NOW} + $5
         WHERE held.fence IS NULL OR held.holder = $4 OR held.lease_expires <= {NOW}
         RETURNING fence"
    )
});

static HOLDER: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT fence, holder, lease_expires - {NOW} FROM sessions
         WHERE app = $1 AND user_name = $2 AND session = $3 AND fence IS NOT NULL"
    )
});

pub(super) async fn lease(
    connection: &mut PgConnection,
    key: &SessionKey,
    holder: &str,
    time: Duration,
) -> Result<Fence> {
    let holder = storable(holder);
    for _ in 0..TRIES {
        let taken: Option<i64> = sqlx::query_scalar(TAKE.as_str())
            .bind(key.app())
            .bind(key.user())
            .bind(key.session())
            .bind(&holder)
            .bind(millis(time))
            .fetch_optional(&mut *connection)
            .await
            .map_err(Failed::at_commit)?;
        if let Some(fence) = taken {
            return Ok(Fence(fence.unsigned_abs()));
        }
        let held = sqlx::query(HOLDER.as_str())
            .bind(key.app())
            .bind(key.user())
            .bind(key.session())
            .fetch_optional(&mut *connection)
            .await?;
        let Some(held) = held else { continue };
        let fence = Fence(held.try_get::<i64, _>(0)?.unsigned_abs());
        let lease = Lease { fence, holder: held.try_get(1)?, left: held.try_get(2)? };
        if let Some(error) = lease.still_held() {
            return Err(error.into());
        }
    }
    let cause = "others were always faster to take the session".to_owned();
    Err(StoreError::Unavailable { cause }.into())
}

static RENEW: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE sessions SET lease_expires = {NOW} + $5
         WHERE app = $1 AND user_name = $2 AND session = $3 AND fence = $4"
    )
});

pub(super) async fn renew(
    connection: &mut PgConnection,
    key: &SessionKey,
    fence: Fence,
    time: Duration,
) -> Result<()> {
    let renewed = sqlx::query(RENEW.as_str())
        .bind(key.app())
        .bind(key.user())
        .bind(key.session())
        .bind(signed(fence.0))
        .bind(millis(time))
        .execute(connection)
        .await
        .map_err(Failed::at_commit)?;
    match renewed.rows_affected() {
        0 => Err(StoreError::Fenced { key: key.clone(), fence }.into()),
        _ => Ok(()),
    }
}

/// What is nothing but a lease is nothing without it.
const RELEASE: &str = "
    WITH gone AS (
        DELETE FROM sessions WHERE app = $1 AND user_name = $2 AND session = $3 AND fence = $4
        AND revision = 0
    )
    UPDATE sessions SET fence = NULL, holder = NULL, lease_expires = NULL
    WHERE app = $1 AND user_name = $2 AND session = $3 AND fence = $4 AND revision > 0
";

pub(super) async fn release(
    connection: &mut PgConnection,
    key: &SessionKey,
    fence: Fence,
) -> Result<()> {
    sqlx::query(RELEASE)
        .bind(key.app())
        .bind(key.user())
        .bind(key.session())
        .bind(signed(fence.0))
        .execute(connection)
        .await
        .map_err(Failed::at_commit)?;
    Ok(())
}
