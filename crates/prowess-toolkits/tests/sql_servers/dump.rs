//! All that a statement could have changed, as text: rows, schema, sequences, large objects, rights,
//! settings of the server, files.

use std::collections::hash_map::DefaultHasher;
use std::fmt::Write;
use std::hash::{Hash, Hasher};

use sqlx::{MySqlConnection, PgConnection, Row};

use super::{Database, Kind, Role};

pub(super) async fn of(database: &Database) -> String {
    let mut text = match database.kind {
        Kind::Sqlite => sqlite(database),
        Kind::Postgresql => postgresql(&mut database.postgresql(Role::Superuser).await).await,
        Kind::Mysql => mysql(database, &mut database.mysql(Role::Superuser).await).await,
    };
    files(database, &mut text);
    text
}

/// What [`of`] would say after a statement, which is then taken back. `None` if it fails, or does
/// anything that cannot be taken back.
pub(super) async fn after(database: &Database, sql: &str) -> Option<String> {
    let upper = sql.to_uppercase();
    let is_final = |word: &&str| upper.contains(word);
    let statement = sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned()));
    let mut text = match database.kind {
        Kind::Sqlite => return None,
        Kind::Postgresql => {
            const FINAL: [&str; 9] =
                [";", "TICKETS", "XTVAL", "DBLINK", "SLOT", "{", "/TMP", "COPY", "EXTENSION"];
            if FINAL.iter().any(is_final) {
                return None;
            }
            let mut connection = database.postgresql(Role::Superuser).await;
            sqlx::raw_sql("BEGIN").execute(&mut connection).await.ok()?;
            statement.execute(&mut connection).await.ok()?;
            postgresql(&mut connection).await
        }
        Kind::Mysql => {
            const WRITES: [&str; 5] = ["DELETE ", "INSERT ", "UPDATE ", "REPLACE ", "SELECT "];
            const FINAL: [&str; 4] = [";", "TICKETS", "FILE", "MYSQL."];
            let is_write = WRITES.iter().any(|word| upper.starts_with(word));
            if !is_write || FINAL.iter().any(is_final) {
                return None;
            }
            let mut connection = database.mysql(Role::Superuser).await;
            sqlx::raw_sql("START TRANSACTION").execute(&mut connection).await.ok()?;
            statement.execute(&mut connection).await.ok()?;
            mysql(database, &mut connection).await
        }
    };
    files(database, &mut text);
    Some(text)
}

