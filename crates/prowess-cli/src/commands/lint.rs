//! `prowess lint`

use prowess_format::Level;

use crate::Outcome;
use crate::cli::{Format, LintArgs};
use crate::finder;
use crate::locate::{self, Links};
use crate::report::{self, Report, Section};

pub(crate) fn run(arguments: &LintArgs) -> anyhow::Result<Outcome> {
    let mut paths = arguments.catalog.with_paths(&arguments.paths);
    if paths.is_empty() {
        paths.push(".".into());
    }
    let limits = finder::limits()?;
    let search = locate::search(&paths, arguments.profile, limits);
    let mut report = Report::default();
    for located in search.located {
        let checked = locate::check(located, arguments.profile, Links::Check, limits);
        // It takes reading every file of the skill, for programs alone.
        if arguments.format() == Format::Json {
            report.identities.extend(checked.identity(limits));
        }
        let mut diagnostics = checked.diagnostics;
        report.skills += usize::from(checked.file.is_some());
        diagnostics.sort_by_key(|diagnostic| diagnostic.span.map(|span| (span.start, span.end)));
        report.sections.push(Section { source: checked.source, diagnostics });
    }
    if !search.diagnostics.is_empty() {
        let section = Section { source: String::new(), diagnostics: search.diagnostics };
        report.sections.push(section);
    }
    if arguments.strict {
        report.promote_warnings();
    }
    report::print(&report, arguments.format())?;
    Ok(match report.count(Level::Error) {
        0 => Outcome::Ok,
        _ => Outcome::Findings,
    })
}
