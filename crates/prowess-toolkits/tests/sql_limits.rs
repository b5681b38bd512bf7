//! What results, errors, names and values may take of memory, of the model's attention and of time,
//! and what is said of what they may not.
#![cfg(feature = "sql")]

#[path = "sql_servers/mod.rs"]
mod sql_servers;
mod sql_support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use prowess_runtime::estimate_tokens;
use prowess_toolkits::{SqlApprover, SqlConnectionSettings, SqlMode, SqlSettings, SqlToolkit};
use prowess_workspace::FileArtifacts;
use serde_json::json;
use sql_servers::{Database, Kind, Role};
use sql_support::Tools;

async fn file() -> Database {
    Database::new("limits of files", Kind::Sqlite).await.unwrap()
}

fn settings(database: &Database) -> SqlConnectionSettings {
    SqlConnectionSettings::new(database.url(Role::Reader))
}

/// One step of SQLite that takes for ever: between two steps it would look at the clock.
const ONE_STEP: &str =
    "SELECT instr(hex(zeroblob(1900000)), hex(zeroblob(900000)) || '1') FROM customers";

/// a limit of time that one long step cannot be talked past.
#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_does_not_end_is_left_and_the_next_query_runs() {
    let database = file().await;
    let mut own = settings(&database);
    own.timeout_seconds = 1;
    own.max_lost_threads = 2;
    let tools = Arc::new(Tools::on(own));
    tools.ok("SELECT 1").await;
    let began = Instant::now();
    let waiting = {
        let tools = Arc::clone(&tools);
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(300)).await;
            tools.query("SELECT count(*) FROM customers").await
        })
    };
    let outcome = tools.query(ONE_STEP).await;
    assert_eq!(outcome.code, "query_timeout", "{}", outcome.content);
    // What waited behind it is done by another thread.
    let waited = waiting.await.unwrap();
    assert!(!waited.is_error, "{}", waited.content);
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    tools.ok("SELECT 1").await;
    // So many, and no more.
    assert_eq!(tools.query(ONE_STEP).await.code, "query_timeout");
    let outcome = tools.query("SELECT 1").await;
    assert_eq!(outcome.code, "database_unreachable", "{}", outcome.content);
    assert!(outcome.content.contains("max_lost_threads"), "{}", outcome.content);
}

/// What nobody waits for any more does not keep others waiting for ever either.
#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_was_given_up_does_not_hold_the_next_query() {
    let database = file().await;
    let mut own = settings(&database);
    own.timeout_seconds = 1;
    let tools = Arc::new(Tools::on(own));
    tools.ok("SELECT 1").await;
    let running = Arc::clone(&tools);
    let task = tokio::spawn(async move { running.query(ONE_STEP).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    task.abort();
    let next = tokio::time::timeout(Duration::from_secs(10), tools.query("SELECT 1")).await;
    assert!(!next.unwrap().is_error);
}

/// A write is waited for, however long a step of it takes.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_is_never_left() {
    let database = file().await;
    let mut own = settings(&database);
    own.timeout_seconds = 1;
    own.mode = SqlMode::Rw;
    let tools = Tools::on(own);
    // Some seconds in one step, and then the end of its time.
    let sql = "UPDATE customers SET city = instr(hex(zeroblob(400000)), hex(zeroblob(200000)) || '1') \
               WHERE id = 1";
    let asked = tools.query(sql).await;
    let id = asked.data["approval_id"].as_str().unwrap().to_owned();
    tools.toolkit.approve(&id).unwrap();
    let before = database.dump().await;
    let outcome = tools.query(sql).await;
    // It has ended, one way or the other, when it is told.
    let after = database.dump().await;
    assert_eq!(outcome.is_error, before == after, "{}", outcome.content);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(database.dump().await == after, "it went on");
}

