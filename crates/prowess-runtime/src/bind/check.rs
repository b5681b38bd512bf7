//! What is wrong with the tools and resources that a skill declares.

use prowess_catalog::{CatalogSkill, Gates, Resource, ResourcePath, Trust};
use prowess_format::yaml::Node;
use prowess_format::{
    ArgumentKind, ByteRange, Code, Diagnostic, Frontmatter, Level, ResourceConfig, Span,
    ToolArgument, ToolConfig, nearest_name,
};

use super::tool::{LOAD_DETAILS, load_details_takes};
use crate::gate::ToolTable;
use crate::handlers::{HandlerTable, Parameter, Presence};

/// The most characters of a tool's name that providers of models take.
const LONGEST_NAME: usize = 64;

/// The files of a skill, as far as they are needed.
pub(super) enum Files {
    /// It names none.
    Unneeded,
    /// It has these.
    Known(Vec<Resource>),
    /// They cannot be listed; why.
    Unreadable(String),
}

/// Something that keeps a skill from being used, or a part of it from counting.
pub(super) struct Fault {
    code: Code,
    level: Level,
    range: ByteRange,
    message: String,
    help: Option<String>,
}

impl Fault {
    /// With its place in the text, if that is at hand.
    pub(super) fn diagnostic(self, text: Option<&str>, path: &str) -> Diagnostic {
        let found = Diagnostic::new(self.code, self.level, self.message).with_path(path);
        let found = match text {
            Some(text) => found.with_span(Span::locate(text, self.range)),
            None => found,
        };
        match self.help {
            Some(help) => found.with_help(help),
            None => found,
        }
    }
}

/// What is wrong with what a skill declares, in the order of the text.
pub(super) fn faults(
    skill: &str,
    frontmatter: &Frontmatter,
    handlers: &HandlerTable,
    table: &ToolTable,
    files: &Files,
) -> Vec<Fault> {
    let (tools, resources) = (frontmatter.tool_configs(), frontmatter.resource_configs());
    let mut check = Check { skill, handlers, files, resources: &resources, faults: Vec::new() };
    for problem in frontmatter.config_problems() {
        check.fault(problem.code, problem.range, problem.message, None);
    }
    for tool in tools.iter().filter(|tool| table.get(&tool.name).is_none()) {
        check.tool(tool);
    }
    for resource in &resources {
        check.resource(resource);
    }
    check.faults.sort_by_key(|fault| fault.range.start);
    check.faults
}

/// Tools that a skill declares without bringing them, where that does not count, in the order of the
/// text.
pub(super) fn idle(skill: &CatalogSkill, table: &ToolTable) -> Vec<Fault> {
    if skill.gates() == Gates::AllTools || skill.trust() != Trust::Trusted {
        return Vec::new();
    }
    let frontmatter = &skill.found().frontmatter;
    let configured = frontmatter.tool_configs().into_iter().map(|it| (it.name, it.range));
    let configured = configured.filter(|(tool, _)| table.get(tool).is_some());
    let metadata = frontmatter.raw().get("metadata").map(|node| node.range).unwrap_or_default();
    let included = frontmatter.include_tools().into_iter().map(|tool| (tool, metadata));
    let fault = |(tool, range): (String, ByteRange)| Fault {
        code: Code::InvalidToolConfig,
        level: Level::Warning,
        range,
        message: format!(
            "The tool '{tool}' is not the skill's own: it does not wait for the skill"
        ),
        help: Some("leave it out; skills of the host's own folders may gate its tools".to_owned()),
    };
    let mut idle: Vec<Fault> = configured.chain(included).map(fault).collect();
    idle.sort_by_key(|fault| fault.range.start);
    idle
}

struct Check<'a> {
    skill: &'a str,
    handlers: &'a HandlerTable,
    files: &'a Files,
    resources: &'a [ResourceConfig],
    faults: Vec<Fault>,
}

