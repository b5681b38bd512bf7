//! Tools, resources and MCP servers that a skill declares in its frontmatter.

use crate::lint::Code;
use crate::name::nearest_name;
use crate::span::ByteRange;
use crate::yaml::{Mapping, Node, NumberKind, Value};

/// A tool that comes with a skill (`tool_configs`).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolConfig {
    /// The name that the model calls.
    pub name: String,
    /// What the tool does.
    pub description: String,
    /// What implements it: a function of the host.
    pub method: String,
    /// What implements it: a file of the skill that is run with the arguments as JSON.
    pub script: Option<String>,
    /// Its arguments, in order.
    pub args: Vec<ToolArgument>,
    /// Whether it can be called only while the skill is loaded. True unless said otherwise.
    pub requires_skill_loaded: bool,
    /// Where it stands.
    pub range: ByteRange,
}

/// An argument of a [`ToolConfig`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolArgument {
    /// Its name.
    pub name: String,
    /// Its type. A string unless said otherwise.
    pub kind: ArgumentKind,
    /// The type of what is in it, if it is an array that says so (`items`).
    pub items: Option<ArgumentKind>,
    /// What it is for.
    pub description: String,
    /// Whether it must be given. False unless said otherwise.
    pub required: bool,
    /// What stands in for it.
    pub default: Option<Node>,
    /// The values that it can have (`enum`); none means any.
    pub choices: Vec<Node>,
    /// Where it stands.
    pub range: ByteRange,
}

impl ToolArgument {
    /// What it says of itself that cannot all be true.
    fn contradiction(&self) -> Option<String> {
        let kind = self.kind.as_str();
        if self.items.is_some() && self.kind != ArgumentKind::Array {
            return Some(format!("has 'items' and is no array but of type {kind}"));
        }
        if self.choices.iter().any(|choice| !self.kind.has(choice)) {
            return Some(format!("has a choice in 'enum' that is no {kind}"));
        }
        let default = self.default.as_ref().filter(|it| !it.is_null())?;
        if !self.kind.has(default) {
            return Some(format!("has a default that is no {kind}"));
        }
        let is_choice = |choice: &Node| choice.value == default.value;
        let is_none = !self.choices.is_empty() && !self.choices.iter().any(is_choice);
        is_none.then(|| "has a default that is not in 'enum'".to_owned())
    }
}

/// The type of a [`ToolArgument`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ArgumentKind {
    /// `string`, `str`
    #[default]
    String,
    /// `integer`, `int`
    Integer,
    /// `number`, `float`
    Number,
    /// `boolean`, `bool`
    Boolean,
    /// `array`, `list`
    Array,
    /// `object`, `dict`
    Object,
}

impl ArgumentKind {
    /// The type with this name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "string" | "str" => Some(Self::String),
            "integer" | "int" => Some(Self::Integer),
            "number" | "float" => Some(Self::Number),
            "boolean" | "bool" => Some(Self::Boolean),
            "array" | "list" => Some(Self::Array),
            "object" | "dict" => Some(Self::Object),
            _ => None,
        }
    }

    /// The name of the type in a JSON Schema.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Array => "array",
            Self::Object => "object",
        }
    }

    /// Whether a value is of this type.
    fn has(self, node: &Node) -> bool {
        match &node.value {
            Value::String(_) => self == Self::String,
            Value::Number(number) => match number.kind() {
                NumberKind::Signed(_) | NumberKind::Unsigned(_) => {
                    matches!(self, Self::Integer | Self::Number)
                }
                NumberKind::Float(_) => self == Self::Number,
                NumberKind::Unrepresentable => false,
            },
            Value::Bool(_) => self == Self::Boolean,
            Value::Sequence(_) => self == Self::Array,
            Value::Mapping(_) => self == Self::Object,
            Value::Null => false,
        }
    }
}

/// Level-3 content of a skill (`resource_configs`).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceConfig {
    /// The name that the model asks for.
    pub name: String,
    /// What it holds.
    pub description: String,
    /// A file of the skill.
    pub file: Option<String>,
    /// The content itself.
    pub content: Option<String>,
    /// Whether it is made when it is asked for.
    pub dynamic: bool,
    /// What makes it.
    pub method: Option<String>,
    /// Where it stands.
    pub range: ByteRange,
}

/// Tools of an MCP server that a skill uses (`mcp_tool_configs`).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpToolConfig {
    /// The server.
    pub server: String,
    /// Which of its tools.
    pub tools: Vec<String>,
    /// All of them.
    pub load_all: bool,
}

/// What a skill says about one of its files (`resources`, `scripts`).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileEntry {
    /// What it is called.
    pub name: String,
    /// What it holds.
    pub description: String,
    /// Where it is, relative to the skill's folder; `None` leaves that to the name.
    pub file: Option<String>,
    /// What it is written in.
    pub language: Option<String>,
}

/// Receives what cannot be used as it is: where, what kind, and why.
pub(crate) type Problems<'a> = dyn FnMut(ByteRange, Problem, String) + 'a;

