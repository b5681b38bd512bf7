//! A skill and the source that it is in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use prowess_format::Digest;

use crate::beneath::ResourcePath;
use crate::error::ReadError;
use crate::found::FoundSkill;
use crate::resource::{Resource, ResourceListing, ResourceScope};
use crate::source::{Gates, Source, SourceInfo, Trust, WholeSkill};
use crate::tree_digest::TreeDigest;

/// A skill in a snapshot: what was found, and in which source.
#[derive(Clone)]
pub struct CatalogSkill {
    pub(crate) found: Arc<FoundSkill>,
    pub(crate) source: Arc<SourceEntry>,
    /// The skills of the same name that this one hides.
    pub(crate) shadows: Vec<CatalogSkill>,
    /// Whether its source holds another skill of the same name that comes before this one.
    pub(crate) is_second: bool,
    /// Its resources, where they are found together with the skills.
    pub(crate) resources: Option<Arc<ResourceListing>>,
}

/// A source in a snapshot.
pub struct SourceEntry {
    /// What `name@id` calls it: its label in small letters, made unique.
    pub id: String,
    pub(crate) source: Arc<dyn Source>,
}

impl SourceEntry {
    /// What it is called, where it is, and how far it is believed.
    pub fn info(&self) -> &SourceInfo {
        self.source.info()
    }
}

impl std::fmt::Debug for SourceEntry {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SourceEntry").field("id", &self.id).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for CatalogSkill {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("CatalogSkill")
            .field("name", &self.name())
            .field("source", &self.source.id)
            .finish_non_exhaustive()
    }
}

impl CatalogSkill {
    /// A skill that a source yields, outside of any catalog.
    pub(crate) fn new(source: Arc<dyn Source>, found: Arc<FoundSkill>) -> Self {
        let id = id_of(&source.info().label);
        let source = Arc::new(SourceEntry { id, source });
        Self { found, source, shadows: Vec::new(), is_second: false, resources: None }
    }

    /// What was found.
    pub fn found(&self) -> &Arc<FoundSkill> {
        &self.found
    }

    /// The name that identifies it.
    pub fn name(&self) -> &str {
        self.found.name.as_str()
    }

    /// The source that it is in.
    pub fn source(&self) -> &Arc<dyn Source> {
        &self.source.source
    }

    /// What `name@id` calls the source.
    pub fn source_id(&self) -> &str {
        &self.source.id
    }

    /// The skill as it was when all its files together had this digest, if its source keeps what it
    /// had.
    pub async fn earlier(&self, tree_digest: TreeDigest) -> Option<Self> {
        let found = self.source().earlier(&self.found, tree_digest).await?;
        let (source, is_second) = (Arc::clone(&self.source), self.is_second);
        Some(Self { found, source, shadows: Vec::new(), is_second, resources: None })
    }

    /// How far it is believed.
    pub fn trust(&self) -> Trust {
        self.source().info().trust
    }

    /// Which tools wait for it, if it is trusted.
    pub fn gates(&self) -> Gates {
        self.source().info().gates
    }

    /// The path of its `SKILL.md`, from the location of its source.
    pub fn path(&self) -> PathBuf {
        path_in(&**self.source(), &self.found)
    }

    /// The skills of the same name that this one hides.
    pub fn shadows(&self) -> &[CatalogSkill] {
        &self.shadows
    }

    /// Its resources: those that were found with it, else those that are there now. Where they
    /// could not be found with it, they are looked for again.
    pub async fn resources(&self, scope: ResourceScope) -> Result<ResourceListing, ReadError> {
        match &self.resources {
            Some(known) if scope == ResourceScope::default() => Ok(ResourceListing::clone(known)),
            _ => self.source().resources(&self.found, scope).await,
        }
    }

    /// Its docs: the `.md` and `.txt` files at any depth that can be put into a prompt, in the
    /// order of their paths, and everything that was left out on the way to them.
    pub async fn docs(&self) -> Result<ResourceListing, ReadError> {
        let mut listing = self.source().resources(&self.found, ResourceScope::Recursive).await?;
        listing.resources.retain(Resource::is_doc);
        Ok(listing)
    }

    /// The text, if it is still the one that was found.
    pub async fn read(&self) -> Result<Vec<u8>, ReadError> {
        let bytes = self.source().read(&self.found).await?;
        let actual = Digest::of(&bytes);
        match actual == self.found.digest {
            true => Ok(bytes),
            false => Err(ReadError::ContentChanged { expected: self.found.digest, actual }),
        }
    }

    /// All of the skill at once, if its text is still the one that was found.
    pub async fn whole(&self) -> Result<WholeSkill, ReadError> {
        let whole = self.source().whole(&self.found).await?;
        let actual = Digest::of(&whole.text);
        match actual == self.found.digest {
            true => Ok(whole),
            false => Err(ReadError::ContentChanged { expected: self.found.digest, actual }),
        }
    }

    /// The bytes of a resource.
    pub async fn read_resource(&self, path: &ResourcePath) -> Result<Vec<u8>, ReadError> {
        self.source().read_resource(&self.found, path).await
    }

    /// The name that leads to this skill and to no other: `name@source`, and `name@source/folder`
    /// where the source holds several of that name.
    pub fn qualified_name(&self) -> String {
        match self.is_second {
            false => format!("{}@{}", self.name(), self.source.id),
            true => format!("{}@{}/{}", self.name(), self.source.id, self.found.folder.display()),
        }
    }

    /// Whether a qualified name is that of this skill.
    pub(crate) fn answers_to(&self, qualified: &str) -> bool {
        let place = qualified.strip_prefix(self.name()).and_then(|rest| rest.strip_prefix('@'));
        let Some(rest) = place.and_then(|place| place.strip_prefix(self.source.id.as_str())) else {
            return false;
        };
        match rest.strip_prefix('/') {
            Some(folder) => Path::new(folder) == &*self.found.folder,
            None => rest.is_empty() && !self.is_second,
        }
    }
}

/// What `name@id` calls a source of this label, if no other is called so.
pub(crate) fn id_of(label: &str) -> String {
    label.to_lowercase().replace([' ', '@', '/'], "-")
}

/// The path of the `SKILL.md` of a skill in a source, from the location of the source.
pub(crate) fn path_in(source: &dyn Source, found: &FoundSkill) -> PathBuf {
    let location = &source.info().location;
    // A location is a text, which not every folder has for its path.
    let folder = source.watched_folder().filter(|folder| folder.to_string_lossy() == **location);
    folder.unwrap_or(Path::new(location)).join(found.path())
}
