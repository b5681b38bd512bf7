//! The fast reader: the plain subset that nearly all frontmatter is written in.
//!
//! It takes `key: value` lines with plain, simply quoted or `[a, b]` values, and one level of
//! mapping or list below a key. Anything else, even if it is valid YAML, is `None`: the full
//! reader decides. What is accepted here must be exactly what the full reader makes of it; a
//! property test and a fuzz target hold the two together.

use super::Limits;
use super::scalar::resolve;
use super::value::{Entry, Mapping, Node, Value};
use crate::name::is_printable_ascii;
use crate::span::ByteRange;

/// More keys or items than this are left to the full reader, which has the budgets.
const MOST_CHILDREN: usize = 64;

/// Longer keys are left to the full reader.
const LONGEST_KEY: usize = 64;

/// Reads a mapping if it is written in the plain subset. All ranges are shifted by `base`.
pub fn read_plain(text: &str, base: usize, limits: &Limits) -> Option<Mapping> {
    // The subset needs two levels and a few thousand nodes; whoever allows less wants the budgets.
    let most_nodes = 2 * MOST_CHILDREN * MOST_CHILDREN + 1;
    if limits.depth < 2 || limits.nodes < most_nodes {
        return None;
    }
    let mut lines = Lines { text, at: 0, base };
    let mut entries = Vec::with_capacity(8);
    while let Some(line) = lines.next_content()? {
        let (key, key_range, rest) = line.key(0)?;
        let value = match rest {
            Some(value) => value.scalar()?,
            None => lines.block(key_range)?,
        };
        push_distinct(&mut entries, Entry { key: key.to_owned(), key_range, value })?;
    }
    (!entries.is_empty()).then(|| Mapping::from_distinct(entries))
}

fn push_distinct(entries: &mut Vec<Entry>, entry: Entry) -> Option<()> {
    if entries.len() >= MOST_CHILDREN || entries.iter().any(|other| other.key == entry.key) {
        return None;
    }
    entries.push(entry);
    Some(())
}

struct Lines<'a> {
    text: &'a str,
    at: usize,
    base: usize,
}

impl<'a> Lines<'a> {
    /// The next line as it stands, without its line break.
    fn peek(&self) -> Option<(Piece<'a>, usize)> {
        let rest = &self.text[self.at..];
        if rest.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len());
        let line = &rest[..end];
        let line = line.strip_suffix('\r').unwrap_or(line);
        let next = (self.at + end + 1).min(self.text.len());
        Some((Piece { text: line, at: self.base + self.at }, next))
    }

    /// The next line that is neither blank nor a comment. The outer `None` gives up.
    fn next_content(&mut self) -> Option<Option<Piece<'a>>> {
        while let Some((line, next)) = self.peek() {
            self.at = next;
            if line.is_blank() {
                continue;
            }
            if !line.text.starts_with('#') {
                return Some(Some(line));
            }
            if !line.text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
                return None;
            }
        }
        Some(None)
    }

    /// What stands below a key without a value on its line.
    fn block(&mut self, key_range: ByteRange) -> Option<Node> {
        let Some((first, _)) = self.peek() else {
            return Some(Node { value: Value::Null, range: key_range.after() });
        };
        let indent = first.indent();
        let content = &first.text[indent..];
        if content.starts_with("- ") {
            self.sequence(indent)
        } else if indent > 0 {
            self.mapping(indent)
        } else if content.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            Some(Node { value: Value::Null, range: key_range.after() })
        } else {
            None
        }
    }

    fn sequence(&mut self, indent: usize) -> Option<Node> {
        let mut items: Vec<Node> = Vec::new();
        while let Some((line, next)) = self.peek() {
            let own = line.indent();
            if own != indent || !line.text[own..].starts_with("- ") {
                // Deeper or blank lines may belong to the last item: not our business.
                if own > 0 || line.text.is_empty() {
                    return None;
                }
                break;
            }
            if items.len() >= MOST_CHILDREN {
                return None;
            }
            items.push(line.skip(indent + 2).trimmed().scalar()?);
            self.at = next;
        }
        let range = items.first()?.range.to(items.last()?.range);
        Some(Node { value: Value::Sequence(items), range })
    }

    fn mapping(&mut self, indent: usize) -> Option<Node> {
        let mut entries: Vec<Entry> = Vec::new();
        while let Some((line, next)) = self.peek() {
            let own = line.indent();
            if own != indent {
                if own > 0 || line.text.is_empty() {
                    return None;
                }
                break;
            }
            let (key, key_range, rest) = line.key(indent)?;
            let value = rest?.scalar()?;
            push_distinct(&mut entries, Entry { key: key.to_owned(), key_range, value })?;
            self.at = next;
        }
        let range = entries.first()?.key_range.to(entries.last()?.value.range);
        Some(Node { value: Value::Mapping(Mapping::from_distinct(entries)), range })
    }
}

