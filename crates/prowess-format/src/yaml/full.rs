//! The complete reader: events of the YAML parser become a [`Mapping`], within [`Limits`].

use std::collections::{HashMap, HashSet};

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};

use super::scalar::resolve;
use super::value::{Entry, Mapping, Node, Value};
use super::{Limits, Note, NoteKind, Reading, YamlError};
use crate::span::ByteRange;

/// What every copied node costs on top of its text.
const NODE_COST: usize = 64;

/// Mappings up to this size are searched for duplicates one by one.
const SMALL_MAPPING: usize = 16;

/// Reads one YAML document that is a mapping, or nothing at all. All ranges are shifted by
/// `base`.
pub fn read_full(
    text: &str,
    base: usize,
    limits: &Limits,
) -> Result<Reading, (YamlError, ByteRange)> {
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: limits.depth,
        block_nesting_limit: limits.depth,
    };
    let mut composer = Composer {
        text,
        base,
        limits,
        parser: Parser::new_from_str_with_options(text, options),
        anchors: HashMap::new(),
        nodes: 0,
        text_bytes: 0,
        copied: 0,
        notes: Vec::new(),
    };
    let mapping = composer.document()?;
    Ok(Reading { mapping, notes: composer.notes })
}

struct Anchor {
    node: Node,
    nodes: usize,
    text_bytes: usize,
}

struct Composer<'a> {
    text: &'a str,
    base: usize,
    limits: &'a Limits,
    parser: Parser<'a, StrInput<'a>>,
    anchors: HashMap<usize, Anchor>,
    nodes: usize,
    text_bytes: usize,
    copied: usize,
    notes: Vec<Note>,
}

type Failure = (YamlError, ByteRange);

