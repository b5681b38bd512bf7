//! The second chance: values that their authors meant as text, but that YAML refuses.
//!
//! `description: Use when: asked` is the most common mistake in skills. Where the YAML parser
//! stops, the value that it stops in is put in quotes, and the text is read again; every such
//! value is noted. What the parser takes is left alone, and so are values that are merely
//! unfinished, such as an open quote or bracket.

use super::full::read_full;
use super::value::{Mapping, Node, Value};
use super::{Limits, Note, NoteKind, Reading, YamlError};
use crate::span::ByteRange;

/// More broken values than this are not worth a guess.
const MOST_REPAIRS: usize = 32;

/// Reads `text` with its broken values in quotes, or says what cannot be mended.
pub(super) fn read_repaired(
    text: &str,
    base: usize,
    limits: &Limits,
    first: (YamlError, ByteRange),
) -> Result<Reading, (YamlError, ByteRange)> {
    let mut broken: Vec<Broken<'_>> = Vec::new();
    let (mut error, mut range) = first;
    loop {
        let YamlError::Syntax(message) = &error else { return Err((error, range)) };
        let at = (range.start as usize).saturating_sub(base);
        let found = broken_value(text, at, message).filter(|found| {
            let apart = |known: &Broken<'_>| found.end <= known.start || known.end <= found.start;
            broken.len() < MOST_REPAIRS && broken.iter().all(apart)
        });
        let Some(found) = found else { return Err((error, range)) };
        broken.push(found);
        broken.sort_unstable_by_key(|value| value.start);
        let quoted = Quoted::new(text, &broken);
        match read_full(&quoted.text, 0, limits) {
            Ok(reading) => return Ok(quoted.restore_reading(reading, broken, base)),
            Err((next, place)) => (error, range) = (next, quoted.restore(place, base)),
        }
    }
}

/// A value to be put in quotes.
struct Broken<'a> {
    key: &'a str,
    start: usize,
    end: usize,
    /// Whether it begins and ends with a quote of its own.
    has_quotes: bool,
    error: String,
}

/// The value that the parser stopped in, if it looks like text.
fn broken_value<'a>(text: &'a str, at: usize, error: &str) -> Option<Broken<'a>> {
    let (line_start, line) = line_around(text, at)?;
    let own = Line::parse(line);
    // The colon of the line itself is the trouble: the line goes on with a value from above.
    let continues = own.as_ref().is_none_or(|own| line_start + own.start > at);
    let (line_start, line) = match continues {
        false => (line_start, own?),
        true => {
            let indent = indent_of(line);
            let (start, above) = lines_before(text, line_start)
                .find(|(_, above)| !above.trim().is_empty() && indent_of(above) < indent)?;
            (start, Line::parse(above)?)
        }
    };
    if line.text.is_empty() || is_block_header(line.text) {
        return None;
    }
    let start = line_start + line.start;
    if let Some((from, to)) = line.broken_item(at.saturating_sub(start)) {
        let (start, end) = (start + from, start + to);
        return Some(Broken {
            key: line.key,
            start,
            end,
            has_quotes: false,
            error: error.to_owned(),
        });
    }
    let end = value_end(text, start, &line);
    let value = &text[start..end];
    let first = value.chars().next()?;
    let is_list = value.contains(&format!("{first},")) || value.contains(&format!("{first} ,"));
    let has_quotes =
        matches!(first, '"' | '\'') && value.len() > 1 && value.ends_with(first) && !is_list;
    if !has_quotes && goes_on(value) {
        return None;
    }
    Some(Broken { key: line.key, start, end, has_quotes, error: error.to_owned() })
}

/// Where a value ends: with the last line below that is indented deeper than its key, or before
/// a comment on its only line.
fn value_end(text: &str, start: usize, line: &Line<'_>) -> usize {
    let mut end = start + line.text.len();
    let first_end = end;
    let rest_at = text[end..].find('\n').map_or(text.len(), |at| end + at + 1);
    let mut at = rest_at;
    for below in text[rest_at..].split_inclusive('\n') {
        let content = below.trim_end();
        if !content.trim().is_empty() {
            if indent_of(below) <= line.key_column {
                break;
            }
            end = at + content.len();
        }
        at += below.len();
    }
    if end == first_end
        && let Some(comment) = line.text.find(" #")
    {
        return start + line.text[..comment].trim_end().len();
    }
    end
}

/// The line that holds a byte, or the last one before it that is not blank.
fn line_around(text: &str, at: usize) -> Option<(usize, &str)> {
    let at = at.min(text.len());
    let start = text[..at].rfind('\n').map_or(0, |at| at + 1);
    let line = text[start..].split('\n').next()?.trim_end();
    match line.trim().is_empty() {
        false => Some((start, line)),
        true => lines_before(text, start).find(|(_, line)| !line.trim().is_empty()),
    }
}

