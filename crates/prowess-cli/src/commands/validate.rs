//! `prowess validate`

use std::io::Write;

use anstream::{eprintln, stdout};
use prowess_format::{Diagnostic, Level};
use serde_json::json;

use crate::Outcome;
use crate::cli::ValidateArgs;
use crate::finder;
use crate::locate::{self, Links};
use crate::report;
use crate::terminal::safe_line;

pub(crate) fn run(arguments: &ValidateArgs) -> anyhow::Result<Outcome> {
    let limits = finder::limits()?;
    let paths = arguments.catalog.with_paths(&arguments.paths);
    let search = locate::search(&paths, arguments.profile, limits);
    let mut outcome = Outcome::Ok;
    let mut results = Vec::new();
    for located in search.located {
        let checked = locate::check(located, arguments.profile, Links::Ignore, limits);
        let path = locate::shown(&checked.folder);
        let (errors, others): (Vec<Diagnostic>, Vec<Diagnostic>) = checked
            .diagnostics
            .into_iter()
            .partition(|diagnostic| diagnostic.level == Level::Error);
        if !errors.is_empty() {
            outcome = Outcome::Findings;
        }
        if arguments.json {
            let valid = errors.is_empty();
            results.push(json!({"path": path, "valid": valid, "errors": errors, "others": others}));
        } else {
            print_result(&path, &errors, others.len())?;
        }
    }
    for diagnostic in &search.diagnostics {
        eprintln!("{}: {}", diagnostic.level, safe_line(&diagnostic.message));
        if diagnostic.level == Level::Error {
            outcome = Outcome::Findings;
        }
    }
    if arguments.json {
        report::print_json(&json!({"skills": results, "diagnostics": search.diagnostics}))?;
    }
    Ok(outcome)
}

fn print_result(path: &str, errors: &[Diagnostic], others: usize) -> anyhow::Result<()> {
    let path = safe_line(path);
    if errors.is_empty() {
        writeln!(stdout(), "Valid skill: {path}")?;
        if others > 0 {
            let s = if others == 1 { "" } else { "s" };
            eprintln!("  {others} more remark{s}: prowess lint {path}");
        }
        return Ok(());
    }
    eprintln!("Validation failed for {path}:");
    for error in errors {
        eprintln!("  - {}", safe_line(&error.message));
    }
    Ok(())
}
