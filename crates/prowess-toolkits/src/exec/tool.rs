//! `skill_run`

use std::collections::BTreeMap;
use std::sync::Arc;

use prowess_runtime::{Change, Invocation, Tool, ToolDeclaration, ToolFuture, ToolOutcome};
use prowess_workspace::{
    ArtifactStore, Command, ExecError, Executor, Run, RunOutcome, Watcher, Workspace, Workspaces,
};
use serde_json::{Value, json};

use super::arguments::RunArguments;
use super::command::{CommandError, CommandPolicy};
use super::cwd::{Begin, CannotBegin, begin};
use super::declaration::declaration;
use super::env::{self, InvalidVariable};
use super::garbage::Garbage;
use super::inputs::Staging;
use super::outputs::{Wanted, save};
use super::result::{Answer, without_empty};
use super::run_folder::RunFolder;
use super::session_commands::SessionCommands;
use super::settings::{ExecSettings, Grants};
use super::stage::{Loading, Ready, stage};
use crate::invalid::InvalidArguments;
use crate::place::folder;
use crate::session::{blocking, workspace_failure, workspace_of};

/// The path of commands that are run by name where the host lists commands: nothing that a run
/// could have written is on it.
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// The file of a run that holds what its editor writes.
const EDITOR_FILE: &str = "editor_text";

/// The tool.
#[derive(Clone)]
pub(crate) struct SkillRun {
    declaration: Arc<ToolDeclaration>,
    workspaces: Workspaces,
    executor: Arc<dyn Executor>,
    garbage: Arc<Garbage>,
    pub(crate) artifacts: Option<Arc<dyn ArtifactStore>>,
    pub(crate) settings: Arc<ExecSettings>,
    pub(crate) watcher: Option<Watcher>,
}

impl SkillRun {
    pub(crate) fn new(workspaces: Workspaces, executor: Arc<dyn Executor>) -> Self {
        Self {
            declaration: Arc::new(declaration()),
            workspaces,
            executor,
            garbage: Arc::default(),
            artifacts: None,
            settings: Arc::default(),
            watcher: None,
        }
    }

    /// The same for commands that it is not called for.
    pub(crate) fn commands(&self) -> SessionCommands {
        SessionCommands {
            workspaces: self.workspaces.clone(),
            executor: Arc::clone(&self.executor),
            garbage: Arc::clone(&self.garbage),
            settings: Arc::clone(&self.settings),
        }
    }
}

impl Tool for SkillRun {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn call<'a>(&'a self, invocation: Invocation<'a>) -> ToolFuture<'a> {
        Box::pin(async move { self.run(invocation).await.unwrap_or_else(|refusal| refusal) })
    }
}

/// A run that is prepared.
struct Prepared<'a> {
    ready: Ready<'a>,
    workspace: Workspace,
    run_folder: RunFolder,
    warnings: Vec<String>,
}

impl SkillRun {
    async fn run(&self, invocation: Invocation<'_>) -> Result<ToolOutcome, ToolOutcome> {
        let settings = &*self.settings;
        let invalid = |why: InvalidArguments| why.outcome(invocation);
        // What can be decided without touching anything.
        let arguments = RunArguments::parse(&invocation.call.arguments).map_err(invalid)?;
        let policy = CommandPolicy {
            allowed: &settings.allowed_commands,
            denied: &settings.denied_commands,
        };
        let command = policy.command(&arguments.command).map_err(|why| match why.code() {
            "invalid_arguments" => invalid(why.into()),
            code => refused(code, &why),
        })?;
        check_env(&arguments, &command).map_err(|why| invalid(why.into()))?;
        let wanted = Wanted::of(&arguments, settings);

        let mut prepared = self.prepare(invocation, &arguments).await?;
        let grants = settings.grants(prepared.ready.skill);
        let Begin { cwd, command } = self.place(invocation, &prepared, &arguments, command).await?;
        self.bring(invocation, &mut prepared, &arguments).await?;
        let env = environment(&mut prepared, &arguments, &command, &grants);
        let (limits, is_shorter) = settings.run_limits(arguments.timeout);
        if is_shorter {
            let most = settings.max_timeout;
            prepared.warnings.push(format!("timeout is limited to {most} s by the host"));
        }
        let mut run = Run::new(prepared.workspace.path(), command);
        run.skill = Some(&prepared.ready.folder);
        run.cwd = cwd;
        run.run_dir = prepared.run_folder.path().clone();
        run.env = env;
        run.stdin = arguments.stdin.clone().into_bytes().into();
        run.limits = limits;
        run.network = grants.network;
        run.require = grants.require;
        run.unsandboxed = grants.unsandboxed;
        run.watcher = self.watcher.clone();
        let outcome = self.executor.run(run).await.map_err(|why| not_run(&why))?;
        self.answer(invocation, prepared, &arguments, wanted, outcome).await
    }

