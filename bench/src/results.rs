//! Rows of a benchmark, for the terminal and for `bench/RESULTS.md`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Result;

/// One promise and what was measured.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) goal: String,
    pub(crate) measured: String,
    pub(crate) verdict: Verdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    Fail,
    NotMeasured,
    Bound,
}

impl Row {
    /// A ratio that must not be above `most`.
    pub(crate) fn at_most(what: &str, ratio: f64, most: f64, detail: &str) -> Self {
        let verdict = if ratio <= most { Verdict::Pass } else { Verdict::Fail };
        Self::new(what, format!("≤ {most}×"), format!("{ratio:.2}× ({detail})"), verdict)
    }

    /// A small ratio that must not be above `most`.
    pub(crate) fn at_most_fine(what: &str, ratio: f64, most: f64, detail: &str) -> Self {
        let verdict = if ratio <= most { Verdict::Pass } else { Verdict::Fail };
        Self::new(what, format!("≤ {most}×"), format!("{ratio:.5}× ({detail})"), verdict)
    }

    /// A ratio that must not be below `least`.
    pub(crate) fn at_least(what: &str, ratio: f64, least: f64, detail: &str) -> Self {
        let verdict = if ratio >= least { Verdict::Pass } else { Verdict::Fail };
        Self::new(
            what,
            format!("≥ {least}×"),
            format!(
                "{}× ({detail})",
                if ratio < 10.0 { format!("{ratio:.2}") } else { format!("{ratio:.0}") }
            ),
            verdict,
        )
    }

    /// A count that must be zero.
    pub(crate) fn none(what: &str, count: usize, detail: &str) -> Self {
        let verdict = if count == 0 { Verdict::Pass } else { Verdict::Fail };
        Self::new(what, "0".to_owned(), format!("{count} ({detail})"), verdict)
    }

    /// A row whose peer is not there.
    pub(crate) fn not_measured(what: &str, goal: &str, why: &str) -> Self {
        Self::new(what, goal.to_owned(), why.to_owned(), Verdict::NotMeasured)
    }

    /// No promise, but what bounds one.
    pub(crate) fn bound(what: &str, ratio: f64, detail: &str) -> Self {
        Self::new(what, "(bound)".to_owned(), format!("{ratio:.2}× ({detail})"), Verdict::Bound)
    }

    fn new(what: &str, goal: String, measured: String, verdict: Verdict) -> Self {
        Self { what: what.to_owned(), goal, measured, verdict }
    }
}

impl Verdict {
    fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::NotMeasured => "NOT MEASURED",
            Self::Bound => "–",
        }
    }
}

/// A Markdown table.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut out = String::from("| what | goal | measured | verdict |\n|---|---|---|---|\n");
    for Row { what, goal, measured, verdict } in rows {
        let _ = writeln!(out, "| {what} | {goal} | {measured} | {} |", verdict.as_str());
    }
    out
}

/// Replaces the section of this benchmark in `bench/RESULTS.md`.
pub(crate) fn write(name: &str, rows: &[Row]) -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("RESULTS.md");
    let old = fs::read_to_string(&path).unwrap_or_default();
    let heading = format!("## {name}");
    let mut sections: Vec<String> = old
        .split("\n## ")
        .skip(1)
        .map(|section| format!("## {}", section.trim_end()))
        .filter(|section| section.lines().next() != Some(heading.as_str()))
        .collect();
    sections.push(format!(
        "{heading}\n\n`./dev bench {name}` on {}\n\n{}",
        machine(),
        table(rows).trim_end()
    ));
    sections.sort();
    let intro = "# Results\n\nEach section comes from one run on one machine. Only the ratios mean \
                 something: contenders take turns, medians count.\n";
    fs::write(&path, format!("{intro}\n{}\n", sections.join("\n\n")))?;
    Ok(())
}

fn machine() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("an unknown processor", |(_, model)| model);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{model}, {cores} cores, {}", std::env::consts::OS)
}
