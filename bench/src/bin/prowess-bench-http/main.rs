//! `prowess-bench-http floor|load`: what `prowess-bench serve` runs in processes of their own.
//!
//! A program of its own, because `prowess-bench` counts its allocations, and the floor shall not
//! pay for that.

mod floor;
mod load;

use std::process::ExitCode;

use anyhow::{Result, bail};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("floor") => floor::run(),
        Some("load") => load::run(),
        _ => bail!("this is a part of ./dev bench serve"),
    }
}
