//! From the arguments of a call to a run, and from what came of it to an answer: what the tools share
//! that run commands of skills.

use std::collections::BTreeMap;
use std::sync::Arc;

use prowess_runtime::{ArtifactRef, Change, Invocation, SessionKey, SessionState, ToolOutcome};
use prowess_workspace::{
    ArtifactStore, Command, ExecError, Executor, Limits, Run, RunOutcome, StagedSkill, Watcher,
    Workspace, WorkspacePath, Workspaces,
};
use serde_json::{Value, json};

use super::arguments::RunArguments;
use super::command::{CommandError, CommandPolicy};
use super::cwd::{Begin, CannotBegin, begin};
use super::env::{self, InvalidVariable};
use super::garbage::Garbage;
use super::inputs::Staging;
use super::outputs::{Wanted, save};
use super::result::{Answer, Written, without_empty};
use super::run_folder::RunFolder;
use super::session_commands::SessionCommands;
use super::settings::{ExecSettings, Grants};
use super::stage::{Loading, Ready, stage};
use crate::invalid::InvalidArguments;
use crate::place::folder;
use crate::session::{blocking, workspace_failure, workspace_of};
use crate::workspace::WorkspaceSettings;

/// The path of commands that are run by name where the host lists commands: nothing that a run
/// could have written is on it.
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

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

/// What is to be done when a run of a skill has ended.
pub(crate) struct After {
    name: String,
    /// No other version takes its place while it runs.
    staged: Option<StagedSkill>,
    warnings: Vec<String>,
    wanted: Wanted,
    omit_content: bool,
}

/// What there is to tell of a run of a skill that has ended.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) skill: String,
    pub(crate) written: Written,
    pub(crate) code: &'static str,
    pub(crate) artifacts: Vec<ArtifactRef>,
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

    /// What a text means that is to be run, if the host allows it.
    pub(crate) fn command(
        &self,
        invocation: Invocation<'_>,
        text: &str,
    ) -> Result<Command, ToolOutcome> {
        let policy = CommandPolicy {
            allowed: &self.settings.allowed_commands,
            denied: &self.settings.denied_commands,
        };
        policy.command(text).map_err(|why| match why.code() {
            "invalid_arguments" => InvalidArguments::from(why).outcome(invocation),
            code => refused(code, &why),
        })
    }

    /// The workspace of a session; others that nobody uses are looked for.
    pub(crate) async fn workspace(
        &self,
        invocation: Invocation<'_>,
    ) -> Result<Workspace, ToolOutcome> {
        self.garbage.look(&self.workspaces);
        workspace_of(&self.workspaces, invocation.session).await
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
        let command = self.command(invocation, &arguments.command)?;
        check_env(arguments, &command)
            .map_err(|why| InvalidArguments::from(why).outcome(invocation))?;
        let wanted = Wanted::of(arguments, settings);

        let (ready, workspace) = self.prepare(invocation, arguments).await?;
        let run_folder = run_folder(&workspace).await?;
        let mut warnings = ready.staged.warnings.clone();
        if !arguments.ignored.is_empty() {
            warnings.push(format!("Ignored arguments: {}", arguments.ignored.join(", ")));
        }
        let grants = settings.grants(ready.skill);
        let (asked, skill) = (arguments.cwd.clone(), ready.staged.path.clone());
        let (here, run_dir) = (workspace.clone(), run_folder.path().clone());
        let begin = move || begin(&asked, &skill, &run_dir, &here, command);
        let begin = blocking(begin).await?.map_err(|why| cannot_begin(invocation, why))?;
        let brought = self.bring(invocation, &workspace, &run_folder, arguments).await?;
        warnings.extend(brought);
        let env = environment(&ready, arguments, &begin.command, &grants, &mut warnings);
        let limits = self.limits(arguments.timeout, &mut warnings);
        warnings.extend(wanted.warnings.iter().cloned());
        let Ready { name, folder, staged, .. } = ready;
        let skill = Some(folder);
        let plan =
            Plan { workspace, run_folder, skill, skills_dir: None, begin, env, limits, grants };
        let omit_content = arguments.omit_inline_content;
        Ok((plan, After { name, staged: Some(staged), warnings, wanted, omit_content }))
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

impl After {
    /// The command has ended: another version of its skill may take its place.
    pub(crate) fn release(&mut self) {
        self.staged = None;
    }

    /// Collects, keeps and writes down what came of a run.
    pub(crate) async fn tell(
        self,
        runner: &Runner,
        session: &SessionKey,
        plan: Plan,
        outcome: RunOutcome,
    ) -> Result<Told, ToolOutcome> {
        let Self { name, mut warnings, wanted, omit_content, staged: _staged } = self;
        let collecting = wanted.clone();
        let collect = move || collecting.collect(&plan.workspace, &plan.run_folder);
        let collected = blocking(collect).await?;
        // The command has run: what went wrong afterwards is said beside its result.
        let mut collected = collected.unwrap_or_else(|error| {
            warnings.push(format!("outputs were not collected: {error}"));
            Default::default()
        });
        let exit_code = outcome.exit_code;
        let has_failed = exit_code != 0 || outcome.timed_out;
        if has_failed {
            without_empty(&mut collected.files, &mut warnings);
        }
        let artifacts = match &wanted.save {
            Some(wanted) => {
                let store = runner.artifacts.as_deref();
                save(store, session, wanted, &collected.files, &mut warnings).await
            }
            None => Vec::new(),
        };
        let more = collected.refused_count.saturating_sub(collected.refused.len() as u64);
        if wanted.listed && more > 0 {
            warnings.push(format!("{more} more files were refused"));
        }
        let mut limits_hit: Vec<Value> = outcome.limits_hit.iter().map(|it| json!(it)).collect();
        limits_hit.extend(collected.limits_hit.iter().map(|it| json!(it)));
        let answer = Answer {
            exit_code,
            timed_out: outcome.timed_out,
            duration_ms: u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX),
            stdout: &outcome.stdout,
            stderr: &outcome.stderr,
            isolation: &outcome.isolation,
            limits_hit,
            files: &collected.files,
            listed: wanted.listed,
            inline: wanted.inline,
            omit_content,
            refused: &collected.refused,
            artifacts: &artifacts,
            warnings,
        };
        let written = answer.write(&runner.settings);
        let code = code_of(outcome.timed_out, exit_code);
        Ok(Told { skill: name, written, code, artifacts })
    }
}