impl<'a> Composer<'a> {
    fn document(&mut self) -> Result<Mapping, Failure> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => break,
                Event::DocumentStart(..) if root.is_some() => {
                    let error = YamlError::Syntax("a second document begins here".to_owned());
                    return Err((error, self.range(span)));
                }
                Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
                event => root = Some(self.node(event, span, 0)?),
            }
        }
        match root {
            None => Ok(Mapping::new()),
            Some(Node { value: Value::Mapping(mapping), .. }) => Ok(mapping),
            Some(node) => Err((YamlError::NotAMapping(node.kind()), node.range)),
        }
    }

    fn next(&mut self) -> Result<(Event<'a>, Span), Failure> {
        match self.parser.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(self.scan_error(&error)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node, Failure> {
        let range = self.range(span);
        let (nodes_before, text_before) = (self.nodes, self.text_bytes);
        self.charge_node(range)?;
        let (node, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.text_bytes += text.len();
                let value = self.scalar(&text, style, tag.as_deref(), range);
                (Node { value, range }, anchor)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.collection_tag(tag.as_deref(), "seq", range);
                self.check_depth(depth, range)?;
                (self.sequence(range, depth)?, anchor)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.collection_tag(tag.as_deref(), "map", range);
                self.check_depth(depth, range)?;
                (self.mapping(range, depth)?, anchor)
            }
            Event::Alias(id) => return self.alias(id, range),
            _ => {
                let error = YamlError::Syntax("a value was expected here".to_owned());
                return Err((error, range));
            }
        };
        if anchor != 0 {
            let nodes = self.nodes - nodes_before;
            let text_bytes = self.text_bytes - text_before;
            self.anchor(anchor, &node, nodes, text_bytes)?;
        }
        Ok(node)
    }

    fn sequence(&mut self, start: ByteRange, depth: usize) -> Result<Node, Failure> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                let children = items.first().zip(items.last());
                let children = children.map(|(a, z): (&Node, &Node)| a.range.to(z.range));
                let range = self.closed(start, span, children);
                return Ok(Node { value: Value::Sequence(items), range });
            }
            items.push(self.node(event, span, depth + 1)?);
        }
    }

    fn mapping(&mut self, start: ByteRange, depth: usize) -> Result<Node, Failure> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut seen = HashSet::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                let children = entries.first().zip(entries.last());
                let children = children.map(|(a, z)| a.key_range.to(z.value.range));
                let range = self.closed(start, span, children);
                return Ok(Node { value: Value::Mapping(Mapping::from_distinct(entries)), range });
            }
            let (key, key_range) = self.key(event, span)?;
            let duplicate = if entries.len() < SMALL_MAPPING {
                entries.iter().any(|entry| entry.key == key)
            } else {
                if seen.is_empty() {
                    seen.extend(entries.iter().map(|entry| entry.key.clone()));
                }
                !seen.insert(key.clone())
            };
            if duplicate {
                return Err((self.duplicate(&entries, key), key_range));
            }
            let (event, span) = self.next()?;
            let mut value = self.node(event, span, depth + 1)?;
            if value.range.start == value.range.end && value.value == Value::Null {
                value.range = key_range.after();
            }
            entries.push(Entry { key, key_range, value });
        }
    }

    fn key(&mut self, event: Event<'a>, span: Span) -> Result<(String, ByteRange), Failure> {
        let range = self.range(span);
        match event {
            Event::Scalar(text, style, anchor, _) => {
                self.charge_node(range)?;
                if text == "<<" && style == ScalarStyle::Plain {
                    self.notes.push(Note { range, kind: NoteKind::MergeKeyKept });
                }
                self.text_bytes += text.len();
                let key = text.into_owned();
                if anchor != 0 {
                    let node = Node { value: Value::String(key.clone()), range };
                    self.anchor(anchor, &node, 1, key.len())?;
                }
                Ok((key, range))
            }
            Event::Alias(id) => match self.alias(id, range)?.value {
                Value::String(key) => Ok((key, range)),
                Value::Number(number) => Ok((number.spelling().to_owned(), range)),
                _ => Err((YamlError::ComplexKey, range)),
            },
            _ => Err((YamlError::ComplexKey, range)),
        }
    }

    /// Keeps a copy of an anchored node. The copy is paid from the same budget as its aliases.
    fn anchor(
        &mut self,
        id: usize,
        node: &Node,
        nodes: usize,
        text_bytes: usize,
    ) -> Result<(), Failure> {
        self.charge_copy(nodes, text_bytes, node.range)?;
        self.notes.push(Note { range: node.range, kind: NoteKind::AnchorUsed });
        self.anchors.insert(id, Anchor { node: node.clone(), nodes, text_bytes });
        Ok(())
    }

    fn alias(&mut self, id: usize, range: ByteRange) -> Result<Node, Failure> {
        let Some(&Anchor { nodes, text_bytes, .. }) = self.anchors.get(&id) else {
            return Err((YamlError::RecursiveAlias, range));
        };
        self.charge_copy(nodes, text_bytes, range)?;
        self.nodes += nodes;
        self.text_bytes += text_bytes;
        if self.nodes > self.limits.nodes {
            return Err((YamlError::TooManyNodes(self.limits.nodes), range));
        }
        match self.anchors.get(&id) {
            Some(anchor) => Ok(Node { value: anchor.node.value.clone(), range }),
            None => Err((YamlError::RecursiveAlias, range)),
        }
    }

    fn charge_copy(
        &mut self,
        nodes: usize,
        text_bytes: usize,
        range: ByteRange,
    ) -> Result<(), Failure> {
        self.copied += text_bytes + nodes * NODE_COST;
        if self.copied > self.limits.alias_bytes {
            return Err((YamlError::AliasBudget(self.limits.alias_bytes), range));
        }
        Ok(())
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        range: ByteRange,
    ) -> Value {
        let plain = style == ScalarStyle::Plain;
        let Some(tag) = tag else {
            return if plain { resolve(text) } else { Value::String(text.to_owned()) };
        };
        let resolved = resolve(text);
        let used = Note { range, kind: NoteKind::TagUsed(tag.original()) };
        match (tag.core_suffix(), &resolved) {
            (Some("str"), _) => {
                self.notes.push(used);
                return Value::String(text.to_owned());
            }
            (Some("null"), Value::Null)
            | (Some("bool"), Value::Bool(_))
            | (Some("int" | "float"), Value::Number(_)) => {
                self.notes.push(used);
                return resolved;
            }
            _ => {}
        }
        self.notes.push(Note { range, kind: NoteKind::TagIgnored(tag.original()) });
        match plain && tag.original() != "!" {
            true => resolved,
            false => Value::String(text.to_owned()),
        }
    }

    fn collection_tag(&mut self, tag: Option<&Tag>, expected: &str, range: ByteRange) {
        if let Some(tag) = tag.filter(|tag| tag.core_suffix() != Some(expected)) {
            self.notes.push(Note { range, kind: NoteKind::TagIgnored(tag.original()) });
        }
    }

    fn charge_node(&mut self, range: ByteRange) -> Result<(), Failure> {
        self.nodes += 1;
        if self.nodes > self.limits.nodes {
            return Err((YamlError::TooManyNodes(self.limits.nodes), range));
        }
        Ok(())
    }

    fn check_depth(&self, depth: usize, range: ByteRange) -> Result<(), Failure> {
        if depth >= self.limits.depth {
            return Err((YamlError::TooDeep(self.limits.depth), range));
        }
        Ok(())
    }

    /// The range of a collection: from bracket to bracket, or that of its children where there
    /// are no brackets.
    fn closed(&self, start: ByteRange, end: Span, children: Option<ByteRange>) -> ByteRange {
        let end = self.range(end);
        let closing = end.as_usize();
        let bracket = closing.start.checked_sub(self.base).and_then(|at| self.text.get(at..));
        if closing.len() == 1 && bracket.is_some_and(|rest| rest.starts_with([']', '}'])) {
            start.to(end)
        } else {
            children.unwrap_or(start)
        }
    }

    fn duplicate(&self, entries: &[Entry], key: String) -> YamlError {
        let first = entries.iter().find(|entry| entry.key == key).map_or(0, |entry| {
            (entry.key_range.start as usize).saturating_sub(self.base).min(self.text.len())
        });
        let lines = memchr::memchr_iter(b'\n', &self.text.as_bytes()[..first]).count();
        YamlError::DuplicateKey { key, first_line: lines + 1 }
    }

    fn range(&self, span: Span) -> ByteRange {
        let start = span.start.byte_offset().unwrap_or(0);
        let end = span.end.byte_offset().unwrap_or(start).max(start);
        ByteRange::new(self.base + start, self.base + end)
    }

    fn scan_error(&self, error: &ScanError) -> Failure {
        let at = error.marker().byte_offset().unwrap_or(0).min(self.text.len());
        let width = self.text.get(at..).and_then(|rest| rest.chars().next());
        let end = at + width.filter(|character| *character != '\n').map_or(0, char::len_utf8);
        let range = ByteRange::new(self.base + at, self.base + end);
        let error = match error.kind() {
            ErrorKind::RecursionLimitExceeded => YamlError::TooDeep(self.limits.depth),
            kind => YamlError::Syntax(kind.to_string()),
        };
        (error, range)
    }
}
