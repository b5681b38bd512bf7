//! `prowess read-properties`

use serde_json::json;

use super::properties::{Properties, Refused};
use crate::Outcome;
use crate::cli::ReadPropertiesArgs;
use crate::report;
use crate::terminal::safe_line;

pub(crate) fn run(arguments: &ReadPropertiesArgs) -> anyhow::Result<Outcome> {
    match Properties::read(&arguments.path) {
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
