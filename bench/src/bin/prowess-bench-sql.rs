//! `prowess-bench-sql`: what a query of one row takes, and what must be done for it in any case, in
//! seconds.
//!
//! A program of its own, because `prowess-bench` counts its allocations, and nobody who asks a
//! database pays for that.

#[path = "../measure/medians.rs"]
mod medians;
#[path = "../sql_engine.rs"]
mod sql_engine;

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, ensure};
use medians::medians;
use prowess_toolkits::{SqlDialect, SqlGuard, SqlSettings, SqlToolkit};
use rusqlite::{Connection, OpenFlags};
use serde_json::json;
use sql_engine::Engine;

/// How many statements of one row there are. They are asked in turn: neither side meets one again
/// that it still has at hand.
const STATEMENTS: usize = 4096;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<()> {
    let home = tempfile::tempdir()?;
    let settings = SqlSettings::default().with_environment(|_| None)?;
    let engine = Engine::new(SqlToolkit::new(settings, home.path())?)?;
    let statement = |at| {
        format!("SELECT COUNT(*) AS customers, MIN(name) AS first FROM customers WHERE id > -{at}")
    };
    let statements: Vec<String> = (0..STATEMENTS).map(statement).collect();
    let outcome = engine.call("sql_query", json!({"query": statements[0]}))?;
    ensure!(outcome.data["rows"][0][0] == 42, "{}", outcome.content);
    let guard = SqlGuard::new(SqlDialect::Sqlite);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let driver = Connection::open_with_flags(home.path().join("demo.db"), flags)?;
    let turns = [AtomicUsize::new(0), AtomicUsize::new(0)];
    let next =
        |turn: usize| &statements[turns[turn].fetch_add(1, Ordering::Relaxed) % statements.len()];
    let [ours, floor] = medians([
        &|| {
            let _ = black_box(engine.call("sql_query", json!({"query": next(0)})));
        },
        &|| {
            let sql = black_box(next(1));
            let _ = black_box(guard.check(sql));
            let _ =
                black_box(driver.query_row(sql, [], |row| {
                    Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
                }));
        },
    ]);
    println!("{ours}\n{floor}");
    Ok(())
}
