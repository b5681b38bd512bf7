//! `prowess budget`

use std::io::Write;

use anstream::stdout;
use prowess_runtime::{AgentName, Listing};
use serde_json::json;

use crate::Outcome;
use crate::cli::BudgetArgs;
use crate::engine::LocalEngine;
use crate::report::{self, counted};
use crate::terminal::safe_line;
use crate::tokens;

/// So many of those who take the most are shown.
const EATERS: usize = 10;
/// So many names of those who are left out are shown.
const NAMES: usize = 20;

pub(crate) fn run(arguments: &BudgetArgs) -> anyhow::Result<Outcome> {
    let engine = LocalEngine::passing(&arguments.catalog, |mut settings| {
        if let Some(budget) = arguments.budget {
            settings.listing.budget = budget;
        }
        settings
    })?;
    let budget = engine.runtime.settings().listing.budget;
    let session = "budget".parse()?;
    let listing = engine.wait(engine.runtime.listing(&session, &AgentName::default()))?;
    let tokens = tokens::count(&listing.text);
    if arguments.json {
        report::print_json(&json!({
            "budget": {"amount": budget.amount(), "unit": budget.unit()},
            "cost": listing.cost,
            "tokens": tokens,
            "shown": listing.shown,
            "named": listing.named,
            "counted": listing.counted,
            "text": listing.text,
        }))?;
        return Ok(Outcome::Ok);
    }
    let mut out = stdout().lock();
    let all = listing.shown.len() + listing.named.len() + listing.counted.len();
    writeln!(out, "budget   {budget}")?;
    let unit = budget.unit();
    writeln!(out, "listing  {} {unit}, {tokens} tokens with its frame", listing.cost)?;
    writeln!(out, "shown    {} of {}", listing.shown.len(), counted(all, "skill"))?;
    print_rest(&mut out, "by name", &listing.named)?;
    print_rest(&mut out, "counted", &listing.counted)?;
    print_eaters(&mut out, &listing, unit)
}

fn print_rest(out: &mut impl Write, what: &str, names: &[String]) -> anyhow::Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let shown: Vec<String> = names.iter().take(NAMES).map(|name| safe_line(name)).collect();
    let more = match names.len().saturating_sub(NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    writeln!(out, "{what:8} {}: {}{more}", names.len(), shown.join(", "))?;
    Ok(())
}

fn print_eaters(out: &mut impl Write, listing: &Listing, unit: &str) -> anyhow::Result<Outcome> {
    let mut eaters: Vec<_> = listing.shown.iter().collect();
    eaters.sort_by(|a, b| b.cost.cmp(&a.cost).then_with(|| a.name.cmp(&b.name)));
    eaters.truncate(EATERS);
    if !eaters.is_empty() {
        writeln!(out, "\nwho takes the most, in {unit}")?;
    }
    for eater in eaters {
        writeln!(out, "  {:>6}  {}", eater.cost, safe_line(&eater.name))?;
    }
    Ok(Outcome::Ok)
}
