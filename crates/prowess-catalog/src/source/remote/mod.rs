//! Skills from archives and URLs.
//!
//! What is fetched is unpacked into a cache, under its digest, and read from there as from any
//! folder. Nothing is used that was not verified: a pin before anything is unpacked, a file when it
//! is read.

mod address;
mod cache;
mod compose;
mod error;
mod fetch;
mod index;
mod listing;
mod location;
mod locks;
mod manifest;
mod record;
mod update;

pub use address::{InvalidReach, Reach};
pub use cache::RemoteCache;
pub use error::{AddressRefused, InvalidLocation, RemoteError};
pub use fetch::Lookup;
pub use location::Location;
pub use record::SourceStatus;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prowess_format::Digest;

use super::directory::Blocking;
use super::files::{Files, Place};
use super::{Source, SourceFuture, SourceInfo, Trust};
use crate::beneath::ResourcePath;
use crate::error::ReadError;
use crate::found::{FoundSkill, SourceListing};
use crate::limits::ScanLimits;
use crate::remote_limits::RemoteLimits;
use crate::resource::{ResourceListing, ResourceScope};
use crate::scan::Nested;

use cache::OpenTree;
use listing::State;
use record::{Failure, Record, now};
use update::Check;

/// How far fetching has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// What is being done.
    pub stage: Stage,
    /// How many bytes are done.
    pub done: u64,
    /// How many there are, if that is known.
    pub total: Option<u64>,
}

/// What is being done with a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// It comes over the network.
    Download,
    /// It is unpacked.
    Unpack,
}

/// Who is told how far fetching has come.
pub type ProgressSink = Arc<dyn Fn(&Progress) + Send + Sync>;

/// Skills in an archive or at a URL. They are not trusted, unless they are pinned.
///
/// ```no_run
/// use prowess_catalog::{Location, RemoteCache, RemoteSource};
///
/// let location = Location::parse("https://example.com/skills.zip")?;
/// let source = RemoteSource::new(location, RemoteCache::new("/var/cache/prowess"));
/// # let _ = source;
/// # Ok::<(), prowess_catalog::InvalidLocation>(())
/// ```
pub struct RemoteSource {
    info: SourceInfo,
    fetching: Fetching,
    scan: ScanLimits,
    blocking: Blocking,
    state: Arc<Mutex<State>>,
}

/// Everything that decides what is fetched, and how.
#[derive(Clone)]
struct Fetching {
    location: Location,
    cache: RemoteCache,
    limits: RemoteLimits,
    reach: Reach,
    lookup: Lookup,
    /// Where an index may send us besides its own origin.
    origins: Vec<String>,
    progress: ProgressSink,
}

impl std::fmt::Debug for RemoteSource {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("RemoteSource").field("info", &self.info).finish_non_exhaustive()
    }
}

impl RemoteSource {
    /// The skills at a location, kept in a cache.
    pub fn new(location: Location, cache: RemoteCache) -> Self {
        let info = SourceInfo::new(location.label(), location.shown()).with_trust(location.trust());
        let fetching = Fetching {
            location,
            cache,
            limits: RemoteLimits::default(),
            reach: Reach::default(),
            lookup: fetch::system_lookup(),
            origins: Vec::new(),
            progress: Arc::new(|_| {}),
        };
        let (scan, blocking) = (ScanLimits::default(), Blocking::default());
        Self { info, fetching, scan, blocking, state: Arc::default() }
    }

    /// Another label than the location suggests.
    pub fn with_label(mut self, label: impl Into<String>) -> Self {
        self.info.label = label.into();
        self
    }

    /// How far it is believed, whether it is pinned or not.
    pub fn with_trust(mut self, trust: Trust) -> Self {
        self.info.trust = trust;
        self
    }

    /// Other limits on what is fetched than the default ones.
    pub fn with_limits(mut self, limits: RemoteLimits) -> Self {
        self.fetching.limits = limits;
        self
    }

    /// Other limits on what is found in it than the default ones.
    pub fn with_scan_limits(mut self, limits: ScanLimits) -> Self {
        self.scan = limits;
        self
    }

    /// Which addresses are connected to.
    pub fn with_reach(mut self, reach: Reach) -> Self {
        self.fetching.reach = reach;
        self
    }

    /// Origins such as `https://cdn.example.com` that an index may send us to, besides its own.
    pub fn with_origins(mut self, origins: impl IntoIterator<Item = String>) -> Self {
        self.fetching.origins = origins.into_iter().collect();
        self
    }

    /// Who finds the addresses of names. What is found is vetted.
    pub fn with_lookup(mut self, lookup: Lookup) -> Self {
        self.fetching.lookup = lookup;
        self
    }

    /// Who is told how far fetching has come.
    pub fn with_progress(mut self, progress: ProgressSink) -> Self {
        self.fetching.progress = progress;
        self
    }

    /// Which thread waits.
    pub fn with_blocking(mut self, blocking: Blocking) -> Self {
        self.blocking = blocking;
        self
    }

