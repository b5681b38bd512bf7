//! The typed view of frontmatter over the mapping that its author wrote.

use std::borrow::Cow;

use crate::configs::{
    ConfigProblem, FileEntry, McpToolConfig, Problem, ResourceConfig, ToolConfig, names,
    read_file_entries, read_mcp_tool_configs, read_resource_configs, read_tool_configs,
};
use crate::lint::Code;
use crate::span::ByteRange;
use crate::tools::{ToolPattern, read_tools};
use crate::yaml::{Mapping, Node, Value};

/// Frontmatter: the raw mapping, kept as it was written with real YAML types and unknown keys,
/// and typed readers for every known field.
///
/// A reader never fails: what has the wrong type is reported as a diagnostic when the skill is
/// parsed, and reads as absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frontmatter {
    raw: Mapping,
}

/// Where a skill runs (`context`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Context {
    /// In a sub-agent that sees nothing of the conversation.
    Fork,
    /// In a sub-agent that sees the conversation so far.
    ForkWithContext,
    /// A word that no runtime knows. Such a skill must not run inline by accident.
    Unknown(String),
}

/// How hard the model shall think (`effort`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Effort {
    /// `low`
    Low,
    /// `medium`
    Medium,
    /// `high`
    High,
    /// `xhigh`
    XHigh,
    /// `max`
    Max,
}

/// Which shell runs embedded commands (`shell`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Shell {
    /// `bash`
    Bash,
    /// `powershell`
    PowerShell,
}

