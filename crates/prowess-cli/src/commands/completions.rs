//! `prowess completions`

use std::io::Write;

use clap::CommandFactory;

use crate::Outcome;
use crate::cli::{Cli, CompletionsArgs};

pub(crate) fn run(arguments: &CompletionsArgs) -> anyhow::Result<Outcome> {
    // Into memory first: the generator panics if its output fails.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "prowess", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(Outcome::Ok)
}
