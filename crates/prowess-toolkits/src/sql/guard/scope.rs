//! Which tables a connection may read.

use crate::sql::dialect::SqlDialect;

/// Which tables a connection may read: all, or those of some schemas and those that are named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableScope {
    schemas: Vec<String>,
    tables: Vec<String>,
    default_schema: Option<String>,
    dialect: Option<SqlDialect>,
}

impl TableScope {
    /// Those of these schemas, and these tables (`name` or `schema.name`), as the database has them:
    /// only in SQLite names with other capitals are the same. Empty lists allow all.
    pub fn new(
        dialect: SqlDialect,
        schemas: impl IntoIterator<Item = String>,
        tables: impl IntoIterator<Item = String>,
    ) -> Self {
        let own = |name: String| folded(Some(dialect), &name);
        Self {
            schemas: schemas.into_iter().map(own).collect(),
            tables: tables.into_iter().map(own).collect(),
            default_schema: None,
            dialect: Some(dialect),
        }
    }

    /// The schema that a table without one is in.
    pub(crate) fn with_default_schema(mut self, schema: &str) -> Self {
        self.default_schema = Some(folded(self.dialect, schema));
        self
    }

    /// Whether there are no limits.
    pub fn is_open(&self) -> bool {
        self.schemas.is_empty() && self.tables.is_empty()
    }

    /// Whether a table may be read, by the parts of its name as the database has them.
    pub fn allows(&self, parts: &[&str]) -> bool {
        if self.is_open() {
            return true;
        }
        let parts: Vec<String> = parts.iter().map(|part| folded(self.dialect, part)).collect();
        let (schema, name) = match parts.as_slice() {
            [name] => (self.schema_of(name), name.as_str()),
            [schema, name] => (Some(schema.as_str()), name.as_str()),
            _ => return false,
        };
        if self.is_catalogue(schema, name) {
            return false;
        }
        let in_schema = self.schemas.is_empty()
            || schema.is_some_and(|schema| self.schemas.iter().any(|it| it == schema));
        let is_named = self.tables.is_empty()
            || self.tables.iter().any(|it| match it.split_once('.') {
                Some((its, table)) => schema == Some(its) && table == name,
                None => it == name,
            });
        in_schema && is_named
    }

    fn schema_of(&self, name: &str) -> Option<&str> {
        match self.dialect {
            // It is looked for there first.
            Some(SqlDialect::Postgresql) if name.starts_with("pg_") => Some("pg_catalog"),
            Some(SqlDialect::Sqlite) => Some(self.default_schema.as_deref().unwrap_or("main")),
            _ => self.default_schema.as_deref().or(match self.schemas.as_slice() {
                [only] => Some(only.as_str()),
                _ => None,
            }),
        }
    }

    /// What tells about tables that may not be read.
    fn is_catalogue(&self, schema: Option<&str>, name: &str) -> bool {
        let is_listed = |it: &str| self.schemas.iter().any(|schema| schema == it);
        match (self.dialect, schema) {
            (Some(SqlDialect::Sqlite), _) => {
                name.starts_with("sqlite_") && !self.tables.iter().any(|it| it == name)
            }
            (_, Some(schema)) => {
                // Whatever its capitals: some servers do not tell them apart.
                let own =
                    ["pg_catalog", "information_schema", "performance_schema", "mysql", "sys"];
                own.iter().any(|it| it.eq_ignore_ascii_case(schema)) && !is_listed(schema)
            }
            (_, None) => false,
        }
    }
}

/// A name as it is compared.
fn folded(dialect: Option<SqlDialect>, name: &str) -> String {
    match dialect {
        Some(SqlDialect::Sqlite) => name.to_ascii_lowercase(),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_say_which_tables_may_be_read() {
        let names = |list: &[&str]| list.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let postgresql = SqlDialect::Postgresql;
        // Schemas, tables, the name, whether it may be read.
        type Names = &'static [&'static str];
        let table: [(Names, Names, Names, bool); 14] = [
            (&[], &[], &["anything"], true),
            (&["sales"], &[], &["sales", "orders"], true),
            (&["sales"], &[], &["Sales", "orders"], false),
            (&["sales"], &[], &["hr", "people"], false),
            (&["sales"], &[], &["orders"], true),
            (&["sales", "hr"], &[], &["orders"], true),
            (&["sales"], &[], &["pg_authid"], false),
            (&["sales"], &[], &["db", "sales", "orders"], false),
            (&[], &["orders"], &["orders"], true),
            (&[], &["orders"], &["customers"], false),
            (&[], &["sales.orders"], &["hr", "orders"], false),
            (&[], &["orders"], &["information_schema", "orders"], false),
            (&[], &["orders"], &["INFORMATION_SCHEMA", "orders"], false),
            (&[], &["orders"], &["Orders"], false),
        ];
        for (schemas, tables, parts, expected) in table {
            let scope = TableScope::new(postgresql, names(schemas), names(tables))
                .with_default_schema(schemas.first().unwrap_or(&"public"));
            assert_eq!(scope.allows(parts), expected, "{schemas:?} {tables:?} {parts:?}");
        }
        let scope = TableScope::new(SqlDialect::Sqlite, [], names(&["orders"]));
        assert!(scope.allows(&["orders"]) && scope.allows(&["main", "orders"]));
        assert!(scope.allows(&["Main", "ORDERS"]) && !scope.allows(&["Sqlite_Master"]));
        assert!(!scope.allows(&["sqlite_master"]));
        let scope = TableScope::new(SqlDialect::Mysql, [], names(&["orders"]));
        assert!(scope.allows(&["orders"]) && !scope.allows(&["Orders"]));
    }
}
