//! `prowess list`

use std::collections::HashMap;
use std::io::Write;

use prowess_catalog::{CatalogSkill, ResourceListing, ResourceScope, Snapshot};
use prowess_format::{Diagnostic, Level};
use serde_json::{Value, json};

use crate::Outcome;
use crate::cli::ListArgs;
use crate::finder::Finder;
use crate::progress;
use crate::report;
use crate::terminal::safe_line;
use crate::tokens;
use crate::words::size;

/// About so many characters are a token.
const CHARS_PER_TOKEN: usize = 4;

pub(crate) fn run(arguments: &ListArgs) -> anyhow::Result<Outcome> {
    let finder = Finder::new(&arguments.catalog)?;
    let snapshot = finder.snapshot();
    if arguments.json {
        return print_json(&finder, &snapshot, arguments.tokens);
    }
    let mut diagnostics = snapshot.diagnostics().to_vec();
    let files: Vec<usize> = match arguments.resources {
        true => (snapshot.skills().iter())
            .map(|skill| finder.resources(skill, ResourceScope::OneLevel, &mut diagnostics))
            .map(|listing| listing.resources.len())
            .collect(),
        false => Vec::new(),
    };
    let mut problems: HashMap<&str, usize> = HashMap::new();
    for diagnostic in diagnostics.iter().filter(|found| found.level != Level::Info) {
        if let Some(path) = &diagnostic.path {
            *problems.entry(path).or_default() += 1;
        }
    }
    let mut table = vec![vec!["NAME", "SOURCE", "SIZE"].into_iter().map(str::to_owned).collect()];
    let heading: &mut Vec<String> = &mut table[0];
    heading.push(if arguments.tokens { "TOKENS" } else { "~TOKENS" }.to_owned());
    if arguments.resources {
        heading.push("FILES".to_owned());
    }
    heading.push("PROBLEMS".to_owned());
    for (at, skill) in snapshot.skills().iter().enumerate() {
        let mut row = vec![
            safe_line(skill.name()),
            safe_line(skill.source_id()),
            size(skill.found().bytes),
            match arguments.tokens {
                true => exact_tokens(&finder, skill).map_or("?".to_owned(), |n| n.to_string()),
                false => estimated_tokens(skill).to_string(),
            },
        ];
        row.extend(files.get(at).map(usize::to_string));
        let count = match problems.is_empty() {
            true => 0,
            false => {
                let path = skill.path().display().to_string();
                problems.get(path.as_str()).copied().unwrap_or(0)
            }
        };
        row.push(if count == 0 { String::new() } else { count.to_string() });
        table.push(row);
    }
    for skill in snapshot.ambiguous() {
        let name = safe_line(&skill.qualified_name());
        anstream::eprintln!("not listed, its name is ambiguous: {name}");
    }
    if snapshot.skills().is_empty() {
        anstream::eprintln!(
            "No skills found. `prowess doctor` shows where they are looked for; `--source builtin:` \
             has those that come with Prowess."
        );
    } else {
        print_table(&table)?;
    }
    print_hint(&diagnostics);
    Ok(Outcome::Ok)
}

fn print_hint(diagnostics: &[Diagnostic]) {
    let count = |level| diagnostics.iter().filter(|found| found.level == level).count();
    let (errors, warnings) = (count(Level::Error), count(Level::Warning));
    if errors + warnings > 0 {
        let (errors, warnings) =
            (report::counted(errors, "error"), report::counted(warnings, "warning"));
        anstream::eprintln!("{errors}, {warnings}: `prowess doctor` shows them.");
    }
}

/// Columns as wide as their widest cell; numbers to the right.
fn print_table(table: &[Vec<String>]) -> anyhow::Result<()> {
    let columns = table.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns)
        .map(|at| table.iter().map(|row| row[at].chars().count()).max().unwrap_or(0))
        .collect();
    let mut out = String::new();
    for row in table {
        let mut line = String::new();
        for (at, cell) in row.iter().enumerate() {
            let fill = " ".repeat(widths[at] - cell.chars().count());
            match at < 2 {
                true => line.push_str(&format!("{cell}{fill}  ")),
                false => line.push_str(&format!("{fill}{cell}  ")),
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    // Every cell is safe and has no colour: nothing to adapt to the terminal.
    std::io::stdout().write_all(out.as_bytes())?;
    Ok(())
}

fn estimated_tokens(skill: &CatalogSkill) -> usize {
    (skill.found().body_chars as usize).div_ceil(CHARS_PER_TOKEN)
}

/// The tokens of the body, counted.
fn exact_tokens(finder: &Finder, skill: &CatalogSkill) -> Option<usize> {
    let bytes = finder.wait(skill.read()).ok()?;
    let text = std::str::from_utf8(&bytes).ok()?;
    let split = prowess_format::split(text, bytes.len()).ok()?;
    Some(tokens::count(&text[split.body]))
}

/// What is no resource, and why.
pub(crate) fn left_out_json(listing: &ResourceListing) -> Value {
    let left_out = listing.left_out.iter();
    left_out.map(|left| json!({"path": left.path, "why": left.reason.as_str()})).collect()
}

fn print_json(finder: &Finder, snapshot: &Snapshot, tokens: bool) -> anyhow::Result<Outcome> {
    let mut diagnostics = snapshot.diagnostics().to_vec();
    let skills: Vec<Value> = progress::while_showing("Reading skills", || {
        snapshot
            .skills()
            .iter()
            .map(|skill| {
                let mut value = skill_json(skill);
                let listing = finder.resources(skill, ResourceScope::OneLevel, &mut diagnostics);
                value["resources"] = json!(listing.resources);
                value["left_out"] = left_out_json(&listing);
                if tokens {
                    value["tokens"] = json!(exact_tokens(finder, skill));
                }
                value
            })
            .collect()
    });
    let ambiguous: Vec<Value> = snapshot.ambiguous().iter().map(skill_json).collect();
    report::print_json(&json!({
        "skills": skills,
        "ambiguous": ambiguous,
        "diagnostics": diagnostics,
    }))?;
    Ok(Outcome::Ok)
}

/// What is known of a skill without reading anything.
pub(crate) fn skill_json(skill: &CatalogSkill) -> Value {
    let found = skill.found();
    let shadows: Vec<Value> = skill
        .shadows()
        .iter()
        .map(|hidden| {
            let path = hidden.path().display().to_string();
            json!({"name": hidden.name(), "source": hidden.source_id(), "path": path})
        })
        .collect();
    json!({
        "name": skill.name(),
        "description": found.description(),
        "path": skill.path().display().to_string(),
        "source": skill.source_id(),
        "trust": skill.trust(),
        "digest": found.digest,
        "bytes": found.bytes,
        "tokens_estimate": estimated_tokens(skill),
        "resources": [],
        "left_out": [],
        "shadows": shadows,
        "qualified_name": skill.qualified_name(),
    })
}
