//! `prowess`, the command line.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cli;
mod commands;
mod engine;
mod finder;
mod locate;
mod progress;
mod report;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Nothing to complain about.
    Ok,
    /// The command did its work and found something wrong.
    Findings,
    /// The command was called wrongly.
    Usage,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Ok => Self::SUCCESS,
            Outcome::Findings => Self::from(1),
            Outcome::Usage => Self::from(2),
        }
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    cli.color.apply();
    let outcome = match cli.command {
        Command::Validate(arguments) => commands::validate::run(&arguments),
        Command::Lint(arguments) => commands::lint::run(&arguments),
        Command::ReadProperties(arguments) => commands::read_properties::run(&arguments),
        Command::ToPrompt(arguments) => commands::to_prompt::run(&arguments),
        Command::Create(arguments) => commands::create::run(&arguments),
        Command::List(arguments) => commands::list::run(&arguments),
        Command::Info(arguments) => commands::info::run(&arguments),
        Command::Read(arguments) => commands::read::run(&arguments),
        Command::Doctor(arguments) => commands::doctor::run(&arguments),
        Command::Call(arguments) => commands::call::run(&arguments),
        Command::Session(arguments) => commands::session::run(&arguments.command),
        Command::Rules(arguments) => commands::rules::run(&arguments),
        Command::Completions(arguments) => commands::completions::run(&arguments),
        Command::Man(arguments) => commands::man::run(&arguments),
    };
    match outcome {
        Ok(outcome) => outcome.into(),
        // Whoever reads the output has seen enough: `prowess … | head` is no failure.
        Err(error) if terminal::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            anstream::eprintln!("Error: {}", terminal::safe(&format!("{error:#}")));
            ExitCode::from(1)
        }
    }
}
