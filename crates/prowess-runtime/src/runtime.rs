//! The engine: what doors call.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwapOption;
use prowess_catalog::{
    Catalog, CatalogSkill, ContentError, ContentStore, MemoryContent, Scope, Snapshot,
};
use prowess_format::Digest;

use crate::bind::{Bindings, Bound, BoundTools, Quarantined};
use crate::builder::RuntimeBuilder;
use crate::command::CommandRunner;
use crate::customise::{Asked, Customisation};
use crate::dialect::Dialect;
use crate::event::{Event, EventSink};
use crate::fork::Forker;
use crate::gate::{Declared, ToolTable};
use crate::handlers::HandlerTable;
use crate::in_flight::InFlight;
use crate::interceptor::Interceptor;
use crate::message::{Message, ToolCall};
use crate::prompt::{TokenCounter, default_counter, least_characters, scope_of};
use crate::session::{AgentName, Change, KnownSkills, SessionDelta, SessionKey, SessionState};
use crate::settings::Settings;
use crate::store::{
    Hold, LeasedSessions, MemorySessions, Revision, SessionStore, StoreError, StoredSession,
};
use crate::tool::ToolDeclaration;
use crate::turn::RuntimeError;
use crate::visibility::{Visibilities, Visibility, own_visibility};

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
    pub(crate) catalog: Catalog,
    /// What everybody sees, where nothing depends on who asks.
    pub(crate) shared: ArcSwapOption<SkillView>,
    /// What users, sessions and agents see, where it does.
    pub(crate) scoped: Mutex<HashMap<Scope, Scoped>>,
    pub(crate) visibilities: Visibilities,
    pub(crate) counter: Arc<dyn TokenCounter>,
    pub(crate) sessions: Arc<dyn SessionStore>,
    /// The same sessions, if others use them as well.
    pub(crate) leased: Option<Arc<LeasedSessions>>,
    /// The calls that are being carried out.
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) content: Arc<dyn ContentStore>,
    pub(crate) tools: ToolTable,
    pub(crate) handlers: HandlerTable,
    /// What skills have bound to them.
    pub(crate) bindings: Bindings,
    pub(crate) interceptors: Vec<Arc<dyn Interceptor>>,
    pub(crate) sinks: Vec<Arc<dyn EventSink>>,
    pub(crate) settings: Settings,
    pub(crate) dialect: Dialect,
    pub(crate) customisation: Customisation,
    /// What the host was asked once.
    pub(crate) asked: Asked,
    pub(crate) forker: Option<Arc<dyn Forker>>,
    pub(crate) commands: Option<Arc<dyn CommandRunner>>,
    /// What a model is told that knows nothing of skills.
    pub(crate) host_tools: OnceLock<Arc<[ToolDeclaration]>>,
    /// What a model is told about using skills.
    pub(crate) guidance: OnceLock<String>,
}

/// The catalog of somebody, and what of it was seen last.
pub(crate) struct Scoped {
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
    /// The tools that these skills bring themselves.
    pub(crate) bound: BoundTools,
    /// What is not used.
    pub(crate) quarantined: Vec<Quarantined>,
    /// What a listing must know of each skill, in the order of the snapshot.
    pub(crate) briefs: Vec<Brief>,
    /// The tools that a model is told of whatever is loaded.
    pub(crate) declarations: OnceLock<Arc<[ToolDeclaration]>>,
    known: OnceLock<KnownSkills>,
    told: OnceLock<KnownSkills>,
}

/// What a listing must know of a skill before it looks at it.
#[derive(Clone, Copy)]
pub(crate) struct Brief {
    /// How far the skill itself wants to be seen.
    pub(crate) own: Visibility,
    /// The least number of characters of its entry.
    pub(crate) least: u32,
}

