//! What all routes share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use prowess_catalog::Catalog;
use prowess_runtime::Runtime;
use prowess_store::{KeyStore, Registry, Shelved, UsageStore, VersionError};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use crate::auth::Doorman;
use crate::counter::Counter;
use crate::last_loads::LastLoads;
use crate::places::Places;
use crate::prepared::{Prepared, Shelf};
use crate::problem::Problem;
use crate::room::Bodies;
use crate::routes::transfer::Imports;
use crate::settings::ServerSettings;
use crate::wake::SessionEvents;

/// What all routes share. Cheap to clone.
#[derive(Clone)]
pub(crate) struct App {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) runtime: Runtime,
    pub(crate) registry: Arc<Registry>,
    /// The catalog that the registry is a source of, if there is one.
    pub(crate) catalog: Option<Catalog>,
    /// The generation of the registry that the catalog has seen.
    pub(crate) cataloged: AtomicU64,
    pub(crate) usage: Arc<dyn UsageStore>,
    pub(crate) counter: Counter,
    pub(crate) shelf: Shelf,
    pub(crate) last_loads: LastLoads,
    /// How skills are fetched, if they are.
    pub(crate) imports: Option<Imports>,
    pub(crate) keys: Arc<dyn KeyStore>,
    pub(crate) settings: ServerSettings,
    pub(crate) events: SessionEvents,
    pub(crate) doorman: Doorman,
    /// Room for what is sent.
    pub(crate) bodies: Bodies,
    /// Streams of events, by who hears them.
    pub(crate) streams: Places<Arc<str>>,
    /// Cancelled when the server ends: streams end then.
    pub(crate) ending: CancellationToken,
    /// What was begun and is finished, whoever waits for it.
    pub(crate) begun: TaskTracker,
    pub(crate) started: Instant,
}

impl App {
    pub(crate) fn new(inner: Inner) -> Self {
        Self { inner: Arc::new(inner) }
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.inner.runtime
    }

    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.inner.registry
    }

    /// The registry, once it was read: before that it would say of every skill that it is not there.
    pub(crate) fn known_registry(&self) -> Result<&Arc<Registry>, Problem> {
        match self.inner.registry.is_ready() {
            true => Ok(&self.inner.registry),
            false => {
                let message = "the skills could not be read yet; the log says why";
                Err(Problem::new(503, "registry_not_ready", message).retry_after(1))
            }
        }
    }

    /// Takes over what was changed in the registry, by this process or another one: the next
    /// request sees it.
    pub(crate) async fn refresh(&self) -> Result<(), VersionError> {
        self.inner.registry.refresh().await.map(drop)
    }

    /// Lets the engine see what the registry has, before something is done in a session.
    pub(crate) async fn catch_up(&self) {
        let generation = self.inner.registry.generation();
        if let Some(catalog) = &self.inner.catalog
            && self.inner.cataloged.load(Ordering::Acquire) != generation
        {
            catalog.refresh().await;
            // If it has gone on meanwhile, the next one looks again.
            self.inner.cataloged.store(generation, Ordering::Release);
        }
    }

    /// How skills are fetched, if they are.
    pub(crate) fn imports(&self) -> Option<&Imports> {
        self.inner.imports.as_ref()
    }

    /// Counts uses of skills.
    pub(crate) fn counter(&self) -> &Counter {
        &self.inner.counter
    }

    /// What is answered about a skill as it is now.
    pub(crate) async fn prepared(&self, shelved: &Shelved) -> Result<Arc<Prepared>, Problem> {
        let store = self.inner.registry.store().as_ref();
        self.inner.shelf.get(store, &self.inner.runtime, shelved).await
    }

    /// When skills were loaded last.
    pub(crate) fn last_loads(&self) -> &LastLoads {
        &self.inner.last_loads
    }

    pub(crate) fn usage(&self) -> &Arc<dyn UsageStore> {
        &self.inner.usage
    }

    pub(crate) fn keys(&self) -> &Arc<dyn KeyStore> {
        &self.inner.keys
    }

    pub(crate) fn settings(&self) -> &ServerSettings {
        &self.inner.settings
    }

    pub(crate) fn events(&self) -> &SessionEvents {
        &self.inner.events
    }

    /// Room for what is sent.
    pub(crate) fn bodies(&self) -> &Bodies {
        &self.inner.bodies
    }

    pub(crate) fn streams(&self) -> &Places<Arc<str>> {
        &self.inner.streams
    }

    pub(crate) fn doorman(&self) -> &Doorman {
        &self.inner.doorman
    }

    pub(crate) fn ending(&self) -> &CancellationToken {
        &self.inner.ending
    }

    pub(crate) fn begun(&self) -> &TaskTracker {
        &self.inner.begun
    }

    pub(crate) fn started(&self) -> Instant {
        self.inner.started
    }

    /// Does something to its end, even if whoever asked for it goes away.
    pub(crate) async fn finish<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Problem>> + Send + 'static,
    ) -> Result<T, Problem> {
        match self.inner.begun.spawn(work.in_current_span()).await {
            Ok(result) => result,
            Err(_) => Err(Problem::new(500, "internal", "something broke; the log says more")),
        }
    }
}
