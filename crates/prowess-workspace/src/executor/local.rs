//! Commands on this machine, in a sandbox.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::live::{Live, Stop};
use super::selftest::{self, Verdict};
use super::supervised::{Next, Supervised, Waiting, supervise};
use super::{
    Capability, Command, Enforcement, ExecError, ExecFuture, Executor, Isolation, Network,
    Protection, Run, RunOutcome, SandboxReport, Stdin, Tier, Unsandboxed,
};
use crate::supervisor::{
    Groups, HOSTED, Identity, Installed, Order, SYSTEM_FOLDERS, Streams, VERSION,
};

/// Whom commands run as when we are root: `nobody`.
const NOBODY: Identity = Identity { uid: 65534, gid: 65534 };

/// What the workspace is called inside of namespaces.
const INSIDE: &str = "/workspace";

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
        supervisor(self.settings.supervisor.clone())
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
        let identity = rustix::process::geteuid().is_root().then_some(NOBODY);
        let inside = match tier {
            Tier::T2 | Tier::T3 => PathBuf::from(INSIDE),
            Tier::T0 | Tier::T1 => {
                identity.map_or(Ok(()), |who| check_reachable(run.workspace, who))?;
                run.workspace.to_owned()
            }
        };
        Ok(Order {
            version: VERSION,
            tier,
            bwrap: self.bwrap(),
            argv: argv(run, "/bin/bash")?,
            installed: installed(run),
            env: environment(run, &inside, tier),
            workspace: run.workspace.to_owned(),
            inside,
            cwd: run.cwd.as_str().to_owned(),
            writable: writable(run),
            readable: self.settings.readable.clone(),
            identity,
            network: run.network,
            limits: run.limits.clone(),
            needs,
            user_processes: None,
            streams: Streams::Usual,
        })
    }
}

/// What a run may write, below its workspace.
pub(super) fn writable(run: &Run<'_>) -> Vec<String> {
    let mut writable: Vec<String> = ["work", "out", "runs"].map(str::to_owned).into();
    if let Some(skill) = run.skill {
        writable.push(format!("skills/{skill}/.venv"));
    }
    // A skill's own `.venv` is staged like the rest of it: nobody may write it.
    writable.retain(|name| {
        let about = run.workspace.join(name).symlink_metadata();
        about.is_ok_and(|it| it.is_dir() && (it.mode() & 0o200 != 0 || !name.contains('/')))
    });
    writable
}

/// The program of a run and its arguments.
pub(super) fn argv(run: &Run<'_>, shell: &str) -> Result<Vec<String>, ExecError> {
    match &run.command {
        Command::Shell(line) => Ok([shell, "-c", line].map(str::to_owned).into()),
        Command::Program(words) | Command::Installed { words, .. } if words.is_empty() => {
            Err(ExecError::Start { cause: "there is no command".to_owned() })
        }
        Command::Program(words) | Command::Installed { words, .. } => Ok(words.clone()),
    }
}

/// What must hold for the program of a run, if it must be one that no run can have put there.
pub(super) fn installed(run: &Run<'_>) -> Option<Installed> {
    match &run.command {
        Command::Shell(_) | Command::Program(_) => None,
        Command::Installed { denied, .. } => Some(Installed {
            skill: run.skill.map(|skill| format!("skills/{skill}")),
            denied: denied.clone(),
        }),
    }
}

/// What is enforced for a run, if it may take place.
pub(super) fn admit(run: &Run<'_>, verdict: &Verdict) -> Result<Isolation, ExecError> {
    if let Stdin::Bytes(bytes) = &run.stdin {
        let (size_bytes, most) = (bytes.len() as u64, run.limits.stdin_bytes);
        if size_bytes > most {
            return Err(ExecError::Stdin { size_bytes, most });
        }
    }
    if verdict.isolation.tier == Tier::T0 && run.unsandboxed == Unsandboxed::Refuse {
        return Err(ExecError::NoSandbox { cause: verdict.why_none() });
    }
    let mut isolation = verdict.isolation.clone();
    if run.network == Network::Host {
        let granted = Protection::new(Enforcement::Granted, "granted by the host");
        isolation.protections.insert(Capability::Net, granted);
    }
    let missing = isolation.missing(run.require.iter().copied());
    match missing.is_empty() {
        true => Ok(isolation),
        false => Err(ExecError::NotEnforced { missing }),
    }
}