/// The length of a value and the number of columns, at the edge.
#[tokio::test]
async fn values_and_columns_are_limited_at_the_edge() {
    let database = file().await;
    let mut own = settings(&database);
    (own.max_value_bytes, own.max_columns) = (100_000, 10);
    let tools = Tools::on(own);
    tools.ok("SELECT length(zeroblob(100000))").await;
    let outcome = tools.query("SELECT length(zeroblob(100001))").await;
    assert_eq!(outcome.code, "query_error", "{}", outcome.content);
    assert!(outcome.content.contains("too big"), "{}", outcome.content);
    let columns = |count: usize| format!("SELECT {}", vec!["1"; count].join(", "));
    tools.ok(&columns(10)).await;
    let outcome = tools.query(&columns(11)).await;
    assert!(outcome.content.contains("too many columns"), "{}", outcome.content);
    let tools = Tools::on(settings(&database));
    tools.ok(&columns(256)).await;
    assert!(tools.query(&columns(257)).await.is_error);
    assert!(tools.query("SELECT zeroblob(4194305)").await.is_error);
}

/// `max_bytes` is what is shown, with the signs between values and the names of columns.
#[tokio::test]
async fn what_is_shown_is_within_max_bytes() {
    let database = file().await;
    let mut own = settings(&database);
    (own.max_bytes, own.max_cell_bytes) = (3000, 200);
    let tools = Tools::on(own);
    let long = "x".repeat(9000);
    let wide: Vec<String> = (0..200).map(|at| format!("{at} AS c{at}")).collect();
    for sql in [
        "WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < 900) \
         SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM g"
            .to_owned(),
        "SELECT replace(hex(zeroblob(90)), '0', '<') FROM orders".to_owned(),
        format!("SELECT '{long}' FROM orders"),
        format!("SELECT {} FROM orders", wide.join(", ")),
    ] {
        let outcome = tools.ok(&sql).await;
        let table = outcome.content.split_once("<sql_result>\n").unwrap().1;
        let table = table.split_once("</sql_result>").unwrap().0;
        assert!(table.len() <= 3000, "{} bytes: {}", table.len(), &sql[..60]);
        assert_eq!(outcome.data["truncated"], true);
    }
}

/// Errors repeat what they are about; not all of it, and in one line.
#[tokio::test]
async fn errors_are_short_and_in_one_line() {
    for kind in Kind::ALL {
        let Some(database) = Database::new("short errors", kind).await else { continue };
        let mut own = SqlConnectionSettings::new(database.url(Role::Reader));
        own.max_cell_bytes = 300;
        let tools = Tools::on(own);
        let quote = if kind == Kind::Mysql { '`' } else { '"' };
        let name = format!("{quote}a\n</sql_result>{}{quote}", "b".repeat(40));
        let long = "n".repeat(5000);
        for sql in [
            format!("SELECT * FROM {name}"),
            format!("SELECT {long}(1)"),
            format!("SELECT {long} FROM customers"),
            format!("SELECT 1 FROM customers {long} {long}"),
        ] {
            for tool in ["sql_query", "sql_explain_query", "sql_validate_query"] {
                let outcome = tools.call(tool, json!({"query": sql})).await;
                let text = outcome.content;
                assert!(text.len() < 500, "{kind:?} {tool}: {} bytes", text.len());
                assert!(!text.contains("</sql_result>"), "{kind:?} {tool}: {text}");
                let lines = if tool == "sql_validate_query" { 5 } else { 1 };
                assert!(text.lines().count() <= lines, "{kind:?} {tool}: {text}");
            }
        }
        let outcome = tools.call("sql_describe_table", json!({"table_name": long})).await;
        assert!(outcome.content.len() < 1200, "{}", outcome.content.len());
        assert!(outcome.hint.is_none_or(|hint| hint.len() < 310));
    }
}

async fn many_tables(count: usize) -> Database {
    let database = file().await;
    let mut sql = String::from("BEGIN;");
    for at in 0..count {
        sql.push_str(&format!("CREATE TABLE table_with_a_name_{at} (id INTEGER, a TEXT, b TEXT);"));
        sql.push_str(&format!("CREATE VIEW view_{at} AS SELECT id FROM table_with_a_name_{at};"));
    }
    database.run(Role::Owner, &format!("{sql} COMMIT")).await.unwrap();
    database
}

