//! `skill_run`: commands of skills, in a workspace, in a sandbox.

mod arguments;
mod command;
mod cwd;
mod declaration;
mod env;
mod garbage;
mod inputs;
mod outputs;
mod plan;
mod result;
mod run_folder;
mod session_commands;
mod settings;
mod stage;
mod tool;

use std::sync::Arc;

use prowess_runtime::{CommandRunner, Tool, Toolkit};
use prowess_workspace::{ArtifactStore, Executor, Watcher, Workspaces};

pub(crate) use command::CommandError;
pub(crate) use cwd::InvalidCwd;
pub(crate) use env::InvalidVariable;
pub(crate) use inputs::InvalidInput;
use plan::Runner;
pub use settings::{ExecSettings, InvalidExecSettings, LimitSettings};
use tool::SkillRun;

/// The tool `skill_run`: it runs commands of loaded skills in the session's workspace.
///
/// What runs are the files that the session has pinned: they are staged read-only from the bytes
/// that were hashed, and if they have changed since the skill was loaded, nothing starts. Every
/// refusal is an outcome with a stable code; a command that fails is an ordinary result.
#[derive(Clone)]
pub struct ExecToolkit {
    runner: Runner,
}

impl ExecToolkit {
    /// Runs commands in these workspaces with this executor.
    pub fn new(workspaces: Workspaces, executor: Arc<dyn Executor>) -> Self {
        Self { runner: Runner::new(workspaces, executor) }
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
        vec![Arc::new(SkillRun::new(self.runner.clone()))]
    }
}
