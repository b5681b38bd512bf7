//! The engine: what doors call.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwapOption;
use prowess_catalog::{
    Catalog, CatalogSkill, ContentError, ContentStore, MemoryContent, Scope, Snapshot,
};
use prowess_format::Digest;
use serde_json::json;
use tokio::sync::OnceCell;

use crate::disclose::GivenDoc;
use crate::event::{Event, EventSink};
use crate::gate::{Declared, ToolTable, gate};
use crate::interceptor::Interceptor;
use crate::message::Message;
use crate::outcome::ToolOutcome;
use crate::prompt::{TokenCounter, default_counter, scope_of};
use crate::session::{
    AgentName, Change, KnownSkills, LoadedSkill, SelectedDoc, SessionDelta, SessionKey,
    SessionState, WhenFull,
};
use crate::settings::Settings;
use crate::store::{MemorySessions, Revision, SessionStore, StoreError, StoredSession};
use crate::texts::{Texts, TextsError, is_said};
use crate::tool::{Invocation, Tool, ToolDeclaration, ToolFuture, Toolkit};
use crate::tools::load_tools;
use crate::transcript::result_of;
use crate::turn::RuntimeError;
use crate::visibility::{Visibilities, Visibility, VisibilityFilter};

/// So many catalogs of users, sessions and agents are kept at hand.
const CATALOGS_AT_HAND: usize = 256;

/// The engine. Every door translates its own protocol into calls of this. Cheap to clone.
///
/// ```
/// use prowess_catalog::{Catalog, MemorySource};
/// use prowess_runtime::{AgentName, Runtime, SessionKey, Step, ToolCall};
/// use serde_json::json;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let text = "---\nname: hello\ndescription: Says hello.\n---\nSay hello.\n";
/// let catalog = Catalog::builder()
///     .source(MemorySource::new("built-in").with_skill("hello", text))
///     .build();
/// let runtime = Runtime::builder(catalog).build().unwrap();
/// let session: SessionKey = "demo".parse().unwrap();
/// let call = ToolCall::new("call-1", "load_skill", json!({"skill": "hello"}));
/// let outcome = runtime.dispatch(&session, &AgentName::default(), call).await.unwrap();
/// assert_eq!(outcome.content, "Say hello.");
/// assert_eq!(outcome.stub.as_deref(), Some("loaded: hello"));
/// # let _ = Step::new(vec![]);
/// # });
/// ```
#[derive(Clone)]
pub struct Runtime {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    catalog: Catalog,
    /// What everybody sees, where nothing depends on who asks.
    shared: ArcSwapOption<SkillView>,
    /// What users, sessions and agents see, where it does.
    scoped: Mutex<HashMap<Scope, Scoped>>,
    pub(crate) visibilities: Visibilities,
    pub(crate) counter: Arc<dyn TokenCounter>,
    pub(crate) sessions: Arc<dyn SessionStore>,
    content: Arc<dyn ContentStore>,
    pub(crate) tools: ToolTable,
    toolkits: Vec<Arc<dyn Toolkit>>,
    pub(crate) interceptors: Vec<Arc<dyn Interceptor>>,
    sinks: Vec<Arc<dyn EventSink>>,
    pub(crate) settings: Settings,
    pub(crate) texts: Texts,
}

/// The catalog of somebody, and what of it was seen last.
struct Scoped {
    catalog: Catalog,
    view: Option<Arc<SkillView>>,
}

/// The skills that somebody sees, and what follows from them.
pub(crate) struct SkillView {
    /// The snapshot with everything in it.
    base: Snapshot,
    /// Without what is hidden.
    pub(crate) snapshot: Snapshot,
    pub(crate) declared: Declared,
    known: OnceLock<KnownSkills>,
}

impl SkillView {
    fn new(base: Snapshot, snapshot: Snapshot) -> Arc<Self> {
        let declared = Declared::of(&snapshot);
        Arc::new(Self { base, snapshot, declared, known: OnceLock::new() })
    }

    /// What identifies them.
    pub(crate) fn known(&self) -> KnownSkills {
        *self.known.get_or_init(|| KnownSkills::of(&self.snapshot))
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Runtime")
            .field("catalog", &self.inner.catalog)
            .field("settings", &self.inner.settings)
            .finish_non_exhaustive()
    }
}

