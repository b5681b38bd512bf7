//! What tables there are, and what is in them.

pub(crate) mod queries;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::connection::Database;
use super::dialect::SqlDialect;
use super::error::SqlError;
use super::guard::TableScope;

/// A table or a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    /// Its schema, where there is more than one.
    pub(crate) schema: Option<String>,
    pub(crate) name: String,
    pub(crate) is_view: bool,
    /// What makes it.
    pub(crate) create: String,
    /// What makes its indexes.
    pub(crate) indexes: Vec<String>,
}

/// All that a connection may read, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Catalogue {
    pub(crate) tables: Vec<Table>,
}

impl Table {
    /// What it is called, with its schema if it needs one.
    pub(crate) fn shown(&self) -> String {
        match &self.schema {
            Some(schema) => format!("{schema}.{}", self.name),
            None => self.name.clone(),
        }
    }

    /// The same as the database reads it back.
    pub(crate) fn quoted(&self, dialect: SqlDialect) -> String {
        let name = dialect.quote(&self.name);
        match &self.schema {
            Some(schema) => format!("{}.{name}", dialect.quote(schema)),
            None => name,
        }
    }
}

impl Catalogue {
    /// Reads it.
    pub(crate) async fn read(database: &Database, scope: &TableScope) -> Result<Self, SqlError> {
        let mut tables = match database.dialect() {
            SqlDialect::Sqlite => of_sqlite(database).await?,
            dialect => of_server(database, dialect).await?,
        };
        tables.retain(|table| match &table.schema {
            Some(schema) => scope.allows(&[schema, &table.name]),
            None => scope.allows(&[&table.name]),
        });
        Ok(Self { tables })
    }

    /// The names of tables, or of views.
    pub(crate) fn names(&self, views: bool) -> Vec<String> {
        self.tables.iter().filter(|table| table.is_view == views).map(Table::shown).collect()
    }

    /// The table that is called so, by the letter, or else without regard to capitals and quotes.
    pub(crate) fn find(&self, name: &str) -> Result<&Table, SqlError> {
        let exact = |table: &&Table| table.shown() == name || table.name == name;
        let plain = unquoted(name);
        let loose = |table: &&Table| {
            table.shown().to_lowercase() == plain || table.name.to_lowercase() == plain
        };
        let all: Vec<&Table> = self.tables.iter().filter(exact).collect();
        let all = if all.is_empty() { self.tables.iter().filter(loose).collect() } else { all };
        match all.as_slice() {
            [table] => Ok(table),
            several => Err(SqlError::UnknownTable {
                name: name.chars().take(200).collect(),
                known: match several.is_empty() {
                    true => self.tables.iter().take(50).map(Table::shown).collect(),
                    false => several.iter().map(|table| table.shown()).collect(),
                },
            }),
        }
    }
}

/// A name as somebody might write it, in small letters and without quotes.
fn unquoted(name: &str) -> String {
    name.trim().trim_end_matches(';').replace(['"', '`', '[', ']'], "").to_lowercase()
}

async fn of_sqlite(database: &Database) -> Result<Vec<Table>, SqlError> {
    let rows = database.catalogue(queries::SQLITE).await?;
    let mut tables: Vec<Table> = Vec::new();
    let mut indexes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in rows {
        let [kind, name, table, sql] = texts(&row);
        match kind.as_str() {
            "index" if sql.is_empty() => {
                let made = format!("-- {name} (made by a constraint)");
                indexes.entry(table).or_default().push(made);
            }
            "index" => indexes.entry(table).or_default().push(format!("{sql};")),
            kind => tables.push(Table {
                schema: None,
                name,
                is_view: kind == "view",
                create: format!("{sql};"),
                indexes: Vec::new(),
            }),
        }
    }
    for table in &mut tables {
        table.indexes = indexes.remove(&table.name).unwrap_or_default();
    }
    Ok(tables)
}

/// What is known of a table of a server.
#[derive(Default)]
struct Parts {
    is_view: bool,
    lines: Vec<String>,
    indexes: Vec<String>,
}

