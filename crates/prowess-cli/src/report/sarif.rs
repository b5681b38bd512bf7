//! SARIF 2.1.0, the form that code scanning services take.

use std::collections::BTreeSet;

use prowess_format::{Code, Diagnostic, Level, Span};
use serde_json::{Value, json};

use super::{Report, print_json};

pub(super) fn print(report: &Report) -> anyhow::Result<()> {
    let used: BTreeSet<Code> = report.diagnostics().map(|diagnostic| diagnostic.code).collect();
    let rules: Vec<Value> = used
        .iter()
        .map(|code| json!({"id": code.as_str(), "shortDescription": {"text": code.about()}}))
        .collect();
    let results: Vec<Value> = report
        .sections
        .iter()
        .flat_map(|section| {
            section.diagnostics.iter().map(|diagnostic| result(diagnostic, &section.source, &used))
        })
        .collect();
    print_json(&json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "prowess",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    }))
}

fn result(diagnostic: &Diagnostic, source: &str, rules: &BTreeSet<Code>) -> Value {
    let level = match diagnostic.level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Info => "note",
    };
    let help = diagnostic.help.as_ref().map(|help| format!("\nhelp: {help}")).unwrap_or_default();
    let mut result = json!({
        "ruleId": diagnostic.code.as_str(),
        "ruleIndex": rules.iter().position(|code| *code == diagnostic.code),
        "level": level,
        "message": {"text": format!("{}{help}", diagnostic.message)},
    });
    if let Some(path) = &diagnostic.path {
        let mut place = json!({"artifactLocation": {"uri": uri(path)}});
        if let Some(span) = diagnostic.span {
            place["region"] = region(span, source);
        }
        result["locations"] = json!([{"physicalLocation": place}]);
    }
    result
}

fn region(span: Span, source: &str) -> Value {
    let end = prowess_format::ByteRange { start: span.end, end: span.end };
    let end = Span::locate(source, end);
    json!({
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": end.line.max(span.line),
        "endColumn": if end.line > span.line { end.column } else { end.column.max(span.column) },
    })
}

/// A path as a relative or absolute URI reference.
fn uri(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                out.push(char::from(byte));
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}
