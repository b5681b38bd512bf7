//! What can be typed.

mod artifacts;
mod chat;
mod engine;
mod exec;
mod keys;
mod serve;
mod skills;
mod source;

pub(crate) use artifacts::{ArtifactPlaceArgs, ArtifactsArgs, ArtifactsCommand};
pub(crate) use chat::ChatArgs;
pub(crate) use engine::{
    BudgetArgs, CallArgs, DemoArgs, DialectArgs, PromptArgs, ReplayArgs, SessionArgs,
    SessionCommand, SessionImportArgs, SessionShowArgs,
};
pub(crate) use exec::{ExecutorArgs, RunArgs, SandboxArgs, SandboxCheckArgs, SandboxCommand};
pub(crate) use keys::{KeysArgs, KeysCommand};
pub(crate) use serve::ServeArgs;
pub(crate) use skills::{
    DiffArgs, ImportRedisArgs, PullArgs, PushArgs, RegistryArgs, ServerKey, SkillsArgs,
    SkillsCommand,
};
pub(crate) use source::{SourceAddArgs, SourceArgs, SourceCommand};

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};
use prowess_format::Profile;

use crate::finder::Form;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// The runtime for Agent Skills.
///
/// A skill is a folder with a SKILL.md that teaches an agent how to do a job.
#[derive(Debug, Parser)]
#[command(name = "prowess", version, styles = STYLES, propagate_version = true)]
#[command(after_help = "Exit codes: 0 ok, 1 findings, 2 usage.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// When to use colours.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorWhen,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Play a session with skills: no key, no network, no set-up.
    Demo(DemoArgs),
    /// Talk with a model that has skills.
    Chat(ChatArgs),
    /// Say whether skills are valid, in the words of the reference library.
    Validate(ValidateArgs),
    /// Check skills and show what is wrong, where, and what to do about it.
    Lint(LintArgs),
    /// Print the properties of a skill as JSON.
    ReadProperties(ReadPropertiesArgs),
    /// Print the <available_skills> block for a system prompt.
    ToPrompt(ToPromptArgs),
    /// Create a new skill.
    Create(CreateArgs),
    /// List the skills that are found.
    #[command(visible_alias = "ls")]
    List(ListArgs),
    /// Show everything about a skill: fields, resources, digests, where it comes from.
    Info(InfoArgs),
    /// Print the text of a skill, or one of its files.
    Read(ReadArgs),
    /// Show where skills are looked for, what was found, and what is wrong.
    Doctor(DoctorArgs),
    /// Add, list, refresh and remove sources: archives, URLs, folders.
    Source(SourceArgs),
    /// Run a command of a skill in a sandbox.
    Run(RunArgs),
    /// Find out what the sandbox for commands enforces on this machine.
    Sandbox(SandboxArgs),
    /// Call a tool of the engine in a stored session, and print what comes of it.
    Call(CallArgs),
    /// Print exactly what a model would be sent: system prompt, tools, messages.
    Prompt(PromptArgs),
    /// Show what a listing holds within a budget, what it drops, and who eats it.
    Budget(BudgetArgs),
    /// Replay scripted conversations and count the tokens of every request.
    Tokens(ReplayArgs),
    /// Replay scripted conversations under an ideal prefix cache.
    Cache(ReplayArgs),
    /// List, print and delete artifacts: what commands have written and kept.
    Artifacts(ArtifactsArgs),
    /// Show, import and end stored sessions.
    Session(SessionArgs),
    /// Push, pull, compare and activate versions of skills in a registry.
    Skills(SkillsArgs),
    /// Serve skills and sessions over HTTP, for agents in any language.
    Serve(ServeArgs),
    /// Make, list and revoke keys of the service.
    Keys(KeysArgs),
    /// List the rules of the linter, or explain one.
    Rules(RulesArgs),
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
    /// Print the manual page.
    Man(ManArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// Skill folders, SKILL.md files, or folders of skills; `-` reads a SKILL.md from standard
    /// input.
    #[arg(required_unless_present = "sources", value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) catalog: CatalogArgs,

    /// Whose rules apply: prowess, spec, claude-code or deepagents.
    #[arg(long, value_name = "PROFILE", default_value_t, value_parser = profile_parser())]
    pub(crate) profile: Profile,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  prowess lint                            every skill below this folder
  prowess lint --profile spec my-skill    what the reference library would say
  prowess lint --strict --format github skills/")]
pub(crate) struct LintArgs {
    /// Skill folders, SKILL.md files, or folders of skills; `-` reads a SKILL.md from standard
    /// input. Without any, the working directory.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) catalog: CatalogArgs,

    /// Whose rules apply: prowess, spec, claude-code or deepagents.
    #[arg(long, value_name = "PROFILE", default_value_t, value_parser = profile_parser())]
    pub(crate) profile: Profile,

    /// Treat warnings as errors.
    #[arg(long)]
    pub(crate) strict: bool,

    /// How to print what was found.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: Format,

    /// Print JSON: the same as `--format json`.
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReadPropertiesArgs {
    /// A skill folder or a SKILL.md file; `-` reads from standard input. With --source, also the
    /// name of a skill.
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,

    #[command(flatten)]
    pub(crate) catalog: CatalogArgs,

    /// Print the whole frontmatter with its YAML types, not only the fields of the specification.
    #[arg(long)]
    pub(crate) all: bool,

    /// Print JSON (it always does; for symmetry with other commands).
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ToPromptArgs {
    /// Skill folders, SKILL.md files, or folders of skills.
    #[arg(required_unless_present = "sources", value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) catalog: CatalogArgs,

    /// Print JSON instead of the block.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// The name: lowercase letters, digits and single hyphens.
    pub(crate) name: String,

    /// What the skill does and when to use it.
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,

    /// Where to create the folder.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub(crate) path: PathBuf,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Where skills are looked for.
#[derive(Debug, Default, Args)]
pub(crate) struct CatalogArgs {
    /// Look for skills in this folder too; may be repeated, later ones win.
    ///
    /// Commands that use skills, and do not check files, take an archive or a URL as well, and
    /// `builtin:`, the skills that come with Prowess.
    #[arg(long = "source", value_name = "PATH")]
    pub(crate) sources: Vec<PathBuf>,

    /// Look nowhere but in the folders that are named by flags, variables and prowess.toml.
    #[arg(long)]
    pub(crate) no_default_roots: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) catalog: CatalogArgs,

    /// Count tokens (o200k_base) instead of estimating them.
    #[arg(long)]
    pub(crate) tokens: bool,

    /// Count the files of each skill.
    #[arg(long)]
    pub(crate) resources: bool,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    /// The name of a skill, or name@source.
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) catalog: CatalogArgs,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    /// The name of a skill, or name@source.
    pub(crate) name: String,

    /// A file of the skill; without it, its SKILL.md.
    pub(crate) path: Option<String>,

    #[command(flatten)]
    pub(crate) catalog: CatalogArgs,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) catalog: CatalogArgs,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RulesArgs {
    /// The code of one rule.
    pub(crate) code: Option<String>,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write one page per command into this folder instead.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
}

/// How findings are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One JSON object.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// Annotations for GitHub Actions.
    Github,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Command {
    /// For whom it prints.
    pub(crate) fn form(&self) -> Form {
        Form::of_flag(match self {
            Self::Demo(arguments) => arguments.json,
            Self::Chat(arguments) => arguments.json,
            Self::Validate(arguments) => arguments.json,
            Self::Lint(arguments) => arguments.format() == Format::Json,
            Self::ReadProperties(arguments) => arguments.json,
            Self::ToPrompt(arguments) => arguments.json,
            Self::Create(arguments) => arguments.json,
            Self::List(arguments) => arguments.json,
            Self::Info(arguments) => arguments.json,
            Self::Read(arguments) => arguments.json,
            Self::Doctor(arguments) => arguments.json,
            Self::Source(arguments) => arguments.command.json(),
            Self::Run(arguments) => arguments.json,
            Self::Sandbox(arguments) => match &arguments.command {
                SandboxCommand::Check(arguments) => arguments.json,
            },
            Self::Call(arguments) => arguments.json,
            Self::Prompt(arguments) => arguments.json,
            Self::Budget(arguments) => arguments.json,
            Self::Tokens(arguments) | Self::Cache(arguments) => arguments.json,
            Self::Artifacts(arguments) => arguments.command.place().json,
            Self::Session(arguments) => match &arguments.command {
                SessionCommand::List { json } | SessionCommand::End { json, .. } => *json,
                SessionCommand::Show(arguments) => arguments.json,
                SessionCommand::Import(arguments) => arguments.json,
            },
            Self::Skills(arguments) => arguments.command.json(),
            Self::Serve(arguments) => arguments.json,
            Self::Keys(arguments) => arguments.command.json(),
            Self::Rules(arguments) => arguments.json,
            Self::Completions(_) | Self::Man(_) => false,
        })
    }
}

impl LintArgs {
    /// How to print what was found, whichever flag says so.
    pub(crate) fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }
}

impl CatalogArgs {
    /// The paths that were typed, with the sources behind them.
    pub(crate) fn with_paths(&self, paths: &[PathBuf]) -> Vec<PathBuf> {
        paths.iter().chain(&self.sources).cloned().collect()
    }
}

impl ColorWhen {
    pub(crate) fn apply(self) {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

/// Offers the names of the profiles to help texts and completions.
fn profile_parser() -> impl clap::builder::TypedValueParser<Value = Profile> {
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    PossibleValuesParser::new(Profile::ALL.map(Profile::as_str))
        .try_map(|name| name.parse::<Profile>())
}
