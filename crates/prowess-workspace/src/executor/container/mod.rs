//! Commands in containers.
//!
//! A container has our supervisor as its first process, started by its own loader so that any image
//! will do. Runs are orders to that supervisor, as they are on this machine: the engine is asked to
//! make and to remove containers, and for nothing in between.

mod carried;
mod engine;
mod held;
mod keeper;
mod listing;
mod plan;
mod pool;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::OnceCell;
use tracing::Instrument;

use self::held::Held;
use self::keeper::Keeper;
use self::plan::{Plan, SKILLS_ROOT};
use self::pool::Pool;
use super::live::Live;
use super::order::{WORKSPACE, order};
use super::selftest::{Cage, Verdict, judge_one};
use super::settings::{ContainerSettings, Reuse};
use super::supervised::{Supervised, supervise};
use super::work::{admit, blocking, io, outcome, stoppable};
use super::{ExecError, ExecFuture, Executor, Isolation, Run, RunOutcome, SandboxReport, Tier};
use crate::supervisor::Order;

/// Runs commands in containers, by Docker or Podman on this machine.
///
/// A container sees of this machine the workspace of its session and nothing else: no network, no
/// files, no other processes, and never the socket of the engine. It has no rights, a root that
/// cannot be written, and limits of memory, processes and processors. What of this is really
/// enforced, the first run finds out by trying to break out; see [`Isolation`].
///
/// A container is used for another run of the same workspace only if the run before left nothing in
/// it. When its time is over, or something was left, it is removed. Containers that were left by a
/// program that was killed end by themselves, and the next executor removes them.
///
/// ```no_run
/// # async fn example(workspace: &std::path::Path) -> Result<(), prowess_workspace::ExecError> {
/// use prowess_workspace::{Command, ContainerExecutor, ContainerSettings, Executor, Run};
///
/// let executor = ContainerExecutor::builder(ContainerSettings::default()).build();
/// let run = Run::new(workspace, Command::Shell("echo $((6 * 7))".to_owned()));
/// assert_eq!(executor.run(run).await?.stdout.text(80), "42\n");
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct ContainerExecutor(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    origin: Origin,
    verdict: OnceCell<Verdict>,
    // They go before whoever removes them.
    pool: Arc<Mutex<Pool<Held>>>,
    keeper: OnceCell<Keeper>,
}

/// Where containers come from.
#[derive(Clone, Debug)]
struct Origin {
    settings: ContainerSettings,
    supervisor: Option<PathBuf>,
    skills_root: Option<PathBuf>,
}

/// Sets up a [`ContainerExecutor`].
#[derive(Clone, Debug)]
#[must_use]
pub struct ContainerExecutorBuilder(Origin);

impl ContainerExecutorBuilder {
    /// The supervisor program, as for a [`LocalExecutor`](super::LocalExecutor).
    pub fn supervisor(mut self, path: impl Into<PathBuf>) -> Self {
        self.0.supervisor = Some(path.into());
        self
    }

    /// A folder that commands can read, and not write: `SKILLS_ROOT` says where it is.
    pub fn skills_root(mut self, path: impl Into<PathBuf>) -> Self {
        self.0.skills_root = Some(path.into());
        self
    }

    /// The executor.
    pub fn build(self) -> ContainerExecutor {
        let settings = &self.0.settings;
        let pool = Pool::new(settings.max_idle, Duration::from_secs(settings.idle_seconds));
        ContainerExecutor(Arc::new(Shared {
            origin: self.0,
            verdict: OnceCell::new(),
            pool: Arc::new(Mutex::new(pool)),
            keeper: OnceCell::new(),
        }))
    }
}

impl ContainerExecutor {
    /// An executor with these settings.
    pub fn builder(settings: ContainerSettings) -> ContainerExecutorBuilder {
        ContainerExecutorBuilder(Origin { settings, supervisor: None, skills_root: None })
    }

    /// What a container does and does not enforce here.
    pub async fn check(&self) -> Result<SandboxReport, ExecError> {
        Ok(self.verdict().await?.report.clone())
    }

    async fn keeper(&self) -> Result<&Keeper, ExecError> {
        let start = || {
            let (origin, pool) = (self.0.origin.clone(), Arc::downgrade(&self.0.pool));
            blocking(move || Keeper::start(&origin, pool))
        };
        self.0.keeper.get_or_try_init(start).await
    }

    async fn verdict(&self) -> Result<&Verdict, ExecError> {
        let test = || async {
            self.keeper().await?;
            let executor = self.clone();
            blocking(move || judge_one(&Container { executor: &executor, held: Mutex::default() }))
                .await
        };
        self.0.verdict.get_or_try_init(test).await
    }

    /// What the supervisor in a container is told to do.
    fn order(&self, run: &Run<'_>, shell: Option<&str>) -> Result<Order, ExecError> {
        let inside = PathBuf::from(WORKSPACE);
        let mut order = order(run, Tier::T3, inside.clone(), shell.unwrap_or("/bin/sh"))?;
        // Its supervisor is inside, too.
        order.workspace = inside;
        if self.0.origin.skills_root.is_some() && !run.env.contains_key("SKILLS_ROOT") {
            order.env.push(("SKILLS_ROOT".to_owned(), SKILLS_ROOT.to_owned()));
        }
        Ok(order)
    }

