//! What skills are used for, in a PostgreSQL database.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use jiff::Timestamp;
use prowess_runtime::{Event, SessionKey};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{PgConnection, Postgres, Row};

use super::pool::Failed;
use super::{Database, storable};
use crate::usage::count::{
    AGENTS_PER_DAY, AgentOfDay, Sums, UNKNOWN_SKILL, agents, counted, day_of, kind, use_of, word,
};
use crate::usage::{SkillUsage, UsageRow, UsageStore, Use};
use crate::version::rows::{signed, time};
use crate::version::{VersionError, VersionFuture};

/// Who takes this lock decides alone which agents are counted apart.
const AGENTS_LOCK: &str = "BEGIN; SELECT pg_advisory_xact_lock(5786364013570)";

/// What skills are used for, in a PostgreSQL database. Sessions in the same database count by
/// themselves, in the transaction that commits their events.
#[derive(Clone, Debug)]
pub struct PostgresUsage {
    database: Database,
}

impl PostgresUsage {
    pub(super) fn new(database: Database) -> Self {
        Self { database }
    }
}

impl UsageStore for PostgresUsage {
    fn record(&self, uses: Vec<Use>) -> VersionFuture<'_, ()> {
        let found: Vec<Unresolved> = uses.into_iter().map(Unresolved::by_hand).collect();
        Box::pin(self.database.pool.ask(async move |connection| {
            let Some(columns) = resolve(connection, found.clone()).await? else { return Ok(()) };
            let counted = columns.bind(sqlx::query(RECORD.as_str())).execute(connection).await;
            counted.map_err(Failed::at_commit)?;
            Ok(())
        }))
    }

    fn probe(&self) -> VersionFuture<'_, ()> {
        Box::pin(self.database.pool.ask(async |connection: &mut PgConnection| {
            // A row that everybody has, written again as it is.
            let again = "UPDATE prowess_schema SET version = version";
            sqlx::query(again).execute(connection).await.map_err(Failed::at_commit)?;
            Ok(())
        }))
    }

    fn usage<'a>(&'a self, skill: &'a str) -> VersionFuture<'a, SkillUsage> {
        let skill = skill.to_owned();
        Box::pin(
            self.database.pool.look(async move |connection| usage_of(connection, &skill).await),
        )
    }

    fn last_loads(&self, skills: Vec<String>) -> VersionFuture<'_, Vec<Option<Timestamp>>> {
        Box::pin(
            self.database.pool.ask(async move |connection| last_loads(connection, &skills).await),
        )
    }

    fn totals(&self) -> VersionFuture<'_, Vec<UsageRow>> {
        Box::pin(self.database.pool.ask(totals))
    }
}

/// A use of a skill of which is not yet known whether it is there.
#[derive(Clone)]
struct Unresolved {
    it: Use,
    /// What identifies the files that were used.
    tree: Option<String>,
    /// Whether it counts under its name wherever it came from.
    is_loaded: bool,
}

impl Unresolved {
    fn by_hand(mut it: Use) -> Self {
        for text in [&mut it.agent, &mut it.session, &mut it.code].into_iter().flatten() {
            *text = storable(text);
        }
        it.skill = storable(&it.skill);
        Self { it, tree: None, is_loaded: false }
    }

    fn of(event: &Event, session: &str) -> Option<Self> {
        let mut it = use_of(event)?;
        it.session = Some(session.to_owned());
        let tree = event.skill.as_ref().and(event.tree_digest.as_ref()).map(ToString::to_string);
        // Anybody can ask for any name. What was loaded is there, wherever it came from.
        let is_loaded = event.digest.is_some();
        Some(Self { tree, is_loaded, ..Self::by_hand(it) })
    }
}

/// What the events of a session add to the counters, if they add anything.
pub(super) async fn uses_of<E>(
    connection: &mut PgConnection,
    session: &SessionKey,
    events: &[Event],
) -> Result<Option<Columns>, Failed<E>> {
    let session = session.to_string();
    let uses = events.iter().filter_map(|event| Unresolved::of(event, &session)).collect();
    resolve(connection, uses).await
}

