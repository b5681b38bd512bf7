//! Where everything durable is: a database in Prowess' own home, or what the configuration names.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use prowess_catalog::{ContentStore, FileContent};
use prowess_runtime::{LeaseSettings, RuntimeBuilder};
use prowess_store::{Eviction, Store, StoreSettings, StoreUrl};
use serde::Deserialize;

use crate::finder::Finder;
use crate::toolkits::own_config;

/// Names the store, before `[store]` in `prowess.toml`.
pub(crate) const STORE_URL: &str = "PROWESS_STORE_URL";

/// `[store]` in `prowess.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct StoreSection {
    /// Where it is.
    url: Option<String>,
    /// So long others wait for an engine that has died while it worked on a session.
    lease_seconds: u64,
    /// So many connections to PostgreSQL; one more listens.
    connections: usize,
    /// So long a connection may take.
    connect_seconds: u64,
    /// So long the store may take to answer.
    answer_seconds: u64,
    /// Whether a Redis may remove keys when its memory is full.
    allow_eviction: bool,
}

impl Default for StoreSection {
    fn default() -> Self {
        let settings = StoreSettings::default();
        Self {
            url: None,
            lease_seconds: 15,
            connections: settings.connections,
            connect_seconds: settings.connect_time.as_secs(),
            answer_seconds: settings.answer_time.as_secs(),
            allow_eviction: settings.eviction == Eviction::Accept,
        }
    }
}

impl StoreSection {
    /// The first limit that is none, and what it may be.
    fn wrong(&self) -> Option<(&'static str, RangeInclusive<u64>)> {
        let connections = u64::try_from(self.connections).unwrap_or(u64::MAX);
        let table = [
            ("lease_seconds", self.lease_seconds, 1..=3600),
            ("connections", connections, 1..=1000),
            ("connect_seconds", self.connect_seconds, 1..=3600),
            ("answer_seconds", self.answer_seconds, 1..=3600),
        ];
        let wrong = table.into_iter().find(|(_, value, range)| !range.contains(value));
        wrong.map(|(name, _, range)| (name, range))
    }

    fn settings(&self) -> StoreSettings {
        let mut settings = StoreSettings::default();
        settings.connections = self.connections;
        settings.connect_time = Duration::from_secs(self.connect_seconds);
        settings.answer_time = Duration::from_secs(self.answer_seconds);
        settings.eviction = match self.allow_eviction {
            true => Eviction::Accept,
            false => Eviction::Refuse,
        };
        settings
    }
}

/// Where everything durable is.
pub(crate) struct StorePlace {
    url: StoreUrl,
    home: PathBuf,
    lease: Duration,
    settings: StoreSettings,
}

impl StorePlace {
    pub(crate) fn find(finder: &Finder) -> anyhow::Result<Self> {
        let home = finder.home.clone().context("there is no home; set PROWESS_HOME")?;
        // A project does not decide where conversations go.
        let own = own_config(finder, &home, &["store"])?;
        let place = || own.path.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        let section: StoreSection =
            own.store.clone().try_into().with_context(|| format!("{}: [store]", place()))?;
        if let Some((name, range)) = section.wrong() {
            bail!("{}: [store] {name} must be {} to {}", place(), range.start(), range.end());
        }
        let (settings, lease) = (section.settings(), Duration::from_secs(section.lease_seconds));
        let url = match (std::env::var_os(STORE_URL), section.url) {
            (Some(text), _) => {
                text.to_string_lossy().parse().with_context(|| format!("in {STORE_URL}"))?
            }
            (None, Some(text)) => {
                text.parse().with_context(|| format!("{}: [store] url", place()))?
            }
            (None, None) => StoreUrl::sqlite(home.join("prowess.db")),
        };
        Ok(Self { url, home, lease, settings })
    }

    /// Opens it. The runtime on which that happens is the one that uses it.
    pub(crate) async fn open(&self) -> anyhow::Result<OpenStore> {
        let store = self.url.open_with(&self.settings).await?;
        let content = store.content.clone();
        let content = content.unwrap_or_else(|| Arc::new(FileContent::new(&self.home)));
        let patience = self.lease + Duration::from_secs(5);
        let leases = LeaseSettings::new(instance()).with_time(self.lease).with_patience(patience);
        Ok(OpenStore { store, content, leases })
    }

    /// Where it is, without passwords.
    pub(crate) fn shown(&self) -> String {
        self.url.to_string()
    }
}

/// Everything durable, and the content that it refers to.
pub(crate) struct OpenStore {
    pub(crate) store: Store,
    content: Arc<dyn ContentStore>,
    leases: LeaseSettings,
}

impl OpenStore {
    /// Gives it to an engine, which shares it with others.
    pub(crate) fn give(&self, engine: RuntimeBuilder) -> RuntimeBuilder {
        engine
            .sessions(Arc::clone(&self.store.sessions))
            .content(Arc::clone(&self.content))
            .leases(self.leases.clone())
    }
}

/// What no other engine is called.
fn instance() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{host}/{}/{}", std::process::id(), uuid::Uuid::now_v7())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_the_store_are_checked_at_their_edges() {
        let wrong = |text: &str| {
            let section: StoreSection = toml::from_str(text).unwrap();
            section.wrong().map(|(name, _)| name)
        };
        let most = [("lease_seconds", 3600), ("connections", 1000), ("connect_seconds", 3600)];
        assert_eq!(wrong(""), None);
        for (name, most) in most.into_iter().chain([("answer_seconds", 3600)]) {
            assert_eq!(wrong(&format!("{name} = 1")), None);
            assert_eq!(wrong(&format!("{name} = {most}")), None);
            assert_eq!(wrong(&format!("{name} = 0")), Some(name));
            assert_eq!(wrong(&format!("{name} = {}", most + 1)), Some(name));
        }
    }

    #[test]
    fn what_is_set_is_what_the_store_is_opened_with() {
        assert_eq!(StoreSection::default().settings(), StoreSettings::default());
        let text = "connections = 3\nconnect_seconds = 1\nanswer_seconds = 2\n\
                    allow_eviction = true\n";
        let settings = toml::from_str::<StoreSection>(text).unwrap().settings();
        let seconds = (settings.connect_time.as_secs(), settings.answer_time.as_secs());
        assert_eq!((settings.connections, seconds), (3, (1, 2)));
        assert_eq!(settings.eviction, Eviction::Accept);
    }
}
