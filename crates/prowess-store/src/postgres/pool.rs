//! Connections to PostgreSQL: so many, so many who wait for one, and not for ever.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, PgConnection};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::unavailable::Unavailable;

/// So often an operation is tried again after others were in its way.
const CONFLICTS: usize = 10;

/// The server gives up first, so that it can say why.
const SLACK: Duration = Duration::from_secs(1);

/// Who takes this lock changes the registry alone, so that changes are seen in the order of their
/// places in the log.
const CHANGE: &str = "BEGIN; SELECT pg_advisory_xact_lock(5786364013568)";

/// One point in time for several questions.
const LOOK: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// What bounds a store in PostgreSQL.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PostgresSettings {
    /// So many connections at most. One more listens to notices.
    pub connections: usize,
    /// So many operations wait for a connection at most. The others are refused at once, so that
    /// nothing piles up while the server is away.
    pub waiting: usize,
    /// So long an operation waits for a connection, and a connection for the server.
    pub connect_time: Duration,
    /// So long a statement may take; the server stops it then. Where the server does not answer at
    /// all, an operation ends a second later by itself.
    pub statement_time: Duration,
}

impl Default for PostgresSettings {
    fn default() -> Self {
        Self {
            connections: 16,
            waiting: 1024,
            connect_time: Duration::from_secs(5),
            statement_time: Duration::from_secs(10),
        }
    }
}

/// Why an operation came to nothing.
#[derive(Debug)]
pub(super) enum Failed<E> {
    /// That is the answer.
    Said(E),
    /// The database has failed, and nothing was changed.
    Undone(sqlx::Error),
    /// The database has failed, and whether something was changed nobody knows.
    Unknown(sqlx::Error),
}

impl<E> From<sqlx::Error> for Failed<E> {
    fn from(error: sqlx::Error) -> Self {
        Self::Undone(error)
    }
}

impl<E> Failed<E> {
    /// What a statement came to that commits by itself.
    pub(super) fn at_commit(error: sqlx::Error) -> Self {
        match fault(&error) {
            Fault::Lost => Self::Unknown(error),
            Fault::Conflict | Fault::Other => Self::Undone(error),
        }
    }
}

/// What an error says about the connection.
enum Fault {
    /// It is good; others were in the way.
    Conflict,
    /// It is of no use any more.
    Lost,
    Other,
}

fn fault(error: &sqlx::Error) -> Fault {
    let Some(error) = error.as_database_error() else { return Fault::Lost };
    match error.code().as_deref().unwrap_or_default() {
        // Could not be put in a row with others; each waits for the other.
        "40001" | "40P01" => Fault::Conflict,
        // The server shuts down; it is not the one that writes any more.
        code if code.starts_with("57P") || code.starts_with("08") || code == "25006" => Fault::Lost,
        _ => Fault::Other,
    }
}

impl From<sqlx::Error> for Unavailable {
    fn from(error: sqlx::Error) -> Self {
        Self(error.to_string())
    }
}

/// Connections. Cheap to clone.
#[derive(Clone)]
pub(super) struct Pool(Arc<Shared>);

struct Shared {
    servers: Vec<PgConnectOptions>,
    settings: PostgresSettings,
    /// One for each connection that may be used at a time.
    places: Semaphore,
    /// One for each operation, whether it has a connection or waits for one.
    callers: Semaphore,
    idle: Mutex<Vec<PgConnection>>,
    /// Which server wrote last: it is asked first.
    writer: AtomicUsize,
}

impl Shared {
    fn idle(&self) -> MutexGuard<'_, Vec<PgConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that is closed unless it is given back.
struct Lent<'a> {
    connection: PgConnection,
    /// Whether it may have been lost while nobody looked.
    was_idle: bool,
    shared: &'a Shared,
    _place: SemaphorePermit<'a>,
}

impl Lent<'_> {
    fn give_back(self) {
        self.shared.idle().push(self.connection);
    }
}

impl Pool {
    pub(super) fn new(servers: Vec<PgConnectOptions>, settings: PostgresSettings) -> Self {
        let limit = format!("{}ms", settings.statement_time.as_millis());
        // Whoever stops in the middle of a change does not keep others from theirs.
        let limits =
            [("statement_timeout", &limit), ("idle_in_transaction_session_timeout", &limit)];
        let prepared = servers.into_iter().map(|server| {
            server.application_name("prowess").options(limits).disable_statement_logging()
        });
        Self(Arc::new(Shared {
            servers: prepared.collect(),
            places: Semaphore::new(settings.connections.max(1)),
            callers: Semaphore::new(settings.connections.max(1) + settings.waiting),
            idle: Mutex::default(),
            writer: AtomicUsize::new(0),
            settings,
        }))
    }

    pub(super) fn settings(&self) -> &PostgresSettings {
        &self.0.settings
    }

    /// A connection of one's own to the server that writes.
    pub(super) async fn connect(&self) -> Result<PgConnection, Unavailable> {
        Ok(self.connect_to_writer().await?.1)
    }

    /// A connection that hears what is told on the server that writes.
    pub(super) async fn listener(&self) -> Result<PgListener, Unavailable> {
        let (server, connection) = self.connect_to_writer().await?;
        drop(connection);
        let one = PgPoolOptions::new()
            .max_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .acquire_timeout(self.0.settings.connect_time)
            .connect_lazy_with(server.clone());
        Ok(PgListener::connect_with(&one).await?)
    }

