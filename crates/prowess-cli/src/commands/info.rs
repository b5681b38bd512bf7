//! `prowess info`

use std::io::Write;

use prowess_catalog::{CatalogSkill, ResourceScope};
use prowess_format::Diagnostic;
use serde_json::{Value, json};

use super::list::skill_json;
use crate::Outcome;
use crate::cli::InfoArgs;
use crate::finder::{Finder, skill_or_complaint};
use crate::report;
use crate::terminal::safe_line;

pub(crate) fn run(arguments: &InfoArgs) -> anyhow::Result<Outcome> {
    let finder = Finder::new(&arguments.catalog)?;
    let snapshot = finder.snapshot();
    let Some(skill) = skill_or_complaint(&snapshot, &arguments.name) else {
        return Ok(Outcome::Findings);
    };
    let path = skill.path().display().to_string();
    let diagnostics: Vec<&Diagnostic> = snapshot
        .diagnostics()
        .iter()
        .filter(|found| found.path.as_deref() == Some(path.as_str()))
        .collect();
    let listing = finder.wait(skill.source().resources(skill.found(), ResourceScope::Recursive))?;
    let tree_digest = finder.wait(skill.tree_digest())?;
    let left_out: Vec<Value> =
        listing.left_out.iter().map(|left| json!({"path": left.path, "why": left.why})).collect();
    let mut value = skill_json(skill);
    value["frontmatter"] = json!(skill.found().frontmatter.raw());
    value["tree_digest"] = json!(tree_digest);
    value["resources"] = json!(listing.resources);
    value["left_out"] = json!(left_out);
    value["diagnostics"] = json!(diagnostics);
    if arguments.json {
        report::print_json(&value)?;
    } else {
        anstream::stdout().write_all(text(skill, &value).as_bytes())?;
    }
    Ok(Outcome::Ok)
}

fn text(skill: &CatalogSkill, value: &Value) -> String {
    let info = skill.source().info();
    let mut out = String::new();
    let mut line = |key: &str, text: &str| {
        out.push_str(&format!("{:<13} {}\n", format!("{key}:"), safe_line(text)));
    };
    line("name", skill.name());
    line("path", &skill.path().display().to_string());
    let trust = value["trust"].as_str().unwrap_or_default();
    line("source", &format!("{} ({}, {trust})", skill.source_id(), info.location));
    line("digest", &skill.found().digest.to_string());
    line("tree digest", value["tree_digest"].as_str().unwrap_or_default());
    for hidden in skill.shadows() {
        line("hides", &format!("{} ({})", hidden.qualified_name(), hidden.path().display()));
    }
    for entry in skill.found().frontmatter.raw().iter().filter(|entry| entry.key != "name") {
        let text = match entry.value.as_text() {
            Some(text) => text.to_owned(),
            None => json!(entry.value).to_string(),
        };
        line(&safe_line(&entry.key), &text);
    }
    for resource in value["resources"].as_array().into_iter().flatten() {
        let text = |key: &str| resource[key].as_str().unwrap_or_default().to_owned();
        line(&text("kind"), &format!("{} ({} bytes)", text("path"), resource["bytes"]));
    }
    for left in value["left_out"].as_array().into_iter().flatten() {
        let text = |key: &str| left[key].as_str().unwrap_or_default().to_owned();
        line("left out", &format!("{}: {}", text("path"), text("why")));
    }
    for found in value["diagnostics"].as_array().into_iter().flatten() {
        let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
        line(&text("level"), &format!("{}: {}", text("code"), text("message")));
    }
    out
}
