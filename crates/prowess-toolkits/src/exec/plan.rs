//! From the arguments of a call to a run: what the tools share that run commands of skills.

use std::collections::BTreeMap;
use std::sync::Arc;

use prowess_runtime::{Invocation, ToolOutcome};
use prowess_workspace::{
    ArtifactStore, Command, ExecError, Executor, Limits, Run, Watcher, Workspace, WorkspacePath,
    Workspaces,
};

use super::after::After;
use super::arguments::RunArguments;
use super::cwd::{Begin, CannotBegin, begin};
use super::env::{self, InvalidVariable};
use super::garbage::Garbage;
use super::inputs::Staging;
use super::outputs::Wanted;
use super::run_folder::RunFolder;
use super::session_commands::SessionCommands;
use super::settings::{ExecSettings, Grants};
use super::stage::{Loading, Ready, stage};
use crate::invalid::InvalidArguments;
use crate::place::folder;
use crate::policy::{CommandError, CommandPolicy};
use crate::session::{blocking, workspace_failure, workspace_of};
use crate::workspace::WorkspaceSettings;

/// The file of a run that holds what its editor writes.
const EDITOR_FILE: &str = "editor_text";

/// What runs are made with.
#[derive(Clone)]
pub(crate) struct Runner {
    pub(crate) workspaces: Workspaces,
    pub(crate) executor: Arc<dyn Executor>,
    garbage: Arc<Garbage>,
    pub(crate) artifacts: Option<Arc<dyn ArtifactStore>>,
    pub(crate) settings: Arc<ExecSettings>,
    pub(crate) watcher: Option<Watcher>,
    /// Bytes of a file that may be kept.
    pub(crate) max_artifact_bytes: u64,
}

/// A run that can begin: everything is in its place.
pub(crate) struct Plan {
    pub(crate) workspace: Workspace,
    pub(crate) run_folder: RunFolder,
    /// The folder of the skill on whose behalf.
    pub(crate) skill: Option<String>,
    /// The folder of skills, if it is another one than usual.
    pub(crate) skills_dir: Option<WorkspacePath>,
    pub(crate) begin: Begin,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) limits: Limits,
    pub(crate) grants: Grants,
}

impl Plan {
    /// The run.
    pub(crate) fn run(&self) -> Run<'_> {
        let mut run = Run::new(self.workspace.path(), self.begin.command.clone());
        run.skill = self.skill.as_deref();
        run.cwd = self.begin.cwd.clone();
        run.run_dir = self.run_folder.path().clone();
        if let Some(skills_dir) = &self.skills_dir {
            run.skills_dir = skills_dir.clone();
        }
        run.env = self.env.clone();
        run.limits = self.limits.clone();
        run.network = self.grants.network;
        run.require = self.grants.require.clone();
        run.unsandboxed = self.grants.unsandboxed;
        run
    }
}

impl Runner {
    pub(crate) fn new(workspaces: Workspaces, executor: Arc<dyn Executor>) -> Self {
        Self {
            workspaces,
            executor,
            garbage: Arc::default(),
            artifacts: None,
            settings: Arc::default(),
            watcher: None,
            max_artifact_bytes: WorkspaceSettings::default().max_artifact_bytes,
        }
    }

    /// The same for commands that no tool is called for.
    pub(crate) fn commands(&self) -> SessionCommands {
        SessionCommands {
            workspaces: self.workspaces.clone(),
            executor: Arc::clone(&self.executor),
            garbage: Arc::clone(&self.garbage),
            settings: Arc::clone(&self.settings),
        }
    }