/// The supervisor program: this one if it is named, else whichever is found.
pub(super) fn supervisor(configured: Option<PathBuf>) -> Result<PathBuf, ExecError> {
    let named = || std::env::var_os("PROWESS_SUPERVISOR").map(PathBuf::from);
    if let Some(path) = configured.or_else(named) {
        let is_there = path.is_file();
        let missing = || ExecError::Supervisor { cause: format!("{} is no file", path.display()) };
        return is_there.then(|| path.clone()).ok_or_else(missing);
    }
    let own = std::env::current_exe().ok();
    let beside = own.as_ref().map(|own| own.with_file_name(SUPERVISOR));
    let itself = own.filter(|_| HOSTED.load(Ordering::Relaxed));
    let found = beside.filter(|path| path.is_file()).or(itself).or_else(|| on_path(SUPERVISOR));
    let cause = || format!("there is no {SUPERVISOR} beside this program or on the path");
    found.ok_or_else(|| ExecError::Supervisor { cause: cause() })
}

const SUPERVISOR: &str = "prowess-supervisor";

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file())
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

/// The variables of a run.
pub(super) fn environment(run: &Run<'_>, inside: &Path, tier: Tier) -> Vec<(String, String)> {
    let at = |below: &str| match below {
        "" => inside.display().to_string(),
        below => inside.join(below).display().to_string(),
    };
    let run_dir = at(run.run_dir.as_str());
    let system = SYSTEM_FOLDERS.join(":");
    let is_installed = matches!(run.command, Command::Installed { .. });
    let mut variables: Vec<(String, String)> = Vec::new();
    let mut set = |name: &str, value: String| variables.push((name.to_owned(), value));
    match run.skill.filter(|_| !is_installed) {
        None => set("PATH", system.clone()),
        Some(skill) => {
            let own = at(&format!("skills/{skill}"));
            set("PATH", format!("{own}/.venv/bin:{system}:{own}/bin"));
            set("VIRTUAL_ENV", format!("{own}/.venv"));
        }
    }
    if let Some(skill) = run.skill {
        set("SKILL_NAME", skill.to_owned());
    }
    set(
        "HOME",
        match (is_installed, tier >= Tier::T2) {
            (false, _) => at("work"),
            // Programs read their settings there, and no run may have left any.
            (true, true) => "/tmp".to_owned(),
            (true, false) => "/nonexistent".to_owned(),
        },
    );
    set("LANG", "C.UTF-8".to_owned());
    set("TMPDIR", if tier >= Tier::T2 { "/tmp".to_owned() } else { run_dir.clone() });
    set("WORKSPACE_DIR", at(""));
    set("SKILLS_DIR", at(run.skills_dir.as_str()));
    set("WORK_DIR", at("work"));
    set("OUTPUT_DIR", at("out"));
    set("RUN_DIR", run_dir);
    if run.terminal.is_some() {
        // Whoever reads it is no screen.
        set("TERM", "dumb".to_owned());
    }
    variables.retain(|(name, _)| !run.env.contains_key(name));
    variables.extend(run.env.iter().map(|(name, value)| (name.clone(), value.clone())));
    if is_installed {
        // What a program would start by itself, for whoever sits before it, is none that was listed.
        let fixed = [("PATH", system.as_str()), ("PAGER", "cat"), ("GIT_PAGER", "cat")];
        let fixed =
            fixed.into_iter().chain(["EDITOR", "VISUAL", "GIT_EDITOR"].map(|it| (it, "false")));
        for (name, value) in fixed {
            variables.retain(|(known, _)| known != name);
            variables.push((name.to_owned(), value.to_owned()));
        }
    }
    variables
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

/// What the work comes to. If the token is cancelled meanwhile, it is asked to stop.
pub(super) async fn stoppable<T>(
    work: impl Future<Output = T>,
    token: Option<CancellationToken>,
    stop: Option<Stop>,
) -> T {
    let asked = async {
        if let (Some(token), Some(stop)) = (token, stop) {
            token.cancelled().await;
            stop.ask();
        }
        std::future::pending().await
    };
    first(work, asked).await
}

/// What the work comes to, while something else is done beside it that never ends.
async fn first<T>(work: impl Future<Output = T>, beside: impl Future<Output = T>) -> T {
    let (mut work, mut beside) = (std::pin::pin!(work), std::pin::pin!(beside));
    std::future::poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Pending => beside.as_mut().poll(context),
        done => done,
    })
    .await
}

/// What came of a run.
pub(super) fn outcome(supervised: Supervised, isolation: Isolation) -> RunOutcome {
    let (ended, duration, [stdout, stderr]) = supervised;
    RunOutcome {
        exit_code: ended.exit_code,
        timed_out: ended.timed_out,
        duration,
        stdout,
        stderr,
        isolation,
        limits_hit: ended.limits_hit,
    }
}

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ExecError> + Send + 'static,
) -> Result<T, ExecError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(ExecError::Lost { cause: error.to_string() }))
}

pub(crate) fn io(doing: &'static str) -> impl Fn(std::io::Error) -> ExecError {
    move |cause| ExecError::Io { doing, cause }
}
