//! MySQL and MariaDB.

use std::collections::BTreeSet;

use futures_util::StreamExt as _;
use serde_json::Value;
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlRow};
use sqlx::{
    AssertSqlSafe, Column as _, ConnectOptions as _, Connection as _, Executor as _, Row as _,
    SqlSafeStr as _, Statement as _, TypeInfo as _,
};

use super::Terms;
use super::postgres::cause;
use super::server::{Bounds, Pool, Server, hex, json_of};
use crate::sql::error::{SqlError, of_server};
use crate::sql::guard::{Named, SqlRefusal};
use crate::sql::hidden::mysql::{View, look, stored, view};
use crate::sql::layers::Layer;
use crate::sql::result::{Collector, Column, Flow};

/// Statements are read as the guard reads them, whatever the server is set to.
const SQL_MODE: &str = "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION";

/// A database on a MySQL or MariaDB server.
pub(crate) struct Mysql {
    options: MySqlConnectOptions,
    terms: Terms,
    pool: Pool<Session>,
}

pub(super) struct Session {
    connection: MySqlConnection,
    id: u64,
    columns: Vec<Column>,
}

impl Mysql {
    pub(super) fn new(options: MySqlConnectOptions, terms: Terms) -> Self {
        let options = options
            .pipes_as_concat(false)
            .no_engine_substitution(false)
            .statement_cache_capacity(0)
            .disable_statement_logging();
        let pool = Pool::new(terms.max_connections);
        Self { options, terms, pool }
    }

    /// The functions that are called and that somebody made.
    async fn stored(&self, session: &mut Session, named: &Named) -> Result<Vec<String>, SqlError> {
        if named.calls.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = sqlx::query(AssertSqlSafe(stored(named.calls.len())));
        for name in &named.calls {
            query = query.bind(name);
        }
        let failed = |error: sqlx::Error| of_query(&error, &self.terms);
        let rows = query.fetch_all(&mut session.connection).await.map_err(failed)?;
        rows.iter().map(|row| row.try_get(0).map_err(failed)).collect()
    }

    /// The views that are named, with their definitions.
    async fn views(
        &self,
        session: &mut Session,
        named: &Named,
    ) -> Result<Vec<(String, String)>, SqlError> {
        let sql = look(named.qualifiers.len(), named.words.len());
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for database in std::iter::once(None).chain(named.qualifiers.iter().map(Some)) {
            for value in database.into_iter().chain(&named.words) {
                query = query.bind(value);
            }
        }
        let failed = |error: sqlx::Error| of_query(&error, &self.terms);
        let rows = query.fetch_all(&mut session.connection).await.map_err(failed)?;
        let mut views = Vec::with_capacity(rows.len());
        for row in rows {
            let name: String = row.try_get(0).map_err(failed)?;
            let definition: Option<String> = row.try_get(1).map_err(failed)?;
            views.push((name, definition.unwrap_or_default()));
        }
        Ok(views)
    }

    async fn bare(&self) -> Result<MySqlConnection, SqlError> {
        self.options.connect().await.map_err(|error| self.terms.unreachable(cause(&error)))
    }
}

impl Server for Mysql {
    type Session = Session;

    fn terms(&self) -> &Terms {
        &self.terms
    }

    fn pool(&self) -> &Pool<Session> {
        &self.pool
    }

    fn id(session: &Session) -> u64 {
        session.id
    }

    async fn connect(&self) -> Result<Session, SqlError> {
        let mut connection = self.bare().await?;
        let failed = |error: sqlx::Error| self.terms.unreachable(cause(&error));
        let sql = "SELECT CONNECTION_ID(), VERSION()";
        let row: MySqlRow = sqlx::raw_sql(sql).fetch_one(&mut connection).await.map_err(failed)?;
        let id: String = row.try_get_unchecked(0).map_err(failed)?;
        let version: String = row.try_get_unchecked(1).map_err(failed)?;
        let limit = match version.contains("MariaDB") {
            true => format!("max_statement_time = {}", self.terms.timeout.as_secs_f64()),
            false => format!("max_execution_time = {}", self.terms.timeout.as_millis()),
        };
        let mut sql = format!("SET SESSION sql_mode = '{SQL_MODE}'; SET SESSION {limit}");
        if self.terms.layers.session == Layer::On {
            sql.push_str("; SET SESSION TRANSACTION READ ONLY");
        }
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.map_err(failed)?;
        Ok(Session { connection, id: id.parse().unwrap_or(0), columns: Vec::new() })
    }

    async fn is_alive(session: &mut Session) -> bool {
        session.connection.ping().await.is_ok()
    }

    async fn begin_reading(&self, session: &mut Session) -> Result<(), SqlError> {
        let begun = sqlx::raw_sql("START TRANSACTION READ ONLY").execute(&mut session.connection);
        begun.await.map(drop).map_err(|error| of_server(&error))
    }

    async fn hidden(
        &self,
        session: &mut Session,
        _: &str,
        named: &Named,
    ) -> Result<Option<SqlRefusal>, SqlError> {
        for name in self.stored(session, named).await? {
            if !self.terms.functions.contains(&name.to_ascii_lowercase()) {
                return Ok(Some(SqlRefusal::Function { name }));
            }
        }
        // A session that cannot write is enough where nothing can be seen.
        let is_enough = self.terms.layers.session == Layer::On;
        let mut seen = BTreeSet::new();
        let mut next = vec![named.clone()];
        while let Some(named) = next.pop() {
            for (name, definition) in self.views(session, &named).await? {
                if !seen.insert((name.clone(), definition.clone())) {
                    continue;
                }
                match view(&name, &definition, &self.terms.functions) {
                    View::Reads(named) => next.push(*named),
                    View::Refused(refusal) => return Ok(Some(refusal)),
                    View::Unseen if is_enough => {}
                    View::Unseen => return Ok(Some(SqlRefusal::Unseen { name })),
                }
            }
        }
        Ok(None)
    }

