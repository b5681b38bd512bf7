//! Tools, resources, files and MCP servers that a skill declares.

use crate::configs::{
    Problem, read_file_entries, read_mcp_tool_configs, read_resource_configs, read_tool_configs,
};
use crate::lint::{Checker, Code, Document};
use crate::span::ByteRange;

pub(crate) fn check(document: &Document<'_>, checker: &mut Checker<'_>) {
    let mut report = |invalid: Code, range: ByteRange, problem: Problem, message: String| {
        let code = match problem {
            Problem::Invalid => invalid,
            Problem::UnknownKey => Code::UnknownField,
        };
        // Runtimes that do not know these fields say nothing about what is in them.
        if invalid.level(checker.profile).is_some() {
            checker.report(code, range, message);
        }
    };
    let field = |key: &str| document.mapping.get(key);
    // The files that are named, and by what.
    let mut named: Vec<(String, ByteRange, String)> = Vec::new();
    if let Some(node) = field("tool_configs") {
        let tools = read_tool_configs(node, &mut |range, problem, message| {
            report(Code::InvalidToolConfig, range, problem, message);
        });
        for tool in tools {
            let script = tool.script.filter(|_| tool.method.is_empty());
            named.extend(script.map(|file| (format!("tool '{}'", tool.name), tool.range, file)));
        }
    }
    if let Some(node) = field("resource_configs") {
        let resources = read_resource_configs(node, &mut |range, problem, message| {
            report(Code::InvalidResourceConfig, range, problem, message);
        });
        for it in resources {
            named.extend(it.file.map(|file| (format!("resource '{}'", it.name), it.range, file)));
        }
    }
    if let Some(node) = field("mcp_tool_configs") {
        read_mcp_tool_configs(node, &mut |range, problem, message| {
            report(Code::InvalidResourceConfig, range, problem, message);
        });
    }
    for list in ["resources", "scripts"] {
        if let Some(node) = field(list) {
            read_file_entries(node, list, &mut |range, problem, message| {
                report(Code::InvalidResourceConfig, range, problem, message);
            });
        }
    }
    let Some(file_exists) = document.file_exists else { return };
    for (what, range, file) in named.into_iter().filter(|(_, _, file)| !file_exists(file)) {
        let message = format!("The {what} is in the file '{file}', which the skill does not have");
        checker.report(Code::MissingConfigFile, range, message);
    }
}
