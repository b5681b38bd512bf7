//! What a model is told about `skill_run`.

use prowess_runtime::ToolDeclaration;
use serde_json::{Value, json};

use crate::policy::CommandPolicy;

/// The name of the tool.
pub(crate) const NAME: &str = "skill_run";

/// What a model is told where these commands may be run. Every word of it is paid for in every
/// request.
pub(crate) fn declaration(policy: &CommandPolicy) -> ToolDeclaration {
    let text = |description: &str| json!({"type": "string", "description": description});
    let flag = |description: &str| json!({"type": "boolean", "description": description});
    let plain = |kind: &str| json!({"type": kind});
    let globs = |description: &str| json!({"type": "array", "items": {"type": "string"}, "description": description});
    let input = json!({
        "type": "object",
        "properties": {
            "from": text("artifact://name[@version], host:///path, workspace://path or skill://name/path"),
            "to": text("Default: work/inputs/<name>"),
            "mode": json!({"type": "string", "enum": ["copy", "link"]}),
            "pin": flag("Keep the artifact version taken first."),
        },
        "required": ["from"],
    });
    let outputs = json!({
        "type": "object",
        "description": "Files to collect, with limits.",
        "properties": {
            "globs": json!({"type": "array", "items": {"type": "string"}}),
            "inline": flag("Show their text."),
            "save": flag("Keep them as artifacts."),
            "name_template": text("Prefix of artifact names."),
            "max_files": plain("integer"),
            "max_file_bytes": plain("integer"),
            "max_total_bytes": plain("integer"),
        },
    });
    let listed = policy.told();
    let parameters: Value = json!({
        "type": "object",
        "properties": {
            "skill": text("Name of the skill."),
            "command": text(listed.as_deref().unwrap_or("Command for bash.")),
            "cwd": text("Default: the skill's folder. May begin with $WORK_DIR, $OUTPUT_DIR or $RUN_DIR."),
            "env": json!({"type": "object", "additionalProperties": {"type": "string"}}),
            "stdin": plain("string"),
            "editor_text": text("What $EDITOR writes."),
            "timeout": json!({"type": "number", "description": "Seconds."}),
            "inputs": json!({"type": "array", "items": input}),
            "output_files": globs("Globs of files to show: out/*.txt"),
            "outputs": outputs,
            "save_as_artifacts": flag("Keep output_files as artifacts."),
            "omit_inline_content": flag("Name files without their text."),
            "artifact_prefix": plain("string"),
        },
        "required": ["skill", "command"],
    });
    let how = if listed.is_some() { "without a shell" } else { "with bash" };
    let description = format!(
        "Run a command that a loaded skill's text asks for, {how}, in a sandbox. \
        It begins in the skill's folder, which is read-only; write results to out/ and other \
        files to work/. A ref in the result can be read later with read_file."
    );
    ToolDeclaration::new(NAME, description, parameters)
}
