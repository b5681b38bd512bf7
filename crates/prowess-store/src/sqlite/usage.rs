//! What skills are used for, in a SQLite database.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::civil::Date;
use prowess_runtime::{Event, SessionKey};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::database::Database;
use crate::usage::count::{AGENTS_PER_DAY, UNKNOWN_SKILL, agents, counted, kind, use_of, word};
use crate::usage::{SkillUsage, UsageRow, UsageStore, Use};
use crate::version::rows::signed;
use crate::version::{VersionError, VersionFuture};

/// The number of the tables' layout.
const VERSION: &str = "user_version";

/// What skills are used for, in a SQLite database. Sessions in the same database count by
/// themselves, in the transaction that commits their events.
#[derive(Clone, Debug)]
pub struct SqliteUsage {
    database: Database,
}

impl SqliteUsage {
    pub(super) fn new(database: Database) -> Self {
        Self { database }
    }
}

impl UsageStore for SqliteUsage {
    fn record(&self, uses: Vec<Use>) -> VersionFuture<'_, ()> {
        let mut uses = uses;
        self.database.write(move |connection| {
            for it in &mut uses {
                if !is_registered(connection, &it.skill)? {
                    UNKNOWN_SKILL.clone_into(&mut it.skill);
                }
            }
            Ok::<_, VersionError>(count(connection, &uses)?)
        })
    }

    fn probe(&self) -> VersionFuture<'_, ()> {
        self.database.write(|connection| {
            // The page with the version is written again as it is.
            let version: i64 = connection.pragma_query_value(None, VERSION, |row| row.get(0))?;
            Ok::<_, VersionError>(connection.pragma_update(None, VERSION, version)?)
        })
    }

    fn usage<'a>(&'a self, skill: &'a str) -> VersionFuture<'a, SkillUsage> {
        let skill = skill.to_owned();
        self.database.read(move |connection| Ok(usage_of(connection, &skill)?))
    }

    fn last_loads(&self, skills: Vec<String>) -> VersionFuture<'_, Vec<Option<Timestamp>>> {
        self.database.read(move |connection| Ok(last_loads(connection, &skills)?))
    }

    fn totals(&self) -> VersionFuture<'_, Vec<UsageRow>> {
        self.database.read(|connection| Ok(totals(connection)?))
    }
}

/// Whether a skill is in the registry, or was.
fn is_registered(connection: &Connection, skill: &str) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM skills WHERE id = ?1")?.exists([skill])
}

/// Whether an agent is counted apart. The first ones of a day are.
fn has_own_row(
    connection: &Connection,
    skill: &str,
    day: Date,
    agent: &str,
) -> rusqlite::Result<bool> {
    let row = params![skill, day.to_string(), agent];
    let is_known = connection
        .prepare_cached("SELECT 1 FROM usage_agents WHERE skill = ?1 AND day = ?2 AND agent = ?3")?
        .exists(row)?;
    if is_known {
        return Ok(true);
    }
    let added = connection
        .prepare_cached(
            "INSERT INTO usage_agents (skill, day, agent) SELECT ?1, ?2, ?3
             WHERE (SELECT count(*) FROM usage_agents WHERE skill = ?1 AND day = ?2) < ?4",
        )?
        .execute(params![skill, day.to_string(), agent, signed(AGENTS_PER_DAY)])?;
    Ok(added > 0)
}

/// Counts uses inside of a transaction that somebody else commits.
fn count(connection: &Connection, uses: &[Use]) -> rusqlite::Result<()> {
    let mut apart = BTreeSet::new();
    for (skill, day, agent) in agents(uses) {
        if has_own_row(connection, skill, day, agent)? {
            apart.insert((skill, day, agent));
        }
    }
    let counted = counted(uses, &apart);
    let mut add = connection.prepare_cached(
        "INSERT INTO usage (skill, day, kind, version, agent, code, count, errors, elapsed_us, bytes, tokens, last)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
         ON CONFLICT DO UPDATE SET count = count + ?7, errors = errors + ?8,
         elapsed_us = elapsed_us + ?9, bytes = bytes + ?10, tokens = tokens + ?11, last = max(last, ?12)",
    )?;
    for (key, sums) in counted.rows {
        add.execute(params![
            key.skill,
            key.day.to_string(),
            word(key.kind),
            key.version,
            key.agent,
            key.code,
            sums.count,
            sums.errors,
            sums.elapsed_us,
            sums.bytes,
            sums.tokens,
            sums.last
        ])?;
    }
    let mut add = connection.prepare_cached(
        "INSERT OR IGNORE INTO usage_sessions (skill, session, day) VALUES (?1, ?2, ?3)",
    )?;
    for (skill, session, day) in counted.sessions {
        add.execute(params![skill, session, day.to_string()])?;
    }
    Ok(())
}