impl SkillView {
    fn new(base: Snapshot, snapshot: Snapshot, bound: Bound, tools: &ToolTable) -> Arc<Self> {
        let Bound { tools: bound, quarantined } = bound;
        let is_used = |skill: &CatalogSkill| {
            let is_it = |it: &Quarantined| it.skill.found() == skill.found();
            !quarantined.iter().any(is_it)
        };
        let snapshot = match quarantined.is_empty() {
            true => snapshot,
            false => snapshot.visible(is_used),
        };
        let declared = Declared::of(&base, &snapshot, tools);
        let brief = |skill: &CatalogSkill| Brief {
            own: own_visibility(skill),
            least: least_characters(skill.found().description()),
        };
        let briefs = snapshot.skills().iter().map(brief).collect();
        Arc::new(Self {
            base,
            snapshot,
            declared,
            bound,
            quarantined,
            briefs,
            declarations: OnceLock::new(),
            known: OnceLock::new(),
            told: OnceLock::new(),
        })
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

impl Runtime {
    /// Begins an engine over a catalog.
    pub fn builder(catalog: Catalog) -> RuntimeBuilder {
        RuntimeBuilder {
            catalog,
            sessions: Arc::new(MemorySessions::new()),
            leases: None,
            content: Arc::new(MemoryContent::default()),
            tools: Vec::new(),
            handlers: Vec::new(),
            interceptors: Vec::new(),
            sinks: Vec::new(),
            dialect: None,
            settings: None,
            filter: None,
            counter: default_counter(),
            customisation: Customisation::default(),
            forker: None,
            commands: None,
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

    /// How a model is spoken to.
    pub fn dialect(&self) -> &Dialect {
        &self.inner.dialect
    }

    /// Whether a call could be carried out now: the tool is there, its skill is loaded, and the
    /// policy allows it. Every call is asked this first.
    pub fn check(
        &self,
        call: &ToolCall,
        state: &SessionState,
        snapshot: &Snapshot,
    ) -> Result<(), Blocked> {
        let shared = self.inner.shared.load();
        let is_it = |view: &&Arc<SkillView>| view.snapshot.is_same(snapshot);
        let scoped = self.inner.scoped.lock().unwrap_or_else(PoisonError::into_inner);
        let scoped = scoped.values().filter_map(|it| it.view.as_ref()).find(is_it).cloned();
        let known = shared.as_ref().filter(is_it).or(scoped.as_ref());
        let fresh;
        let nothing = BoundTools::default();
        let (declared, bound) = match known {
            Some(view) => (&view.declared, &view.bound),
            None => {
                fresh = Declared::of(snapshot, snapshot, &self.inner.tools);
                (&fresh, &nothing)
            }
        };
        self.inner.asked(call, declared, bound, state).map(drop).map_err(Blocked::from)
    }

    /// The skills that an agent of a session would see if everything that they declare could be
    /// bound, and why it cannot.
    pub async fn quarantined(&self, session: &SessionKey, agent: &AgentName) -> Vec<Quarantined> {
        self.inner.skills_of(session, agent).await.1.quarantined.clone()
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

    /// How far a skill shows itself to an agent of a session.
    pub fn visibility(
        &self,
        session: &SessionKey,
        agent: &AgentName,
        skill: &CatalogSkill,
    ) -> Visibility {
        self.inner.visibilities.of(&scope_of(session, agent), skill)
    }

    /// Takes a session, so that no other engine changes it as long as it is held. Waits for others,
    /// for a while. Where sessions are not shared ([`RuntimeBuilder::leases`]), nobody is waited
    /// for. Everything that changes a session holds it for as long as that takes; whoever does
    /// several things that belong together, such as a turn, holds it for all of them.
    pub async fn hold(&self, session: &SessionKey) -> Result<Hold, RuntimeError> {
        match &self.inner.leased {
            Some(leased) => Ok(leased.hold(session).await?),
            None => Ok(Hold::unshared()),
        }
    }

    /// Does something while a session is held, and gives it back before saying what came of it.
    pub(crate) async fn holding<T>(
        &self,
        session: &SessionKey,
        work: impl Future<Output = Result<T, RuntimeError>>,
    ) -> Result<T, RuntimeError> {
        let hold = self.hold(session).await?;
        let result = hold.during(work).await;
        hold.release().await;
        result
    }

    /// Changes the state of an agent from outside, such as with a state of another system. All of
    /// the changes, or none.
    pub async fn change(
        &self,
        session: &SessionKey,
        agent: &AgentName,
        changes: Vec<Change>,
    ) -> Result<Revision, RuntimeError> {
        self.change_telling(session, agent, changes, Vec::new()).await
    }

    /// The same, and says what happened.
    pub(crate) async fn change_telling(
        &self,
        session: &SessionKey,
        agent: &AgentName,
        changes: Vec<Change>,
        events: Vec<Event>,
    ) -> Result<Revision, RuntimeError> {
        let delta = SessionDelta::new(agent.clone(), self.inner.settings.caps());
        let delta = delta.with_setup(changes);
        self.holding(session, self.commit_alone(session, delta, events)).await
    }

    /// Commits something that depends on nothing, as often as it takes.
    async fn commit_alone(
        &self,
        session: &SessionKey,
        delta: SessionDelta,
        events: Vec<Event>,
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
                .commit(session, stored.revision, delta.clone(), events.clone())
                .await;
            match committed {
                Err(StoreError::Conflict { .. }) => {}
                committed => {
                    let revision = committed?;
                    self.inner.publish(session, &events);
                    return Ok(revision);
                }
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
        let delta = delta.with_messages(messages);
        self.holding(session, self.commit_alone(session, delta, Vec::new())).await
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
        let view = self.view(&scope, base).await;
        (catalog, view)
    }

    /// What somebody sees of a snapshot.
    pub(crate) async fn view(&self, scope: &Scope, base: Snapshot) -> Arc<SkillView> {
        let is_current = |view: &Arc<SkillView>| view.base.is_same(&base);
        if !self.catalog.depends_on_scope() && !self.visibilities.can_hide() {
            if let Some(view) = self.shared.load_full().filter(is_current) {
                return view;
            }
            let bound = self.bind(&base).await;
            let view = SkillView::new(base.clone(), base, bound, &self.tools);
            self.shared.store(Some(Arc::clone(&view)));
            return view;
        }
        let known = {
            let scoped = self.scoped.lock().unwrap_or_else(PoisonError::into_inner);
            scoped.get(scope).and_then(|it| it.view.clone())
        };
        if let Some(view) = known.filter(is_current) {
            return view;
        }
        let visible = self.visibilities.visible(scope, &base);
        let bound = self.bind(&visible).await;
        let view = SkillView::new(base, visible, bound, &self.tools);
        let mut scoped = self.scoped.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = scoped.get_mut(scope) {
            entry.view = Some(Arc::clone(&view));
        }
        view
    }

    pub(crate) fn catalog_of(&self, scope: &Scope) -> Catalog {
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

    /// Whether a model is told of a skill.
    pub(crate) fn is_told(&self, scope: &Scope, skill: &CatalogSkill) -> bool {
        self.visibilities.of(scope, skill) < Visibility::ManualOnly
    }

    /// What identifies the skills that a model is told of.
    pub(crate) fn told(&self, view: &SkillView, scope: &Scope) -> KnownSkills {
        *view.told.get_or_init(|| self.told_manifest(view, scope).0)
    }

    /// The same, with their names and digests.
    pub(crate) fn told_manifest(&self, view: &SkillView, scope: &Scope) -> (KnownSkills, String) {
        let skills = view.snapshot.skills().iter();
        KnownSkills::with_manifest(skills.filter(|skill| self.is_told(scope, skill)))
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

impl Inner {
    /// Bytes that were kept; none too if others stand in their place: nobody may be given those.
    pub(crate) async fn kept_or_lost(
        &self,
        digest: Digest,
    ) -> Result<Option<Arc<[u8]>>, ContentError> {
        match self.kept(digest).await {
            Err(ContentError::Corrupt(_)) => Ok(None),
            kept => kept,
        }
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
    /// Its arguments do not fit; only a tool that is called through another one is asked this.
    InvalidArguments,
    /// The policy does not allow it.
    NotAllowed,
}

/// A session and what its store knows of it.
pub(crate) async fn stored_session(
    inner: &Inner,
    session: &SessionKey,
) -> Result<StoredSession, RuntimeError> {
    Ok(inner.sessions.get(session).await?.unwrap_or_default())
}
