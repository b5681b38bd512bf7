//! The second chance: values that their authors meant as text, but that YAML refuses.
//!
//! `description: Use when: asked` is the most common mistake in skills. A value that is no YAML
//! on its own is put in quotes and the text is read again; every such value is noted. Block
//! scalars, values that are fine, and values that merely go on over several lines are left alone.

use super::full::read_full;
use super::value::{Mapping, Node, Value};
use super::{Limits, Note, NoteKind, Reading, YamlError};
use crate::span::ByteRange;

/// Reads `text` with its broken values in quotes. Fails with what is left to mend: the error of
/// the first reading, or that of the second if it is further down.
pub(super) fn read_repaired(
    text: &str,
    base: usize,
    limits: &Limits,
    first: (YamlError, ByteRange),
) -> Result<Reading, (YamlError, ByteRange)> {
    if !matches!(first.0, YamlError::Syntax(_)) {
        return Err(first);
    }
    let broken = broken_values(text, limits);
    if broken.is_empty() {
        return Err(first);
    }
    let quoted = Quoted::new(text, &broken);
    let mut reading = match read_full(&quoted.text, 0, limits) {
        Ok(reading) => reading,
        Err((error, range)) => {
            let second = (error, quoted.restore(range, base));
            return Err(if second.1.start > first.1.start { second } else { first });
        }
    };
    quoted.restore_mapping(&mut reading.mapping, base);
    for note in &mut reading.notes {
        note.range = quoted.restore(note.range, base);
    }
    reading.notes.extend(broken.into_iter().map(|value| Note {
        range: ByteRange::new(base + value.start, base + value.end),
        kind: NoteKind::ReadAsText { key: value.key.to_owned(), error: value.error },
    }));
    Ok(reading)
}

struct Broken<'a> {
    key: &'a str,
    start: usize,
    end: usize,
    error: String,
}

/// The single lines or folded paragraphs that are no YAML on their own.
fn broken_values<'a>(text: &'a str, limits: &Limits) -> Vec<Broken<'a>> {
    let mut broken = Vec::new();
    let mut lines = text.split_inclusive('\n').scan(0, |at, line| {
        let start = *at;
        *at += line.len();
        Some((start, line.trim_end_matches(['\n', '\r'])))
    });
    let mut pending = lines.next();
    while let Some((at, line)) = pending {
        pending = lines.next();
        let Some(value) = Line::parse(line) else {
            continue;
        };
        let is_block_scalar = is_block_header(value.text);
        let mut end = at + value.start + value.text.len();
        // What is indented deeper belongs to this value.
        let mut below = false;
        while let Some((next_at, next)) = pending {
            let indent = next.len() - next.trim_start_matches(' ').len();
            let blank = next.trim().is_empty();
            if !blank && indent <= value.key_column {
                break;
            }
            if !is_block_scalar && value.text.is_empty() {
                break;
            }
            if !blank {
                below = true;
                end = next_at + next.trim_end().len();
            }
            pending = lines.next();
        }
        if is_block_scalar || value.text.is_empty() {
            continue;
        }
        let start = at + value.start;
        let Some(error) = value.error(limits) else {
            continue;
        };
        if let Some(items) = value.broken_items() {
            if !below {
                broken.extend(items.into_iter().map(|(from, to)| Broken {
                    key: value.key,
                    start: start + from,
                    end: start + to,
                    error: error.clone(),
                }));
            }
            continue;
        }
        broken.push(Broken { key: value.key, start, end, error });
    }
    broken
}

