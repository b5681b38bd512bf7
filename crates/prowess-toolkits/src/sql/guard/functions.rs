//! The functions that only read. Everything else could do anything.

use std::collections::{BTreeSet, HashSet};
use std::sync::OnceLock;

use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};

use super::refusal::Refusal;
use crate::sql::dialect::SqlDialect;

/// The functions of a database that come with it, that only read, and that run no SQL of their own.
/// For PostgreSQL those that it calls immutable or stable, without those that read files or tables
/// by their name, and a few of the others.
fn known(dialect: SqlDialect) -> &'static HashSet<&'static str> {
    static SQLITE: OnceLock<HashSet<&'static str>> = OnceLock::new();
    static POSTGRESQL: OnceLock<HashSet<&'static str>> = OnceLock::new();
    static MYSQL: OnceLock<HashSet<&'static str>> = OnceLock::new();
    let (cell, list) = match dialect {
        SqlDialect::Sqlite => (&SQLITE, include_str!("functions/sqlite.txt")),
        SqlDialect::Postgresql => (&POSTGRESQL, include_str!("functions/postgresql.txt")),
        SqlDialect::Mysql => (&MYSQL, include_str!("functions/mysql.txt")),
    };
    cell.get_or_init(|| list.lines().collect())
}

/// Whether a function, by its name in small letters, is one of those.
pub(crate) fn is_known(dialect: SqlDialect, name: &str) -> bool {
    known(dialect).contains(name)
}

/// Whether a function may be called.
pub(super) fn check(
    dialect: SqlDialect,
    more: &BTreeSet<String>,
    name: &ObjectName,
) -> Result<(), Refusal> {
    let refused = || Refusal::Function { name: name.to_string() };
    let mut parts = Vec::with_capacity(2);
    for part in &name.0 {
        match part {
            ObjectNamePart::Identifier(ident) => parts.push(ident),
            ObjectNamePart::Function(_) => return Err(refused()),
        }
    }
    let written: Vec<String> = parts.iter().map(|ident| folded(dialect, ident)).collect();
    if more.contains(&written.join(".")) {
        return Ok(());
    }
    let is_known = match (written.as_slice(), dialect) {
        // A quoted name of MySQL means a stored function, one with capitals of PostgreSQL another.
        ([_], SqlDialect::Mysql) if parts[0].quote_style.is_some() => false,
        ([name], _) => known(dialect).contains(name.as_str()),
        ([schema, name], SqlDialect::Postgresql) => {
            schema == "pg_catalog" && known(dialect).contains(name.as_str())
        }
        _ => false,
    };
    if is_known { Ok(()) } else { Err(refused()) }
}

/// A name as the lists write it. What PostgreSQL takes by the letter is left as it is.
fn folded(dialect: SqlDialect, ident: &Ident) -> String {
    match dialect {
        SqlDialect::Postgresql => dialect.folded(ident),
        SqlDialect::Sqlite | SqlDialect::Mysql => ident.value.to_ascii_lowercase(),
    }
}
