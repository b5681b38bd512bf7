//! The SQL tools, against their guard and the bare driver; a large schema; a large result.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use prowess_catalog::Catalog;
use prowess_runtime::{AgentName, Runtime, SessionKey, Tool, ToolCall, ToolOutcome, Toolkit};
use prowess_toolkits::{SqlConnectionSettings, SqlDialect, SqlGuard, SqlSettings, SqlToolkit};
use prowess_workspace::FileArtifacts;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

use crate::measure::medians;
use crate::results::Row;

const ONE_ROW: &str =
    "SELECT COUNT(*) AS customers, MIN(name) AS first FROM customers WHERE id > 0";
/// Rows of the large result, of about this many bytes each.
const ROWS: u64 = 200_000;
const ROW_BYTES: u64 = 500;

struct Bare(SqlToolkit);

impl Toolkit for Bare {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.0.bare_tools()
    }
}

/// An engine with the tools, and a place for its tasks.
struct Engine {
    runtime: Runtime,
    tasks: tokio::runtime::Runtime,
    session: SessionKey,
    agent: AgentName,
    calls: AtomicUsize,
}

impl Engine {
    fn new(toolkit: SqlToolkit) -> Result<Self> {
        let catalog = Catalog::builder().build();
        Ok(Self {
            runtime: Runtime::builder(catalog).toolkit(Arc::new(Bare(toolkit))).build()?,
            tasks: tokio::runtime::Builder::new_current_thread().enable_all().build()?,
            session: SessionKey::new("bench", "bench", "sql")?,
            agent: AgentName::default(),
            calls: AtomicUsize::new(0),
        })
    }

    fn call(&self, tool: &str, arguments: Value) -> Result<ToolOutcome> {
        let id = format!("call-{}", self.calls.fetch_add(1, Ordering::Relaxed));
        let call = ToolCall::new(id, tool, arguments);
        Ok(self.tasks.block_on(self.runtime.dispatch(&self.session, &self.agent, call))?)
    }
}

pub(crate) fn run() -> Result<Vec<Row>> {
    let home = tempfile::tempdir()?;
    Ok(vec![one_row(home.path())?, schema(home.path())?, large(home.path())?])
}

/// A query of one row, to what must be done for it in any case.
///
/// It is the same statement every time. Ours stays prepared; the driver prepares its own anew, as it
/// does whenever it is not told otherwise. The row says so.
fn one_row(home: &Path) -> Result<Row> {
    let settings = SqlSettings::default().with_environment(|_| None)?;
    let engine = Engine::new(SqlToolkit::new(settings, home)?)?;
    let outcome = engine.call("sql_query", json!({"query": ONE_ROW}))?;
    ensure!(outcome.data["rows"][0][0] == 42, "{}", outcome.content);
    let guard = SqlGuard::new(SqlDialect::Sqlite);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let driver = Connection::open_with_flags(home.join("demo.db"), flags)?;
    let [ours, floor] = medians([
        &|| {
            let _ = black_box(engine.call("sql_query", json!({"query": ONE_ROW})));
        },
        &|| {
            let _ = black_box(guard.check(black_box(ONE_ROW)));
            let _ = black_box(driver.query_row(ONE_ROW, [], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
            }));
        },
    ]);
    let detail = format!(
        "{:.1} µs to {:.1} µs; a repeated statement, which only the tool keeps prepared",
        ours * 1e6,
        floor * 1e6
    );
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
