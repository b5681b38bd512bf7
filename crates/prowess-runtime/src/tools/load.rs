//! `load_skill`

use prowess_catalog::CatalogSkill;
use serde_json::{Value, json};

use super::arguments::CallArguments;
use crate::disclose::{GivenDoc, Opened, SkillText, WantedDocs, folder_of, session_name};
use crate::event::EventKind;
use crate::outcome::ToolOutcome;
use crate::session::{Change, DocMode, DocSelection, KnownResources, LoadedSkill, SelectedDoc};
use crate::tool::Invocation;
use crate::visibility::Visibility;

/// What is asked for.
struct Request {
    skill: String,
    docs: Vec<String>,
    all_docs: bool,
    arguments: Option<String>,
}

impl Request {
    fn wanted(&self) -> Option<WantedDocs<'_>> {
        match (self.all_docs, self.docs.as_slice()) {
            (true, _) => Some(WantedDocs::All),
            (false, []) => None,
            (false, docs) => Some(WantedDocs::These(docs)),
        }
    }
}

pub(super) async fn load(
    invocation: Invocation<'_>,
    mut arguments: CallArguments<'_>,
) -> Result<ToolOutcome, ToolOutcome> {
    let request = Request {
        skill: arguments.skill()?,
        docs: arguments.texts("docs")?,
        all_docs: arguments.flag("include_all_docs")?,
        arguments: arguments.typed()?,
    };
    let ignored = arguments.ignored();
    let found = invocation.engine.find(invocation.snapshot, &request.skill);
    let name = match &found {
        Ok(skill) => session_name(invocation.snapshot, skill),
        Err(_) => request.skill.clone(),
    };
    let outcome = match (invocation.state.loaded(&name), found) {
        // What a session has loaded stays, even if nobody else can find it any more.
        (Some(loaded), found) => load_again(invocation, &request, loaded, found.ok()).await?,
        (None, Ok(skill)) => match load_first(invocation, &request, &name, skill).await {
            // It was edited since it was found. Nothing is pinned yet: what is there now counts.
            Err(failure) if failure.code == "skill_changed" => {
                let snapshot = invocation.engine.look_again().await;
                let skill = invocation.engine.find(&snapshot, &name)?;
                let invocation = Invocation { snapshot: &snapshot, ..invocation };
                load_first(invocation, &request, &name, skill).await?
            }
            outcome => outcome?,
        },
        (None, Err(failure)) => return Err(failure.about(name)),
    };
    let outcome = outcome.about(name);
    Ok(match ignored {
        Some(ignored) if outcome.hint.is_none() => outcome.with_hint(ignored),
        _ => outcome,
    })
}

async fn load_first(
    invocation: Invocation<'_>,
    request: &Request,
    name: &str,
    skill: &CatalogSkill,
) -> Result<ToolOutcome, ToolOutcome> {
    let Invocation { engine, snapshot, state, call, .. } = invocation;
    // Decided again when the change is committed; here it saves the reading.
    if let Some(refusal) = engine.refusal(state, name) {
        return Err(refusal);
    }
    if engine.visibility(skill) == Visibility::ManualOnly {
        return Err(ToolOutcome::failed("manual_only", json!({"skill": name})).about(name));
    }
    let typed = request.arguments.as_deref().unwrap_or_default();
    let about = |failure: ToolOutcome| failure.about(name);
    let opened = engine.open_skill(snapshot, skill, typed).await.map_err(about)?;
    let docs = match request.wanted() {
        Some(wanted) => engine.docs(name, skill, wanted).await.map_err(about)?,
        None => Vec::new(),
    };
    let Opened { mut loaded, text, model, notes } = opened;
    loaded.call = Some(call.id.clone());
    loaded.docs = selection(&docs, request.all_docs, Some(&call.id));
    let mut outcome = given(invocation, &loaded, &text, &docs, Some(skill));
    for (kind, message) in notes {
        outcome = outcome.with_note(kind, message);
    }
    Ok(outcome.with_change(Change::Load { skill: Box::new(loaded), model }))
}

