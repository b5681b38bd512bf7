//! Timing that survives a noisy machine: contenders take turns, medians count.

mod medians;

use std::process::Command;

use anyhow::{Context, Result, bail};
pub(crate) use medians::{Contender, medians, seconds};

/// The median seconds of each contender for things that take long: every turn is one call.
pub(crate) fn turns<const N: usize>(rounds: usize, contenders: [Contender<'_>; N]) -> [f64; N] {
    let mut samples: [Vec<f64>; N] = std::array::from_fn(|_| Vec::with_capacity(rounds));
    for _ in 0..rounds {
        for at in 0..N {
            samples[at].push(seconds(contenders[at], 1));
        }
    }
    samples.map(|mut samples| {
        samples.sort_by(f64::total_cmp);
        samples[rounds / 2]
    })
}

/// Runs a Python script with `input` as its argument; it prints one number per line.
///
/// The interpreter is `PROWESS_PEERS_PYTHON`, which `./dev bench` sets.
pub(crate) fn python(script: &str, input: &str) -> Result<Vec<f64>> {
    let python =
        std::env::var("PROWESS_PEERS_PYTHON").context("PROWESS_PEERS_PYTHON is not set")?;
    let output = Command::new(python).args(["-c", script, input]).output()?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    let lines = String::from_utf8(output.stdout)?;
    lines
        .lines()
        .map(|line| line.parse().with_context(|| format!("not a number: {line}")))
        .collect()
}
