//! Skills that a program holds.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::{Source, SourceFuture, SourceInfo};
use crate::beneath::ResourcePath;
use crate::contents::{ContentFile, SkillContents};
use crate::error::ReadError;
use crate::found::{FoundSkill, SkillText, SourceListing};
use crate::limits::ScanLimits;
use crate::resource::{LeftOut, LeftOutReason, Resource, ResourceListing, ResourceScope};
use crate::scan::FILE_NAMES;
use crate::skill::CatalogSkill;

/// A file in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryFile {
    bytes: Vec<u8>,
    executable: bool,
}

impl MemoryFile {
    /// A file that is read.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), executable: false }
    }

    /// A file that may be run.
    pub fn executable(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), executable: true }
    }
}

/// Skills in memory: for tests, for programs that bring their own, for other backends.
///
/// ```
/// use prowess_catalog::MemorySource;
///
/// let source = MemorySource::new("built-in")
///     .with_skill("hello", "---\nname: hello\ndescription: Says hello.\n---\nSay hello.\n");
/// # let _ = source;
/// ```
#[derive(Clone, Debug)]
pub struct MemorySource {
    info: SourceInfo,
    /// Files of each skill, by folder and path.
    folders: BTreeMap<String, BTreeMap<String, MemoryFile>>,
    listing: Arc<SourceListing>,
}

impl MemorySource {
    /// An empty, trusted source.
    pub fn new(label: impl Into<String>) -> Self {
        let label = label.into();
        let info = SourceInfo::new(label.clone(), format!("memory:{label}"));
        Self { info, folders: BTreeMap::new(), listing: Arc::default() }
    }

    /// Changes what it is called or how far it is believed.
    pub fn with_info(mut self, info: SourceInfo) -> Self {
        self.info = info;
        self
    }

    /// Adds a skill in a folder of its own.
    pub fn with_skill(self, folder: impl Into<String>, text: impl Into<Vec<u8>>) -> Self {
        let folder = folder.into();
        self.with_file(folder, "SKILL.md", MemoryFile::new(text))
    }

    /// Adds a file to the folder of a skill.
    pub fn with_file(
        mut self,
        folder: impl Into<String>,
        path: impl Into<String>,
        file: MemoryFile,
    ) -> Self {
        self.folders.entry(folder.into()).or_default().insert(path.into(), file);
        self.listing = Arc::new(self.make_listing());
        self
    }

    /// Adds a skill with all its files, in the place of one in the same folder.
    pub fn with_contents(mut self, folder: impl Into<String>, contents: &SkillContents) -> Self {
        let file = |file: &ContentFile| {
            let own = MemoryFile { bytes: file.bytes.clone(), executable: file.executable };
            (file.path.as_str().to_owned(), own)
        };
        self.folders.insert(folder.into(), contents.files.iter().map(file).collect());
        self.listing = Arc::new(self.make_listing());
        self
    }

    /// The first skill, outside of any catalog; `None` if no text is one.
    pub fn into_skill(self) -> Option<CatalogSkill> {
        let found = Arc::clone(self.listing.skills.first()?);
        Some(CatalogSkill::new(Arc::new(self), found))
    }

    fn make_listing(&self) -> SourceListing {
        let mut listing = SourceListing::default();
        for (folder, files) in &self.folders {
            let Some((name, file)) = FILE_NAMES.iter().find_map(|n| Some((*n, files.get(*n)?)))
            else {
                continue;
            };
            let path = format!("{}/{folder}/{name}", self.info.location);
            let text = SkillText {
                folder: Path::new(folder),
                file: name,
                path: &path,
                bytes: &file.bytes,
                executable: file.executable,
            };
            listing.add(&text, &ScanLimits::default());
        }
        listing
    }

    fn files(&self, skill: &FoundSkill) -> Option<&BTreeMap<String, MemoryFile>> {
        self.folders.get(skill.folder.to_str()?)
    }

    fn file(&self, skill: &FoundSkill, path: &str) -> Result<Vec<u8>, ReadError> {
        let file = self.files(skill).and_then(|files| files.get(path));
        let file = file.ok_or_else(|| ReadError::NotFound { path: path.to_owned() })?;
        Ok(file.bytes.clone())
    }
}

impl Source for MemorySource {
    fn info(&self) -> &SourceInfo {
        &self.info
    }

    fn list(&self) -> SourceFuture<'_, Arc<SourceListing>> {
        Box::pin(std::future::ready(Arc::clone(&self.listing)))
    }

    fn read<'a>(&'a self, skill: &'a FoundSkill) -> SourceFuture<'a, Result<Vec<u8>, ReadError>> {
        Box::pin(std::future::ready(self.file(skill, skill.file)))
    }

    fn resources<'a>(
        &'a self,
        skill: &'a FoundSkill,
        scope: ResourceScope,
    ) -> SourceFuture<'a, Result<ResourceListing, ReadError>> {
        let invalid = |path: &&String| ResourcePath::parse(path).is_err();
        let left_out = (self.files(skill).into_iter())
            .flat_map(BTreeMap::keys)
            .filter(invalid)
            .map(|path| LeftOut::new(path, LeftOutReason::Name))
            .collect();
        let resources = self
            .files(skill)
            .into_iter()
            .flatten()
            .filter(|(path, _)| path.as_str() != skill.file && scope.holds(path))
            .filter_map(|(path, file)| {
                let path = ResourcePath::parse(path).ok()?;
                let mut resource = Resource::new(path, file.bytes.len() as u64);
                resource.executable = file.executable;
                Some(resource)
            })
            .collect();
        let listing = ResourceListing { resources, left_out };
        Box::pin(std::future::ready(Ok(listing)))
    }

    fn read_resource<'a>(
        &'a self,
        skill: &'a FoundSkill,
        path: &'a ResourcePath,
    ) -> SourceFuture<'a, Result<Vec<u8>, ReadError>> {
        Box::pin(std::future::ready(self.file(skill, path.as_str())))
    }
}
