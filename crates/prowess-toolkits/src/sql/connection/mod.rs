//! Databases: one thread for a file, sessions on servers.

mod mysql;
mod postgres;
mod server;
mod sqlite;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::address::Address;
use super::dialect::SqlDialect;
use super::error::SqlError;
use super::guard::TableScope;
use super::hidden::Asked;
use super::layers::Layers;
use super::result::Collector;
use super::settings::{SqlConnectionSettings, SqlSuperuser};

/// What a database needs to know about a connection.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// What it is called.
    pub(crate) name: String,
    pub(crate) layers: Layers,
    pub(crate) timeout: Duration,
    pub(crate) connect: Duration,
    pub(crate) max_connections: usize,
    pub(crate) max_value_bytes: usize,
    pub(crate) max_columns: usize,
    pub(crate) max_lost_threads: usize,
    pub(crate) superuser: SqlSuperuser,
    /// The schemas that names are looked for in, if they are limited.
    pub(crate) schemas: Vec<String>,
    pub(crate) tables: TableScope,
    pub(crate) functions: Vec<String>,
}

/// A database.
#[derive(Clone)]
pub(crate) enum Database {
    Sqlite(Arc<sqlite::Sqlite>),
    Postgresql(Arc<postgres::Postgres>),
    Mysql(Arc<mysql::Mysql>),
}

impl Database {
    /// The database at an address. Nothing is opened before it is needed.
    pub(crate) fn new(address: Address, terms: Terms) -> Self {
        match address {
            Address::Sqlite(path) => Self::Sqlite(Arc::new(sqlite::Sqlite::new(path, terms))),
            Address::Postgresql(options) => {
                Self::Postgresql(Arc::new(postgres::Postgres::new(*options, terms)))
            }
            Address::Mysql(options) => Self::Mysql(Arc::new(mysql::Mysql::new(*options, terms))),
        }
    }

    pub(crate) fn dialect(&self) -> SqlDialect {
        match self {
            Self::Sqlite(_) => SqlDialect::Sqlite,
            Self::Postgresql(_) => SqlDialect::Postgresql,
            Self::Mysql(_) => SqlDialect::Mysql,
        }
    }

    /// Runs one statement that reads. If whoever waits for it goes away, it is stopped.
    pub(crate) async fn read(
        &self,
        asked: Asked,
        collector: Collector,
    ) -> Result<Collector, SqlError> {
        match self {
            Self::Sqlite(database) => database.read(asked.sql, collector).await,
            Self::Postgresql(database) => server::read(database, asked, collector).await,
            Self::Mysql(database) => server::read(database, asked, collector).await,
        }
    }

    /// Reads what the catalogue says, with SQL of ours.
    pub(crate) async fn catalogue(&self, sql: &str) -> Result<Vec<Vec<Value>>, SqlError> {
        let collector = Collector::of_catalogue();
        let read = match self {
            Self::Sqlite(database) => database.catalogue(sql.to_owned(), collector).await,
            _ => self.read(Asked::ours(sql), collector).await,
        };
        read.map(|collector| collector.rows)
    }

    /// Whether a statement can be run, as far as the database can tell without running it.
    pub(crate) async fn prepare(&self, asked: Asked) -> Result<(), SqlError> {
        match self {
            Self::Sqlite(database) => database.prepare(asked.sql).await,
            Self::Postgresql(database) => server::prepare(database, asked).await,
            Self::Mysql(database) => server::prepare(database, asked).await,
        }
    }

    /// Runs one statement that writes, whole or not at all, and says how many rows it touched.
    pub(crate) async fn write(&self, sql: String) -> Result<u64, SqlError> {
        match self {
            Self::Sqlite(database) => database.write(sql).await,
            Self::Postgresql(database) => server::write(database, sql).await,
            Self::Mysql(database) => server::write(database, sql).await,
        }
    }

    /// The file, if it is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(database) => Some(database.path()),
            _ => None,
        }
    }
}

impl Terms {
    pub(crate) fn of(name: &str, settings: &SqlConnectionSettings, layers: Layers) -> Self {
        Self {
            name: name.to_owned(),
            layers,
            timeout: Duration::from_secs(settings.timeout_seconds),
            connect: Duration::from_secs(settings.connect_seconds),
            max_connections: settings.max_connections,
            max_value_bytes: settings.max_value_bytes,
            max_columns: settings.max_columns,
            max_lost_threads: settings.max_lost_threads,
            superuser: settings.superuser,
            schemas: settings.schemas.iter().cloned().collect(),
            tables: TableScope::default(),
            functions: settings.functions.iter().map(|name| name.to_ascii_lowercase()).collect(),
        }
    }

    fn unreachable(&self, cause: impl std::fmt::Display) -> SqlError {
        SqlError::Unreachable { connection: self.name.clone(), cause: cause.to_string() }
    }
}
