//! `prowess tokens`

use std::io::Write;

use anstream::stdout;
use prowess_runtime::{Dialect, LoadMode, Placement};
use serde_json::{Value, json};

use crate::Outcome;
use crate::cli::ReplayArgs;
use crate::replay::{Layout, Played, Scenario, play};
use crate::report;
use crate::terminal::safe_line;

/// The layouts that are compared: all of ours, then everything at once, then theirs.
pub(crate) const LAYOUTS: [Layout; 10] = [
    Layout::Prowess(Placement::ToolResult, LoadMode::Session),
    Layout::Prowess(Placement::ToolResult, LoadMode::Turn),
    Layout::Prowess(Placement::ToolResult, LoadMode::Once),
    Layout::Prowess(Placement::System, LoadMode::Session),
    Layout::Prowess(Placement::System, LoadMode::Turn),
    Layout::Prowess(Placement::System, LoadMode::Once),
    Layout::Everything { docs: false },
    Layout::Everything { docs: true },
    Layout::TrpcSystem,
    Layout::TrpcToolResult,
];

/// How wide a bar is at most.
const BAR: usize = 30;

pub(crate) fn run(arguments: &ReplayArgs) -> anyhow::Result<Outcome> {
    let played = play_all(arguments)?;
    if arguments.json {
        let scenarios: Vec<Value> = played.iter().map(to_json).collect();
        report::print_json(&json!({"tokenizer": "o200k_base", "scenarios": scenarios}))?;
        return Ok(Outcome::Ok);
    }
    let mut out = stdout().lock();
    for scenario in &played {
        print_head(&mut out, scenario)?;
        let most = scenario.layouts.iter().map(|(_, it)| it.total()).max().unwrap_or(1).max(1);
        for (layout, played) in &scenario.layouts {
            let total = played.total();
            let bar = "█".repeat((total * BAR).div_ceil(most));
            writeln!(out, "  {:28} {total:>9}  {bar}", layout.name())?;
            let each: Vec<String> = played.requests.iter().map(|it| it.len().to_string()).collect();
            writeln!(out, "    {}", each.join(" "))?;
        }
    }
    Ok(Outcome::Ok)
}

/// A conversation in all layouts.
pub(crate) struct PlayedScenario {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) layouts: Vec<(Layout, Played)>,
}

/// Plays all conversations in all layouts; those whose skills are not there are passed over, and
/// that is said.
pub(crate) fn play_all(arguments: &ReplayArgs) -> anyhow::Result<Vec<PlayedScenario>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let dialect = match &arguments.dialect.dialect {
        Some(asked) => Dialect::find(asked)?,
        None => Dialect::built_in()?,
    };
    let mut all = Vec::new();
    for scenario in Scenario::all(&arguments.scenarios)? {
        let mut layouts = Vec::new();
        for layout in LAYOUTS {
            match runtime.block_on(play(&scenario, layout, &arguments.corpus, &dialect))? {
                Some(played) => layouts.push((layout, played)),
                None => break,
            }
        }
        if layouts.is_empty() {
            let (name, corpus) = (&scenario.name, arguments.corpus.display());
            let message = format!("'{name}' is skipped: there is no corpus at {corpus}");
            anstream::eprintln!("{}; --corpus says where it is", safe_line(&message));
            continue;
        }
        all.push(PlayedScenario { name: scenario.name, about: scenario.about, layouts });
    }
    Ok(all)
}

pub(crate) fn print_head(out: &mut impl Write, scenario: &PlayedScenario) -> anyhow::Result<()> {
    let Some((_, first)) = scenario.layouts.first() else { return Ok(()) };
    let overhead = first.first;
    writeln!(out, "\n{}: {}", safe_line(&scenario.name), safe_line(&scenario.about))?;
    writeln!(
        out,
        "  {} requests; the first one begins with {} tokens of tools, {} of guidance, {} of listing",
        first.requests.len(),
        overhead.tools,
        overhead.guidance,
        overhead.listing
    )?;
    Ok(())
}

fn to_json(scenario: &PlayedScenario) -> Value {
    let layouts: Vec<Value> = scenario
        .layouts
        .iter()
        .map(|(layout, played)| {
            let requests: Vec<usize> = played.requests.iter().map(Vec::len).collect();
            json!({
                "layout": layout.name(),
                "requests": requests,
                "total": played.total(),
                "first_request": played.first,
            })
        })
        .collect();
    json!({"name": scenario.name, "about": scenario.about, "layouts": layouts})
}
