//! Several backends as one.

use std::collections::BTreeMap;
use std::sync::Arc;

use prowess_workspace::{CollectedFile, Entries, Entry, Expected, WorkspacePath, Wrote};

use super::error::path_of;
use super::{
    Backend, BackendFuture, FileError, GlobQuery, Globbed, GrepQuery, Grepped, Shell, walk,
};

/// Several backends as one: each is responsible for what is below its prefix, the longest prefix
/// decides, and one backend has the rest. Commands are those of the latter.
///
/// ```
/// use prowess_toolkits::{CompositeBackend, MemoryBackend};
///
/// let backend = CompositeBackend::new(MemoryBackend::new())
///     .mount("/skills", MemoryBackend::new())?
///     .mount("/memories", MemoryBackend::new())?;
/// # let _ = backend;
/// # Ok::<(), prowess_toolkits::FileError>(())
/// ```
#[derive(Clone)]
pub struct CompositeBackend {
    rest: Arc<dyn Backend>,
    mounts: BTreeMap<WorkspacePath, Arc<dyn Backend>>,
}

impl CompositeBackend {
    /// All of this backend, until others are mounted.
    pub fn new(rest: impl Backend) -> Self {
        Self { rest: Arc::new(rest), mounts: BTreeMap::new() }
    }

    /// Makes a backend responsible for what is below a prefix. What others have there is hidden;
    /// what was mounted there is replaced. The root itself belongs to [`CompositeBackend::new`].
    pub fn mount(mut self, prefix: &str, backend: impl Backend) -> Result<Self, FileError> {
        let path = path_of(prefix)?;
        if path.as_str().is_empty() {
            let cause = format!("'{prefix}' is the root; a backend is mounted below it");
            return Err(FileError::InvalidPath { path: prefix.to_owned(), cause });
        }
        self.mounts.insert(path, Arc::new(backend));
        Ok(self)
    }

    /// The backend that is responsible for a path, its prefix, and the path below that.
    fn route(&self, path: &WorkspacePath) -> Route<'_> {
        // The longest of the prefixes of one path comes last.
        let mount = self
            .mounts
            .iter()
            .rev()
            .find_map(|(prefix, backend)| Some((prefix, backend, below(prefix, path)?)));
        match mount {
            Some((prefix, backend, inside)) => Route { prefix: Some(prefix), backend, inside },
            None => Route { prefix: None, backend: &self.rest, inside: path.clone() },
        }
    }

    /// The names in a folder that lead to what is mounted below it.
    fn mounts_below(&self, folder: &WorkspacePath) -> impl Iterator<Item = String> {
        self.mounts
            .keys()
            .filter_map(move |prefix| below(folder, prefix)?.names().next().map(str::to_owned))
    }

    /// A path that only leads to what is mounted is a folder.
    fn check_is_no_folder(&self, path: &WorkspacePath) -> Result<(), FileError> {
        match self.mounts_below(path).next() {
            Some(_) => Err(FileError::IsFolder { path: path.to_string() }),
            None => Ok(()),
        }
    }

    async fn entries(&self, folder: &WorkspacePath, most: u64) -> Result<Entries, FileError> {
        let mounted: BTreeMap<String, Entry> =
            self.mounts_below(folder).map(|name| (name.clone(), Entry::folder(name))).collect();
        let route = self.route(folder);
        let listed = match route.backend.list(&route.inside, most).await {
            Err(FileError::NotFound { .. }) if !mounted.is_empty() => Entries::default(),
            listed => listed.map_err(|error| route.outside(error))?,
        };
        let mut entries: Vec<Entry> = mounted.values().cloned().collect();
        let others = listed.entries.into_iter();
        entries.extend(others.filter(|entry| !mounted.contains_key(&entry.name)));
        let mut entries = Entries::first(entries, most);
        entries.omitted += listed.omitted;
        Ok(entries)
    }
}

struct Route<'a> {
    prefix: Option<&'a WorkspacePath>,
    backend: &'a Arc<dyn Backend>,
    inside: WorkspacePath,
}

impl Route<'_> {
    /// An error as it is seen from outside.
    fn outside(&self, error: FileError) -> FileError {
        match self.prefix {
            Some(prefix) => error.below(prefix),
            None => error,
        }
    }

    /// A path as it is seen from outside.
    fn path(&self, inside: &WorkspacePath) -> WorkspacePath {
        self.prefix.map_or_else(|| inside.clone(), |prefix| prefix.join(inside))
    }
}

/// A path below a folder, or the folder itself; `None` if it is elsewhere.
fn below(folder: &WorkspacePath, path: &WorkspacePath) -> Option<WorkspacePath> {
    let rest = path.as_str().strip_prefix(folder.as_str())?;
    let is_below = folder.as_str().is_empty() || rest.is_empty() || rest.starts_with('/');
    WorkspacePath::parse(rest.trim_start_matches('/')).ok().filter(|_| is_below)
}

impl std::fmt::Debug for CompositeBackend {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mounts: Vec<&str> = self.mounts.keys().map(WorkspacePath::as_str).collect();
        let mut shown = formatter.debug_struct("CompositeBackend");
        shown.field("mounts", &mounts).finish_non_exhaustive()
    }
}

impl Backend for CompositeBackend {
    fn list<'a>(&'a self, folder: &'a WorkspacePath, most: u64) -> BackendFuture<'a, Entries> {
        Box::pin(self.entries(folder, most))
    }

    fn read<'a>(&'a self, file: &'a WorkspacePath, limit: u64) -> BackendFuture<'a, CollectedFile> {
        Box::pin(async move {
            self.check_is_no_folder(file)?;
            let route = self.route(file);
            let read = route.backend.read(&route.inside, limit).await;
            let mut found = read.map_err(|error| route.outside(error))?;
            if let Some(prefix) = route.prefix {
                found.name = format!("{prefix}/{}", found.name);
            }
            Ok(found)
        })
    }

    fn write<'a>(
        &'a self,
        file: &'a WorkspacePath,
        bytes: &'a [u8],
        expected: Expected<'a>,
    ) -> BackendFuture<'a, Wrote> {
        Box::pin(async move {
            self.check_is_no_folder(file)?;
            let route = self.route(file);
            let wrote = route.backend.write(&route.inside, bytes, expected).await;
            wrote.map_err(|error| route.outside(error))
        })
    }

    fn glob<'a>(&'a self, query: &'a GlobQuery) -> BackendFuture<'a, Globbed> {
        Box::pin(async move {
            if self.mounts_below(&query.folder).next().is_some() {
                return walk::glob(self, query).await;
            }
            let route = self.route(&query.folder);
            let inside = GlobQuery { folder: route.inside.clone(), ..query.clone() };
            let found = route.backend.glob(&inside).await;
            let mut found = found.map_err(|error| route.outside(error))?;
            for path in &mut found.files {
                *path = route.path(path);
            }
            Ok(found)
        })
    }

    fn grep<'a>(&'a self, query: &'a GrepQuery) -> BackendFuture<'a, Grepped> {
        Box::pin(async move {
            if self.mounts_below(&query.folder).next().is_some() {
                return walk::grep(self, query).await;
            }
            let route = self.route(&query.folder);
            let inside = GrepQuery { folder: route.inside.clone(), ..query.clone() };
            let found = route.backend.grep(&inside).await;
            let mut found = found.map_err(|error| route.outside(error))?;
            for file in &mut found.files {
                file.path = route.path(&file.path);
            }
            Ok(found)
        })
    }

    fn shell(&self) -> Option<&dyn Shell> {
        self.rest.shell()
    }
}
