//! Skills of whoever can list them and hand them out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use prowess_format::{Code, Diagnostic};

use super::files::{Files, Place};
use super::{Blocking, Source, SourceFuture, SourceInfo, Trust};
use crate::beneath::ResourcePath;
use crate::error::ReadError;
use crate::found::{FoundSkill, SkillText, SourceListing};
use crate::limits::ScanLimits;
use crate::resource::{ResourceListing, ResourceScope};
use crate::scan::{FILE_NAMES, Nested, finding};

/// Why a pair could not answer: whatever its own errors are.
pub type PairError = Box<dyn std::error::Error + Send + Sync>;

/// What a source of one's own needs to be able to do: list skills, and get one.
///
/// [`PairSource`] makes a [`Source`] of it; two functions are enough for one, see
/// [`PairSource::from_fns`].
pub trait SkillPair: Send + Sync + 'static {
    /// The skills that there are, in any order.
    fn list(&self) -> SourceFuture<'_, Result<Vec<PairEntry>, PairError>>;

    /// The skill of this name, out of those that were listed.
    fn get<'a>(&'a self, name: &'a str) -> SourceFuture<'a, Result<PairSkill, PairError>>;
}

/// A skill that a pair lists.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct PairEntry {
    /// What it is called, for [`SkillPair::get`].
    pub name: String,
    /// What changes with it. As long as this is the same, the skill is not asked for again; if it
    /// is none, the skill is asked for at every refresh.
    pub version: Option<String>,
}

impl PairEntry {
    /// Sets what changes with the skill.
    pub fn with_version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }
}

impl<N: Into<String>> From<N> for PairEntry {
    fn from(name: N) -> Self {
        Self { name: name.into(), version: None }
    }
}

/// A skill that a pair hands out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PairSkill {
    /// The whole `SKILL.md`, with its frontmatter.
    pub text: Vec<u8>,
    /// The folder on this machine that holds its other files, if there is one.
    pub base_directory: Option<PathBuf>,
}

impl PairSkill {
    /// Sets the folder that holds its other files.
    pub fn with_base_directory(mut self, folder: impl Into<PathBuf>) -> Self {
        self.base_directory = Some(folder.into());
        self
    }
}

impl<T: Into<Vec<u8>>> From<T> for PairSkill {
    fn from(text: T) -> Self {
        Self { text: text.into(), base_directory: None }
    }
}

/// The skills of a [`SkillPair`]: a table of a database, a service, whatever can list and get.
///
/// A skill that cannot be got is a finding, and the others are there. If nothing can be listed, the
/// skills that were listed before stay, with a finding that says so.
///
/// ```
/// use prowess_catalog::{Catalog, PairError, PairSource};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let source = PairSource::from_fns(
///     "database",
///     || async { Ok::<_, PairError>(vec!["greet"]) },
///     |name| async move {
///         Ok::<_, PairError>(format!("---\nname: {name}\ndescription: Greets.\n---\nSay hello.\n"))
///     },
/// );
/// let snapshot = Catalog::builder().source(source).build().refresh().await;
/// assert_eq!(snapshot.get("greet").unwrap().found().description(), "Greets.");
/// # });
/// ```
pub struct PairSource {
    info: SourceInfo,
    pair: Box<dyn SkillPair>,
    limits: ScanLimits,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What is known of each skill, by the name in the pair's list.
    known: BTreeMap<String, Arc<Known>>,
    last: Arc<SourceListing>,
    /// Whether the pair could ever be listed.
    was_listed: bool,
}

struct Known {
    version: Option<String>,
    /// The skill if it can be used, and what there is to say about it.
    listing: SourceListing,
    base: Option<PathBuf>,
}

impl PairSource {
    /// The skills of a pair, trusted: whoever puts it into a catalog knows what it holds.
    pub fn new(label: impl Into<String>, pair: impl SkillPair) -> Self {
        let label = label.into();
        let info = SourceInfo::new(label.clone(), format!("pair:{label}"));
        Self { info, pair: Box::new(pair), limits: ScanLimits::default(), state: Mutex::default() }
    }