/// The files of the folder. Those of a SQLite database are among them.
fn files(database: &Database, text: &mut String) {
    let mut names: Vec<_> =
        std::fs::read_dir(database.folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    for name in names {
        // Who cannot read it has been told that it is there.
        let mut hasher = DefaultHasher::new();
        std::fs::read(&name).unwrap_or_default().hash(&mut hasher);
        let name = name.file_name().unwrap().to_string_lossy();
        writeln!(text, "file {name} {:016x}", hasher.finish()).unwrap();
    }
}

fn sqlite(database: &Database) -> String {
    let connection = database.sqlite();
    let mut text = String::new();
    for pragma in ["user_version", "application_id", "journal_mode", "encoding", "auto_vacuum"] {
        let value = |row: &rusqlite::Row<'_>| row.get::<_, rusqlite::types::Value>(0);
        let value = connection.query_row(&format!("PRAGMA {pragma}"), [], value).unwrap();
        writeln!(text, "{pragma} {value:?}").unwrap();
    }
    let rows = |sql: &str| -> Vec<Vec<rusqlite::types::Value>> {
        let mut statement = connection.prepare(sql).unwrap();
        let width = statement.column_count();
        let row = |row: &rusqlite::Row<'_>| (0..width).map(|at| row.get(at)).collect();
        // What is damaged is told as well.
        let error = |error: rusqlite::Error| vec![rusqlite::types::Value::Text(error.to_string())];
        let rows = statement.query_map([], row).unwrap();
        rows.map(|row| row.unwrap_or_else(error)).collect()
    };
    for entry in rows("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name") {
        writeln!(text, "{entry:?}").unwrap();
    }
    for table in rows("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name") {
        let rusqlite::types::Value::Text(table) = &table[0] else { unreachable!() };
        for row in rows(&format!("SELECT * FROM \"{}\"", table.replace('"', "\"\""))) {
            writeln!(text, "{table} {row:?}").unwrap();
        }
    }
    text
}

/// Tables of the server for which what other tests do at the same time, or the server does by
/// itself, is not told: which rows are left out, and which columns.
const POSTGRESQL_OWN: [(&str, &str, &str); 8] = [
    ("pg_authid", "rolname LIKE 'test\\_%' AND rolname NOT LIKE current_database() || '%'", ""),
    (
        "pg_database",
        "datname LIKE 'test\\_%' AND datname <> current_database()",
        "datfrozenxid,datminmxid",
    ),
    (
        "pg_auth_members",
        "roleid::regrole::text LIKE 'test\\_%' AND roleid::regrole::text NOT LIKE current_database() || '%'",
        "",
    ),
    (
        "pg_shdepend",
        "dbid NOT IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))",
        "",
    ),
    (
        "pg_db_role_setting",
        "setrole <> 0 AND setrole::regrole::text LIKE 'test\\_%' AND setrole::regrole::text NOT LIKE current_database() || '%'",
        "",
    ),
    ("pg_class", "false", "relpages,reltuples,relallvisible,relfrozenxid,relminmxid"),
    ("pg_statistic", "true", ""),
    ("pg_statistic_ext_data", "true", ""),
];

/// Beside the tables.
const POSTGRESQL_BESIDE: [&str; 5] = [
    "SELECT format('setting %s = %s, %s', name, setting, reset_val) FROM pg_settings \
     WHERE source <> 'client' AND source <> 'session' ORDER BY name",
    "SELECT format('file setting %s = %s', name, setting) FROM pg_file_settings ORDER BY seqno",
    "SELECT format('sequence %s: %s', s.seqrelid::regclass, \
     query_to_xml(format('SELECT last_value, is_called FROM %s', s.seqrelid::regclass), false, true, '')) \
     FROM pg_sequence s ORDER BY 1",
    "SELECT format('prepared %s', gid) FROM pg_prepared_xacts ORDER BY gid",
    "SELECT format('slot %s', slot_name) FROM pg_replication_slots ORDER BY slot_name",
];

async fn postgresql(connection: &mut PgConnection) -> String {
    let mut text = String::new();
    let mut sql = String::from(
        "SELECT n.nspname, quote_ident(n.nspname) || '.' || quote_ident(c.relname), c.relname, n.nspname = 'pg_catalog' \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.relkind IN ('r', 'm') AND n.nspname !~ '^pg_(toast|temp)' ORDER BY 2",
    );
    let tables = ask_postgresql(connection, &sql).await;
    sql.clear();
    for row in &tables {
        let (table, name): (String, String) = (row.get(1), row.get(2));
        let catalog: bool = row.get(3);
        let own = POSTGRESQL_OWN.iter().find(|own| catalog && own.0 == name);
        let (left_out, columns) = own.map_or(("false", ""), |own| (own.1, own.2));
        let joint = if sql.is_empty() { "" } else { "\nUNION ALL " };
        let row = if columns.is_empty() {
            "t::text".to_owned()
        } else {
            format!("(to_jsonb(t) - '{{{columns}}}'::text[])::text")
        };
        if catalog {
            // What the server brings with it is long.
            write!(
                sql,
                "{joint}SELECT concat_ws(' ', '{name}', count(*), sum(hashtextextended({row}, 0)::numeric)) \
                 FROM {table} t WHERE NOT ({left_out})"
            )
        } else {
            write!(
                sql,
                "{joint}SELECT coalesce(string_agg('{name} ' || t::text, E'\\n' ORDER BY t::text), '') FROM {table} t"
            )
        }
        .unwrap();
    }
    for sql in [sql.as_str()].into_iter().chain(POSTGRESQL_BESIDE) {
        for row in ask_postgresql(connection, sql).await {
            writeln!(text, "{}", row.get::<String, _>(0)).unwrap();
        }
    }
    text
}

async fn ask_postgresql(connection: &mut PgConnection, sql: &str) -> Vec<sqlx::postgres::PgRow> {
    let query = sqlx::query(sqlx::AssertSqlSafe(sql.to_owned())).persistent(false);
    query.fetch_all(connection).await.unwrap_or_else(|error| panic!("{error}: {sql}"))
}

/// What the server changes by itself, and what other tests change at the same time.
const MYSQL_OWN: &str = "'innodb_index_stats', 'innodb_table_stats', 'table_stats', 'column_stats', \
    'index_stats', 'general_log', 'slow_log', 'gtid_slave_pos', 'transaction_registry'";

async fn mysql(database: &Database, connection: &mut MySqlConnection) -> String {
    let name = database.name();
    let mut text = String::new();
    let tables = ask_mysql(
        connection,
        &format!(
            "SELECT CONCAT(table_schema, '.', table_name), table_schema, table_name, table_type FROM information_schema.tables \
             WHERE table_schema = '{name}' OR (table_schema = 'mysql' AND table_type = 'BASE TABLE' AND table_name NOT IN ({MYSQL_OWN})) \
             OR table_schema NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys') AND table_schema NOT LIKE 'test\\_%' \
             ORDER BY table_schema, table_name"
        ),
    )
    .await;
    for row in tables {
        let [label, schema, table, kind] = [0, 1, 2, 3].map(|at| string(&row, at));
        let quoted = format!("`{schema}`.`{}`", table.replace('`', "``"));
        if kind != "SYSTEM VIEW" && schema != "mysql" {
            // It is the last column but those about character sets.
            let created = ask_mysql(connection, &format!("SHOW CREATE TABLE {quoted}")).await;
            writeln!(text, "{label} {}", string(&created[0], 1)).unwrap();
        }
        // To read it would be to do what it does.
        if kind == "VIEW" {
            continue;
        }
        let columns = ask_mysql(
            connection,
            &format!("SELECT column_name FROM information_schema.columns WHERE table_schema = '{schema}' AND table_name = '{table}' ORDER BY ordinal_position"),
        )
        .await;
        let columns: Vec<String> =
            columns.iter().map(|row| format!("QUOTE(`{}`)", string(row, 0))).collect();
        let row = format!("CONCAT_WS(',', {})", columns.join(", "));
        // Rights of other tests.
        let left_out = match table.as_str() {
            "global_priv" | "tables_priv" | "columns_priv" | "procs_priv" | "proxies_priv"
                if schema == "mysql" =>
            {
                format!("User LIKE 'test\\_%' AND User NOT LIKE '{name}%'")
            }
            "db" | "proc" | "event" if schema == "mysql" => {
                format!("db LIKE 'test\\_%' AND db <> '{name}'")
            }
            _ => "false".to_owned(),
        };
        let rows = ask_mysql(
            connection,
            &format!("SELECT {row} FROM {quoted} WHERE NOT ({left_out}) ORDER BY 1"),
        )
        .await;
        for row in rows {
            writeln!(text, "{label} {}", string(&row, 0)).unwrap();
        }
    }
    let beside = [
        format!("SELECT CONCAT_WS(' ', 'trigger', trigger_name, action_statement) FROM information_schema.triggers WHERE trigger_schema = '{name}' ORDER BY 1"),
        format!("SELECT CONCAT_WS(' ', 'schema', schema_name, default_collation_name) FROM information_schema.schemata WHERE schema_name NOT LIKE 'test\\_%' OR schema_name = '{name}' ORDER BY 1"),
        "SELECT CONCAT_WS(' ', 'plugin', plugin_name, plugin_status) FROM information_schema.plugins ORDER BY 1".to_owned(),
        "SELECT CONCAT_WS(' ', 'setting', variable_name, variable_value) FROM information_schema.global_variables \
         WHERE variable_name NOT LIKE 'gtid%' AND variable_name NOT LIKE 'innodb_buffer_pool_load%' ORDER BY 1".to_owned(),
    ];
    for sql in beside {
        for row in ask_mysql(connection, &sql).await {
            writeln!(text, "{}", string(&row, 0)).unwrap();
        }
    }
    text
}

async fn ask_mysql(connection: &mut MySqlConnection, sql: &str) -> Vec<sqlx::mysql::MySqlRow> {
    let query = sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned()));
    query.fetch_all(connection).await.unwrap_or_else(|error| panic!("{error}: {sql}"))
}

/// A text, whatever the server calls its type.
fn string(row: &sqlx::mysql::MySqlRow, at: usize) -> String {
    let bytes = row.try_get_unchecked::<Option<Vec<u8>>, _>(at).unwrap().unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
