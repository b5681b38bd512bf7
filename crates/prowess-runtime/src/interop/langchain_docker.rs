//! langchain-docker: `skills_loaded`, `skill_load_count`, `skills_version_loaded`, `skill_context`.

use serde_json::{Map, Value, json};

use super::Import;
use crate::session::SessionState;

pub(super) fn export(state: &SessionState) -> Value {
    let counts: Map<String, Value> =
        state.loaded.iter().map(|skill| (skill.name.clone(), skill.load_count.into())).collect();
    let versions: Map<String, Value> = state
        .loaded
        .iter()
        .filter_map(|skill| Some((skill.name.clone(), skill.version.clone()?.into())))
        .collect();
    json!({
        "skills_loaded": state.loaded_names(),
        "skill_load_count": counts,
        "skills_version_loaded": versions,
        "skill_context": state.context,
    })
}

pub(super) fn import(import: &mut Import<'_>, values: &Map<String, Value>) {
    let mapping = |key: &str| values.get(key).and_then(Value::as_object);
    for key in ["skill_load_count", "skills_version_loaded", "skill_context"] {
        if mapping(key).is_none() && values.get(key).is_some_and(|value| !value.is_null()) {
            import.problem(format!("`{key}` is no mapping"));
        }
    }
    for name in import.names(values, "skills_loaded") {
        let count = mapping("skill_load_count").and_then(|counts| counts.get(&name)?.as_u64());
        let version = mapping("skills_version_loaded").and_then(|versions| versions.get(&name));
        let version = version.map(|version| match version {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        let Some(loaded) = import.load(&name) else { continue };
        if let Some(count) = count {
            loaded.load_count = u32::try_from(count).unwrap_or(u32::MAX);
        }
        let current = loaded.version.clone();
        if let Some(version) = version
            && current.as_ref() != Some(&version)
        {
            let now = current.as_deref().unwrap_or("none");
            import.problem(format!("'{name}' was loaded as version {version}; it is {now} now"));
        }
    }
    if let Some(context) = mapping("skill_context") {
        import.state.context =
            context.iter().map(|(skill, value)| (skill.clone(), value.clone())).collect();
    }
}