async fn of_server(database: &Database, dialect: SqlDialect) -> Result<Vec<Table>, SqlError> {
    let (columns, constraints, indexes) = match dialect {
        SqlDialect::Mysql => {
            (queries::MYSQL_COLUMNS, queries::MYSQL_CONSTRAINTS, queries::MYSQL_INDEXES)
        }
        _ => (
            queries::POSTGRESQL_COLUMNS,
            queries::POSTGRESQL_CONSTRAINTS,
            queries::POSTGRESQL_INDEXES,
        ),
    };
    let mut tables: BTreeMap<(String, String), Parts> = BTreeMap::new();
    for row in database.catalogue(columns).await? {
        let [schema, table, kind, column, data_type, more] = texts(&row);
        let parts = tables.entry((schema, table)).or_default();
        parts.is_view = kind == "view";
        let more = if more.is_empty() { more } else { format!(" {more}") };
        parts.lines.push(format!("{} {data_type}{more}", plain(dialect, &column)));
    }
    for row in database.catalogue(constraints).await? {
        let [schema, table, constraint] = texts(&row);
        if let Some(parts) = tables.get_mut(&(schema, table)) {
            parts.lines.push(constraint);
        }
    }
    for row in database.catalogue(indexes).await? {
        let [schema, table, index] = texts(&row);
        if let Some(parts) = tables.get_mut(&(schema, table)) {
            parts.indexes.push(format!("{index};"));
        }
    }
    let table = |((schema, name), parts): ((String, String), Parts)| {
        let schema = Some(schema).filter(|schema| !schema.is_empty());
        let mut table = Table {
            schema,
            name,
            is_view: parts.is_view,
            create: String::new(),
            indexes: parts.indexes,
        };
        let kind = if table.is_view { "VIEW" } else { "TABLE" };
        let name = match &table.schema {
            Some(schema) => format!("{}.{}", plain(dialect, schema), plain(dialect, &table.name)),
            None => plain(dialect, &table.name),
        };
        let _ =
            write!(table.create, "CREATE {kind} {name} (\n    {}\n);", parts.lines.join(",\n    "));
        table
    };
    Ok(tables.into_iter().map(table).collect())
}

/// A name without quotes if it needs none.
fn plain(dialect: SqlDialect, name: &str) -> String {
    let is_word = name.starts_with(|it: char| it.is_ascii_lowercase() || it == '_')
        && name.chars().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_');
    let is_taken = RESERVED.contains(&name);
    if is_word && !is_taken { name.to_owned() } else { dialect.quote(name) }
}

/// Words that tables are called by and that mean something else.
const RESERVED: &[&str] = &[
    "all",
    "and",
    "as",
    "by",
    "case",
    "check",
    "column",
    "create",
    "default",
    "delete",
    "desc",
    "distinct",
    "drop",
    "else",
    "end",
    "from",
    "group",
    "having",
    "in",
    "index",
    "insert",
    "into",
    "is",
    "join",
    "key",
    "left",
    "like",
    "limit",
    "not",
    "null",
    "on",
    "or",
    "order",
    "primary",
    "references",
    "right",
    "select",
    "set",
    "table",
    "then",
    "to",
    "union",
    "unique",
    "update",
    "user",
    "using",
    "values",
    "when",
    "where",
    "with",
];

/// The texts of a row; nothing is an empty one.
fn texts<const N: usize>(row: &[Value]) -> [String; N] {
    std::array::from_fn(|at| match row.get(at) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(schema: Option<&str>, name: &str) -> Table {
        Table {
            schema: schema.map(str::to_owned),
            name: name.to_owned(),
            is_view: false,
            create: String::new(),
            indexes: Vec::new(),
        }
    }

    #[test]
    fn names_are_found_as_they_are_and_quoted_by_dialect() {
        let tables = vec![
            table(None, "customers"),
            table(None, "order"),
            table(None, "two words"),
            table(None, "Mixed"),
            table(None, "we\"ird`; DROP TABLE customers; --"),
            table(Some("sales"), "items"),
            table(Some("hr"), "people"),
            table(Some("sales"), "people"),
        ];
        let catalogue = Catalogue { tables };
        for (written, sqlite, mysql) in [
            ("customers", "\"customers\"", "`customers`"),
            ("CUSTOMERS", "\"customers\"", "`customers`"),
            ("\"order\"", "\"order\"", "`order`"),
            ("two words", "\"two words\"", "`two words`"),
            ("mixed", "\"Mixed\"", "`Mixed`"),
            (
                "we\"ird`; DROP TABLE customers; --",
                "\"we\"\"ird`; DROP TABLE customers; --\"",
                "`we\"ird``; DROP TABLE customers; --`",
            ),
            ("items", "\"sales\".\"items\"", "`sales`.`items`"),
            ("sales.people", "\"sales\".\"people\"", "`sales`.`people`"),
        ] {
            let found = catalogue.find(written).unwrap();
            assert_eq!(found.quoted(SqlDialect::Sqlite), sqlite, "{written}");
            assert_eq!(found.quoted(SqlDialect::Mysql), mysql, "{written}");
        }
        for unknown in ["nope", "customers; DROP TABLE customers", "people", ""] {
            assert!(catalogue.find(unknown).is_err(), "{unknown}");
        }
    }
}