/// A part of a line and where it stands in the source.
#[derive(Clone, Copy)]
struct Piece<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Piece<'a> {
    fn is_blank(self) -> bool {
        self.text.bytes().all(|byte| byte == b' ')
    }

    fn indent(self) -> usize {
        self.text.bytes().take_while(|byte| *byte == b' ').count()
    }

    fn skip(self, bytes: usize) -> Self {
        Self { text: &self.text[bytes..], at: self.at + bytes }
    }

    fn trimmed(self) -> Self {
        let start = self.indent();
        Self { text: self.text[start..].trim_end_matches(' '), at: self.at + start }
    }

    fn range(self) -> ByteRange {
        ByteRange::new(self.at, self.at + self.text.len())
    }

    /// Splits `key: value` behind `indent` spaces. The value is `None` where the line ends with
    /// the colon.
    fn key(self, indent: usize) -> Option<(&'a str, ByteRange, Option<Piece<'a>>)> {
        let line = self.skip(indent);
        let bytes = line.text.as_bytes();
        if !bytes.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_') {
            return None;
        }
        let length = bytes
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
            .count();
        if length > LONGEST_KEY || bytes.get(length) != Some(&b':') {
            return None;
        }
        let key = Piece { text: &line.text[..length], at: line.at };
        let rest = line.skip(length + 1);
        if !rest.text.is_empty() && !rest.text.starts_with(' ') {
            return None;
        }
        let value = rest.trimmed();
        Some((key.text, key.range(), (!value.text.is_empty()).then_some(value)))
    }

    fn scalar(self) -> Option<Node> {
        let value = match *self.text.as_bytes().first()? {
            quote @ (b'"' | b'\'') => Value::String(quoted(self.text, quote)?.to_owned()),
            b'[' => return self.flow_sequence(),
            b'-' | b'?' | b':' | b',' | b']' | b'{' | b'}' | b'#' | b'&' | b'*' | b'!' | b'|'
            | b'>' | b'%' | b'@' | b'`' => return None,
            _ if is_plain(self.text) => resolve(self.text),
            _ => return None,
        };
        Some(Node { value, range: self.range() })
    }

    /// `[a, b]` with items that begin with a letter and hold nothing special.
    fn flow_sequence(self) -> Option<Node> {
        let inside = self.text.strip_prefix('[')?.strip_suffix(']')?;
        let mut items = Vec::new();
        let mut at = self.at + 1;
        for item in inside.split(',') {
            let piece = Piece { text: item, at }.trimmed();
            at += item.len() + 1;
            let bytes = piece.text.as_bytes();
            let ordinary = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./ ".contains(byte);
            if !bytes.first()?.is_ascii_alphabetic()
                || !bytes.iter().all(ordinary)
                || items.len() >= MOST_CHILDREN
            {
                return None;
            }
            items.push(Node { value: resolve(piece.text), range: piece.range() });
        }
        Some(Node { value: Value::Sequence(items), range: self.range() })
    }
}

/// The inside of a quoted scalar that needs no unescaping and ends its line.
fn quoted(text: &str, quote: u8) -> Option<&str> {
    let inside = text.get(1..text.len() - 1).filter(|_| text.len() >= 2)?;
    let closed = text.as_bytes()[text.len() - 1] == quote;
    let simple = |byte: &u8| *byte != quote && *byte != b'\\' && *byte >= 0x20 && *byte != 0x7f;
    (closed && inside.as_bytes().iter().all(simple) && has_only_plain_unicode(inside))
        .then_some(inside)
}

/// Whether a scalar that begins like a plain one is plain to its end.
fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    if !is_printable_ascii(text) {
        let has_controls = bytes.iter().any(|byte| *byte < 0x20 || *byte == 0x7f);
        if has_controls || !has_only_plain_unicode(text) {
            return false;
        }
    }
    let ends_key = |at: usize| matches!(bytes.get(at + 1), None | Some(b' '));
    let begins_comment = |at: usize| at > 0 && bytes[at - 1] == b' ';
    !memchr::memchr_iter(b':', bytes).any(ends_key)
        && !memchr::memchr_iter(b'#', bytes).any(begins_comment)
}

/// Whether no character needs YAML's attention: line separators, controls, byte order marks.
fn has_only_plain_unicode(text: &str) -> bool {
    text.is_ascii()
        || text.chars().all(|character| {
            !matches!(
                character,
                '\u{80}'
                    ..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
            )
        })
}