/// A line `key: value`, `- key: value` or `- value`.
struct Line<'a> {
    key: &'a str,
    /// The column from which what is indented deeper belongs to the value.
    key_column: usize,
    /// Where the value begins in the line.
    start: usize,
    text: &'a str,
}

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut at = line.len() - line.trim_start_matches(' ').len();
        let mut dash = None;
        while line[at..].starts_with("- ") {
            dash = Some(at);
            let rest = &line[at + 1..];
            at += 1 + (rest.len() - rest.trim_start_matches(' ').len());
        }
        let rest = &line[at..];
        let length = rest
            .bytes()
            .take_while(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(byte))
            .count();
        let after = &rest[length..];
        let has_key = length > 0
            && !rest.starts_with('-')
            && (after == ":" || after.starts_with(": ") || after.starts_with(":\t"));
        let (key, key_column, value) =
            if has_key { (&rest[..length], at, &after[1..]) } else { ("-", dash?, rest) };
        let start = line.len() - value.trim_start().len();
        Some(Self { key, key_column, start, text: value.trim() })
    }

    /// What YAML says against this value alone; nothing if it is fine or may go on below.
    fn error(&self, limits: &Limits) -> Option<String> {
        if self.goes_on() || self.is_alias() {
            return None;
        }
        let alone = format!("k: {}", self.text);
        match read_full(&alone, 0, limits) {
            Err((YamlError::Syntax(error), _)) => Some(error),
            _ => None,
        }
    }

    /// A quote or bracket that is opened here and closed further down, or never.
    fn goes_on(&self) -> bool {
        let count = |wanted: char| self.text.matches(wanted).count();
        match self.text.as_bytes().first() {
            Some(b'"') => !closes(&self.text[1..], '"'),
            Some(b'\'') => !closes(&self.text[1..], '\''),
            Some(b'[') => count('[') > count(']'),
            Some(b'{') => count('{') > count('}'),
            _ => false,
        }
    }

    fn is_alias(&self) -> bool {
        self.text.strip_prefix('*').is_some_and(|name| {
            !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        })
    }

    /// For `[a,@b]`: the items that begin with a character that YAML reserves.
    fn broken_items(&self) -> Option<Vec<(usize, usize)>> {
        let inside = self.text.strip_prefix('[')?.strip_suffix(']')?;
        if inside.contains(['[', ']', '{', '}', '"', '\'']) {
            return None;
        }
        let mut at = 1;
        let mut items = Vec::new();
        for item in inside.split(',') {
            let start = at + (item.len() - item.trim_start().len());
            let text = item.trim();
            if text.starts_with(['@', '`', '%', '*', '&', '!']) || text.contains(": ") {
                items.push((start, start + text.len()));
            }
            at += item.len() + 1;
        }
        (!items.is_empty()).then_some(items)
    }
}

fn closes(rest: &str, quote: char) -> bool {
    let mut escaped = false;
    rest.chars().any(|character| {
        let closing = character == quote && !escaped;
        escaped = quote == '"' && character == '\\' && !escaped;
        closing
    })
}

fn is_block_header(value: &str) -> bool {
    let header = value.split_once(" #").map_or(value, |(header, _)| header).trim_end();
    let Some(modifiers) = header.strip_prefix(['|', '>']) else {
        return false;
    };
    modifiers.len() <= 2 && modifiers.bytes().all(|byte| b"+-123456789".contains(&byte))
}

/// A text with quotes around some parts, and the way back to the offsets of the original.
struct Quoted {
    text: String,
    /// Offsets in `text` of the bytes that the original does not have.
    inserted: Vec<usize>,
}

impl Quoted {
    fn new(original: &str, parts: &[Broken<'_>]) -> Self {
        let mut quoted =
            Self { text: String::with_capacity(original.len() + 64), inserted: vec![] };
        let mut at = 0;
        for part in parts {
            quoted.text.push_str(&original[at..part.start]);
            quoted.insert_quote();
            for character in original[part.start..part.end].chars() {
                if character == '\'' {
                    quoted.insert_quote();
                }
                quoted.text.push(character);
            }
            quoted.insert_quote();
            at = part.end;
        }
        quoted.text.push_str(&original[at..]);
        quoted
    }

    fn insert_quote(&mut self) {
        self.inserted.push(self.text.len());
        self.text.push('\'');
    }

    fn restore(&self, range: ByteRange, base: usize) -> ByteRange {
        let original = |offset: u32| {
            let offset = offset as usize;
            base + offset - self.inserted.partition_point(|at| *at < offset)
        };
        ByteRange::new(original(range.start), original(range.end))
    }

    fn restore_mapping(&self, mapping: &mut Mapping, base: usize) {
        for entry in mapping.iter_mut() {
            entry.key_range = self.restore(entry.key_range, base);
            self.restore_node(&mut entry.value, base);
        }
    }

    fn restore_node(&self, node: &mut Node, base: usize) {
        node.range = self.restore(node.range, base);
        match &mut node.value {
            Value::Sequence(items) => {
                items.iter_mut().for_each(|item| self.restore_node(item, base));
            }
            Value::Mapping(mapping) => self.restore_mapping(mapping, base),
            _ => {}
        }
    }
}
