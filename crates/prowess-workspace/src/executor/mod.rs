//! Running commands in a workspace.

#[cfg(feature = "container")]
mod container;
mod ground;
mod input;
mod isolation;
mod limits;
mod live;
mod local;
mod order;
mod output;
mod selftest;
mod settings;
mod supervised;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

#[cfg(feature = "container")]
pub use container::{ContainerExecutor, ContainerExecutorBuilder};
pub use input::{InputError, InputWriter, LiveInput, Stdin, TerminalSize};
pub use isolation::{Capability, Enforcement, Isolation, Protection, Tier};
pub use limits::{LimitHit, Limits};
pub use local::{LocalExecutor, LocalExecutorBuilder};
pub use output::{Captured, OutputStream, Watcher};
pub use selftest::{SandboxReport, TriedTier};
pub use settings::{ContainerSettings, Reuse};

use crate::path::WorkspacePath;

/// A future that an executor returns.
pub type ExecFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ExecError>> + Send + 'a>>;

/// What runs commands in workspaces.
pub trait Executor: Send + Sync + 'static {
    /// What is really enforced, as attempts to break out have shown.
    fn isolation(&self) -> ExecFuture<'_, Isolation>;

    /// Runs a command to its end, and ends everything that it started. A command that fails, is
    /// killed or runs out of time is an outcome; an error means that nothing was started, or that
    /// it is not known how it ended.
    fn run<'a>(&'a self, run: Run<'a>) -> ExecFuture<'a, RunOutcome>;
}

/// What is to be run.
#[derive(Debug)]
#[non_exhaustive]
pub struct Run<'a> {
    /// The root of the workspace on this machine.
    pub workspace: &'a Path,
    /// What is to be run.
    pub command: Command,
    /// The skill on whose behalf, by the name of its folder below `skills/`: its `.venv/bin` and
    /// `bin` are on the path, and its `.venv` can be written.
    pub skill: Option<&'a str>,
    /// Where it begins.
    pub cwd: WorkspacePath,
    /// The folder of this run, below `runs/`.
    pub run_dir: WorkspacePath,
    /// The folder of skills that it is told of.
    pub skills_dir: WorkspacePath,
    /// Variables beyond those that every run has.
    pub env: BTreeMap<String, String>,
    /// What it reads from its standard input.
    pub stdin: Stdin,
    /// The terminal that its standard streams are, and that it can be controlled from. What it
    /// writes there counts as standard output.
    pub terminal: Option<TerminalSize>,
    /// How much it may use.
    pub limits: Limits,
    /// Whether it may use the network.
    pub network: Network,
    /// What must be enforced, or nothing is started.
    pub require: BTreeSet<Capability>,
    /// Whether it may run where nothing can be enforced.
    pub unsandboxed: Unsandboxed,
    /// Who sees what it writes while it runs.
    pub watcher: Option<Watcher>,
    /// When this is cancelled, the command is asked to end, and made to when its grace is over; what
    /// comes of that is an outcome like any other. Whoever drops the run ends it at once.
    pub stop: Option<CancellationToken>,
}

impl<'a> Run<'a> {
    /// A command in a workspace, at its root.
    pub fn new(workspace: &'a Path, command: Command) -> Self {
        Self {
            workspace,
            command,
            skill: None,
            cwd: WorkspacePath::root(),
            run_dir: WorkspacePath::root(),
            skills_dir: WorkspacePath::parse("skills").unwrap_or_default(),
            env: BTreeMap::new(),
            stdin: Stdin::default(),
            terminal: None,
            limits: Limits::default(),
            network: Network::None,
            require: BTreeSet::new(),
            unsandboxed: Unsandboxed::Refuse,
            watcher: None,
            stop: None,
        }
    }
}

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A line for `bash -c`.
    Shell(String),
    /// A program and its arguments, without a shell.
    Program(Vec<String>),
    /// The same, of a program that no run can have put there. It is looked for where the command
    /// is started, by no variable that anybody could set: a bare name in the folders of the
    /// system, an absolute path outside of the workspace, another path among the files of the
    /// skill that cannot be written. Links are followed before it is judged.
    Installed {
        /// The program and its arguments.
        words: Vec<String>,
        /// What it must not turn out to be, by the last names of programs in lower case: neither
        /// by its own name, nor by that of what it is a link to, nor as the same file.
        denied: Vec<String>,
    },
}

