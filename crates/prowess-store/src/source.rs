//! A registry of versions as a source of skills.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use prowess_catalog::{
    CatalogSkill, FoundSkill, Gates, MemorySource, ReadError, Resource, ResourceListing,
    ResourcePath, ResourceScope, ScanLimits, SkillContents, SkillText, Source, SourceFuture,
    SourceInfo, SourceListing, TreeDigest,
};
use prowess_format::{Diagnostic, Digest};

use crate::registry::Registry;
use crate::version::{SKILL_FILE, SkillId, Version, VersionError};

/// The active versions of a registry, as a source of skills.
///
/// A skill whose text cannot be read is left out with a finding, and the others are there; the
/// registry counts it among those that are broken. While the store is away, what was listed last
/// stays.
///
/// A skill that a catalog was told of is read while it is the active version. A session that has
/// loaded an earlier one goes on with its files ([`Source::earlier`]).
pub struct VersionSource {
    info: SourceInfo,
    registry: Arc<Registry>,
    limits: ScanLimits,
    listed: Mutex<Listed>,
}

/// What was listed last.
#[derive(Default)]
struct Listed {
    generation: Option<u64>,
    listing: Arc<SourceListing>,
    /// What each text came to, so that only new ones are read.
    known: HashMap<(SkillId, Digest), Known>,
}

#[derive(Clone)]
struct Known {
    skill: Option<Arc<FoundSkill>>,
    diagnostics: Vec<Diagnostic>,
}

impl std::fmt::Debug for VersionSource {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("VersionSource").field("info", &self.info).finish_non_exhaustive()
    }
}

impl VersionSource {
    /// A trusted source with this label. Whoever may publish does not run the host: its skills gate
    /// the tools that they bring, and no tool of the host.
    pub fn new(label: impl Into<String>, registry: Arc<Registry>) -> Self {
        Self {
            info: info(label),
            registry,
            limits: ScanLimits::default(),
            listed: Mutex::default(),
        }
    }

    /// A skill of this id with these files as such a source has it, whether it is stored or not;
    /// `None` if its text is none of a skill.
    pub fn skill_of(id: &SkillId, contents: &SkillContents) -> Option<CatalogSkill> {
        let source = MemorySource::new("registry").with_info(info("registry"));
        source.with_contents(id.as_str(), contents).into_skill()
    }

    /// Changes what it is called or how far it is believed.
    pub fn with_info(mut self, info: SourceInfo) -> Self {
        self.info = info;
        self
    }

    async fn look(&self) -> Result<Arc<SourceListing>, VersionError> {
        self.registry.refresh().await?;
        let generation = self.registry.generation();
        let mut known = {
            let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
            if listed.generation == Some(generation) {
                return Ok(Arc::clone(&listed.listing));
            }
            listed.known.clone()
        };
        let mut listing = SourceListing::default();
        let mut next = HashMap::new();
        for shelved in self.registry.all() {
            let text = (shelved.skill.id.clone(), shelved.skill.active.digest);
            let read = match known.remove(&text) {
                Some(about) => Ok(about),
                None => self.read_text(&shelved.skill.active, shelved.skill.id.as_str()).await,
            };
            let about = match read {
                Ok(about) => about,
                Err(error @ VersionError::Unavailable(_)) => return Err(error),
                Err(error) => {
                    listing.add_unreadable(&path_of(shelved.skill.id.as_str()), &error);
                    self.registry.report(&shelved, Some(error.to_string()));
                    continue;
                }
            };
            self.registry.report(&shelved, None);
            listing.skills.extend(about.skill.clone());
            listing.diagnostics.extend(about.diagnostics.iter().cloned());
            next.insert(text, about);
        }
        let listing = Arc::new(listing);
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        *listed =
            Listed { generation: Some(generation), listing: Arc::clone(&listing), known: next };
        Ok(listing)
    }

    async fn read_text(&self, version: &Version, folder: &str) -> Result<Known, VersionError> {
        let bytes = self.registry.store().file(&version.skill, &version.digest).await?;
        let path = path_of(folder);
        let file = version.files.iter().find(|file| file.path == SKILL_FILE);
        let mut one = SourceListing::default();
        let text = SkillText {
            folder: Path::new(folder),
            file: SKILL_FILE,
            path: &path,
            bytes: &bytes,
            executable: file.is_some_and(|file| file.executable),
        };
        one.add(&text, &self.limits);
        Ok(Known { skill: one.skills.into_iter().next(), diagnostics: one.diagnostics })
    }

