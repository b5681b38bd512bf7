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
use prowess_toolkits::{RecalcStatus, XlsxSettings, kept_bytes, recalculate};

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
    let mut last = None;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let answer = match line.split_once(' ').unwrap_or((line.as_str(), "")) {
            ("calculate", _) => {
                // Before the clock runs: LibreOffice has no other workbook open either.
                drop(last.take());
                let (seconds, workbook) = calculate(&book, formulas)?;
                last = Some(workbook);
                seconds
            }
            ("whole", output) => whole(&book, formulas, output)?,
            ("sum", _) => sum(last.as_ref().context("nothing was calculated")?)?,
            _ => bail!("there is no '{line}'"),
        };
        writeln!(out, "{answer}")?;
    }
    Ok(())
}

/// Seconds that the engine takes, set as the tool sets it, for a workbook that was just loaded.
fn calculate(book: &str, formulas: u64) -> Result<(f64, Workbook)> {
    let reader = NativeXlsxAdapter::open_bytes(fs::read(book)?)?;
    let mut config = WorkbookConfig::ephemeral();
    config.eval.max_overlay_memory_bytes = Some(kept_bytes(formulas));
    let mut workbook = Workbook::from_reader(reader, LoadStrategy::EagerAll, config)?;
    workbook.prepare_graph_all()?;
    let start = Instant::now();
    let result = workbook.evaluate_all()?;
    let seconds = start.elapsed().as_secs_f64();
    ensure!(result.computed_vertices as u64 == formulas, "{}", result.computed_vertices);
    Ok((seconds, workbook))
}

/// Seconds that the tool's own function takes from file to file.
fn whole(book: &str, formulas: u64, output: &str) -> Result<f64> {
    let settings = XlsxSettings::default();
    let start = Instant::now();
    let report = recalculate(&fs::read(book)?, &settings)?;
    fs::write(output, report.bytes.as_deref().context("it wrote nothing")?)?;
    let seconds = start.elapsed().as_secs_f64();
    ensure!(report.status == RecalcStatus::Success, "{:?}", report.refused_reason);
    ensure!(report.total_formulas == formulas, "{}", report.total_formulas);
    Ok(seconds)
}

/// The sum of all numbers of the first sheet.
fn sum(workbook: &Workbook) -> Result<f64> {
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
