//! The service: against a bare handler and a peer, at two sizes, for minutes, and killed.

mod endurance;
pub(crate) mod ground;
mod size;
mod speed;
mod trials;

use anyhow::{Context, Result};

use crate::results::Row;

pub(crate) fn run() -> Result<Vec<Row>> {
    let mut rows = speed::rows()?;
    rows.extend(size::rows()?);
    rows.extend(trials::rows()?);
    rows.extend(endurance::rows()?);
    Ok(rows)
}

/// A number from the environment, if there is one.
pub(crate) fn setting(name: &str, default: usize) -> Result<usize> {
    match std::env::var(name) {
        Ok(text) => text.parse().with_context(|| format!("{name} is '{text}' and no number")),
        Err(_) => Ok(default),
    }
}
