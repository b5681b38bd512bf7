//! The SQL tools on SQLite, PostgreSQL and MariaDB: results, limits, schemas, the end of queries.
#![cfg(feature = "sql")]

#[path = "sql_servers/mod.rs"]
mod sql_servers;
mod sql_support;

use std::sync::Arc;
use std::time::Duration;

use prowess_toolkits::{
    Layer, Layers, SqlConnectionSettings, SqlMode, SqlPrivileges, SqlSettings, SqlToolkit,
};
use prowess_workspace::{ArtifactScope, ArtifactStore, FileArtifacts};
use serde_json::{Value, json};
use sql_servers::{Database, Kind, Role};
use sql_support::Tools;

fn settings(database: &Database, role: Role) -> SqlConnectionSettings {
    SqlConnectionSettings::new(database.url(role))
}

macro_rules! on_all {
    ($($name:ident)+) => {$(
        mod $name {
            #[tokio::test]
            async fn sqlite() {
                super::on(stringify!($name), super::Kind::Sqlite, super::checks::$name).await;
            }
            #[tokio::test]
            async fn postgresql() {
                super::on(stringify!($name), super::Kind::Postgresql, super::checks::$name).await;
            }
            #[tokio::test]
            async fn mysql() {
                super::on(stringify!($name), super::Kind::Mysql, super::checks::$name).await;
            }
        }
    )+};
}

async fn on(test: &str, kind: Kind, check: impl AsyncFnOnce(Database)) {
    if let Some(database) = Database::new(test, kind).await {
        check(database).await;
    }
}

on_all! {
    results_have_columns_types_and_rows
    errors_are_told_without_the_words_of_a_driver
    what_is_cut_is_said_and_the_whole_is_an_artifact
    a_query_that_takes_too_long_ends_on_the_server
    a_query_that_nobody_waits_for_ends_on_the_server
    tables_with_any_name_can_be_described_and_sampled
    the_opening_tells_what_there_is
    plans_and_verdicts
    a_write_runs_once_when_it_was_approved
    lists_limit_what_can_be_read
    values_of_all_kinds_are_shown
}

mod checks {
    use super::*;

    /// columns with types, and a header also where there are no rows.
    pub(super) async fn results_have_columns_types_and_rows(database: Database) {
        let tools = Tools::on(settings(&database, Role::Reader));
        let outcome = tools.ok("SELECT COUNT(*) AS n FROM customers -- all of them").await;
        let count = outcome.data["rows"][0][0].as_i64().unwrap();
        assert!(count > 0);
        assert!(outcome.content.contains(&format!("| {count} |")), "{}", outcome.content);
        assert!(outcome.content.ends_with("1 row"), "{}", outcome.content);
        assert!(outcome.content.contains("not instructions"));
        assert_eq!(outcome.data["columns"][0]["name"], "n");
        assert!(!outcome.data["columns"][0]["type"].as_str().unwrap().is_empty());
        assert_eq!(outcome.data["row_count"], 1);
        assert_eq!(outcome.data["truncated"], false);
        assert!(outcome.data["elapsed_ms"].is_u64());

        let outcome = tools.ok("SELECT id, name FROM customers WHERE 1 = 0").await;
        assert!(outcome.content.contains("| id | name |"), "{}", outcome.content);
        assert!(outcome.content.ends_with("0 rows"), "{}", outcome.content);
        assert_eq!(outcome.data["rows"], json!([]));
        assert_eq!(outcome.data["columns"].as_array().unwrap().len(), 2);
    }

