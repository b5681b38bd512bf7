//! A skill as one JSON document, as langchain-docker's REST has it; from files and to files,
//! without loss.
//!
//! Frontmatter, body and files of a skill become fields, and fields become them again. What a
//! document does not show, such as fields of other runtimes, a change leaves as it is.

mod change;
mod check;
mod configs;
mod error;
mod files;
mod read;
mod splice;
mod write;

pub use change::DocumentChange;
pub use check::{
    CHANGE_SUMMARY_CHARS, CORE_CONTENT_CHARS, DEFAULT_VALUES, DESCRIPTION_CHARS, DOCUMENT_BYTES,
    FILE_FOLDERS, LIST_ENTRIES, NAME_CHARS, TEXT_CHARS,
};
pub use error::{DocumentError, Violation};
pub use read::SkillReading;

use serde::{Deserialize, Serialize};

/// A skill as one JSON document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SkillDocument {
    /// Its id. What is sent without one is given one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9][a-z0-9_-]{0,63}$"))]
    pub id: Option<String>,
    /// Its display name.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 100, pattern = "\\S"))]
    pub name: String,
    /// What it does.
    #[cfg_attr(feature = "openapi", schema(min_length = 10, max_length = 500))]
    pub description: String,
    /// Its category.
    #[serde(default = "category")]
    #[cfg_attr(feature = "openapi", schema(max_length = 200))]
    pub category: String,
    /// Its semantic version.
    #[serde(default = "version")]
    #[cfg_attr(feature = "openapi", schema(max_length = 200))]
    pub version: String,
    /// Whom it names as its author.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(max_length = 200))]
    pub author: Option<String>,
    /// What is below the frontmatter.
    #[cfg_attr(feature = "openapi", schema(min_length = 10))]
    pub core_content: String,
    /// Its files, those in `scripts` excepted.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(max_items = 1000))]
    pub resources: Vec<DocumentFile>,
    /// Its files to be run.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(max_items = 1000))]
    pub scripts: Vec<DocumentFile>,
    /// The tools that it declares.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(max_items = 1000))]
    pub tool_configs: Vec<DocumentTool>,
    /// The level-3 content that it declares.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(max_items = 1000))]
    pub resource_configs: Vec<DocumentResource>,
    /// The tools of MCP servers that it uses.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(max_items = 1000))]
    pub mcp_tool_configs: Vec<DocumentServer>,
}

impl SkillDocument {
    /// A document with everything that it must have.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        core_content: impl Into<String>,
    ) -> Self {
        Self {
            id: None,
            name: name.into(),
            description: description.into(),
            category: category(),
            version: version(),
            author: None,
            core_content: core_content.into(),
            resources: Vec::new(),
            scripts: Vec::new(),
            tool_configs: Vec::new(),
            resource_configs: Vec::new(),
            mcp_tool_configs: Vec::new(),
        }
    }
}

fn category() -> String {
    "general".to_owned()
}

fn version() -> String {
    "1.0.0".to_owned()
}

/// A file of a skill in a document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct DocumentFile {
    /// What it is called: its path, unless somebody called it otherwise.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, pattern = "\\S"))]
    pub name: String,
    /// What it holds.
    #[serde(default)]
    pub description: String,
    /// What it is written in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// What is in it. A change without this keeps the file that is at this path; where there is
    /// none, it is a mention of a file that the skill does not have.
    #[serde(default)]
    pub content: Option<String>,
    /// Where it is in the skill's folder. If this is not sent: at its name, if a `file` of
    /// `resource_configs` or a `script` of `tool_configs` is called so, else below `resources/` or
    /// `scripts/`. Answers always have it.
    #[serde(default)]
    pub path: Option<String>,
    /// How `content` stands for bytes.
    #[serde(default, skip_serializing_if = "Encoding::is_utf8")]
    pub encoding: Encoding,
    /// Whether it may be run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
}

impl DocumentFile {
    /// A text that is called so.
    pub fn new(name: impl Into<String>, content: impl Into<String>) -> Self {
        Self { name: name.into(), content: Some(content.into()), ..Self::default() }
    }

    /// Says where it is.
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Says what it holds.
    pub fn described(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }
}

/// How a text stands for bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Encoding {
    /// The bytes are the text.
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    /// The text is base64, with padding.
    #[serde(rename = "base64")]
    Base64,
}

impl Encoding {
    fn is_utf8(&self) -> bool {
        *self == Self::Utf8
    }
}

/// A tool that a skill declares.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct DocumentTool {
    /// The name that a model calls.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, pattern = "\\S"))]
    pub name: String,
    /// What the tool does.
    #[serde(default)]
    pub description: String,
    /// What implements it: a function of the host.
    #[serde(default)]
    pub method: String,
    /// What implements it: a file of the skill that is run with the arguments as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Its arguments, in order.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(max_items = 1000))]
    pub args: Vec<DocumentArgument>,
    /// Whether it can be called only while the skill is loaded.
    #[serde(default = "yes")]
    pub requires_skill_loaded: bool,
}

impl DocumentTool {
    /// A tool of this name, gated and without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), requires_skill_loaded: true, ..Self::default() }
    }
}

fn yes() -> bool {
    true
}

/// An argument of a tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct DocumentArgument {
    /// Its name.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, pattern = "\\S"))]
    pub name: String,
    /// Its type.
    #[serde(default, rename = "type")]
    pub kind: ArgumentType,
    /// The type of what is in it, if it is an array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<ArgumentType>,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// Whether it must be given.
    #[serde(default)]
    pub required: bool,
    /// What stands in for it.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub default: Option<serde_json::Value>,
    /// The values that it can have; none means any.
    #[serde(default, rename = "enum", skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<serde_json::Value>,
}

impl DocumentArgument {
    /// An optional text of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

/// The type of an argument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ArgumentType {
    /// A text.
    #[default]
    #[serde(alias = "str")]
    String,
    /// A whole number.
    #[serde(alias = "int")]
    Integer,
    /// A number.
    #[serde(alias = "float")]
    Number,
    /// Yes or no.
    #[serde(alias = "bool")]
    Boolean,
    /// A list.
    #[serde(alias = "list")]
    Array,
    /// An object.
    #[serde(alias = "dict")]
    Object,
}

/// Level-3 content that a skill declares.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct DocumentResource {
    /// The name that a model asks for.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, pattern = "\\S"))]
    pub name: String,
    /// What it holds.
    #[serde(default)]
    pub description: String,
    /// A file of the skill.
    #[serde(default)]
    pub file: Option<String>,
    /// The content itself.
    #[serde(default)]
    pub content: Option<String>,
    /// Whether it is made when it is asked for.
    #[serde(default)]
    pub dynamic: bool,
    /// What makes it.
    #[serde(default)]
    pub method: Option<String>,
}

impl DocumentResource {
    /// Content of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

/// Tools of an MCP server that a skill uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct DocumentServer {
    /// The server.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, pattern = "\\S"))]
    pub server: String,
    /// Which of its tools.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(max_items = 1000))]
    pub tools: Vec<String>,
    /// All of them.
    #[serde(default)]
    pub load_all: bool,
}

impl DocumentServer {
    /// These tools of a server.
    pub fn new(server: impl Into<String>, tools: Vec<String>) -> Self {
        Self { server: server.into(), tools, load_all: false }
    }
}
