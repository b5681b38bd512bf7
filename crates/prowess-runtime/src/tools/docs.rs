//! `skill_list_docs`, `skill_select_docs`

use prowess_catalog::ResourcePath;
use serde_json::{Value, json};

use super::arguments::CallArguments;
use super::load::{docs_message, selection};
use crate::disclose::{GivenDoc, WantedDocs, session_name};
use crate::event::EventKind;
use crate::outcome::ToolOutcome;
use crate::session::{Change, DocMode};
use crate::tool::Invocation;
use crate::visibility::Visibility;

pub(super) async fn list(
    invocation: Invocation<'_>,
    mut arguments: CallArguments<'_>,
) -> Result<ToolOutcome, ToolOutcome> {
    let Invocation { engine, snapshot, .. } = invocation;
    let skill = engine.find(snapshot, &arguments.skill()?)?;
    let name = session_name(snapshot, skill);
    let is_manual = engine.visibility(skill) == Visibility::ManualOnly;
    if is_manual && !invocation.state.is_loaded(&name) {
        return Err(ToolOutcome::failed("manual_only", json!({"skill": name})).about(name));
    }
    let docs = engine.doc_paths(skill).await.map_err(|failure| failure.about(&name))?;
    let docs: Vec<&str> = docs.iter().map(ResourcePath::as_str).collect();
    Ok(ToolOutcome::coded("docs_listed", json!({"skill": name, "docs": docs})).about(name))
}

pub(super) async fn select(
    invocation: Invocation<'_>,
    mut arguments: CallArguments<'_>,
) -> Result<ToolOutcome, ToolOutcome> {
    let Invocation { engine, snapshot, call, .. } = invocation;
    let wanted_skill = arguments.skill()?;
    let paths = arguments.texts("docs")?;
    let all = arguments.flag("include_all_docs")?;
    let mode = match arguments.text("mode")?.map(|mode| mode.trim().to_lowercase()).as_deref() {
        None | Some("" | "replace") => DocMode::Replace,
        Some("add") => DocMode::Add,
        Some("clear") => DocMode::Clear,
        Some(other) => {
            let cause = format!("mode '{other}' is none of add, replace and clear");
            return Err(arguments.invalid(&cause));
        }
    };
    let loaded = invocation.loaded(&wanted_skill)?;
    let name = &loaded.name;
    let about = |failure: ToolOutcome| failure.about(name);
    let docs = match (mode, all) {
        (DocMode::Clear, _) => Vec::new(),
        _ if !all && paths.is_empty() => Vec::new(),
        (_, all) => {
            let skill = engine.find(snapshot, name).map_err(about)?;
            let skill = &*engine.pinned(loaded, skill).await.map_err(about)?;
            let wanted = if all { WantedDocs::All } else { WantedDocs::These(&paths) };
            engine.docs(name, skill, wanted).await.map_err(about)?
        }
    };
    let all = all && mode != DocMode::Clear;
    let mut selected = selection(&docs, all, None);
    let mut given = Vec::new();
    for doc in docs {
        if !engine.is_given(loaded.docs.get(&doc.path), &doc).await? {
            given.push(doc);
        }
    }
    for doc in &mut selected.docs {
        if given.iter().any(|new| new.path == doc.path) {
            doc.call = Some(call.id.clone());
        }
    }
    // What will be selected when this is done.
    let mut paths: Vec<String> = match mode {
        DocMode::Add => loaded.docs.paths().into_iter().map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    for doc in &selected.docs {
        if !paths.contains(&doc.path) {
            paths.push(doc.path.clone());
        }
    }
    let texts: Vec<Value> = given.iter().map(GivenDoc::to_json).collect();
    let include_all = all || (mode == DocMode::Add && loaded.docs.all);
    let data = json!({
        "skill": name,
        "mode": mode,
        "selected_docs": paths,
        "include_all_docs": include_all,
        "given": texts,
    });
    let message = match given.is_empty() {
        true => format!("Docs of skill '{name}' selected: {}", paths.len()),
        false => docs_message(name, &given),
    };
    let change = Change::SelectDocs { skill: name.clone(), mode, docs: selected };
    Ok(ToolOutcome::coded("docs_selected", data)
        .pinned()
        .with_note(EventKind::DocsSelected, message)
        .with_change(change)
        .about(name))
}
