//! What Prowess and others read from `metadata`.

use crate::lint::{Checker, Code, Document};
use crate::yaml::{Node, Value};

pub(crate) fn check(document: &Document<'_>, checker: &mut Checker<'_>) {
    let Some(metadata) = document.mapping.get("metadata").and_then(Node::as_mapping) else {
        return;
    };
    if let Some(node) = metadata.get("title").filter(|node| node.as_text().is_none()) {
        let message = "Field 'metadata.title' must be a string";
        let help = format!("it is {}", node.kind());
        checker.report_with_help(Code::WrongType, node.range, message, help);
    }
    if let Some(node) = metadata.get("include_tools") {
        check_include_tools(node, checker);
    }
}

fn check_include_tools(node: &Node, checker: &mut Checker<'_>) {
    let items = match &node.value {
        Value::Sequence(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    if let Some(item) = items.iter().find(|item| item.as_str().is_none()) {
        let message = "Field 'metadata.include_tools' must name tools";
        let help = format!("this is {}; write names, separated by spaces", item.kind());
        checker.report_with_help(Code::WrongType, item.range, message, help);
        return;
    }
    let is_list = node.as_sequence().is_some();
    if is_list || node.as_str().is_some_and(|text| text.contains(',')) {
        checker.report_with_help(
            Code::IncludeToolsForm,
            node.range,
            "DeepAgents reads 'metadata.include_tools' only as names separated by spaces",
            "write the names on one line, separated by spaces",
        );
    }
}
