//! Where skills come from.

mod directory;
mod files;
mod memory;
mod pair;
#[cfg(feature = "remote")]
mod remote;
mod unusable;

pub use directory::{Blocking, DirectorySource};
pub(crate) use files::Files;
#[cfg(feature = "archive")]
pub(crate) use files::Place;
pub use memory::{MemoryFile, MemorySource};
pub use pair::{PairEntry, PairError, PairSkill, PairSource, SkillPair};
#[cfg(feature = "remote")]
pub use remote::{
    AddressRefused, InvalidLocation, InvalidReach, Location, Lookup, Progress, ProgressSink, Reach,
    RemoteCache, RemoteError, RemoteSource, SourceStatus, Stage,
};

pub use unusable::UnusableSource;

use std::pin::Pin;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::beneath::ResourcePath;
use crate::contents::{Gathering, SkillContents};
use crate::error::ReadError;
use crate::found::{FoundSkill, SourceListing};
use crate::resource::{Resource, ResourceListing, ResourceScope};
use crate::tree_digest::TreeDigest;

/// A future that a source returns.
pub type SourceFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Whether what a source yields is believed.
///
/// Trust governs shadowing, commands embedded in skill text, and unsandboxed runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// Anybody may have written it.
    Untrusted,
    /// The user or the project put it there.
    Trusted,
}

/// Which tools wait for a skill that declares them, as far as its source is trusted at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gates {
    /// All of them, tools of the host too: whoever runs the host put the skill there.
    #[default]
    AllTools,
    /// Those that it brings itself. A tool of the host it neither shuts nor opens.
    OwnTools,
}

impl Gates {
    /// Whether it is what goes without saying.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What a source is called and how far it is believed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SourceInfo {
    /// The name that people see, such as `Claude`.
    pub label: String,
    /// Where it is: a path or a URL.
    pub location: String,
    /// How far it is believed.
    pub trust: Trust,
    /// Which tools wait for its skills.
    pub gates: Gates,
}

impl SourceInfo {
    /// A trusted source.
    pub fn new(label: impl Into<String>, location: impl Into<String>) -> Self {
        let (label, location) = (label.into(), location.into());
        Self { label, location, trust: Trust::Trusted, gates: Gates::default() }
    }

    /// Sets how far it is believed.
    pub fn with_trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// Sets which tools wait for its skills.
    pub fn with_gates(mut self, gates: Gates) -> Self {
        self.gates = gates;
        self
    }
}

/// All of a skill, as it was at one moment.
#[derive(Debug)]
#[non_exhaustive]
pub struct WholeSkill {
    /// Its text.
    pub text: Vec<u8>,
    /// Its other files, if they can be listed.
    pub files: Result<SkillFiles, ReadError>,
}

/// The files of a skill besides its text, and what identifies the whole.
#[derive(Debug)]
#[non_exhaustive]
pub struct SkillFiles {
    /// All of them, however deep.
    pub listing: ResourceListing,
    /// What identifies the whole, if all of it can be counted.
    pub tree_digest: Result<TreeDigest, ReadError>,
}

/// A place that holds skills.
///
/// A source fails in parts: what is broken becomes a diagnostic in the listing, and everything
/// else is there.
pub trait Source: Send + Sync + 'static {
    /// What it is called and how far it is believed.
    fn info(&self) -> &SourceInfo;

    /// What it holds now. If nothing has changed since the last call, this is the same `Arc`.
    fn list(&self) -> SourceFuture<'_, Arc<SourceListing>>;

    /// The text of a skill. The caller compares its digest.
    fn read<'a>(&'a self, skill: &'a FoundSkill) -> SourceFuture<'a, Result<Vec<u8>, ReadError>>;

    /// The resources of a skill.
    fn resources<'a>(
        &'a self,
        skill: &'a FoundSkill,
        scope: ResourceScope,
    ) -> SourceFuture<'a, Result<ResourceListing, ReadError>>;

    /// The bytes of a resource.
    fn read_resource<'a>(
        &'a self,
        skill: &'a FoundSkill,
        path: &'a ResourcePath,
    ) -> SourceFuture<'a, Result<Vec<u8>, ReadError>>;

    /// All of a skill at once: its text, its files, and what identifies the whole.
    fn whole<'a>(
        &'a self,
        skill: &'a FoundSkill,
    ) -> SourceFuture<'a, Result<WholeSkill, ReadError>> {
        Box::pin(async move {
            let text = self.read(skill).await?;
            let files = match self.resources(skill, ResourceScope::Recursive).await {
                Ok(listing) => {
                    let tree_digest = TreeDigest::of_source(self, skill, &text, &listing).await;
                    Ok(SkillFiles { listing, tree_digest })
                }
                Err(error) => Err(error),
            };
            Ok(WholeSkill { text, files })
        })
    }

    /// All of a skill in memory, if all its files together have at most so many bytes.
    fn contents<'a>(
        &'a self,
        skill: &'a FoundSkill,
        limit: u64,
    ) -> SourceFuture<'a, Result<SkillContents, ReadError>> {
        Box::pin(async move {
            let text = self.read(skill).await?;
            let listing = self.resources(skill, ResourceScope::Recursive).await?;
            let own = (skill.file, skill.executable);
            let mut gathering = Gathering::new(own, text, &listing, limit)?;
            for Resource { path, executable, .. } in listing.resources {
                let bytes = self.read_resource(skill, &path).await?;
                gathering.add(path, executable, bytes)?;
            }
            Ok(gathering.finish())
        })
    }

    /// A skill as it was when all its files together had this digest, if the source keeps what it
    /// had.
    fn earlier<'a>(
        &'a self,
        _skill: &'a FoundSkill,
        _tree_digest: TreeDigest,
    ) -> SourceFuture<'a, Option<Arc<FoundSkill>>> {
        Box::pin(std::future::ready(None))
    }

    /// What the files of a skill look like from outside: as long as this stays the same, so do
    /// they. `None` if nobody can tell without reading them.
    fn stamp<'a>(&'a self, _skill: &'a FoundSkill) -> SourceFuture<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }

    /// The folder on this machine that a change of it can be watched in, if there is one.
    fn watched_folder(&self) -> Option<&std::path::Path> {
        None
    }
}

/// For whom a catalog is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Scope {
    /// The user.
    pub user: Option<String>,
    /// The session.
    pub session: Option<String>,
    /// The agent.
    pub agent: Option<String>,
}

impl Scope {
    /// Nobody in particular.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the user.
    pub fn with_user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Sets the session.
    pub fn with_session(mut self, session: impl Into<String>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// Sets the agent.
    pub fn with_agent(mut self, agent: impl Into<String>) -> Self {
        self.agent = Some(agent.into());
        self
    }
}

/// Makes sources for a user, a session and an agent.
pub trait SourceFactory: Send + Sync + 'static {
    /// The sources, lowest precedence first.
    fn sources(&self, scope: &Scope) -> Vec<Arc<dyn Source>>;
}

impl<F> SourceFactory for F
where
    F: Fn(&Scope) -> Vec<Arc<dyn Source>> + Send + Sync + 'static,
{
    fn sources(&self, scope: &Scope) -> Vec<Arc<dyn Source>> {
        self(scope)
    }
}
