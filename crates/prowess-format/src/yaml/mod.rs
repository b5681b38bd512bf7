//! YAML as frontmatter uses it: a bounded reader that keeps types, spellings and places, and a
//! writer whose output reads back as the same tree.
//!
//! There are two readers. [`read_plain`] takes the plain subset that nearly all skills are
//! written in, at a fraction of the cost; whatever it accepts, [`read_full`] reads as the same
//! tree with the same ranges. Everything else goes to [`read_full`], which stands on a complete
//! YAML parser.

mod full;
mod plain;
mod repair;
mod scalar;
mod value;
mod write;

pub use full::read_full;
pub use plain::read_plain;
pub use scalar::{Number, NumberKind, yaml11_reading};
pub use value::{Entry, Mapping, Node, Value};
pub use write::write;

use crate::span::ByteRange;

/// The limits that hold while reading frontmatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes between the two fences.
    pub frontmatter_bytes: usize,
    /// How deep lists and mappings may nest.
    pub depth: usize,
    /// Scalars, lists and mappings in total.
    pub nodes: usize,
    /// How many bytes anchors may hold and aliases may repeat, all in all; each node counts as its
    /// text plus 64 bytes.
    pub alias_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { frontmatter_bytes: 64 * 1024, depth: 32, nodes: 10_000, alias_bytes: 64 * 1024 }
    }
}

impl Limits {
    /// Sets [`Limits::frontmatter_bytes`].
    pub fn with_frontmatter_bytes(mut self, bytes: usize) -> Self {
        self.frontmatter_bytes = bytes;
        self
    }

    /// Sets [`Limits::depth`].
    pub fn with_depth(mut self, depth: usize) -> Self {
        self.depth = depth;
        self
    }

    /// Sets [`Limits::nodes`].
    pub fn with_nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes;
        self
    }

    /// Sets [`Limits::alias_bytes`].
    pub fn with_alias_bytes(mut self, bytes: usize) -> Self {
        self.alias_bytes = bytes;
        self
    }
}

/// Why a text is not a usable mapping.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum YamlError {
    /// The text is not YAML.
    #[error("{0}")]
    Syntax(String),
    /// The text is YAML, but not a mapping.
    #[error("the document is {0}")]
    NotAMapping(&'static str),
    /// A key stands twice in one mapping.
    #[error("the key `{key}` stands twice, first on line {first_line}")]
    DuplicateKey {
        /// The key.
        key: String,
        /// The line of its first appearance, counted from the start of the YAML text.
        first_line: usize,
    },
    /// A key is a list or a mapping.
    #[error("a mapping key must be text")]
    ComplexKey,
    /// More than [`Limits::depth`] levels.
    #[error("lists and mappings nest deeper than {0} levels")]
    TooDeep(usize),
    /// More than [`Limits::nodes`] values.
    #[error("there are more than {0} values")]
    TooManyNodes(usize),
    /// Anchors and aliases copy more than [`Limits::alias_bytes`].
    #[error("anchors and aliases copy more than {0} bytes")]
    AliasBudget(usize),
    /// An alias stands inside the node that it names.
    #[error("an alias refers to the value that contains it")]
    RecursiveAlias,
}

/// Something that was read, but not quite as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Where.
    pub range: ByteRange,
    /// What.
    pub kind: NoteKind,
}

/// What a [`Note`] is about.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoteKind {
    /// The value was not YAML and was read as plain text.
    ReadAsText {
        /// The key of the value.
        key: String,
        /// What the YAML parser said.
        error: String,
    },
    /// A tag has no meaning here and was passed over.
    TagIgnored(String),
    /// An anchor or an alias was followed.
    AnchorUsed,
    /// A tag decided on a type.
    TagUsed(String),
    /// A merge key `<<` was kept as an ordinary key.
    MergeKeyKept,
}

/// A mapping that was read, and what to know about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// The mapping.
    pub mapping: Mapping,
    /// What was not read as written.
    pub notes: Vec<Note>,
}

/// Reads a mapping by the cheapest way that works: plain subset, full parser, repair.
///
/// All ranges are shifted by `base`, the offset of `text` in its source.
pub fn read(text: &str, base: usize, limits: &Limits) -> Result<Reading, (YamlError, ByteRange)> {
    if let Some(mapping) = read_plain(text, base, limits) {
        return Ok(Reading { mapping, notes: Vec::new() });
    }
    read_full(text, base, limits).or_else(|error| repair::read_repaired(text, base, limits, error))
}
