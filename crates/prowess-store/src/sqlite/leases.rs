//! Who works on a session, in a SQLite database.

use std::time::Duration;

use jiff::Timestamp;
use prowess_runtime::{Fence, SessionKey, StoreError};
use rusqlite::{Connection, OptionalExtension, params};

use super::session_queries::{OrUnavailable, Result, millis};

struct Lease {
    fence: Fence,
    holder: String,
    expires: i64,
}

impl Lease {
    /// What others are told as long as its time is not over.
    fn still_held(self, now: Timestamp) -> Option<StoreError> {
        let left = u64::try_from(self.expires - millis(now)).ok().filter(|left| *left > 0)?;
        let expires_in = Duration::from_millis(left);
        Some(StoreError::Leased { holder: self.holder, expires_in })
    }
}

fn find(connection: &Connection, key: &SessionKey) -> Result<Option<Lease>> {
    let mut statement = connection
        .prepare_cached(
            "SELECT fence, holder, expires FROM leases
             WHERE app = ?1 AND user = ?2 AND session = ?3",
        )
        .or_unavailable()?;
    let lease = statement.query_row(params![key.app(), key.user(), key.session()], |row| {
        Ok(Lease { fence: Fence(row.get(0)?), holder: row.get(1)?, expires: row.get(2)? })
    });
    lease.optional().or_unavailable()
}

/// When a lease is over that is taken now.
fn end(now: Timestamp, time: Duration) -> i64 {
    millis(now.checked_add(time).unwrap_or(Timestamp::MAX))
}

pub(super) fn lease(
    connection: &Connection,
    key: &SessionKey,
    holder: &str,
    time: Duration,
    now: Timestamp,
) -> Result<Fence> {
    if let Some(lease) = find(connection, key)? {
        let (fence, is_own) = (lease.fence, lease.holder == holder);
        if let Some(error) = lease.still_held(now).filter(|_| !is_own) {
            return Err(error);
        }
        release(connection, fence)?;
    }
    let mut statement = connection
        .prepare_cached(
            "INSERT INTO leases (app, user, session, holder, expires) VALUES (?1, ?2, ?3, ?4, ?5)",
        )
        .or_unavailable()?;
    let values = params![key.app(), key.user(), key.session(), holder, end(now, time)];
    let fence = statement.insert(values).or_unavailable()?;
    Ok(Fence(fence.unsigned_abs()))
}

pub(super) fn renew(
    connection: &Connection,
    key: &SessionKey,
    fence: Fence,
    time: Duration,
    now: Timestamp,
) -> Result<()> {
    let mut statement = connection
        .prepare_cached("UPDATE leases SET expires = ?2 WHERE fence = ?1")
        .or_unavailable()?;
    match statement.execute(params![fence.0, end(now, time)]).or_unavailable()? {
        0 => Err(StoreError::Fenced { key: key.clone(), fence }),
        _ => Ok(()),
    }
}

pub(super) fn release(connection: &Connection, fence: Fence) -> Result<()> {
    let mut statement =
        connection.prepare_cached("DELETE FROM leases WHERE fence = ?1").or_unavailable()?;
    statement.execute([fence.0]).map(drop).or_unavailable()
}

/// Whether whoever has this lease, or none, may change a session.
pub(super) fn check(
    connection: &Connection,
    key: &SessionKey,
    fence: Option<Fence>,
    now: Timestamp,
) -> Result<()> {
    let held = find(connection, key)?;
    match fence {
        Some(fence) if held.as_ref().is_none_or(|lease| lease.fence != fence) => {
            Err(StoreError::Fenced { key: key.clone(), fence })
        }
        Some(_) => Ok(()),
        None => held.and_then(|lease| lease.still_held(now)).map_or(Ok(()), Err),
    }
}
