//! A runtime with toolkits over a folder of skills, for tests.

#![allow(dead_code, reason = "every test file uses some of it")]

pub(crate) mod talk;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use prowess_catalog::{
    Catalog, DirectorySource, FoundSkill, ReadError, ResourceListing, ResourcePath, ResourceScope,
    SkillContents, Source, SourceFuture, SourceInfo, SourceListing, Trust,
};
use prowess_runtime::{AgentName, Dialect, Runtime, SessionKey, Step, ToolCall, ToolOutcome};
use prowess_toolkits::{ExecSettings, ExecToolkit, FilesAccess, FilesSettings, FilesToolkit};
use prowess_workspace::{
    ArtifactScope, ArtifactStore, ExecFuture, Executor, Isolation, LocalExecutor, MemoryArtifacts,
    Run, RunOutcome, Tier, WorkspaceId, Workspaces,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The executor that all tests run with, unless they say otherwise. This is the one place to change
/// it.
pub(crate) fn executor() -> Arc<dyn Executor> {
    executor_of(Tier::T2)
}

/// The sandboxes that the tests run in which are to hold in each of them.
pub(crate) const TIERS: [Tier; 2] = [Tier::T2, Tier::T1];

/// An executor that uses no better sandbox than this one. What it enforces is found out once.
pub(crate) fn executor_of(best: Tier) -> Arc<dyn Executor> {
    static ALL: LazyLock<[LocalExecutor; 3]> = LazyLock::new(|| {
        [Tier::T2, Tier::T1, Tier::T0].map(|tier| {
            let host = env!("CARGO_BIN_EXE_toolkits-test-host");
            LocalExecutor::builder().supervisor(host).best_tier(tier).build()
        })
    });
    let at = match best {
        Tier::T0 => 2,
        Tier::T1 => 1,
        _ => 0,
    };
    Arc::new(ALL[at].clone())
}

/// Counts what is started, and lets another executor do it.
pub(crate) struct Counting {
    inner: Arc<dyn Executor>,
    started: Arc<Mutex<Vec<Started>>>,
}

/// What was asked of an executor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Started {
    pub(crate) run_dir: String,
    pub(crate) cwd: String,
    pub(crate) env: BTreeSet<String>,
    pub(crate) network: prowess_workspace::Network,
    pub(crate) unsandboxed: prowess_workspace::Unsandboxed,
}

impl Executor for Counting {
    fn isolation(&self) -> ExecFuture<'_, Isolation> {
        self.inner.isolation()
    }

    fn run<'a>(&'a self, run: Run<'a>) -> ExecFuture<'a, RunOutcome> {
        self.started.lock().unwrap().push(Started {
            run_dir: run.run_dir.to_string(),
            cwd: run.cwd.to_string(),
            env: run.env.keys().cloned().collect(),
            network: run.network,
            unsandboxed: run.unsandboxed,
        });
        self.inner.run(run)
    }
}

/// A runtime, its skills, its workspaces and artifacts, and what was started.
pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) runtime: Runtime,
    pub(crate) catalog: Catalog,
    pub(crate) workspaces: Workspaces,
    pub(crate) artifacts: Arc<MemoryArtifacts>,
    pub(crate) session: SessionKey,
    started: Arc<Mutex<Vec<Started>>>,
    reads: Arc<AtomicUsize>,
    calls: AtomicUsize,
}

/// What a world is made of.
pub(crate) struct Plan {
    folder: TempDir,
    dialect: Dialect,
    settings: ExecSettings,
    files: FilesSettings,
    access: FilesAccess,
    executor: Arc<dyn Executor>,
    trust: Trust,
    has_artifacts: bool,
    max_artifact_bytes: Option<u64>,
}

