//! Why settings cannot be used.

use super::address::InvalidAddress;

/// Why a section `[sql]`, `DATABASE_URL` or `SQL_READ_ONLY` cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSqlSettings {
    /// The section is not what it should be.
    #[error("[sql]: {0}")]
    Section(Box<toml::de::Error>),
    /// A connection has no address, or two.
    #[error("[sql.connections.{connection}]: give one of `url` and `url_env`")]
    Url {
        /// Which.
        connection: String,
    },
    /// The variable of an address is no text.
    #[error("[sql.connections.{connection}]: the variable {variable} is no text in UTF-8")]
    NotText {
        /// Which.
        connection: String,
        /// What it is called.
        variable: String,
    },
    /// The variable of an address is not set.
    #[error("[sql.connections.{connection}]: the variable {variable} is not set")]
    Variable {
        /// Which.
        connection: String,
        /// What it is called.
        variable: String,
    },
    /// An address cannot be used.
    #[error("{place}: {cause}")]
    Address {
        /// Where it stands.
        place: String,
        /// Why not.
        cause: InvalidAddress,
    },
    /// `DATABASE_URL` cannot be used.
    #[error("DATABASE_URL: {cause}")]
    DatabaseUrl {
        /// Why not.
        cause: InvalidAddress,
    },
    /// A limit is nothing, or beyond what can be.
    #[error("{place}: {key} must be from 1 to {most}, and is {value}")]
    Limit {
        /// Where it stands.
        place: String,
        /// Which.
        key: &'static str,
        /// What it is.
        value: u64,
        /// What it may be.
        most: u64,
    },
    /// There is no such connection.
    #[error("[sql]: default_connection is '{name}', and there is no [sql.connections.{name}]")]
    DefaultConnection {
        /// What it is called.
        name: String,
    },
    /// `SQL_READ_ONLY` is neither yes nor no.
    #[error(
        "SQL_READ_ONLY is {value:?}, and must be a clear yes or no: true, yes, on or 1; \
         false, no, off or 0"
    )]
    ReadOnly {
        /// What it is.
        value: String,
    },
}

impl InvalidSqlSettings {
    /// The stable name.
    pub fn code(&self) -> &'static str {
        "invalid_sql_settings"
    }
}
