//! `prowess cache`

use std::io::Write;

use anstream::stdout;
use serde_json::{Value, json};

use super::tokens::{play_all, print_head};
use crate::Outcome;
use crate::cli::ReplayArgs;
use crate::replay::{Cached, cached};
use crate::report;

/// How wide a bar is at most.
const BAR: usize = 30;

pub(crate) fn run(arguments: &ReplayArgs) -> anyhow::Result<Outcome> {
    let played = play_all(arguments)?;
    let sum = |each: &[Cached]| {
        each.iter()
            .fold((0, 0), |(cached, uncached), it| (cached + it.cached, uncached + it.uncached))
    };
    if arguments.json {
        let scenarios: Vec<Value> = played
            .iter()
            .map(|scenario| {
                let layouts: Vec<Value> = scenario
                    .layouts
                    .iter()
                    .map(|(layout, played)| {
                        let each = cached(&played.requests);
                        let (from_cache, uncached) = sum(&each);
                        json!({
                            "layout": layout.name(),
                            "requests": each,
                            "cached": from_cache,
                            "uncached": uncached,
                        })
                    })
                    .collect();
                json!({"name": scenario.name, "about": scenario.about, "layouts": layouts})
            })
            .collect();
        report::print_json(&json!({"tokenizer": "o200k_base", "scenarios": scenarios}))?;
        return Ok(Outcome::Ok);
    }
    let mut out = stdout().lock();
    for scenario in &played {
        print_head(&mut out, scenario)?;
        writeln!(out, "  {:28} {:>9} {:>9}", "", "cached", "uncached")?;
        let sums: Vec<(String, usize, usize)> = scenario
            .layouts
            .iter()
            .map(|(layout, played)| {
                let (from_cache, uncached) = sum(&cached(&played.requests));
                (layout.name(), from_cache, uncached)
            })
            .collect();
        let most = sums.iter().map(|(_, _, uncached)| *uncached).max().unwrap_or(1).max(1);
        for (name, from_cache, uncached) in sums {
            let bar = "█".repeat((uncached * BAR).div_ceil(most));
            writeln!(out, "  {name:28} {from_cache:>9} {uncached:>9}  {bar}")?;
        }
    }
    Ok(Outcome::Ok)
}
