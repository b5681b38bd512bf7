//! What a skill declares in its frontmatter, as fields of a document.
//!
//! Entries that are written keep the keys that mean nothing to us, if there was an entry of the
//! same name before.

use prowess_format::yaml::{Mapping, Node, Number, Value};
use prowess_format::{ArgumentKind, Frontmatter};
use serde_json::Value as Json;

use super::{ArgumentType, DocumentArgument, DocumentResource, DocumentServer, DocumentTool};

pub(super) fn tools(frontmatter: &Frontmatter) -> Vec<DocumentTool> {
    let tool = |tool: prowess_format::ToolConfig| DocumentTool {
        name: tool.name,
        description: tool.description,
        method: tool.method,
        script: tool.script,
        args: tool.args.into_iter().map(argument).collect(),
        requires_skill_loaded: tool.requires_skill_loaded,
    };
    frontmatter.tool_configs().into_iter().map(tool).collect()
}

fn argument(argument: prowess_format::ToolArgument) -> DocumentArgument {
    DocumentArgument {
        kind: type_of(argument.kind),
        items: argument.items.map(type_of),
        choices: argument.choices.iter().filter_map(|it| serde_json::to_value(it).ok()).collect(),
        name: argument.name,
        description: argument.description,
        required: argument.required,
        default: argument.default.as_ref().and_then(as_json),
    }
}

fn type_of(kind: ArgumentKind) -> ArgumentType {
    match kind {
        ArgumentKind::Integer => ArgumentType::Integer,
        ArgumentKind::Number => ArgumentType::Number,
        ArgumentKind::Boolean => ArgumentType::Boolean,
        ArgumentKind::Array => ArgumentType::Array,
        ArgumentKind::Object => ArgumentType::Object,
        _ => ArgumentType::String,
    }
}

pub(super) fn resources(frontmatter: &Frontmatter) -> Vec<DocumentResource> {
    let resource = |resource: prowess_format::ResourceConfig| DocumentResource {
        name: resource.name,
        description: resource.description,
        file: resource.file,
        content: resource.content,
        dynamic: resource.dynamic,
        method: resource.method,
    };
    frontmatter.resource_configs().into_iter().map(resource).collect()
}

pub(super) fn servers(frontmatter: &Frontmatter) -> Vec<DocumentServer> {
    let server = |config: prowess_format::McpToolConfig| DocumentServer {
        server: config.server,
        tools: config.tools,
        load_all: config.load_all,
    };
    frontmatter.mcp_tool_configs().into_iter().map(server).collect()
}

pub(super) fn tool_nodes(tools: &[DocumentTool], old: Option<&Node>) -> Vec<Node> {
    let node = |tool: &DocumentTool| {
        let mut record = Record::like(old, "name", &tool.name);
        record.text("description", &tool.description);
        record.text("method", &tool.method);
        record.option("script", tool.script.as_deref());
        let old_args = record.0.get("args").cloned();
        let args = argument_nodes(&tool.args, old_args.as_ref());
        record.list("args", args);
        record.flag("requires_skill_loaded", tool.requires_skill_loaded, true);
        record.finish()
    };
    tools.iter().map(node).collect()
}

fn argument_nodes(arguments: &[DocumentArgument], old: Option<&Node>) -> Vec<Node> {
    let node = |argument: &DocumentArgument| {
        let mut record = Record::like(old, "name", &argument.name);
        record.kind("type", Some(argument.kind), Some(ArgumentType::String));
        record.kind("items", argument.items, None);
        record.text("description", &argument.description);
        record.flag("required", argument.required, false);
        let old_default = record.0.get("default").and_then(as_json);
        if old_default != argument.default {
            match &argument.default {
                Some(value) => record.0.set("default", as_yaml(value)),
                None => drop(record.0.remove("default")),
            }
        }
        let old_choices = record.0.get("enum").and_then(as_json).unwrap_or(Json::Array(Vec::new()));
        if old_choices.as_array() != Some(&argument.choices) {
            let choices = argument.choices.iter().map(|it| Node::new(as_yaml(it))).collect();
            record.list("enum", choices);
        }
        record.finish()
    };
    arguments.iter().map(node).collect()
}

