//! What can go wrong with a database.

use std::io;

use super::guard::SqlRefusal;

/// What went wrong with a database. What it says is for the model, without the words of a driver.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SqlError {
    #[error("{0}")]
    Database(String),
    #[error("the query took longer than {seconds} seconds and was stopped")]
    Timeout { seconds: u64 },
    #[error("the query was stopped")]
    Cancelled,
    /// In the words of SQLite, which has the same limit.
    #[error("string or blob too big")]
    TooBig { most: usize },
    #[error("{0}")]
    ReadOnly(String),
    #[error("{0}")]
    Refused(SqlRefusal),
    #[error("the database of the connection '{connection}' cannot be reached: {cause}")]
    Unreachable { connection: String, cause: String },
    #[error(
        "the role of the connection '{connection}' can write ({}), and privileges = \"enforce\" \
         does not allow that",
        .findings.join("; ")
    )]
    RoleCanWrite { connection: String, findings: Vec<String> },
    #[error(
        "the connection '{connection}' is one of a superuser, or of a role that can reach the files \
         or programs of the server; a session that cannot write does not keep it from that"
    )]
    Superuser { connection: String },
    #[error("there is no table {name}")]
    UnknownTable { name: String, known: Vec<String> },
    #[error("there is no connection '{name}'; there are: {}", .known.join(", "))]
    UnknownConnection { name: String, known: Vec<String> },
    #[error("the rest of the result could not be kept: {0}")]
    Spool(#[from] io::Error),
}

impl SqlError {
    /// The stable name.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Database(_) | Self::TooBig { .. } => "query_error",
            Self::Timeout { .. } => "query_timeout",
            Self::Cancelled => "query_cancelled",
            Self::ReadOnly(_) => "read_only",
            Self::Refused(refusal) => refusal.code(),
            Self::Unreachable { .. } => "database_unreachable",
            Self::RoleCanWrite { .. } => "role_can_write",
            Self::Superuser { .. } => "superuser_not_used",
            Self::UnknownTable { .. } => "table_not_found",
            Self::UnknownConnection { .. } => "connection_not_found",
            Self::Spool(_) => "result_not_kept",
        }
    }

    /// What to do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Refused(refusal) => refusal.hint().map(str::to_owned),
            Self::Timeout { .. } => Some(
                "Ask for less: a narrower WHERE, a LIMIT, an index. sql_explain_query shows what \
                 the database does."
                    .to_owned(),
            ),
            Self::TooBig { most } => Some(format!(
                "A value has {most} bytes at most (max_value_bytes). Ask for its length, or for a \
                 part of it: substring(…, 1, 1000)."
            )),
            Self::UnknownTable { known, .. } if !known.is_empty() => {
                Some(format!("There are: {}", known.join(", ")))
            }
            Self::Unreachable { .. } => {
                Some("The host has to see to the database or to [sql.connections].".to_owned())
            }
            Self::Superuser { .. } => Some(
                "The host has to connect as a role that can only read, or to set superuser = \
                 \"drop\" in [sql.connections]."
                    .to_owned(),
            ),
            Self::RoleCanWrite { .. } => {
                Some("The host has to connect as a role that can only read.".to_owned())
            }
            _ => None,
        }
    }
}

impl SqlError {
    /// Whether rows may still be on their way when a statement failed like this.
    pub(crate) fn leaves_rows(&self) -> bool {
        matches!(self, Self::TooBig { .. } | Self::Timeout { .. } | Self::Spool(_))
    }
}

/// What a driver for servers says, without its own words.
pub(crate) fn of_server(error: &sqlx::Error) -> SqlError {
    match error {
        sqlx::Error::Database(database) => match database.code().as_deref() {
            // A read-only transaction, of PostgreSQL and of MySQL and MariaDB.
            Some("25006") => SqlError::ReadOnly(database.message().to_owned()),
            Some("25000") if database.message().contains("READ ONLY") => {
                SqlError::ReadOnly(database.message().to_owned())
            }
            _ => SqlError::Database(database.message().to_owned()),
        },
        other => SqlError::Database(other.to_string()),
    }
}
