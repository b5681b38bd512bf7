//! PostgreSQL.

use futures_util::StreamExt as _;
use serde_json::Value;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgRow};
use sqlx::{
    AssertSqlSafe, Column as _, ConnectOptions as _, Connection as _, Executor as _, Row as _,
    SqlSafeStr as _, Statement as _, TypeInfo as _,
};

use super::Terms;
use super::server::{Bounds, Pool, Server, hex, json_of};
use crate::sql::dialect::SqlDialect;
use crate::sql::error::{SqlError, of_server};
use crate::sql::guard::{Named, SqlRefusal};
use crate::sql::hidden::postgresql::{Behind, LOOK, refusal};
use crate::sql::layers::Layer;
use crate::sql::result::{Collector, Column, Flow};
use crate::sql::settings::SqlSuperuser;

/// Whether who connects could write past a read-only transaction, or become somebody who could.
const IS_POWERFUL: &str = "\
(SELECT rolsuper OR rolreplication
        OR EXISTS (SELECT 1 FROM pg_catalog.pg_roles other
                   WHERE (other.rolsuper OR other.rolname IN
                          ('pg_write_server_files', 'pg_execute_server_program'))
                     AND pg_catalog.pg_has_role(session_user, other.oid, 'MEMBER'))
 FROM pg_catalog.pg_roles WHERE rolname = session_user)";

/// A database on a PostgreSQL server.
pub(crate) struct Postgres {
    options: PgConnectOptions,
    terms: Terms,
    pool: Pool<Session>,
}

pub(super) struct Session {
    connection: PgConnection,
    id: u64,
    /// Whether a read-only session does not keep it from everything.
    is_powerful: bool,
    /// What the server said of the statement that comes.
    columns: Vec<Column>,
}

impl Postgres {
    pub(super) fn new(options: PgConnectOptions, terms: Terms) -> Self {
        let options = options
            .application_name("prowess")
            .statement_cache_capacity(0)
            .disable_statement_logging();
        let pool = Pool::new(terms.max_connections);
        Self { options, terms, pool }
    }

    fn timeout_ms(&self) -> u128 {
        self.terms.timeout.as_millis()
    }

    async fn bare(&self) -> Result<PgConnection, SqlError> {
        self.options.connect().await.map_err(|error| self.terms.unreachable(cause(&error)))
    }
}

/// Why there is no connection, without the words of the driver.
pub(super) fn cause(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(database) => database.message().to_owned(),
        sqlx::Error::Io(error) => error.to_string(),
        other => other.to_string(),
    }
}

