//! How sessions change. A commit is two questions or three: what is there, what it counts for, and
//! one statement that writes everything if nothing has changed since.

use std::fmt::Write;
use std::sync::LazyLock;

use jiff::Timestamp;
use prowess_runtime::{
    Event, Fence, Message, Revision, Session, SessionDelta, SessionKey, StoreError,
};
use serde::Serialize;
use sqlx::{PgConnection, Row};

use super::leases::{Lease, NOW, check};
use super::listen::{CHANNEL, payload};
use super::pool::Failed;
use super::session_queries::Result;
use super::usage::{Columns, count_sql, uses_of};
use crate::stored::{read, write};
use crate::version::rows::signed;

/// So often it is decided anew if others change the session in between.
const TRIES: usize = 100;

/// A lease that was over for so long, in milliseconds, is not renewed any more.
const FORGOTTEN: i64 = 3_600_000;

/// So many sessions are removed at a time.
const PURGED_AT_ONCE: i64 = 1_000;

/// A change of a session.
pub(super) struct Commit {
    pub(super) key: SessionKey,
    pub(super) expected: Revision,
    pub(super) delta: SessionDelta,
    pub(super) events: Vec<Event>,
    pub(super) now: Timestamp,
    pub(super) expires: Option<Timestamp>,
}

/// A session's row.
struct Found {
    id: i64,
    revision: i64,
    state: String,
    expires: Option<i64>,
    lease: Option<Lease>,
}

impl Found {
    fn is_over(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now.as_millisecond())
    }

    /// Whether there is a session, and not only somebody who has taken it.
    fn is_there(&self, now: Timestamp) -> bool {
        self.revision > 0 && !self.is_over(now)
    }
}

static FIND: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT id, revision, state, expires, fence, holder, lease_expires - {NOW} FROM sessions
         WHERE app = $1 AND user_name = $2 AND session = $3"
    )
});

async fn find(connection: &mut PgConnection, key: &SessionKey) -> Result<Option<Found>> {
    let row = sqlx::query(FIND.as_str())
        .bind(key.app())
        .bind(key.user())
        .bind(key.session())
        .fetch_optional(connection)
        .await?;
    let Some(row) = row else { return Ok(None) };
    let lease = match row.try_get::<Option<i64>, _>(4)? {
        Some(fence) => Some(Lease {
            fence: Fence(fence.unsigned_abs()),
            holder: row.try_get(5)?,
            left: row.try_get(6)?,
        }),
        None => None,
    };
    Ok(Some(Found {
        id: row.try_get(0)?,
        revision: row.try_get(1)?,
        state: row.try_get(2)?,
        expires: row.try_get(3)?,
        lease,
    }))
}

/// Changes a session, all of it or nothing.
pub(super) async fn commit(connection: &mut PgConnection, commit: &Commit) -> Result<Revision> {
    let Commit { key, expected, delta, now, .. } = commit;
    for _ in 0..TRIES {
        let found = find(connection, key).await?;
        check(key, found.as_ref().and_then(|found| found.lease.as_ref()), delta.fence)?;
        let there = found.as_ref().filter(|found| found.is_there(*now));
        let actual = Revision(there.map_or(0, |found| found.revision.unsigned_abs()));
        if actual != *expected {
            return Err(StoreError::Conflict { expected: *expected, actual }.into());
        }
        let mut session: Session = match there {
            Some(found) => read(key, &found.state)?,
            None => Session::default(),
        };
        session.apply(delta);
        let texts = Texts::of(commit, &session)?;
        if let Some(found) = found.as_ref().filter(|found| found.is_over(*now)) {
            // It begins again, without what it was.
            remove(connection, key, found).await?;
            continue;
        }
        let uses = uses_of(connection, key, &commit.events).await?;
        if append(connection, commit, found.as_ref(), &texts, uses.as_ref()).await? {
            return Ok(Revision(expected.0 + 1));
        }
    }
    Err(always_faster())
}

fn always_faster() -> Failed<StoreError> {
    let cause = "others were always faster to change the session".to_owned();
    StoreError::Unavailable { cause }.into()
}

/// What is written of a commit, as JSON.
struct Texts {
    state: String,
    messages: Vec<String>,
    events: Vec<String>,
}

impl Texts {
    fn of(commit: &Commit, session: &Session) -> std::result::Result<Self, StoreError> {
        fn all<T: Serialize>(
            key: &SessionKey,
            values: &[T],
        ) -> std::result::Result<Vec<String>, StoreError> {
            values.iter().map(|value| write(key, value)).collect()
        }
        Ok(Self {
            state: write(&commit.key, session)?,
            messages: all::<Message>(&commit.key, &commit.delta.messages)?,
            events: all::<Event>(&commit.key, &commit.events)?,
        })
    }
}

/// Which session a statement writes to.
#[derive(Clone, Copy)]
enum Target {
    /// One that has a row.
    Old,
    /// One that has none.
    New,
}