impl Check<'_> {
    fn fault(&mut self, code: Code, range: ByteRange, message: String, help: Option<String>) {
        self.faults.push(Fault { code, level: Level::Error, range, message, help });
    }

    fn tool(&mut self, tool: &ToolConfig) {
        let name = &tool.name;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.len() > LONGEST_NAME || !name.chars().all(is_plain) {
            let message = format!("The tool '{name}' has a name that models cannot call");
            let help = format!("use at most {LONGEST_NAME} of a-z, A-Z, 0-9, '_' and '-'");
            self.fault(Code::InvalidToolConfig, tool.range, message, Some(help));
        }
        match (tool.method.as_str(), &tool.script) {
            ("", None) => {
                let message =
                    format!("The tool '{name}' is bound to nothing, and no tool of the host");
                let help = Some("name a 'method' or a 'script'".to_owned());
                self.fault(Code::UnknownHandler, tool.range, message, help);
            }
            ("", Some(script)) => self.file(tool.range, &format!("The tool '{name}'"), script),
            // It has both, which is a problem of its own.
            (_, Some(_)) => {}
            (method, None) => self.method(tool, method),
        }
    }

    fn method(&mut self, tool: &ToolConfig, method: &str) {
        if let Some(handler) = self.handlers.method(self.skill, method) {
            let handler = handler.clone();
            return self.arguments(tool, method, handler.parameters());
        }
        if method != LOAD_DETAILS {
            return self.unknown(tool.range, &format!("tool '{}'", tool.name), method);
        }
        let takes = self.details_take();
        self.arguments(tool, method, &takes);
        for argument in &tool.args {
            if argument.name != "resource" {
                continue;
            }
            let named = argument.default.iter().chain(&argument.choices);
            let named = named.filter_map(Node::as_text);
            let missing: Vec<&str> = named.filter(|name| !self.has_resource(name)).collect();
            for name in missing {
                let message = format!(
                    "The tool '{}' gives the resource '{name}', which the skill does not have",
                    tool.name
                );
                self.fault(Code::MissingConfigFile, argument.range, message, None);
            }
        }
    }

    /// What `load_details` takes: which resource, and what those take that are made when they are
    /// asked for.
    fn details_take(&self) -> Vec<Parameter> {
        let mut takes = load_details_takes().to_vec();
        let made = self.resources.iter().filter(|resource| resource.dynamic);
        let methods = made.filter_map(|resource| resource.method.as_deref());
        for handler in methods.filter_map(|method| self.handlers.method(self.skill, method)) {
            for parameter in handler.parameters() {
                if !takes.iter().any(|known| known.name == parameter.name) {
                    takes.push(Parameter { presence: Presence::Optional, ..parameter.clone() });
                }
            }
        }
        takes
    }

    fn has_resource(&self, name: &str) -> bool {
        let is_file = match self.files {
            Files::Known(files) => files.iter().any(|file| file.path.as_str() == name),
            Files::Unneeded | Files::Unreadable(_) => false,
        };
        is_file || self.resources.iter().any(|resource| resource.name == name)
    }

    fn unknown(&mut self, range: ByteRange, what: &str, method: &str) {
        let known = self.handlers.names(self.skill);
        let help = match nearest_name(method, known.iter().map(String::as_str)) {
            Some(nearest) => format!("did you mean '{nearest}'?"),
            None if known.is_empty() => {
                "give the engine a toolkit that offers it, or bind to a 'script'".to_owned()
            }
            None => format!("there are: {}", known.join(", ")),
        };
        let message = format!("The {what} is bound to '{method}', which nobody here offers");
        self.fault(Code::UnknownHandler, range, message, Some(help));
    }

    fn arguments(&mut self, tool: &ToolConfig, method: &str, parameters: &[Parameter]) {
        let names = || parameters.iter().map(|it| it.name.as_str());
        for argument in &tool.args {
            let Some(parameter) = parameters.iter().find(|it| it.name == argument.name) else {
                let message = format!(
                    "The tool '{}' has an argument '{}', which '{method}' does not take",
                    tool.name, argument.name
                );
                let help = match nearest_name(&argument.name, names()) {
                    Some(nearest) => format!("did you mean '{nearest}'?"),
                    None if parameters.is_empty() => "it takes none".to_owned(),
                    None => format!("it takes: {}", names().collect::<Vec<_>>().join(", ")),
                };
                self.fault(Code::HandlerMismatch, argument.range, message, Some(help));
                continue;
            };
            let is_same = parameter.kind == argument.kind
                || (parameter.kind == ArgumentKind::Number
                    && argument.kind == ArgumentKind::Integer);
            if !is_same {
                let message = format!(
                    "The argument '{}' of the tool '{}' is of type {}; '{method}' takes type {}",
                    argument.name,
                    tool.name,
                    argument.kind.as_str(),
                    parameter.kind.as_str()
                );
                self.fault(Code::HandlerMismatch, argument.range, message, None);
            }
        }
        let is_given = |parameter: &Parameter| {
            let has_default =
                |it: &ToolArgument| it.default.as_ref().is_some_and(|it| !it.is_null());
            let mut named = tool.args.iter().filter(|it| it.name == parameter.name);
            named.any(|it| it.required || has_default(it))
        };
        let needed = parameters.iter().filter(|it| it.presence == Presence::Required);
        for parameter in needed.filter(|parameter| !is_given(parameter)) {
            let message = format!(
                "The tool '{}' does not always have the argument '{}', which '{method}' needs",
                tool.name, parameter.name
            );
            let help = Some("declare it with 'required: true' or with a default".to_owned());
            self.fault(Code::HandlerMismatch, tool.range, message, help);
        }
    }

    fn resource(&mut self, resource: &ResourceConfig) {
        let what = format!("resource '{}'", resource.name);
        if let Some(file) = &resource.file {
            self.file(resource.range, &format!("The {what}"), file);
        }
        if !resource.dynamic {
            return;
        }
        let has_text = resource.file.is_some() || resource.content.is_some();
        let Some(method) = &resource.method else {
            if has_text {
                return;
            }
            let message = format!("The {what} is dynamic and names no method");
            return self.fault(Code::UnknownHandler, resource.range, message, None);
        };
        let Some(handler) = self.handlers.method(self.skill, method) else {
            return self.unknown(resource.range, &what, method);
        };
        let needs = |it: &&Parameter| it.presence == Presence::Required && it.name != "resource";
        if let Some(parameter) = handler.parameters().iter().find(needs) {
            let message =
                format!("The {what} is bound to '{method}', which needs '{}'", parameter.name);
            self.fault(Code::HandlerMismatch, resource.range, message, None);
        }
    }

    fn file(&mut self, range: ByteRange, what: &str, file: &str) {
        let message = match (ResourcePath::parse(file), self.files) {
            (Err(error), _) => format!("{what} names the file '{file}': {error}"),
            (Ok(path), Files::Known(files)) => {
                if files.iter().any(|it| it.path == path) {
                    return;
                }
                format!("{what} is in the file '{file}', which the skill does not have")
            }
            (Ok(_), Files::Unreadable(why)) => {
                format!("{what} is in the file '{file}', and the files cannot be listed: {why}")
            }
            (Ok(_), Files::Unneeded) => return,
        };
        self.fault(Code::MissingConfigFile, range, message, None);
    }
}
