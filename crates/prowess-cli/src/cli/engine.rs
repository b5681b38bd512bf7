//! What can be typed to the engine.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use prowess_runtime::interop::System;
use prowess_runtime::{AgentName, Budget, LoadMode, SessionKey};

use super::CatalogArgs;
use super::exec::{ExecutorArgs, TierArgs};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  prowess demo
  prowess demo --load-mode turn       the skill goes when the turn ends
  prowess demo --dialect deepagents   the same in the words of another system
  prowess demo --json | jq .event")]
pub(crate) struct DemoArgs {
    /// How long a loaded skill stays. Without it, as long as the dialect says.
    #[arg(long, value_name = "MODE")]
    pub(crate) load_mode: Option<LoadModeArg>,

    #[command(flatten)]
    pub(crate) dialect: DialectArgs,

    #[command(flatten)]
    pub(crate) sandbox: TierArgs,

    /// Print the events of the agent and of the engine, one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How long a loaded skill stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LoadModeArg {
    /// Until the turn ends.
    Turn,
    /// For one request.
    Once,
    /// Until it is unloaded.
    Session,
}

impl From<LoadModeArg> for LoadMode {
    fn from(mode: LoadModeArg) -> Self {
        match mode {
            LoadModeArg::Turn => Self::Turn,
            LoadModeArg::Once => Self::Once,
            LoadModeArg::Session => Self::Session,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  prowess call load_skill '{\"skill\": \"release-notes\"}' --source examples/skills
  prowess call list_loaded_skills
  prowess call skill_load '{\"skill\": \"release-notes\"}' --dialect trpc
  prowess call skill_select_docs '{\"skill\": \"release-notes\", \"docs\": [\"references/style.md\"]}' --json")]
pub(crate) struct CallArgs {
    /// The tool.
    pub(crate) tool: String,

    /// Its arguments, a JSON object; `-` reads them from standard input.
    #[arg(value_name = "ARGUMENTS", default_value = "{}")]
    pub(crate) arguments: String,

    #[command(flatten)]
    pub(crate) place: PlaceArgs,

    /// Begin a new turn first.
    #[arg(long)]
    pub(crate) new_turn: bool,

    #[command(flatten)]
    pub(crate) executor: ExecutorArgs,

    #[command(flatten)]
    pub(crate) dialect: DialectArgs,

    #[command(flatten)]
    pub(crate) catalog: CatalogArgs,

    /// Print JSON: content, stub, is_error, code, hint, delta and more.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PromptArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,

    /// What the host says first.
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,

    #[command(flatten)]
    pub(crate) dialect: DialectArgs,

    #[command(flatten)]
    pub(crate) catalog: CatalogArgs,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Files with scripted conversations; without any, those that are built in.
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenarios: Vec<PathBuf>,

    /// Where the skills are that some of the built-in conversations use.
    #[arg(long, value_name = "FOLDER", default_value = "../shared/corpus")]
    pub(crate) corpus: PathBuf,

    #[command(flatten)]
    pub(crate) dialect: DialectArgs,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Presets, for a listing and for loaded skills:
  200K window   16000 characters   10 skills (default)
  128K window   10000 characters    6 skills
   32K window    4000 characters    3 skills")]
pub(crate) struct BudgetArgs {
    /// The budget: `16000`, `4000 tokens` or `2% of 200000`. Without it, that of prowess.toml.
    #[arg(value_name = "BUDGET")]
    pub(crate) budget: Option<Budget>,

    #[command(flatten)]
    pub(crate) catalog: CatalogArgs,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How the model is spoken to.
#[derive(Debug, Args)]
pub(crate) struct DialectArgs {
    /// The dialect: prowess, deepagents, trpc, eino, langchain_docker, or the path of a file.
    #[arg(long, value_name = "NAME")]
    pub(crate) dialect: Option<String>,
}

/// Which session, and which agent in it.
#[derive(Debug, Args)]
pub(crate) struct PlaceArgs {
    /// The session: a name, or app/user/session.
    #[arg(long, value_name = "ID", default_value = "default")]
    pub(crate) session: SessionKey,

    /// The agent in it.
    #[arg(long, value_name = "NAME", default_value = "main", value_parser = AgentName::new)]
    pub(crate) agent: AgentName,
}

#[derive(Debug, Args)]
pub(crate) struct SessionArgs {
    #[command(subcommand)]
    pub(crate) command: SessionCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// List the stored sessions.
    #[command(visible_alias = "ls")]
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show what a session remembers: loaded skills, transcript, events.
    Show(SessionShowArgs),
    /// Take over the state of another system.
    Import(SessionImportArgs),
    /// End a session: it is removed with everything that only it needs.
    End {
        /// The session: a name, or app/user/session.
        session: SessionKey,

        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct SessionShowArgs {
    /// The session: a name, or app/user/session.
    #[arg(default_value = "default")]
    pub(crate) session: SessionKey,

    /// Only this agent.
    #[arg(long, value_name = "NAME", value_parser = AgentName::new)]
    pub(crate) agent: Option<AgentName>,

    /// Print the state in the form of another system: deepagents, trpc or langchain_docker.
    #[arg(long, value_name = "SYSTEM", value_parser = system_parser())]
    pub(crate) format: Option<System>,

    #[command(flatten)]
    pub(crate) catalog: CatalogArgs,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SessionImportArgs {
    /// A file with the state as a JSON object; `-` reads from standard input.
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) place: PlaceArgs,

    /// Which system it comes from: deepagents, trpc or langchain_docker.
    #[arg(long, value_name = "SYSTEM", value_parser = system_parser())]
    pub(crate) format: System,

    #[command(flatten)]
    pub(crate) catalog: CatalogArgs,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Offers the names of the systems to help texts and completions.
fn system_parser() -> impl clap::builder::TypedValueParser<Value = System> {
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    PossibleValuesParser::new(System::ALL.map(System::as_str))
        .try_map(|name| name.parse::<System>())
}
