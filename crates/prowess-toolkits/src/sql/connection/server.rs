//! What all servers have in common: sessions that are used again, limits of time, and an end on the
//! server for what nobody waits for.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Number, Value};
use tokio::sync::Semaphore;
use tokio::time::{timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::Terms;
use crate::sql::error::SqlError;
use crate::sql::guard::{Named, SqlRefusal};
use crate::sql::hidden::Asked;
use crate::sql::layers::Layer;
use crate::sql::result::{Collector, Flow};

/// So much longer than the server is waited for, which has the same limit.
const GRACE: Duration = Duration::from_millis(500);

/// A session that was used so shortly ago is taken to be there.
const FRESH: Duration = Duration::from_secs(1);

/// A server.
pub(super) trait Server: Send + Sync + 'static {
    /// A session on it.
    type Session: Send;

    /// What it needs to know.
    fn terms(&self) -> &Terms;
    /// Sessions that nobody uses, and how many more there may be.
    fn pool(&self) -> &Pool<Self::Session>;
    /// What the server calls a session.
    fn id(session: &Self::Session) -> u64;

    /// A new session.
    fn connect(&self) -> impl Future<Output = Result<Self::Session, SqlError>> + Send;
    /// Whether it is still there.
    fn is_alive(session: &mut Self::Session) -> impl Future<Output = bool> + Send;
    /// Begins what cannot write.
    fn begin_reading(
        &self,
        session: &mut Self::Session,
    ) -> impl Future<Output = Result<(), SqlError>> + Send;
    /// What the server would call for a statement that does not say so, if that is not allowed.
    fn hidden(
        &self,
        session: &mut Self::Session,
        sql: &str,
        named: &Named,
    ) -> impl Future<Output = Result<Option<SqlRefusal>, SqlError>> + Send;
    /// Has the server read one statement, which must be one, and give rows.
    fn check(
        &self,
        session: &mut Self::Session,
        sql: &str,
    ) -> impl Future<Output = Result<(), SqlError>> + Send;
    /// Runs a statement.
    fn run(
        &self,
        session: &mut Self::Session,
        sql: String,
        collector: &mut Collector,
    ) -> impl Future<Output = Result<Flow, SqlError>> + Send;
    /// Undoes whatever a statement did to the session.
    fn end_reading(
        &self,
        session: &mut Self::Session,
    ) -> impl Future<Output = Result<(), SqlError>> + Send;
    /// Runs one statement that writes, whole or not at all.
    fn write(
        &self,
        session: &mut Self::Session,
        sql: String,
    ) -> impl Future<Output = Result<u64, SqlError>> + Send;
    /// Ends what a session does, from another one.
    fn stop(&self, id: u64) -> impl Future<Output = Result<(), SqlError>> + Send;
}

/// Sessions that nobody uses, and how many more there may be.
pub(super) struct Pool<S> {
    slots: Semaphore,
    /// With when they were given back.
    idle: Mutex<Vec<(Instant, S)>>,
}

impl<S> Pool<S> {
    pub(super) fn new(most: usize) -> Self {
        Self { slots: Semaphore::new(most), idle: Mutex::new(Vec::new()) }
    }

    fn take(&self) -> Option<(Instant, S)> {
        self.idle.lock().ok()?.pop()
    }

    fn give(&self, session: S) {
        if let Ok(mut idle) = self.idle.lock() {
            idle.push((Instant::now(), session));
        }
    }
}

/// What is to be done on a session.
enum Task {
    Read(Asked, Box<Collector>),
    Prepare(Asked),
    Write(String),
}

/// What came of it.
enum Done {
    Rows(Box<Collector>),
    Prepared,
    Wrote(u64),
}

/// Runs one statement that reads.
pub(super) async fn read<S: Server>(
    server: &Arc<S>,
    asked: Asked,
    collector: Collector,
) -> Result<Collector, SqlError> {
    match spawn(server, Task::Read(asked, Box::new(collector))).await? {
        Done::Rows(collector) => Ok(*collector),
        _ => Err(SqlError::Cancelled),
    }
}

