//! Commands that no tool is called for: those in the text of skills, and code in answers.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use prowess_runtime::{
    BoxError, CommandAnswer, CommandLanguage, CommandRequest, CommandRunner, ToolOutcome,
};
use prowess_workspace::{Command, ExecError, Executor, Run, Workspaces};

use super::garbage::Garbage;
use super::run_folder::RunFolder;
use super::settings::{ExecSettings, Grants};
use super::stage::put;
use crate::place::folder;
use crate::policy::CommandError;
use crate::session::{blocking, workspace_failure, workspace_of};

/// Runs commands in the session's workspace, in its folder `work`, with everything that holds for
/// `skill_run`: the sandbox, the limits, and the commands that the host allows.
#[derive(Clone)]
pub(crate) struct SessionCommands {
    pub(super) workspaces: Workspaces,
    pub(super) executor: Arc<dyn Executor>,
    pub(super) garbage: Arc<Garbage>,
    pub(super) settings: Arc<ExecSettings>,
}

/// Why a command was not run.
#[derive(Debug, thiserror::Error)]
enum NotRun {
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The workspace or the skill in it, in the words of an outcome.
    #[error("{}", .0.content)]
    Prepare(Box<ToolOutcome>),
    #[error(transparent)]
    Executor(#[from] ExecError),
}

impl From<ToolOutcome> for NotRun {
    fn from(outcome: ToolOutcome) -> Self {
        Self::Prepare(Box::new(outcome))
    }
}

impl CommandRunner for SessionCommands {
    fn run<'a>(
        &'a self,
        request: CommandRequest<'a>,
    ) -> BoxFuture<'a, Result<CommandAnswer, BoxError>> {
        Box::pin(async move { Ok(self.run_one(request).await?) })
    }
}

impl SessionCommands {
    async fn run_one(&self, request: CommandRequest<'_>) -> Result<CommandAnswer, NotRun> {
        let settings = &*self.settings;
        let policy = settings.command_policy()?;
        let (mut command, stdin) = match request.language {
            CommandLanguage::Python => (policy.command("python3 -")?, request.code.as_bytes()),
            _ => (policy.command(request.code)?, request.input),
        };
        self.garbage.look(&self.workspaces);
        let workspace = workspace_of(&self.workspaces, request.session).await?;
        let mut skill_folder = None;
        let mut grants = Grants { require: settings.require.clone(), ..Grants::default() };
        if let Some(skill) = request.skill {
            let limit = settings.max_skill_bytes;
            let (folder, _) = put(skill, skill.name(), &workspace, None, limit).await?;
            if let Command::Shell(line) = &mut command {
                // No plain name of a folder means anything to a shell.
                line.insert_str(0, &format!("export CLAUDE_SKILL_DIR=\"$SKILLS_DIR/{folder}\"\n"));
            }
            skill_folder = Some(folder);
            grants = settings.grants(skill);
        }
        let here = workspace.clone();
        let run_folder = blocking(move || RunFolder::new(here)).await?;
        let run_folder = run_folder.map_err(|error| workspace_failure(&error))?;
        let mut run = Run::new(workspace.path(), command);
        run.skill = skill_folder.as_deref();
        run.cwd = folder("work");
        run.run_dir = run_folder.path().clone();
        run.stdin = stdin.to_vec().into();
        run.limits = settings.run_limits(Some(request.timeout)).0;
        run.network = grants.network;
        run.require = grants.require;
        run.unsandboxed = grants.unsandboxed;
        let ran = self.executor.run(run).await?;
        let most = settings.run_limits(None).0.output_bytes;
        let stdout = ran.stdout.text(most);
        let output = [stdout.as_str(), &ran.stderr.text(most)].concat();
        let mut answer = CommandAnswer::new(ran.exit_code, output);
        answer.stdout = stdout;
        answer.timed_out = ran.timed_out;
        Ok(answer)
    }
}
