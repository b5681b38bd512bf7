//! The engine, with skills, words, tools and sessions as the configuration says.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use prowess_catalog::{Catalog, Snapshot};
use prowess_runtime::{Dialect, Runtime, RuntimeBuilder, Settings};

use crate::cli::{CatalogArgs, DialectArgs};
use crate::finder::Finder;
use crate::store::{OpenStore, StorePlace};
use crate::terminal::safe_line;
use crate::tokens;
use crate::toolkits::Toolkits;

/// Whether commands in skill text are run. A project does not decide that: it may have been cloned
/// from anywhere, with skills of its own.
const COMMANDS_KEY: &str = "embedded_commands";

/// The dialect that is asked for, or that `prowess.toml` names, and the settings that go with it.
fn dialect(finder: &Finder, asked: Option<&str>) -> anyhow::Result<(Dialect, Settings)> {
    let config = &finder.config;
    let place = || config.path.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    let mut table = config.runtime.clone();
    let configured = match table.remove("dialect") {
        None => None,
        Some(toml::Value::String(word)) => Some(word),
        Some(other) => {
            let kind = other.type_str();
            bail!("{}: [runtime] dialect must be a name or a path, not {kind}", place());
        }
    };
    if !finder.is_own_config() && table.remove(COMMANDS_KEY).is_some() {
        anstream::eprintln!(
            "Warning: {}: {COMMANDS_KEY} in [runtime] counts only in $PROWESS_HOME/prowess.toml; \
             it is left out",
            safe_line(&place()),
        );
    }
    let dialect = match (asked, configured) {
        (Some(asked), _) => Dialect::find(asked)?,
        (None, Some(word)) => {
            Dialect::find(&beside(config.path.as_deref(), word)).with_context(place)?
        }
        (None, None) => Dialect::built_in()?,
    };
    let settings = dialect.settings_with(&table).with_context(place)?;
    Ok((dialect, settings))
}

/// A path in a configuration is meant from where the configuration is.
fn beside(config: Option<&Path>, word: String) -> String {
    let folder = config.and_then(Path::parent);
    let is_path = word.ends_with(".toml") || word.contains('/');
    match folder.filter(|_| is_path && Path::new(&word).is_relative()) {
        Some(folder) => folder.join(word).display().to_string(),
        None => word,
    }
}

/// What an engine is made of.
pub(crate) struct Parts {
    pub(crate) finder: Finder,
    pub(crate) home: PathBuf,
    pub(crate) catalog: Catalog,
    pub(crate) dialect: Dialect,
    pub(crate) settings: Settings,
    pub(crate) toolkits: Toolkits,
    pub(crate) store: StorePlace,
}

impl Parts {
    pub(crate) fn open(
        arguments: &CatalogArgs,
        asked: Option<&DialectArgs>,
    ) -> anyhow::Result<Self> {
        let finder = Finder::new(arguments)?;
        let (dialect, settings) =
            dialect(&finder, asked.and_then(|asked| asked.dialect.as_deref()))?;
        let home = finder.home.clone().context("there is no home; set PROWESS_HOME")?;
        let toolkits = Toolkits::open(&finder, &home)?;
        let store = StorePlace::find(&finder)?;
        let catalog = finder.refreshed();
        Ok(Self { finder, home, catalog, dialect, settings, toolkits, store })
    }
}

/// Gives an engine what it has besides its skills and words: sessions, content, tools.
pub(crate) fn equip(
    engine: RuntimeBuilder,
    toolkits: Toolkits,
    store: &OpenStore,
) -> RuntimeBuilder {
    toolkits.give(store.give(engine)).token_counter(Arc::new(tokens::count))
}

/// The engine, and what waits for it.
pub(crate) struct LocalEngine {
    pub(crate) runtime: Runtime,
    finder: Finder,
}

impl LocalEngine {
    pub(crate) fn open(
        arguments: &CatalogArgs,
        asked: Option<&DialectArgs>,
    ) -> anyhow::Result<Self> {
        Self::of(Parts::open(arguments, asked)?)
    }

    fn of(parts: Parts) -> anyhow::Result<Self> {
        let Parts { finder, catalog, dialect, settings, toolkits, store, .. } = parts;
        let store = finder.wait(store.open())?;
        let engine = equip(Runtime::builder(catalog), toolkits, &store);
        let runtime = engine.dialect(dialect).settings(settings).build()?;
        Ok(Self { runtime, finder })
    }

    /// An engine for one call, which names its tool: all of them are there, because nobody pays for
    /// being told of them.
    pub(crate) fn for_call(mut parts: Parts) -> anyhow::Result<Self> {
        let exec = &mut parts.toolkits.exec;
        (exec.interactive, exec.workspace_exec) = (true, true);
        Self::of(parts)
    }

    /// An engine for commands that a person types: whatever the skill allows its agent, and with
    /// sessions that are kept only if they are asked for.
    pub(crate) fn for_run(
        arguments: &CatalogArgs,
        is_kept: bool,
        change: impl FnOnce(&mut Toolkits, &Snapshot),
    ) -> anyhow::Result<Self> {
        let finder = Finder::new(arguments)?;
        let home = finder.home.clone().context("there is no home; set PROWESS_HOME")?;
        let mut toolkits = Toolkits::open(&finder, &home)?;
        let catalog = finder.refreshed();
        change(&mut toolkits, &catalog.snapshot());
        let mut engine = Runtime::builder(catalog);
        if is_kept {
            engine = finder.wait(StorePlace::find(&finder)?.open())?.give(engine);
        }
        let runtime = toolkits.give(engine).build()?;
        Ok(Self { runtime, finder })
    }

    /// An engine that keeps nothing, with other settings than those of `prowess.toml`.
    pub(crate) fn passing(
        arguments: &CatalogArgs,
        change: impl FnOnce(Settings) -> Settings,
    ) -> anyhow::Result<Self> {
        let finder = Finder::new(arguments)?;
        let (dialect, settings) = dialect(&finder, None)?;
        let runtime = Runtime::builder(finder.refreshed())
            .dialect(dialect)
            .settings(change(settings))
            .token_counter(Arc::new(tokens::count))
            .build()?;
        Ok(Self { runtime, finder })
    }

    /// Waits for something that the engine does.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.finder.wait(work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_a_configuration_is_meant_from_there() {
        let table = [
            ("house.toml", "/etc/prowess/house.toml"),
            ("dialects/house", "/etc/prowess/dialects/house"),
            ("/house.toml", "/house.toml"),
            ("trpc", "trpc"),
        ];
        for (word, expected) in table {
            assert_eq!(
                beside(Some(Path::new("/etc/prowess/prowess.toml")), word.to_owned()),
                expected
            );
            assert_eq!(beside(None, word.to_owned()), word);
        }
    }
}