pub(super) fn resource_nodes(resources: &[DocumentResource], old: Option<&Node>) -> Vec<Node> {
    let node = |resource: &DocumentResource| {
        let mut record = Record::like(old, "name", &resource.name);
        record.text("description", &resource.description);
        record.option("file", resource.file.as_deref());
        record.option("content", resource.content.as_deref());
        record.flag("dynamic", resource.dynamic, false);
        record.option("method", resource.method.as_deref());
        record.finish()
    };
    resources.iter().map(node).collect()
}

pub(super) fn server_nodes(servers: &[DocumentServer], old: Option<&Node>) -> Vec<Node> {
    let node = |server: &DocumentServer| {
        let mut record = Record::like(old, "server", &server.server);
        let tools = server.tools.iter().map(|tool| Node::new(tool.as_str())).collect();
        record.list("tools", tools);
        record.flag("load_all", server.load_all, false);
        record.finish()
    };
    servers.iter().map(node).collect()
}

/// An entry of a list that is being written.
struct Record(Mapping);

impl Record {
    /// The entry of this name, if there is one; else a new one.
    fn like(old: Option<&Node>, key: &str, name: &str) -> Self {
        let records = old.and_then(Node::as_sequence).unwrap_or_default();
        let is_same = |it: &&Mapping| it.get(key).and_then(Node::as_text) == Some(name);
        let same = records.iter().filter_map(Node::as_mapping).find(is_same);
        let mut record = Self(same.cloned().unwrap_or_default());
        record.text(key, name);
        record
    }

    /// A text; an empty one is left out.
    fn text(&mut self, key: &str, text: &str) {
        self.option(key, Some(text).filter(|text| !text.is_empty()));
    }

    fn option(&mut self, key: &str, text: Option<&str>) {
        let old = self.0.get(key).and_then(Node::as_text);
        match text {
            None => drop(self.0.remove(key)),
            Some(text) if old == Some(text) => {}
            Some(text) => self.0.set(key, text),
        }
    }

    /// A yes or no; what goes without saying is left out.
    fn flag(&mut self, key: &str, flag: bool, default: bool) {
        let old = self.0.get(key).map(|node| node.as_bool().unwrap_or(default));
        if old.unwrap_or(default) != flag {
            self.0.set(key, flag);
        }
    }

    /// A type; what goes without saying is left out.
    fn kind(&mut self, key: &str, kind: Option<ArgumentType>, default: Option<ArgumentType>) {
        let old = self.0.get(key).and_then(Node::as_text).and_then(ArgumentKind::parse);
        match kind {
            _ if old.map(type_of).or(default) == kind => {}
            None => drop(self.0.remove(key)),
            Some(kind) => self.0.set(key, word(kind)),
        }
    }

    /// A list; an empty one is left out.
    fn list(&mut self, key: &str, items: Vec<Node>) {
        match items.is_empty() {
            true => drop(self.0.remove(key)),
            false => self.0.set(key, items),
        }
    }

    fn finish(self) -> Node {
        Node::new(self.0)
    }
}

/// What a type is called.
fn word(kind: ArgumentType) -> &'static str {
    match kind {
        ArgumentType::String => "string",
        ArgumentType::Integer => "integer",
        ArgumentType::Number => "number",
        ArgumentType::Boolean => "boolean",
        ArgumentType::Array => "array",
        ArgumentType::Object => "object",
    }
}

/// A value of the frontmatter as JSON; `None` for null.
fn as_json(node: &Node) -> Option<Json> {
    serde_json::to_value(node).ok().filter(|value| !value.is_null())
}

/// A value as it stands in the frontmatter.
fn as_yaml(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(flag) => Value::Bool(*flag),
        Json::Number(number) => {
            let spelling = number.to_string();
            Number::parse(&spelling).map_or(Value::String(spelling), Value::Number)
        }
        Json::String(text) => Value::String(text.clone()),
        Json::Array(items) => {
            Value::Sequence(items.iter().map(|item| Node::new(as_yaml(item))).collect())
        }
        Json::Object(entries) => {
            let mut mapping = Mapping::new();
            for (key, value) in entries {
                mapping.set(key, as_yaml(value));
            }
            Value::Mapping(mapping)
        }
    }
}