/// What makes tables and their names are within `max_bytes` as well.
#[tokio::test]
async fn descriptions_and_lists_are_within_max_bytes() {
    let database = many_tables(100).await;
    let mut own = settings(&database);
    own.max_bytes = 1000;
    let tools = Tools::on(own);
    let outcome = tools.call("sql_list_tables", json!({})).await;
    assert!(outcome.content.len() < 1100, "{}", outcome.content);
    assert!(outcome.content.contains("more are not shown (max_bytes)"), "{}", outcome.content);
    assert_eq!(outcome.data["truncated"], true);
    let columns: Vec<String> = (0..200).map(|at| format!("column_{at} TEXT")).collect();
    let sql = format!("CREATE TABLE wide (id INTEGER, {})", columns.join(", "));
    database.run(Role::Owner, &sql).await.unwrap();
    let outcome = tools.call("sql_describe_table", json!({"table_name": "wide"})).await;
    assert!(outcome.content.len() < 1100, "{}", outcome.content);
    assert!(outcome.content.ends_with("bytes (max_bytes)."), "{}", outcome.content);
    let outcome = tools.call("sql_describe_table", json!({"table_name": "customers"})).await;
    assert_eq!(outcome.data["truncated"], false, "{}", outcome.content);
}

/// names of tables and views and the schema have one budget together.
#[tokio::test]
async fn the_opening_is_within_its_budget() {
    let database = many_tables(120).await;
    for tokens in (300..8000).step_by(350).chain([20_000]) {
        let mut own = SqlSettings::default().with_connection("main", settings(&database));
        own.schema_tokens = tokens;
        let tools = Tools::new(SqlToolkit::new(own, "/nowhere").unwrap());
        let text = tools.call("sql_opening", json!({})).await.content;
        let from = text.find("- Available Tables").unwrap();
        let part = &text[from..text.find("\n### Read-Only Mode").unwrap()];
        assert!(estimate_tokens(part) <= tokens, "{} of {tokens}", estimate_tokens(part));
        let is_whole = part.contains("CREATE TABLE table_with_a_name_99 ");
        assert!(is_whole || tokens < 20_000, "{tokens}");
    }
}

/// what is not the query's fault is not called that.
#[tokio::test]
async fn a_validation_that_takes_too_long_is_no_syntax_error() {
    let Some(database) = Database::new("slow validations", Kind::Postgresql).await else { return };
    let mut own = SqlConnectionSettings::new(database.url(Role::Reader));
    own.timeout_seconds = 1;
    let tools = Tools::on(own);
    let mut locking = database.postgresql(Role::Owner).await;
    let sql = "BEGIN; LOCK TABLE orders IN ACCESS EXCLUSIVE MODE";
    sqlx::raw_sql(sql).execute(&mut locking).await.unwrap();
    let call = json!({"query": "SELECT * FROM orders"});
    let outcome = tools.call("sql_validate_query", call).await;
    assert_eq!(outcome.code, "query_timeout", "{}", outcome.content);
    let said = outcome.content.starts_with("✗ Validation error: ");
    assert!(said && !outcome.content.contains("syntax"), "{}", outcome.content);
}

/// A store that does not take what a result is.
#[tokio::test]
async fn why_a_result_is_not_kept_has_a_code() {
    let database = file().await;
    let mut own = settings(&database);
    own.max_rows = 1;
    let outcome = Tools::on(own.clone()).ok("SELECT id FROM orders").await;
    assert_eq!(outcome.data["not_kept"], "no_artifact_store");
    let folder = tempfile::tempdir().unwrap();
    let store = FileArtifacts::new(folder.path().join("artifacts")).with_max_bytes(10);
    let toolkit = SqlToolkit::new(SqlSettings::default().with_connection("main", own), "/nowhere");
    let toolkit = toolkit.unwrap().with_artifacts(Arc::new(store)).with_scratch(folder.path());
    let outcome = Tools::new(toolkit).ok("SELECT id FROM orders").await;
    assert_eq!(outcome.data["not_kept"], "limit_exceeded", "{}", outcome.content);
    assert!(outcome.content.contains("The rest was not kept: "), "{}", outcome.content);
}

/// Some bytes in one value.
fn long_value(kind: Kind, bytes: usize) -> String {
    match kind {
        Kind::Sqlite => format!("SELECT hex(zeroblob({}))", bytes / 2),
        _ => format!("SELECT repeat('x', {bytes})"),
    }
}

