//! Commands in a sandbox: what a run costs, what it leaves behind, and how it ends.

mod endurance;
mod speed;
mod staging;
mod tokens;
mod traces;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use prowess_workspace::{
    Command, ExecError, Executor, LocalExecutor, LocalExecutorBuilder, Run, RunOutcome, Tier,
    Workspace, WorkspaceId, Workspaces,
};

use crate::results::Row;

pub(crate) fn run() -> Result<Vec<Row>> {
    let ground = Ground::new()?;
    let mut rows = speed::rows(&ground)?;
    rows.extend(staging::rows(&ground)?);
    rows.extend(tokens::rows(&ground)?);
    rows.extend(endurance::rows(&ground)?);
    Ok(rows)
}

/// Where commands run, and what runs them.
struct Ground {
    tokio: tokio::runtime::Runtime,
    workspaces: Workspaces,
    workspace: Workspace,
    /// The sandbox of each tier, or why there is none.
    tiers: [(Tier, Result<LocalExecutor, String>); 2],
    folder: tempfile::TempDir,
}

impl Ground {
    fn new() -> Result<Self> {
        let tokio =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
        let folder = tempfile::tempdir()?;
        // Whoever commands run as must be able to get there.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711))?;
        let workspaces = Workspaces::new(folder.path().join("workspaces"));
        let workspace = workspaces.open(&WorkspaceId::new("bench", "exec", "1"))?;
        let try_tier = |tier| {
            let executor = LocalExecutor::builder().best_tier(tier).build();
            let report = tokio.block_on(executor.check())?;
            let cause = || report.tried.first().and_then(|it| it.cause.clone()).unwrap_or_default();
            let found = match report.isolation.tier == tier {
                true => Ok(executor.clone()),
                false => Err(format!("{tier:?} cannot be set up here: {}", cause())),
            };
            Ok::<_, ExecError>((tier, found))
        };
        let tiers = [try_tier(Tier::T1)?, try_tier(Tier::T2)?];
        Ok(Self { tokio, workspaces, workspace, tiers, folder })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn executor(&self, wanted: Tier) -> Result<&LocalExecutor, &str> {
        let found = self.tiers.iter().find(|(tier, _)| *tier == wanted);
        found.map_or(Err("nobody tried it"), |(_, found)| found.as_ref().map_err(String::as_str))
    }

    /// An executor with other settings, which has the sandbox of this tier.
    fn executor_with(&self, tier: Tier, set: LocalExecutorBuilder) -> Result<LocalExecutor> {
        let executor = set.best_tier(tier).build();
        let found = self.tokio.block_on(executor.isolation())?.tier;
        ensure!(found == tier, "the sandbox is that of {found:?}, not of {tier:?}");
        Ok(executor)
    }

    /// Runs a line to its end, which must be a good one.
    fn run(&self, executor: &LocalExecutor, line: &str) -> Result<RunOutcome> {
        let outcome = self.tokio.block_on(executor.run(shell(self.workspace.path(), line)))?;
        let said = || outcome.stderr.text(1000);
        ensure!(outcome.exit_code == 0, "{line} ended with {}: {}", outcome.exit_code, said());
        Ok(outcome)
    }
}

fn shell<'a>(workspace: &'a Path, line: &str) -> Run<'a> {
    Run::new(workspace, Command::Shell(line.to_owned()))
}
