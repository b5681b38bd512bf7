//! What a model is told about the tools. Every word is paid for in every request.

use prowess_runtime::ToolDeclaration;
use serde_json::{Value, json};

use super::Kind;
use super::ground::Ground;

/// The declaration of a tool where files are in a place.
pub(super) fn of(kind: Kind, ground: &Ground) -> ToolDeclaration {
    let (path, of_place, default) = match ground {
        Ground::Workspaces(_) => (
            "Path such as out/a.txt, or workspace://path or artifact://name[@version]",
            " of the workspace",
            "Default: the workspace. artifact:// lists artifacts.",
        ),
        Ground::Backend(_) => ("Path such as /notes/a.md", "", "Default: /"),
    };
    let written = match ground {
        Ground::Workspaces(_) => " Below work/ or out/.",
        Ground::Backend(_) => "",
    };
    let string = || json!({"type": "string"});
    let path = || json!({"type": "string", "description": path});
    let folder = || json!({"type": "string", "description": "Folder. Default: all."});
    match kind {
        Kind::Read => tool(
            "read_file",
            format!("Read a text file{of_place}."),
            &json!({
                "path": path(),
                "start_line": {"type": "integer", "description": "From 1."},
                "num_lines": {"type": "integer"},
            }),
            &["path"],
        ),
        Kind::List => tool(
            "ls",
            format!("List a folder{of_place}."),
            &json!({"path": {"type": "string", "description": default}}),
            &[],
        ),
        Kind::Glob => tool(
            "glob",
            "Find files whose path in the folder matches, such as **/*.md.".to_owned(),
            &json!({"pattern": string(), "path": folder()}),
            &["pattern"],
        ),
        Kind::Grep => tool(
            "grep",
            "Find files with a line that holds a text.".to_owned(),
            &json!({
                "pattern": {"type": "string", "description": "Literal text, no regular expression."},
                "path": folder(),
                "glob": {"type": "string", "description": "Only such files: *.md"},
                "output_mode": {
                    "type": "string",
                    "enum": ["files_with_matches", "content", "count"],
                },
            }),
            &["pattern"],
        ),
        Kind::Write => tool(
            "write_file",
            format!("Create a file, or replace all of it.{written}"),
            &json!({"path": string(), "content": string()}),
            &["path", "content"],
        ),
        Kind::Edit => tool(
            "edit_file",
            format!("Replace text in a file.{written}"),
            &json!({
                "path": string(),
                "old_string": {
                    "type": "string",
                    "description": "Exact, and only once in the file unless replace_all.",
                },
                "new_string": string(),
                "replace_all": {"type": "boolean"},
            }),
            &["path", "old_string", "new_string"],
        ),
        Kind::Execute => tool(
            "execute",
            "Run a shell command where the files are: /a.txt is ./a.txt there.".to_owned(),
            &json!({
                "command": string(),
                "timeout": {"type": "integer", "description": "Seconds."},
            }),
            &["command"],
        ),
    }
}

fn tool(
    name: &'static str,
    description: String,
    properties: &Value,
    required: &[&str],
) -> ToolDeclaration {
    let mut parameters = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        parameters["required"] = json!(required);
    }
    ToolDeclaration::new(name, description, parameters)
}
