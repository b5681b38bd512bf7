//! What can be typed to run commands of skills.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use prowess_runtime::SessionKey;
use prowess_toolkits::ExecutorChoice;
use prowess_workspace::Tier;

use super::CatalogArgs;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  prowess run python-math -- python3 scripts/fib.py 10 out/fib.txt
  prowess run python-math --output results -- 'python3 scripts/fib.py 10 | tee out/fib.txt'
  prowess run csv_report --input sales.csv -- wc -l inputs/sales.csv

The command runs in a sandbox, in the skill's folder, which it cannot change. It finds its inputs in
inputs/, and writes what is to be kept into out/.

Exit codes: that of the command; 124 its time was over, 125 it was not started.")]
pub(crate) struct RunArgs {
    /// The name of a skill, or name@source.
    pub(crate) skill: String,

    /// The command: one word is a line for bash, several words are a program and its arguments.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,

    /// Bring a file or a folder; may be repeated.
    #[arg(long = "input", value_name = "PATH")]
    pub(crate) inputs: Vec<PathBuf>,

    /// Copy what the command leaves in out/ into this folder; files that are there stay.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) output: Option<PathBuf>,

    /// Set a variable; without a value, pass one of this shell on. May be repeated.
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,

    /// Seconds that the command may take.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: Option<u64>,

    /// Pass standard input on to the command.
    #[arg(long)]
    pub(crate) stdin: bool,

    /// Let the command use the network.
    #[arg(long)]
    pub(crate) network: bool,

    /// Run where there is no sandbox, if the skill's source is trusted.
    #[arg(long)]
    pub(crate) allow_unsandboxed: bool,

    /// Use the workspace of this session: a name, or app/user/session. Without it, a new one.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<SessionKey>,

    #[command(flatten)]
    pub(crate) executor: ExecutorArgs,

    #[command(flatten)]
    pub(crate) sandbox: TierArgs,

    #[command(flatten)]
    pub(crate) catalog: CatalogArgs,

    /// Print JSON when the command has ended, and nothing of its output before.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What runs the commands of skills.
#[derive(Debug, Args)]
pub(crate) struct ExecutorArgs {
    /// What runs the commands of skills; else as [exec] executor says, or local.
    #[arg(long, value_name = "EXECUTOR")]
    pub(crate) executor: Option<ExecutorArg>,

    /// The image of containers; else as [exec.container] image says. It must be there.
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExecutorArg {
    /// This machine, in a sandbox.
    Local,
    /// A container of Docker or Podman.
    Container,
}

impl From<ExecutorArg> for ExecutorChoice {
    fn from(executor: ExecutorArg) -> Self {
        match executor {
            ExecutorArg::Local => Self::Local,
            ExecutorArg::Container => Self::Container,
        }
    }
}

/// Which sandbox.
#[derive(Debug, Args)]
pub(crate) struct TierArgs {
    /// Use no better sandbox of this machine than this: 2 namespaces, 1 rules of the kernel, 0 none.
    #[arg(long, value_name = "TIER", default_value = "2", value_parser = clap::value_parser!(u8).range(0..=2))]
    tier: u8,
}

impl TierArgs {
    pub(crate) fn best(&self) -> Tier {
        match self.tier {
            0 => Tier::T0,
            1 => Tier::T1,
            _ => Tier::T2,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct SandboxArgs {
    #[command(subcommand)]
    pub(crate) command: SandboxCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Try to break out of the sandbox, and show what it enforces here and what not.
    Check(SandboxCheckArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SandboxCheckArgs {
    #[command(flatten)]
    pub(crate) executor: ExecutorArgs,

    #[command(flatten)]
    pub(crate) sandbox: TierArgs,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