/// For each use: whether its skill is in the registry or was, the version whose files were used,
/// whether its agent is counted apart, and whether it could be.
const RESOLVE: &str = "
    SELECT known.id IS NOT NULL,
    (SELECT v.number FROM versions v WHERE v.skill = it.skill AND v.tree_digest = it.tree
     ORDER BY v.number = known.active_version DESC NULLS LAST, v.number DESC LIMIT 1),
    own.agent IS NOT NULL,
    own.agent IS NULL AND (SELECT count(*) FROM usage_agents others
     WHERE others.skill = CASE WHEN it.is_loaded OR known.id IS NOT NULL THEN it.skill ELSE '' END
     AND others.day = it.day) < $6
    FROM unnest($1::text[], $2::text[], $3::bool[], $4::text[], $5::text[]) WITH ORDINALITY
    it (skill, tree, is_loaded, day, agent, place)
    LEFT JOIN skills known ON known.id = it.skill
    LEFT JOIN usage_agents own ON own.day = it.day AND own.agent = it.agent
    AND own.skill = CASE WHEN it.is_loaded OR known.id IS NOT NULL THEN it.skill ELSE '' END
    ORDER BY it.place
";

/// What these uses add to the counters, if there are any.
async fn resolve<E>(
    connection: &mut PgConnection,
    found: Vec<Unresolved>,
) -> Result<Option<Columns>, Failed<E>> {
    if found.is_empty() {
        return Ok(None);
    }
    let texts = |of: fn(&Unresolved) -> String| found.iter().map(of).collect::<Vec<_>>();
    let trees: Vec<Option<String>> = found.iter().map(|it| it.tree.clone()).collect();
    let loaded: Vec<bool> = found.iter().map(|it| it.is_loaded).collect();
    let rows = sqlx::query(RESOLVE)
        .bind(texts(|it| it.it.skill.clone()))
        .bind(trees)
        .bind(&loaded)
        .bind(texts(|it| day_of(it.it.time).to_string()))
        .bind(texts(|it| it.it.agent.clone().unwrap_or_default()))
        .bind(signed(AGENTS_PER_DAY))
        .fetch_all(&mut *connection)
        .await?;
    let mut uses = Vec::with_capacity(found.len());
    let mut agents_known = Vec::with_capacity(found.len());
    for (Unresolved { mut it, is_loaded, .. }, row) in found.into_iter().zip(&rows) {
        if !is_loaded && !row.try_get::<bool, _>(0)? {
            UNKNOWN_SKILL.clone_into(&mut it.skill);
        }
        if let Some(number) = row.try_get::<Option<i64>, _>(1)? {
            it.version = Some(number.unsigned_abs());
        }
        agents_known.push((row.try_get::<bool, _>(2)?, row.try_get::<bool, _>(3)?));
        uses.push(it);
    }
    let (mut apart, mut missing) = (BTreeSet::new(), BTreeSet::new());
    for (it, (is_apart, could_be)) in uses.iter().zip(agents_known) {
        for agent in agents(std::slice::from_ref(it)) {
            match (is_apart, could_be) {
                (true, _) => apart.insert(agent),
                (false, true) => missing.insert(agent),
                (false, false) => false,
            };
        }
    }
    if !missing.is_empty() {
        apart.extend(set_apart(connection, missing).await?);
    }
    Ok(Some(Columns::of(&uses, &apart)))
}