/// Puts a [`Runtime`] together.
pub struct RuntimeBuilder {
    catalog: Catalog,
    sessions: Arc<dyn SessionStore>,
    content: Arc<dyn ContentStore>,
    tools: ToolTable,
    toolkits: Vec<Arc<dyn Toolkit>>,
    interceptors: Vec<Arc<dyn Interceptor>>,
    sinks: Vec<Arc<dyn EventSink>>,
    settings: Settings,
    filter: Option<Arc<dyn VisibilityFilter>>,
    counter: Arc<dyn TokenCounter>,
}

impl RuntimeBuilder {
    /// Where sessions live. In memory unless said otherwise.
    pub fn sessions(mut self, sessions: Arc<dyn SessionStore>) -> Self {
        self.sessions = sessions;
        self
    }

    /// Where content lives. In memory unless said otherwise.
    pub fn content(mut self, content: Arc<dyn ContentStore>) -> Self {
        self.content = content;
        self
    }

    /// Adds a tool of the host. It takes the place of a tool of the same name.
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.insert(tool, None);
        self
    }

    /// Adds a tool that can be called only while a skill is loaded.
    pub fn skill_tool(mut self, skill: impl Into<String>, tool: Arc<dyn Tool>) -> Self {
        self.tools.insert(tool, Some(skill.into()));
        self
    }

    /// Adds a set of tools.
    pub fn toolkit(mut self, toolkit: Arc<dyn Toolkit>) -> Self {
        for tool in toolkit.tools() {
            self.tools.insert(tool, None);
        }
        self.toolkits.push(toolkit);
        self
    }

    /// Adds an interceptor inside those that are there.
    pub fn interceptor(mut self, interceptor: Arc<dyn Interceptor>) -> Self {
        self.interceptors.push(interceptor);
        self
    }

    /// Adds somebody who sees all events.
    pub fn sink(mut self, sink: Arc<dyn EventSink>) -> Self {
        self.sinks.push(sink);
        self
    }

    /// Other settings than the default ones.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Decides for users, sessions and agents which skills they see.
    pub fn visibility(mut self, filter: Arc<dyn VisibilityFilter>) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Counts tokens. Estimated unless said otherwise.
    pub fn token_counter(mut self, counter: Arc<dyn TokenCounter>) -> Self {
        self.counter = counter;
        self
    }

    /// The engine.
    pub fn build(self) -> Result<Runtime, TextsError> {
        let mut texts = Texts::prowess()?;
        if let Some(template) = &self.settings.listing.template {
            texts.set_block("listing", template)?;
        }
        let inner = Inner {
            catalog: self.catalog,
            shared: ArcSwapOption::empty(),
            scoped: Mutex::default(),
            visibilities: Visibilities {
                settings: self.settings.visibility.clone(),
                filter: self.filter,
            },
            counter: self.counter,
            sessions: self.sessions,
            content: self.content,
            tools: self.tools,
            toolkits: self.toolkits,
            interceptors: self.interceptors,
            sinks: self.sinks,
            settings: self.settings,
            texts,
        };
        Ok(Runtime { inner: Arc::new(inner) })
    }
}

impl Runtime {
    /// Begins an engine over a catalog.
    pub fn builder(catalog: Catalog) -> RuntimeBuilder {
        let mut tools = ToolTable::default();
        for tool in load_tools() {
            tools.insert(tool, None);
        }
        RuntimeBuilder {
            catalog,
            sessions: Arc::new(MemorySessions::new()),
            content: Arc::new(MemoryContent::default()),
            tools,
            toolkits: Vec::new(),
            interceptors: Vec::new(),
            sinks: Vec::new(),
            settings: Settings::default(),
            filter: None,
            counter: default_counter(),
        }
    }

    /// What it was told.
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// Where sessions live.
    pub fn sessions(&self) -> &Arc<dyn SessionStore> {
        &self.inner.sessions
    }

    /// Where content lives.
    pub fn content(&self) -> &Arc<dyn ContentStore> {
        &self.inner.content
    }

    /// The declarations of all tools, sorted by name.
    pub fn declarations(&self) -> Vec<ToolDeclaration> {
        self.inner.declarations()
    }

