//! The writer: any mapping, as YAML that reads back as the same mapping.

use super::scalar::{resolve, yaml11_reading};
use super::value::{Entry, Mapping, Node, Value};

/// A text with more quotes and backslashes than this is written as a block.
const MOST_ESCAPES: usize = 16;

/// Keys whose text is longer than this are written in the explicit form `? key`.
const LONGEST_SIMPLE_KEY: usize = 128;

/// Writes a mapping in block style, one entry a line. Text is left bare where every YAML reader
/// takes it for text, and quoted elsewhere. What fits [`crate::yaml::Limits`] may be a little
/// longer when written, where its author found a shorter form.
pub fn write(mapping: &Mapping) -> String {
    let mut out = String::new();
    for entry in mapping {
        write_entry(&mut out, entry, 0);
    }
    out
}

fn write_entry(out: &mut String, entry: &Entry, indent: usize) {
    let simple = entry.key.len() <= LONGEST_SIMPLE_KEY;
    if !simple {
        out.push_str("? ");
    }
    if is_bare_key(&entry.key) {
        out.push_str(&entry.key);
    } else {
        write_quoted(out, &entry.key);
    }
    if !simple {
        out.push('\n');
        push_indent(out, indent);
    }
    out.push(':');
    write_below(out, &entry.value, indent);
}

/// Writes a value behind `key:` or `-`, up to and including its line break.
fn write_below(out: &mut String, node: &Node, indent: usize) {
    match &node.value {
        Value::Mapping(mapping) if !mapping.is_empty() => {
            out.push('\n');
            for entry in mapping {
                push_indent(out, indent + 2);
                write_entry(out, entry, indent + 2);
            }
        }
        Value::Sequence(items) if !items.is_empty() => {
            out.push('\n');
            for item in items {
                push_indent(out, indent + 2);
                write_item(out, item, indent + 2);
            }
        }
        Value::String(text) if is_literal(text) => write_literal(out, text, indent + 2),
        Value::String(text) if needs_block(text) => write_literal(out, text, indent + 2),
        _ => {
            out.push(' ');
            write_scalar(out, node);
            out.push('\n');
        }
    }
}

fn write_item(out: &mut String, item: &Node, indent: usize) {
    out.push('-');
    match &item.value {
        Value::Mapping(mapping) if !mapping.is_empty() => {
            out.push(' ');
            for (at, entry) in mapping.iter().enumerate() {
                if at > 0 {
                    push_indent(out, indent + 2);
                }
                write_entry(out, entry, indent + 2);
            }
        }
        _ => write_below(out, item, indent),
    }
}

fn write_scalar(out: &mut String, node: &Node) {
    match &node.value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => out.push_str(number.spelling()),
        Value::String(text) if is_bare(text) => out.push_str(text),
        Value::String(text) if is_single_quotable(text) => out.push_str(&format!("'{text}'")),
        Value::String(text) => write_quoted(out, text),
        Value::Sequence(_) => out.push_str("[]"),
        Value::Mapping(_) => out.push_str("{}"),
    }
}

fn push_indent(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

fn is_bare_key(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
        && is_bare(key)
}

/// Whether every YAML reader takes this for the same text without quotes.
fn is_bare(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '/' | '(' | '<' | '$'))
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && text.chars().all(is_printable)
        && matches!(resolve(text), Value::String(_))
        && yaml11_reading(text).is_none()
        && !matches!(text, "y" | "Y" | "n" | "N")
}

/// Whether a text of several lines can be written as a literal block.
fn is_literal(text: &str) -> bool {
    let lines = text.strip_suffix('\n').unwrap_or(text);
    lines.contains('\n')
        && !lines.ends_with('\n')
        && !lines.starts_with('\n')
        && lines.split('\n').all(|line| {
            !line.starts_with([' ', '\t']) && !line.ends_with([' ', '\t']) && {
                line.chars().all(is_printable)
            }
        })
}

/// Whether a text of one line can stand between single quotes as it is.
fn is_single_quotable(text: &str) -> bool {
    text.contains(['"', '\\']) && !text.contains('\'') && text.chars().all(is_printable)
}

/// Whether a text of one line holds so many characters that quotes would escape that a block is
/// shorter. A block needs no escapes at all.
fn needs_block(text: &str) -> bool {
    let escaped = text.bytes().filter(|byte| matches!(byte, b'"' | b'\\')).count();
    escaped > MOST_ESCAPES
        && !text.starts_with([' ', '\t'])
        && !text.ends_with([' ', '\t'])
        && text.chars().all(is_printable)
}

fn write_literal(out: &mut String, text: &str, indent: usize) {
    let (lines, header) = match text.strip_suffix('\n') {
        Some(lines) => (lines, " |\n"),
        None => (text, " |-\n"),
    };
    out.push_str(header);
    for line in lines.split('\n') {
        if !line.is_empty() {
            push_indent(out, indent);
            out.push_str(line);
        }
        out.push('\n');
    }
}

/// Characters that stand for themselves in every style. Line breaks and tabs are not among them.
fn is_printable(character: char) -> bool {
    !character.is_control()
        && !matches!(character, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

fn write_quoted(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\0' => out.push_str("\\0"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            '\u{1b}' => out.push_str("\\e"),
            '\u{85}' => out.push_str("\\N"),
            '\u{2028}' => out.push_str("\\L"),
            '\u{2029}' => out.push_str("\\P"),
            c if is_printable(c) => out.push(c),
            c if u32::from(c) <= 0xff => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if u32::from(c) <= 0xffff => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    out.push('"');
}
