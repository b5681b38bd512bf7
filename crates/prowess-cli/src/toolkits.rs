//! What commands of skills run with: workspaces, a sandbox, artifacts, settings.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use prowess_catalog::Config;
use prowess_runtime::{CommandRunner, RuntimeBuilder};
use prowess_toolkits::{ExecSettings, ExecToolkit, FilesSettings, FilesToolkit, WorkspaceSettings};
use prowess_workspace::{FileArtifacts, LocalExecutor, Tier, Watcher, Workspaces};

use crate::finder::{Finder, environment};
use crate::terminal::safe_line;

/// Everything that the tools need which run commands and read what they wrote.
pub(crate) struct Toolkits {
    pub(crate) exec: ExecSettings,
    pub(crate) workspaces: Workspaces,
    pub(crate) executor: LocalExecutor,
    pub(crate) watcher: Option<Watcher>,
    files: FilesSettings,
    artifacts: Arc<FileArtifacts>,
    max_artifact_bytes: u64,
}

impl Toolkits {
    /// As the user's own `prowess.toml` says.
    pub(crate) fn open(finder: &Finder, home: &Path) -> anyhow::Result<Self> {
        let own = own_config(finder, home, &["exec", "files", "workspace"])?;
        let place = || own.path.as_ref().map(|it| it.display().to_string()).unwrap_or_default();
        let workspace = WorkspaceSettings::from_table(own.workspace.clone()).with_context(place)?;
        let artifacts = FileArtifacts::new(home.join("artifacts"));
        Ok(Self {
            exec: ExecSettings::from_table(own.exec.clone()).with_context(place)?,
            files: FilesSettings::from_table(own.files.clone()).with_context(place)?,
            workspaces: Workspaces::new(workspaces_folder(home)).with_limits(workspace.limits),
            artifacts: Arc::new(artifacts.with_max_bytes(workspace.max_artifact_bytes)),
            max_artifact_bytes: workspace.max_artifact_bytes,
            executor: executor(Tier::T2),
            watcher: None,
        })
    }

    fn exec(&self) -> ExecToolkit {
        let executor = Arc::new(self.executor.clone());
        let exec = ExecToolkit::new(self.workspaces.clone(), executor)
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
        let files = FilesToolkit::new(self.workspaces)
            .with_artifacts(self.artifacts)
            .with_settings(self.files);
        engine.toolkit(Arc::new(exec)).toolkit(Arc::new(files)).commands(commands)
    }
}

/// Runs commands in a sandbox that is no better than this one.
pub(crate) fn executor(best: Tier) -> LocalExecutor {
    LocalExecutor::builder().best_tier(best).build()
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
    let Config { path, exec, files, workspace, chat, .. } = &finder.config;
    let tables = [("exec", exec), ("files", files), ("workspace", workspace), ("chat", chat)];
    for (section, table) in tables {
        let is_left_out = sections.contains(&section) && !table.is_empty();
        if let (Some(path), true) = (path, is_left_out) {
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