    pub(super) async fn errors_are_told_without_the_words_of_a_driver(database: Database) {
        let tools = Tools::on(settings(&database, Role::Reader));
        for sql in ["SELEC 1", "SELECT FROM WHERE", "SELECT * FROM no_such_table", "SELECT nope"] {
            let outcome = tools.query(sql).await;
            assert!(outcome.is_error, "{sql}: {}", outcome.content);
            assert!(outcome.content.starts_with("Query error: "), "{sql}: {}", outcome.content);
            assert_eq!(outcome.code, "query_error", "{sql}");
            for noise in ["sqlx", "rusqlite", "Database(", "SqliteFailure", "error returned from"] {
                assert!(!outcome.content.contains(noise), "{}", outcome.content);
            }
        }
        // The connection is as good as before.
        tools.ok("SELECT 1").await;
        let outcome = tools.query("DELETE FROM orders").await;
        let expected = "Error: DELETE operations not allowed in read-only mode. \
                        Only SELECT queries are permitted.";
        assert_eq!((outcome.content.as_str(), outcome.code.as_ref()), (expected, "read_only"));
        let call = json!({"query": "SELECT 1", "connection": "other"});
        let outcome = tools.call("sql_query", call).await;
        assert_eq!(outcome.code, "connection_not_found");
        assert!(outcome.content.contains("main"), "{}", outcome.content);
    }

    fn numbers(kind: Kind, count: u32) -> String {
        match kind {
            Kind::Postgresql => {
                format!("SELECT n, 'row ' || n AS t FROM generate_series(1, {count}) AS g(n)")
            }
            Kind::Sqlite => format!(
                "WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < {count}) \
                 SELECT n, 'row ' || n AS t FROM g"
            ),
            Kind::Mysql => format!(
                "WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < {count}) \
                 SELECT n, CONCAT('row ', n) AS t FROM g"
            ),
        }
    }

    /// what is more than the limits is an artifact, whole.
    pub(super) async fn what_is_cut_is_said_and_the_whole_is_an_artifact(database: Database) {
        let kind = database.kind;
        let mut own = settings(&database, Role::Reader);
        own.max_rows = 10;
        let bare = Tools::on(own.clone());
        // At the edge.
        let outcome = bare.ok(&numbers(kind, 10)).await;
        assert_eq!(
            (&outcome.data["truncated"], &outcome.data["row_count"]),
            (&json!(false), &json!(10))
        );
        let outcome = bare.ok(&numbers(kind, 11)).await;
        assert_eq!(outcome.data["truncated"], true);
        assert_eq!(outcome.data["rows"].as_array().unwrap().len(), 10);
        let expected = "Showing the first 10 of more than 10 rows. The rest was not kept: there is no \
                        artifact store.";
        assert!(outcome.content.ends_with(expected), "{}", outcome.content);
        bare.ok("SELECT 1").await;

        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(FileArtifacts::new(folder.path().join("artifacts")));
        let sql = SqlSettings::default().with_connection("main", own);
        let toolkit = SqlToolkit::new(sql, folder.path()).unwrap();
        let toolkit = toolkit.with_artifacts(store.clone()).with_scratch(folder.path().join("tmp"));
        let tools = Tools::new(toolkit);
        let outcome = tools.ok(&numbers(kind, 500)).await;
        let expected = "Showing the first 10 of 500 rows. The whole result is the artifact \
                        sql_result_main.csv (version 0).";
        assert!(outcome.content.ends_with(expected), "{}", outcome.content);
        assert_eq!(outcome.data["row_count"], 500);
        assert_eq!(outcome.artifacts.len(), 1);
        let session: prowess_runtime::SessionKey = "test".parse().unwrap();
        let scope = ArtifactScope::new(session.app(), session.user(), session.session());
        let artifact = store.load(&scope, "sql_result_main.csv", None).await.unwrap().unwrap();
        let text = String::from_utf8(artifact.bytes.to_vec()).unwrap();
        assert_eq!(artifact.mime_type, "text/csv");
        assert_eq!(text.lines().count(), 501);
        assert!(text.starts_with("n,t\r\n1,row 1\r\n2,row 2\r\n"), "{}", &text[..40]);
        assert!(text.ends_with("500,row 500\r\n"));
        assert_eq!(std::fs::read_dir(folder.path().join("tmp")).unwrap().count(), 0);
    }

    /// Something that takes for ever, with a mark in it.
    fn endless(kind: Kind, mark: &str) -> String {
        match kind {
            Kind::Postgresql => format!(
                "SELECT count(*) FROM generate_series(1, 100000000) a, generate_series(1, 100000000) b \
                 WHERE a::text <> '{mark}'"
            ),
            Kind::Sqlite => format!(
                "WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g) \
                 SELECT count(*) FROM g WHERE '{mark}' <> ''"
            ),
            Kind::Mysql => format!(
                "SELECT COUNT(*) FROM information_schema.COLUMNS a, information_schema.COLUMNS b, \
                 information_schema.COLUMNS c, information_schema.COLUMNS d \
                 WHERE CONCAT(a.COLUMN_NAME, b.COLUMN_NAME, c.COLUMN_NAME, d.COLUMN_NAME) <> '{mark}'"
            ),
        }
    }

