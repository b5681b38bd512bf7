//! A folder of skills, or the folder of one skill.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::Dir;
use rustix::io::Errno;

use super::{Source, SourceFuture, SourceInfo, Trust};
use crate::beneath::{Folder, ResourcePath, Stamp};
use crate::error::ReadError;
use crate::found::{FoundSkill, SourceListing};
use crate::labels::label_of;
use crate::limits::ScanLimits;
use crate::read::read_limited;
use crate::resource::{LeftOut, Resource, ResourceKind, ResourceListing, ResourceScope};
use crate::scan::{Nested, SKIPPED_FOLDERS, Scanner};

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

    fn files(&self) -> Files {
        Files { root: Arc::clone(&self.root), limits: self.limits, trust: self.info.trust }
    }
}

/// Runs on a thread where blocking is allowed.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down; nobody waits for the result any more.
            Err(_) => std::future::pending().await,
        },
    }
}

impl Source for DirectorySource {
    fn info(&self) -> &SourceInfo {
        &self.info
    }

    fn list(&self) -> SourceFuture<'_, Arc<SourceListing>> {
        let scanner = Arc::clone(&self.scanner);
        let (root, limits, nested) = (Arc::clone(&self.root), self.limits, self.nested);
        Box::pin(blocking(move || {
            let mut scanner = scanner.lock().unwrap_or_else(PoisonError::into_inner);
            let new = || Scanner::new(root.to_path_buf(), limits, nested);
            scanner.get_or_insert_with(new).scan()
        }))
    }

    fn read<'a>(&'a self, skill: &'a FoundSkill) -> SourceFuture<'a, Result<Vec<u8>, ReadError>> {
        let (files, path) = (self.files(), skill.path());
        Box::pin(blocking(move || files.read_skill(&path)))
    }

    fn resources<'a>(
        &'a self,
        skill: &'a FoundSkill,
        scope: ResourceScope,
    ) -> SourceFuture<'a, Result<ResourceListing, ReadError>> {
        let (files, folder) = (self.files(), skill.folder.to_path_buf());
        Box::pin(blocking(move || files.resources(&folder, scope)))
    }

    fn read_resource<'a>(
        &'a self,
        skill: &'a FoundSkill,
        path: &'a ResourcePath,
    ) -> SourceFuture<'a, Result<Vec<u8>, ReadError>> {
        let (files, folder, path) = (self.files(), skill.folder.to_path_buf(), path.clone());
        Box::pin(blocking(move || files.read_resource(&folder, &path)))
    }

    fn watched_folder(&self) -> Option<&Path> {
        Some(&self.root)
    }
}

/// Reads files below a root.
struct Files {
    root: Arc<Path>,
    limits: ScanLimits,
    trust: Trust,
}

impl Files {
    fn read_skill(&self, path: &Path) -> Result<Vec<u8>, ReadError> {
        let shown = path.display().to_string();
        let opened = Folder::open(&self.root).and_then(|root| root.open_file(path));
        self.read(opened, &shown)
    }

    fn read_resource(&self, folder: &Path, path: &ResourcePath) -> Result<Vec<u8>, ReadError> {
        let opened = self.open_skill_folder(folder).and_then(|folder| folder.open_beneath(path));
        self.read(opened, path.as_str())
    }

    fn read(&self, opened: io::Result<OwnedFd>, path: &str) -> Result<Vec<u8>, ReadError> {
        let failed = |error| read_error(path, error);
        let handle = opened.map_err(failed)?;
        let stamp = Stamp::of(&handle).map_err(failed)?;
        let shown = || path.to_owned();
        if !stamp.is_file() {
            return Err(ReadError::NotAFile { path: shown() });
        }
        if self.trust == Trust::Untrusted && stamp.has_other_names() {
            return Err(ReadError::HardLink { path: shown() });
        }
        let limit = self.limits.file_bytes;
        let mut bytes = Vec::new();
        match read_limited(handle, &stamp, limit, &mut bytes) {
            Ok(()) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                Err(ReadError::TooLarge { path: shown(), limit })
            }
            Err(error) => Err(failed(error)),
        }
    }

    fn open_skill_folder(&self, folder: &Path) -> io::Result<Folder> {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        Folder::open(&self.root)?.open_folder(folder)
    }

    fn resources(&self, folder: &Path, scope: ResourceScope) -> Result<ResourceListing, ReadError> {
        let shown = folder.display().to_string();
        let folder = self.open_skill_folder(folder).map_err(|error| read_error(&shown, error))?;
        let mut walk = ResourceWalk {
            folder: &folder,
            scope,
            limits: &self.limits,
            found: BTreeMap::new(),
            left_out: Vec::new(),
            entries: 0,
            folders: Stamp::of(folder.handle()).iter().map(Stamp::identity).collect(),
        };
        walk.names("", &folder, 0);
        let mut left_out = walk.left_out;
        left_out.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(ResourceListing { resources: walk.found.into_values().collect(), left_out })
    }
}

