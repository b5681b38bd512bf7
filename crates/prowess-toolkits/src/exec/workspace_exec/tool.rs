//! `workspace_exec`

use std::sync::Arc;
use std::time::{Duration, Instant};

use prowess_runtime::{Invocation, Tool, ToolDeclaration, ToolFuture, ToolOutcome};
use serde_json::{Map, Value, json};

use super::super::after::code_of;
use super::super::interactive::{
    AfterInput, Beginning, Family, Forget, Owner, Session, Sessions, Want, add_exit, answer,
    check_input, outcome, too_many,
};
use super::super::plan::{Plan, Runner, cannot_begin, run_folder};
use super::super::settings::Grants;
use super::arguments::WorkspaceArguments;
use super::begin::begin;
use super::copies::{Copies, skills_dir};
use super::declaration;
use crate::session::blocking;

/// Runs commands in the workspace, on copies of the loaded skills.
pub(crate) struct WorkspaceExec {
    declaration: ToolDeclaration,
    runner: Runner,
    sessions: Arc<Sessions>,
    copies: Copies,
}

impl WorkspaceExec {
    pub(crate) fn new(runner: Runner, sessions: Arc<Sessions>) -> Self {
        // If the lists of commands cannot be used, every call will say so.
        let policy = runner.settings.command_policy().unwrap_or_default();
        let declaration = declaration::workspace_exec(&policy);
        Self { declaration, runner, sessions, copies: Copies::default() }
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<ToolOutcome, ToolOutcome> {
        let arguments = WorkspaceArguments::parse(&invocation.call.arguments);
        let mut arguments = arguments.map_err(|why| why.outcome(invocation))?;
        check_input(&self.runner, &arguments.stdin, arguments.tty)?;
        let mut warnings = Vec::new();
        if !arguments.ignored.is_empty() {
            warnings.push(format!("Ignored arguments: {}", arguments.ignored.join(", ")));
        }
        let settings = &self.runner.settings.sessions;
        let patience = self.patience(&arguments, &mut warnings);
        let plan = self.plan(invocation, &arguments, &mut warnings).await?;
        self.runner.get_ready().await;
        let beginning = Beginning {
            owner: Owner::of(invocation),
            family: Family::Workspace,
            plan,
            after: None,
            input: std::mem::take(&mut arguments.stdin).into_bytes(),
            // Nobody could write to it.
            then: if patience.is_none() { AfterInput::End } else { AfterInput::Wait },
            terminal: arguments.tty.then(|| settings.terminal()),
        };
        let begun = self.sessions.begin(beginning, &self.runner);
        let session = begun.map_err(|why| too_many(&why, Family::Workspace))?;
        // Whoever stops waiting for an answer ends what it was to be about.
        let guard = Forget::unless_told(&self.sessions, &session);
        let screen = session.screen();
        match patience {
            None => drop(screen.finish().await),
            Some(patience) => screen.settle(0, Some(Instant::now() + patience)).await,
        }
        if screen.ended().is_none() {
            guard.keep();
            let lines = settings.lines(arguments.look.lines, &mut warnings);
            let bytes = self.runner.settings.shown_output_bytes;
            let want = Want { offset: None, lines, bytes };
            return Ok(answer(&self.sessions, &session, want, warnings, invocation).await);
        }
        Ok(self.ended(&session, &warnings))
    }

    /// How long an answer waits; `None`: until the command has ended.
    fn patience(
        &self,
        arguments: &WorkspaceArguments,
        warnings: &mut Vec<String>,
    ) -> Option<Duration> {
        let settings = &self.runner.settings.sessions;
        let asked = arguments.look.yield_ms;
        let usual = match (arguments.background, arguments.tty) {
            (true, _) => settings.write_yield_ms,
            (false, true) => settings.exec_yield_ms,
            (false, false) if asked.is_none() => return None,
            (false, false) => 0,
        };
        Some(settings.patience(asked, usual, warnings))
    }

    async fn plan(
        &self,
        invocation: Invocation<'_>,
        arguments: &WorkspaceArguments,
        warnings: &mut Vec<String>,
    ) -> Result<Plan, ToolOutcome> {
        let (runner, settings) = (&self.runner, &*self.runner.settings);
        let command = runner.command(invocation, &arguments.command, &arguments.env)?;
        let workspace = runner.workspace(invocation).await?;
        let copied = self.copies.make(invocation, &workspace, settings.max_skill_bytes).await;
        warnings.extend(copied);
        let run_folder = run_folder(&workspace).await?;
        let (asked, here) = (arguments.cwd.clone(), workspace.clone());
        let run_dir = run_folder.path().clone();
        let begin = blocking(move || begin(&asked, &run_dir, &here, command)).await?;
        let begin = begin.map_err(|why| cannot_begin(invocation, why))?;
        let env = arguments.env.clone();
        let mut limits = runner.limits(arguments.timeout, warnings);
        limits.grace = Duration::from_millis(settings.sessions.kill_grace_ms);
        let grants = Grants { require: settings.require.clone(), ..Grants::default() };
        let skills_dir = Some(skills_dir());
        Ok(Plan { workspace, run_folder, skill: None, skills_dir, begin, env, limits, grants })
    }

    /// What there is to say of a command that has ended before anybody was told of its session.
    fn ended(&self, session: &Session, warnings: &[String]) -> ToolOutcome {
        let exit = match session.screen().ended().map(|end| end.exit) {
            Some(Err(failure)) => return *failure,
            Some(Ok(exit)) => Some(exit),
            None => None,
        };
        let whole = session.screen().whole(self.runner.settings.shown_output_bytes);
        let mut shown = Map::new();
        let mut set = |name: &str, value: Value| shown.insert(name.to_owned(), value);
        set("status", json!("exited"));
        set("output", json!(whole.text));
        set("offset", json!(0));
        set("next_offset", json!(whole.lines));
        if whole.is_cut {
            set("truncated", json!(true));
            set("total_bytes", json!(whole.total_bytes));
        }
        if !warnings.is_empty() {
            set("warnings", json!(warnings));
        }
        let mut data = shown.clone();
        add_exit(&mut shown, &mut data, exit.as_ref(), Family::Workspace);
        let code = exit.map_or("ok", |exit| code_of(exit.timed_out, exit.exit_code));
        outcome(shown, data, code)
    }
}

impl Tool for WorkspaceExec {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn call<'a>(&'a self, invocation: Invocation<'a>) -> ToolFuture<'a> {
        Box::pin(async move { self.run(invocation).await.unwrap_or_else(|refusal| refusal) })
    }
}
