//! Values of the wrong type, and scalars that others read differently.

use crate::fields::{Field, FieldKind, field};
use crate::lint::{Checker, Code, Document, Profile};
use crate::name::is_deceptive;
use crate::yaml::{Entry, Node, Value, yaml11_reading};

/// The most characters a compatibility note may have.
const MAX_COMPATIBILITY_CHARS: usize = 500;

pub(crate) fn check(document: &Document<'_>, checker: &mut Checker<'_>) {
    for entry in &document.mapping {
        let Some(field) = field(&entry.key) else {
            continue;
        };
        check_kind(field, entry, checker);
        check_text(document, field, entry, checker);
        if field.key == "compatibility" {
            check_compatibility(entry, checker);
        }
        if field.key == "metadata" {
            check_metadata(document, &entry.value, checker);
        }
    }
}

fn check_kind(field: &Field, entry: &Entry, checker: &mut Checker<'_>) {
    let Field { key, kind, .. } = *field;
    let node = &entry.value;
    // Their own rules speak of these two.
    if matches!(key, "name" | "description") && !matches!(node.value, Value::Number(_)) {
        return;
    }
    let wanted = match (kind, &node.value) {
        (FieldKind::Text | FieldKind::Names | FieldKind::Tools, Value::String(_))
        | (FieldKind::Mapping, Value::Mapping(_))
        // The rules for configurations say more.
        | (FieldKind::Records, _) => return,
        (FieldKind::Text, Value::Number(number)) => {
            let spelling = number.spelling();
            return checker.report_with_help(
                Code::UnquotedNumber,
                node.range,
                format!(
                    "Field '{key}' is the number {spelling}; it is read as the text '{spelling}'"
                ),
                format!("write {key}: \"{spelling}\""),
            );
        }
        (FieldKind::Text, _) => "must be a string",
        (FieldKind::Choice(words), _) => match node.as_text() {
            Some(word) if words.contains(&word) => {
                return check_supported(key, word, node, checker);
            }
            Some(word) => {
                return checker.report_with_help(
                    Code::InvalidValue,
                    node.range,
                    format!("Field '{key}' cannot be '{}'", word.escape_debug()),
                    format!("use one of: {}", words.join(", ")),
                );
            }
            None => "must be a string",
        },
        (FieldKind::Boolean, Value::Null | Value::Sequence(_) | Value::Mapping(_)) => {
            "must be true or false"
        }
        (FieldKind::Boolean, _) => {
            if node.as_bool().is_some() {
                return;
            }
            let word = node
                .as_text()
                .unwrap_or_default()
                .escape_debug()
                .to_string();
            return checker.report_with_help(
                Code::InvalidValue,
                node.range,
                format!("Field '{key}' cannot be '{word}'"),
                "use true or false",
            );
        }
        (FieldKind::Names | FieldKind::Tools, Value::Sequence(items)) => {
            match items.iter().find(|item| item.as_str().is_none()) {
                None => return,
                Some(item) => {
                    let kind = item.kind();
                    return checker.report_with_help(
                        Code::WrongType,
                        item.range,
                        format!("Field '{key}' must be a list of strings"),
                        format!("this entry is {kind}; write it as text, in quotes if need be"),
                    );
                }
            }
        }
        (FieldKind::Names | FieldKind::Tools, _) => "must be a string or a list of strings",
        (FieldKind::Mapping, _) => "must be a mapping",
    };
    let help = match node.kind() {
        "null" => "give it a value or remove it".to_owned(),
        kind => format!("it is {kind}"),
    };
    let range = entry.key_range.to(node.range);
    checker.report_with_help(Code::WrongType, range, format!("Field '{key}' {wanted}"), help);
}

fn check_supported(key: &str, word: &str, node: &Node, checker: &mut Checker<'_>) {
    if word == "fork_with_context" && checker.profile == Profile::ClaudeCode {
        checker.report_with_help(
            Code::UnsupportedValue,
            node.range,
            format!("Claude Code does not know '{word}' as a value of '{key}'"),
            "use fork",
        );
    }
}

fn check_text(document: &Document<'_>, field: &Field, entry: &Entry, checker: &mut Checker<'_>) {
    if !matches!(field.kind, FieldKind::Text) {
        return;
    }
    let Some(text) = entry.value.as_str() else {
        return;
    };
    check_ambiguous(document, field.key, &entry.value, checker);
    check_characters(field.key, &entry.value, checker);
    if matches!(field.key, "description" | "when_to_use") && document.is_bare(&entry.value) {
        let rest = &document.source[entry.value.range.end as usize..];
        let line = rest.split('\n').next().unwrap_or_default();
        if line.trim_start().starts_with('#') {
            let cut = line.trim_end();
            let start = entry.value.range.end as usize + (line.len() - line.trim_start().len());
            let end = entry.value.range.end as usize + cut.len();
            checker.report_with_help(
                Code::CommentInValue,
                crate::span::ByteRange::new(start, end),
                format!("This is a YAML comment, not part of '{}'", field.key),
                format!("put the value in quotes if it shall read '{text}{cut}'"),
            );
        }
    }
}

fn check_ambiguous(document: &Document<'_>, key: &str, node: &Node, checker: &mut Checker<'_>) {
    let Some(text) = node.as_str() else { return };
    let Some(reading) = yaml11_reading(text).filter(|_| document.is_bare(node)) else {
        return;
    };
    checker.report_with_help(
        Code::AmbiguousScalar,
        node.range,
        format!("'{text}' is text here, but {reading} to YAML 1.1 readers such as PyYAML"),
        format!("write {key}: \"{text}\""),
    );
}

fn check_characters(key: &str, node: &Node, checker: &mut Checker<'_>) {
    let Some(text) = node.as_str() else { return };
    // Nearly all text is printable ASCII; only the rest needs a closer look.
    if text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        return;
    }
    let deceptive = |c: &char| is_deceptive(*c) && !matches!(c, '\n' | '\t');
    let Some(found) = text.chars().find(deceptive) else {
        return;
    };
    checker.report_with_help(
        Code::ControlCharacters,
        node.range,
        format!("Field '{key}' holds the invisible character U+{:04X}", u32::from(found)),
        "remove it: it can hide text or steer a terminal",
    );
}

fn check_compatibility(entry: &Entry, checker: &mut Checker<'_>) {
    let text = entry.value.as_text().unwrap_or_default();
    if text.len() <= MAX_COMPATIBILITY_CHARS {
        return;
    }
    let characters = text.chars().count();
    if characters > MAX_COMPATIBILITY_CHARS {
        checker.report_with_help(
            Code::CompatibilityTooLong,
            entry.value.range,
            format!(
                "Compatibility exceeds {MAX_COMPATIBILITY_CHARS} character limit \
                 ({characters} chars)"
            ),
            "name the requirements and leave the rest to the body",
        );
    }
}

fn check_metadata(document: &Document<'_>, node: &Node, checker: &mut Checker<'_>) {
    for entry in node.as_mapping().into_iter().flatten() {
        match &entry.value.value {
            Value::Number(number) if number.spelling_is_fragile() => {
                let (key, spelling) = (&entry.key, number.spelling());
                checker.report_with_help(
                    Code::UnquotedNumber,
                    entry.value.range,
                    format!(
                        "Field 'metadata.{key}' is a number that others do not keep as '{spelling}'"
                    ),
                    format!("write {key}: \"{spelling}\""),
                );
            }
            Value::String(_) => {
                check_ambiguous(document, &entry.key, &entry.value, checker);
                check_characters(&entry.key, &entry.value, checker);
            }
            _ => {}
        }
    }
}
