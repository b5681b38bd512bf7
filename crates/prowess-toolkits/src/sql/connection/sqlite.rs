//! SQLite: a file, on a thread of its own.

mod rights;
mod worker;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, Statement};
use serde_json::Value;
use tokio::sync::oneshot::{self, error::TryRecvError};

use super::Terms;
use crate::sql::demo;
use crate::sql::error::SqlError;
use crate::sql::layers::Layer;
use crate::sql::result::{Collector, Column, Flow};
use rights::{is_harmful, is_reading};
use worker::{Access, Current, Job, Lookout, StopOnDrop, Waiting, Watch, Worker};

/// Steps of SQLite between two looks at the clock.
const STEPS: i32 = 1_000;
/// Who looks for the end of a statement looks so often before others have their turn: some
/// microseconds.
const LOOKS: usize = 64;
/// Who waits for a statement looks so often whether its thread is stuck.
const LOOK: Duration = Duration::from_millis(100);
/// How long a statement waits for another program that writes.
const BUSY: Duration = Duration::from_secs(2);

/// A database in a file. One thread has it; statements are done one after the other.
pub(crate) struct Sqlite {
    path: PathBuf,
    timeout: Duration,
    worker: Mutex<Option<Arc<Worker>>>,
    /// For the end of a statement.
    lookout: Lookout,
    /// Threads that were given up and have not ended.
    lost: Arc<AtomicUsize>,
    terms: Terms,
}

impl Sqlite {
    pub(crate) fn new(path: PathBuf, terms: Terms) -> Self {
        let (worker, lookout, lost) = (Mutex::new(None), Lookout::default(), Arc::default());
        Self { path, timeout: terms.timeout, worker, lookout, lost, terms }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) async fn read(
        &self,
        sql: String,
        collector: Collector,
    ) -> Result<Collector, SqlError> {
        let is_guarded = self.terms.layers.session == Layer::On;
        self.collect(Access::Read, sql, collector, is_guarded).await
    }

    /// The same for SQL of ours. It may read more.
    pub(crate) async fn catalogue(
        &self,
        sql: String,
        collector: Collector,
    ) -> Result<Collector, SqlError> {
        self.collect(Access::Catalogue, sql, collector, true).await
    }

    async fn collect(
        &self,
        access: Access,
        sql: String,
        collector: Collector,
        is_guarded: bool,
    ) -> Result<Collector, SqlError> {
        self.with(access, move |connection, watch| {
            let statement = connection.prepare(&sql);
            let mut statement = statement.map_err(|error| stopped(watch, &error))?;
            run(&mut statement, watch, collector, is_guarded)
        })
        .await
    }

    pub(crate) async fn prepare(&self, sql: String) -> Result<(), SqlError> {
        self.with(Access::Read, move |connection, _| {
            connection.prepare(&sql).map(drop).map_err(|error| of_sqlite(&error))
        })
        .await
    }

    pub(crate) async fn write(&self, sql: String) -> Result<u64, SqlError> {
        self.with(Access::Write, move |connection, watch| {
            // It is undone unless it is whole.
            let transaction = connection.transaction().map_err(|error| of_sqlite(&error))?;
            let rows = {
                let mut statement = transaction.prepare(&sql).map_err(|error| of_sqlite(&error))?;
                let failed = |error| stopped(watch, &error);
                match statement.column_count() {
                    0 => statement.execute([]).map_err(failed)? as u64,
                    _ => {
                        let mut rows = statement.query([]).map_err(failed)?;
                        while rows.next().map_err(failed)?.is_some() {}
                        drop(rows);
                        transaction.changes()
                    }
                }
            };
            transaction.commit().map_err(|error| of_sqlite(&error))?;
            Ok(rows)
        })
        .await
    }

