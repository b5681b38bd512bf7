//! How a turn begins: resets, declared loads, pinned skills.

use prowess_catalog::{CatalogSkill, Snapshot};
use serde_json::{Value, json};
use tracing::Instrument;

use crate::commit::{Commit, initialisation};
use crate::disclose::{GivenDoc, Opened, WantedDocs, session_name};
use crate::engine::Engine;
use crate::event::{Event, EventKind};
use crate::fork::ContextMode;
use crate::message::Message;
use crate::outcome::ToolOutcome;
use crate::prompt::{Placement, scope_of};
use crate::runtime::{Runtime, stored_session};
use crate::session::{
    AgentName, Change, DocSelection, LoadedSkill, Refusal, Reset, SelectedDoc, SessionDelta,
    SessionKey, SessionState,
};
use crate::settings::LoadMode;
use crate::spans;
use crate::store::{StoreError, StoredSession};
use crate::turn::{LoadRequest, LoadedBy, RuntimeError, Turn, TurnRequest};

/// A skill that the caller wants loaded, with everything that is given of it.
struct Prepared {
    loaded: LoadedSkill,
    body: String,
    /// What is said of its tools.
    tools: String,
    docs: Vec<GivenDoc>,
    model: Option<String>,
    path: String,
    /// Where it would run if a model had loaded it.
    fork: Option<ContextMode>,
    notes: Vec<(EventKind, String)>,
}

impl Runtime {
    /// Begins a turn: resets what the load mode resets, loads what the caller declares, and
    /// returns what is to be appended to the conversation. All of it, or nothing.
    pub async fn begin_turn(
        &self,
        session: &SessionKey,
        agent: &AgentName,
        request: TurnRequest,
    ) -> Result<Turn, RuntimeError> {
        let span = spans::turn(session, agent);
        self.holding(session, self.begin(session, agent, request)).instrument(span).await
    }

