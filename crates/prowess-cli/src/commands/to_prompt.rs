//! `prowess to-prompt`

use std::fs;
use std::io::Write;

use anyhow::Context;
use prowess_format::{Level, Profile};
use serde_json::json;

use super::properties::{Properties, Refused};
use crate::Outcome;
use crate::cli::ToPromptArgs;
use crate::finder;
use crate::locate;
use crate::report;
use crate::terminal::{safe, safe_line};

pub(crate) fn run(arguments: &ToPromptArgs) -> anyhow::Result<Outcome> {
    let paths = arguments.catalog.with_paths(&arguments.paths);
    let limits = finder::limits()?;
    let search = locate::search(&paths, Profile::Spec, limits);
    for diagnostic in &search.diagnostics {
        anstream::eprintln!("{}: {}", diagnostic.level, safe_line(&diagnostic.message));
    }
    if search.diagnostics.iter().any(|diagnostic| diagnostic.level == Level::Error) {
        return Ok(Outcome::Findings);
    }
    if paths.iter().any(|path| path.as_os_str() == "-") {
        anstream::eprintln!("Error: standard input has no location to tell the model");
        return Ok(Outcome::Usage);
    }
    let mut entries = Vec::new();
    for located in search.located {
        let properties = match Properties::from_located(located, limits) {
            Ok(properties) => properties,
            Err(Refused(message)) => {
                anstream::eprintln!("Error: {}", safe_line(&message));
                return Ok(Outcome::Findings);
            }
        };
        let file = &properties.file;
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = fs::canonicalize(folder.unwrap_or(".".as_ref()))
            .with_context(|| format!("cannot resolve {}", file.display()))?;
        let location = folder.join(file.file_name().unwrap_or_default()).display().to_string();
        entries.push((properties, location));
    }
    if arguments.json {
        let skills: Vec<_> = entries
            .iter()
            .map(|(properties, location)| {
                let description = properties.skill.description();
                json!({"name": properties.id(), "description": description, "location": location})
            })
            .collect();
        report::print_json(&json!({"skills": skills}))?;
        return Ok(Outcome::Ok);
    }
    let mut out = anstream::stdout().lock();
    writeln!(out, "<available_skills>")?;
    for (properties, location) in &entries {
        let name = escape(properties.id());
        let description = escape(properties.skill.description());
        // The reference library leaves the location as it is; a path must not end its block.
        let location = escape(location);
        writeln!(out, "<skill>\n<name>\n{name}\n</name>")?;
        writeln!(out, "<description>\n{description}\n</description>")?;
        writeln!(out, "<location>\n{location}\n</location>\n</skill>")?;
    }
    writeln!(out, "</available_skills>")?;
    Ok(Outcome::Ok)
}

/// Escapes for HTML as Python's `html.escape` does, and makes control characters visible.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in safe(text).chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#x27;"),
            other => out.push(other),
        }
    }
    out
}