    /// Does something with a connection, on the thread. A thread that does not come back in time is
    /// given up, unless it writes.
    async fn with<T: Send + 'static>(
        &self,
        access: Access,
        work: impl FnOnce(&mut Connection, &Current) -> Result<T, SqlError> + Send + 'static,
    ) -> Result<T, SqlError> {
        let cancelled = Arc::new(AtomicBool::new(false));
        let (done, mut result) = oneshot::channel();
        let (timeout, flag) = (self.timeout, Arc::clone(&cancelled));
        let job: Job = Box::new(move |terms, path, open, current| {
            if flag.load(Ordering::Relaxed) {
                return;
            }
            if let Ok(mut watch) = current.lock() {
                *watch = Watch::new(access, timeout, Arc::clone(&flag));
            }
            let mut own = None;
            let place = if access == Access::Write { &mut own } else { open };
            let outcome = match place {
                Some(connection) => work(connection, current),
                None => match open_file(path, terms, access, current) {
                    Ok(connection) => work(place.insert(connection), current),
                    Err(error) => Err(error),
                },
            };
            if let Ok(mut watch) = current.lock() {
                *watch = Watch::default();
            }
            let _ = done.send(outcome);
        });
        let _stop = StopOnDrop(cancelled);
        let job = Waiting::new(job);
        let mut worker = self.send(&job)?;
        if let Some(end) = self.lookout.begin() {
            while !self.lookout.is_over(end) {
                for _ in 0..LOOKS {
                    match result.try_recv() {
                        Err(TryRecvError::Empty) => std::hint::spin_loop(),
                        outcome => {
                            self.lookout.found();
                            return outcome.unwrap_or(Err(SqlError::Cancelled));
                        }
                    }
                }
                tokio::task::yield_now().await;
            }
        }
        loop {
            match tokio::time::timeout(LOOK, &mut result).await {
                Ok(outcome) => return outcome.unwrap_or(Err(SqlError::Cancelled)),
                Err(_) if worker.is_stuck() => self.give_up(&worker),
                Err(_) => {}
            }
            if worker.is_lost() {
                // What has not begun is done by another thread.
                match job.is_there() {
                    true => worker = self.send(&job)?,
                    false => return Err(SqlError::Timeout { seconds: timeout.as_secs() }),
                }
            }
        }
    }

    fn send(&self, job: &Waiting) -> Result<Arc<Worker>, SqlError> {
        let gone = || self.terms.unreachable("its thread has ended");
        let mut worker = self.worker.lock().map_err(|_| gone())?;
        if let Some(worker) = worker.as_ref()
            && worker.send(job)
        {
            return Ok(Arc::clone(worker));
        }
        let most = self.terms.max_lost_threads;
        if self.lost.load(Ordering::Relaxed) >= most {
            let cause = format!(
                "{most} queries run that cannot be stopped (max_lost_threads); nothing is asked \
                 before one has ended"
            );
            return Err(self.terms.unreachable(cause));
        }
        let new = Worker::start(&self.terms, &self.path, &self.lost);
        let new = Arc::new(new.map_err(|error| self.terms.unreachable(error))?);
        if !new.send(job) {
            return Err(gone());
        }
        *worker = Some(Arc::clone(&new));
        Ok(new)
    }

    /// Leaves a thread to itself. The next statement gets another one.
    fn give_up(&self, stuck: &Arc<Worker>) {
        let Ok(mut worker) = self.worker.lock() else { return };
        if !stuck.lose() {
            return;
        }
        let connection = &self.terms.name;
        tracing::warn!(connection, "a query could not be stopped; its thread is left to it");
        if worker.as_ref().is_some_and(|own| Arc::ptr_eq(own, stuck)) {
            *worker = None;
        }
    }
}

fn open_file(
    path: &Path,
    terms: &Terms,
    access: Access,
    current: &Current,
) -> Result<Connection, SqlError> {
    demo::make_if_missing(path).map_err(|error| terms.unreachable(error))?;
    let is_read_only = access != Access::Write && terms.layers.session == Layer::On;
    let flags = match is_read_only {
        true => OpenFlags::SQLITE_OPEN_READ_ONLY,
        false => OpenFlags::SQLITE_OPEN_READ_WRITE,
    };
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let failed = |error: rusqlite::Error| terms.unreachable(of_sqlite(&error));
    let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(BUSY).map_err(failed)?;
    let limit = |most: usize| i32::try_from(most).unwrap_or(i32::MAX);
    connection
        .set_limit(Limit::SQLITE_LIMIT_LENGTH, limit(terms.max_value_bytes))
        .map_err(failed)?;
    let watch = Arc::clone(current);
    let is_over = move || watch.lock().is_ok_and(|watch| watch.is_over());
    connection.progress_handler(STEPS, Some(is_over)).map_err(failed)?;
    if access == Access::Write || terms.layers.session == Layer::On {
        connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0).map_err(failed)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true).map_err(failed)?;
        let trusted = DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA;
        connection.set_db_config(trusted, false).map_err(failed)?;
    }
    if is_read_only {
        connection.pragma_update(None, "query_only", true).map_err(failed)?;
        // A file that is no database is told now.
        connection
            .query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))
            .map_err(failed)?;
        // After the schema was read: tables may be wider.
        connection
            .set_limit(Limit::SQLITE_LIMIT_COLUMN, limit(terms.max_columns))
            .map_err(failed)?;
        let (tables, functions) = (terms.tables.clone(), terms.functions.clone());
        let watch = Arc::clone(current);
        connection
            .authorizer(Some(move |context: AuthContext<'_>| {
                let is_ours = watch.lock().is_ok_and(|watch| watch.is_ours);
                let tables = if is_ours { None } else { Some(&tables) };
                match is_reading(&context, tables, &functions) {
                    true => Authorization::Allow,
                    false => Authorization::Deny,
                }
            }))
            .map_err(failed)?;
    }
    if access == Access::Write {
        connection
            .authorizer(Some(|context: AuthContext<'_>| match context.action {
                AuthAction::Attach { .. } | AuthAction::Detach { .. } => Authorization::Deny,
                AuthAction::Function { function_name } if is_harmful(function_name) => {
                    Authorization::Deny
                }
                _ => Authorization::Allow,
            }))
            .map_err(failed)?;
    }
    Ok(connection)
}