/// Something that keeps a tool or a resource from being what its author wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigProblem {
    /// Its code.
    pub code: Code,
    /// Where it stands.
    pub range: ByteRange,
    /// What it is.
    pub message: String,
}

/// What is wrong with a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// It cannot be used as it is.
    Invalid,
    /// It has a key that means nothing.
    UnknownKey,
}

const TOOL_KEYS: &[&str] =
    &["name", "description", "method", "script", "args", "requires_skill_loaded"];
const ARGUMENT_KEYS: &[&str] =
    &["name", "type", "items", "description", "required", "default", "enum"];
const RESOURCE_KEYS: &[&str] = &["name", "description", "file", "content", "dynamic", "method"];
const FILE_KEYS: &[&str] = &["name", "description", "file", "language"];
const MCP_KEYS: &[&str] = &["server", "tools", "load_all"];

pub(crate) fn read_tool_configs(node: &Node, problems: &mut Problems<'_>) -> Vec<ToolConfig> {
    let mut configs: Vec<ToolConfig> = Vec::new();
    for record in records(node, "tool_configs", TOOL_KEYS, problems) {
        let Some(name) = record.required_text("name", problems) else {
            continue;
        };
        if configs.iter().any(|config| config.name == name) {
            record.problem(problems, &format!("declares the tool '{name}' a second time"));
            continue;
        }
        if record.mapping.get("method").is_some() && record.mapping.get("script").is_some() {
            record.problem(problems, "has a method and a script: leave out one of them");
        }
        let args = match record.mapping.get("args") {
            Some(args) => read_arguments(args, &format!("{}.args", record.place), problems),
            None => Vec::new(),
        };
        configs.push(ToolConfig {
            description: record.text("description", problems).unwrap_or_default(),
            method: record.text("method", problems).unwrap_or_default(),
            script: record.text("script", problems),
            range: record.range,
            requires_skill_loaded: record.boolean("requires_skill_loaded", true, problems),
            name,
            args,
        });
    }
    configs
}

fn read_arguments(node: &Node, list: &str, problems: &mut Problems<'_>) -> Vec<ToolArgument> {
    let mut arguments: Vec<ToolArgument> = Vec::new();
    for record in records(node, list, ARGUMENT_KEYS, problems) {
        let Some(name) = record.required_text("name", problems) else {
            continue;
        };
        if arguments.iter().any(|argument| argument.name == name) {
            record.problem(problems, &format!("declares the argument '{name}' a second time"));
            continue;
        }
        let argument = ToolArgument {
            kind: record.kind("type", problems).unwrap_or_default(),
            items: record.kind("items", problems),
            description: record.text("description", problems).unwrap_or_default(),
            required: record.boolean("required", false, problems),
            default: record.mapping.get("default").cloned(),
            choices: record.list("enum", problems),
            range: record.range,
            name,
        };
        if let Some(wrong) = argument.contradiction() {
            record.problem(problems, &wrong);
        }
        arguments.push(argument);
    }
    arguments
}

pub(crate) fn read_resource_configs(
    node: &Node,
    problems: &mut Problems<'_>,
) -> Vec<ResourceConfig> {
    let mut configs: Vec<ResourceConfig> = Vec::new();
    for record in records(node, "resource_configs", RESOURCE_KEYS, problems) {
        let Some(name) = record.required_text("name", problems) else {
            continue;
        };
        if configs.iter().any(|config| config.name == name) {
            record.problem(problems, &format!("declares the resource '{name}' a second time"));
            continue;
        }
        let config = ResourceConfig {
            description: record.text("description", problems).unwrap_or_default(),
            file: record.text("file", problems),
            content: record.text("content", problems),
            dynamic: record.boolean("dynamic", false, problems),
            method: record.text("method", problems),
            range: record.range,
            name,
        };
        if config.file.is_none() && config.content.is_none() && !config.dynamic {
            let lacks = format!("gives '{}' no content: set file, content or dynamic", config.name);
            record.problem(problems, &lacks);
        } else if config.file.is_some() && config.content.is_some() {
            record.problem(problems, "has a file and a content: leave out one of them");
        } else if config.method.is_some() && !config.dynamic {
            record.problem(problems, "has a method, which is used only with 'dynamic: true'");
        }
        configs.push(config);
    }
    configs
}

pub(crate) fn read_mcp_tool_configs(
    node: &Node,
    problems: &mut Problems<'_>,
) -> Vec<McpToolConfig> {
    let mut configs = Vec::new();
    for record in records(node, "mcp_tool_configs", MCP_KEYS, problems) {
        let Some(server) = record.required_text("server", problems) else {
            continue;
        };
        let tools = record.names("tools", problems);
        let load_all = record.boolean("load_all", false, problems);
        configs.push(McpToolConfig { server, tools, load_all });
    }
    configs
}

