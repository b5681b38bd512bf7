//! The engine on its embedded defaults: sessions and content in Prowess' own home.

use std::sync::Arc;

use anyhow::Context;
use prowess_catalog::FileContent;
use prowess_runtime::{Runtime, Settings};
use prowess_store::SqliteSessions;

use crate::cli::CatalogArgs;
use crate::finder::Finder;
use crate::tokens;

fn settings(finder: &Finder) -> anyhow::Result<Settings> {
    Settings::from_table(finder.config.runtime.clone()).with_context(|| {
        finder.config.path.as_ref().map(|path| path.display().to_string()).unwrap_or_default()
    })
}

/// The engine, and what waits for it.
pub(crate) struct LocalEngine {
    pub(crate) runtime: Runtime,
    finder: Finder,
}

impl LocalEngine {
    pub(crate) fn open(arguments: &CatalogArgs) -> anyhow::Result<Self> {
        let finder = Finder::new(arguments)?;
        let settings = settings(&finder)?;
        let home = finder.home.clone().context("there is no home; set PROWESS_HOME")?;
        let database = home.join("prowess.db");
        let sessions = SqliteSessions::open(&database)
            .with_context(|| format!("cannot open {}", database.display()))?;
        let runtime = Runtime::builder(finder.refreshed())
            .sessions(Arc::new(sessions))
            .content(Arc::new(FileContent::new(home)))
            .settings(settings)
            .token_counter(Arc::new(tokens::count))
            .build()?;
        Ok(Self { runtime, finder })
    }

    /// An engine that keeps nothing, with other settings than those of `prowess.toml`.
    pub(crate) fn passing(
        arguments: &CatalogArgs,
        change: impl FnOnce(Settings) -> Settings,
    ) -> anyhow::Result<Self> {
        let finder = Finder::new(arguments)?;
        let settings = change(settings(&finder)?);
        let runtime = Runtime::builder(finder.refreshed())
            .settings(settings)
            .token_counter(Arc::new(tokens::count))
            .build()?;
        Ok(Self { runtime, finder })
    }

    /// Waits for something that the engine does.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.finder.wait(work)
    }
}