impl Server for Postgres {
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
        // Strings are read as the guard reads them.
        let mut sql = "SET standard_conforming_strings = on; SET backslash_quote = off".to_owned();
        if self.terms.layers.session == Layer::On {
            sql.push_str("; SET default_transaction_read_only = on");
        }
        if !self.terms.schemas.is_empty() {
            let quoted: Vec<String> =
                self.terms.schemas.iter().map(|it| SqlDialect::Postgresql.quote(it)).collect();
            sql.push_str("; SET search_path = ");
            sql.push_str(&quoted.join(", "));
        }
        let ms = self.timeout_ms();
        sql.push_str(&format!(
            "; SET statement_timeout = {ms}; SELECT pg_backend_pid(), {IS_POWERFUL}"
        ));
        let failed = |error: sqlx::Error| self.terms.unreachable(cause(&error));
        let row = sqlx::raw_sql(AssertSqlSafe(sql)).fetch_one(&mut connection).await;
        let row: PgRow = row.map_err(failed)?;
        let id: i32 = row.try_get_unchecked(0).map_err(failed)?;
        let id = u64::try_from(id).unwrap_or(0);
        let is_powerful: Option<bool> = row.try_get_unchecked(1).map_err(failed)?;
        // Who is not known is not trusted.
        let is_powerful = is_powerful.unwrap_or(true);
        Ok(Session { connection, id, is_powerful, columns: Vec::new() })
    }

    async fn is_alive(session: &mut Session) -> bool {
        session.connection.ping().await.is_ok()
    }

    async fn begin_reading(&self, session: &mut Session) -> Result<(), SqlError> {
        let ms = self.timeout_ms();
        let mut sql = format!("BEGIN TRANSACTION READ ONLY; SET LOCAL statement_timeout = {ms}");
        if session.is_powerful && self.terms.layers.session == Layer::On {
            match self.terms.superuser {
                SqlSuperuser::Refuse => {
                    let connection = self.terms.name.clone();
                    return Err(SqlError::Superuser { connection });
                }
                SqlSuperuser::Drop => sql.push_str("; SET LOCAL ROLE pg_read_all_data"),
            }
        }
        let begun = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut session.connection).await;
        begun.map(drop).map_err(|error| of_server(&error))
    }

    async fn hidden(
        &self,
        session: &mut Session,
        sql: &str,
        named: &Named,
    ) -> Result<Option<SqlRefusal>, SqlError> {
        let mut query = sqlx::query(LOOK);
        for names in [&named.words, &named.fields, &named.calls, &named.types] {
            query = query.bind(names.iter().map(String::as_str).collect::<Vec<&str>>());
        }
        let failed = |error: sqlx::Error| of_query(&error, &self.terms);
        let rows = query.fetch_all(&mut session.connection).await.map_err(failed)?;
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            let text = |at: usize| row.try_get::<String, usize>(at).map_err(failed);
            found.push(Behind {
                kind: text(0)?,
                name: text(1)?,
                schema: text(2)?,
                function: text(3)?,
            });
        }
        Ok(refusal(sql, found, &self.terms.functions))
    }

    async fn check(&self, session: &mut Session, sql: &str) -> Result<(), SqlError> {
        // A statement that is prepared is one, whatever is in it.
        let sql = AssertSqlSafe(sql.to_owned()).into_sql_str();
        let prepared = session.connection.prepare(sql).await;
        let statement = prepared.map_err(|error| of_query(&error, &self.terms))?;
        session.columns = statement
            .columns()
            .iter()
            .map(|column| Column {
                name: column.name().to_owned(),
                kind: column.type_info().name().to_lowercase(),
            })
            .collect();
        match session.columns.is_empty() {
            false => Ok(()),
            true => Err(SqlError::ReadOnly("the statement gives no rows".to_owned())),
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
        let sql = "ROLLBACK; DEALLOCATE ALL; SELECT pg_advisory_unlock_all()";
        let ended = sqlx::raw_sql(sql).execute(&mut session.connection).await;
        ended.map(drop).map_err(|error| of_server(&error))
    }

    async fn write(&self, session: &mut Session, sql: String) -> Result<u64, SqlError> {
        let connection = &mut session.connection;
        let failed = |error: sqlx::Error| of_query(&error, &self.terms);
        sqlx::raw_sql("BEGIN TRANSACTION READ WRITE")
            .execute(&mut *connection)
            .await
            .map_err(failed)?;
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
        let sql = format!("SELECT pg_cancel_backend({id})");
        let stopped = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await;
        let _ = connection.close().await;
        stopped.map(drop).map_err(|error| of_server(&error))
    }
}

/// A statement failed, perhaps because of its time.
fn of_query(error: &sqlx::Error, terms: &Terms) -> SqlError {
    match error {
        sqlx::Error::Database(database) if database.code().as_deref() == Some("57014") => {
            SqlError::Timeout { seconds: terms.timeout.as_secs() }
        }
        other => of_server(other),
    }
}

fn columns(row: &PgRow) -> Vec<Column> {
    let column = |column: &sqlx::postgres::PgColumn| Column {
        name: column.name().to_owned(),
        kind: column.type_info().name().to_lowercase(),
    };
    row.columns().iter().map(column).collect()
}

fn values(row: &PgRow, bounds: &Bounds) -> Result<Vec<Value>, SqlError> {
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
fn length(row: &PgRow, at: usize) -> Result<usize, SqlError> {
    let value = row.try_get_raw(at).map_err(|it| of_server(&it))?;
    // What is NULL has none.
    Ok(value.as_bytes().map_or(0, <[u8]>::len))
}
