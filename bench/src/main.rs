//! `prowess-bench NAME`: runs a benchmark, prints goal, measurement and verdict of every row,
//! and writes them to `bench/RESULTS.md`.

mod agent;
mod container;
mod disclosure;
mod discovery;
mod exec;
mod format;
mod measure;
mod remote;
mod results;
mod runtime;
mod scale;
mod serve;
mod sql;
mod sql_engine;
// The tests kill and load servers in the same way, only less often.
#[path = "../../crates/prowess-cli/tests/support/service/mod.rs"]
mod service;
mod xlsx;

use std::process::ExitCode;

use anyhow::{Result, bail};
use results::{Row, Verdict};

/// Counts what is allocated, for the benchmarks that promise something about it.
#[global_allocator]
static ALLOCATOR: &stats_alloc::StatsAlloc<std::alloc::System> = &stats_alloc::INSTRUMENTED_SYSTEM;

/// A benchmark: its name on the command line and what runs it.
type Bench = (&'static str, fn() -> Result<Vec<Row>>);

const BENCHES: &[Bench] = &[
    ("agent", agent::run),
    ("disclosure", disclosure::run),
    ("discovery", discovery::run),
    ("container", container::run),
    ("exec", exec::run),
    ("format", format::run),
    ("remote", remote::run),
    ("runtime", runtime::run),
    ("scale", scale::run),
    ("serve", serve::run),
    ("sql", sql::run),
    ("xlsx", xlsx::run),
];

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("Error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<ExitCode> {
    let Some(name) = std::env::args().nth(1) else {
        let names: Vec<&str> = BENCHES.iter().map(|(name, _)| *name).collect();
        bail!("name a benchmark: {}", names.join(", "));
    };
    let Some((name, bench)) = BENCHES.iter().find(|(known, _)| *known == name) else {
        bail!("there is no benchmark '{name}'");
    };
    if cfg!(debug_assertions) {
        bail!("measure a release build: ./dev bench {name}");
    }
    let rows = bench()?;
    println!("{}", results::table(&rows));
    results::write(name, &rows)?;
    let failed = rows.iter().any(|row| matches!(row.verdict, Verdict::Fail | Verdict::NotMeasured));
    Ok(if failed { ExitCode::from(1) } else { ExitCode::SUCCESS })
}