    /// Whether a tool could be called now: it is there, and its skill is loaded. Every call is
    /// asked this first.
    pub fn check(
        &self,
        tool: &str,
        state: &SessionState,
        snapshot: &Snapshot,
    ) -> Result<(), Blocked> {
        let shared = self.inner.shared.load();
        let known = shared.as_ref().filter(|view| view.snapshot.is_same(snapshot));
        let fresh = known.is_none().then(|| Declared::of(snapshot));
        let declared = known.map(|view| &view.declared).or(fresh.as_ref());
        match (self.inner.tools.get(tool), declared) {
            (Some(registered), Some(declared)) => gate(tool, registered, declared, state)
                .map_err(|skill| Blocked::SkillNotLoaded(skill.to_owned())),
            _ => Err(Blocked::UnknownTool),
        }
    }

    /// The state of an agent in a session; the default one if there is none.
    pub async fn state(
        &self,
        session: &SessionKey,
        agent: &AgentName,
    ) -> Result<SessionState, RuntimeError> {
        let stored = self.inner.sessions.get(session).await?.unwrap_or_default();
        Ok(stored.session.state(agent))
    }

    /// The skills that an agent of a session can see.
    pub async fn snapshot(&self, session: &SessionKey, agent: &AgentName) -> Snapshot {
        self.inner.skills_of(session, agent).await.1.snapshot.clone()
    }

    /// Changes the state of an agent from outside, such as with a state of another system. All of
    /// the changes, or none.
    pub async fn change(
        &self,
        session: &SessionKey,
        agent: &AgentName,
        changes: Vec<Change>,
    ) -> Result<Revision, RuntimeError> {
        let delta = SessionDelta::new(agent.clone(), self.inner.settings.caps());
        self.commit_alone(session, delta.with_setup(changes)).await
    }

    /// Commits something that depends on nothing, as often as it takes.
    async fn commit_alone(
        &self,
        session: &SessionKey,
        delta: SessionDelta,
    ) -> Result<Revision, RuntimeError> {
        let attempts = self.inner.settings.max_commit_attempts.max(1);
        for _ in 0..attempts {
            let stored = stored_session(&self.inner, session).await?;
            let applied = stored.session.clone().apply(&delta);
            if let Some(refusal) = applied.into_iter().find_map(|(_, applied)| applied.refused) {
                return Err(RuntimeError::Refused(refusal));
            }
            let committed = self
                .inner
                .sessions
                .commit(session, stored.revision, delta.clone(), Vec::new())
                .await;
            match committed {
                Err(StoreError::Conflict { .. }) => {}
                committed => return Ok(committed?),
            }
        }
        Err(RuntimeError::TooBusy { attempts })
    }

    /// Appends messages to the transcript of an agent, such as the last words of the model.
    pub async fn append(
        &self,
        session: &SessionKey,
        agent: &AgentName,
        messages: Vec<Message>,
    ) -> Result<Revision, RuntimeError> {
        let delta = SessionDelta::new(agent.clone(), self.inner.settings.caps());
        self.commit_alone(session, delta.with_messages(messages)).await
    }

    /// Removes content that no session refers to any more, and says how many pieces.
    pub async fn collect_garbage(&self) -> Result<usize, RuntimeError> {
        let mut referenced: HashSet<Digest> = HashSet::new();
        for summary in self.inner.sessions.list().await? {
            let Some(stored) = self.inner.sessions.get(&summary.key).await? else { continue };
            referenced.extend(stored.session.referenced());
            for agent in stored.session.agents.keys() {
                let messages = self.inner.sessions.messages(&summary.key, agent).await?;
                let results = messages.iter().flat_map(Message::tool_results);
                referenced
                    .extend(results.filter_map(|result| Some(result.expansion.as_ref()?.digest)));
            }
        }
        let content = Arc::clone(&self.inner.content);
        Ok(on_a_thread(self.inner.content.as_ref(), move || content.collect_garbage(&referenced))
            .await?)
    }
}

/// Runs where blocking is allowed, if the store may block.
async fn on_a_thread<T: Send + 'static>(
    content: &dyn ContentStore,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    if content.is_immediate() {
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => std::future::pending().await,
        },
    }
}