async fn load_again(
    invocation: Invocation<'_>,
    request: &Request,
    loaded: &LoadedSkill,
    skill: Option<&CatalogSkill>,
) -> Result<ToolOutcome, ToolOutcome> {
    let Invocation { engine, snapshot, call, .. } = invocation;
    let about = |failure: ToolOutcome| failure.about(&loaded.name);
    let is_update = skill.is_some_and(|skill| skill.found().digest != loaded.digest);
    // Docs that are asked for and whose text is not in the conversation.
    let mut docs = Vec::new();
    if let Some(wanted) = request.wanted() {
        let skill = skill.ok_or_else(|| {
            let data = json!({"skill": loaded.name, "available": [], "more": 0, "nearest": null});
            ToolOutcome::failed("skill_not_found", data).about(&loaded.name)
        })?;
        engine.check_pinned(loaded, skill).await.map_err(about)?;
        docs = engine.docs(&loaded.name, skill, wanted).await.map_err(about)?;
    }
    let asked = selection(&docs, request.all_docs, None);
    let mut new = Vec::new();
    for doc in docs {
        if !engine.is_given(loaded.docs.get(&doc.path), &doc).await? {
            new.push(doc);
        }
    }
    let is_here = engine.is_loaded_here(loaded, skill).await?;
    let typed = request.arguments.as_deref();
    let has_new_arguments = typed.is_some_and(|typed| typed != loaded.arguments);
    if !is_here || has_new_arguments {
        let typed = typed.unwrap_or(&loaded.arguments);
        let same = skill.filter(|skill| skill.found().digest == loaded.digest);
        let opened = match same.filter(|_| loaded.tree_digest.is_none()) {
            // Its files are not known, such as after an import: now they are.
            Some(skill) => engine.open_skill(snapshot, skill, typed).await.map_err(about)?,
            None => {
                let mut again = LoadedSkill::new(&loaded.name, loaded.digest);
                again.tree_digest = loaded.tree_digest;
                again.version.clone_from(&loaded.version);
                again.resources.clone_from(&loaded.resources);
                again.tools.clone_from(&loaded.tools);
                typed.clone_into(&mut again.arguments);
                if typed == loaded.arguments {
                    again.text = loaded.text;
                }
                let text = engine.pinned_text(&again, skill).await.map_err(about)?;
                if again.text.is_none() && !typed.is_empty() {
                    again.text = Some(engine.keep(text.body.clone().into_bytes()).await?);
                }
                Opened { loaded: again, text, model: None, notes: Vec::new() }
            }
        };
        let Opened { loaded: mut again, text, model, notes } = opened;
        again.call = Some(call.id.clone());
        again.docs = selection(&new, request.all_docs, Some(&call.id));
        let mut outcome =
            given(invocation, &again, &text, &new, skill).with_data("update_available", is_update);
        for (kind, message) in notes {
            outcome = outcome.with_note(kind, message);
        }
        return Ok(outcome.with_change(Change::Load { skill: Box::new(again), model }));
    }
    if new.is_empty() {
        let data = json!({
            "skill": loaded.name, "load_count": loaded.load_count, "update_available": is_update,
        });
        let touch = match asked.is_empty() {
            true => Change::Touch { skill: loaded.name.clone() },
            false => select(&loaded.name, asked),
        };
        return Ok(ToolOutcome::coded("already_loaded", data).with_change(touch));
    }
    let texts: Vec<Value> = new.iter().map(GivenDoc::to_json).collect();
    let data = json!({"skill": loaded.name, "docs": texts});
    let mut asked = asked;
    for doc in &mut asked.docs {
        if new.iter().any(|new| new.path == doc.path) {
            doc.call = Some(call.id.clone());
        }
    }
    Ok(ToolOutcome::coded("docs_loaded", data)
        .pinned()
        .with_note(EventKind::DocsSelected, docs_message(&loaded.name, &new))
        .with_change(select(&loaded.name, asked)))
}

fn select(skill: &str, docs: DocSelection) -> Change {
    Change::SelectDocs { skill: skill.to_owned(), mode: DocMode::Add, docs }
}

pub(super) fn docs_message(skill: &str, docs: &[GivenDoc]) -> String {
    let paths: Vec<&str> = docs.iter().map(|doc| doc.path.as_str()).collect();
    format!("Docs of skill '{skill}' given: {}", paths.join(", "))
}

pub(super) fn selection(docs: &[GivenDoc], all: bool, call: Option<&str>) -> DocSelection {
    let docs = docs.iter().map(|doc| {
        let mut selected = SelectedDoc::new(&doc.path, Some(doc.digest));
        selected.call = call.map(str::to_owned);
        selected
    });
    DocSelection { all, docs: docs.collect() }
}

/// The outcome that holds a skill's text.
fn given(
    invocation: Invocation<'_>,
    loaded: &LoadedSkill,
    text: &SkillText,
    docs: &[GivenDoc],
    skill: Option<&CatalogSkill>,
) -> ToolOutcome {
    let KnownResources { named, more, .. } = &loaded.resources;
    let resources: Vec<Value> = named
        .iter()
        .map(|resource| json!({"path": resource.path, "kind": resource.kind}))
        .collect();
    let texts: Vec<Value> = docs.iter().map(GivenDoc::to_json).collect();
    let data = json!({
        "skill": loaded.name,
        "title": skill.and_then(|skill| skill.found().frontmatter.title()),
        "folder": skill.map(folder_of),
        "version": loaded.version,
        "digest": loaded.digest,
        "tree_digest": loaded.tree_digest,
        "head": text.head,
        "body": text.body,
        "docs": texts,
        "doc_paths": loaded.docs.paths(),
        "resources": resources,
        "more_resources": more,
        "tools": invocation.engine.described_tools(&loaded.name),
    });
    ToolOutcome::coded("loaded", data).pinned()
}
