//! What commands of skills run with: workspaces, a sandbox, artifacts, settings.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use prowess_catalog::Config;
use prowess_runtime::{CommandRunner, RuntimeBuilder};
use prowess_toolkits::{
    ArtifactSettings, ExecSettings, ExecToolkit, ExecutorChoice, FilesSettings, FilesToolkit,
    InvalidSqlSettings, JiraSettings, JiraToolkit, SqlSettings, SqlToolkit, WorkspaceSettings,
    XlsxSettings, XlsxToolkit,
};
use prowess_workspace::{
    ArtifactStore, ContainerExecutor, ContainerSettings, Executor, LocalExecutor, Tier, Watcher,
    Workspaces,
};

use crate::cli::ExecutorArgs;
use crate::finder::{Finder, environment};
use crate::terminal::safe_line;

/// Everything that the tools need which run commands and read what they wrote.
pub(crate) struct Toolkits {
    pub(crate) exec: ExecSettings,
    pub(crate) workspaces: Workspaces,
    executor: Arc<dyn Executor>,
    pub(crate) watcher: Option<Watcher>,
    files: FilesSettings,
    sql: Option<SqlToolkit>,
    xlsx: XlsxSettings,
    artifacts: Arc<dyn ArtifactStore>,
    max_artifact_bytes: u64,
    jira: JiraToolkit,
}

impl Toolkits {
    /// As the user's own `prowess.toml` says.
    pub(crate) fn open(finder: &Finder, home: &Path) -> anyhow::Result<Self> {
        let sections = ["exec", "files", "sql", "jira", "xlsx", "workspace", "artifacts"];
        let own = own_config(finder, home, &sections)?;
        let place = || place(&own);
        let workspace = WorkspaceSettings::from_table(own.workspace.clone()).with_context(place)?;
        Ok(Self {
            jira: open_jira(&own)?,
            exec: ExecSettings::from_table(own.exec.clone()).with_context(place)?,
            files: FilesSettings::from_table(own.files.clone()).with_context(place)?,
            sql: open_sql(&own, home)?,
            xlsx: XlsxSettings::from_table(own.xlsx.clone()).with_context(place)?,
            workspaces: Workspaces::new(workspaces_folder(home)).with_limits(workspace.limits),
            artifacts: open_artifacts(&own, home)?,
            executor: Arc::new(local(Tier::T2)),
            max_artifact_bytes: workspace.max_artifact_bytes,
            watcher: None,
        })
    }

    /// Has commands run by what was typed, or else by what the settings say.
    pub(crate) fn run_by(&mut self, asked: &ExecutorArgs, best: Tier, ready: Ready) {
        self.executor = match choose(&mut self.exec, asked) {
            ExecutorChoice::Local => Arc::new(local(best)),
            ExecutorChoice::Container => Arc::new(container(&self.exec.container, ready)),
        };
    }

    fn exec(&self) -> ExecToolkit {
        let exec = ExecToolkit::new(self.workspaces.clone(), Arc::clone(&self.executor))
            .with_artifacts(self.artifacts.clone())
            .with_max_artifact_bytes(self.max_artifact_bytes)
            .with_settings(self.exec.clone());
        match &self.watcher {
            Some(watcher) => exec.with_watcher(watcher.clone()),
            None => exec,
        }
    }

    /// Runs commands that no tool is called for.
    pub(crate) fn commands(&self) -> Arc<dyn CommandRunner> {
        self.exec().commands()
    }

    /// Gives the tools to an engine.
    pub(crate) fn give(self, engine: RuntimeBuilder) -> RuntimeBuilder {
        let (exec, commands) = (self.exec(), self.commands());
        let sql = self.sql.map(|sql| sql.with_artifacts(self.artifacts.clone()));
        let xlsx = XlsxToolkit::new(self.workspaces.clone())
            .with_artifacts(self.artifacts.clone())
            .with_settings(self.xlsx);
        let files = FilesToolkit::new(self.workspaces)
            .with_artifacts(self.artifacts)
            .with_settings(self.files);
        let engine = engine.toolkit(Arc::new(exec)).toolkit(Arc::new(files));
        let engine = engine.toolkit(Arc::new(self.jira)).toolkit(Arc::new(xlsx));
        let engine = match sql {
            Some(sql) => engine.toolkit(Arc::new(sql)),
            None => engine,
        };
        engine.commands(commands)
    }
}

/// Jira, as the user's own `prowess.toml` and the environment say. It is not asked yet.
fn open_jira(own: &Config) -> anyhow::Result<JiraToolkit> {
    let settings = JiraSettings::from_table(own.jira.clone()).with_context(|| place(own))?;
    match JiraToolkit::from_environment(settings.clone()) {
        // The variables may be meant for another program.
        Err(error) if !settings.is_about_a_jira() => {
            let why = safe_line(&error.to_string());
            anstream::eprintln!("Warning: {why}; Jira is not configured");
            Ok(JiraToolkit::unconfigured(settings, &error))
        }
        jira => Ok(jira?),
    }
}