/// Writes a revision with everything, if the row is still as it was found.
fn append_sql(target: Target, counts: bool) -> String {
    let own = if counts { 9 + Columns::COUNT } else { 9 };
    let (a, b, c) = (own, own + 1, own + 2);
    let written = match target {
        Target::Old => format!(
            "UPDATE sessions SET revision = $5, state = $6, updated = $7, expires = $8,
             created = CASE revision WHEN 0 THEN $7 ELSE created END
             WHERE id = ${a} AND revision = $5 - 1 AND CASE WHEN ${b}::bigint IS NULL
             THEN fence IS NULL OR lease_expires <= {NOW} ELSE fence = ${b} END RETURNING id"
        ),
        Target::New => format!(
            "INSERT INTO sessions
             (revision, state, created, updated, expires, app, user_name, session)
             VALUES ($5, $6, $7, $7, $8, ${a}, ${b}, ${c}) ON CONFLICT DO NOTHING RETURNING id"
        ),
    };
    let mut sql = format!(
        "WITH written AS ({written}),
         said AS (
             INSERT INTO messages (session_id, agent, place, message)
             SELECT written.id, $1, one.place + (SELECT coalesce(max(place), 0) FROM messages
             WHERE session_id = written.id AND agent = $1), one.message
             FROM written, unnest($2::text[]) WITH ORDINALITY one (message, place)
         ),
         happened AS (
             INSERT INTO events (session_id, place, revision, event)
             SELECT written.id, one.place + (SELECT coalesce(max(place), 0) FROM events
             WHERE session_id = written.id), $5, one.event
             FROM written, unnest($3::text[]) WITH ORDINALITY one (event, place)
         )"
    );
    if counts {
        let _ = write!(sql, ", {}", count_sql("written", 9));
    }
    let _ = write!(sql, " SELECT pg_notify('{CHANNEL}', $4) FROM written");
    sql
}

static APPEND: LazyLock<String> = LazyLock::new(|| append_sql(Target::Old, false));
static APPEND_AND_COUNT: LazyLock<String> = LazyLock::new(|| append_sql(Target::Old, true));
static BEGIN: LazyLock<String> = LazyLock::new(|| append_sql(Target::New, false));
static BEGIN_AND_COUNT: LazyLock<String> = LazyLock::new(|| append_sql(Target::New, true));

async fn append(
    connection: &mut PgConnection,
    commit: &Commit,
    found: Option<&Found>,
    texts: &Texts,
    uses: Option<&Columns>,
) -> Result<bool> {
    let sql = match (found, uses) {
        (Some(_), None) => APPEND.as_str(),
        (Some(_), Some(_)) => APPEND_AND_COUNT.as_str(),
        (None, None) => BEGIN.as_str(),
        (None, Some(_)) => BEGIN_AND_COUNT.as_str(),
    };
    let key = &commit.key;
    let mut query = sqlx::query(sql)
        .bind(commit.delta.agent.as_str())
        .bind(&texts.messages)
        .bind(&texts.events)
        .bind(payload(key))
        .bind(signed(commit.expected.0 + 1))
        .bind(&texts.state)
        .bind(commit.now.as_millisecond())
        .bind(commit.expires.map(Timestamp::as_millisecond));
    if let Some(uses) = uses {
        query = uses.bind(query);
    }
    query = match found {
        Some(found) => query.bind(found.id).bind(commit.delta.fence.map(|fence| signed(fence.0))),
        None => query.bind(key.app()).bind(key.user()).bind(key.session()),
    };
    let written = query.fetch_optional(connection).await.map_err(Failed::at_commit)?;
    Ok(written.is_some())
}

/// Removes a session that is still as it was found, and says whether it was. Who works on it goes
/// on. Messages come only with revisions: there are none that are not seen here. A session that
/// begins again has another id, so that nobody takes its revisions for those before.
static REMOVE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "WITH gone AS (
             DELETE FROM sessions WHERE id = $1 AND revision = $2 AND fence IS NULL RETURNING id
         ),
         emptied AS (
             UPDATE sessions SET id = nextval('session_ids'), revision = 0, state = '',
             expires = NULL WHERE id = $1 AND revision = $2 AND fence IS NOT NULL RETURNING id
         ),
         unsaid AS (
             DELETE FROM messages WHERE session_id = $1 AND EXISTS (SELECT FROM emptied)
         ),
         undone AS (
             DELETE FROM events WHERE session_id = $1 AND EXISTS (SELECT FROM emptied)
         ),
         removed AS (SELECT id FROM gone UNION ALL SELECT id FROM emptied)
         SELECT pg_notify('{CHANNEL}', $3) FROM removed"
    )
});

async fn remove(connection: &mut PgConnection, key: &SessionKey, found: &Found) -> Result<bool> {
    let removed = sqlx::query(REMOVE.as_str())
        .bind(found.id)
        .bind(found.revision)
        .bind(payload(key))
        .fetch_optional(connection)
        .await
        .map_err(Failed::at_commit)?;
    Ok(removed.is_some())
}

/// Removes a session, and says whether there was one whose time was not over.
pub(super) async fn delete(
    connection: &mut PgConnection,
    key: &SessionKey,
    now: Timestamp,
) -> Result<bool> {
    for _ in 0..TRIES {
        let found = find(connection, key).await?.filter(|found| found.revision > 0);
        let Some(found) = found else { return Ok(false) };
        if remove(connection, key, &found).await? {
            return Ok(found.is_there(now));
        }
    }
    Err(always_faster())
}

static PURGE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "WITH gone AS (
             DELETE FROM sessions WHERE id IN (
                 SELECT id FROM sessions
                 WHERE (expires <= $1 OR revision = 0 AND lease_expires <= {NOW} - {FORGOTTEN})
                 AND (fence IS NULL OR lease_expires <= {NOW} - {FORGOTTEN})
                 LIMIT {PURGED_AT_ONCE} FOR UPDATE SKIP LOCKED
             ) RETURNING revision
         )
         SELECT count(*), count(*) FILTER (WHERE revision > 0) FROM gone"
    )
});

/// Removes some of the sessions whose time is over and on which nobody works, and says how many,
/// and whether there may be more.
pub(super) async fn purge(connection: &mut PgConnection, now: Timestamp) -> Result<(u64, bool)> {
    let (removed, sessions): (i64, i64) = sqlx::query_as(PURGE.as_str())
        .bind(now.as_millisecond())
        .fetch_one(connection)
        .await
        .map_err(Failed::at_commit)?;
    Ok((sessions.unsigned_abs(), removed == PURGED_AT_ONCE))
}