fn run(
    statement: &mut Statement<'_>,
    watch: &Current,
    mut collector: Collector,
    is_guarded: bool,
) -> Result<Collector, SqlError> {
    let failed = |error| stopped(watch, &error);
    if is_guarded && !(statement.readonly() && statement.column_count() > 0) {
        let text = "the statement does not only read, or gives no rows";
        return Err(SqlError::ReadOnly(text.to_owned()));
    }
    let mut is_begun = false;
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(failed)? {
        // Only now: the first step sees what has become of the tables since it was prepared.
        if !is_begun {
            collector.begin(columns_of(row.as_ref()));
            is_begun = true;
        }
        let count = collector.columns.len();
        let mut values = Vec::with_capacity(count);
        for at in 0..count {
            let value = row.get_ref(at).map_err(failed)?;
            let (value, kind) = json_of(value);
            let known = &mut collector.columns[at].kind;
            if known == "null" && kind != "null" {
                kind.clone_into(known);
            }
            values.push(value);
        }
        if collector.row(values)? == Flow::Enough {
            break;
        }
    }
    drop(rows);
    if !is_begun {
        collector.begin(columns_of(statement));
    }
    Ok(collector)
}

/// What a statement gives. The values tell the types.
fn columns_of(statement: &Statement<'_>) -> Vec<Column> {
    let column = |name: &str| Column { name: name.to_owned(), kind: "null".to_owned() };
    statement.column_names().map(column).collect()
}

fn json_of(value: ValueRef<'_>) -> (Value, &'static str) {
    match value {
        ValueRef::Null => (Value::Null, "null"),
        ValueRef::Integer(number) => (number.into(), "integer"),
        ValueRef::Real(number) => {
            let shown = serde_json::Number::from_f64(number);
            (shown.map_or_else(|| Value::String(number.to_string()), Value::Number), "real")
        }
        ValueRef::Text(text) => (String::from_utf8_lossy(text).into_owned().into(), "text"),
        ValueRef::Blob(bytes) => (super::server::hex(bytes).into(), "blob"),
    }
}

fn stopped(watch: &Current, error: &rusqlite::Error) -> SqlError {
    let is_interrupted = error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted);
    match watch.lock() {
        Ok(watch) if is_interrupted && watch.is_cancelled() => SqlError::Cancelled,
        Ok(watch) if is_interrupted => SqlError::Timeout { seconds: watch.seconds },
        _ => of_sqlite(error),
    }
}

/// What SQLite says, without the words of the driver.
fn of_sqlite(error: &rusqlite::Error) -> SqlError {
    let message = match error {
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        rusqlite::Error::MultipleStatement => "one statement is run at a time".to_owned(),
        other => other.to_string(),
    };
    match error.sqlite_error_code() {
        Some(ErrorCode::ReadOnly | ErrorCode::AuthorizationForStatementDenied) => {
            SqlError::ReadOnly(message)
        }
        _ => SqlError::Database(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::dialect::SqlDialect;
    use crate::sql::guard::TableScope;
    use crate::sql::layers::Layers;
    use crate::sql::settings::SqlConnectionSettings;

    #[tokio::test]
    async fn nobody_reads_more_by_saying_what_we_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("small.db");
        let other = Connection::open(&path).unwrap();
        other.execute_batch("CREATE TABLE t (a); CREATE TABLE secret (x)").unwrap();
        let settings = SqlConnectionSettings::new(format!("sqlite:{}", path.display()));
        let mut terms = Terms::of("main", &settings, Layers::ALL);
        terms.tables = TableScope::new(SqlDialect::Sqlite, [], ["t".to_owned()]);
        let database = Sqlite::new(path, terms);
        let sql = || "SELECT x FROM secret".to_owned();
        for _ in 0..2 {
            assert!(database.catalogue(sql(), Collector::of_catalogue()).await.is_ok());
            let read = database.read(sql(), Collector::of_catalogue()).await;
            assert!(matches!(read, Err(SqlError::ReadOnly(_))), "{read:?}");
        }
        // Nor by asking what there is, unless somebody allows that.
        let told = "SELECT name FROM pragma_table_info('secret')".to_owned();
        let read = database.read(told.clone(), Collector::of_catalogue()).await;
        assert!(matches!(read, Err(SqlError::ReadOnly(_))), "{read:?}");
        let mut terms = database.terms.clone();
        terms.functions = vec!["pragma_table_info".to_owned()];
        let allowed = Sqlite::new(database.path.clone(), terms);
        let read = allowed.read(told, Collector::of_catalogue()).await;
        assert!(read.is_ok(), "{read:?}");
    }
}