    /// The skills that two functions list and get.
    pub fn from_fns<List, Listing, Entry, ListError, Get, Getting, Skill, GetError>(
        label: impl Into<String>,
        list: List,
        get: Get,
    ) -> Self
    where
        List: Fn() -> Listing + Send + Sync + 'static,
        Listing: Future<Output = Result<Vec<Entry>, ListError>> + Send + 'static,
        Entry: Into<PairEntry>,
        ListError: Into<PairError>,
        Get: Fn(String) -> Getting + Send + Sync + 'static,
        Getting: Future<Output = Result<Skill, GetError>> + Send + 'static,
        Skill: Into<PairSkill>,
        GetError: Into<PairError>,
    {
        Self::new(label, Functions { list, get })
    }

    /// How far it is believed.
    pub fn with_trust(mut self, trust: Trust) -> Self {
        self.info.trust = trust;
        self
    }

    /// Where it is, as people see it.
    pub fn with_location(mut self, location: impl Into<String>) -> Self {
        self.info.location = location.into();
        self
    }

    /// Other limits than the default ones: `folders` of skills, `file_bytes` of a text, and those
    /// of resources.
    pub fn with_limits(mut self, limits: ScanLimits) -> Self {
        self.limits = limits;
        self
    }

    async fn look(&self) -> Arc<SourceListing> {
        let location = &self.info.location;
        let mut entries = match self.pair.list().await {
            Ok(entries) => entries,
            Err(error) => return self.not_listed(&*error),
        };
        entries.sort_unstable();
        let before = self.state().known.clone();
        let mut known: BTreeMap<String, Arc<Known>> = BTreeMap::new();
        let mut notes = Vec::new();
        let mut note = |code, message| notes.push(finding(code, Path::new(location), message));
        for entry in entries {
            let name = entry.name.clone();
            if ResourcePath::parse(&name).is_err() {
                note(Code::IndexEntry, format!("{name:?} cannot be the name of a folder"));
            } else if known.contains_key(&name) {
                note(Code::IndexEntry, format!("'{name}' is listed twice"));
            } else if known.len() >= self.limits.folders {
                let limit = self.limits.folders;
                note(Code::ScanLimit, format!("Only `scan.folders` = {limit} skills are taken"));
                break;
            } else {
                let is_same =
                    |it: &&Arc<Known>| it.version.is_some() && it.version == entry.version;
                let skill = match before.get(&name).filter(is_same) {
                    Some(before) => Arc::clone(before),
                    None => Arc::new(self.get(entry).await),
                };
                known.insert(name, skill);
            }
        }
        let mut listing = SourceListing::default();
        for skill in known.values() {
            listing.skills.extend(skill.listing.skills.iter().cloned());
            listing.diagnostics.extend(skill.listing.diagnostics.iter().cloned());
        }
        listing.diagnostics.extend(notes);
        let mut state = self.state();
        (state.known, state.was_listed) = (known, true);
        state.publish(listing)
    }

    async fn get(&self, entry: PairEntry) -> Known {
        let PairEntry { name, version } = entry;
        let mut listing = SourceListing::default();
        match self.pair.get(&name).await {
            Ok(PairSkill { text, base_directory }) => {
                // Relative to the folder of this process, as it is now.
                let base = base_directory.and_then(|base| std::path::absolute(base).ok());
                let folder = base.as_deref().unwrap_or(Path::new(&name));
                let path = Path::new(&self.info.location).join(folder).join(FILE_NAMES[0]);
                let text = SkillText {
                    folder,
                    file: FILE_NAMES[0],
                    path: &path.display().to_string(),
                    bytes: &text,
                    executable: false,
                };
                listing.add(&text, &self.limits);
                Known { version, listing, base }
            }
            Err(error) => {
                let path = format!("{}/{name}/{}", self.info.location, FILE_NAMES[0]);
                listing.add_unreadable(&path, &error);
                // Whatever the version says, it is asked for again.
                Known { version: None, listing, base: None }
            }
        }
    }

