//! Tool lists.

use crate::lint::{Checker, Code, Document, Profile};
use crate::tools::{ToolPattern, is_balanced, read_tools, split_tools};
use crate::yaml::{Node, Value};

pub(crate) fn check(document: &Document<'_>, checker: &mut Checker<'_>) {
    for key in ["allowed-tools", "disallowed-tools"] {
        let Some(node) = document.mapping.get(key) else {
            continue;
        };
        if key == "allowed-tools" && matches!(node.value, Value::Sequence(_)) {
            checker.report_with_help(
                Code::ToolListForm,
                node.range,
                "The specification wants 'allowed-tools' as one string",
                "write the tools on one line, separated by spaces",
            );
        }
        let items = node.as_sequence().unwrap_or(std::slice::from_ref(node));
        for item in items {
            check_item(key, item, checker);
        }
    }
}

fn check_item(key: &str, item: &Node, checker: &mut Checker<'_>) {
    let Some(text) = item.as_str() else { return };
    if !is_balanced(text) {
        let entries = split_tools(text);
        checker.report_with_help(
            Code::MalformedTool,
            item.range,
            format!("Field '{key}' has a parenthesis without its partner"),
            format!("it is read as {} entries: {}", entries.len(), shortened(&entries)),
        );
        return;
    }
    if checker.profile != Profile::DeepAgents {
        return;
    }
    let spaced = |pattern: &&ToolPattern| {
        pattern.scope.as_deref().is_some_and(|scope| scope.contains([' ', ',']))
    };
    if let Some(pattern) = read_tools(item).iter().find(spaced) {
        checker.report(
            Code::ToolPatternSplit,
            item.range,
            format!("DeepAgents splits the pattern '{pattern}' at its spaces"),
        );
    }
}

/// The first few entries, on a line that can be read.
fn shortened(entries: &[&str]) -> String {
    let line = entries.join(" | ");
    match line.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