    /// Opens the workspace, puts the skill into it, and makes the folder of the run.
    async fn prepare<'a>(
        &self,
        invocation: Invocation<'a>,
        arguments: &RunArguments,
    ) -> Result<Prepared<'a>, ToolOutcome> {
        let loading = self.loading();
        // Nothing is made for a skill that is not loaded.
        if loading == Loading::Required {
            invocation.loaded_skill(&arguments.skill)?;
        }
        self.garbage.look(&self.workspaces);
        let workspace = workspace_of(&self.workspaces, invocation.session).await?;
        let limit = self.settings.max_skill_bytes;
        let ready = stage(invocation, &workspace, &arguments.skill, loading, limit).await?;
        let here = workspace.clone();
        let run_folder = blocking(move || RunFolder::new(here)).await?;
        let run_folder = run_folder.map_err(|error| workspace_failure(&error))?;
        let mut warnings = ready.staged.warnings.clone();
        if !arguments.ignored.is_empty() {
            warnings.push(format!("Ignored arguments: {}", arguments.ignored.join(", ")));
        }
        Ok(Prepared { ready, workspace, run_folder, warnings })
    }

    fn loading(&self) -> Loading {
        match self.settings.require_skill_loaded {
            true => Loading::Required,
            false => Loading::Optional,
        }
    }

    /// Where the command begins.
    async fn place(
        &self,
        invocation: Invocation<'_>,
        prepared: &Prepared<'_>,
        arguments: &RunArguments,
        command: Command,
    ) -> Result<Begin, ToolOutcome> {
        let Prepared { ready, workspace, run_folder, .. } = prepared;
        let (asked, skill) = (arguments.cwd.clone(), ready.staged.path.clone());
        let (workspace, run_dir) = (workspace.clone(), run_folder.path().clone());
        let begin = move || begin(&asked, &skill, &run_dir, &workspace, command);
        blocking(begin).await?.map_err(|why| match why {
            CannotBegin::Invalid(why) => InvalidArguments::from(why).outcome(invocation),
            CannotBegin::Workspace(error) => workspace_failure(&error),
        })
    }

    /// Brings the inputs, and what the editor writes.
    async fn bring(
        &self,
        invocation: Invocation<'_>,
        prepared: &mut Prepared<'_>,
        arguments: &RunArguments,
    ) -> Result<(), ToolOutcome> {
        let Prepared { workspace, run_folder, .. } = &*prepared;
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
        prepared.warnings.extend(warnings);
        Ok(())
    }

    /// Collects, keeps and tells what came of a run.
    async fn answer(
        &self,
        invocation: Invocation<'_>,
        prepared: Prepared<'_>,
        arguments: &RunArguments,
        wanted: Wanted,
        outcome: RunOutcome,
    ) -> Result<ToolOutcome, ToolOutcome> {
        let Prepared { ready, workspace, run_folder, mut warnings } = prepared;
        warnings.extend(wanted.warnings.iter().cloned());
        let collecting = wanted.clone();
        let collect = move || collecting.collect(&workspace, &run_folder);
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
                let store = self.artifacts.as_deref();
                save(store, invocation.session, wanted, &collected.files, &mut warnings).await
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
            omit_content: arguments.omit_inline_content,
            refused: &collected.refused,
            artifacts: &artifacts,
            warnings,
        };
        let written = answer.write(&self.settings);
        let mut told = ToolOutcome::json(written.shown).about(&ready.name);
        told.data = written.data;
        told.code = match (outcome.timed_out, exit_code) {
            (true, _) => "timed_out".into(),
            (false, 0) => "ok".into(),
            (false, _) => "command_failed".into(),
        };
        told.artifacts = artifacts;
        if invocation.state.is_loaded(&ready.name) {
            told = told.with_change(Change::Touch { skill: ready.name });
        }
        Ok(told)
    }
}

/// The variables of a run beyond those that every one has.
fn environment(
    prepared: &mut Prepared<'_>,
    arguments: &RunArguments,
    command: &Command,
    grants: &Grants,
) -> BTreeMap<String, String> {
    let name = prepared.ready.skill.name();
    let host = |name: &str| std::env::var(name).ok();
    let (mut env, missing) = env::complete(arguments.env.clone(), name, &grants.env, host);
    for name in missing {
        prepared.warnings.push(format!("{name} is declared for this skill but not set"));
    }
    if arguments.editor_text.is_some() {
        let editor = format!("cp -- \"$RUN_DIR/{EDITOR_FILE}\"");
        env.insert("EDITOR".to_owned(), editor.clone());
        env.insert("VISUAL".to_owned(), editor);
    }
    if matches!(command, Command::Program(_)) {
        env.insert("PATH".to_owned(), SYSTEM_PATH.to_owned());
    }
    env
}

/// Whether a call may set its variables. An editor is given in one way only, and where the host
/// lists commands, none is set.
fn check_env(arguments: &RunArguments, command: &Command) -> Result<(), InvalidVariable> {
    env::check(&arguments.env)?;
    let taken = ["EDITOR", "VISUAL"].into_iter().find(|name| arguments.env.contains_key(*name));
    if let (Some(name), Some(_)) = (taken, &arguments.editor_text) {
        return Err(InvalidVariable::Editor { name });
    }
    match matches!(command, Command::Program(_)) && !arguments.env.is_empty() {
        true => Err(InvalidVariable::Listed),
        false => Ok(()),
    }
}

fn refused(code: &'static str, why: &CommandError) -> ToolOutcome {
    ToolOutcome::error(code, format!("Error: {why}"))
        .with_hint("Use a command that the host allows.")
}

fn not_run(why: &ExecError) -> ToolOutcome {
    let hint = match why {
        ExecError::Lost { .. } | ExecError::Io { .. } => "Tell the user.",
        _ => "Tell the user. Nothing was started.",
    };
    ToolOutcome::error(why.code(), format!("Error: {why}")).with_hint(hint)
}