    /// What a text means that is to be run with these variables, if the host allows both.
    pub(crate) fn command(
        &self,
        invocation: Invocation<'_>,
        text: &str,
        env: &BTreeMap<String, String>,
    ) -> Result<Command, ToolOutcome> {
        let refused = |why: CommandError| match why.code() {
            "invalid_arguments" => InvalidArguments::from(why).outcome(invocation),
            code => ToolOutcome::error(code, format!("Error: {why}")).with_hint(why.hint()),
        };
        let policy = self.settings.command_policy().map_err(refused)?;
        let command = policy.command(text).map_err(refused)?;
        check_env(env, &policy).map_err(|why| why.outcome(invocation))?;
        Ok(command)
    }

    /// The workspace of a session; others that nobody uses are looked for.
    pub(crate) async fn workspace(
        &self,
        invocation: Invocation<'_>,
    ) -> Result<Workspace, ToolOutcome> {
        self.garbage.look(&self.workspaces);
        workspace_of(&self.workspaces, invocation.session).await
    }

    /// Waits until the executor knows what it enforces: that is no time of the command.
    pub(crate) async fn get_ready(&self) {
        // If it cannot find out, the run says so.
        let _ = self.executor.isolation().await;
    }

    /// How much a run may use that asks for this time. What it does not get is said.
    pub(crate) fn limits(
        &self,
        timeout: Option<std::time::Duration>,
        warnings: &mut Vec<String>,
    ) -> Limits {
        let (limits, is_shorter) = self.settings.run_limits(timeout);
        if is_shorter {
            let most = self.settings.max_timeout;
            warnings.push(format!("timeout is limited to {most} s by the host"));
        }
        limits
    }

    /// Prepares a run of a skill: decides what can be decided without touching anything, puts the
    /// skill and its inputs into the workspace, and makes the folder of the run.
    pub(crate) async fn plan(
        &self,
        invocation: Invocation<'_>,
        arguments: &RunArguments,
    ) -> Result<(Plan, After), ToolOutcome> {
        let settings = &*self.settings;
        let command = self.command(invocation, &arguments.command, &arguments.env)?;
        self.check_editor(arguments).map_err(|why| why.outcome(invocation))?;
        let wanted = Wanted::of(arguments, settings);

        let (ready, workspace) = self.prepare(invocation, arguments).await?;
        let run_folder = run_folder(&workspace).await?;
        let mut warnings = ready.staged.warnings.clone();
        if !arguments.ignored.is_empty() {
            warnings.push(format!("Ignored arguments: {}", arguments.ignored.join(", ")));
        }
        let grants = settings.grants(&ready.skill);
        let (asked, skill) = (arguments.cwd.clone(), ready.staged.path.clone());
        let (here, run_dir) = (workspace.clone(), run_folder.path().clone());
        let begin = move || begin(&asked, &skill, &run_dir, &here, command);
        let begin = blocking(begin).await?.map_err(|why| cannot_begin(invocation, why))?;
        let brought = self.bring(invocation, &workspace, &run_folder, arguments).await?;
        warnings.extend(brought);
        let env = environment(&ready, arguments, &grants, &mut warnings);
        let limits = self.limits(arguments.timeout, &mut warnings);
        warnings.extend(wanted.warnings.iter().cloned());
        let Ready { name, folder, staged, .. } = ready;
        let skill = Some(folder);
        let plan =
            Plan { workspace, run_folder, skill, skills_dir: None, begin, env, limits, grants };
        let omit_content = arguments.omit_inline_content;
        Ok((plan, After { name, staged: Some(staged), warnings, wanted, omit_content }))
    }

    /// Whether an editor may be given, and is given in one way only.
    fn check_editor(&self, arguments: &RunArguments) -> Result<(), InvalidArguments> {
        check_editor(arguments)?;
        if arguments.editor_text.is_some() {
            self.settings.command_policy()?.check_editor()?;
        }
        Ok(())
    }