/// Whether a run may use the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// It may not.
    #[default]
    None,
    /// It has the network of this machine.
    Host,
}

/// Whether a run may take place without a sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unsandboxed {
    /// It may not.
    #[default]
    Refuse,
    /// It may, where there is no sandbox: the host trusts what is run.
    Allow,
}

/// What came of a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunOutcome {
    /// The code that the command ended with, as a shell reports it: 128 and the signal, where there
    /// was one.
    pub exit_code: i32,
    /// Whether its time was over.
    pub timed_out: bool,
    /// How long it ran.
    pub duration: Duration,
    /// What it wrote to its standard output.
    pub stdout: Captured,
    /// What it wrote to its standard error.
    pub stderr: Captured,
    /// What was enforced.
    pub isolation: Isolation,
    /// The limits at which it was stopped or refused something.
    pub limits_hit: Vec<LimitHit>,
}

impl RunOutcome {
    /// A command that ended with this code, wrote nothing and reached no limit.
    pub fn new(exit_code: i32, duration: Duration, isolation: Isolation) -> Self {
        Self {
            exit_code,
            timed_out: false,
            duration,
            stdout: Captured::default(),
            stderr: Captured::default(),
            isolation,
            limits_hit: Vec::new(),
        }
    }
}

/// Why nothing was started, or why it is not known how it ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecError {
    /// There is no supervisor program.
    #[error(
        "the supervisor program cannot be used ({cause}); install prowess-supervisor beside this \
         program, or set PROWESS_SUPERVISOR to its path"
    )]
    Supervisor {
        /// Why not.
        cause: String,
    },
    /// There is no sandbox.
    #[error(
        "no sandbox can be set up here ({cause}); see `prowess sandbox check`, or set \
         allow_unsandboxed for sources that you trust"
    )]
    NoSandbox {
        /// What the self-test found.
        cause: String,
    },
    /// Something that must be enforced cannot be.
    #[error(
        "{} cannot be enforced here and is required; see `prowess sandbox check`",
        missing.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(", ")
    )]
    NotEnforced {
        /// What.
        missing: Vec<Capability>,
    },
    /// The engine of containers does not do what it should.
    #[error("the container engine cannot be used: {cause}")]
    Engine {
        /// What it says.
        cause: String,
    },
    /// There is no such image.
    #[error(
        "the image {image} is not here; pull it (`docker pull {image}` or `podman pull {image}`), or \
         name another one in [exec.container] image"
    )]
    Image {
        /// Its name.
        image: String,
    },
    /// There is more standard input than a command may be given.
    #[error(
        "the standard input has {size_bytes} bytes; at most `stdin_bytes` = {most} are given: \
         bring it as a file, or allow more in [exec.limits]"
    )]
    Stdin {
        /// How much there is.
        size_bytes: u64,
        /// The limit.
        most: u64,
    },
    /// The command could not be started.
    #[error("the command could not be started: {cause}")]
    Start {
        /// Why not.
        cause: String,
    },
    /// The program is not one that may be started.
    #[error("{cause}")]
    NotAllowed {
        /// Why not.
        cause: String,
    },
    /// The supervisor went away.
    #[error("the supervisor ended before the command did: {cause}")]
    Lost {
        /// What is known.
        cause: String,
    },
    /// Something else of this machine failed.
    #[error("{doing}: {cause}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// Why it failed.
        cause: std::io::Error,
    },
}

impl ExecError {
    /// The stable name.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Supervisor { .. } => "supervisor_missing",
            Self::NoSandbox { .. } => "no_sandbox",
            Self::NotEnforced { .. } => "isolation_missing",
            Self::Engine { .. } => "container_engine",
            Self::Image { .. } => "image_missing",
            Self::Stdin { .. } => "limit_exceeded",
            Self::Start { .. } => "start_failed",
            Self::NotAllowed { .. } => "command_not_allowed",
            Self::Lost { .. } => "run_lost",
            Self::Io { .. } => "exec_io",
        }
    }
}