    /// How many statements with this mark the server works on.
    async fn running(database: &Database, mark: &str) -> i64 {
        use sqlx::Row as _;
        match database.kind {
            Kind::Sqlite => 0,
            Kind::Postgresql => {
                let mut connection = database.postgresql(Role::Superuser).await;
                let sql = format!(
                    "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' \
                     AND pid <> pg_backend_pid() AND query LIKE '%{mark}%'"
                );
                let row = sqlx::query(sqlx::AssertSqlSafe(sql)).fetch_one(&mut connection).await;
                row.unwrap().get(0)
            }
            Kind::Mysql => {
                let mut connection = database.mysql(Role::Superuser).await;
                let sql = format!(
                    "SELECT COUNT(*) FROM information_schema.PROCESSLIST \
                     WHERE ID <> CONNECTION_ID() AND INFO LIKE '%{mark}%'"
                );
                let row = sqlx::query(sqlx::AssertSqlSafe(sql)).fetch_one(&mut connection).await;
                row.unwrap().get(0)
            }
        }
    }

    async fn until(database: &Database, mark: &str, expected: i64) {
        for _ in 0..600 {
            if running(database, mark).await == expected {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("there are never {expected} of {mark}");
    }

    /// the limit of time ends a query where it runs.
    pub(super) async fn a_query_that_takes_too_long_ends_on_the_server(database: Database) {
        let mut own = settings(&database, Role::Reader);
        own.timeout_seconds = 1;
        let tools = Tools::on(own);
        let outcome = tools.query(&endless(database.kind, "mark_too_long")).await;
        assert_eq!(outcome.code, "query_timeout", "{}", outcome.content);
        assert!(outcome.content.contains("longer than 1 seconds"), "{}", outcome.content);
        until(&database, "mark_too_long", 0).await;
        tools.ok("SELECT 1").await;
    }

    pub(super) async fn a_query_that_nobody_waits_for_ends_on_the_server(database: Database) {
        let mut own = settings(&database, Role::Reader);
        own.timeout_seconds = 600;
        let tools = Arc::new(Tools::on(own));
        let (sql, running) = (endless(database.kind, "mark_given_up"), Arc::clone(&tools));
        let task = tokio::spawn(async move { running.query(&sql).await });
        if database.kind == Kind::Sqlite {
            tokio::time::sleep(Duration::from_millis(300)).await;
        } else {
            until(&database, "mark_given_up", 1).await;
        }
        task.abort();
        until(&database, "mark_given_up", 0).await;
        // A file has one thread: this would wait for the query.
        tools.ok("SELECT 1").await;
    }

    /// names are resolved and quoted; samples are masked.
    pub(super) async fn tables_with_any_name_can_be_described_and_sampled(database: Database) {
        let (open, close) = if database.kind == Kind::Mysql { ("`", "`") } else { ("\"", "\"") };
        let weird = if database.kind == Kind::Mysql { "we``ird; -- x" } else { "we\"\"ird; -- x" };
        for name in ["order", "two words", weird] {
            let sql = format!(
                "CREATE TABLE {open}{name}{close} (id INTEGER PRIMARY KEY, {open}select{close} INTEGER, \
                 email VARCHAR(50)); \
                 INSERT INTO {open}{name}{close} VALUES (1, 2, 'someone@example.com')"
            );
            database.run(Role::Owner, &sql).await.unwrap();
        }
        if database.kind == Kind::Postgresql {
            let grant = format!(
                "GRANT SELECT ON ALL TABLES IN SCHEMA public TO {}",
                database.user(Role::Reader)
            );
            database.run(Role::Owner, &grant).await.unwrap();
        }
        let sql = SqlSettings::default().with_connection("main", settings(&database, Role::Reader));
        let mut many = sql.clone();
        many.sample_tables = 100;
        let tools = Tools::new(SqlToolkit::new(many, "/nowhere").unwrap());
        let weird = weird.replace("``", "`").replace("\"\"", "\"");
        for name in ["order", "two words", weird.as_str(), "ORDER", "customers"] {
            let call = json!({"table_name": name});
            let outcome = tools.call("sql_describe_table", call).await;
            assert!(!outcome.is_error, "{name}: {}", outcome.content);
            assert!(outcome.content.contains("CREATE TABLE"), "{}", outcome.content);
            assert!(outcome.content.contains("## Indexes\n"), "{}", outcome.content);
        }
        let call = json!({"table_name": "customers; DROP TABLE customers"});
        let outcome = tools.call("sql_describe_table", call).await;
        assert_eq!(outcome.code, "table_not_found");
        let expected = "Error describing table customers; DROP TABLE customers: there is no table";
        assert!(outcome.content.starts_with(expected), "{}", outcome.content);
        assert!(outcome.hint.unwrap().contains("customers"));

        let outcome = tools.call("sql_get_samples", json!({})).await;
        assert!(outcome.content.starts_with("## Sample Data\n"), "{}", outcome.content);
        assert!(outcome.content.contains("### order\n"), "{}", outcome.content);
        assert!(outcome.content.contains("### two words\n"), "{}", outcome.content);
        assert!(!outcome.content.contains("Error fetching"), "{}", outcome.content);
        assert!(!outcome.content.contains("someone@example.com"), "{}", outcome.content);
        assert!(outcome.content.contains("***"));
        assert_eq!(outcome.data["tables"]["order"], json!([[1, 2, "***"]]));

        let tools = Tools::new(SqlToolkit::new(sql, "/nowhere").unwrap());
        let outcome = tools.call("sql_get_samples", json!({})).await;
        assert_eq!(outcome.data["tables"].as_object().unwrap().len(), 5);
        assert!(outcome.content.contains("more tables are not shown"), "{}", outcome.content);
        let most = outcome.data["tables"].as_object().unwrap().values();
        assert!(most.map(|rows| rows.as_array().unwrap().len()).max().unwrap() <= 3);
        let outcome = tools.call("sql_list_tables", json!({})).await;
        assert!(outcome.content.contains("customers"), "{}", outcome.content);
    }

    pub(super) async fn the_opening_tells_what_there_is(database: Database) {
        let tools = Tools::on(settings(&database, Role::Reader));
        let text = tools.call("sql_opening", json!({})).await.content;
        let dialect = format!("- Dialect: {}\n- Available Tables: ", database.kind.name());
        let start = format!("## SQL Skill Activated\n\n### Database Information\n{dialect}");
        assert!(text.starts_with(&start), "{text}");
        let schema = text.find("\n\n### Database Schema\n").unwrap();
        let mode =
            text.find("\n\n### Read-Only Mode\nThis database is in READ-ONLY mode. ").unwrap();
        assert!(schema < mode && text[schema..mode].contains("CREATE TABLE"), "{text}");
        assert!(!text.contains("Warning"), "{text}");

        let mut small =
            SqlSettings::default().with_connection("main", settings(&database, Role::Owner));
        small.schema_tokens = 100;
        let tools = Tools::new(SqlToolkit::new(small, "/nowhere").unwrap());
        let text = tools.call("sql_opening", json!({})).await.content;
        assert!(!text.contains("CREATE TABLE"), "{text}");
        assert!(text.contains("sql_describe_table"), "{text}");
        assert_eq!(text.contains("can write"), database.kind != Kind::Sqlite, "{text}");
    }

    /// syntax, whether it is allowed, the kind of statement, and why.
    pub(super) async fn plans_and_verdicts(database: Database) {
        let tools = Tools::on(settings(&database, Role::Reader));
        let plan = |sql: &'static str| tools.call("sql_explain_query", json!({"query": sql}));
        let outcome = plan("SELECT * FROM customers WHERE id = 1;").await;
        assert!(!outcome.is_error, "{}", outcome.content);
        assert!(outcome.content.starts_with("## Query Execution Plan\n\n"), "{}", outcome.content);
        assert!(outcome.content.contains("customers"), "{}", outcome.content);
        for (sql, code) in [
            ("DELETE FROM orders", "read_only"),
            ("SELECT 1; DELETE FROM orders", "read_only"),
            ("SELECT * FROM nope", "query_error"),
            ("SELEC", "query_error"),
            ("EXPLAIN SELECT 1", "query_error"),
        ] {
            let outcome = plan(sql).await;
            assert_eq!(outcome.code, code, "{sql}: {}", outcome.content);
            let is_error = outcome.content.starts_with("Error explaining query: ");
            assert_eq!(is_error, code == "query_error", "{}", outcome.content);
        }
        let valid =
            "✓ Query syntax is valid.\n\nThe query is syntactically correct and can be executed.";
        // Statement, syntax, allowed, kind.
        for (sql, syntax, allowed, kind) in [
            ("SELECT * FROM customers", true, true, "select"),
            ("WITH c AS (SELECT 1 AS x) SELECT x FROM c", true, true, "select"),
            ("DELETE FROM orders", true, false, "delete"),
            ("WITH x AS (SELECT 1) DELETE FROM orders", true, false, "delete"),
            ("DROP TABLE orders", true, false, "drop"),
            ("SELECT 1; DROP TABLE orders", true, false, "unknown"),
            ("SELECT nope(1)", true, false, "select"),
            ("DELETE FORM orders", false, false, "delete"),
            ("UPDATE customers SET", false, false, "update"),
            ("SELEC * FROM customers", false, false, "unknown"),
            ("SELECT * FROM nope", false, false, "select"),
            ("", false, false, "unknown"),
        ] {
            let outcome = tools.call("sql_validate_query", json!({"query": sql})).await;
            assert_eq!(outcome.data["syntax_ok"], syntax, "{sql}: {}", outcome.content);
            assert_eq!(outcome.data["allowed"], allowed, "{sql}: {}", outcome.content);
            assert_eq!(outcome.data["statement_kind"], kind, "{sql}: {}", outcome.content);
            assert_eq!(outcome.data["reason"].is_null(), allowed, "{sql}");
            assert_eq!(outcome.content == valid, allowed, "{sql}: {}", outcome.content);
            if !syntax {
                assert!(outcome.content.starts_with("✗ Query syntax error:\n\n"), "{sql}");
                assert!(outcome.content.ends_with("\n\nPlease fix the syntax and try again."));
            }
        }
    }

    /// mode, approval of the exact statement, once.
    pub(super) async fn a_write_runs_once_when_it_was_approved(database: Database) {
        let mut own = settings(&database, Role::Owner);
        own.mode = SqlMode::Rw;
        let tools = Arc::new(Tools::on(own));
        let count = async || -> i64 {
            let outcome = tools.ok("SELECT COUNT(*) FROM customers WHERE name = 'New'").await;
            outcome.data["rows"][0][0].as_i64().unwrap()
        };
        let columns = tools.ok("SELECT * FROM customers WHERE 1 = 0").await.data["columns"].clone();
        assert!(columns.as_array().unwrap().len() > 1);
        let sql = "UPDATE customers SET name = 'New' WHERE id = 1";
        let first = tools.query(sql).await;
        assert_eq!((first.code.as_ref(), first.is_error), ("approval_required", true));
        assert_eq!(first.data["statement"], sql);
        assert_eq!(first.data["connection"], "main");
        let id = first.data["approval_id"].as_str().unwrap().to_owned();
        assert_eq!(tools.query(sql).await.data["approval_id"], id.as_str());
        assert_eq!(count().await, 0);
        assert_eq!(tools.toolkit.pending_writes().len(), 1);
        tools.toolkit.approve(&id).unwrap();
        // Nothing else runs with it.
        assert_eq!(tools.query(&sql.replace("= 1", "= 2")).await.code, "approval_required");
        assert_eq!(
            tools.call_as("another", "sql_query", json!({"query": sql})).await.code,
            "approval_required"
        );
        let calls = (0..8).map(|_| {
            let tools = Arc::clone(&tools);
            tokio::spawn(async move { tools.query(sql).await })
        });
        let mut ran = 0;
        for call in calls.collect::<Vec<_>>() {
            let outcome = call.await.unwrap();
            ran += u32::from(!outcome.is_error);
            if !outcome.is_error {
                assert_eq!(outcome.data["rows_affected"], 1, "{}", outcome.content);
            }
        }
        assert_eq!((ran, count().await), (1, 1));
        assert_eq!(tools.toolkit.approve(&id).unwrap_err().code(), "approval_not_pending");
        // What fails is undone, and what is no write of data is never run.
        let outcome = tools.query("GRANT ALL ON customers TO someone").await;
        assert_eq!(outcome.code, "write_not_allowed", "{}", outcome.content);
        assert_eq!(tools.query("SELECT 1; DELETE FROM orders").await.code, "read_only");
        let outcome = tools.query("INSERT INTO no_such_table VALUES (1)").await;
        let id = outcome.data["approval_id"].as_str().unwrap().to_owned();
        tools.toolkit.approve(&id).unwrap();
        let outcome = tools.query("INSERT INTO no_such_table VALUES (1)").await;
        assert_eq!(outcome.code, "query_error", "{}", outcome.content);
        // A connection of the other mode never asks.
        let tools = Tools::on(settings(&database, Role::Owner));
        assert_eq!(tools.query(sql).await.code, "read_only");
        assert!(tools.toolkit.pending_writes().is_empty());
    }

    /// a connection has its own tables, to read and to write.
    pub(super) async fn lists_limit_what_can_be_read(database: Database) {
        let mut own = settings(&database, Role::Reader);
        own.tables = ["customers".to_owned()].into();
        let tools = Tools::on(own);
        tools.ok("SELECT COUNT(*) FROM customers").await;
        tools.ok("WITH orders AS (SELECT 1 AS x) SELECT x FROM orders").await;
        for sql in [
            "SELECT * FROM orders",
            "WITH orders AS (SELECT * FROM orders) SELECT * FROM orders",
            "SELECT 1 WHERE EXISTS (SELECT 1 FROM orders)",
        ] {
            assert_eq!(tools.query(sql).await.code, "table_not_allowed", "{sql}");
        }
        if database.kind == Kind::Sqlite {
            let sql = "SELECT name FROM pragma_table_info('orders')";
            assert_eq!(tools.query(sql).await.code, "table_not_allowed");
            Tools::on(settings(&database, Role::Reader)).ok(sql).await;
        }
        let text = tools.call("sql_list_tables", json!({})).await.content;
        assert_eq!(text, "customers");
        let outcome = tools.call("sql_describe_table", json!({"table_name": "orders"})).await;
        assert_eq!(outcome.code, "table_not_found");
        let text = tools.call("sql_opening", json!({})).await.content;
        assert!(!text.contains("orders"), "{text}");
        // Nor what can be written.
        let mut own = settings(&database, Role::Owner);
        (own.tables, own.mode) = (["customers".to_owned()].into(), SqlMode::Rw);
        let tools = Tools::on(own);
        for (sql, code) in [
            ("UPDATE customers SET city = 'x' WHERE id = 1", "approval_required"),
            ("DELETE FROM customers WHERE id IN (SELECT 1)", "approval_required"),
            ("DELETE FROM orders", "table_not_allowed"),
            ("UPDATE orders SET status = 'x'", "table_not_allowed"),
            ("INSERT INTO orders (id) VALUES (1)", "table_not_allowed"),
            ("UPDATE customers SET city = (SELECT MAX(status) FROM orders)", "table_not_allowed"),
            ("INSERT INTO customers SELECT * FROM products", "table_not_allowed"),
            ("DROP TABLE customers", "table_not_allowed"),
            ("CREATE TABLE customers_2 AS SELECT * FROM orders", "table_not_allowed"),
        ] {
            let outcome = tools.query(sql).await;
            assert_eq!(outcome.code, code, "{sql}: {}", outcome.content);
        }
        let outcome = tools.query("DELETE FORM customers").await;
        assert!(outcome.content.starts_with("Query error: "), "{}", outcome.content);
    }

    pub(super) async fn values_of_all_kinds_are_shown(database: Database) {
        let tools = Tools::on(settings(&database, Role::Reader));
        let (sql, expected): (&str, Value) = match database.kind {
            Kind::Sqlite => (
                "SELECT 1 AS a, -2.5 AS b, 'x' AS c, NULL AS d, x'00ff' AS e, 9223372036854775807 AS f",
                json!([1, -2.5, "x", null, "x'00ff'", i64::MAX]),
            ),
            Kind::Postgresql => (
                "SELECT 1 AS a, -2.5::float8 AS b, 'x' AS c, NULL AS d, '\\x00ff'::bytea AS e, \
                 9223372036854775807 AS f, 1.10::numeric AS g, true AS h, ARRAY[1, 2] AS i, \
                 '2024-02-29'::date AS j, '{\"k\": 1}'::jsonb AS k, interval '1 day' AS l",
                json!([
                    1,
                    -2.5,
                    "x",
                    null,
                    "\\x00ff",
                    i64::MAX,
                    "1.10",
                    true,
                    "{1,2}",
                    "2024-02-29",
                    "{\"k\": 1}",
                    "1 day"
                ]),
            ),
            Kind::Mysql => (
                "SELECT 1 AS a, -2.5e0 AS b, 'x' AS c, NULL AS d, x'00ff' AS e, \
                 9223372036854775807 AS f, CAST(1.10 AS DECIMAL(5, 2)) AS g, \
                 18446744073709551615 AS h, DATE '2024-02-29' AS i",
                json!([1, -2.5, "x", null, "x'00ff'", i64::MAX, "1.10", u64::MAX, "2024-02-29"]),
            ),
        };
        let outcome = tools.ok(sql).await;
        assert_eq!(outcome.data["rows"][0], expected, "{}", outcome.content);
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told() {
    for url in
        ["postgresql://u@127.0.0.1:1/d", "mysql://u@127.0.0.1:1/d", "sqlite:////nowhere/x.db"]
    {
        let tools = Tools::on(SqlConnectionSettings::new(url));
        let outcome = tools.query("SELECT 1").await;
        assert_eq!(outcome.code, "database_unreachable", "{url}: {}", outcome.content);
        let text = tools.call("sql_opening", json!({})).await.content;
        assert!(text.contains("cannot be reached"), "{text}");
    }
}

#[tokio::test]
async fn the_demo_has_forty_two_customers() {
    let home = tempfile::tempdir().unwrap();
    let settings = SqlSettings::default().with_environment(|_| None).unwrap();
    let tools = Tools::new(SqlToolkit::new(settings, home.path()).unwrap());
    let outcome = tools.ok("SELECT COUNT(*) FROM customers").await;
    assert_eq!(outcome.data["rows"], json!([[42]]));
    assert!(outcome.content.contains("| 42 |"));
    let text = tools.call("sql_list_tables", json!({})).await.content;
    assert_eq!(text, "customers, orders, products");
    let text = tools.call("sql_opening", json!({})).await.content;
    assert!(text.contains("- Dialect: sqlite\n- Available Tables: customers, orders, products\n"));
    assert!(
        text.contains("### Database Schema\nCREATE TABLE customers (\n    id INTEGER PRIMARY KEY,")
    );
    let text = tools.call("sql_describe_table", json!({"table_name": "orders"})).await.content;
    assert!(text.contains("CREATE INDEX orders_by_customer ON orders (customer_id);"), "{text}");
    let text = tools.call("sql_get_samples", json!({})).await.content;
    assert!(text.contains("### customers\n") && !text.contains("@example.com"), "{text}");
}

/// A statement that is asked again may be prepared still.
#[tokio::test]
async fn a_query_that_is_asked_again_sees_what_the_tables_are_now() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("changing.db");
    let other = rusqlite::Connection::open(&path).unwrap();
    other
        .execute_batch("CREATE TABLE t (a); CREATE TABLE s (x); INSERT INTO s VALUES (7)")
        .unwrap();
    let mut own = SqlConnectionSettings::new(format!("sqlite:{}", path.display()));
    own.tables = ["t".to_owned()].into();
    // Without the guard: the session alone has to see it.
    let layers = Layers::for_tests(Layer::Off, Layer::On, Layer::On);
    let tools = Tools::with(own, layers);
    let sql = "SELECT * FROM t";
    let columns = async || {
        let outcome = tools.ok(sql).await;
        let names = outcome.data["columns"].as_array().unwrap().iter();
        names.map(|it| it["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(columns().await, ["a"]);
    other.execute_batch("ALTER TABLE t ADD COLUMN b").unwrap();
    assert_eq!(columns().await, ["a", "b"]);
    other.execute_batch("INSERT INTO t VALUES (1, 2)").unwrap();
    assert_eq!(columns().await, ["a", "b"]);
    other.execute_batch("ALTER TABLE t ADD COLUMN c").unwrap();
    assert_eq!(columns().await, ["a", "b", "c"]);
    assert_eq!(tools.ok(sql).await.data["rows"], json!([[1, 2, null]]));
    other.execute_batch("ALTER TABLE t DROP COLUMN a").unwrap();
    assert_eq!(columns().await, ["b", "c"]);
    // What it would read now, it may not.
    other.execute_batch("DROP TABLE t; CREATE VIEW v AS SELECT 1").unwrap();
    assert_eq!(tools.query(sql).await.code, "query_error");
    assert_eq!(tools.query("SELECT x FROM s").await.code, "read_only");
}

#[tokio::test]
async fn a_role_that_can_write_is_not_used_if_that_is_enforced() {
    for kind in Kind::ALL {
        let Some(database) = Database::new("enforced roles", kind).await else { continue };
        let mut own = settings(&database, Role::Owner);
        own.privileges = SqlPrivileges::Enforce;
        let outcome = Tools::on(own).query("SELECT COUNT(*) FROM customers").await;
        assert_eq!(outcome.code, "role_can_write", "{kind:?}: {}", outcome.content);
        if kind != Kind::Sqlite {
            let mut own = settings(&database, Role::Reader);
            own.privileges = SqlPrivileges::Enforce;
            Tools::on(own).ok("SELECT COUNT(*) FROM customers").await;
        }
    }
}

/// who cannot write, and can become somebody who can, or owns something, can write.
#[tokio::test]
async fn a_role_that_can_become_another_or_owns_things_is_found() {
    let Some(database) = Database::new("roles behind roles", Kind::Postgresql).await else {
        return;
    };
    let role = format!("{}second", database.name());
    let (reader, owner) = (database.user(Role::Reader), database.user(Role::Owner));
    let sql = format!(
        "CREATE ROLE {role} LOGIN NOINHERIT; GRANT CONNECT ON DATABASE {} TO {role}; \
         GRANT USAGE ON SCHEMA public TO {role}; \
         GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}",
        database.name()
    );
    database.run(Role::Superuser, &sql).await.unwrap();
    let url = database.url(Role::Reader).replacen(&reader, &role, 1);
    let query = async || {
        let mut own = SqlConnectionSettings::new(&url);
        own.privileges = SqlPrivileges::Enforce;
        Tools::on(own).query("SELECT COUNT(*) FROM customers").await
    };
    let outcome = query().await;
    assert!(!outcome.is_error, "{}", outcome.content);
    let maker = format!("{}maker", database.name());
    for (gives, found, takes) in [
        (
            format!("GRANT {owner} TO {role}"),
            "can become the role",
            format!("REVOKE {owner} FROM {role}"),
        ),
        (
            format!(
                "CREATE ROLE {maker} CREATEDB; ALTER ROLE {role} INHERIT; GRANT {maker} TO {role}"
            ),
            "can become the role",
            format!("REVOKE {maker} FROM {role}; DROP ROLE {maker}"),
        ),
        (
            format!("CREATE TYPE mood AS ENUM ('sad'); ALTER TYPE mood OWNER TO {role}"),
            "it owns type mood",
            "DROP TYPE mood".to_owned(),
        ),
    ] {
        database.run(Role::Superuser, &gives).await.unwrap();
        let outcome = query().await;
        assert_eq!(outcome.code, "role_can_write", "{gives}: {}", outcome.content);
        assert!(outcome.content.contains(found), "{gives}: {}", outcome.content);
        database.run(Role::Superuser, &takes).await.unwrap();
        let outcome = query().await;
        assert!(!outcome.is_error, "{takes}: {}", outcome.content);
    }
}
