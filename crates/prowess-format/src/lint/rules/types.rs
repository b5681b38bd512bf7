//! Values of the wrong type, and words that mean nothing.

use crate::fields::{Field, FieldKind};
use crate::lint::{Checker, Code, Document, Profile};
use crate::yaml::{Entry, Node, Value};

/// The most characters a compatibility note may have.
const MAX_COMPATIBILITY_CHARS: usize = 500;

pub(crate) fn check(document: &Document<'_>, checker: &mut Checker<'_>) {
    for (entry, field) in document.entries() {
        let Some(field) = field else { continue };
        check_kind(field, entry, checker);
        if field.key == "compatibility" {
            check_compatibility(entry, checker);
        }
    }
}

fn check_kind(field: &Field, entry: &Entry, checker: &mut Checker<'_>) {
    let (key, node) = (field.key, &entry.value);
    // Their own rules speak of these, and of a field without a value the reference library thinks
    // as of an empty text.
    let spoken_for = matches!(key, "name" | "description" | "id") && !is_number(node);
    if spoken_for || (node.value == Value::Null && checker.profile == Profile::Spec) {
        return;
    }
    match field.kind {
        FieldKind::Text => match &node.value {
            Value::String(_) => {}
            Value::Number(number) => report_number(key, number.spelling(), node, checker),
            _ => wrong_type(entry, "must be a string", checker),
        },
        FieldKind::Hint => match &node.value {
            Value::String(_) | Value::Number(_) => {}
            Value::Sequence(items) if items.iter().all(|item| item.as_text().is_some()) => {}
            _ => wrong_type(entry, "must be a string", checker),
        },
        FieldKind::Choice(words) => check_choice(entry, words, checker),
        FieldKind::Boolean => check_boolean(entry, checker),
        FieldKind::Names | FieldKind::Tools => check_list(entry, checker),
        FieldKind::Mapping if node.as_mapping().is_none() => {
            wrong_type(entry, "must be a mapping", checker);
        }
        // The rules for configurations say more.
        FieldKind::Mapping | FieldKind::Records => {}
    }
}

fn is_number(node: &Node) -> bool {
    matches!(node.value, Value::Number(_))
}

fn wrong_type(entry: &Entry, wanted: &str, checker: &mut Checker<'_>) {
    let help = match entry.value.kind() {
        "null" => "give it a value or remove it".to_owned(),
        kind => format!("it is {kind}"),
    };
    let range = entry.key_range.to(entry.value.range);
    let message = format!("Field '{}' {wanted}", entry.key);
    checker.report_with_help(Code::WrongType, range, message, help);
}

fn report_number(key: &str, spelling: &str, node: &Node, checker: &mut Checker<'_>) {
    checker.report_with_help(
        Code::UnquotedNumber,
        node.range,
        format!("Field '{key}' is the number {spelling}; it is read as the text '{spelling}'"),
        format!("write {key}: \"{spelling}\""),
    );
}

fn check_choice(entry: &Entry, words: &[&str], checker: &mut Checker<'_>) {
    let key = &entry.key;
    // Eino's word is not Claude Code's.
    let claude_code = checker.profile == Profile::ClaudeCode;
    let is_offered = |word: &&&str| !(claude_code && **word == "fork_with_context");
    let offered: Vec<&str> = words.iter().filter(is_offered).copied().collect();
    let Some(word) = entry.value.as_text() else {
        return wrong_type(entry, "must be a string", checker);
    };
    if offered.contains(&word) {
        return;
    }
    let help = format!("use one of: {}", offered.join(", "));
    let word_shown = word.escape_debug();
    match words.contains(&word) {
        true => checker.report_with_help(
            Code::UnsupportedValue,
            entry.value.range,
            format!("Claude Code does not know '{word_shown}' as a value of '{key}'"),
            help,
        ),
        false => checker.report_with_help(
            Code::InvalidValue,
            entry.value.range,
            format!("Field '{key}' cannot be '{word_shown}'"),
            help,
        ),
    }
}

fn check_boolean(entry: &Entry, checker: &mut Checker<'_>) {
    if entry.value.as_bool().is_some() {
        return;
    }
    match entry.value.as_text() {
        None => wrong_type(entry, "must be true or false", checker),
        Some(word) => checker.report_with_help(
            Code::InvalidValue,
            entry.value.range,
            format!("Field '{}' cannot be '{}'", entry.key, word.escape_debug()),
            "use true or false",
        ),
    }
}

fn check_list(entry: &Entry, checker: &mut Checker<'_>) {
    let items = match &entry.value.value {
        Value::String(_) => return,
        Value::Sequence(items) => items,
        _ => return wrong_type(entry, "must be a string or a list of strings", checker),
    };
    if let Some(item) = items.iter().find(|item| item.as_str().is_none()) {
        checker.report_with_help(
            Code::WrongType,
            item.range,
            format!("Field '{}' must be a list of strings", entry.key),
            format!("this entry is {}; write it as text, in quotes if need be", item.kind()),
        );
    }
}

fn check_compatibility(entry: &Entry, checker: &mut Checker<'_>) {
    let text = entry.value.as_text().unwrap_or_default();
    // A character is at least a byte: no need to count short ones.
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
