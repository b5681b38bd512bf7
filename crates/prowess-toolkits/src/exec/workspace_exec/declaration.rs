//! What a model is told about `workspace_exec` and its family. Every word of it is paid for in every
//! request.

use prowess_runtime::ToolDeclaration;
use serde_json::json;

use super::super::interactive::{flag, object, text};
use crate::policy::CommandPolicy;

/// `workspace_exec`, where these commands may be run.
pub(crate) fn workspace_exec(policy: &CommandPolicy) -> ToolDeclaration {
    let properties = json!({
        "command": text(policy.told().as_deref().unwrap_or("Command for bash.")),
        "cwd": text("Below work/ (default), out/, runs/ or skills/."),
        "env": {"type": "object", "additionalProperties": {"type": "string"}},
        "stdin": {"type": "string"},
        "timeout": {"type": "number", "description": "Seconds."},
        "yield_time_ms": {"type": "integer", "description": "Answer after that, even if it runs."},
        "background": flag("Answer at once."),
        "tty": flag("Give it a terminal."),
    });
    let description = "Run a command in the session's workspace, in a sandbox. $SKILLS_DIR holds \
        copies of the loaded skills that may be changed; write results to $OUTPUT_DIR. While \
        status is running, go on with its session_id.";
    ToolDeclaration::new("workspace_exec", description, object(&properties, &["command"]))
}

/// `workspace_save_artifact`
pub(crate) fn save_artifact() -> ToolDeclaration {
    let properties = json!({"path": text("Below work/, out/ or runs/.")});
    let description = "Keep a file of the workspace as an artifact.";
    ToolDeclaration::new("workspace_save_artifact", description, object(&properties, &["path"]))
}
