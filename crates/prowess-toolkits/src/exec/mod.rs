//! Commands of skills, in a workspace, in a sandbox: `skill_run`, `skill_exec`, `workspace_exec`.

mod after;
mod arguments;
mod cwd;
mod declaration;
mod env;
mod garbage;
mod inputs;
mod interactive;
mod outputs;
mod plan;
mod result;
mod run_folder;
mod session_commands;
mod settings;
mod stage;
mod tool;
mod workspace_exec;

use std::sync::Arc;

use prowess_runtime::{CommandRunner, Tool, Toolkit};
use prowess_workspace::{ArtifactStore, Executor, Watcher, Workspaces};

pub(crate) use cwd::InvalidCwd;
pub(crate) use env::InvalidVariable;
pub(crate) use inputs::InvalidInput;
pub use interactive::SessionSettings;
use interactive::Sessions;
use plan::Runner;
pub use settings::{ExecSettings, ExecutorChoice, InvalidExecSettings, LimitSettings};
use tool::SkillRun;

/// The tool `skill_run`: it runs commands of loaded skills in the session's workspace. Where the
/// settings say so, `skill_exec` with its family, which talks to such commands, and `workspace_exec`
/// with its family, which runs any command on copies of the loaded skills.
///
/// What runs are the files that the session has pinned: they are staged read-only from the bytes
/// that were hashed, and if they have changed since the skill was loaded, nothing starts. Every
/// refusal is an outcome with a stable code; a command that fails is an ordinary result.
#[derive(Clone)]
pub struct ExecToolkit {
    runner: Runner,
    sessions: Arc<Sessions>,
}

impl ExecToolkit {
    /// Runs commands in these workspaces with this executor.
    pub fn new(workspaces: Workspaces, executor: Arc<dyn Executor>) -> Self {
        Self { runner: Runner::new(workspaces, executor), sessions: Arc::default() }
    }

    /// Where artifacts are read from and kept.
    pub fn with_artifacts(mut self, artifacts: Arc<dyn ArtifactStore>) -> Self {
        self.runner.artifacts = Some(artifacts);
        self
    }

    /// Lets somebody see what commands write while they run.
    pub fn with_watcher(mut self, watcher: Watcher) -> Self {
        self.runner.watcher = Some(watcher);
        self
    }

    /// Runs commands that no tool is called for, in the same workspaces, with the same executor
    /// and settings: those in the text of skills ([`RuntimeBuilder::commands`]), and code in
    /// answers.
    ///
    /// [`RuntimeBuilder::commands`]: prowess_runtime::RuntimeBuilder::commands
    pub fn commands(&self) -> Arc<dyn CommandRunner> {
        Arc::new(self.runner.commands())
    }

    /// Bytes of a file that may be kept as an artifact: [`WorkspaceSettings::max_artifact_bytes`].
    ///
    /// [`WorkspaceSettings::max_artifact_bytes`]: crate::WorkspaceSettings::max_artifact_bytes
    pub fn with_max_artifact_bytes(mut self, bytes: u64) -> Self {
        self.runner.max_artifact_bytes = bytes;
        self
    }

    /// How many commands run that somebody talks to. They end with the last of the toolkit's tools.
    pub fn running_sessions(&self) -> usize {
        self.sessions.running()
    }

    /// Other settings than the default ones.
    pub fn with_settings(mut self, settings: ExecSettings) -> Self {
        self.runner.settings = Arc::new(settings);
        self
    }
}

impl std::fmt::Debug for ExecToolkit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let settings = &self.runner.settings;
        formatter.debug_struct("ExecToolkit").field("settings", settings).finish_non_exhaustive()
    }
}

impl Toolkit for ExecToolkit {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut tools: Vec<Arc<dyn Tool>> = vec![Arc::new(SkillRun::new(self.runner.clone()))];
        if self.runner.settings.interactive {
            tools.extend(interactive::tools(&self.runner, &self.sessions));
        }
        if self.runner.settings.workspace_exec {
            tools.extend(workspace_exec::tools(&self.runner, &self.sessions));
        }
        tools
    }
}
