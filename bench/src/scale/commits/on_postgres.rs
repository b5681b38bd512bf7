//! A commit on PostgreSQL, and the same statements by `sqlx` alone.

use anyhow::{Context, Result, bail};
use prowess_runtime::Fence;
use prowess_store::PostgresStore;
use sqlx::{Connection, PgConnection, Row as _};
use tokio::runtime::Runtime;

use super::{Job, Kind, Ours, Sent, compare, measure, now, verdict};
use crate::results::Row;

/// So many agents are counted apart.
const AGENTS: i64 = 100;

pub(super) fn row(tokio: &Runtime, url: &str, kind: Kind) -> Result<Row> {
    let (our_job, bare_job) = (Job::new(kind, "ours")?, Job::new(kind, "bare")?);
    let (sql, fence) = tokio.block_on(statements(url, &our_job, &bare_job))?;
    let store = tokio.block_on(PostgresStore::open(url))?.sessions();
    let mut ours = tokio.block_on(Ours::new(&store, &our_job))?;
    let mut bare = tokio.block_on(Bare::new(url, &bare_job, sql, fence))?;
    let seconds = measure(tokio, async || ours.commit().await, async || bare.commit().await)?;
    let done = (&bare_job, bare.revision.unsigned_abs());
    tokio.block_on(verdict("PostgreSQL", &store, done, seconds))
}

/// The statements of a commit, in their order.
type Statements = Vec<&'static str>;

/// Sees what a commit of ours sends, and that a bare one sends the same. Both sessions are as large
/// as they become; the bare one is held with this number.
async fn statements(url: &str, our_job: &Job, bare_job: &Job) -> Result<(Statements, Fence)> {
    let mut log = Log::begin(url).await?;
    let store = PostgresStore::open(url).await?.sessions();
    let mut ours = Ours::new(&store, our_job).await?;
    ours.warm_up().await?;
    let mut other = Ours::new(&store, bare_job).await?;
    other.warm_up().await?;
    log.skip().await?;
    ours.commit().await?;
    let sent = log.sent().await?;
    // It lives as long as this program, as the statements of the store do.
    let sql: Statements = sent.iter().map(|it| &*it.what.clone().leak()).collect();
    let mut bare = Bare::new(url, bare_job, sql.clone(), other.fence).await?;
    bare.commit().await?;
    log.skip().await?;
    bare.commit().await?;
    compare(&sent, &log.sent().await?)?;
    log.end().await?;
    Ok((sql, other.fence))
}

/// What the server writes down of the statements of those who connect from now on.
struct Log {
    connection: PgConnection,
    /// So many bytes are seen.
    seen: usize,
}

impl Log {
    async fn begin(url: &str) -> Result<Self> {
        let mut connection = PgConnection::connect(url).await?;
        set(&mut connection, "SET log_statement = 'all'").await?;
        Ok(Self { connection, seen: 0 })
    }

    async fn end(mut self) -> Result<()> {
        set(&mut self.connection, "RESET log_statement").await
    }

    async fn new_text(&mut self) -> Result<String> {
        let log = "SELECT pg_read_file(current_setting('data_directory') || '/../server.log')";
        let text: String = sqlx::query_scalar(log).fetch_one(&mut self.connection).await?;
        let new = text.get(self.seen..).context("the log of the server is shorter than it was")?;
        self.seen = text.len();
        Ok(new.to_owned())
    }

    async fn skip(&mut self) -> Result<()> {
        self.new_text().await.map(drop)
    }

    /// What was executed since.
    async fn sent(&mut self) -> Result<Vec<Sent>> {
        let mut sent: Vec<Sent> = Vec::new();
        // Further lines of a text begin with a tab.
        for entry in self.new_text().await?.replace("\n\t", "\0").lines() {
            let entry = entry.replace('\0', "\n");
            // With values, or as a text alone, as transactions are begun.
            let executed = entry.split_once("LOG:  execute ").map(|(_, statement)| statement);
            let alone = || entry.split_once("LOG:  ").map(|(_, rest)| rest);
            let alone = || alone().filter(|rest| rest.starts_with("statement: "));
            if let Some(statement) = executed.or_else(alone) {
                let (_, what) = statement.split_once(": ").context("a statement without name")?;
                sent.push(Sent { what: what.to_owned(), with: String::new() });
            } else if let (Some((_, with)), Some(last)) =
                (entry.split_once("DETAIL:  "), sent.last_mut())
            {
                with.clone_into(&mut last.with);
            }
        }
        Ok(sent)
    }
}

/// Changes a setting of the database for all who connect later.
async fn set(connection: &mut PgConnection, what: &str) -> Result<()> {
    let database: String =
        sqlx::query_scalar("SELECT current_database()::text").fetch_one(&mut *connection).await?;
    let sql = sqlx::AssertSqlSafe(format!("ALTER DATABASE {database} {what}"));
    sqlx::raw_sql(sql).execute(connection).await?;
    Ok(())
}

/// A connection that sends what the store does.
struct Bare<'a> {
    connection: PgConnection,
    job: &'a Job,
    sql: Statements,
    messages: Vec<String>,
    events: Vec<String>,
    payload: String,
    fence: i64,
    revision: i64,
}

impl<'a> Bare<'a> {
    async fn new(url: &str, job: &'a Job, sql: Statements, fence: Fence) -> Result<Self> {
        Ok(Self {
            connection: PgConnection::connect(url).await?,
            job,
            sql,
            messages: job.message_texts()?,
            events: vec![job.event_text()?],
            payload: format!("session:{}", job.key),
            fence: i64::try_from(fence.0)?,
            revision: 0,
        })
    }

    async fn commit(&mut self) -> Result<()> {
        let (job, connection) = (self.job, &mut self.connection);
        let (find, resolve, append) = match (job.kind, &self.sql[..]) {
            (Kind::Call, &[find, append]) => (find, None, append),
            (Kind::Load, &[find, resolve, append]) => (find, Some(resolve), append),
            (_, others) => bail!("a commit is other statements now: {others:?}"),
        };
        let key = &job.key;
        let found = sqlx::query(find)
            .bind(key.app())
            .bind(key.user())
            .bind(key.session())
            .fetch_one(&mut *connection)
            .await?;
        let (id, revision, state): (i64, i64, String) =
            (found.try_get(0)?, found.try_get(1)?, found.try_get(2)?);
        let (skill, agent, day) = (job.skill.as_str(), job.agent.as_str(), job.day());
        if let Some(resolve) = resolve {
            sqlx::query(resolve)
                .bind([skill].as_slice())
                .bind([None::<&str>].as_slice())
                .bind([true].as_slice())
                .bind([day.as_str()].as_slice())
                .bind([agent].as_slice())
                .bind(AGENTS)
                .fetch_all(&mut *connection)
                .await?;
        }
        let mut query = sqlx::query(append)
            .bind(agent)
            .bind(&self.messages)
            .bind(&self.events)
            .bind(&self.payload)
            .bind(revision + 1)
            .bind(state)
            .bind(now()?)
            .bind(None::<i64>);
        if job.kind == Kind::Load {
            let last = job.event.time.as_millisecond();
            for text in [skill, &day, "load", agent, ""] {
                query = query.bind(vec![text.to_owned()]);
            }
            for number in [-1, 1, 0, 0, 0, 0, last] {
                query = query.bind(vec![number]);
            }
            for text in [skill, &key.to_string(), &day] {
                query = query.bind(vec![text.to_owned()]);
            }
        }
        query.bind(id).bind(self.fence).fetch_one(connection).await?;
        self.revision = revision + 1;
        Ok(())
    }
}
