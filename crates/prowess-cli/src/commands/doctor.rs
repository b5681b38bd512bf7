//! `prowess doctor`

use std::io::Write;

use anstream::stdout;
use prowess_catalog::{Root, RootOrigin, Snapshot};
use prowess_format::Level;
use serde_json::{Value, json};

use crate::Outcome;
use crate::cli::{DoctorArgs, Format};
use crate::finder::Finder;
use crate::report::{self, Report, Section};
use crate::terminal::safe_line;

pub(crate) fn run(arguments: &DoctorArgs) -> anyhow::Result<Outcome> {
    let finder = Finder::new(&arguments.catalog)?;
    let snapshot = finder.snapshot();
    let errors = snapshot.diagnostics().iter().filter(|found| found.level == Level::Error).count();
    let outcome = if errors == 0 { Outcome::Ok } else { Outcome::Findings };
    let config = finder.config.path.as_ref().map(|path| path.display().to_string());
    let sources: Vec<Value> = finder
        .roots
        .iter()
        .zip(snapshot.sources())
        .map(|(root, entry)| {
            json!({
                "id": entry.id,
                "path": root.path.display().to_string(),
                "origin": origin(root),
                "skills": count(&snapshot, &entry.id),
            })
        })
        .collect();
    if arguments.json {
        report::print_json(&json!({
            "config": config,
            "sources": sources,
            "skills": snapshot.skills().len(),
            "diagnostics": snapshot.diagnostics(),
        }))?;
        return Ok(outcome);
    }
    let mut out = stdout().lock();
    let shown = config.as_deref().map_or("none".to_owned(), safe_line);
    writeln!(out, "prowess.toml: {shown}")?;
    writeln!(out, "sources, later ones win:")?;
    for source in &sources {
        let text = |key: &str| safe_line(source[key].as_str().unwrap_or_default());
        writeln!(
            out,
            "  {} ({}): {}, {} skills",
            text("path"),
            text("id"),
            text("origin"),
            source["skills"]
        )?;
    }
    if sources.is_empty() {
        writeln!(out, "  none; give --source, or make .agents/skills")?;
    }
    writeln!(out)?;
    drop(out);
    let diagnostics = snapshot.diagnostics().to_vec();
    let skills = snapshot.skills().len();
    let report = Report { sections: vec![Section { source: String::new(), diagnostics }], skills };
    report::print(&report, Format::Text)?;
    Ok(outcome)
}

fn origin(root: &Root) -> &'static str {
    match root.origin {
        RootOrigin::User => "user",
        RootOrigin::Project => "project",
        RootOrigin::Variable => "variable",
        RootOrigin::Configuration => "prowess.toml",
        _ => "flag",
    }
}

/// The skills of a source, hidden ones included.
fn count(snapshot: &Snapshot, id: &str) -> usize {
    snapshot
        .skills()
        .iter()
        .flat_map(|skill| std::iter::once(skill).chain(skill.shadows()))
        .filter(|skill| skill.source_id() == id)
        .count()
}
