//! The merged whole: sources in, snapshots out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;

use crate::error::ReadError;
use crate::found::SourceListing;
use crate::merge::Precedence;
use crate::resource::{EagerResources, ResourceDiscovery, ResourceScope};
use crate::skill::path_in;
use crate::snapshot::Snapshot;
use crate::source::{Scope, Source, SourceFactory};

/// All sources, and the newest snapshot of them. Cheap to clone; readers never block.
///
/// ```
/// use prowess_catalog::{Catalog, MemorySource};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let text = "---\nname: hello\ndescription: Says hello.\n---\nSay hello.\n";
/// let catalog = Catalog::builder()
///     .source(MemorySource::new("built-in").with_skill("hello", text))
///     .build();
/// let snapshot = catalog.refresh().await;
/// assert_eq!(snapshot.get("hello").unwrap().found().description(), "Says hello.");
/// # });
/// ```
#[derive(Clone)]
pub struct Catalog {
    inner: Arc<Inner>,
}

struct Inner {
    sources: Vec<Arc<dyn Source>>,
    factories: Vec<Arc<dyn SourceFactory>>,
    precedence: Precedence,
    discovery: ResourceDiscovery,
    current: ArcSwap<State>,
    refreshing: tokio::sync::Mutex<()>,
    generation: AtomicU64,
    published: tokio::sync::watch::Sender<Snapshot>,
}

struct State {
    snapshot: Snapshot,
    listings: Vec<Arc<SourceListing>>,
    /// Empty, unless they are found eagerly.
    resources: EagerResources,
}

impl std::fmt::Debug for Catalog {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Catalog")
            .field("snapshot", &self.snapshot())
            .finish_non_exhaustive()
    }
}

/// Puts a [`Catalog`] together.
#[derive(Default)]
pub struct CatalogBuilder {
    sources: Vec<Arc<dyn Source>>,
    factories: Vec<Arc<dyn SourceFactory>>,
    precedence: Precedence,
    discovery: ResourceDiscovery,
}

impl CatalogBuilder {
    /// Adds a source above those that are there.
    pub fn source(self, source: impl Source) -> Self {
        self.shared_source(Arc::new(source))
    }

    /// Adds a source that others hold too.
    pub fn shared_source(mut self, source: Arc<dyn Source>) -> Self {
        self.sources.push(source);
        self
    }

    /// Adds sources that depend on the user, the session and the agent. They come above the
    /// others, in catalogs made by [`Catalog::for_scope`].
    pub fn factory(mut self, factory: impl SourceFactory) -> Self {
        self.factories.push(Arc::new(factory));
        self
    }

    /// Which of several skills of one name is meant.
    pub fn precedence(mut self, precedence: Precedence) -> Self {
        self.precedence = precedence;
        self
    }

    /// When resources are found.
    pub fn resources(mut self, discovery: ResourceDiscovery) -> Self {
        self.discovery = discovery;
        self
    }

    /// The catalog. Its snapshot is empty until the first [`Catalog::refresh`].
    pub fn build(self) -> Catalog {
        let Self { sources, factories, precedence, discovery } = self;
        let state =
            State { snapshot: Snapshot::empty(), listings: Vec::new(), resources: Vec::new() };
        let published = tokio::sync::watch::Sender::new(state.snapshot.clone());
        Catalog {
            inner: Arc::new(Inner {
                sources,
                factories,
                precedence,
                discovery,
                current: ArcSwap::from_pointee(state),
                refreshing: tokio::sync::Mutex::new(()),
                generation: AtomicU64::new(0),
                published,
            }),
        }
    }
}

impl Catalog {
    /// Begins a catalog.
    pub fn builder() -> CatalogBuilder {
        CatalogBuilder::default()
    }

    /// The newest snapshot. Never blocks, reads nothing.
    pub fn snapshot(&self) -> Snapshot {
        self.inner.current.load().snapshot.clone()
    }

    /// Looks at all sources again and publishes what has changed, at once or not at all. If
    /// nothing has changed, the snapshot stays the same generation.
    pub async fn refresh(&self) -> Snapshot {
        let inner = &*self.inner;
        let _one_at_a_time = inner.refreshing.lock().await;
        let mut listings = Vec::with_capacity(inner.sources.len());
        for source in &inner.sources {
            listings.push(source.list().await);
        }
        let resources = match inner.discovery {
            ResourceDiscovery::Lazy => Vec::new(),
            ResourceDiscovery::Eager => self.all_resources(&listings).await,
        };
        let current = inner.current.load();
        let same = inner.generation.load(Ordering::Acquire) > 0
            && current.listings.len() == listings.len()
            && current.listings.iter().zip(&listings).all(|(a, b)| Arc::ptr_eq(a, b))
            && current.resources == resources;
        if same {
            return current.snapshot.clone();
        }
        let generation = inner.generation.fetch_add(1, Ordering::AcqRel) + 1;
        let sources: Vec<_> = inner.sources.iter().cloned().zip(listings.iter().cloned()).collect();
        let snapshot = Snapshot::merge(generation, &sources, &resources, inner.precedence);
        let state = State { snapshot: snapshot.clone(), listings, resources };
        inner.current.store(Arc::new(state));
        inner.published.send_replace(snapshot.clone());
        snapshot
    }

    /// The resources of all skills.
    async fn all_resources(&self, listings: &[Arc<SourceListing>]) -> EagerResources {
        let mut all = Vec::with_capacity(listings.len());
        for (source, listing) in self.inner.sources.iter().zip(listings) {
            let mut of_source = Vec::with_capacity(listing.skills.len());
            for skill in &listing.skills {
                let found = source.resources(skill, ResourceScope::default()).await;
                let located = |error: ReadError| error.about_resources(&path_in(&**source, skill));
                of_source.push(found.map(Arc::new).map_err(located));
            }
            all.push(of_source);
        }
        all
    }

    /// A receiver that sees every newest snapshot.
    pub fn subscribe(&self) -> tokio::sync::watch::Receiver<Snapshot> {
        self.inner.published.subscribe()
    }

    /// A catalog for a user, a session and an agent: these sources, and those that the factories
    /// make. Without factories it is this one.
    pub fn for_scope(&self, scope: &Scope) -> Self {
        if self.inner.factories.is_empty() {
            return self.clone();
        }
        let made = self.inner.factories.iter().flat_map(|factory| factory.sources(scope));
        let builder = CatalogBuilder {
            sources: self.inner.sources.iter().cloned().chain(made).collect(),
            factories: Vec::new(),
            precedence: self.inner.precedence,
            discovery: self.inner.discovery,
        };
        builder.build()
    }

    /// Whether sources depend on the user, the session and the agent.
    pub fn depends_on_scope(&self) -> bool {
        !self.inner.factories.is_empty()
    }

    /// The sources, lowest precedence first.
    pub fn sources(&self) -> &[Arc<dyn Source>] {
        &self.inner.sources
    }
}
