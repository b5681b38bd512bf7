//! `prowess read-properties`

use serde_json::json;

use super::properties::{Properties, Refused};
use crate::Outcome;
use crate::cli::ReadPropertiesArgs;
use crate::finder::{self, Finder, Form, skill_or_complaint};
use crate::report;
use crate::terminal::safe_line;

pub(crate) fn run(arguments: &ReadPropertiesArgs) -> anyhow::Result<Outcome> {
    let limits = finder::limits()?;
    let mut path = arguments.path.clone();
    if !arguments.catalog.sources.is_empty() && !path.exists() {
        let finder = Finder::new(&arguments.catalog)?;
        let (snapshot, name) = (finder.snapshot(), path.to_string_lossy());
        match skill_or_complaint(&snapshot, &name, Form::Text)? {
            Some(skill) => path = skill.path(),
            None => return Ok(Outcome::Findings),
        }
    }
    match Properties::read(&path, limits) {
        Ok(properties) => {
            let value = match arguments.all {
                true => json!(properties.skill.frontmatter.raw()),
                false => properties.to_json(),
            };
            report::print_json(&value)?;
            Ok(Outcome::Ok)
        }
        Err(Refused(message)) => {
            anstream::eprintln!("Error: {}", safe_line(&message));
            Ok(Outcome::Findings)
        }
    }
}
