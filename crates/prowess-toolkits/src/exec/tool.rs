//! `skill_run`

use std::sync::Arc;

use prowess_runtime::{Invocation, Tool, ToolDeclaration, ToolFuture, ToolOutcome};

use super::arguments::RunArguments;
use super::declaration::declaration;
use super::plan::{Runner, not_run};

/// The tool.
pub(crate) struct SkillRun {
    declaration: Arc<ToolDeclaration>,
    runner: Runner,
}

impl SkillRun {
    pub(crate) fn new(runner: Runner) -> Self {
        // If the lists of commands cannot be used, every call will say so.
        let policy = runner.settings.command_policy().unwrap_or_default();
        Self { declaration: Arc::new(declaration(&policy)), runner }
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<ToolOutcome, ToolOutcome> {
        let runner = &self.runner;
        let arguments = RunArguments::parse(&invocation.call.arguments);
        let arguments = arguments.map_err(|why| why.outcome(invocation))?;
        let (plan, after) = runner.plan(invocation, &arguments).await?;
        let mut run = plan.run();
        run.stdin = arguments.stdin.into_bytes().into();
        run.watcher = runner.watcher.clone();
        let outcome = runner.executor.run(run).await.map_err(|why| not_run(&why))?;
        let told = after.tell(runner, invocation.session, plan, outcome).await?;
        let (shown, data) = (told.written.shown.clone(), told.written.data.clone());
        let mut outcome = told.outcome(shown, data, invocation.state);
        outcome.artifacts = told.artifacts;
        Ok(outcome)
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
