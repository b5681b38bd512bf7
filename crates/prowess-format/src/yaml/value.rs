//! The tree that YAML text becomes.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use super::scalar::{Number, NumberKind};
use crate::span::ByteRange;

/// A value and the place where it was written. Two nodes are equal if their values are.
#[derive(Clone, Debug)]
pub struct Node {
    /// What was written.
    pub value: Value,
    /// Where it was written.
    pub range: ByteRange,
}

/// A YAML value with its real type (YAML 1.2 core schema).
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`, `~` or nothing at all.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, in the spelling of the author.
    Number(Number),
    /// Text.
    String(String),
    /// A list.
    Sequence(Vec<Node>),
    /// A mapping with text keys.
    Mapping(Mapping),
}

/// One `key: value` of a [`Mapping`].
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key, as text.
    pub key: String,
    /// Where the key was written.
    pub key_range: ByteRange,
    /// The value.
    pub value: Node,
}

/// A mapping in the order of its source, without duplicate keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mapping {
    entries: Vec<Entry>,
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.value == other.value
    }
}

impl Node {
    /// Whether nothing stands here, or `null`.
    pub fn is_null(&self) -> bool {
        self.value == Value::Null
    }

    /// A node that stands nowhere, for values made by a program.
    pub fn new(value: impl Into<Value>) -> Self {
        Self { value: value.into(), range: ByteRange::default() }
    }

    /// The text of a string, a number (as its author spelled it) or a boolean.
    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            Value::Number(number) => Some(number.spelling()),
            Value::Bool(true) => Some("true"),
            Value::Bool(false) => Some("false"),
            Value::Null | Value::Sequence(_) | Value::Mapping(_) => None,
        }
    }

    /// The text, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The items, if this is a list.
    pub fn as_sequence(&self) -> Option<&[Node]> {
        match &self.value {
            Value::Sequence(items) => Some(items),
            _ => None,
        }
    }

    /// The mapping, if this is one.
    pub fn as_mapping(&self) -> Option<&Mapping> {
        match &self.value {
            Value::Mapping(mapping) => Some(mapping),
            _ => None,
        }
    }

    /// A boolean in any spelling that Claude Code accepts: `true/false`, `yes/no`, `on/off`,
    /// `1/0`, in any case.
    pub fn as_bool(&self) -> Option<bool> {
        let text = self.as_text()?;
        let is = |words: [&str; 4]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
        if is(["true", "yes", "on", "1"]) {
            Some(true)
        } else if is(["false", "no", "off", "0"]) {
            Some(false)
        } else {
            None
        }
    }

    /// What kind of value this is, in words for a person.
    pub fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "text",
            Value::Sequence(_) => "a list",
            Value::Mapping(_) => "a mapping",
        }
    }
}

impl Mapping {
    /// An empty mapping.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries in source order.
    pub fn iter(&self) -> std::slice::Iter<'_, Entry> {
        self.entries.iter()
    }

    /// The entry with this key.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// The value at this key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// Sets a key: in its place if it is there, else at the end.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<Value>) {
        let key = key.into();
        let value = Node::new(value);
        match self.entries.iter_mut().find(|entry| entry.key == key) {
            Some(entry) => entry.value = value,
            None => self.entries.push(Entry { key, key_range: ByteRange::default(), value }),
        }
    }

    /// Removes a key and returns its value.
    pub fn remove(&mut self, key: &str) -> Option<Node> {
        let at = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(at).value)
    }

    pub(super) fn iter_mut(&mut self) -> std::slice::IterMut<'_, Entry> {
        self.entries.iter_mut()
    }

    /// Takes entries whose keys the caller has checked to be distinct. Gives back what the list
    /// has reserved: mappings are kept by the thousand.
    pub(super) fn from_distinct(mut entries: Vec<Entry>) -> Self {
        entries.shrink_to_fit();
        Self { entries }
    }
}

impl<'a> IntoIterator for &'a Mapping {
    type Item = &'a Entry;
    type IntoIter = std::slice::Iter<'a, Entry>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<Mapping> for Value {
    fn from(mapping: Mapping) -> Self {
        Self::Mapping(mapping)
    }
}

impl From<Vec<Node>> for Value {
    fn from(items: Vec<Node>) -> Self {
        Self::Sequence(items)
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.value {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Number(number) => match number.kind() {
                NumberKind::Signed(value) => serializer.serialize_i64(value),
                NumberKind::Unsigned(value) => serializer.serialize_u64(value),
                NumberKind::Float(value) => serializer.serialize_f64(value),
                NumberKind::Unrepresentable => serializer.serialize_str(number.spelling()),
            },
            Value::String(text) => serializer.serialize_str(text),
            Value::Sequence(items) => {
                let mut sequence = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    sequence.serialize_element(item)?;
                }
                sequence.end()
            }
            Value::Mapping(mapping) => mapping.serialize(serializer),
        }
    }
}

impl Serialize for Mapping {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        for entry in self {
            map.serialize_entry(&entry.key, &entry.value)?;
        }
        map.end()
    }
}