    fn not_listed(&self, error: &dyn std::error::Error) -> Arc<SourceListing> {
        let location = Path::new(&self.info.location);
        let mut state = self.state();
        let mut listing = SourceListing::default();
        if state.was_listed {
            for skill in state.known.values() {
                listing.skills.extend(skill.listing.skills.iter().cloned());
                listing.diagnostics.extend(skill.listing.diagnostics.iter().cloned());
            }
            let message = format!("What was listed before is used: {error}");
            listing.diagnostics.push(finding(Code::SourceOffline, location, message));
        } else {
            let message = format!("The source cannot be used: {error}");
            let finding: Diagnostic = finding(Code::SourceUnavailable, location, message);
            listing.diagnostics.push(finding.with_help("refresh asks again"));
        }
        state.publish(listing)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a skill is called in the pair's list, and where its other files are.
    fn known(&self, skill: &FoundSkill) -> Result<(String, Option<PathBuf>), ReadError> {
        let state = self.state();
        let is_it = |known: &Known| {
            known
                .listing
                .skills
                .iter()
                .any(|it| (&it.folder, &it.name) == (&skill.folder, &skill.name))
        };
        let found = state.known.iter().find(|(_, known)| is_it(known));
        let (name, known) = found.ok_or(ReadError::Replaced)?;
        Ok((name.clone(), known.base.clone()))
    }

    fn files(&self, base: &Path) -> Files {
        let (limits, trust) = (self.limits, self.info.trust);
        Files { root: base.into(), limits, nested: Nested::default(), trust }
    }
}

impl State {
    fn publish(&mut self, listing: SourceListing) -> Arc<SourceListing> {
        if *self.last != listing {
            self.last = Arc::new(listing);
        }
        Arc::clone(&self.last)
    }
}

impl Source for PairSource {
    fn info(&self) -> &SourceInfo {
        &self.info
    }

    fn list(&self) -> SourceFuture<'_, Arc<SourceListing>> {
        Box::pin(self.look())
    }

    fn read<'a>(&'a self, skill: &'a FoundSkill) -> SourceFuture<'a, Result<Vec<u8>, ReadError>> {
        Box::pin(async move {
            let (name, _) = self.known(skill)?;
            let path = || skill.path().display().to_string();
            let got = self.pair.get(&name).await.map_err(|error| ReadError::Io {
                path: path(),
                cause: std::io::Error::other(error),
            })?;
            let limit = self.limits.file_bytes;
            match got.text.len() as u64 > limit {
                true => Err(ReadError::TooLarge { path: path(), limit }),
                false => Ok(got.text),
            }
        })
    }

    fn resources<'a>(
        &'a self,
        skill: &'a FoundSkill,
        scope: ResourceScope,
    ) -> SourceFuture<'a, Result<ResourceListing, ReadError>> {
        Box::pin(async move {
            let Some(base) = self.known(skill)?.1 else { return Ok(ResourceListing::default()) };
            let (files, place) = (self.files(&base), Place::without_text(skill.file));
            Blocking::Elsewhere.run(move || files.resources(&place, scope)).await
        })
    }

    fn read_resource<'a>(
        &'a self,
        skill: &'a FoundSkill,
        path: &'a ResourcePath,
    ) -> SourceFuture<'a, Result<Vec<u8>, ReadError>> {
        Box::pin(async move {
            if path.as_str() == skill.file {
                return self.read(skill).await;
            }
            let Some(base) = self.known(skill)?.1 else {
                return Err(ReadError::NotFound { path: path.to_string() });
            };
            let (files, path) = (self.files(&base), path.clone());
            let place = Place::without_text(skill.file);
            Blocking::Elsewhere.run(move || files.read_resource(&place, &path)).await
        })
    }
}

impl std::fmt::Debug for PairSource {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PairSource").field("info", &self.info).finish_non_exhaustive()
    }
}

/// A pair made of functions.
struct Functions<List, Get> {
    list: List,
    get: Get,
}

impl<List, Listing, Entry, ListError, Get, Getting, Skill, GetError> SkillPair
    for Functions<List, Get>
where
    List: Fn() -> Listing + Send + Sync + 'static,
    Listing: Future<Output = Result<Vec<Entry>, ListError>> + Send + 'static,
    Entry: Into<PairEntry>,
    ListError: Into<PairError>,
    Get: Fn(String) -> Getting + Send + Sync + 'static,
    Getting: Future<Output = Result<Skill, GetError>> + Send + 'static,
    Skill: Into<PairSkill>,
    GetError: Into<PairError>,
{
    fn list(&self) -> SourceFuture<'_, Result<Vec<PairEntry>, PairError>> {
        let listing = (self.list)();
        Box::pin(async move {
            let entries = listing.await.map_err(Into::into)?;
            Ok(entries.into_iter().map(Into::into).collect())
        })
    }

    fn get<'a>(&'a self, name: &'a str) -> SourceFuture<'a, Result<PairSkill, PairError>> {
        let getting = (self.get)(name.to_owned());
        Box::pin(async move { getting.await.map(Into::into).map_err(Into::into) })
    }
}