/// Which of these agents are counted apart from now on. The first ones of a day are. That one was
/// seen is remembered even if nothing comes of what it was seen for.
async fn set_apart<'a, E>(
    connection: &mut PgConnection,
    missing: BTreeSet<AgentOfDay<'a>>,
) -> Result<Vec<AgentOfDay<'a>>, Failed<E>> {
    let mut apart = Vec::new();
    sqlx::raw_sql(AGENTS_LOCK).execute(&mut *connection).await?;
    for (skill, day, agent) in missing {
        let has_own_row: bool = sqlx::query_scalar(
            "WITH added AS (
                 INSERT INTO usage_agents (skill, day, agent) SELECT $1, $2, $3
                 WHERE (SELECT count(*) FROM usage_agents WHERE skill = $1 AND day = $2) < $4
                 ON CONFLICT DO NOTHING RETURNING agent
             )
             SELECT EXISTS (SELECT FROM added) OR EXISTS (SELECT FROM usage_agents
             WHERE skill = $1 AND day = $2 AND agent = $3)",
        )
        .bind(skill)
        .bind(day.to_string())
        .bind(agent)
        .bind(signed(AGENTS_PER_DAY))
        .fetch_one(&mut *connection)
        .await?;
        if has_own_row {
            apart.push((skill, day, agent));
        }
    }
    sqlx::raw_sql("COMMIT").execute(connection).await?;
    Ok(apart)
}

/// What is added to the counters, by columns. Rows are in the order of their keys, so that those
/// who add to the same ones do not wait for each other in a circle.
#[derive(Default)]
pub(super) struct Columns {
    /// Skill, day, kind, agent, code.
    texts: [Vec<String>; 5],
    /// Version, count, errors, microseconds, bytes, tokens, last.
    numbers: [Vec<i64>; 7],
    /// Skill, session, day.
    sessions: [Vec<String>; 3],
}

impl Columns {
    /// So many parameters they are.
    pub(super) const COUNT: usize = 5 + 7 + 3;

    fn of(uses: &[Use], apart: &BTreeSet<AgentOfDay<'_>>) -> Self {
        let counted = counted(uses, apart);
        let mut columns = Self::default();
        for (key, sums) in counted.rows {
            let day = key.day.to_string();
            let texts = [key.skill, &day, word(key.kind), key.agent, key.code];
            columns.texts.iter_mut().zip(texts).for_each(|(to, it)| to.push(it.to_owned()));
            let Sums { count, errors, elapsed_us, bytes, tokens, last } = sums;
            let numbers = [key.version, count, errors, elapsed_us, bytes, tokens, last];
            columns.numbers.iter_mut().zip(numbers).for_each(|(to, it)| to.push(it));
        }
        for (skill, session, day) in counted.sessions {
            let day = day.to_string();
            let texts = [skill, session, &day];
            columns.sessions.iter_mut().zip(texts).for_each(|(to, it)| to.push(it.to_owned()));
        }
        columns
    }

    /// Adds them to a statement, in the order that [`count_sql`] expects.
    pub(super) fn bind<'q>(
        &'q self,
        query: Query<'q, Postgres, PgArguments>,
    ) -> Query<'q, Postgres, PgArguments> {
        let query = self.texts.iter().fold(query, Query::bind);
        let query = self.numbers.iter().fold(query, Query::bind);
        self.sessions.iter().fold(query, Query::bind)
    }
}

/// Parts of a statement that add [`Columns`] from this parameter on, if something was written.
pub(super) fn count_sql(written: &str, first: usize) -> String {
    let columns = |from: usize, types: &[&str]| {
        let column = |(at, kind): (usize, &&str)| format!("${}::{kind}[]", from + at);
        types.iter().enumerate().map(column).collect::<Vec<_>>().join(", ")
    };
    let rows = columns(first, &[["text"; 5].as_slice(), &["bigint"; 7]].concat());
    let sessions = columns(first + 12, &["text"; 3]);
    format!(
        "counted AS (
             INSERT INTO usage AS old (skill, day, kind, agent, code, version, count, errors,
             elapsed_us, bytes, tokens, last)
             SELECT one.* FROM {written}, unnest({rows}) one
             ON CONFLICT (skill, day, kind, version, agent, code) DO UPDATE SET
             count = old.count + excluded.count, errors = old.errors + excluded.errors,
             elapsed_us = old.elapsed_us + excluded.elapsed_us, bytes = old.bytes + excluded.bytes,
             tokens = old.tokens + excluded.tokens, last = greatest(old.last, excluded.last)
         ),
         seen AS (
             INSERT INTO usage_sessions (skill, session, day)
             SELECT one.* FROM {written}, unnest({sessions}) one ON CONFLICT DO NOTHING
         )"
    )
}

