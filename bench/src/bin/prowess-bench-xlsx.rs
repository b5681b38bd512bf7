//! `prowess-bench-xlsx WORKBOOK FORMULAS`: what calculates a workbook for `prowess-bench xlsx`.
//!
//! A program of its own, because `prowess-bench` counts its allocations, and nobody who
//! recalculates a workbook pays for that. It answers as `peers/libreoffice/calculate.py` does.

use std::fs;
use std::io::{BufRead as _, Write as _};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use formualizer_workbook::{
    LiteralValue, LoadStrategy, NativeXlsxAdapter, SpreadsheetReader as _, Workbook, WorkbookConfig,
};
use prowess_toolkits::{PlainWorkbook, RecalcStatus, XlsxSettings, kept_bytes, recalculate};

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
    let mut arguments = std::env::args().skip(1);
    let (Some(book), Some(formulas)) = (arguments.next(), arguments.next()) else {
        bail!("this is a part of ./dev bench xlsx");
    };
    let formulas = formulas.parse::<u64>().context("how many formulas?")?;
    let mut out = std::io::stdout();
    writeln!(out, "ready")?;
    let mut sum = 0.0;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let answer = match line.split_once(' ').unwrap_or((line.as_str(), "")) {
            ("calculate", _) => timed(calculate(&book, formulas)?, &mut sum),
            ("engine", _) => timed(by_engine(&book, formulas)?, &mut sum),
            ("whole", output) => whole(&book, formulas, output)?,
            ("sum", _) => sum,
            _ => bail!("there is no '{line}'"),
        };
        writeln!(out, "{answer}")?;
    }
    Ok(())
}

fn timed((seconds, all): (f64, f64), sum: &mut f64) -> f64 {
    *sum = all;
    seconds
}

/// Seconds that the tool takes to calculate the formulas of a workbook that was just loaded, and
/// the sum of all cells.
fn calculate(book: &str, formulas: u64) -> Result<(f64, f64)> {
    let read = PlainWorkbook::read(&fs::read(book)?, &XlsxSettings::default())?;
    let mut workbook = read.context("the formulas are not plain")?;
    let start = Instant::now();
    let calculated = workbook.calculate();
    let seconds = start.elapsed().as_secs_f64();
    ensure!(calculated == Some(formulas), "{calculated:?}");
    Ok((seconds, workbook.sum()))
}

/// The same with the engine, which calculates where formulas are not plain; set as the tool sets
/// it.
fn by_engine(book: &str, formulas: u64) -> Result<(f64, f64)> {
    let reader = NativeXlsxAdapter::open_bytes(fs::read(book)?)?;
    let mut config = WorkbookConfig::ephemeral();
    config.eval.max_overlay_memory_bytes = Some(kept_bytes(formulas));
    let mut workbook = Workbook::from_reader(reader, LoadStrategy::EagerAll, config)?;
    workbook.prepare_graph_all()?;
    let start = Instant::now();
    let result = workbook.evaluate_all()?;
    let seconds = start.elapsed().as_secs_f64();
    ensure!(result.computed_vertices as u64 == formulas, "{}", result.computed_vertices);
    Ok((seconds, sum_of(&workbook)?))
}

/// Seconds that the tool's own function takes from file to file.
fn whole(book: &str, formulas: u64, output: &str) -> Result<f64> {
    let settings = XlsxSettings::default();
    let start = Instant::now();
    let report = recalculate(&fs::read(book)?, &settings)?;
    fs::write(output, report.bytes.as_deref().context("it wrote nothing")?)?;
    let seconds = start.elapsed().as_secs_f64();
    ensure!(report.status == RecalcStatus::Success, "{:?}", report.refused_reason);
    ensure!(report.engine == "prowess", "{} calculated", report.engine);
    ensure!(report.total_formulas == formulas, "{}", report.total_formulas);
    Ok(seconds)
}

/// The sum of all numbers of the first sheet.
fn sum_of(workbook: &Workbook) -> Result<f64> {
    let sheet = workbook.sheet_names().into_iter().next().context("no sheet")?;
    let (rows, columns) = workbook.sheet_dimensions(&sheet).context("no cells")?;
    let mut sum = 0.0;
    for row in 1..=rows {
        for column in 1..=columns {
            match workbook.get_value(&sheet, row, column) {
                Some(LiteralValue::Number(number)) => sum += number,
                #[allow(clippy::cast_precision_loss, reason = "they are small")]
                Some(LiteralValue::Int(number)) => sum += number as f64,
                _ => {}
            }
        }
    }
    Ok(sum)
}
