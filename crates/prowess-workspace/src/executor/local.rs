//! Commands on this machine, in a sandbox.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::OnceCell;
use tracing::Instrument;

use super::live::Live;
use super::order::{WORKSPACE, identity, order};
use super::selftest::{self, Verdict};
use super::supervised::{Next, Waiting, find_supervisor, on_path, supervise};
use super::work::{admit, blocking, io, outcome, stoppable};
use super::{
    Capability, Enforcement, ExecError, ExecFuture, Executor, Isolation, Run, RunOutcome,
    SandboxReport, Tier,
};
use crate::supervisor::{Groups, Identity, Order};

/// Runs commands on this machine, in the best sandbox that it has.
///
/// Which one that is, the first run finds out by trying to break out of it; see [`Isolation`].
///
/// ```no_run
/// # async fn example(workspace: &std::path::Path) -> Result<(), prowess_workspace::ExecError> {
/// use prowess_workspace::{Command, Executor, LocalExecutor, Run};
///
/// let executor = LocalExecutor::builder().build();
/// let run = Run::new(workspace, Command::Shell("echo $((6 * 7))".to_owned()));
/// assert_eq!(executor.run(run).await?.stdout.text(80), "42\n");
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct LocalExecutor {
    pub(crate) settings: Arc<LocalExecutorBuilder>,
    verdict: Arc<OnceCell<Verdict>>,
    next: Arc<Next>,
}

/// Sets up a [`LocalExecutor`].
#[derive(Clone, Debug)]
#[must_use]
pub struct LocalExecutorBuilder {
    supervisor: Option<PathBuf>,
    bwrap: Option<PathBuf>,
    best: Tier,
    readable: Vec<PathBuf>,
}

impl LocalExecutorBuilder {
    /// The supervisor program. Else it is the one that `PROWESS_SUPERVISOR` names, the one beside
    /// this program, this program itself if it calls [`crate::supervise_if_asked`], or the one on
    /// the path.
    pub fn supervisor(mut self, path: impl Into<PathBuf>) -> Self {
        self.supervisor = Some(path.into());
        self
    }

    /// The program `bwrap`. Else it is the one on the path.
    pub fn bwrap(mut self, path: impl Into<PathBuf>) -> Self {
        self.bwrap = Some(path.into());
        self
    }

    /// Tries no better sandbox than this one.
    pub fn best_tier(mut self, tier: Tier) -> Self {
        self.best = tier;
        self
    }

    /// Lets commands read another file or folder of this machine, such as `/opt/python`.
    pub fn readable(mut self, path: impl Into<PathBuf>) -> Self {
        self.readable.push(path.into());
        self
    }

    /// The executor.
    pub fn build(self) -> LocalExecutor {
        LocalExecutor { settings: Arc::new(self), verdict: Arc::default(), next: Arc::default() }
    }
}

impl LocalExecutor {
    /// An executor with the usual settings.
    pub fn builder() -> LocalExecutorBuilder {
        LocalExecutorBuilder { supervisor: None, bwrap: None, best: Tier::T2, readable: Vec::new() }
    }

    /// What every sandbox that was tried does and does not enforce, and which one is used.
    pub async fn check(&self) -> Result<SandboxReport, ExecError> {
        Ok(self.verdict().await?.report.clone())
    }

    async fn verdict(&self) -> Result<&Verdict, ExecError> {
        let test = || async {
            let executor = self.clone();
            blocking(move || selftest::judge(&executor)).await
        };
        self.verdict.get_or_try_init(test).await
    }

    /// The tiers to try, the best one first.
    pub(crate) fn tiers(&self) -> impl Iterator<Item = Tier> {
        let best = self.settings.best;
        [Tier::T2, Tier::T1].into_iter().filter(move |tier| *tier <= best)
    }

    pub(crate) fn supervisor(&self) -> Result<PathBuf, ExecError> {
        find_supervisor(self.settings.supervisor.clone())
    }

    pub(crate) fn bwrap(&self) -> Option<PathBuf> {
        self.settings.bwrap.clone().or_else(|| on_path("bwrap"))
    }

    /// What the supervisor is told to do.
    pub(crate) fn order(
        &self,
        run: &Run<'_>,
        tier: Tier,
        needs: Groups,
    ) -> Result<Order, ExecError> {
        let identity = identity();
        let inside = match tier {
            Tier::T2 | Tier::T3 => PathBuf::from(WORKSPACE),
            Tier::T0 | Tier::T1 => {
                identity.map_or(Ok(()), |who| check_reachable(run.workspace, who))?;
                run.workspace.to_owned()
            }
        };
        let (bwrap, readable) = (self.bwrap(), self.settings.readable.clone());
        let order = order(run, tier, inside, "/bin/bash")?;
        Ok(Order { bwrap, readable, identity, needs, ..order })
    }
}

/// Whether somebody else can go to a workspace.
fn check_reachable(workspace: &Path, who: Identity) -> Result<(), ExecError> {
    let is_closed = |folder: &&Path| {
        folder.metadata().is_ok_and(|about| {
            let bit = match (about.uid() == who.uid, about.gid() == who.gid) {
                (true, _) => 0o100,
                (_, true) => 0o010,
                _ => 0o001,
            };
            about.mode() & bit == 0
        })
    };
    match workspace.ancestors().find(is_closed) {
        None => Ok(()),
        Some(folder) => Err(ExecError::Start {
            cause: format!(
                "commands run as user {}, who cannot enter {}; keep workspaces in a folder that \
                 everybody can enter, such as /var/lib/prowess/workspaces",
                who.uid,
                folder.display()
            ),
        }),
    }
}

impl Executor for LocalExecutor {
    fn isolation(&self) -> ExecFuture<'_, Isolation> {
        Box::pin(async { Ok(self.verdict().await?.isolation.clone()) })
    }

    fn run<'a>(&'a self, run: Run<'a>) -> ExecFuture<'a, RunOutcome> {
        let span = tracing::info_span!("workspace.run", skill = run.skill);
        let work = async move {
            let verdict = self.verdict().await?;
            let isolation = admit(&run, verdict)?;
            let is_enforced = |it| isolation.of(it) == Enforcement::Enforced;
            let needs = Groups {
                memory: is_enforced(Capability::Memory),
                pids: is_enforced(Capability::Pids) && verdict.groups.pids,
            };
            let mut order = self.order(&run, isolation.tier, needs)?;
            let connected = Live::new(run.stdin, run.terminal, run.stop.is_some());
            let (live, stop) = connected.map_err(io("connecting the command"))?;
            order.streams = live.streams();
            let watcher = run.watcher;
            let supervisor = self.supervisor()?;
            let waiting = match self.next.take() {
                Some(waiting) => waiting,
                None => {
                    let (supervisor, sandbox) = (supervisor.clone(), order.sandbox());
                    blocking(move || Waiting::start(&supervisor, sandbox)).await?
                }
            };
            // Whoever stops waiting ends the run.
            let _guard = waiting.hang_up_when_dropped()?;
            let next = Arc::clone(&self.next);
            let work = move || {
                let next = Some((&*next, supervisor.as_path()));
                supervise(waiting, &order, live, watcher.as_ref(), next)
            };
            Ok(outcome(stoppable(blocking(work), run.stop, stop).await?, isolation))
        };
        Box::pin(work.instrument(span))
    }
}