impl Inner {
    /// The declarations of all tools, sorted by name.
    pub(crate) fn declarations(&self) -> Vec<ToolDeclaration> {
        let tools = self.tools.names().into_iter().filter_map(|name| self.tools.get(name));
        tools
            .map(|registered| {
                let mut declaration = registered.tool.declaration().clone();
                if let Some(text) = self.settings.tool_descriptions.get(&declaration.name) {
                    declaration.description.clone_from(text);
                }
                declaration
            })
            .collect()
    }

    /// The catalog and the skills that an agent of a session can see.
    pub(crate) async fn skills_of(
        &self,
        session: &SessionKey,
        agent: &AgentName,
    ) -> (Catalog, Arc<SkillView>) {
        let scope = scope_of(session, agent);
        let catalog = self.catalog_of(&scope);
        let mut base = catalog.snapshot();
        if base.generation() == 0 {
            base = catalog.refresh().await;
        }
        let view = self.view(&scope, base);
        (catalog, view)
    }

    /// What somebody sees of a snapshot.
    pub(crate) fn view(&self, scope: &Scope, base: Snapshot) -> Arc<SkillView> {
        let is_current = |view: &Arc<SkillView>| view.base.is_same(&base);
        if !self.catalog.depends_on_scope() && !self.visibilities.can_hide() {
            if let Some(view) = self.shared.load_full().filter(is_current) {
                return view;
            }
            let view = SkillView::new(base.clone(), base);
            self.shared.store(Some(Arc::clone(&view)));
            return view;
        }
        let mut scoped = self.scoped.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = scoped.get_mut(scope);
        if let Some(view) = entry.as_ref().and_then(|it| it.view.clone()).filter(is_current) {
            return view;
        }
        let visible = self.visibilities.visible(scope, &base);
        let view = SkillView::new(base, visible);
        if let Some(entry) = entry {
            entry.view = Some(Arc::clone(&view));
        }
        view
    }

    fn catalog_of(&self, scope: &Scope) -> Catalog {
        if !self.catalog.depends_on_scope() && !self.visibilities.can_hide() {
            return self.catalog.clone();
        }
        let mut scoped = self.scoped.lock().unwrap_or_else(PoisonError::into_inner);
        if scoped.len() >= CATALOGS_AT_HAND && !scoped.contains_key(scope) {
            scoped.clear();
        }
        let make = || Scoped { catalog: self.catalog.for_scope(scope), view: None };
        scoped.entry(scope.clone()).or_insert_with(make).catalog.clone()
    }

    /// Tells everybody who wants to know.
    pub(crate) fn publish(&self, session: &SessionKey, events: &[Event]) {
        for event in events {
            event.trace(session);
            for sink in &self.sinks {
                sink.event(session, event);
            }
        }
    }

    /// Keeps bytes.
    pub(crate) async fn keep(&self, bytes: Vec<u8>) -> Result<Digest, ContentError> {
        let content = Arc::clone(&self.content);
        on_a_thread(self.content.as_ref(), move || content.put(&bytes)).await
    }

    /// Bytes that were kept.
    pub(crate) async fn kept(&self, digest: Digest) -> Result<Option<Arc<[u8]>>, ContentError> {
        let content = Arc::clone(&self.content);
        on_a_thread(self.content.as_ref(), move || content.get(&digest)).await
    }
}

/// Why a tool cannot be called.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Blocked {
    /// There is no such tool.
    UnknownTool,
    /// This skill must be loaded first.
    SkillNotLoaded(String),
}

/// What the load tools may ask of the engine during a step.
pub(crate) struct Engine<'a> {
    pub(crate) inner: &'a Inner,
    pub(crate) session: &'a SessionKey,
    pub(crate) agent: &'a AgentName,
    /// The conversation as the model sees it, if the caller knows.
    pub(crate) transcript: Option<&'a [Message]>,
    /// The calls of this step: their results will be in the conversation.
    pub(crate) calls: BTreeSet<&'a str>,
    /// The stored conversation, read when it is needed.
    pub(crate) stored: OnceCell<Vec<Message>>,
}

