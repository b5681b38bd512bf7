//! The fields of frontmatter that some runtime defines, as one table.

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldKind {
    /// Text.
    Text,
    /// Text that people write in brackets: `[file]` is the text, not a list.
    Hint,
    /// A yes or no, in any spelling that Claude Code accepts.
    Boolean,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A string of names or a list of names.
    Names,
    /// A string of tool patterns or a list of tool patterns.
    Tools,
    /// A mapping.
    Mapping,
    /// A list of mappings.
    Records,
}

/// Who defines a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// The Agent Skills specification.
    Spec,
    /// Claude Code.
    ClaudeCode,
    /// langchain-docker.
    LangchainDocker,
}

/// A known field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Field {
    /// Its key in the frontmatter.
    pub key: &'static str,
    /// What it holds.
    pub kind: FieldKind,
    /// Who defines it. `context`, `agent` and `model` are Eino's too.
    pub origin: Origin,
}

/// The words that `context` takes: `fork` everywhere, `fork_with_context` from Eino.
pub const CONTEXTS: &[&str] = &["fork", "fork_with_context"];
/// The words that `effort` takes.
pub const EFFORTS: &[&str] = &["low", "medium", "high", "xhigh", "max"];
/// The words that `shell` takes.
pub const SHELLS: &[&str] = &["bash", "powershell"];

macro_rules! fields {
    ($($key:literal $kind:expr, $origin:ident;)+) => {
        /// All known fields, sorted by key.
        pub const FIELDS: &[Field] = &[
            $(Field { key: $key, kind: { use FieldKind::*; $kind }, origin: Origin::$origin },)+
        ];
    };
}

fields! {
    "agent"                    Text, ClaudeCode;
    "allowed-tools"            Tools, Spec;
    "argument-hint"            Hint, ClaudeCode;
    "arguments"                Names, ClaudeCode;
    "author"                   Text, LangchainDocker;
    "background"               Boolean, ClaudeCode;
    "category"                 Text, LangchainDocker;
    "compatibility"            Text, Spec;
    "context"                  Choice(CONTEXTS), ClaudeCode;
    "description"              Text, Spec;
    "disable-model-invocation" Boolean, ClaudeCode;
    "disallowed-tools"         Tools, ClaudeCode;
    "effort"                   Choice(EFFORTS), ClaudeCode;
    "hooks"                    Mapping, ClaudeCode;
    "id"                       Text, LangchainDocker;
    "license"                  Text, Spec;
    "mcp_tool_configs"         Records, LangchainDocker;
    "metadata"                 Mapping, Spec;
    "model"                    Text, ClaudeCode;
    "name"                     Text, Spec;
    "paths"                    Names, ClaudeCode;
    "required_by_tools"        Names, LangchainDocker;
    "resource_configs"         Records, LangchainDocker;
    "resources"                Records, LangchainDocker;
    "scripts"                  Records, LangchainDocker;
    "shell"                    Choice(SHELLS), ClaudeCode;
    "tool_configs"             Records, LangchainDocker;
    "user-invocable"           Boolean, ClaudeCode;
    "version"                  Text, LangchainDocker;
    "when_to_use"              Text, ClaudeCode;
}

/// The field with this key.
pub fn field(key: &str) -> Option<&'static Field> {
    FIELDS.binary_search_by(|field| field.key.cmp(key)).ok().map(|at| &FIELDS[at])
}
