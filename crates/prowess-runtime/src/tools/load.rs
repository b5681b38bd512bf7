//! `load_skill`

use prowess_catalog::CatalogSkill;
use serde_json::{Value, json};

use super::arguments::CallArguments;
use crate::customise::SkillContent;
use crate::disclose::{GivenDoc, Opened, WantedDocs, folder_of, session_name};
use crate::event::EventKind;
use crate::fork::{ContextMode, Fork};
use crate::outcome::ToolOutcome;
use crate::session::{Change, DocMode, DocSelection, KnownResources, LoadedSkill, SelectedDoc};
use crate::tool::Invocation;
use crate::turn::LoadedBy;
use crate::visibility::Visibility;

/// What is asked for.
pub(crate) struct Request {
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
    let is_read = invocation.engine.inner.customisation.reads_arguments();
    Ok(match ignored {
        Some(ignored) if outcome.hint.is_none() && !is_read => outcome.with_hint(ignored),
        _ => outcome,
    })
}

async fn load_first(
    invocation: Invocation<'_>,
    request: &Request,
    name: &str,
    skill: &CatalogSkill,
) -> Result<ToolOutcome, ToolOutcome> {
    let engine = invocation.engine;
    if engine.visibility(skill) == Visibility::ManualOnly {
        return Err(ToolOutcome::failed("manual_only", json!({"skill": name})).about(name));
    }
    let opening = Opening { invocation, request, name, skill };
    if let Some(mode) = ContextMode::of(skill) {
        let outcome = opening.fork(mode).await;
        // Before anything ran: what is there now counts, as for every other load.
        return match outcome.code.as_ref() {
            "skill_changed" => Err(outcome),
            _ => Ok(outcome),
        };
    }
    // Decided again when the change is committed; here it saves the reading.
    if let Some(refusal) = engine.refusal(invocation.state, name) {
        return Err(refusal);
    }
    let (mut opened, docs) = opening.open().await?;
    let mut outcome = opening.given(&mut opened, &docs).await?;
    for (kind, message) in opened.notes {
        outcome = outcome.with_note(kind, message);
    }
    let (skill, model) = (Box::new(opened.loaded), opened.model);
    Ok(outcome.with_change(Change::Load { skill, model }))
}

/// A skill that is about to be given.
pub(crate) struct Opening<'a> {
    pub(crate) invocation: Invocation<'a>,
    request: &'a Request,
    /// The name that the session knows it by.
    pub(crate) name: &'a str,
    pub(crate) skill: &'a CatalogSkill,
}

impl<'a> Opening<'a> {
    /// Reads the skill, and the docs that are asked for with it.
    pub(crate) async fn open(&self) -> Result<(Opened, Vec<GivenDoc>), ToolOutcome> {
        let Invocation { engine, snapshot, call, .. } = self.invocation;
        let typed = self.request.arguments.as_deref().unwrap_or_default();
        let about = |failure: ToolOutcome| failure.about(self.name);
        let mut opened =
            engine.open_skill(snapshot, self.skill, typed, LoadedBy::Model).await.map_err(about)?;
        let docs = match self.request.wanted() {
            Some(wanted) => engine.docs(self.name, self.skill, wanted).await.map_err(about)?,
            None => Vec::new(),
        };
        opened.loaded.call = Some(call.id.clone());
        opened.loaded.docs = selection(&docs, self.request.all_docs, Some(&call.id));
        Ok((opened, docs))
    }

    /// The outcome that holds its text.
    pub(crate) async fn given(
        &self,
        opened: &mut Opened,
        docs: &[GivenDoc],
    ) -> Result<ToolOutcome, ToolOutcome> {
        given(self.invocation, opened, docs, Some(self.skill)).await
    }