/// The entries of `list`. Several may have one name: it is the file that tells them apart.
pub(crate) fn read_file_entries(
    node: &Node,
    list: &str,
    problems: &mut Problems<'_>,
) -> Vec<FileEntry> {
    let mut entries: Vec<FileEntry> = Vec::new();
    for record in records(node, list, FILE_KEYS, problems) {
        let Some(name) = record.required_text("name", problems) else {
            continue;
        };
        entries.push(FileEntry {
            description: record.text("description", problems).unwrap_or_default(),
            file: record.text("file", problems),
            language: record.text("language", problems),
            name,
        });
    }
    entries
}

/// A list of names, written as a list or as a string with blanks or commas.
pub(crate) fn names(node: &Node) -> Vec<String> {
    let split = |text: &str| -> Vec<String> {
        text.split(|c: char| c.is_whitespace() || c == ',')
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect()
    };
    match &node.value {
        Value::Sequence(items) => {
            items.iter().filter_map(Node::as_text).map(|name| name.trim().to_owned()).collect()
        }
        _ => node.as_text().map(split).unwrap_or_default(),
    }
}

/// A mapping in a list of mappings.
struct Record<'a> {
    mapping: &'a Mapping,
    range: ByteRange,
    /// `tool_configs[2]`
    place: String,
}

fn records<'a>(
    node: &'a Node,
    list: &str,
    known: &[&str],
    problems: &mut Problems<'_>,
) -> Vec<Record<'a>> {
    let items = match &node.value {
        Value::Null => &[],
        Value::Sequence(items) => items.as_slice(),
        _ => {
            problems(
                node.range,
                Problem::Invalid,
                format!("{list} must be a list of mappings, not {}", node.kind()),
            );
            &[]
        }
    };
    let mut records = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let place = format!("{list}[{at}]");
        match item.as_mapping() {
            Some(mapping) => {
                let record = Record { mapping, range: item.range, place };
                record.check_keys(known, problems);
                records.push(record);
            }
            None => {
                let message = format!("{place} must be a mapping, not {}", item.kind());
                problems(item.range, Problem::Invalid, message);
            }
        }
    }
    records
}

impl Record<'_> {
    fn problem(&self, problems: &mut Problems<'_>, what: &str) {
        problems(self.range, Problem::Invalid, format!("{} {what}", self.place));
    }

    fn check_keys(&self, known: &[&str], problems: &mut Problems<'_>) {
        for entry in self.mapping.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            let meant = nearest_name(&entry.key, known.iter().copied())
                .map(|meant| format!("; did you mean '{meant}'?"))
                .unwrap_or_default();
            let message = format!("{} has an unknown key '{}'{meant}", self.place, entry.key);
            problems(entry.key_range, Problem::UnknownKey, message);
        }
    }

    fn names(&self, key: &str, problems: &mut Problems<'_>) -> Vec<String> {
        let Some(node) = self.mapping.get(key) else { return Vec::new() };
        let items = node.as_sequence().unwrap_or(std::slice::from_ref(node));
        if let Some(item) = items.iter().find(|item| item.as_text().is_none()) {
            let kind = item.kind();
            let message = format!("{}.{key} must be a list of names, not {kind}", self.place);
            problems(item.range, Problem::Invalid, message);
        }
        names(node)
    }

    fn list(&self, key: &str, problems: &mut Problems<'_>) -> Vec<Node> {
        let Some(node) = self.mapping.get(key) else { return Vec::new() };
        match &node.value {
            Value::Null => Vec::new(),
            Value::Sequence(items) => items.clone(),
            _ => {
                let message = format!("{}.{key} must be a list, not {}", self.place, node.kind());
                problems(node.range, Problem::Invalid, message);
                Vec::new()
            }
        }
    }

    fn required_text(&self, key: &str, problems: &mut Problems<'_>) -> Option<String> {
        let text = self.text(key, problems).filter(|text| !text.trim().is_empty());
        if text.is_none() {
            self.problem(problems, &format!("has no '{key}'"));
        }
        text
    }

    fn text(&self, key: &str, problems: &mut Problems<'_>) -> Option<String> {
        let node = self.mapping.get(key)?;
        if node.value == Value::Null {
            return None;
        }
        let text = node.as_text().map(str::to_owned);
        if text.is_none() {
            let message = format!("{}.{key} must be text, not {}", self.place, node.kind());
            problems(node.range, Problem::Invalid, message);
        }
        text
    }

    fn kind(&self, key: &str, problems: &mut Problems<'_>) -> Option<ArgumentKind> {
        let word = self.text(key, problems)?;
        let kind = ArgumentKind::parse(&word);
        if kind.is_none() {
            let place = self.mapping.get(key).map_or(self.range, |node| node.range);
            let known = "string, integer, number, boolean, array and object";
            let message =
                format!("{}.{key}: there is no type '{word}'; there are {known}", self.place);
            problems(place, Problem::Invalid, message);
        }
        kind
    }

    fn boolean(&self, key: &str, default: bool, problems: &mut Problems<'_>) -> bool {
        let Some(node) = self.mapping.get(key) else {
            return default;
        };
        node.as_bool().unwrap_or_else(|| {
            let message =
                format!("{}.{key} must be true or false, not {}", self.place, node.kind());
            problems(node.range, Problem::Invalid, message);
            default
        })
    }
}