    async fn begin(
        &self,
        session: &SessionKey,
        agent: &AgentName,
        request: TurnRequest,
    ) -> Result<Turn, RuntimeError> {
        let inner = &self.inner;
        let mut stored = stored_session(inner, session).await?;
        let (catalog, mut view) = inner.skills_of(session, agent).await;
        // Whoever does not know which skills there are looks again.
        if stored.session.state(agent).skills.is_none() {
            view = inner.view(&scope_of(session, agent), catalog.refresh().await).await;
        }
        let snapshot = &view.snapshot;
        let engine = Engine::new(inner, session, agent, &view);
        let mut all_declared = self.declared_loads(&engine, snapshot, &request.loads).await?;
        let (mut all_pinned, mut problems) = self.pinned(&engine, snapshot, &request.pinned).await;
        for Prepared { loaded, fork, .. } in &all_declared {
            let name = &loaded.name;
            problems.extend(fork.map(|mode| {
                format!(
                    "skill '{name}' asks for context: {mode}; it was loaded into this conversation"
                )
            }));
        }
        // Declared and pinned, a skill is given once.
        all_pinned.retain(|pinned| {
            let same = all_declared.iter_mut().find(|it| it.loaded.name == pinned.loaded.name);
            same.map(|declared| declared.loaded.pinned = true).is_none()
        });
        let reset = match inner.settings.load_mode {
            LoadMode::Session => Reset::Keep,
            LoadMode::Turn | LoadMode::Once => Reset::Clear,
        };
        let attempts = inner.settings.max_commit_attempts.max(1);
        for _ in 0..attempts {
            let state = stored.session.state(agent);
            let declared = not_given(&engine, snapshot, &state, reset, &all_declared).await;
            let pinned = not_given(&engine, snapshot, &state, reset, &all_pinned).await;
            let mut given = Vec::new();
            // Where loaded text stands in the system prompt, it needs no message.
            if inner.settings.placement == Placement::ToolResult {
                let turn = state.turn.saturating_add(1);
                given.extend(declared.iter().map(|skill| self.declared_message(skill, turn)));
                given.extend(pinned.iter().map(|skill| self.pinned_message(skill, turn)));
            }
            given.extend(request.messages.iter().cloned());
            let (mut setup, excluded) =
                initialisation(inner, &state, &view, session, agent).await?;
            setup.push(Change::BeginTurn { reset });
            let note = inner.changes_of_catalog(&state, &view, session, agent).await?;
            let changed = note.is_some();
            if changed {
                setup.push(Change::Tell { skills: inner.told(&view, &scope_of(session, agent)) });
            }
            let messages: Vec<Message> = note.into_iter().chain(given).collect();
            setup.extend(declared.iter().chain(&pinned).map(|skill| Change::Load {
                skill: Box::new(skill.loaded.clone()),
                model: skill.model.clone(),
            }));
            setup.extend(
                request
                    .inherited
                    .iter()
                    .map(|skill| Change::Load { skill: Box::new(skill.inherited()), model: None }),
            );
            let commit = Commit {
                inner,
                session,
                agent,
                view: &view,
                setup: setup.clone(),
                excluded,
                deltas: Vec::new(),
            };
            let delta = SessionDelta::new(agent.clone(), inner.settings.caps())
                .with_setup(setup)
                .with_messages(messages.clone());
            let StoredSession { revision, session: mut next, .. } = stored;
            if let Some(refusal) = next.apply(&delta).into_iter().find_map(|(_, it)| it.refused) {
                return Err(too_many(&refusal, &declared, &pinned, &request.inherited));
            }
            let number = next.state(agent).turn;
            let mut events = turn_events(&commit, number, &declared, &pinned);
            events.extend(request.inherited.iter().map(|skill| {
                let message = format!("Skill '{}' loaded as another agent has it", skill.name);
                let event = commit.event(EventKind::SkillLoaded, number, message);
                event.with_skill(&skill.name).with_loaded(skill)
            }));
            if changed {
                let message = "The model was told that the skills have changed";
                events.push(commit.event(EventKind::SkillsChanged, number, message));
            }
            match inner.sessions.commit(session, revision, delta, events.clone()).await {
                Ok(revision) => {
                    inner.publish(session, &events);
                    return Ok(Turn { number, messages, problems, revision });
                }
                Err(StoreError::Conflict { .. }) => {
                    stored = stored_session(inner, session).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(RuntimeError::TooBusy { attempts })
    }

    /// Reads the skills that the caller declares: all of them, or none.
    async fn declared_loads(
        &self,
        engine: &Engine<'_>,
        snapshot: &Snapshot,
        requests: &[LoadRequest],
    ) -> Result<Vec<Prepared>, RuntimeError> {
        let mut requests = requests.to_vec();
        for request in &mut requests {
            check(request)?;
        }
        let mut distinct: Vec<LoadRequest> = Vec::new();
        for request in requests {
            match distinct.iter().find(|known| known.skill == request.skill) {
                None => distinct.push(request),
                Some(known) if *known == request => {}
                Some(_) => {
                    return Err(invalid(&request.skill, "it is declared twice, differently"));
                }
            }
        }
        let limit = self.inner.settings.max_loaded_skills;
        if distinct.len() > limit {
            let skill = &distinct[limit].skill;
            return Err(invalid(skill, &format!("at most {limit} skills may be loaded")));
        }
        let mut prepared = Vec::with_capacity(distinct.len());
        for request in &distinct {
            let unavailable = |mut outcome: ToolOutcome| {
                self.inner.dialect.render(&mut outcome);
                RuntimeError::SkillUnavailable {
                    skill: request.skill.clone(),
                    why: outcome.content,
                }
            };
            let skill = engine.find(snapshot, &request.skill).map_err(unavailable)?;
            let is_for_people = skill.found().frontmatter.user_invocable();
            if request.by == LoadedBy::Person && !is_for_people {
                return Err(unavailable(ToolOutcome::failed(
                    "model_only",
                    json!({"skill": request.skill}),
                )));
            }
            prepared.push(prepare(engine, snapshot, skill, request).await.map_err(unavailable)?);
        }
        Ok(prepared)
    }

    /// Reads the skills that the caller pins; who is not there is reported.
    async fn pinned(
        &self,
        engine: &Engine<'_>,
        snapshot: &Snapshot,
        names: &[String],
    ) -> (Vec<Prepared>, Vec<String>) {
        let mut prepared: Vec<Prepared> = Vec::new();
        let mut problems = Vec::new();
        for name in names {
            let request = LoadRequest::new(name);
            let result = match engine.find(snapshot, name) {
                Ok(skill) => {
                    let known = session_name(snapshot, skill);
                    if prepared.iter().any(|skill| skill.loaded.name == known) {
                        continue;
                    }
                    prepare(engine, snapshot, skill, &request).await
                }
                Err(failure) => Err(failure),
            };
            match result {
                Ok(mut skill) => {
                    skill.loaded.pinned = true;
                    prepared.push(skill);
                }
                Err(mut failure) => {
                    self.inner.dialect.render(&mut failure);
                    problems.push(failure.content);
                }
            }
        }
        (prepared, problems)
    }

    fn declared_message(&self, skill: &Prepared, turn: u64) -> Message {
        let docs: Vec<Value> = skill.docs.iter().map(GivenDoc::to_json).collect();
        let block = json!({
            "name": skill.loaded.name,
            "body": skill.body,
            "tools": skill.tools,
            "docs": docs,
            "doc_paths": skill.loaded.docs.paths(),
        });
        let data = json!({"skills": [block], "left_out": []});
        let text = self.inner.dialect.block("loaded_context", &data);
        Message::system(text).giving(&skill.loaded.name, turn)
    }

    fn pinned_message(&self, skill: &Prepared, turn: u64) -> Message {
        let data = json!({
            "name": skill.loaded.name,
            "path": skill.path,
            "body": skill.body.trim_end(),
            "tools": skill.tools,
        });
        let text = self.inner.dialect.block("pinned_skill", &data);
        Message::user(text).giving(&skill.loaded.name, turn)
    }
}

async fn prepare(
    engine: &Engine<'_>,
    snapshot: &Snapshot,
    skill: &CatalogSkill,
    request: &LoadRequest,
) -> Result<Prepared, ToolOutcome> {
    let opened = engine.open_skill(snapshot, skill, &request.arguments, request.by).await?;
    let Opened { mut loaded, text, model, notes } = opened;
    let docs = match (request.include_all_docs, request.docs.as_slice()) {
        (true, _) => engine.docs(&loaded.name, skill, WantedDocs::All).await?,
        (false, []) => Vec::new(),
        (false, docs) => engine.docs(&loaded.name, skill, WantedDocs::These(docs)).await?,
    };
    loaded.docs = DocSelection {
        all: request.include_all_docs,
        docs: docs.iter().map(|doc| SelectedDoc::new(&doc.path, Some(doc.digest))).collect(),
    };
    Ok(Prepared {
        tools: engine.described_tools(&loaded.name),
        loaded,
        body: text.body,
        docs,
        model,
        path: skill.path().display().to_string(),
        fork: ContextMode::of(skill),
        notes,
    })
}

/// The skills that are to be given. What the session has loaded already, in this form, and what is
/// still in the conversation, stays where it is.
async fn not_given<'a>(
    engine: &Engine<'_>,
    snapshot: &Snapshot,
    state: &SessionState,
    reset: Reset,
    prepared: &'a [Prepared],
) -> Vec<&'a Prepared> {
    let mut left = Vec::with_capacity(prepared.len());
    for wanted in prepared {
        let is_same = |loaded: &&LoadedSkill| {
            let has = |doc: &GivenDoc| {
                loaded.docs.get(&doc.path).is_some_and(|known| known.digest == Some(doc.digest))
            };
            let of = |it: &LoadedSkill| (it.digest, it.tree_digest, it.text);
            of(loaded) == of(&wanted.loaded)
                && loaded.arguments == wanted.loaded.arguments
                && (loaded.pinned || !wanted.loaded.pinned)
                && wanted.docs.iter().all(has)
        };
        let known = state.loaded(&wanted.loaded.name).filter(is_same);
        let is_here = match known.filter(|_| reset == Reset::Keep) {
            None => false,
            Some(loaded) => {
                let skill = snapshot.get(&loaded.name).ok();
                // What cannot be found out is given.
                let mut here = engine.is_loaded_here(loaded, skill).await.unwrap_or(false);
                for doc in &wanted.docs {
                    let given = engine.is_given(loaded.docs.get(&doc.path), doc).await;
                    here &= given.unwrap_or(false);
                }
                here
            }
        };
        if !is_here {
            left.push(wanted);
        }
    }
    left
}

/// Whether a declared load makes sense by itself.
fn check(request: &mut LoadRequest) -> Result<(), RuntimeError> {
    request.skill = request.skill.trim().to_owned();
    if request.skill.is_empty() {
        return Err(invalid("", "it names no skill"));
    }
    if request.include_all_docs && !request.docs.is_empty() {
        return Err(invalid(&request.skill, "it asks for some docs and for all of them"));
    }
    for (at, doc) in request.docs.iter().enumerate() {
        if doc.trim().is_empty() {
            return Err(invalid(&request.skill, "it names an empty doc"));
        }
        if doc.eq_ignore_ascii_case("SKILL.md") {
            return Err(invalid(&request.skill, "SKILL.md is no doc; it is loaded anyway"));
        }
        if request.docs[..at].contains(doc) {
            return Err(invalid(&request.skill, &format!("it names the doc '{doc}' twice")));
        }
    }
    Ok(())
}

fn invalid(skill: &str, why: &str) -> RuntimeError {
    RuntimeError::InvalidLoad { skill: skill.to_owned(), why: why.to_owned() }
}

fn too_many(
    refusal: &Refusal,
    declared: &[&Prepared],
    pinned: &[&Prepared],
    inherited: &[LoadedSkill],
) -> RuntimeError {
    let prepared = declared.iter().chain(pinned).map(|skill| &skill.loaded);
    let skill = prepared.chain(inherited).next().map(|it| it.name.clone()).unwrap_or_default();
    RuntimeError::InvalidLoad { skill, why: refusal.to_string() }
}

fn turn_events(
    commit: &Commit<'_>,
    number: u64,
    declared: &[&Prepared],
    pinned: &[&Prepared],
) -> Vec<Event> {
    let mut events: Vec<Event> = commit.discovered(number);
    events.push(commit.event(EventKind::TurnBegun, number, format!("Turn {number} began")));
    for skill in declared.iter().chain(pinned) {
        let name = &skill.loaded.name;
        let count = skill.loaded.resources.len();
        let message = format!("Skill '{name}' loaded ({count} resources discovered)");
        let event = commit.event(EventKind::SkillLoaded, number, message).with_skill(name);
        events.push(event.with_loaded(&skill.loaded).with_content(&skill.body));
        for (kind, message) in &skill.notes {
            events.push(commit.event(*kind, number, message).with_skill(name));
        }
    }
    events
}
