//! `load_skill_detail`

use prowess_catalog::{CatalogSkill, ResourcePath, ResourceScope};
use prowess_format::ResourceConfig;
use serde_json::{Map, Value, json};

use super::arguments::CallArguments;
use crate::event::EventKind;
use crate::message::ToolCall;
use crate::outcome::ToolOutcome;
use crate::session::Change;
use crate::tool::Invocation;

pub(super) async fn detail(
    invocation: Invocation<'_>,
    mut arguments: CallArguments<'_>,
) -> Result<ToolOutcome, ToolOutcome> {
    let wanted = arguments.skill()?;
    let resource = arguments.required("resource")?;
    give(invocation, &wanted, &resource, &Value::Null).await
}

/// Gives a resource of a loaded skill. What is made now gets those of the arguments that it takes.
pub(crate) async fn give(
    invocation: Invocation<'_>,
    wanted: &str,
    resource: &str,
    arguments: &Value,
) -> Result<ToolOutcome, ToolOutcome> {
    let Invocation { engine, snapshot, .. } = invocation;
    let loaded = invocation.loaded(wanted)?;
    let name = &loaded.name;
    let about = |failure: ToolOutcome| failure.about(name);
    let gone = |failure: ToolOutcome| about(failure.with_data("was_loaded", true));
    let skill = engine.find(snapshot, name).map_err(gone)?;
    let skill = &*engine.pinned(loaded, skill).await.map_err(about)?;
    let text = text(invocation, name, skill, resource, arguments).await.map_err(about)?;
    let data = json!({"skill": name, "resource": resource, "text": text});
    let message = format!("Resource '{resource}' of skill '{name}' given");
    Ok(ToolOutcome::coded("detail", data)
        .with_note(EventKind::DetailGiven, message)
        .with_change(Change::Touch { skill: name.clone() })
        .about(name))
}

/// The text of a resource of a skill. What is made now gets those of the arguments that it takes.
pub(crate) async fn text(
    invocation: Invocation<'_>,
    name: &str,
    skill: &CatalogSkill,
    resource: &str,
    arguments: &Value,
) -> Result<String, ToolOutcome> {
    let configs = skill.found().frontmatter.resource_configs();
    let text = match configs.iter().find(|config| config.name == resource) {
        Some(config) => configured(invocation, name, skill, config, arguments).await?,
        None => file(invocation, name, skill, &configs, resource).await?,
    };
    invocation.engine.check_size(name, resource, text.len())?;
    Ok(text)
}

/// A resource that the skill declares: made now, written in the frontmatter, or in a file.
async fn configured(
    invocation: Invocation<'_>,
    name: &str,
    skill: &CatalogSkill,
    config: &ResourceConfig,
    arguments: &Value,
) -> Result<String, ToolOutcome> {
    if config.dynamic
        && let Some(method) = &config.method
        && let Some(handler) = invocation.engine.inner.handlers.method(skill.name(), method)
    {
        let takes = |name: &str| handler.parameters().iter().any(|it| it.name == name);
        let given = arguments.as_object().into_iter().flatten();
        let mut arguments: Map<String, Value> = given
            .filter(|(name, _)| takes(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        if takes("resource") {
            arguments.insert("resource".to_owned(), json!(config.name));
        }
        let arguments = Value::Object(arguments);
        let call = ToolCall { arguments, ..invocation.call.clone() };
        let outcome = handler.call(Invocation { call: &call, ..invocation }).await;
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
    // What a name stands for is not named again.
    let is_named = |path: &str| configs.iter().any(|config| config.file.as_deref() == Some(path));
    let files = files.iter().map(|file| file.path.as_str().to_owned());
    let files = files.filter(|path| !is_named(path));
    let (available, more) = engine.some(configured.chain(files).collect());
    let data = json!({"skill": name, "resource": resource, "available": available, "more": more});
    Err(ToolOutcome::failed("resource_not_found", data))
}
