//! A runtime over a folder of skills, for tests.

#![allow(dead_code, reason = "every test file uses some of it")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use prowess_catalog::{Catalog, DirectorySource, ResourceDiscovery, ScanLimits};
use prowess_runtime::{
    AgentName, Dialect, Event, EventKind, Message, Runtime, RuntimeBuilder, SessionKey,
    SessionState, Settings, Step, StepResult, Tool, ToolCall, ToolDeclaration, ToolOutcome,
    tool_fn,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A runtime, its skills, and what happened.
pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) runtime: Runtime,
    pub(crate) catalog: Catalog,
    pub(crate) session: SessionKey,
    pub(crate) agent: AgentName,
    events: Arc<Mutex<Vec<Event>>>,
    calls: AtomicUsize,
}

/// What a world is made of.
pub(crate) struct Plan {
    folder: TempDir,
    dialect: Dialect,
    settings: Option<Settings>,
    discovery: ResourceDiscovery,
    limits: ScanLimits,
    change: Box<dyn FnOnce(RuntimeBuilder) -> RuntimeBuilder>,
}

/// A `SKILL.md`.
pub(crate) fn skill(name: &str, description: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\n{body}")
}

impl Plan {
    pub(crate) fn new() -> Self {
        Self {
            folder: TempDir::new().unwrap(),
            dialect: Dialect::built_in().unwrap(),
            settings: None,
            discovery: ResourceDiscovery::Lazy,
            limits: ScanLimits::default(),
            change: Box::new(|builder| builder),
        }
    }

    /// Adds a file; a path such as `web-research/SKILL.md`.
    pub(crate) fn file(self, path: &str, text: impl AsRef<[u8]>) -> Self {
        write(self.folder.path(), path, text);
        self
    }

    /// Adds a skill with a short description and a body.
    pub(crate) fn skill(self, name: &str, body: &str) -> Self {
        let text = skill(name, &format!("Does {name}."), body);
        self.file(&format!("{name}/SKILL.md"), text)
    }

    pub(crate) fn settings(mut self, settings: Settings) -> Self {
        self.settings = Some(settings);
        self
    }

    pub(crate) fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// The settings of the dialect, changed.
    pub(crate) fn set(self, change: impl FnOnce(Settings) -> Settings) -> Self {
        let settings = change(self.dialect.settings().clone());
        self.settings(settings)
    }

    pub(crate) fn eager(mut self) -> Self {
        self.discovery = ResourceDiscovery::Eager;
        self
    }

    pub(crate) fn limits(mut self, limits: ScanLimits) -> Self {
        self.limits = limits;
        self
    }

    pub(crate) fn change(
        mut self,
        change: impl FnOnce(RuntimeBuilder) -> RuntimeBuilder + 'static,
    ) -> Self {
        self.change = Box::new(change);
        self
    }

    pub(crate) fn build(self) -> World {
        let source = DirectorySource::new(self.folder.path()).with_limits(self.limits);
        let catalog = Catalog::builder().source(source).resources(self.discovery).build();
        let events: Arc<Mutex<Vec<Event>>> = Arc::default();
        let seen = Arc::clone(&events);
        let mut builder = Runtime::builder(catalog.clone()).sink(Arc::new(
            move |_: &SessionKey, event: &Event| seen.lock().unwrap().push(event.clone()),
        ));
        if let Some(settings) = self.settings {
            builder = builder.settings(settings);
        }
        let builder = builder.dialect(self.dialect);
        let runtime = (self.change)(builder).build().unwrap();
        World {
            folder: self.folder,
            runtime,
            catalog,
            session: "test".parse().unwrap(),
            agent: AgentName::default(),
            events,
            calls: AtomicUsize::new(0),
        }
    }
}

fn write(root: &Path, path: &str, text: impl AsRef<[u8]>) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

impl World {
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        write(self.folder.path(), path, text);
    }

    /// Makes a file that nobody can read, not even root: it is not there any more.
    pub(crate) fn remove(&self, path: &str) {
        fs::remove_file(self.path(path)).unwrap();
    }

    pub(crate) fn make_executable(&self, path: &str) {
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// The next call, with an id that no call had before.
    pub(crate) fn tool_call(&self, tool: &str, arguments: Value) -> ToolCall {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        ToolCall::new(format!("call-{number}"), tool, arguments)
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> ToolOutcome {
        let call = self.tool_call(tool, arguments);
        self.runtime.dispatch(&self.session, &self.agent, call).await.unwrap()
    }

    pub(crate) async fn call_as(&self, agent: &str, tool: &str, arguments: Value) -> ToolOutcome {
        let (call, agent) = (self.tool_call(tool, arguments), AgentName::new(agent).unwrap());
        self.runtime.dispatch(&self.session, &agent, call).await.unwrap()
    }

    pub(crate) async fn load(&self, name: &str) -> ToolOutcome {
        self.call("load_skill", serde_json::json!({"skill_name": name})).await
    }

    pub(crate) async fn step(&self, calls: Vec<ToolCall>) -> StepResult {
        self.runtime.dispatch_batch(&self.session, &self.agent, Step::new(calls)).await.unwrap()
    }

    pub(crate) async fn state(&self) -> SessionState {
        self.runtime.state(&self.session, &self.agent).await.unwrap()
    }

    pub(crate) async fn messages(&self) -> Vec<Message> {
        self.runtime.sessions().messages(&self.session, &self.agent).await.unwrap()
    }

    pub(crate) async fn revision(&self) -> u64 {
        let stored = self.runtime.sessions().get(&self.session).await.unwrap();
        stored.map_or(0, |stored| stored.revision.0)
    }

    /// What happened since the last time.
    pub(crate) fn events(&self) -> Vec<Event> {
        std::mem::take(&mut self.events.lock().unwrap())
    }

    /// The events of one kind since the last time.
    pub(crate) fn events_of(&self, kind: EventKind) -> Vec<Event> {
        self.events().into_iter().filter(|event| event.kind == kind).collect()
    }
}

/// A tool of the host that says what it was given.
pub(crate) fn echo(name: &str) -> Arc<dyn Tool> {
    let declaration =
        ToolDeclaration::new(name, format!("Does {name}."), json!({"type": "object"}));
    tool_fn(declaration, |arguments| async move { ToolOutcome::text(arguments.to_string()) })
}

/// The paths and kinds of a loaded skill's resources.
pub(crate) fn resources(state: &SessionState, skill: &str) -> Vec<(String, &'static str)> {
    let loaded = state.loaded(skill).unwrap();
    let named = loaded.resources.named.iter();
    named.map(|resource| (resource.path.clone(), resource.kind.as_str())).collect()
}
