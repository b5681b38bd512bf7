//! trpc-agent-go: `temp:skill:loaded_by_agent:<agent>/<skill>` and their like.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Import;
use crate::session::{AgentName, SelectedDoc, SessionState};

const LOADED: &str = "temp:skill:loaded_by_agent:";
const DOCS: &str = "temp:skill:docs_by_agent:";
const ORDER: &str = "temp:skill:loaded_order_by_agent:";
const OLD_LOADED: &str = "temp:skill:loaded:";
const OLD_DOCS: &str = "temp:skill:docs:";
const OLD_ORDER: &str = "temp:skill:loaded_order:";

pub(super) fn export(state: &SessionState, agent: &AgentName) -> Value {
    let agent = agent.as_str();
    let mut values = Map::new();
    for skill in &state.loaded {
        values.insert(format!("{LOADED}{agent}/{}", skill.name), "1".into());
        let docs = match (skill.docs.all, skill.docs.paths()) {
            (true, _) => "*".to_owned(),
            (false, paths) if paths.is_empty() => continue,
            (false, paths) => json!(paths).to_string(),
        };
        values.insert(format!("{DOCS}{agent}/{}", skill.name), docs.into());
    }
    if !state.loaded.is_empty() {
        let order = json!(state.touch_order()).to_string();
        values.insert(format!("{ORDER}{agent}"), order.into());
    }
    Value::Object(values)
}

pub(super) fn import(import: &mut Import<'_>, values: &Map<String, Value>, agent: &AgentName) {
    let agent = agent.as_str();
    // A key that is there with nothing in it was cleared.
    let set = |value: &Value| value.as_str().map(str::to_owned).filter(|text| !text.is_empty());
    let mut loaded: BTreeMap<String, ()> = BTreeMap::new();
    let mut docs: BTreeMap<String, String> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    for (key, value) in values {
        let Some(text) = set(value) else { continue };
        let own = |prefix: &str| {
            let rest = key.strip_prefix(prefix)?;
            rest.strip_prefix(&format!("{agent}/")).map(str::to_owned)
        };
        if let Some(skill) = own(LOADED).or_else(|| key.strip_prefix(OLD_LOADED).map(str::to_owned))
        {
            loaded.insert(skill, ());
        } else if let Some(skill) = own(DOCS) {
            docs.insert(skill, text);
        } else if let Some(skill) = key.strip_prefix(OLD_DOCS) {
            docs.entry(skill.to_owned()).or_insert(text);
        } else if *key == format!("{ORDER}{agent}") || key == OLD_ORDER {
            match serde_json::from_str::<Vec<String>>(&text) {
                Ok(names) => order = names,
                Err(_) => import.problem(format!("`{key}` is no list of names")),
            }
        } else if key.starts_with("temp:skill:") && !key.contains("_by_agent:") {
            import.problem(format!("`{key}` means nothing here"));
        }
    }
    // Oldest touch first; who is not in the order comes before, by name.
    let (mut names, in_order): (Vec<String>, Vec<String>) =
        loaded.into_keys().partition(|name| !order.contains(name));
    names.extend(order.into_iter().filter(|name| in_order.contains(name)));
    for name in names {
        let selection = docs.remove(&name);
        if import.load(&name).is_none() {
            continue;
        }
        let Some(selection) = selection else { continue };
        let paths: Vec<String> = match selection.as_str() {
            "*" => Vec::new(),
            list => serde_json::from_str(list).unwrap_or_else(|_| {
                import.problem(format!("the docs of '{name}' are no list of paths"));
                Vec::new()
            }),
        };
        if let Some(loaded) = import.state.loaded_mut(&name) {
            loaded.docs.all = selection == "*";
            // What identifies their text is known when they are given.
            loaded.docs.docs = paths.iter().map(|path| SelectedDoc::new(path, None)).collect();
        }
    }
}