impl<'a> Engine<'a> {
    pub(crate) fn new(inner: &'a Inner, session: &'a SessionKey, agent: &'a AgentName) -> Self {
        Self {
            inner,
            session,
            agent,
            transcript: None,
            calls: BTreeSet::new(),
            stored: OnceCell::new(),
        }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// The skills that are there now.
    pub(crate) async fn look_again(&self) -> Snapshot {
        let scope = scope_of(self.session, self.agent);
        let base = self.inner.catalog_of(&scope).refresh().await;
        self.inner.view(&scope, base).snapshot.clone()
    }

    /// How far a skill shows itself to this agent.
    pub(crate) fn visibility(&self, skill: &CatalogSkill) -> Visibility {
        self.inner.visibilities.of(&scope_of(self.session, self.agent), skill)
    }

    /// Why one more skill cannot be loaded.
    pub(crate) fn refusal(&self, state: &SessionState, skill: &str) -> Option<ToolOutcome> {
        let settings = self.settings();
        let is_full = state.loaded.len() >= settings.max_loaded_skills;
        let refuses = is_full && settings.when_full == WhenFull::Refuse;
        refuses.then(|| load_limit(skill, settings.max_loaded_skills, &state.loaded_names()))
    }

    pub(crate) async fn keep(&self, bytes: Vec<u8>) -> Result<Digest, ToolOutcome> {
        self.inner.keep(bytes).await.map_err(|error| content_failure(&error))
    }

    /// Whether a text is still in the conversation: in the result of the call that gave it, or, if
    /// no call did, in a message.
    pub(crate) async fn is_in_transcript(
        &self,
        call: Option<&str>,
        text: &str,
    ) -> Result<bool, ToolOutcome> {
        if call.is_some_and(|call| self.calls.contains(call)) {
            return Ok(true);
        }
        let read = || self.inner.sessions.messages(self.session, self.agent);
        let transcript = match self.transcript {
            Some(transcript) => transcript,
            None => self
                .stored
                .get_or_try_init(read)
                .await
                .map_err(|error| ToolOutcome::error(error.code(), format!("Error: {error}")))?,
        };
        Ok(match call {
            Some(call) => result_of(transcript, call).is_some(),
            None => transcript.iter().any(|message| is_said(&message.text(), text)),
        })
    }

    /// Whether the text of a doc is in the conversation.
    pub(crate) async fn is_given(
        &self,
        selected: Option<&SelectedDoc>,
        doc: &GivenDoc,
    ) -> Result<bool, ToolOutcome> {
        match selected {
            Some(selected) if selected.digest == Some(doc.digest) => {
                self.is_in_transcript(selected.call.as_deref(), &doc.text).await
            }
            _ => Ok(false),
        }
    }

    /// What a toolkit answers for a dynamic resource.
    pub(crate) fn dynamic_resource<'i>(
        &'i self,
        method: &'i str,
        invocation: Invocation<'i>,
    ) -> Option<ToolFuture<'i>> {
        let toolkits = &self.inner.toolkits;
        toolkits.iter().find_map(|toolkit| toolkit.dynamic_resource(method, invocation))
    }
}

/// As many skills are loaded as may be.
pub(crate) fn load_limit(skill: &str, limit: usize, loaded: &[&str]) -> ToolOutcome {
    let data = json!({"skill": skill, "limit": limit, "loaded": loaded});
    ToolOutcome::failed("load_limit", data).about(skill)
}

pub(crate) fn content_failure(error: &ContentError) -> ToolOutcome {
    ToolOutcome::error(error.code(), format!("Error: {error}"))
        .with_hint("Tell the user that the content store failed.")
}

impl<'a> Invocation<'a> {
    /// The loaded skill that a model means.
    pub(crate) fn loaded(&self, name: &str) -> Result<&'a LoadedSkill, ToolOutcome> {
        let state = self.state;
        let by_catalog = || {
            let skill = self.snapshot.get(name).ok()?;
            state.loaded(&crate::disclose::session_name(self.snapshot, skill))
        };
        state.loaded(name).or_else(by_catalog).ok_or_else(|| {
            let data = json!({"skill": name, "tool": null});
            ToolOutcome::failed("skill_not_loaded", data).about(name)
        })
    }
}

/// A session and what its store knows of it.
pub(crate) async fn stored_session(
    inner: &Inner,
    session: &SessionKey,
) -> Result<StoredSession, RuntimeError> {
    Ok(inner.sessions.get(session).await?.unwrap_or_default())
}
