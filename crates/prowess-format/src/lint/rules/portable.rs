//! What works here and is refused elsewhere.

use crate::fields::Origin;
use crate::lint::{Checker, Code, Document};
use crate::yaml::{Node, Value};

pub(crate) fn check(document: &Document<'_>, checker: &mut Checker<'_>) {
    check_extensions(document, checker);
    if Code::StrictYaml.level(checker.profile).is_some() {
        for entry in &document.mapping {
            check_flow_style(document, &entry.value, checker);
        }
    }
}

/// One remark for all fields that the specification does not have.
fn check_extensions(document: &Document<'_>, checker: &mut Checker<'_>) {
    let mut extensions = document
        .entries()
        .filter(|(_, field)| field.is_some_and(|field| field.origin != Origin::Spec))
        .map(|(entry, _)| entry);
    let Some(first) = extensions.next() else { return };
    let mut keys = vec![first.key.as_str()];
    keys.extend(extensions.map(|entry| entry.key.as_str()));
    checker.report(
        Code::NotPortable,
        first.key_range,
        format!("claude.ai refuses a skill with these fields on upload: {}", keys.join(", ")),
    );
}

/// The reference library's YAML has no `[a, b]` and no `{a: b}`.
fn check_flow_style(document: &Document<'_>, node: &Node, checker: &mut Checker<'_>) {
    let written = document.source.get(node.range.as_usize()).unwrap_or_default();
    match &node.value {
        Value::Sequence(_) | Value::Mapping(_) if written.starts_with(['[', '{']) => {
            checker.report_with_help(
                Code::StrictYaml,
                node.range,
                "Invalid YAML in frontmatter: the reference library refuses flow style",
                "write one entry a line, or put the text in quotes",
            );
        }
        Value::Sequence(items) => {
            items.iter().for_each(|item| check_flow_style(document, item, checker));
        }
        Value::Mapping(mapping) => {
            mapping.iter().for_each(|entry| check_flow_style(document, &entry.value, checker));
        }
        _ => {}
    }
}