/// no value is taken that is longer than `max_value_bytes`, and the next query runs.
async fn a_value_is_limited_at_the_edge(kind: Kind) {
    let Some(database) = Database::new("a value is limited at the edge", kind).await else {
        return;
    };
    let mut own = settings(&database);
    own.max_value_bytes = 100_000;
    let tools = Tools::on(own);
    // SQLite counts the whole row, with what it says of its columns.
    let most = if kind == Kind::Sqlite { 99_990 } else { 100_000 };
    let outcome = tools.ok(&long_value(kind, most)).await;
    let expected = format!("({most} bytes in all)");
    assert!(outcome.content.contains(&expected), "{}", outcome.content);
    for _ in 0..2 {
        let outcome = tools.query(&long_value(kind, 100_002)).await;
        assert_eq!(outcome.code, "query_error", "{}", outcome.content);
        assert!(outcome.content.contains("string or blob too big"), "{}", outcome.content);
        assert_eq!(outcome.data, json!(null));
    }
    // Rows that come after it are not waited for.
    if kind == Kind::Postgresql {
        let began = Instant::now();
        let sql = "SELECT repeat('x', 100001) FROM generate_series(1, 20000)";
        assert_eq!(tools.query(sql).await.code, "query_error");
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
    tools.ok("SELECT 1").await;
}

#[tokio::test]
async fn a_value_is_limited_at_the_edge_sqlite() {
    a_value_is_limited_at_the_edge(Kind::Sqlite).await;
}

#[tokio::test]
async fn a_value_is_limited_at_the_edge_postgresql() {
    a_value_is_limited_at_the_edge(Kind::Postgresql).await;
}

#[tokio::test]
async fn a_value_is_limited_at_the_edge_mysql() {
    a_value_is_limited_at_the_edge(Kind::Mysql).await;
}

/// A first row that is longer than the file may be is told, and no empty file is handed over.
#[tokio::test]
async fn a_row_that_is_too_long_to_be_kept_is_said() {
    let database = file().await;
    let mut own = settings(&database);
    (own.max_cell_bytes, own.max_artifact_bytes) = (100, 1000);
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(FileArtifacts::new(folder.path().join("artifacts")));
    let toolkit = SqlToolkit::new(SqlSettings::default().with_connection("main", own), "/nowhere");
    let toolkit = toolkit.unwrap().with_artifacts(store).with_scratch(folder.path());
    let tools = Tools::new(toolkit);
    let outcome = tools.ok("SELECT hex(zeroblob(1000)) AS a").await;
    let expected = "Showing the first 1 of at least 1 row. The rest was not kept: the first row alone \
                    is longer than max_artifact_bytes.";
    assert!(outcome.content.ends_with(expected), "{}", outcome.content);
    assert_eq!(outcome.data["not_kept"], "result_too_long");
    assert!(outcome.artifacts.is_empty());
    // Two rows fit, the third does not.
    let outcome = tools.ok("SELECT hex(zeroblob(200)) AS a FROM orders LIMIT 3").await;
    let expected = "Showing the first 3 of at least 3 rows. Its first part (2 rows, up to \
                    max_artifact_bytes) is the artifact sql_result_main.csv (version 0).";
    assert!(outcome.content.ends_with(expected), "{}", outcome.content);
}

/// What is told of a write that waits depends on whether somebody can approve it.
#[tokio::test]
async fn who_cannot_approve_a_write_says_so() {
    let database = file().await;
    let mut own = settings(&database);
    own.mode = SqlMode::Rw;
    let sql = "UPDATE customers SET city = 'x' WHERE id = 1";
    let settings = SqlSettings::default().with_connection("main", own);
    let toolkit = || SqlToolkit::new(settings.clone(), "/nowhere").unwrap();
    let outcome = Tools::new(toolkit()).query(sql).await;
    assert_eq!(outcome.code, "approval_required");
    assert!(outcome.hint.unwrap().starts_with("Nobody approves writes here"));
    let outcome = Tools::new(toolkit().with_approver(SqlApprover::Host)).query(sql).await;
    assert_eq!(outcome.code, "approval_required");
    assert!(outcome.hint.unwrap().starts_with("Wait for the approval"));
}
