//! Traces and metrics of `prowess serve` and `prowess chat`, and the log.

use std::path::Path;

use anyhow::Context;
use prowess_runtime::RuntimeBuilder;
use prowess_server::telemetry::{Telemetry, TelemetrySettings};
use tracing_subscriber::{EnvFilter, Layer};

use crate::finder::Finder;
use crate::toolkits::own_config;

/// Where the log goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Log {
    /// To standard error; `PROWESS_LOG=info` tells of every request too.
    StandardError,
    /// Nowhere: people read the screen.
    Nowhere,
}

/// What is sent to a collector, if anything is.
pub(crate) struct Observed(Option<Telemetry>);

/// Begins the log, and telemetry as the user's own `prowess.toml` and the environment say: a
/// project that was cloned from anywhere does not decide where traces are sent.
pub(crate) fn observe(finder: &Finder, home: &Path, log: Log) -> anyhow::Result<Observed> {
    let own = own_config(finder, home, &["telemetry"])?;
    let place = || own.path.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    let settings = TelemetrySettings::from_table(own.telemetry.clone()).with_context(place)?;
    let settings = settings.with_environment(|name| std::env::var(name).ok())?;
    let telemetry = Telemetry::start(&settings)?;
    let filter = EnvFilter::try_from_env("PROWESS_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    // That somebody listens already is no failure.
    match (&telemetry, log) {
        (None, Log::Nowhere) => {}
        (None, Log::StandardError) => {
            let log = tracing_subscriber::fmt().with_env_filter(filter);
            let _ = log.with_writer(std::io::stderr).with_ansi(false).try_init();
        }
        (Some(telemetry), log) => {
            let to_stderr = (log == Log::StandardError).then(|| {
                let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
                log.with_ansi(false).with_filter(filter)
            });
            let _ = telemetry.install(to_stderr);
        }
    }
    Ok(Observed(telemetry))
}

impl Observed {
    /// Lets an engine tell what it commits.
    pub(crate) fn give(&self, engine: RuntimeBuilder) -> RuntimeBuilder {
        match &self.0 {
            Some(telemetry) => engine.sink(telemetry.sink()),
            None => engine,
        }
    }

    /// Sends what is left, and says what was lost.
    pub(crate) fn end(self) {
        let Some(telemetry) = self.0 else { return };
        let delivered = telemetry.end();
        let spans = delivered.dropped_spans;
        if spans > 0 {
            anstream::eprintln!("Warning: {spans} spans were not delivered to the collector");
        }
        if delivered.lost_metrics {
            anstream::eprintln!("Warning: the last metrics were not delivered to the collector");
        }
    }
}