    /// Asks the source now, however fresh it is, and checks what is in the cache file by file. What
    /// was fetched before stays if this fails.
    pub fn refresh(&self) -> SourceFuture<'_, Result<SourceStatus, RemoteError>> {
        let (fetching, state) = (self.fetching.clone(), Arc::clone(&self.state));
        Box::pin(self.blocking.run(move || {
            let (record, tree) = fetching.refreshed()?;
            let status = record.status();
            lock(&state).replace(tree);
            Ok(status)
        }))
    }

    /// What is known of the source without asking it.
    pub fn status(&self) -> Option<SourceStatus> {
        self.fetching.cache.status(&self.fetching.location)
    }

    /// Does some work on the tree that is current.
    fn with_tree<T: Send + 'static>(
        &self,
        work: impl FnOnce(&OpenTree, Files) -> Result<T, ReadError> + Send + 'static,
    ) -> SourceFuture<'_, Result<T, ReadError>> {
        let (state, limits, trust) = (Arc::clone(&self.state), self.scan, self.info.trust);
        Box::pin(self.blocking.run(move || {
            let tree = lock(&state).tree();
            let tree = tree.ok_or(ReadError::Replaced)?;
            let root: Arc<Path> = tree.files.as_path().into();
            work(&tree, Files { root, limits, nested: Nested::default(), trust })
        }))
    }
}

fn lock(state: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Fetching {
    /// The source as it is now: from the cache while it is fresh, else from where it is. If that
    /// fails, what was fetched before stays, and its record says why.
    fn bring(&self) -> Result<(Record, OpenTree), RemoteError> {
        let is_enough = |record: &Record| {
            let (limits, now) = (&self.limits, now());
            record.is_fresh(&self.location, limits, now)
                || record.recent_failure(limits, now).is_some()
        };
        // Who has something to use does not wait long for another one.
        let patience = match self.usable()? {
            Some((record, tree)) if is_enough(&record) => return Ok((record, tree)),
            Some(_) => Duration::from_secs(self.limits.connect_seconds),
            None => self.limits.fetch_time(),
        };
        let turn = self.cache.one_at_a_time(&self.location, patience)?;
        let old = match self.usable()? {
            // Somebody else has just asked, or does so for long.
            Some((record, tree)) if turn.is_none() || is_enough(&record) => {
                return Ok((record, tree));
            }
            old => old,
        };
        match elsewhere(|| self.update(old, Check::Nothing)) {
            Ok(updated) => {
                // What is not needed any more can wait.
                let _ = self.cache.collect_garbage(self.limits.unused_time());
                Ok(updated)
            }
            Err(error) => match self.usable()? {
                None => Err(error),
                Some((mut record, tree)) => {
                    let (code, message) = (error.code().to_owned(), error.to_string());
                    record.failed = Some(Failure { at: now(), code, message });
                    self.cache.point(&self.location, &record)?;
                    Ok((record, tree))
                }
            },
        }
    }

    /// What is in the cache, if the limits allow it.
    fn usable(&self) -> Result<Option<(Record, OpenTree)>, RemoteError> {
        let old = self.cache.open(&self.location)?;
        if let Some((_, tree)) = &old {
            tree.manifest.check(&self.limits)?;
        }
        Ok(old)
    }

    /// The source, asked now.
    fn refreshed(&self) -> Result<(Record, OpenTree), RemoteError> {
        let _one = self.cache.one_at_a_time(&self.location, self.limits.fetch_time())?;
        let old = self.cache.open(&self.location)?;
        let updated = elsewhere(|| self.update(old, Check::Files))?;
        self.cache.collect_garbage(self.limits.unused_time())?;
        Ok(updated)
    }
}

/// Does some work in a thread of its own, where a runtime may be started whatever runs here.
fn elsewhere<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| match scope.spawn(work).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Content that is still the one that was fetched.
fn verified(tree: &OpenTree, path: &Path, bytes: Vec<u8>) -> Result<Vec<u8>, ReadError> {
    let shown = path.to_string_lossy();
    let Some(expected) = tree.manifest.digest_of(&shown) else {
        return Err(ReadError::NotFound { path: shown.into_owned() });
    };
    let actual = Digest::of(&bytes);
    match actual == expected {
        true => Ok(bytes),
        false => Err(ReadError::ContentChanged { expected, actual }),
    }
}

impl Source for RemoteSource {
    fn info(&self) -> &SourceInfo {
        &self.info
    }

    fn list(&self) -> SourceFuture<'_, Arc<SourceListing>> {
        let (fetching, state) = (self.fetching.clone(), Arc::clone(&self.state));
        let (scan, trust) = (self.scan, self.info.trust);
        Box::pin(self.blocking.run(move || {
            let brought = fetching.bring();
            lock(&state).list(&fetching.location, brought, scan, trust)
        }))
    }

    fn read<'a>(&'a self, skill: &'a FoundSkill) -> SourceFuture<'a, Result<Vec<u8>, ReadError>> {
        let path = skill.path();
        self.with_tree(move |tree, files| verified(tree, &path, files.read_skill(&path)?))
    }

    fn resources<'a>(
        &'a self,
        skill: &'a FoundSkill,
        scope: ResourceScope,
    ) -> SourceFuture<'a, Result<ResourceListing, ReadError>> {
        let place = Place::of(skill);
        self.with_tree(move |_, files| files.resources(&place, scope))
    }

    fn read_resource<'a>(
        &'a self,
        skill: &'a FoundSkill,
        path: &'a ResourcePath,
    ) -> SourceFuture<'a, Result<Vec<u8>, ReadError>> {
        let (place, path, whole) =
            (Place::of(skill), path.clone(), skill.folder.join(path.as_str()));
        self.with_tree(move |tree, files| {
            verified(tree, &whole, files.read_resource(&place, &path)?)
        })
    }

    fn stamp<'a>(&'a self, skill: &'a FoundSkill) -> SourceFuture<'a, Option<String>> {
        let place = Place::of(skill);
        let stamp = self.with_tree(move |_, files| Ok(files.stamp(&place)));
        Box::pin(async move { stamp.await.ok().flatten() })
    }
}
