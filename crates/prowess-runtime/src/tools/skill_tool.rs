//! `skill_tool`: what a call of it really asks for.

use serde_json::{Value, json};

use super::arguments::CallArguments;
use crate::dialect::ToolWords;
use crate::message::ToolCall;
use crate::outcome::ToolOutcome;

/// The tool of a skill that a call is meant for.
pub(crate) struct Meant {
    pub(crate) skill: String,
    pub(crate) call: ToolCall,
}

/// What a call is meant for, under the same id.
pub(crate) fn meant(words: &ToolWords, call: &ToolCall) -> Result<Meant, ToolOutcome> {
    let mut arguments = CallArguments::new(words, &call.arguments)?;
    let skill = arguments.skill()?;
    let tool = arguments.required("tool")?;
    let inner = Value::Object(arguments.object("arguments")?);
    Ok(Meant { skill, call: ToolCall::new(&call.id, tool, inner) })
}

/// Whether arguments fit the schema of a tool. Nobody else has checked that: the model was not
/// told of the schema as one.
pub(crate) fn check(tool: &str, schema: &Value, arguments: &Value) -> Result<(), ToolOutcome> {
    let invalid = |cause: String| {
        ToolOutcome::failed("invalid_arguments", json!({"tool": tool, "cause": cause}))
    };
    let validator = jsonschema::validator_for(schema)
        .map_err(|error| invalid(format!("its schema is wrong: {error}")))?;
    check_with(&validator, tool, arguments)
}

/// Whether arguments fit, with a schema that was read before.
pub(crate) fn check_with(
    validator: &jsonschema::Validator,
    tool: &str,
    arguments: &Value,
) -> Result<(), ToolOutcome> {
    /// So many faults are told at once.
    const MOST: usize = 3;
    let faults: Vec<String> = validator
        .iter_errors(arguments)
        .take(MOST)
        .map(|error| match error.instance_path().as_str() {
            "" => error.to_string(),
            place => format!("{place}: {error}"),
        })
        .collect();
    match faults.is_empty() {
        true => Ok(()),
        false => {
            let data = json!({"tool": tool, "cause": faults.join("; ")});
            Err(ToolOutcome::failed("invalid_arguments", data))
        }
    }
}