    async fn connect_to_writer(&self) -> Result<(&PgConnectOptions, PgConnection), Unavailable> {
        let shared = &self.0;
        let mut cause = Unavailable("no server is named".to_owned());
        let time = shared.settings.connect_time / u32::try_from(shared.servers.len()).unwrap_or(1);
        let (count, first) = (shared.servers.len(), shared.writer.load(Ordering::Relaxed));
        for at in (first..count).chain(0..first) {
            let server = &shared.servers[at];
            cause = match timeout(time, connect_to(server)).await {
                Ok(Ok(connection)) => {
                    shared.writer.store(at, Ordering::Relaxed);
                    return Ok((server, connection));
                }
                Ok(Err(error)) => error,
                Err(_) => Unavailable(format!("PostgreSQL does not answer within {time:?}")),
            };
        }
        Err(cause)
    }

    /// Does something in single statements.
    pub(super) async fn ask<T, E, F>(&self, operation: F) -> Result<T, E>
    where
        E: From<Unavailable>,
        F: AsyncFnMut(&mut PgConnection) -> Result<T, Failed<E>>,
    {
        self.bounded(None, operation).await
    }

    /// Asks several things at one point in time.
    pub(super) async fn look<T, E, F>(&self, operation: F) -> Result<T, E>
    where
        E: From<Unavailable>,
        F: AsyncFnMut(&mut PgConnection) -> Result<T, Failed<E>>,
    {
        self.bounded(Some(LOOK), operation).await
    }

    /// Changes the registry, or what else is in its log: all of it or nothing, and alone.
    pub(super) async fn change<T, E, F>(&self, operation: F) -> Result<T, E>
    where
        E: From<Unavailable>,
        F: AsyncFnMut(&mut PgConnection) -> Result<T, Failed<E>>,
    {
        self.bounded(Some(CHANGE), operation).await
    }

    async fn bounded<T, E, F>(&self, begin: Option<&'static str>, operation: F) -> Result<T, E>
    where
        E: From<Unavailable>,
        F: AsyncFnMut(&mut PgConnection) -> Result<T, Failed<E>>,
    {
        let settings = &self.0.settings;
        let Ok(_caller) = self.0.callers.try_acquire() else {
            let cause = format!("{} operations wait for PostgreSQL already", settings.waiting);
            return Err(Unavailable(cause).into());
        };
        let time = settings.connect_time + settings.statement_time + SLACK;
        match timeout(time, self.run(begin, operation)).await {
            Ok(result) => result,
            Err(_) => {
                // Nobody waits for the others that were made before.
                self.0.idle().clear();
                Err(Unavailable(format!("PostgreSQL does not answer within {time:?}")).into())
            }
        }
    }

    async fn run<T, E, F>(&self, begin: Option<&'static str>, mut operation: F) -> Result<T, E>
    where
        E: From<Unavailable>,
        F: AsyncFnMut(&mut PgConnection) -> Result<T, Failed<E>>,
    {
        let mut conflicts = 0;
        loop {
            let mut lent = self.take().await?;
            let error = match framed(&mut lent.connection, begin, &mut operation).await {
                Ok(done) => {
                    lent.give_back();
                    return Ok(done);
                }
                Err(Failed::Said(error)) => {
                    lent.give_back();
                    return Err(error);
                }
                Err(Failed::Unknown(error)) => {
                    let cause = format!("the connection was lost before the answer: {error}");
                    return Err(Unavailable(cause).into());
                }
                Err(Failed::Undone(error)) => error,
            };
            match fault(&error) {
                Fault::Conflict if conflicts < CONFLICTS => {
                    conflicts += 1;
                    if rollback(&mut lent.connection).await.is_ok() {
                        lent.give_back();
                    }
                }
                // So are probably all that waited with it; a new one shows whether the server is
                // there.
                Fault::Lost if lent.was_idle => {
                    self.0.idle().clear();
                }
                _ => return Err(Unavailable::from(error).into()),
            }
        }
    }

    async fn take(&self) -> Result<Lent<'_>, Unavailable> {
        let shared = &*self.0;
        let time = shared.settings.connect_time;
        let Ok(Ok(place)) = timeout(time, shared.places.acquire()).await else {
            let cause = format!("all connections to PostgreSQL are in use for {time:?}");
            return Err(Unavailable(cause));
        };
        let idle = shared.idle().pop();
        let was_idle = idle.is_some();
        let connection = match idle {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        Ok(Lent { connection, was_idle, shared, _place: place })
    }
}

/// One operation, in a transaction if it begins with one.
async fn framed<T, E, F>(
    connection: &mut PgConnection,
    begin: Option<&'static str>,
    operation: &mut F,
) -> Result<T, Failed<E>>
where
    F: AsyncFnMut(&mut PgConnection) -> Result<T, Failed<E>>,
{
    let Some(begin) = begin else { return operation(connection).await };
    sqlx::raw_sql(begin).execute(&mut *connection).await?;
    match operation(connection).await {
        Ok(done) => {
            let committed = sqlx::raw_sql("COMMIT").execute(connection).await;
            committed.map_err(Failed::at_commit)?;
            Ok(done)
        }
        Err(Failed::Said(error)) => {
            rollback(connection).await?;
            Err(Failed::Said(error))
        }
        Err(failed) => Err(failed),
    }
}

async fn rollback(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::raw_sql("ROLLBACK").execute(connection).await.map(drop)
}

/// A connection to a server, if it writes. What it acknowledges is on its disk.
async fn connect_to(server: &PgConnectOptions) -> Result<PgConnection, Unavailable> {
    let mut connection = PgConnection::connect_with(server).await?;
    let is_standby: bool = sqlx::query_scalar(
        "SELECT pg_is_in_recovery() FROM (SELECT CASE current_setting('synchronous_commit')
         WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END OFFSET 0) made_sure",
    )
    .fetch_one(&mut connection)
    .await?;
    match is_standby {
        false => Ok(connection),
        true => Err(Unavailable("the PostgreSQL server only follows another one".to_owned())),
    }
}