/// Has the server read a statement.
pub(super) async fn prepare<S: Server>(server: &Arc<S>, asked: Asked) -> Result<(), SqlError> {
    spawn(server, Task::Prepare(asked)).await.map(drop)
}

/// Runs one statement that writes.
pub(super) async fn write<S: Server>(server: &Arc<S>, sql: String) -> Result<u64, SqlError> {
    match spawn(server, Task::Write(sql)).await? {
        Done::Wrote(rows) => Ok(rows),
        _ => Err(SqlError::Cancelled),
    }
}

/// Does it on a task of its own, which ends it on the server if nobody waits any more.
async fn spawn<S: Server>(server: &Arc<S>, task: Task) -> Result<Done, SqlError> {
    let token = CancellationToken::new();
    let _stop = token.clone().drop_guard();
    let server = Arc::clone(server);
    let work = async move { work(&*server, &token, task).await };
    let done = tokio::spawn(work.in_current_span()).await;
    done.unwrap_or(Err(SqlError::Cancelled))
}

async fn work<S: Server>(
    server: &S,
    token: &CancellationToken,
    task: Task,
) -> Result<Done, SqlError> {
    let terms = server.terms();
    let gone = |_| terms.unreachable("it is closed");
    let _slot = server.pool().slots.acquire().await.map_err(gone)?;
    if token.is_cancelled() {
        return Err(SqlError::Cancelled);
    }
    let mut session = session(server).await?;
    let id = S::id(&session);
    let deadline = tokio::time::Instant::now() + terms.timeout + GRACE;
    let is_write = matches!(task, Task::Write(_));
    let running = timeout_at(deadline, run(server, &mut session, task));
    let outcome = token.run_until_cancelled(running).await;
    match outcome {
        Some(Ok(Ok((done, Flow::More)))) => {
            finish(server, session, is_write).await;
            Ok(done)
        }
        // The rest of the rows is not wanted.
        Some(Ok(Ok((done, Flow::Enough)))) => {
            end(server, id, session).await;
            Ok(done)
        }
        Some(Ok(Err(error))) if error.leaves_rows() && !is_write => {
            end(server, id, session).await;
            Err(error)
        }
        Some(Ok(Err(error))) => {
            finish(server, session, is_write).await;
            Err(error)
        }
        Some(Err(_)) => {
            end(server, id, session).await;
            Err(SqlError::Timeout { seconds: terms.timeout.as_secs() })
        }
        None => {
            end(server, id, session).await;
            Err(SqlError::Cancelled)
        }
    }
}

/// A session that is there.
async fn session<S: Server>(server: &S) -> Result<S::Session, SqlError> {
    let terms = server.terms();
    while let Some((since, mut session)) = server.pool().take() {
        if since.elapsed() < FRESH {
            return Ok(session);
        }
        let alive = timeout(terms.connect, S::is_alive(&mut session)).await;
        if alive == Ok(true) {
            return Ok(session);
        }
    }
    let late = |_| terms.unreachable("it did not answer in time");
    timeout(terms.connect, server.connect()).await.map_err(late)?
}

async fn run<S: Server>(
    server: &S,
    session: &mut S::Session,
    task: Task,
) -> Result<(Done, Flow), SqlError> {
    let is_guarded = server.terms().layers.session == Layer::On;
    match task {
        Task::Read(asked, mut collector) => {
            if is_guarded {
                server.begin_reading(session).await?;
            }
            look_behind(server, session, &asked).await?;
            if is_guarded {
                server.check(session, &asked.sql).await?;
            }
            let flow = server.run(session, asked.sql, &mut collector).await?;
            Ok((Done::Rows(collector), flow))
        }
        Task::Prepare(asked) => {
            server.begin_reading(session).await?;
            look_behind(server, session, &asked).await?;
            server.check(session, &asked.sql).await?;
            Ok((Done::Prepared, Flow::More))
        }
        Task::Write(sql) => {
            let rows = server.write(session, sql).await?;
            Ok((Done::Wrote(rows), Flow::More))
        }
    }
}

