//! The kinds of databases, and how they write names.

use std::fmt;

use serde::{Deserialize, Serialize};
use sqlparser::ast::Ident;

/// A kind of database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SqlDialect {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgresql,
    /// MySQL and MariaDB.
    Mysql,
}

impl SqlDialect {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Sqlite, Self::Postgresql, Self::Mysql];

    /// What it is called: `sqlite`, `postgresql` or `mysql`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgresql => "postgresql",
            Self::Mysql => "mysql",
        }
    }

    /// The dialect that the scheme of an address means. A driver after a plus sign, as other
    /// programs write it, says nothing more.
    pub(crate) fn of_scheme(scheme: &str) -> Option<Self> {
        let scheme = scheme.split('+').next().unwrap_or(scheme);
        match scheme.to_ascii_lowercase().as_str() {
            "sqlite" => Some(Self::Sqlite),
            "postgres" | "postgresql" => Some(Self::Postgresql),
            "mysql" | "mariadb" => Some(Self::Mysql),
            _ => None,
        }
    }

    /// A name of a statement as the database compares it. Where that depends on how the server is
    /// set, names with other capitals are other names.
    pub(crate) fn folded(self, name: &Ident) -> String {
        match self {
            Self::Postgresql if name.quote_style.is_some() => name.value.clone(),
            Self::Postgresql | Self::Sqlite => name.value.to_ascii_lowercase(),
            Self::Mysql => name.value.clone(),
        }
    }

    /// A name as the database reads it back, whatever it holds.
    pub(crate) fn quote(self, name: &str) -> String {
        let quote = match self {
            Self::Sqlite | Self::Postgresql => '"',
            Self::Mysql => '`',
        };
        let mut quoted = String::with_capacity(name.len() + 2);
        quoted.push(quote);
        for character in name.chars() {
            if character == quote {
                quoted.push(quote);
            }
            quoted.push(character);
        }
        quoted.push(quote);
        quoted
    }
}

impl fmt::Display for SqlDialect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
