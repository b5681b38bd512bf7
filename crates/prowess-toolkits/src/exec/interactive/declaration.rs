//! What a model is told about the tools that talk to commands. Every word of it is paid for in every
//! request.

use prowess_runtime::ToolDeclaration;
use serde_json::{Map, Value, json};

use super::super::declaration;
use super::session::Family;
use crate::policy::CommandPolicy;

pub(crate) fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn integer(description: &str) -> Value {
    json!({"type": "integer", "description": description})
}

pub(crate) fn flag(description: &str) -> Value {
    json!({"type": "boolean", "description": description})
}

pub(crate) fn object(properties: &Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

/// `skill_exec`
pub(crate) fn skill_exec() -> ToolDeclaration {
    let description = "Start a skill's command that asks questions or runs long. Takes what \
        skill_run takes. While status is running, go on with its session_id.";
    // What the others mean is said there.
    let mut properties = Map::new();
    let known = declaration::declaration(&CommandPolicy::default()).parameters;
    for name in ["skill", "command", "cwd", "env", "stdin", "timeout", "output_files"] {
        let mut property = known["properties"][name].clone();
        if let Some(fields) = property.as_object_mut() {
            fields.shift_remove("description");
        }
        properties.insert(name.to_owned(), property);
    }
    properties.insert("tty".to_owned(), flag("Give it a terminal."));
    properties.insert("yield_ms".to_owned(), integer("Longest wait for output."));
    properties.insert("poll_lines".to_owned(), json!({"type": "integer"}));
    let parameters = object(&Value::Object(properties), &["skill", "command"]);
    ToolDeclaration::new("skill_exec", description, parameters)
}

/// `skill_write_stdin`, `workspace_write_stdin`
pub(crate) fn write_stdin(family: Family) -> ToolDeclaration {
    let properties = json!({
        "session_id": {"type": "string"},
        "chars": text("\\u0004 at the end closes the input."),
        "submit": flag("Add a line break."),
        "yield_ms": {"type": "integer"},
        "poll_lines": {"type": "integer"},
    });
    let (name, description) = match family {
        Family::Skill => ("skill_write_stdin", "Type into a session, and see what it answers."),
        Family::Workspace => (
            "workspace_write_stdin",
            "Type into a session, and see what it answers. Type nothing to see new output.",
        ),
    };
    ToolDeclaration::new(name, description, object(&properties, &["session_id"]))
}

/// `skill_poll_session`
pub(crate) fn poll_session() -> ToolDeclaration {
    let properties = json!({
        "session_id": {"type": "string"},
        "offset": integer("Line to begin at, to read again."),
        "yield_ms": {"type": "integer"},
        "poll_lines": {"type": "integer"},
    });
    let description = "See a session's new output, and its result once it has exited.";
    ToolDeclaration::new("skill_poll_session", description, object(&properties, &["session_id"]))
}

/// `skill_kill_session`, `workspace_kill_session`
pub(crate) fn kill_session(family: Family) -> ToolDeclaration {
    let name = match family {
        Family::Skill => "skill_kill_session",
        Family::Workspace => "workspace_kill_session",
    };
    let properties = json!({"session_id": {"type": "string"}});
    ToolDeclaration::new(name, "End a session.", object(&properties, &["session_id"]))
}
