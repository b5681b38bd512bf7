//! `skill_exec`, and what its session is talked to with.

use std::sync::Arc;
use std::time::Instant;

use prowess_runtime::{Invocation, Tool, ToolDeclaration, ToolFuture, ToolOutcome};
use serde_json::json;

use super::super::plan::Runner;
use super::answer::answer;
use super::arguments::{ExecArguments, TalkArguments};
use super::declaration;
use super::screen::Want;
use super::session::{AfterInput, Beginning, CannotWrite, Family, Owner, Session, typed};
use super::sessions::{Forget, Sessions, TooMany};

/// `skill_exec`: begins a session.
pub(crate) struct SkillExec {
    declaration: ToolDeclaration,
    runner: Runner,
    sessions: Arc<Sessions>,
}

impl SkillExec {
    pub(crate) fn new(runner: Runner, sessions: Arc<Sessions>) -> Self {
        Self { declaration: declaration::skill_exec(), runner, sessions }
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<ToolOutcome, ToolOutcome> {
        let (runner, settings) = (&self.runner, &self.runner.settings.sessions);
        let arguments = ExecArguments::parse(&invocation.call.arguments);
        let ExecArguments { run, tty, look } = arguments.map_err(|why| why.outcome(invocation))?;
        check_input(runner, &run.stdin, tty)?;
        let (mut plan, after) = runner.plan(invocation, &run).await?;
        runner.get_ready().await;
        plan.limits.grace = std::time::Duration::from_millis(settings.kill_grace_ms);
        let beginning = Beginning {
            owner: Owner::of(invocation),
            family: Family::Skill,
            plan,
            after: Some(after),
            input: run.stdin.into_bytes(),
            then: AfterInput::Wait,
            terminal: tty.then(|| settings.terminal()),
        };
        let session =
            self.sessions.begin(beginning, runner).map_err(|why| too_many(&why, Family::Skill))?;
        // Whoever stops waiting will never know its name.
        let guard = Forget::unless_told(&self.sessions, &session);
        let mut warnings = Vec::new();
        let patience = settings.patience(look.yield_ms, settings.exec_yield_ms, &mut warnings);
        let lines = settings.lines(look.lines, &mut warnings);
        session.screen().settle(0, Some(Instant::now() + patience)).await;
        let want = Want { offset: None, lines, bytes: runner.settings.shown_output_bytes };
        let told = answer(&self.sessions, &session, want, warnings, invocation).await;
        guard.keep();
        Ok(told)
    }
}

impl Tool for SkillExec {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn call<'a>(&'a self, invocation: Invocation<'a>) -> ToolFuture<'a> {
        Box::pin(async move { self.run(invocation).await.unwrap_or_else(|refusal| refusal) })
    }
}

/// What is done with a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Write,
    Poll,
    Kill,
}

/// Writes to a session, asks after it, or ends it.
pub(crate) struct Talk {
    declaration: ToolDeclaration,
    act: Act,
    family: Family,
    runner: Runner,
    sessions: Arc<Sessions>,
}

impl Talk {
    pub(crate) fn new(act: Act, family: Family, runner: Runner, sessions: Arc<Sessions>) -> Self {
        let declaration = match act {
            Act::Write => declaration::write_stdin(family),
            Act::Poll => declaration::poll_session(),
            Act::Kill => declaration::kill_session(family),
        };
        Self { declaration, act, family, runner, sessions }
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<ToolOutcome, ToolOutcome> {
        let arguments = TalkArguments::parse(&invocation.call.arguments);
        let arguments = arguments.map_err(|why| why.outcome(invocation))?;
        let settings = &self.runner.settings.sessions;
        let (id, owner) = (arguments.session.as_str(), Owner::of(invocation));
        let session = self.sessions.find(id, &owner, self.family, settings);
        let session = session.ok_or_else(|| unknown(id))?;
        match self.act {
            Act::Kill => Ok(self.kill(&session).await),
            Act::Write | Act::Poll => self.talk(&session, arguments, invocation).await,
        }
    }

    async fn talk(
        &self,
        session: &Session,
        arguments: TalkArguments,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome, ToolOutcome> {
        let settings = &self.runner.settings.sessions;
        let mut warnings = Vec::new();
        if !arguments.ignored.is_empty() {
            warnings.push(format!("Ignored arguments: {}", arguments.ignored.join(", ")));
        }
        let look = arguments.look;
        let patience = settings.patience(look.yield_ms, settings.write_yield_ms, &mut warnings);
        let lines = settings.lines(look.lines, &mut warnings);
        let writes = self.act == Act::Write && !arguments.text.is_empty();
        let since = match writes {
            true => session.screen().writes(),
            false => session.screen().read_writes(),
        };
        if writes && session.screen().ended().is_some() {
            warnings.push("the command has ended; nothing was written".to_owned());
        } else if writes {
            session.write(&arguments.text).map_err(|why| not_written(&why))?;
        }
        session.screen().settle(since, Some(Instant::now() + patience)).await;
        let bytes = self.runner.settings.shown_output_bytes;
        let want = Want { offset: arguments.offset, lines, bytes };
        Ok(answer(&self.sessions, session, want, warnings, invocation).await)
    }

    async fn kill(&self, session: &Session) -> ToolOutcome {
        // From now on nobody finds it; if nobody waits for this, it ends at once.
        drop(self.sessions.take(&session.id));
        let status = match session.screen().ended() {
            Some(_) => "exited",
            None => {
                session.stop();
                session.screen().finish().await;
                "killed"
            }
        };
        ToolOutcome::json(json!({"ok": true, "session_id": session.id, "status": status}))
    }
}

impl Tool for Talk {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn call<'a>(&'a self, invocation: Invocation<'a>) -> ToolFuture<'a> {
        Box::pin(async move { self.run(invocation).await.unwrap_or_else(|refusal| refusal) })
    }
}

/// Whether a command may be given this at its beginning, in a terminal or not.
pub(crate) fn check_input(runner: &Runner, stdin: &str, tty: bool) -> Result<(), ToolOutcome> {
    if tty {
        typed(stdin, 0).map_err(|why| not_written(&why))?;
    }
    let most = runner.settings.run_limits(None).0.stdin_bytes;
    let size_bytes = stdin.len() as u64;
    match size_bytes > most {
        true => Err(super::super::plan::not_run(&prowess_workspace::ExecError::Stdin {
            size_bytes,
            most,
        })),
        false => Ok(()),
    }
}

fn not_written(why: &CannotWrite) -> ToolOutcome {
    ToolOutcome::error(why.code(), format!("Error: {why}")).with_hint(why.hint())
}

pub(crate) fn too_many(why: &TooMany, family: Family) -> ToolOutcome {
    let kill = declaration::kill_session(family).name;
    let hint = format!("Nothing was started. End a session with {kill} first.");
    ToolOutcome::error(why.code(), format!("Error: {why}")).with_hint(hint)
}

/// There is no such session; nobody learns whether somebody else has one.
fn unknown(id: &str) -> ToolOutcome {
    let shown: String = id.chars().take(80).map(|c| if c.is_control() { ' ' } else { c }).collect();
    ToolOutcome::error("unknown_session", format!("Error: there is no session '{shown}'"))
        .with_hint("It may have been ended, or have ended long ago. Start the command again.")
}