    /// Opens the workspace and puts the skill into it.
    async fn prepare<'a>(
        &self,
        invocation: Invocation<'a>,
        arguments: &RunArguments,
    ) -> Result<(Ready<'a>, Workspace), ToolOutcome> {
        let loading = self.loading();
        // Nothing is made for a skill that is not loaded.
        if loading == Loading::Required {
            invocation.loaded_skill(&arguments.skill)?;
        }
        let workspace = self.workspace(invocation).await?;
        let limit = self.settings.max_skill_bytes;
        let ready = stage(invocation, &workspace, &arguments.skill, loading, limit).await?;
        Ok((ready, workspace))
    }

    fn loading(&self) -> Loading {
        match self.settings.require_skill_loaded {
            true => Loading::Required,
            false => Loading::Optional,
        }
    }

    /// Brings the inputs, and what the editor writes. What there is to say about it.
    async fn bring(
        &self,
        invocation: Invocation<'_>,
        workspace: &Workspace,
        run_folder: &RunFolder,
        arguments: &RunArguments,
    ) -> Result<Vec<String>, ToolOutcome> {
        let run_dir = run_folder.path();
        let staging = Staging {
            invocation,
            workspace,
            run_dir,
            settings: &self.settings,
            artifacts: self.artifacts.as_deref(),
            loading: self.loading(),
        };
        let warnings = staging.bring(&arguments.inputs).await?;
        if let Some(text) = arguments.editor_text.clone() {
            let (here, to) = (workspace.clone(), run_dir.join(&folder(EDITOR_FILE)));
            let put = move || here.put(&to, text.as_bytes());
            blocking(put).await?.map_err(|error| workspace_failure(&error))?;
        }
        Ok(warnings)
    }
}

/// The folder of a new run.
pub(crate) async fn run_folder(workspace: &Workspace) -> Result<RunFolder, ToolOutcome> {
    let here = workspace.clone();
    let made = blocking(move || RunFolder::new(here)).await?;
    made.map_err(|error| workspace_failure(&error))
}

pub(crate) fn cannot_begin(invocation: Invocation<'_>, why: CannotBegin) -> ToolOutcome {
    match why {
        CannotBegin::Invalid(why) => InvalidArguments::from(why).outcome(invocation),
        CannotBegin::Workspace(error) => workspace_failure(&error),
    }
}

/// The variables of a run beyond those that every one has.
fn environment(
    ready: &Ready<'_>,
    arguments: &RunArguments,
    grants: &Grants,
    warnings: &mut Vec<String>,
) -> BTreeMap<String, String> {
    let name = ready.skill.name();
    let host = |name: &str| std::env::var(name).ok();
    let (mut env, missing) = env::complete(arguments.env.clone(), name, &grants.env, host);
    for name in missing {
        warnings.push(format!("{name} is declared for this skill but not set"));
    }
    if arguments.editor_text.is_some() {
        let editor = format!("cp -- \"$RUN_DIR/{EDITOR_FILE}\"");
        env.insert("EDITOR".to_owned(), editor.clone());
        env.insert("VISUAL".to_owned(), editor);
    }
    env
}

/// Whether a call may set its variables.
fn check_env(
    env: &BTreeMap<String, String>,
    policy: &CommandPolicy,
) -> Result<(), InvalidArguments> {
    env::check(env)?;
    Ok(policy.check_env(env.keys().map(String::as_str))?)
}

/// Whether an editor is given in one way only.
fn check_editor(arguments: &RunArguments) -> Result<(), InvalidVariable> {
    let taken = ["EDITOR", "VISUAL"].into_iter().find(|name| arguments.env.contains_key(*name));
    match (taken, &arguments.editor_text) {
        (Some(name), Some(_)) => Err(InvalidVariable::Editor { name }),
        _ => Ok(()),
    }
}

pub(crate) fn not_run(why: &ExecError) -> ToolOutcome {
    let hint = match why {
        ExecError::Lost { .. } | ExecError::Io { .. } => "Tell the user.",
        ExecError::NotAllowed { .. } => "Use a command that the host allows.",
        _ => "Tell the user. Nothing was started.",
    };
    ToolOutcome::error(why.code(), format!("Error: {why}")).with_hint(hint)
}
