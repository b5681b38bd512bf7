//! Texts that are not what they seem: read otherwise by others, cut by a comment, invisible.

use crate::fields::FieldKind;
use crate::lint::{Checker, Code, Document};
use crate::name::{is_deceptive, is_printable_ascii};
use crate::span::ByteRange;
use crate::yaml::{Entry, Node, Value, yaml11_reading};

pub(crate) fn check(document: &Document<'_>, checker: &mut Checker<'_>) {
    for (entry, field) in document.entries() {
        let is_text =
            field.is_some_and(|field| matches!(field.kind, FieldKind::Text | FieldKind::Hint));
        if is_text && entry.value.as_str().is_some() {
            check_ambiguous(document, &entry.key, &entry.value, checker);
            check_characters(&entry.key, &entry.value, checker);
        }
        if matches!(entry.key.as_str(), "description" | "when_to_use") {
            check_comment(document, entry, checker);
        }
    }
    let metadata = document.mapping.get("metadata").and_then(Node::as_mapping);
    for entry in metadata.into_iter().flatten() {
        match &entry.value.value {
            Value::Number(number) if number.spelling_is_fragile() => {
                report_fragile(&entry.key, number.spelling(), &entry.value, checker);
            }
            Value::String(_) => {
                check_ambiguous(document, &entry.key, &entry.value, checker);
                check_characters(&entry.key, &entry.value, checker);
            }
            _ => {}
        }
    }
}

fn report_fragile(key: &str, spelling: &str, node: &Node, checker: &mut Checker<'_>) {
    checker.report_with_help(
        Code::UnquotedNumber,
        node.range,
        format!("Field 'metadata.{key}' is a number that others do not keep as '{spelling}'"),
        format!("write {key}: \"{spelling}\""),
    );
}

fn check_ambiguous(document: &Document<'_>, key: &str, node: &Node, checker: &mut Checker<'_>) {
    let Some(text) = node.as_str() else { return };
    let Some(reading) = yaml11_reading(text).filter(|_| document.is_bare(node)) else { return };
    checker.report_with_help(
        Code::AmbiguousScalar,
        node.range,
        format!("'{text}' is text here, but {reading} to YAML 1.1 readers such as PyYAML"),
        format!("write {key}: \"{text}\""),
    );
}

fn check_characters(key: &str, node: &Node, checker: &mut Checker<'_>) {
    let Some(text) = node.as_str() else { return };
    if is_printable_ascii(text) {
        return;
    }
    let deceptive = |c: &char| is_deceptive(*c) && !matches!(c, '\n' | '\t');
    let Some(found) = text.chars().find(deceptive) else { return };
    checker.report_with_help(
        Code::ControlCharacters,
        node.range,
        format!("Field '{key}' holds the invisible character U+{:04X}", u32::from(found)),
        "remove it: it can hide text or steer a terminal",
    );
}

/// A ` #` in a bare text ends it, and most authors do not mean that.
fn check_comment(document: &Document<'_>, entry: &Entry, checker: &mut Checker<'_>) {
    let node = &entry.value;
    let Some(text) = node.as_str().filter(|_| document.is_bare(node)) else { return };
    let end = node.range.end as usize;
    let line = document.source[end..].split('\n').next().unwrap_or_default().trim_end();
    if line.trim_start().starts_with('#') {
        let start = end + (line.len() - line.trim_start().len());
        checker.report_with_help(
            Code::CommentInValue,
            ByteRange::new(start, end + line.len()),
            format!("This is a YAML comment, not part of '{}'", entry.key),
            format!("put the value in quotes if it shall read '{text}{line}'"),
        );
    }
}