/// What the system said, in our words.
fn read_error(path: &str, error: io::Error) -> ReadError {
    let path = path.to_owned();
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT | Errno::NOTDIR) => ReadError::NotFound { path },
        // A link that leaves the folder, or a link where none is allowed.
        Some(Errno::XDEV | Errno::LOOP) => ReadError::Outside { path },
        // A socket cannot be opened at all; a device without a driver neither.
        Some(Errno::NXIO | Errno::NODEV | Errno::ISDIR) => ReadError::NotAFile { path },
        _ => ReadError::Io { path, cause: error },
    }
}

/// How deep the files of a skill may be.
const MAX_RESOURCE_DEPTH: usize = 16;

/// Collects the resources of one skill.
struct ResourceWalk<'a> {
    folder: &'a Folder,
    scope: ResourceScope,
    limits: &'a ScanLimits,
    found: BTreeMap<String, Resource>,
    left_out: Vec<LeftOut>,
    entries: usize,
    /// The folders that were listed: links must not lead in circles.
    folders: HashSet<(u64, u64)>,
}

impl ResourceWalk<'_> {
    /// Looks at all names in a folder whose path is `prefix`, with its slash.
    fn names(&mut self, prefix: &str, folder: &Folder, depth: usize) {
        let Ok(entries) = Dir::read_from(folder.handle()) else {
            self.leave_out(prefix, "the folder cannot be read");
            return;
        };
        let mut names: Vec<OsString> = entries
            .filter_map(Result::ok)
            .map(|entry| OsString::from_vec(entry.file_name().to_bytes().to_vec()))
            .filter(|name| name != "." && name != "..")
            .take(self.limits.entries + 1)
            .collect();
        names.sort_unstable();
        for name in names {
            self.entries += 1;
            if self.entries > self.limits.entries || self.found.len() >= self.limits.resources {
                self.leave_out(prefix, "there are more files than the limit allows");
                return;
            }
            let Some(name) = name.to_str() else {
                let shown = format!("{prefix}{}", name.to_string_lossy());
                self.leave_out(&shown, "the name is not UTF-8");
                continue;
            };
            let path = format!("{prefix}{name}");
            if path == "SKILL.md" || SKIPPED_FOLDERS.contains(&name) {
                continue;
            }
            match ResourcePath::parse(&path) {
                Ok(path) => self.name(&path, depth),
                Err(_) => self.leave_out(&path, "no path of a skill looks like this"),
            }
        }
    }

    fn name(&mut self, path: &ResourcePath, depth: usize) {
        let opened = self.folder.open_beneath(path).and_then(|handle| Stamp::of(&handle));
        let stamp = match opened {
            Ok(stamp) => stamp,
            Err(error) => {
                let why = match read_error(path.as_str(), error) {
                    ReadError::Outside { .. } => "it leads out of the skill's folder",
                    ReadError::NotFound { .. } => "it is a link to nothing",
                    ReadError::NotAFile { .. } => "it is not a regular file",
                    _ => "it cannot be read",
                };
                return self.leave_out(path.as_str(), why);
            }
        };
        if stamp.is_folder() {
            if !self.descends(path, depth) {
                if self.scope == ResourceScope::Recursive {
                    self.leave_out(path.as_str(), "it is too deep");
                }
            } else if !self.folders.insert(stamp.identity()) {
                self.leave_out(path.as_str(), "it is a folder that is listed already");
            } else {
                match self.folder.open_folder_beneath(path) {
                    Ok(folder) => self.names(&format!("{path}/"), &folder, depth + 1),
                    Err(_) => self.leave_out(path.as_str(), "the folder cannot be read"),
                }
            }
        } else if !stamp.is_file() {
            self.leave_out(path.as_str(), "it is not a regular file");
        } else if depth > 0 || self.scope != ResourceScope::ThreeFolders {
            let resource = Resource {
                kind: ResourceKind::of(path),
                bytes: stamp.bytes,
                executable: stamp.is_executable(),
                path: path.clone(),
            };
            self.found.insert(path.to_string(), resource);
        }
    }

    fn descends(&self, path: &ResourcePath, depth: usize) -> bool {
        match self.scope {
            ResourceScope::OneLevel => depth == 0,
            ResourceScope::Recursive => depth < MAX_RESOURCE_DEPTH,
            ResourceScope::ThreeFolders => {
                depth == 0 && matches!(path.as_str(), "scripts" | "references" | "assets")
            }
        }
    }

    fn leave_out(&mut self, path: &str, why: &'static str) {
        self.left_out.push(LeftOut { path: path.to_owned(), why });
    }
}
