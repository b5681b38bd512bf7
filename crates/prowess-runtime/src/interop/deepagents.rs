//! DeepAgents: `skills_metadata`, `skills_loaded`, `skill_resources`.

use std::path::Path;

use prowess_catalog::{CatalogSkill, ResourceKind, Snapshot};
use serde_json::{Map, Value, json};

use super::Import;
use crate::session::{KnownResources, KnownSkills, SessionState};

pub(super) fn export(state: &SessionState, snapshot: &Snapshot) -> Value {
    let metadata: Option<Vec<Value>> =
        state.skills.map(|_| snapshot.skills().iter().map(metadata).collect());
    let resources: Map<String, Value> = state
        .loaded
        .iter()
        .map(|skill| {
            let folder = snapshot.get(&skill.name).ok().map(CatalogSkill::path);
            let folder = folder.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
            let resources: Vec<Value> = skill
                .resources
                .named
                .iter()
                .map(|resource| {
                    json!({
                        "path": folder.join(&resource.path).display().to_string(),
                        "type": resource.kind,
                        "skill_name": skill.name,
                    })
                })
                .collect();
            (skill.name.clone(), Value::Array(resources))
        })
        .collect();
    json!({
        "skills_metadata": metadata,
        "skills_loaded": state.loaded_names(),
        "skill_resources": resources,
    })
}

/// The seven keys of `SkillMetadata`.
fn metadata(skill: &CatalogSkill) -> Value {
    let frontmatter = &skill.found().frontmatter;
    let texts: Map<String, Value> = frontmatter
        .metadata()
        .into_iter()
        .flat_map(|metadata| metadata.iter())
        .filter_map(|entry| Some((entry.key.clone(), entry.value.as_text()?.into())))
        .collect();
    let tools: Vec<String> =
        frontmatter.allowed_tools().unwrap_or_default().iter().map(ToString::to_string).collect();
    json!({
        "path": skill.path().display().to_string(),
        "name": skill.name(),
        "description": skill.found().description(),
        "license": frontmatter.license(),
        "compatibility": frontmatter.compatibility(),
        "metadata": texts,
        "allowed_tools": tools,
    })
}

pub(super) fn import(import: &mut Import<'_>, values: &Map<String, Value>) {
    // Missing or null: not discovered yet. An empty list is a discovery of nothing.
    if values.get("skills_metadata").is_some_and(|metadata| !metadata.is_null()) {
        import.state.skills = Some(KnownSkills::of(import.snapshot));
    }
    for name in import.names(values, "skills_loaded") {
        import.load(&name);
    }
    // They wait for the next request of the model there; here the caller pins them in a turn.
    for name in import.names(values, "pinned_skills") {
        import.problem(format!("'{name}' was to be pinned; pin it when the next turn begins"));
    }
    let resources = match values.get("skill_resources") {
        None | Some(Value::Null) => return,
        Some(Value::Object(resources)) => resources,
        Some(_) => return import.problem("`skill_resources` is no mapping"),
    };
    for (name, items) in resources {
        let has_path = |item: &Value| item.get("path").is_some_and(Value::is_string);
        if !items.as_array().is_some_and(|items| items.iter().all(has_path)) {
            import.problem(format!("`skill_resources` of '{name}' has items without a path"));
        }
        let folder = import.snapshot.get(name).ok().map(CatalogSkill::path);
        let folder = folder.as_deref().and_then(Path::parent).map(Path::to_owned);
        let paths =
            items.as_array().map(Vec::as_slice).unwrap_or_default().iter().filter_map(|item| {
                let path = Path::new(item.get("path")?.as_str()?);
                let inside = folder.as_ref().and_then(|folder| path.strip_prefix(folder).ok());
                let kind = match item.get("type").and_then(Value::as_str) {
                    Some("script") => ResourceKind::Script,
                    Some("reference") => ResourceKind::Reference,
                    Some("asset") => ResourceKind::Asset,
                    _ => ResourceKind::Other,
                };
                Some((inside.unwrap_or(path).display().to_string(), kind))
            });
        let known = KnownResources::of_paths(paths);
        // Those of skills that are not loaded are found again when they are.
        if let Some(loaded) = import.state.loaded_mut(name) {
            loaded.resources = known;
        }
    }
}