    /// Runs it in a sub-agent.
    async fn fork(self, mode: ContextMode) -> ToolOutcome {
        let name = self.name;
        let outcome = match &self.invocation.engine.inner.forker {
            Some(forker) => forker.fork(Fork { opening: self, mode }).await,
            None => {
                let data = json!({"skill": name, "mode": mode});
                ToolOutcome::failed("agent_hub_missing", data)
            }
        };
        outcome.about(name)
    }
}

async fn load_again(
    invocation: Invocation<'_>,
    request: &Request,
    loaded: &LoadedSkill,
    skill: Option<&CatalogSkill>,
) -> Result<ToolOutcome, ToolOutcome> {
    let Invocation { engine, snapshot, call, .. } = invocation;
    let about = |failure: ToolOutcome| failure.about(&loaded.name);
    let is_update = match skill {
        Some(skill) => loaded.is_outdated_by(skill).await,
        None => false,
    };
    // Docs that are asked for and whose text is not in the conversation.
    let mut docs = Vec::new();
    if let Some(wanted) = request.wanted() {
        let skill = skill.ok_or_else(|| {
            let data = json!({"skill": loaded.name, "available": [], "more": 0, "nearest": null});
            ToolOutcome::failed("skill_not_found", data).about(&loaded.name)
        })?;
        let skill = engine.pinned(loaded, skill).await.map_err(about)?;
        docs = engine.docs(&loaded.name, &skill, wanted).await.map_err(about)?;
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
            Some(skill) => {
                engine.open_skill(snapshot, skill, typed, LoadedBy::Model).await.map_err(about)?
            }
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
        let mut opened = opened;
        opened.loaded.call = Some(call.id.clone());
        opened.loaded.docs = selection(&new, request.all_docs, Some(&call.id));
        let mut outcome = given(invocation, &mut opened, &new, skill)
            .await?
            .with_data("update_available", is_update);
        for (kind, message) in opened.notes {
            outcome = outcome.with_note(kind, message);
        }
        let (skill, model) = (Box::new(opened.loaded), opened.model);
        return Ok(outcome.with_change(Change::Load { skill, model }));
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

/// The outcome that holds a skill's text: as the host writes it, or in the words of the dialect.
async fn given(
    invocation: Invocation<'_>,
    opened: &mut Opened,
    docs: &[GivenDoc],
    skill: Option<&CatalogSkill>,
) -> Result<ToolOutcome, ToolOutcome> {
    let Opened { loaded, text, .. } = opened;
    let KnownResources { named, more, .. } = &loaded.resources;
    let resources: Vec<Value> = named
        .iter()
        .map(|resource| json!({"path": resource.path, "kind": resource.kind}))
        .collect();
    let texts: Vec<Value> = docs.iter().map(GivenDoc::to_json).collect();
    let folder = skill.map(folder_of);
    let engine = invocation.engine;
    let data = json!({
        "skill": loaded.name,
        "title": skill.and_then(|skill| skill.found().frontmatter.title()),
        "folder": folder,
        "version": loaded.version,
        "digest": loaded.digest,
        "tree_digest": loaded.tree_digest,
        "head": text.head,
        "body": text.body,
        "docs": texts,
        "doc_paths": loaded.docs.paths(),
        "resources": resources,
        "more_resources": more,
        "tools": engine.described_tools(&loaded.name),
    });
    let mut outcome = ToolOutcome::coded("loaded", data).pinned();
    let Some(skill) = skill else { return Ok(outcome) };
    let seen = || SkillContent {
        skill: skill.clone(),
        content: text.body.clone(),
        base_directory: folder.unwrap_or_default(),
    };
    let arguments = &invocation.call.arguments;
    if let Some(built) = engine.inner.customisation.content(seen, arguments).await {
        let content = built.map_err(|error| {
            let data = json!({"skill": loaded.name, "cause": error.cause.to_string()});
            ToolOutcome::failed("content_failed", data).about(&loaded.name)
        })?;
        engine.inner.dialect.render(&mut outcome);
        loaded.text = Some(engine.keep(content.clone().into_bytes()).await?);
        outcome.content = content;
    }
    Ok(outcome)
}