macro_rules! text_fields {
    ($($(#[$doc:meta])* $method:ident $key:literal;)+) => {
        $($(#[$doc])* pub fn $method(&self) -> Option<&str> { self.text($key) })+
    };
}

impl Frontmatter {
    /// A view of this mapping.
    pub fn new(raw: Mapping) -> Self {
        Self { raw }
    }

    /// The mapping as it was written.
    pub fn raw(&self) -> &Mapping {
        &self.raw
    }

    /// The mapping, to change it.
    pub fn raw_mut(&mut self) -> &mut Mapping {
        &mut self.raw
    }

    text_fields! {
        /// `name`, as written. [`crate::Skill::name`] is the name that counts.
        name "name";
        /// `id`: the name where `name` is only for display (langchain-docker).
        id "id";
        /// `description`, without the blanks around it.
        description "description";
        /// `license`
        license "license";
        /// `compatibility`
        compatibility "compatibility";
        /// `when_to_use`
        when_to_use "when_to_use";
        /// `model`
        model "model";
        /// `agent`
        agent "agent";
        /// `category`
        category "category";
        /// `version`, in the author's spelling: `2.0` is `2.0`.
        version "version";
        /// `author`
        author "author";
    }

    /// `argument-hint`. `[file]` is YAML for a list, and its author meant the brackets.
    pub fn argument_hint(&self) -> Option<Cow<'_, str>> {
        let node = self.raw.get("argument-hint")?;
        match node.as_sequence() {
            None => self.text("argument-hint").map(Cow::Borrowed),
            Some(items) => {
                let items: Option<Vec<&str>> = items.iter().map(Node::as_text).collect();
                Some(Cow::Owned(format!("[{}]", items?.join(", "))))
            }
        }
    }

    /// `metadata`, if it is a mapping.
    pub fn metadata(&self) -> Option<&Mapping> {
        self.raw.get("metadata").and_then(Node::as_mapping)
    }

    /// A text in `metadata`.
    pub fn metadata_text(&self, key: &str) -> Option<&str> {
        self.metadata()?.get(key)?.as_text()
    }

    /// The display name: `metadata.title`, or `name` where there is an `id` besides.
    pub fn title(&self) -> Option<&str> {
        self.metadata_text("title").or_else(|| self.id().and_then(|_| self.name()))
    }

    /// `metadata.include_tools`: tools of the host that come with the skill.
    pub fn include_tools(&self) -> Vec<String> {
        self.metadata().and_then(|metadata| metadata.get("include_tools")).map_or(vec![], names)
    }

    /// `allowed-tools`; `None` if the field is absent, which is not the same as empty.
    pub fn allowed_tools(&self) -> Option<Vec<ToolPattern>> {
        self.raw.get("allowed-tools").map(read_tools)
    }

    /// `disallowed-tools`
    pub fn disallowed_tools(&self) -> Vec<ToolPattern> {
        self.raw.get("disallowed-tools").map(read_tools).unwrap_or_default()
    }

    /// `arguments`: the names that `$name` in the body stands for, in order.
    pub fn arguments(&self) -> Vec<String> {
        self.raw.get("arguments").map(names).unwrap_or_default()
    }

    /// `paths`: the globs that make the skill relevant, from a list or separated by commas.
    pub fn paths(&self) -> Vec<String> {
        let Some(node) = self.raw.get("paths") else {
            return Vec::new();
        };
        match node.as_str() {
            Some(text) => text
                .split(',')
                .map(|glob| glob.trim().to_owned())
                .filter(|glob| !glob.is_empty())
                .collect(),
            None => names(node),
        }
    }

    /// `required_by_tools`
    pub fn required_by_tools(&self) -> Vec<String> {
        self.raw.get("required_by_tools").map(names).unwrap_or_default()
    }

    /// `disable-model-invocation`: only a person may start the skill. A value that is no boolean
    /// counts as yes: a typo must not open what its author meant to close.
    pub fn disable_model_invocation(&self) -> bool {
        self.raw
            .get("disable-model-invocation")
            .is_some_and(|node| node.as_bool().unwrap_or(node.value != Value::Null))
    }

    /// `user-invocable`: whether the skill is offered to people. True unless said otherwise.
    pub fn user_invocable(&self) -> bool {
        self.boolean("user-invocable").unwrap_or(true)
    }

    /// `background`: whether a forked skill runs in the background.
    pub fn background(&self) -> Option<bool> {
        self.boolean("background")
    }

    /// `context`; `None` means inline.
    pub fn context(&self) -> Option<Context> {
        let node = self.raw.get("context").filter(|node| node.value != Value::Null)?;
        Some(match node.as_text() {
            Some("fork") => Context::Fork,
            Some("fork_with_context") => Context::ForkWithContext,
            Some(other) => Context::Unknown(other.to_owned()),
            None => Context::Unknown(node.kind().to_owned()),
        })
    }

    /// `effort`
    pub fn effort(&self) -> Option<Effort> {
        match self.text("effort")? {
            "low" => Some(Effort::Low),
            "medium" => Some(Effort::Medium),
            "high" => Some(Effort::High),
            "xhigh" => Some(Effort::XHigh),
            "max" => Some(Effort::Max),
            _ => None,
        }
    }

    /// `shell`
    pub fn shell(&self) -> Option<Shell> {
        match self.text("shell")? {
            "bash" => Some(Shell::Bash),
            "powershell" => Some(Shell::PowerShell),
            _ => None,
        }
    }

    /// `hooks`, as written.
    pub fn hooks(&self) -> Option<&Mapping> {
        self.raw.get("hooks").and_then(Node::as_mapping)
    }

    /// `tool_configs`
    pub fn tool_configs(&self) -> Vec<ToolConfig> {
        self.raw
            .get("tool_configs")
            .map(|node| read_tool_configs(node, &mut |_, _, _| {}))
            .unwrap_or_default()
    }

    /// `resource_configs`
    pub fn resource_configs(&self) -> Vec<ResourceConfig> {
        self.raw
            .get("resource_configs")
            .map(|node| read_resource_configs(node, &mut |_, _, _| {}))
            .unwrap_or_default()
    }

    /// What of `tool_configs` and `resource_configs` cannot be used as it is, in the order of the
    /// text. Keys that mean nothing are not among it.
    pub fn config_problems(&self) -> Vec<ConfigProblem> {
        let mut found = Vec::new();
        let mut note = |code: Code, range: ByteRange, problem: Problem, message: String| {
            if problem == Problem::Invalid {
                found.push(ConfigProblem { code, range, message });
            }
        };
        if let Some(node) = self.raw.get("tool_configs") {
            read_tool_configs(node, &mut |range, problem, message| {
                note(Code::InvalidToolConfig, range, problem, message);
            });
        }
        if let Some(node) = self.raw.get("resource_configs") {
            read_resource_configs(node, &mut |range, problem, message| {
                note(Code::InvalidResourceConfig, range, problem, message);
            });
        }
        found.sort_by_key(|problem| problem.range.start);
        found
    }

    /// `mcp_tool_configs`
    pub fn mcp_tool_configs(&self) -> Vec<McpToolConfig> {
        self.raw
            .get("mcp_tool_configs")
            .map(|node| read_mcp_tool_configs(node, &mut |_, _, _| {}))
            .unwrap_or_default()
    }

    /// `resources`: what the skill says about files to read or to use.
    pub fn resource_entries(&self) -> Vec<FileEntry> {
        self.file_entries("resources")
    }

    /// `scripts`: what the skill says about files to run.
    pub fn script_entries(&self) -> Vec<FileEntry> {
        self.file_entries("scripts")
    }

    fn file_entries(&self, list: &str) -> Vec<FileEntry> {
        self.raw
            .get(list)
            .map(|node| read_file_entries(node, list, &mut |_, _, _| {}))
            .unwrap_or_default()
    }

    /// A text field without the blanks around it. A number is taken in its author's spelling; a
    /// boolean is not text.
    fn text(&self, key: &str) -> Option<&str> {
        let node = self.raw.get(key)?;
        match &node.value {
            Value::String(_) | Value::Number(_) => node.as_text().map(str::trim),
            _ => None,
        }
    }

    fn boolean(&self, key: &str) -> Option<bool> {
        self.raw.get(key)?.as_bool()
    }
}