/// Refuses what the server would call although the statement does not say so.
async fn look_behind<S: Server>(
    server: &S,
    session: &mut S::Session,
    asked: &Asked,
) -> Result<(), SqlError> {
    let Some(named) = &asked.named else { return Ok(()) };
    match server.hidden(session, &asked.sql, named).await? {
        Some(refusal) => Err(SqlError::Refused(refusal)),
        None => Ok(()),
    }
}

/// Undoes what was done to the session, and keeps it for later.
async fn finish<S: Server>(server: &S, mut session: S::Session, is_write: bool) {
    // What wrote is not used to read.
    let is_guarded = server.terms().layers.session == Layer::On && !is_write;
    if is_guarded
        && let Ok(Ok(())) = timeout(server.terms().connect, server.end_reading(&mut session)).await
    {
        server.pool().give(session);
    }
}

/// Ends on the server what a session does, and gives the session up.
async fn end<S: Server>(server: &S, id: u64, session: S::Session) {
    let stopped = timeout(server.terms().connect, server.stop(id)).await;
    if !matches!(stopped, Ok(Ok(()))) {
        let connection = &server.terms().name;
        tracing::warn!(connection, "a query could not be ended on the server; its limit will");
    }
    drop(session);
}

/// The limits of a statement while its rows come. Rows that wait in the memory of the driver leave
/// no time to anything else: whoever takes them looks at the clock.
pub(super) struct Bounds {
    until: Instant,
    seconds: u64,
    max_value_bytes: usize,
}

impl Bounds {
    /// From now on.
    pub(super) fn new(terms: &Terms) -> Self {
        Self {
            until: Instant::now() + terms.timeout + GRACE,
            seconds: terms.timeout.as_secs(),
            max_value_bytes: terms.max_value_bytes,
        }
    }

    /// Whether there is time for one more row.
    pub(super) fn time(&self) -> Result<(), SqlError> {
        match Instant::now() > self.until {
            true => Err(SqlError::Timeout { seconds: self.seconds }),
            false => Ok(()),
        }
    }

    /// Whether a value of so many bytes, as the server sent it, is taken.
    pub(super) fn value(&self, bytes: usize) -> Result<(), SqlError> {
        match bytes > self.max_value_bytes {
            true => Err(SqlError::TooBig { most: self.max_value_bytes }),
            false => Ok(()),
        }
    }
}

/// A value as the server writes it, by its type.
pub(super) fn json_of(kind: &str, text: String) -> Value {
    let kind = kind.trim_end_matches(" UNSIGNED");
    match kind {
        "INT2" | "INT4" | "INT8" | "OID" | "TINYINT" | "SMALLINT" | "MEDIUMINT" | "INT"
        | "BIGINT" | "YEAR" => match (text.parse::<i64>(), text.parse::<u64>()) {
            (Ok(number), _) => number.into(),
            (_, Ok(number)) => number.into(),
            _ => text.into(),
        },
        "FLOAT4" | "FLOAT8" | "FLOAT" | "DOUBLE" => {
            match text.parse::<f64>().ok().and_then(Number::from_f64) {
                Some(number) => Value::Number(number),
                None => text.into(),
            }
        }
        "BOOL" => match text.as_str() {
            "t" => true.into(),
            "f" => false.into(),
            _ => text.into(),
        },
        "BOOLEAN" => text.parse::<i64>().map_or_else(|_| text.clone().into(), Value::from),
        _ => text.into(),
    }
}

/// Bytes that are no text.
pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(bytes.len() * 2 + 3);
    text.push_str("x'");
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text.push('\'');
    text
}