/// The lines that end before `at`, the nearest first.
fn lines_before(text: &str, at: usize) -> impl Iterator<Item = (usize, &str)> {
    let mut end = at;
    std::iter::from_fn(move || {
        let before = text[..end].strip_suffix('\n')?;
        end = before.rfind('\n').map_or(0, |at| at + 1);
        Some((end, before[end..].trim_end()))
    })
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
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
        let mut at = indent_of(line);
        let mut dash = None;
        while line[at..].starts_with("- ") {
            dash = Some(at);
            at += 1 + indent_of(&line[at + 1..]);
        }
        let rest = &line[at..];
        let (key, key_column, value) = match key_length(rest) {
            Some(length) => (&rest[..length], at, &rest[length + 1..]),
            None => ("-", dash?, rest),
        };
        let start = line.len() - value.trim_start().len();
        Some(Self { key: key.trim_matches(['"', '\'']), key_column, start, text: value.trim() })
    }

    /// For `[a,@b]`: the item that the parser stopped in, if it begins with a character that YAML
    /// reserves.
    fn broken_item(&self, at: usize) -> Option<(usize, usize)> {
        let inside = self.text.strip_prefix('[')?.strip_suffix(']')?;
        if inside.contains(['[', ']', '{', '}', '"', '\'']) {
            return None;
        }
        let mut start = 1;
        for item in inside.split(',') {
            let next = start + item.len() + 1;
            if at < next {
                let from = start + (item.len() - item.trim_start().len());
                let text = item.trim();
                return (!text.is_empty()).then_some((from, from + text.len()));
            }
            start = next;
        }
        None
    }
}

/// The length of a key at the start of a text that goes on with `: ` or ends with `:`.
fn key_length(text: &str) -> Option<usize> {
    let quoted = match text.chars().next()? {
        quote @ ('"' | '\'') => 2 + closing_quote(&text[1..], quote)?,
        _ => 0,
    };
    text.match_indices(':').map(|(at, _)| at).find(|at| {
        let after = &text[at + 1..];
        *at >= quoted && *at > 0 && (after.is_empty() || after.starts_with([' ', '\t']))
    })
}

/// Whether a quote or bracket is opened and never closed.
fn goes_on(value: &str) -> bool {
    let count = |wanted: char| value.matches(wanted).count();
    match value.as_bytes().first() {
        Some(b'"') => closing_quote(&value[1..], '"').is_none(),
        Some(b'\'') => closing_quote(&value[1..], '\'').is_none(),
        Some(b'[') => count('[') > count(']'),
        Some(b'{') => count('{') > count('}'),
        // An alias that leads nowhere is a mistake of another kind.
        Some(b'*') => value[1..].bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)),
        _ => false,
    }
}

/// Where a quoted text ends, if it does.
fn closing_quote(rest: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    rest.char_indices()
        .find(|(_, character)| {
            let closing = *character == quote && !escaped;
            escaped = quote == '"' && *character == '\\' && !escaped;
            closing
        })
        .map(|(at, _)| at)
}

fn is_block_header(value: &str) -> bool {
    let header = value.split_once(" #").map_or(value, |(header, _)| header).trim_end();
    let Some(modifiers) = header.strip_prefix(['|', '>']) else { return false };
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
            Self { text: String::with_capacity(original.len() + 64), inserted: Vec::new() };
        let mut at = 0;
        for part in parts {
            quoted.text.push_str(&original[at..part.start]);
            let mut inside = &original[part.start..part.end];
            match part.has_quotes {
                // Its own quotes become ours.
                true => {
                    inside = &inside[1..inside.len() - 1];
                    quoted.text.push('\'');
                }
                false => quoted.insert_quote(),
            }
            for character in inside.chars() {
                if character == '\'' {
                    quoted.insert_quote();
                }
                quoted.text.push(character);
            }
            match part.has_quotes {
                true => quoted.text.push('\''),
                false => quoted.insert_quote(),
            }
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

    fn restore_reading(
        &self,
        mut reading: Reading,
        broken: Vec<Broken<'_>>,
        base: usize,
    ) -> Reading {
        self.restore_mapping(&mut reading.mapping, base);
        for note in &mut reading.notes {
            note.range = self.restore(note.range, base);
        }
        reading.notes.extend(broken.into_iter().map(|value| Note {
            range: ByteRange::new(base + value.start, base + value.end),
            kind: NoteKind::ReadAsText { key: value.key.to_owned(), error: value.error },
        }));
        reading
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