/// Counts what the events of a session say about skills.
pub(super) fn count_events(
    connection: &Connection,
    session: &SessionKey,
    events: &[Event],
) -> rusqlite::Result<()> {
    let session = session.to_string();
    let mut uses = Vec::new();
    for event in events {
        let Some(mut it) = use_of(event) else { continue };
        // Anybody can ask for any name. What was loaded is there, wherever it came from.
        if event.digest.is_none() && !is_registered(connection, &it.skill)? {
            UNKNOWN_SKILL.clone_into(&mut it.skill);
        }
        it.session = Some(session.clone());
        it.version = version_of(connection, event)?;
        uses.push(it);
    }
    if uses.is_empty() { Ok(()) } else { count(connection, &uses) }
}

/// The version whose files a session has, if they are of a version.
fn version_of(connection: &Connection, event: &Event) -> rusqlite::Result<Option<u64>> {
    let (Some(skill), Some(tree)) = (&event.skill, &event.tree_digest) else { return Ok(None) };
    let mut statement = connection.prepare_cached(
        "SELECT v.number FROM versions v JOIN skills s ON s.id = v.skill
         WHERE v.skill = ?1 AND v.tree_digest = ?2
         ORDER BY v.number = s.active_version DESC, v.number DESC LIMIT 1",
    )?;
    statement.query_row(params![skill, tree.to_string()], |row| row.get(0)).optional()
}

fn usage_row(row: &Row<'_>) -> rusqlite::Result<UsageRow> {
    let some = |text: String| (!text.is_empty()).then_some(text);
    let last: i64 = row.get(11)?;
    Ok(UsageRow {
        skill: row.get(0)?,
        day: row.get::<_, String>(1)?.parse().unwrap_or_default(),
        kind: kind(&row.get::<_, String>(2)?),
        version: u64::try_from(row.get::<_, i64>(3)?).ok(),
        agent: some(row.get(4)?),
        code: some(row.get(5)?),
        count: row.get(6)?,
        errors: row.get(7)?,
        elapsed_us: row.get(8)?,
        bytes: row.get(9)?,
        tokens: row.get(10)?,
        last: Timestamp::from_millisecond(last).unwrap_or(Timestamp::MIN),
    })
}

fn usage_of(connection: &Connection, skill: &str) -> rusqlite::Result<SkillUsage> {
    // One point in time for all.
    let together = connection.unchecked_transaction()?;
    let mut statement = together.prepare_cached(
        "SELECT skill, day, kind, version, agent, code, count, errors, elapsed_us, bytes, tokens, last
         FROM usage WHERE skill = ?1 ORDER BY day, kind, version, agent, code",
    )?;
    let rows = statement.query_map([skill], usage_row)?.collect::<rusqlite::Result<_>>()?;
    let mut statement = together
        .prepare_cached("SELECT count(DISTINCT session) FROM usage_sessions WHERE skill = ?1")?;
    let unique_sessions = statement.query_row([skill], |row| row.get(0))?;
    let mut statement = together.prepare_cached(
        "SELECT day, count(*) FROM usage_sessions WHERE skill = ?1 GROUP BY day ORDER BY day",
    )?;
    let days = statement.query_map([skill], |row| {
        Ok((row.get::<_, String>(0)?.parse().unwrap_or_default(), row.get(1)?))
    })?;
    let sessions_by_day = days.collect::<rusqlite::Result<_>>()?;
    Ok(SkillUsage { rows, unique_sessions, sessions_by_day })
}

const LAST_LOAD: &str = "SELECT max(last) FROM usage WHERE skill = ?1 AND kind = 'load'";

fn last_loads(
    connection: &Connection,
    skills: &[String],
) -> rusqlite::Result<Vec<Option<Timestamp>>> {
    // One transaction: else the file is locked for each of them.
    let together = connection.unchecked_transaction()?;
    let mut statement = together.prepare_cached(LAST_LOAD)?;
    let last = |skill: &String| {
        let last: Option<i64> = statement.query_row([skill], |row| row.get(0))?;
        Ok(last.and_then(|last| Timestamp::from_millisecond(last).ok()))
    };
    skills.iter().map(last).collect()
}

fn totals(connection: &Connection) -> rusqlite::Result<Vec<UsageRow>> {
    let mut statement = connection.prepare_cached(
        "SELECT skill, max(day), kind, version, '', code, sum(count), sum(errors), sum(elapsed_us),
         sum(bytes), sum(tokens), max(last)
         FROM usage GROUP BY skill, kind, version, code ORDER BY skill, kind, version, code",
    )?;
    statement.query_map([], usage_row)?.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_load_is_found_without_looking_at_all_rows() {
        let mut connection = Connection::open_in_memory().unwrap();
        super::super::schema::prepare(&mut connection).unwrap();
        let plan: String = connection
            .query_row(&format!("EXPLAIN QUERY PLAN {LAST_LOAD}"), ["a"], |row| row.get(3))
            .unwrap();
        assert!(plan.contains("COVERING INDEX usage_by_last (skill=? AND kind=?)"), "{plan}");
    }
}