impl Plan {
    /// A world with the skill `demo`.
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        // Whoever commands run as must be able to get there.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let plan = Self {
            folder,
            dialect: Dialect::built_in().unwrap(),
            settings: ExecSettings::default(),
            files: FilesSettings::default(),
            access: FilesAccess::Read,
            executor: executor(),
            trust: Trust::Trusted,
            has_artifacts: true,
            max_artifact_bytes: None,
        };
        plan.skill("demo").file("skills/demo/data/greeting.txt", "hello\n")
    }

    /// Adds a skill.
    pub(crate) fn skill(self, name: &str) -> Self {
        let text = format!("---\nname: {name}\ndescription: Does {name}.\n---\nBody.\n");
        self.file(&format!("skills/{name}/SKILL.md"), text)
    }

    /// Adds a file below the folder of the world; skills are in `skills/`.
    pub(crate) fn file(self, path: &str, text: impl AsRef<[u8]>) -> Self {
        write(&self.folder.path().join(path), text);
        self
    }

    pub(crate) fn settings(mut self, change: impl FnOnce(ExecSettings) -> ExecSettings) -> Self {
        self.settings = change(self.settings);
        self
    }

    /// Allows `host://` to read the folder `shared` of the world.
    pub(crate) fn sharing(self) -> Self {
        let shared = self.folder.path().join("shared");
        fs::create_dir_all(&shared).unwrap();
        self.settings(|settings| settings.with_host_inputs(vec![shared]))
    }

    pub(crate) fn files(mut self, files: FilesSettings) -> Self {
        self.files = files;
        self
    }

    pub(crate) fn access(mut self, access: FilesAccess) -> Self {
        self.access = access;
        self
    }

    pub(crate) fn dialect(mut self, name: &str) -> Self {
        self.dialect = Dialect::named(name).unwrap();
        self
    }

    pub(crate) fn executor(mut self, executor: Arc<dyn Executor>) -> Self {
        self.executor = executor;
        self
    }

    pub(crate) fn untrusted(mut self) -> Self {
        self.trust = Trust::Untrusted;
        self
    }

    pub(crate) fn without_artifacts(mut self) -> Self {
        self.has_artifacts = false;
        self
    }

    pub(crate) fn max_artifact_bytes(mut self, bytes: u64) -> Self {
        self.max_artifact_bytes = Some(bytes);
        self
    }

    pub(crate) fn build(self) -> World {
        let skills = self.folder.path().join("skills");
        let source = DirectorySource::new(skills).with_label("test").with_trust(self.trust);
        let reads = Arc::default();
        let source = CountingSource { inner: source, reads: Arc::clone(&reads) };
        let catalog = Catalog::builder().source(source).build();
        let workspaces = Workspaces::new(self.folder.path().join("workspaces"));
        let artifacts = Arc::new(MemoryArtifacts::new());
        let started = Arc::default();
        let counting = Counting { inner: self.executor, started: Arc::clone(&started) };
        let mut exec = ExecToolkit::new(workspaces.clone(), Arc::new(counting));
        exec = exec.with_settings(self.settings);
        if let Some(bytes) = self.max_artifact_bytes {
            exec = exec.with_max_artifact_bytes(bytes);
        }
        let mut files = FilesToolkit::new(workspaces.clone()).with_settings(self.files);
        files = files.with_access(self.access);
        if self.has_artifacts {
            exec = exec.with_artifacts(Arc::clone(&artifacts) as Arc<dyn ArtifactStore>);
            files = files.with_artifacts(Arc::clone(&artifacts) as Arc<dyn ArtifactStore>);
        }
        let runtime = Runtime::builder(catalog.clone())
            .dialect(self.dialect)
            .toolkit(Arc::new(exec))
            .toolkit(Arc::new(files))
            .build()
            .unwrap();
        World {
            folder: self.folder,
            runtime,
            catalog,
            workspaces,
            artifacts,
            session: "test".parse().unwrap(),
            started,
            reads,
            calls: AtomicUsize::new(0),
        }
    }
}

