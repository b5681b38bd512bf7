//! `prowess man`

use std::fs;
use std::io::Write;

use anyhow::Context;
use clap::CommandFactory;

use crate::Outcome;
use crate::cli::{Cli, ManArgs};

pub(crate) fn run(arguments: &ManArgs) -> anyhow::Result<Outcome> {
    let Some(folder) = &arguments.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page)?;
        std::io::stdout().write_all(&page)?;
        return Ok(Outcome::Ok);
    };
    let cannot = || format!("cannot write manual pages to {}", folder.display());
    fs::create_dir_all(folder).with_context(cannot)?;
    clap_mangen::generate_to(Cli::command(), folder).with_context(cannot)?;
    Ok(Outcome::Ok)
}
