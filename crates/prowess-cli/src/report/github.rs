//! Annotations for GitHub Actions: `::error file=…,line=…,col=…,title=…::message`.

use std::io::Write;

use prowess_format::{Diagnostic, Level};

use super::Report;

pub(super) fn print(report: &Report) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    for diagnostic in report.diagnostics() {
        writeln!(out, "{}", annotation(diagnostic))?;
    }
    Ok(())
}

fn annotation(diagnostic: &Diagnostic) -> String {
    let command = match diagnostic.level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Info => "notice",
    };
    let mut properties = Vec::new();
    if let Some(path) = &diagnostic.path {
        properties.push(format!("file={}", property(path)));
    }
    if let Some(span) = diagnostic.span {
        properties.push(format!("line={},col={}", span.line, span.column));
    }
    properties.push(format!("title={}", diagnostic.code));
    let help = diagnostic.help.as_ref().map(|help| format!("\nhelp: {help}")).unwrap_or_default();
    let message = data(&format!("{}{help}", diagnostic.message));
    format!("::{command} {}::{message}", properties.join(","))
}

/// What follows the second `::`: a line break would begin a new command.
fn data(text: &str) -> String {
    let text = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    crate::terminal::safe(&text).into_owned()
}

/// What stands between `,` and `=`.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