static RECORD: LazyLock<String> =
    LazyLock::new(|| format!("WITH written AS (SELECT 1), {} SELECT 1", count_sql("written", 1)));

fn usage_row<E>(row: &PgRow) -> Result<UsageRow, Failed<E>> {
    let some = |text: String| (!text.is_empty()).then_some(text);
    let number = |at: usize| row.try_get::<i64, _>(at).map(i64::unsigned_abs);
    Ok(UsageRow {
        skill: row.try_get(0)?,
        day: row.try_get::<&str, _>(1)?.parse().unwrap_or_default(),
        kind: kind(row.try_get(2)?),
        version: u64::try_from(row.try_get::<i64, _>(3)?).ok(),
        agent: some(row.try_get(4)?),
        code: some(row.try_get(5)?),
        count: number(6)?,
        errors: number(7)?,
        elapsed_us: number(8)?,
        bytes: number(9)?,
        tokens: number(10)?,
        last: time(row.try_get(11)?),
    })
}

type Result<T, E = Failed<VersionError>> = std::result::Result<T, E>;

async fn usage_of(connection: &mut PgConnection, skill: &str) -> Result<SkillUsage> {
    let skill = storable(skill);
    let rows = sqlx::query(
        "SELECT skill, day, kind, version, agent, code, count, errors, elapsed_us, bytes, tokens,
         last FROM usage WHERE skill = $1 ORDER BY day, kind, version, agent, code",
    )
    .bind(&skill)
    .fetch_all(&mut *connection)
    .await?;
    let unique: i64 =
        sqlx::query_scalar("SELECT count(DISTINCT session) FROM usage_sessions WHERE skill = $1")
            .bind(&skill)
            .fetch_one(&mut *connection)
            .await?;
    let days: Vec<(String, i64)> =
        sqlx::query_as("SELECT day, count(*) FROM usage_sessions WHERE skill = $1 GROUP BY day")
            .bind(&skill)
            .fetch_all(connection)
            .await?;
    let day = |(day, count): (String, i64)| (day.parse().unwrap_or_default(), count.unsigned_abs());
    Ok(SkillUsage {
        rows: rows.iter().map(usage_row).collect::<Result<_>>()?,
        unique_sessions: unique.unsigned_abs(),
        sessions_by_day: days.into_iter().map(day).collect(),
    })
}

async fn last_loads(
    connection: &mut PgConnection,
    skills: &[String],
) -> Result<Vec<Option<Timestamp>>> {
    let skills: Vec<String> = skills.iter().map(|skill| storable(skill)).collect();
    let last: Vec<Option<i64>> = sqlx::query_scalar(
        "SELECT (SELECT max(last) FROM usage WHERE skill = one.skill AND kind = 'load')
         FROM unnest($1::text[]) WITH ORDINALITY one (skill, place) ORDER BY one.place",
    )
    .bind(&skills)
    .fetch_all(connection)
    .await?;
    Ok(last.into_iter().map(|last| last.map(time)).collect())
}

async fn totals(connection: &mut PgConnection) -> Result<Vec<UsageRow>> {
    let rows = sqlx::query(
        "SELECT skill, max(day), kind, version, '', code, sum(count)::bigint, sum(errors)::bigint,
         sum(elapsed_us)::bigint, sum(bytes)::bigint, sum(tokens)::bigint, max(last)
         FROM usage GROUP BY skill, kind, version, code ORDER BY skill, kind, version, code",
    )
    .fetch_all(connection)
    .await?;
    rows.iter().map(usage_row).collect()
}
