//! The tools by which a model loads skills.

mod arguments;
mod detail;
mod docs;
mod load;
mod loaded;
mod unload;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::tool::{Tool, ToolDeclaration};

/// All load tools.
pub(crate) fn load_tools() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(load::LoadSkill::new()),
        Arc::new(unload::UnloadSkill::new()),
        Arc::new(loaded::ListLoadedSkills::new()),
        Arc::new(docs::ListDocs::new()),
        Arc::new(docs::SelectDocs::new()),
        Arc::new(detail::LoadSkillDetail::new()),
    ]
}

/// Whether a load tool has this name.
pub(crate) fn is_load_tool(name: &str) -> bool {
    matches!(
        name,
        "load_skill"
            | "unload_skill"
            | "list_loaded_skills"
            | "skill_list_docs"
            | "skill_select_docs"
            | "load_skill_detail"
    )
}

/// A declaration with these parameters, the first `required` of which must be given.
fn declaration(
    name: &str,
    description: &str,
    parameters: &[(&str, Value)],
    required: usize,
) -> ToolDeclaration {
    let properties: serde_json::Map<String, Value> =
        parameters.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    let names: Vec<&str> = parameters.iter().take(required).map(|(name, _)| *name).collect();
    let mut schema = json!({"type": "object", "properties": properties});
    if !names.is_empty() {
        schema["required"] = json!(names);
    }
    ToolDeclaration::new(name, description, schema)
}

/// The parameter that names a skill.
fn skill_parameter() -> (&'static str, Value) {
    ("skill", json!({"type": "string", "description": "Name of the skill."}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_load_tool_is_known_by_its_name() {
        for tool in load_tools() {
            assert!(is_load_tool(&tool.declaration().name), "{}", tool.declaration().name);
        }
        assert!(!is_load_tool("read_file"));
    }
}