fn write(path: &Path, text: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

impl World {
    /// A path below the folder of the world.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        write(&self.path(path), text);
    }

    /// The same world as another session sees it.
    pub(crate) fn in_session(mut self, session: &str) -> Self {
        self.session = session.parse().unwrap();
        self
    }

    /// The next call, with an id that no call had before.
    pub(crate) fn tool_call(&self, tool: &str, arguments: Value) -> ToolCall {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        ToolCall::new(format!("call-{number}"), tool, arguments)
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> ToolOutcome {
        let call = self.tool_call(tool, arguments);
        self.runtime.dispatch(&self.session, &AgentName::default(), call).await.unwrap()
    }

    pub(crate) async fn step(&self, calls: Vec<ToolCall>) -> Vec<ToolOutcome> {
        let (agent, step) = (AgentName::default(), Step::new(calls));
        self.runtime.dispatch_batch(&self.session, &agent, step).await.unwrap().outcomes
    }

    /// Loads a skill.
    pub(crate) async fn load(&self, skill: &str) {
        let tool = self.runtime.dialect().tool("load_skill").unwrap().to_owned();
        let outcome = self.call(&tool, json!({"skill": skill})).await;
        assert!(!outcome.is_error, "{}", outcome.content);
    }

    /// Calls `skill_run` with these arguments for `demo`, besides a command.
    pub(crate) async fn run_with(&self, command: &str, more: Value) -> ToolOutcome {
        let mut arguments = json!({"skill": "demo", "command": command});
        if let (Some(all), Value::Object(more)) = (arguments.as_object_mut(), more) {
            all.extend(more);
        }
        self.call("skill_run", arguments).await
    }

    pub(crate) async fn run(&self, command: &str) -> ToolOutcome {
        self.run_with(command, json!({})).await
    }

    /// The folder of the session's workspace.
    pub(crate) fn workspace(&self) -> PathBuf {
        let id = WorkspaceId::new(self.session.app(), self.session.user(), self.session.session());
        self.workspaces.open(&id).unwrap().path().to_owned()
    }

    pub(crate) fn scope(&self) -> ArtifactScope {
        let key = &self.session;
        ArtifactScope::new(key.app(), key.user(), key.session())
    }

    /// How often all of a skill was read to be staged.
    pub(crate) fn reads(&self) -> usize {
        self.reads.load(Ordering::Relaxed)
    }

    /// What was started until now.
    pub(crate) fn started(&self) -> Vec<Started> {
        self.started.lock().unwrap().clone()
    }
}

/// What a model reads of a run that took place.
pub(crate) fn shown(outcome: &ToolOutcome) -> Value {
    assert!(!outcome.is_error, "{}: {}", outcome.code, outcome.content);
    serde_json::from_str(&outcome.content).unwrap()
}

/// What a command wrote that succeeded.
pub(crate) fn stdout(outcome: &ToolOutcome) -> String {
    let shown = shown(outcome);
    assert_eq!(shown["exit_code"], 0, "{shown}");
    shown["stdout"].as_str().unwrap().to_owned()
}

/// The code of a refusal, and what is said of it.
pub(crate) fn refusal(outcome: &ToolOutcome) -> (&str, &str) {
    assert!(outcome.is_error, "not refused: {}", outcome.content);
    (&outcome.code, &outcome.content)
}

/// A source that counts how often all of a skill is read.
pub(crate) struct CountingSource {
    inner: DirectorySource,
    reads: Arc<AtomicUsize>,
}

impl Source for CountingSource {
    fn info(&self) -> &SourceInfo {
        self.inner.info()
    }

    fn list(&self) -> SourceFuture<'_, Arc<SourceListing>> {
        self.inner.list()
    }

    fn read<'a>(&'a self, skill: &'a FoundSkill) -> SourceFuture<'a, Result<Vec<u8>, ReadError>> {
        self.inner.read(skill)
    }

    fn resources<'a>(
        &'a self,
        skill: &'a FoundSkill,
        scope: ResourceScope,
    ) -> SourceFuture<'a, Result<ResourceListing, ReadError>> {
        self.inner.resources(skill, scope)
    }

    fn read_resource<'a>(
        &'a self,
        skill: &'a FoundSkill,
        path: &'a ResourcePath,
    ) -> SourceFuture<'a, Result<Vec<u8>, ReadError>> {
        self.inner.read_resource(skill, path)
    }

    fn contents<'a>(
        &'a self,
        skill: &'a FoundSkill,
        limit: u64,
    ) -> SourceFuture<'a, Result<SkillContents, ReadError>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.inner.contents(skill, limit)
    }

    fn stamp<'a>(&'a self, skill: &'a FoundSkill) -> SourceFuture<'a, Option<String>> {
        self.inner.stamp(skill)
    }
}
