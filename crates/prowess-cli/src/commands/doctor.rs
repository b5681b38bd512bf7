//! `prowess doctor`

use std::io::Write;
use std::path::Path;

use anstream::stdout;
use prowess_catalog::{Catalog, LeftOutReason, Precedence, ResourceScope, Snapshot};
use prowess_format::{Code, Diagnostic, Level};
use prowess_runtime::{AgentName, Runtime, SessionKey};
use serde_json::{Value, json};

use crate::Outcome;
use crate::cli::{DoctorArgs, Format};
use crate::finder::{Finder, origin};
use crate::progress;
use crate::report::{self, Report, Section};
use crate::terminal::safe_line;
use crate::toolkits::Toolkits;

pub(crate) fn run(arguments: &DoctorArgs) -> anyhow::Result<Outcome> {
    let finder = Finder::new(&arguments.catalog)?;
    let catalog = finder.refreshed();
    let snapshot = catalog.snapshot();
    let mut diagnostics = snapshot.diagnostics().to_vec();
    for found in unbound(&finder, catalog)? {
        // Some of it was seen in the text already.
        let is_same = |it: &Diagnostic| {
            (it.code, &it.path, &it.message) == (found.code, &found.path, &found.message)
        };
        if !diagnostics.iter().any(is_same) {
            diagnostics.push(found);
        }
    }
    diagnostics
        .extend(progress::while_showing("Looking at files", || left_out(&finder, &snapshot)));
    let errors = diagnostics.iter().filter(|found| found.level == Level::Error).count();
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
            "diagnostics": diagnostics,
        }))?;
        return Ok(outcome);
    }
    let mut out = stdout().lock();
    let shown = config.as_deref().map_or("none".to_owned(), safe_line);
    writeln!(out, "prowess.toml: {shown}")?;
    let order = match finder.config.precedence {
        Precedence::FirstWins => "earlier ones win",
        Precedence::RefuseAmbiguous => "a name in several of them is refused",
        _ => "later ones win",
    };
    writeln!(out, "sources, {order}:")?;
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
        writeln!(
            out,
            "  none; give --source (`builtin:` has those that come with Prowess), or make .agents/skills"
        )?;
    }
    writeln!(out)?;
    drop(out);
    let skills = snapshot.skills().len();
    let sections = vec![Section { source: String::new(), diagnostics }];
    let report = Report { sections, skills, ..Report::default() };
    report::print(&report, Format::Text)?;
    Ok(outcome)
}

/// A finding for everything that keeps a skill from being used because it cannot be bound.
fn unbound(finder: &Finder, catalog: Catalog) -> anyhow::Result<Vec<Diagnostic>> {
    let Some(home) = &finder.home else { return Ok(Vec::new()) };
    let engine = Toolkits::open(finder, home)?.give(Runtime::builder(catalog)).build()?;
    let (session, agent) = (SessionKey::new("prowess", "doctor", "doctor")?, AgentName::default());
    let quarantined = finder.wait(engine.quarantined(&session, &agent));
    Ok(quarantined.into_iter().flat_map(|it| it.diagnostics).collect())
}

/// A finding for every file in the folder of a skill that is no resource of it, and for every
/// folder that cannot be read.
fn left_out(finder: &Finder, snapshot: &Snapshot) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for skill in snapshot.skills() {
        let listing = finder.resources(skill, ResourceScope::Recursive, &mut found);
        for left in listing.left_out {
            // That is how it should be.
            if left.reason == LeftOutReason::VersionControl {
                continue;
            }
            let folder = skill.path().parent().map(Path::to_owned).unwrap_or_default();
            let why = left.reason.as_str();
            let message = format!("'{}' is no resource of the skill: {why}", left.path);
            let path = folder.join(&left.path).display().to_string();
            let diagnostic = Diagnostic::new(Code::LeftOutFile, Level::Warning, message);
            found.push(diagnostic.with_path(path).with_help("mend or remove it"));
        }
    }
    found
}

/// The skills of a source, hidden ones included.
fn count(snapshot: &Snapshot, id: &str) -> usize {
    let everyone = snapshot.skills().iter().chain(snapshot.ambiguous());
    everyone
        .flat_map(|skill| std::iter::once(skill).chain(skill.shadows()))
        .filter(|skill| skill.source_id() == id)
        .count()
}