    async fn check(&self, session: &mut Session, sql: &str) -> Result<(), SqlError> {
        // A statement that is prepared is one, whatever is in it.
        let text = AssertSqlSafe(sql.to_owned()).into_sql_str();
        let prepared = session.connection.prepare(text).await;
        let statement = prepared.map_err(|error| of_query(&error, &self.terms))?;
        session.columns = statement
            .columns()
            .iter()
            .map(|column| Column {
                name: column.name().to_owned(),
                kind: column.type_info().name().to_lowercase(),
            })
            .collect();
        // Of these the server tells the columns only when they are run.
        let end = sql.find(|it: char| !it.is_ascii_alphabetic()).unwrap_or(sql.len());
        let word = sql[..end].to_ascii_uppercase();
        let is_told = matches!(word.as_str(), "SHOW" | "DESCRIBE" | "DESC" | "EXPLAIN");
        match is_told || !session.columns.is_empty() {
            true => Ok(()),
            false => Err(SqlError::ReadOnly("the statement gives no rows".to_owned())),
        }
    }

    async fn run(
        &self,
        session: &mut Session,
        sql: String,
        collector: &mut Collector,
    ) -> Result<Flow, SqlError> {
        collector.begin(std::mem::take(&mut session.columns));
        let bounds = Bounds::new(&self.terms);
        let mut rows = sqlx::raw_sql(AssertSqlSafe(sql)).fetch(&mut session.connection);
        while let Some(row) = rows.next().await {
            bounds.time()?;
            let row = row.map_err(|error| of_query(&error, &self.terms))?;
            if collector.columns.is_empty() {
                collector.begin(columns(&row));
            }
            if collector.row(values(&row, &bounds)?)? == Flow::Enough {
                return Ok(Flow::Enough);
            }
        }
        Ok(Flow::More)
    }

    async fn end_reading(&self, session: &mut Session) -> Result<(), SqlError> {
        let sql = format!("ROLLBACK; DO RELEASE_ALL_LOCKS(); SET SESSION sql_mode = '{SQL_MODE}'");
        let ended = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut session.connection).await;
        ended.map(drop).map_err(|error| of_server(&error))
    }

    async fn write(&self, session: &mut Session, sql: String) -> Result<u64, SqlError> {
        let connection = &mut session.connection;
        let failed = |error: sqlx::Error| of_query(&error, &self.terms);
        let begin = "START TRANSACTION READ WRITE";
        sqlx::raw_sql(begin).execute(&mut *connection).await.map_err(failed)?;
        // It must be one statement.
        let text = AssertSqlSafe(sql.clone()).into_sql_str();
        connection.prepare(text).await.map_err(failed)?;
        let done =
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *connection).await.map_err(failed)?;
        sqlx::raw_sql("COMMIT").execute(&mut *connection).await.map_err(failed)?;
        Ok(done.rows_affected())
    }

    async fn stop(&self, id: u64) -> Result<(), SqlError> {
        let mut connection = self.bare().await?;
        let sql = format!("KILL QUERY {id}");
        let stopped = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await;
        let _ = connection.close().await;
        match stopped {
            // It has ended by itself.
            Err(sqlx::Error::Database(error)) if error.message().contains("Unknown thread") => {
                Ok(())
            }
            other => other.map(drop).map_err(|error| of_server(&error)),
        }
    }
}

/// A statement failed, perhaps because of its time.
fn of_query(error: &sqlx::Error, terms: &Terms) -> SqlError {
    match error {
        sqlx::Error::Database(database) => {
            let mysql = database.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>();
            match mysql.map(sqlx::mysql::MySqlDatabaseError::number) {
                Some(1969 | 3024) => SqlError::Timeout { seconds: terms.timeout.as_secs() },
                Some(1792 | 1290) => SqlError::ReadOnly(database.message().to_owned()),
                _ => of_server(error),
            }
        }
        other => of_server(other),
    }
}

fn columns(row: &MySqlRow) -> Vec<Column> {
    let column = |column: &sqlx::mysql::MySqlColumn| Column {
        name: column.name().to_owned(),
        kind: column.type_info().name().to_lowercase(),
    };
    row.columns().iter().map(column).collect()
}

fn values(row: &MySqlRow, bounds: &Bounds) -> Result<Vec<Value>, SqlError> {
    let mut values = Vec::with_capacity(row.len());
    for (at, column) in row.columns().iter().enumerate() {
        bounds.value(length(row, at)?)?;
        let value = match row.try_get_unchecked::<Option<String>, usize>(at) {
            Ok(None) => Value::Null,
            Ok(Some(text)) => json_of(column.type_info().name(), text),
            Err(_) => {
                let bytes: Vec<u8> = row.try_get_unchecked(at).map_err(|it| of_server(&it))?;
                hex(&bytes).into()
            }
        };
        values.push(value);
    }
    Ok(values)
}

/// How many bytes the server sent for a value.
fn length(row: &MySqlRow, at: usize) -> Result<usize, SqlError> {
    let bytes = row.try_get_unchecked::<Option<&[u8]>, usize>(at).map_err(|it| of_server(&it))?;
    // What is NULL has none.
    Ok(bytes.map_or(0, <[u8]>::len))
}