    /// The version that a skill is of: the active one, unless its folder names another.
    async fn version(&self, skill: &FoundSkill) -> Result<Version, ReadError> {
        let missing = || ReadError::NotFound { path: skill.path().display().to_string() };
        let folder = skill.folder.to_str().unwrap_or_default();
        let version = match folder.split_once('@') {
            None => self.registry.get(folder).ok_or_else(missing)?.skill.active.clone(),
            Some((id, number)) => {
                let (id, number) = (id.parse().ok(), number.parse().ok());
                let (Some(id), Some(number)) = (id, number) else { return Err(missing()) };
                let version = self.registry.store().version(&id, number).await;
                version.map_err(|error| unreadable(SKILL_FILE, error))?
            }
        };
        match version.digest == skill.digest {
            true => Ok(version),
            false => {
                Err(ReadError::ContentChanged { expected: skill.digest, actual: version.digest })
            }
        }
    }

    async fn file(
        &self,
        version: &Version,
        path: &str,
        digest: &Digest,
    ) -> Result<Vec<u8>, ReadError> {
        let read = self.registry.store().file(&version.skill, digest).await;
        read.map_err(|error| unreadable(path, error))
    }
}

/// What a source of versions is called, and how far it is believed.
fn info(label: impl Into<String>) -> SourceInfo {
    SourceInfo::new(label, "registry:").with_gates(Gates::OwnTools)
}

/// Where the text of a skill is, for people.
fn path_of(folder: &str) -> String {
    format!("registry:{folder}/{SKILL_FILE}")
}

fn unreadable(path: &str, error: VersionError) -> ReadError {
    ReadError::Io { path: path.to_owned(), cause: std::io::Error::other(error) }
}

impl Source for VersionSource {
    fn info(&self) -> &SourceInfo {
        &self.info
    }

    fn list(&self) -> SourceFuture<'_, Arc<SourceListing>> {
        Box::pin(async {
            match self.look().await {
                Ok(listing) => listing,
                Err(error) => {
                    // What was there last stays, with a finding.
                    let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
                    let mut listing = SourceListing::clone(&listed.listing);
                    listing.add_unreadable(&self.info.location, &error);
                    Arc::new(listing)
                }
            }
        })
    }

    fn read<'a>(&'a self, skill: &'a FoundSkill) -> SourceFuture<'a, Result<Vec<u8>, ReadError>> {
        Box::pin(async move {
            let version = self.version(skill).await?;
            self.file(&version, SKILL_FILE, &version.digest).await
        })
    }

    fn resources<'a>(
        &'a self,
        skill: &'a FoundSkill,
        scope: ResourceScope,
    ) -> SourceFuture<'a, Result<ResourceListing, ReadError>> {
        Box::pin(async move {
            let version = self.version(skill).await?;
            let mut listing = ResourceListing::default();
            for file in version.files.iter() {
                if file.path == SKILL_FILE || !scope.holds(&file.path) {
                    continue;
                }
                let invalid = |cause| ReadError::InvalidPath { path: file.path.clone(), cause };
                let path = ResourcePath::parse(&file.path).map_err(invalid)?;
                let mut resource = Resource::new(path, file.bytes);
                resource.executable = file.executable;
                listing.resources.push(resource);
            }
            Ok(listing)
        })
    }

    fn read_resource<'a>(
        &'a self,
        skill: &'a FoundSkill,
        path: &'a ResourcePath,
    ) -> SourceFuture<'a, Result<Vec<u8>, ReadError>> {
        Box::pin(async move {
            let version = self.version(skill).await?;
            let missing = || ReadError::NotFound { path: path.as_str().to_owned() };
            let file = version.file(path).ok_or_else(missing)?;
            self.file(&version, path.as_str(), &file.digest).await
        })
    }

    fn earlier<'a>(
        &'a self,
        skill: &'a FoundSkill,
        tree_digest: TreeDigest,
    ) -> SourceFuture<'a, Option<Arc<FoundSkill>>> {
        Box::pin(async move {
            let id = skill.folder.to_str()?.split('@').next()?.parse().ok()?;
            let found = self.registry.store().version_with(&id, tree_digest).await;
            let version = found.ok().flatten()?;
            let folder = format!("{id}@{}", version.number);
            self.read_text(&version, &folder).await.ok()?.skill
        })
    }

    /// Versions never change.
    fn stamp<'a>(&'a self, skill: &'a FoundSkill) -> SourceFuture<'a, Option<String>> {
        Box::pin(async move {
            let version = self.version(skill).await.ok()?;
            Some(version.tree_digest.to_string())
        })
    }
}
