//! `prowess`, the command line.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod built_in;
mod cli;
mod commands;
mod deliver;
mod engine;
mod finder;
mod locate;
mod progress;
mod replay;
mod report;
mod source_file;
mod store;
mod telemetry;
mod terminal;
mod tokens;
mod toolkits;
mod words;

use std::error::Error;
use std::io;
use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use finder::Form;
use prowess_catalog::{ConfigError, InvalidReach, RemoteError};
use prowess_runtime::{InvalidSettings, RuntimeError, StoreError};
use prowess_server::telemetry::InvalidTelemetrySettings;
use prowess_server::{InvalidServerSettings, ServerError};
use prowess_store::KeyError;
use prowess_toolkits::{
    InvalidArtifactSettings, InvalidExecSettings, InvalidFilesSettings, InvalidWorkspaceSettings,
};
use prowess_workspace::{ArtifactError, ExecError};

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Nothing to complain about.
    Ok,
    /// The command did its work and found something wrong.
    Findings,
    /// The command was called wrongly, or `prowess.toml` is wrong.
    Usage,
    /// Something else was run, and ended with this code.
    Exit(u8),
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Ok => Self::SUCCESS,
            Outcome::Findings => Self::from(1),
            Outcome::Usage => Self::from(2),
            Outcome::Exit(code) => Self::from(code),
        }
    }
}

fn main() -> ExitCode {
    prowess_workspace::supervise_if_asked();
    // One provider for all that speaks TLS. That there is one already is no failure.
    drop(rustls::crypto::ring::default_provider().install_default());
    let cli = Cli::parse();
    cli.color.apply();
    let form = cli.command.form();
    let outcome = match cli.command {
        Command::Demo(arguments) => commands::demo::run(&arguments),
        Command::Chat(arguments) => commands::chat::run(&arguments),
        Command::Validate(arguments) => commands::validate::run(&arguments),
        Command::Lint(arguments) => commands::lint::run(&arguments),
        Command::ReadProperties(arguments) => commands::read_properties::run(&arguments),
        Command::ToPrompt(arguments) => commands::to_prompt::run(&arguments),
        Command::Create(arguments) => commands::create::run(&arguments),
        Command::List(arguments) => commands::list::run(&arguments),
        Command::Info(arguments) => commands::info::run(&arguments),
        Command::Read(arguments) => commands::read::run(&arguments),
        Command::Doctor(arguments) => commands::doctor::run(&arguments),
        Command::Source(arguments) => commands::source::run(&arguments.command),
        Command::Run(arguments) => commands::run::run(&arguments),
        Command::Sandbox(arguments) => commands::sandbox::run(&arguments.command),
        Command::Call(arguments) => commands::call::run(&arguments),
        Command::Prompt(arguments) => commands::prompt::run(&arguments),
        Command::Budget(arguments) => commands::budget::run(&arguments),
        Command::Tokens(arguments) => commands::tokens::run(&arguments),
        Command::Cache(arguments) => commands::cache::run(&arguments),
        Command::Artifacts(arguments) => commands::artifacts::run(&arguments.command),
        Command::Session(arguments) => commands::session::run(&arguments.command),
        Command::Skills(arguments) => commands::skills::run(&arguments),
        Command::Serve(arguments) => commands::serve::run(&arguments),
        Command::Keys(arguments) => commands::keys::run(&arguments.command),
        Command::Rules(arguments) => commands::rules::run(&arguments),
        Command::Completions(arguments) => commands::completions::run(&arguments),
        Command::Man(arguments) => commands::man::run(&arguments),
    };
    match outcome {
        Ok(outcome) => outcome.into(),
        // Whoever reads the output has seen enough: `prowess … | head` is no failure.
        Err(error) if terminal::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => fail(&error, form),
    }
}

/// Says why a command could not do its work: to people on standard error, to programs as
/// `{"error": …}` too.
fn fail(error: &anyhow::Error, form: Form) -> ExitCode {
    let message = format!("{error:#}");
    let (code, outcome) = named(error);
    if form == Form::Json {
        // Where this fails too, standard error is all there is.
        let _ = finder::print_error(code, &message);
    }
    anstream::eprintln!("Error: {}", terminal::safe(&message));
    outcome.into()
}

/// The stable name of an error, and how it ends a command.
fn named(error: &anyhow::Error) -> (&'static str, Outcome) {
    if let Some(error) = error.downcast_ref::<ConfigError>() {
        return (error.code(), Outcome::Usage);
    }
    if let Some(error) = error.downcast_ref::<ExecError>() {
        return (error.code(), Outcome::Findings);
    }
    if let Some(error) = error.downcast_ref::<ArtifactError>() {
        return (error.code(), Outcome::Findings);
    }
    if let Some(error) = error.downcast_ref::<ServerError>() {
        return (error.code(), Outcome::Findings);
    }
    if let Some(error) = error.downcast_ref::<KeyError>() {
        return (error.code(), Outcome::Findings);
    }
    let is_config = error.is::<InvalidExecSettings>()
        || error.is::<InvalidFilesSettings>()
        || error.is::<InvalidWorkspaceSettings>()
        || error.is::<InvalidArtifactSettings>()
        || error.is::<InvalidServerSettings>()
        || error.is::<InvalidTelemetrySettings>();
    if is_config || error.is::<InvalidSettings>() || error.is::<InvalidReach>() {
        return ("invalid_config", Outcome::Usage);
    }
    if let Some(error) = error.downcast_ref::<RemoteError>() {
        return (error.code(), Outcome::Findings);
    }
    let code = match (error.downcast_ref::<StoreError>(), error.downcast_ref::<RuntimeError>()) {
        (Some(error), _) => error.code(),
        (_, Some(error)) => error.code(),
        _ if error.chain().any(<dyn Error>::is::<io::Error>) => "io",
        _ => "failed",
    };
    (code, Outcome::Findings)
}
