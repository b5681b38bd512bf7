//! The SQL tools, against their guard and the bare driver; a large schema; a large result.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use prowess_toolkits::{SqlConnectionSettings, SqlSettings, SqlToolkit};
use prowess_workspace::FileArtifacts;
use rusqlite::Connection;
use serde_json::json;

use crate::results::Row;
use crate::sql_engine::Engine;

/// Rows of the large result, of about this many bytes each.
const ROWS: u64 = 200_000;
const ROW_BYTES: u64 = 500;

pub(crate) fn run() -> Result<Vec<Row>> {
    let home = tempfile::tempdir()?;
    Ok(vec![one_row()?, schema(home.path())?, large(home.path())?])
}

/// A query of one row, new each time as a model asks, to what must be done for it in any case.
fn one_row() -> Result<Row> {
    let program = std::env::current_exe()?.with_file_name("prowess-bench-sql");
    ensure!(program.exists(), "{} is not built", program.display());
    let output = Command::new(program).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "prowess-bench-sql: {said}");
    let numbers = String::from_utf8(output.stdout)?;
    let mut numbers = numbers.lines().map(str::parse::<f64>);
    let mut next = || numbers.next().context("prowess-bench-sql said too little");
    let (ours, floor) = (next()??, next()??);
    let detail = format!("{:.1} µs to {:.1} µs; statements that are new", ours * 1e6, floor * 1e6);
    let what =
        "`sql_query` of one row through the engine, to the guard's parse and the bare driver";
    Ok(Row::at_most(what, ours / floor, 2.0, &detail))
}

/// What is shown of a large schema when the skill is loaded.
fn schema(home: &Path) -> Result<Row> {
    let path = home.join("large.db");
    let connection = Connection::open(&path)?;
    for at in 0..200 {
        connection.execute_batch(&format!(
            "CREATE TABLE table_number_{at} (id INTEGER PRIMARY KEY, name TEXT NOT NULL, amount REAL, \
             created_at TEXT NOT NULL, updated_at TEXT, owner_id INTEGER REFERENCES table_number_0 (id))"
        ))?;
    }
    let url = format!("sqlite:{}", path.display());
    let settings = SqlSettings::default().with_connection("main", SqlConnectionSettings::new(url));
    let budget = settings.schema_tokens;
    let engine = Engine::new(SqlToolkit::new(settings, home)?)?;
    let text = engine.call("sql_opening", json!({}))?.content;
    ensure!(text.contains("table_number_199"), "{text}");
    let tokens = tiktoken_rs::o200k_base()?.encode_ordinary(&text).len();
    let detail = format!("{tokens} tokens (o200k) to {budget}");
    let what = "what is shown of 200 tables, to `schema_tokens`";
    Ok(Row::at_most(what, tokens as f64 / budget as f64, 1.0, &detail))
}

/// A large result, kept as an artifact.
fn large(home: &Path) -> Result<Row> {
    let mut own = SqlConnectionSettings::new(format!("sqlite:{}", home.join("demo.db").display()));
    own.max_artifact_bytes = 1 << 30;
    own.timeout_seconds = 600;
    let settings = SqlSettings::default().with_connection("main", own);
    let store = FileArtifacts::new(home.join("artifacts")).with_max_bytes(1 << 30);
    let toolkit =
        SqlToolkit::new(settings, home)?.with_artifacts(Arc::new(store)).with_scratch(home);
    let engine = Engine::new(toolkit)?;
    engine.call("sql_query", json!({"query": "SELECT 1"}))?;
    let sql = format!(
        "WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < {ROWS}) \
         SELECT n, printf('%0{}d', n) AS t FROM g",
        ROW_BYTES - 8
    );
    // The peak begins anew.
    fs::write("/proc/self/clear_refs", "5")?;
    let before = peak()?;
    let outcome = engine.call("sql_query", json!({"query": sql}))?;
    let grown = peak()?.saturating_sub(before);
    ensure!(
        outcome.data["row_count"] == ROWS && !outcome.artifacts.is_empty(),
        "{}",
        outcome.content
    );
    let whole = ROWS * ROW_BYTES;
    let detail = format!("{} KiB for {} KiB of rows", grown >> 10, whole >> 10);
    let what = "memory that a result of 200,000 rows takes, to its size";
    Ok(Row::at_most(what, grown as f64 / whole as f64, 0.1, &detail))
}

/// Bytes that this process had at most since it was asked to forget.
fn peak() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).context("no VmHWM")?;
    let kib: u64 = line.split_whitespace().nth(1).context("no VmHWM")?.parse()?;
    Ok(kib << 10)
}
