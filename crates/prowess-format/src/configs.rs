//! Tools, resources and MCP servers that a skill declares in its frontmatter.

use crate::span::ByteRange;
use crate::yaml::{Mapping, Node, Value};

/// A tool that comes with a skill (`tool_configs`).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolConfig {
    /// The name that the model calls.
    pub name: String,
    /// What the tool does.
    pub description: String,
    /// What implements it.
    pub method: String,
    /// Its arguments, in order.
    pub args: Vec<ToolArgument>,
    /// Whether it can be called only while the skill is loaded. True unless said otherwise.
    pub requires_skill_loaded: bool,
}

/// An argument of a [`ToolConfig`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolArgument {
    /// Its name.
    pub name: String,
    /// Its type. A string unless said otherwise.
    pub kind: ArgumentKind,
    /// What it is for.
    pub description: String,
    /// Whether it must be given. False unless said otherwise.
    pub required: bool,
    /// What stands in for it.
    pub default: Option<Node>,
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
}

impl ArgumentKind {
    /// The type with this name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "string" | "str" => Some(Self::String),
            "integer" | "int" => Some(Self::Integer),
            "number" | "float" => Some(Self::Number),
            "boolean" | "bool" => Some(Self::Boolean),
            _ => None,
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

/// Receives what cannot be used as it is: where, and why.
pub(crate) type Problems<'a> = dyn FnMut(ByteRange, String) + 'a;

pub(crate) fn read_tool_configs(node: &Node, problems: &mut Problems<'_>) -> Vec<ToolConfig> {
    let mut configs: Vec<ToolConfig> = Vec::new();
    for record in records(node, "tool_configs", problems) {
        let Some(name) = record.required_text("name", problems) else {
            continue;
        };
        if configs.iter().any(|config| config.name == name) {
            record.problem(problems, &format!("declares the tool '{name}' a second time"));
            continue;
        }
        let args = match record.mapping.get("args") {
            Some(args) => read_arguments(args, &format!("{}.args", record.place), problems),
            None => Vec::new(),
        };
        configs.push(ToolConfig {
            description: record.text("description", problems).unwrap_or_default(),
            method: record.text("method", problems).unwrap_or_default(),
            requires_skill_loaded: record.boolean("requires_skill_loaded", true, problems),
            name,
            args,
        });
    }
    configs
}

fn read_arguments(node: &Node, list: &str, problems: &mut Problems<'_>) -> Vec<ToolArgument> {
    let mut arguments: Vec<ToolArgument> = Vec::new();
    for record in records(node, list, problems) {
        let Some(name) = record.required_text("name", problems) else {
            continue;
        };
        if arguments.iter().any(|argument| argument.name == name) {
            record.problem(problems, &format!("declares the argument '{name}' a second time"));
            continue;
        }
        let kind = record.text("type", problems).map_or(ArgumentKind::String, |word| {
            ArgumentKind::parse(&word).unwrap_or_else(|| {
                let known = "string, integer, number and boolean";
                let place = record.mapping.get("type").map_or(record.range, |node| node.range);
                problems(
                    place,
                    format!("Argument type '{word}' is not known and is read as 'string'; known are {known}"),
                );
                ArgumentKind::String
            })
        });
        arguments.push(ToolArgument {
            kind,
            description: record.text("description", problems).unwrap_or_default(),
            required: record.boolean("required", false, problems),
            default: record.mapping.get("default").cloned(),
            name,
        });
    }
    arguments
}

pub(crate) fn read_resource_configs(
    node: &Node,
    problems: &mut Problems<'_>,
) -> Vec<ResourceConfig> {
    let mut configs: Vec<ResourceConfig> = Vec::new();
    for record in records(node, "resource_configs", problems) {
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
            name,
        };
        if config.file.is_none() && config.content.is_none() && !config.dynamic {
            let lacks = format!("gives '{}' no content: set file, content or dynamic", config.name);
            record.problem(problems, &lacks);
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
    for record in records(node, "mcp_tool_configs", problems) {
        let Some(server) = record.required_text("server", problems) else {
            continue;
        };
        let tools = record.mapping.get("tools").map(names).unwrap_or_default();
        let load_all = record.boolean("load_all", false, problems);
        configs.push(McpToolConfig { server, tools, load_all });
    }
    configs
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

fn records<'a>(node: &'a Node, list: &str, problems: &mut Problems<'_>) -> Vec<Record<'a>> {
    let items = match &node.value {
        Value::Null => &[],
        Value::Sequence(items) => items.as_slice(),
        _ => {
            problems(node.range, format!("{list} must be a list of mappings, not {}", node.kind()));
            &[]
        }
    };
    let mut records = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let place = format!("{list}[{at}]");
        match item.as_mapping() {
            Some(mapping) => records.push(Record { mapping, range: item.range, place }),
            None => problems(item.range, format!("{place} must be a mapping, not {}", item.kind())),
        }
    }
    records
}

impl Record<'_> {
    fn problem(&self, problems: &mut Problems<'_>, what: &str) {
        problems(self.range, format!("{} {what}", self.place));
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
            problems(node.range, message);
        }
        text
    }

    fn boolean(&self, key: &str, default: bool, problems: &mut Problems<'_>) -> bool {
        let Some(node) = self.mapping.get(key) else {
            return default;
        };
        node.as_bool().unwrap_or_else(|| {
            let message =
                format!("{}.{key} must be true or false, not {}", self.place, node.kind());
            problems(node.range, message);
            default
        })
    }
}
