//! `load_skill_detail`

use prowess_catalog::{CatalogSkill, ResourcePath, ResourceScope};
use prowess_format::ResourceConfig;
use serde_json::json;

use super::arguments::CallArguments;
use crate::event::EventKind;
use crate::outcome::ToolOutcome;
use crate::session::Change;
use crate::tool::Invocation;

pub(super) async fn detail(
    invocation: Invocation<'_>,
    mut arguments: CallArguments<'_>,
) -> Result<ToolOutcome, ToolOutcome> {
    let Invocation { engine, snapshot, .. } = invocation;
    let wanted = arguments.skill()?;
    let resource = arguments.required("resource")?;
    let loaded = invocation.loaded(&wanted)?;
    let name = &loaded.name;
    let about = |failure: ToolOutcome| failure.about(name);
    let gone = |failure: ToolOutcome| about(failure.with_data("was_loaded", true));
    let skill = engine.find(snapshot, name).map_err(gone)?;
    engine.check_pinned(loaded, skill).await.map_err(about)?;
    let configs = skill.found().frontmatter.resource_configs();
    let config = configs.iter().find(|config| config.name == resource);
    let text = match config {
        Some(config) => configured(invocation, name, skill, config).await.map_err(about)?,
        None => file(invocation, name, skill, &configs, &resource).await.map_err(about)?,
    };
    engine.check_size(name, &resource, text.len()).map_err(about)?;
    let data = json!({"skill": name, "resource": resource, "text": text});
    let message = format!("Resource '{resource}' of skill '{name}' given");
    Ok(ToolOutcome::coded("detail", data)
        .with_note(EventKind::DetailGiven, message)
        .with_change(Change::Touch { skill: name.clone() })
        .about(name))
}

/// A resource that the skill declares: made now, written in the frontmatter, or in a file.
async fn configured(
    invocation: Invocation<'_>,
    name: &str,
    skill: &CatalogSkill,
    config: &ResourceConfig,
) -> Result<String, ToolOutcome> {
    if config.dynamic
        && let Some(method) = &config.method
        && let Some(answer) = invocation.engine.dynamic_resource(method, invocation)
    {
        let outcome = answer.await;
        return if outcome.is_error { Err(outcome) } else { Ok(outcome.content) };
    }
    if let Some(content) = &config.content {
        return Ok(content.clone());
    }
    let unreadable = |cause: &str| {
        let data = json!({"skill": name, "resource": config.name, "cause": cause});
        ToolOutcome::failed("resource_unreadable", data)
    };
    let Some(file) = &config.file else {
        return Err(unreadable("nothing here can make it"));
    };
    let path = ResourcePath::parse(file).map_err(|error| unreadable(&error.to_string()))?;
    invocation.engine.text_of(name, skill, &path).await
}

/// A resource by its path.
async fn file(
    invocation: Invocation<'_>,
    name: &str,
    skill: &CatalogSkill,
    configs: &[ResourceConfig],
    resource: &str,
) -> Result<String, ToolOutcome> {
    let engine = invocation.engine;
    let listing = skill.resources(ResourceScope::Recursive).await.map_err(|error| {
        let data = json!({"skill": name, "resource": resource, "cause": error.to_string()});
        ToolOutcome::failed("resource_unreadable", data)
    })?;
    let files = listing.resources;
    let path = ResourcePath::parse(resource).ok();
    let known = path.filter(|path| files.iter().any(|file| file.path == *path));
    if let Some(path) = known {
        return engine.text_of(name, skill, &path).await;
    }
    let configured = configs.iter().map(|config| config.name.clone());
    let files = files.iter().map(|file| file.path.as_str().to_owned());
    let (available, more) = engine.some(configured.chain(files).collect());
    let data = json!({"skill": name, "resource": resource, "available": available, "more": more});
    Err(ToolOutcome::failed("resource_not_found", data))
}
