//! Tools, resources and MCP servers that a skill declares.

use crate::configs::{read_mcp_tool_configs, read_resource_configs, read_tool_configs};
use crate::lint::{Checker, Code, Document};

pub(crate) fn check(document: &Document<'_>, checker: &mut Checker<'_>) {
    let field = |key: &str| document.mapping.get(key);
    if let Some(node) = field("tool_configs") {
        read_tool_configs(node, &mut |range, message| {
            checker.report(Code::InvalidToolConfig, range, message);
        });
    }
    if let Some(node) = field("resource_configs") {
        read_resource_configs(node, &mut |range, message| {
            checker.report(Code::InvalidResourceConfig, range, message);
        });
    }
    if let Some(node) = field("mcp_tool_configs") {
        read_mcp_tool_configs(node, &mut |range, message| {
            checker.report(Code::InvalidResourceConfig, range, message);
        });
    }
}
