//! `prowess info`

use std::io::Write;

use prowess_catalog::{CatalogSkill, ResourceScope};
use prowess_format::Diagnostic;
use serde_json::{Value, json};

use super::list::{left_out_json, skill_json};
use crate::Outcome;
use crate::cli::InfoArgs;
use crate::finder::{Finder, Form, complain, skill_or_complaint};
use crate::report;
use crate::terminal::safe_line;

pub(crate) fn run(arguments: &InfoArgs) -> anyhow::Result<Outcome> {
    let finder = Finder::new(&arguments.catalog)?;
    let snapshot = finder.snapshot();
    let form = Form::of_flag(arguments.json);
    let Some(skill) = skill_or_complaint(&snapshot, &arguments.name, form)? else {
        return Ok(Outcome::Findings);
    };
    let path = skill.path().display().to_string();
    let diagnostics: Vec<&Diagnostic> = snapshot
        .diagnostics()
        .iter()
        .filter(|found| found.path.as_deref() == Some(path.as_str()))
        .collect();
    let listing = match finder.wait(skill.resources(ResourceScope::Recursive)) {
        Ok(listing) => listing,
        Err(error) => {
            complain(error.code(), &error.to_string(), form)?;
            return Ok(Outcome::Findings);
        }
    };
    let tree_digest = finder.wait(skill.tree_digest());
    let mut value = skill_json(skill);
    value["frontmatter"] = json!(skill.found().frontmatter.raw());
    report::set_tree_digest(&mut value, &tree_digest);
    value["resources"] = json!(listing.resources);
    value["left_out"] = left_out_json(&listing);
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
    let why_none = value["tree_digest_error"]["message"].as_str().unwrap_or_default();
    let none = format!("none: {why_none}");
    line("tree digest", value["tree_digest"].as_str().unwrap_or(&none));
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