/// The databases, as the user's own `prowess.toml` and the environment say. None is opened yet.
fn open_sql(own: &Config, home: &Path) -> anyhow::Result<Option<SqlToolkit>> {
    let place = || place(own);
    let settings = SqlSettings::from_table(own.sql.clone()).with_context(place)?;
    let settings = match settings.with_environment(|name| std::env::var_os(name)) {
        // The variable may be meant for another program, and for a database that only that knows.
        Err(error @ InvalidSqlSettings::DatabaseUrl { .. }) => {
            anstream::eprintln!("Warning: {error}; there are no databases");
            return Ok(None);
        }
        settings => settings?,
    };
    for warning in settings.warnings() {
        anstream::eprintln!("Warning: {warning}");
    }
    let sql = SqlToolkit::new(settings, home)?.with_scratch(home.join("tmp"));
    Ok(Some(sql))
}

/// The store of artifacts, as the user's own `prowess.toml` says: a project that was cloned from
/// anywhere does not decide where they are sent.
pub(crate) fn artifacts(finder: &Finder, home: &Path) -> anyhow::Result<Arc<dyn ArtifactStore>> {
    open_artifacts(&own_config(finder, home, &["workspace", "artifacts"])?, home)
}

fn open_artifacts(own: &Config, home: &Path) -> anyhow::Result<Arc<dyn ArtifactStore>> {
    let place = || place(own);
    let workspace = WorkspaceSettings::from_table(own.workspace.clone()).with_context(place)?;
    let settings = ArtifactSettings::from_table(own.artifacts.clone()).with_context(place)?;
    settings.open(home, workspace.max_artifact_bytes).with_context(place)
}

/// Which file says so.
fn place(config: &Config) -> String {
    config.path.as_ref().map(|path| path.display().to_string()).unwrap_or_default()
}

/// Whether something is kept ready for a run after this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    /// There is none.
    No,
    /// As the settings say.
    AsSet,
}

/// What runs commands: what was typed, or else what the settings say.
pub(crate) fn choose(settings: &mut ExecSettings, asked: &ExecutorArgs) -> ExecutorChoice {
    if let Some(image) = &asked.image {
        settings.container.image.clone_from(image);
    }
    asked.executor.map_or(settings.executor, ExecutorChoice::from)
}

/// Runs commands in a sandbox of this machine that is no better than this one.
pub(crate) fn local(best: Tier) -> LocalExecutor {
    LocalExecutor::builder().best_tier(best).build()
}

/// Runs commands in containers, which see the folder that `SKILLS_ROOT` names.
pub(crate) fn container(settings: &ContainerSettings, ready: Ready) -> ContainerExecutor {
    let mut settings = settings.clone();
    if ready == Ready::No {
        settings.warm = 0;
    }
    let builder = ContainerExecutor::builder(settings);
    // It may be an address.
    let root = std::env::var_os("SKILLS_ROOT").map(PathBuf::from).filter(|root| root.is_dir());
    match root.and_then(|root| root.canonicalize().ok()) {
        Some(root) => builder.skills_root(root).build(),
        None => builder.build(),
    }
}

/// The section `[exec]` of the user's own `prowess.toml`.
pub(crate) fn exec_settings(finder: &Finder, home: &Path) -> anyhow::Result<ExecSettings> {
    let own = own_config(finder, home, &["exec"])?;
    let place = || place(&own);
    ExecSettings::from_table(own.exec.clone()).with_context(place)
}

/// The `prowess.toml` in Prowess' own home, for these sections of it. How commands run and whom a
/// conversation is sent to, a project does not decide: it may have been cloned from anywhere, and
/// could let itself out.
pub(crate) fn own_config(
    finder: &Finder,
    home: &Path,
    sections: &[&str],
) -> anyhow::Result<Config> {
    let own = home.join("prowess.toml");
    if finder.is_own_config() {
        return Ok(finder.config.clone());
    }
    let config = &finder.config;
    let tables = [
        ("exec", &config.exec),
        ("files", &config.files),
        ("sql", &config.sql),
        ("workspace", &config.workspace),
        ("artifacts", &config.artifacts),
        ("jira", &config.jira),
        ("xlsx", &config.xlsx),
        ("chat", &config.chat),
        ("server", &config.server),
        ("store", &config.store),
        ("telemetry", &config.telemetry),
    ];
    for (section, table) in tables {
        let is_left_out = sections.contains(&section) && !table.is_empty();
        if let (Some(path), true) = (&config.path, is_left_out) {
            anstream::eprintln!(
                "Warning: {}: [{section}] counts only in {}; it is left out",
                safe_line(&path.display().to_string()),
                safe_line(&own.display().to_string()),
            );
        }
    }
    match own.exists() {
        true => Ok(Config::read(&own, &environment()?)?),
        false => Ok(Config::default()),
    }
}

/// Where workspaces are: `PROWESS_WORKSPACES`, or below Prowess' own home. Commands of root run as
/// somebody else, who must be able to go there.
fn workspaces_folder(home: &Path) -> PathBuf {
    let named = std::env::var_os("PROWESS_WORKSPACES").filter(|it| !it.is_empty());
    let is_roots =
        rustix::process::geteuid().is_root() && std::env::var_os("PROWESS_HOME").is_none();
    match named {
        Some(folder) => folder.into(),
        None if is_roots => PathBuf::from("/var/lib/prowess/workspaces"),
        None => home.join("workspaces"),
    }
}
