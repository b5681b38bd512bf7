//! `SKILL.md` text ⇄ [`Skill`]: parser, diagnostics with spans, lint profiles, argument
//! substitution. Pure: no I/O, no async.
//!
//! Lenient to load, strict to lint: [`Skill::parse`] takes every `SKILL.md` in circulation and
//! says everything there is to say about it in one pass. Whether a finding is an error is up to
//! the [`Profile`]; whether a skill can be used is up to [`Parsed::skill`] alone.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod arguments;
mod commands;
mod configs;
mod diagnostic;
mod digest;
mod fields;
mod frontmatter;
mod lint;
mod name;
mod skill;
mod span;
mod split;
mod tools;
pub mod yaml;

pub use arguments::{Arguments, split_words};
pub use commands::{EmbeddedCommand, FencedCode, embedded_commands, fenced_code};
pub use configs::{
    ArgumentKind, ConfigProblem, FileEntry, McpToolConfig, ResourceConfig, ToolArgument, ToolConfig,
};
pub use diagnostic::{Diagnostic, Level};
pub use digest::{Digest, InvalidDigest};
pub use fields::{CONTEXTS, EFFORTS, FIELDS, Field, FieldKind, Origin, SHELLS, field};
pub use frontmatter::{Context, Effort, Frontmatter, Shell};
pub use lint::{Code, Profile, UnknownProfile};
pub use name::{SkillName, is_deceptive, nearest_name};
pub use skill::{Options, Parsed, Skill};
pub use span::{ByteRange, Span};
pub use split::{Before, ClosingLine, Split, SplitError, split};
pub use tools::{ToolPattern, split_tools};