impl Told {
    /// What a call comes to that tells this, as the session is now.
    pub(crate) fn outcome(&self, shown: Value, data: Value, state: &SessionState) -> ToolOutcome {
        let mut told = ToolOutcome::json(shown).about(&self.skill);
        told.data = data;
        told.code = self.code.into();
        if state.is_loaded(&self.skill) {
            told = told.with_change(Change::Touch { skill: self.skill.clone() });
        }
        told
    }
}

/// The stable name of how a command ended.
pub(crate) fn code_of(timed_out: bool, exit_code: i32) -> &'static str {
    match (timed_out, exit_code) {
        (true, _) => "timed_out",
        (false, 0) => "ok",
        (false, _) => "command_failed",
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
    command: &Command,
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
    add_path(&mut env, command);
    env
}

/// A program that is run by its name is looked for where nothing can be written.
pub(crate) fn add_path(env: &mut BTreeMap<String, String>, command: &Command) {
    if matches!(command, Command::Program(_)) {
        env.insert("PATH".to_owned(), SYSTEM_PATH.to_owned());
    }
}

/// Whether a call may set its variables. An editor is given in one way only, and where the host
/// lists commands, none is set.
fn check_env(arguments: &RunArguments, command: &Command) -> Result<(), InvalidVariable> {
    let taken = ["EDITOR", "VISUAL"].into_iter().find(|name| arguments.env.contains_key(*name));
    check_variables(&arguments.env, command)?;
    match (taken, &arguments.editor_text) {
        (Some(name), Some(_)) => Err(InvalidVariable::Editor { name }),
        _ => Ok(()),
    }
}

/// The same for variables that have nothing to do with an editor.
pub(crate) fn check_variables(
    env: &BTreeMap<String, String>,
    command: &Command,
) -> Result<(), InvalidVariable> {
    env::check(env)?;
    match matches!(command, Command::Program(_)) && !env.is_empty() {
        true => Err(InvalidVariable::Listed),
        false => Ok(()),
    }
}

fn refused(code: &'static str, why: &CommandError) -> ToolOutcome {
    ToolOutcome::error(code, format!("Error: {why}"))
        .with_hint("Use a command that the host allows.")
}

pub(crate) fn not_run(why: &ExecError) -> ToolOutcome {
    let hint = match why {
        ExecError::Lost { .. } | ExecError::Io { .. } => "Tell the user.",
        _ => "Tell the user. Nothing was started.",
    };
    ToolOutcome::error(why.code(), format!("Error: {why}")).with_hint(hint)
}
