//! A folder of skills, or the folder of one skill.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::files::{Files, Place};
use super::{Source, SourceFuture, SourceInfo, Trust, WholeSkill};
use crate::beneath::ResourcePath;
use crate::contents::SkillContents;
use crate::error::ReadError;
use crate::found::{FoundSkill, SourceListing};
use crate::labels::label_of;
use crate::limits::ScanLimits;
use crate::resource::{ResourceListing, ResourceScope};
use crate::scan::{Nested, Scanner};

/// A folder on this machine. It may hold skills, or be a skill itself.
///
/// ```no_run
/// use prowess_catalog::{DirectorySource, ScanLimits};
///
/// let source = DirectorySource::new("./skills").with_limits(ScanLimits::default().with_depth(1));
/// # let _ = source;
/// ```
#[derive(Debug)]
pub struct DirectorySource {
    info: SourceInfo,
    root: Arc<Path>,
    limits: ScanLimits,
    nested: Nested,
    blocking: Blocking,
    scanner: Arc<Mutex<Option<Scanner>>>,
}

impl DirectorySource {
    /// The skills in this folder, trusted, with the label that the path suggests.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let root: PathBuf = root.into();
        Self {
            info: SourceInfo::new(label_of(&root), root.display().to_string()),
            root: root.into(),
            limits: ScanLimits::default(),
            nested: Nested::default(),
            blocking: Blocking::default(),
            scanner: Arc::default(),
        }
    }

    /// Another label than the path suggests.
    pub fn with_label(mut self, label: impl Into<String>) -> Self {
        self.info.label = label.into();
        self
    }

    /// How far it is believed.
    pub fn with_trust(mut self, trust: Trust) -> Self {
        self.info.trust = trust;
        self
    }

    /// Other limits than the default ones.
    pub fn with_limits(mut self, limits: ScanLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Whether skills inside skills are found.
    pub fn with_nested(mut self, nested: Nested) -> Self {
        self.nested = nested;
        self
    }

    /// Which thread reads the disk.
    pub fn with_blocking(mut self, blocking: Blocking) -> Self {
        self.blocking = blocking;
        self
    }

    fn files(&self) -> Files {
        Files {
            root: Arc::clone(&self.root),
            limits: self.limits,
            nested: self.nested,
            trust: self.info.trust,
        }
    }
}

/// Which thread reads the disk.
///
/// A change of threads takes as long as reading several skills. Whoever knows the runtime can do
/// without it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Blocking {
    /// A thread where blocking is allowed. Right in every runtime.
    #[default]
    Elsewhere,
    /// The thread that asks. A runtime of several threads lets others take over its tasks; in a
    /// runtime of one thread everything else waits. Not for a `LocalSet`.
    Here,
}

impl Blocking {
    pub(super) async fn run<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        if self == Self::Here {
            return match tokio::runtime::Handle::current().runtime_flavor() {
                tokio::runtime::RuntimeFlavor::MultiThread => tokio::task::block_in_place(work),
                _ => work(),
            };
        }
        match tokio::task::spawn_blocking(work).await {
            Ok(result) => result,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime is shutting down; nobody waits for the result any more.
                Err(_) => std::future::pending().await,
            },
        }
    }
}

impl Source for DirectorySource {
    fn info(&self) -> &SourceInfo {
        &self.info
    }

    fn list(&self) -> SourceFuture<'_, Arc<SourceListing>> {
        let scanner = Arc::clone(&self.scanner);
        let (root, limits) = (Arc::clone(&self.root), self.limits);
        let (nested, trust) = (self.nested, self.info.trust);
        Box::pin(self.blocking.run(move || {
            let mut scanner = scanner.lock().unwrap_or_else(PoisonError::into_inner);
            let new = || Scanner::new(root.to_path_buf(), limits, nested, trust);
            scanner.get_or_insert_with(new).scan()
        }))
    }

    fn read<'a>(&'a self, skill: &'a FoundSkill) -> SourceFuture<'a, Result<Vec<u8>, ReadError>> {
        let (files, path) = (self.files(), skill.path());
        Box::pin(self.blocking.run(move || files.read_skill(&path)))
    }

    fn resources<'a>(
        &'a self,
        skill: &'a FoundSkill,
        scope: ResourceScope,
    ) -> SourceFuture<'a, Result<ResourceListing, ReadError>> {
        let (files, place) = (self.files(), Place::of(skill));
        Box::pin(self.blocking.run(move || files.resources(&place, scope)))
    }

    fn read_resource<'a>(
        &'a self,
        skill: &'a FoundSkill,
        path: &'a ResourcePath,
    ) -> SourceFuture<'a, Result<Vec<u8>, ReadError>> {
        let (files, place, path) = (self.files(), Place::of(skill), path.clone());
        Box::pin(self.blocking.run(move || files.read_resource(&place, &path)))
    }

    fn whole<'a>(
        &'a self,
        skill: &'a FoundSkill,
    ) -> SourceFuture<'a, Result<WholeSkill, ReadError>> {
        let (files, place) = (self.files(), Place::of(skill));
        Box::pin(self.blocking.run(move || files.whole(&place)))
    }

    fn contents<'a>(
        &'a self,
        skill: &'a FoundSkill,
        limit: u64,
    ) -> SourceFuture<'a, Result<SkillContents, ReadError>> {
        let (files, place) = (self.files(), Place::of(skill));
        Box::pin(self.blocking.run(move || files.all_contents(&place, limit)))
    }

    fn stamp<'a>(&'a self, skill: &'a FoundSkill) -> SourceFuture<'a, Option<String>> {
        let (files, place) = (self.files(), Place::of(skill));
        Box::pin(self.blocking.run(move || files.stamp(&place)))
    }

    fn watched_folder(&self) -> Option<&Path> {
        Some(&self.root)
    }
}
