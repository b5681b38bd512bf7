//! `prowess read`

use std::io::{IsTerminal, Write};

use prowess_catalog::{CatalogSkill, ReadError, ResourcePath};
use prowess_format::Digest;
use serde_json::json;

use crate::Outcome;
use crate::cli::ReadArgs;
use crate::finder::{Finder, Form, complain, skill_or_complaint};
use crate::report;
use crate::terminal::safe;

pub(crate) fn run(arguments: &ReadArgs) -> anyhow::Result<Outcome> {
    let finder = Finder::new(&arguments.catalog)?;
    let snapshot = finder.snapshot();
    let form = Form::of_flag(arguments.json);
    let Some(skill) = skill_or_complaint(&snapshot, &arguments.name, form)? else {
        return Ok(Outcome::Findings);
    };
    let bytes = match read(&finder, skill, arguments.path.as_deref()) {
        Ok(bytes) => bytes,
        Err(error) => {
            complain(error.code(), &error.to_string(), form)?;
            return Ok(Outcome::Findings);
        }
    };
    if arguments.json {
        report::print_json(&json!({
            "name": skill.name(),
            "path": arguments.path.as_deref().unwrap_or(skill.found().file),
            "digest": Digest::of(&bytes),
            "bytes": bytes.len(),
            // Null where the file is no text.
            "content": std::str::from_utf8(&bytes).ok(),
        }))?;
    } else if std::io::stdout().is_terminal() {
        let text = String::from_utf8_lossy(&bytes);
        std::io::stdout().write_all(safe(&text).as_bytes())?;
    } else {
        std::io::stdout().write_all(&bytes)?;
    }
    Ok(Outcome::Ok)
}

fn read(finder: &Finder, skill: &CatalogSkill, path: Option<&str>) -> Result<Vec<u8>, ReadError> {
    let Some(path) = path else { return finder.wait(skill.read()) };
    let invalid = |cause| ReadError::InvalidPath { path: path.to_owned(), cause };
    let path = ResourcePath::parse(path).map_err(invalid)?;
    finder.wait(skill.read_resource(&path))
}