    fn pool(&self) -> MutexGuard<'_, Pool<Held>> {
        open(&self.0.pool)
    }

    /// A container for a run: one that waits, or a new one.
    async fn hold(&self, plan: &Plan) -> Result<Held, ExecError> {
        let (found, old) = self.pool().take(plan, Instant::now());
        drop(old);
        match found {
            Some(held) => Ok(held),
            None => self.make(plan).await,
        }
    }

    async fn make(&self, plan: &Plan) -> Result<Held, ExecError> {
        let made = self.keeper().await?.made(plan.clone()).await;
        made.unwrap_or_else(|_| Err(ExecError::Engine { cause: "it went away".to_owned() }))
    }

    /// Lets a container wait for the next run, if it is as it was; and sees to it that enough wait.
    fn give_back(&self, plan: &Plan, held: Option<Held>) {
        if let Some(held) = held {
            let old = self.pool().put(plan.clone(), held, Instant::now());
            drop(old);
        }
        let Some(keeper) = self.0.keeper.get() else { return };
        let missing = self.pool().call_for(plan, self.0.origin.settings.warm);
        for _ in 0..missing {
            // Not of the keeper: it would have to wait for itself.
            let (pool, made_for) = (Arc::downgrade(&self.0.pool), plan.clone());
            keeper.make(plan.clone(), move |made| {
                let Some(pool) = pool.upgrade() else { return };
                open(&pool).came(&made_for);
                let old = match made {
                    Ok(held) => open(&pool).put(made_for, held, Instant::now()),
                    Err(error) => {
                        tracing::debug!(%error, "no container could be kept ready");
                        Vec::new()
                    }
                };
                drop(old);
            });
        }
    }

    async fn run_in_container(&self, run: Run<'_>) -> Result<RunOutcome, ExecError> {
        let verdict = self.verdict().await?;
        let isolation = admit(&run, verdict)?;
        let plan = Plan::of(&run);
        let held = self.hold(&plan).await?;
        let mut order = self.order(&run, held.shell())?;
        let connected = Live::new(run.stdin, run.terminal, run.stop.is_some());
        let (live, stop) = connected.map_err(io("connecting the command"))?;
        order.streams = live.streams();
        let sandbox = order.sandbox();
        let wait = |held: Held| blocking(move || Ok((held.supervisor(sandbox)?, held)));
        let (waiting, held) = match wait(held).await {
            // It may have been ended while it waited.
            Err(ExecError::Lost { .. }) => wait(self.make(&plan).await?).await?,
            waits => waits?,
        };
        // Whoever stops waiting ends the run.
        let _guard = waiting.hang_up_when_dropped()?;
        let reuse = self.0.origin.settings.reuse;
        let watcher = run.watcher;
        let work = move || {
            let supervised = supervise(waiting, &order, live, watcher.as_ref(), None)?;
            let is_good = reuse == Reuse::Clean && has_ended_by_itself(&supervised);
            let held = (is_good && held.is_clean()).then_some(held);
            Ok((supervised, held))
        };
        let (supervised, held) = stoppable(blocking(work), run.stop, stop).await?;
        self.give_back(&plan, held);
        Ok(outcome(supervised, isolation))
    }
}

fn open<T>(pool: &Mutex<T>) -> MutexGuard<'_, T> {
    pool.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether nothing has stopped it.
fn has_ended_by_itself((ended, ..): &Supervised) -> bool {
    !ended.timed_out && ended.limits_hit.is_empty()
}

impl Executor for ContainerExecutor {
    fn isolation(&self) -> ExecFuture<'_, Isolation> {
        Box::pin(async { Ok(self.verdict().await?.isolation.clone()) })
    }

    fn run<'a>(&'a self, run: Run<'a>) -> ExecFuture<'a, RunOutcome> {
        let span = tracing::info_span!("workspace.run", skill = run.skill);
        Box::pin(self.run_in_container(run).instrument(span))
    }
}

/// Containers that a canary is run in.
struct Container<'a> {
    executor: &'a ContainerExecutor,
    /// The last one: what it has left is looked for before it goes.
    held: Mutex<Option<Held>>,
}

impl Cage for Container<'_> {
    fn tier(&self) -> Tier {
        Tier::T3
    }

    fn supervisor(&self) -> Vec<String> {
        let keeper = self.executor.0.keeper.get();
        keeper.map(|it| it.common().carried.words.clone()).unwrap_or_default()
    }

    fn sockets(&self) -> Vec<PathBuf> {
        self.executor.0.keeper.get().map(|it| it.engine().socket.clone()).into_iter().collect()
    }

    fn order(&self, run: &Run<'_>) -> Result<Order, ExecError> {
        self.executor.order(run, None)
    }

    fn carry_out(&self, run: &Run<'_>, order: &Order) -> Result<Supervised, ExecError> {
        let gone = || ExecError::Engine { cause: "it went away".to_owned() };
        let keeper = self.executor.0.keeper.get().ok_or_else(gone)?;
        let held = keeper.made(Plan::of(run)).blocking_recv().map_err(|_| gone())??;
        let supervised =
            supervise(held.supervisor(order.sandbox())?, order, Live::default(), None, None);
        *open(&self.held) = Some(held);
        supervised
    }
}
