//! Skills in a backend.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use prowess_catalog::{
    FoundSkill, LeftOut, LeftOutReason, ReadError, Resource, ResourceListing, ResourcePath,
    ResourceScope, SKIPPED_FOLDERS, ScanLimits, SkillText, Source, SourceFuture, SourceInfo,
    SourceListing, Trust,
};
use prowess_format::{Code, Diagnostic, Level};
use prowess_workspace::{EntryKind, WorkspacePath};

use super::FileError;
use super::backend::{Backend, path_of};

/// The skills in a folder of a [`Backend`]: folders one level down that hold a `SKILL.md`, with all
/// their files. What an agent writes there with its own tools is a skill after the next
/// [`refresh`](prowess_catalog::Catalog::refresh).
///
/// Their paths are those of the backend, so that `read_file` can read what a listing shows.
///
/// It is **not trusted** unless a host says so: what an agent wrote, or somebody made it write,
/// neither hides a skill that the user put there nor gains what trusted skills may do.
///
/// ```
/// use prowess_catalog::Catalog;
/// use prowess_toolkits::{BackendSource, FilesToolkit, MemoryBackend};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let backend = MemoryBackend::new();
/// let catalog = Catalog::builder().source(BackendSource::new(backend.clone(), "/skills")?).build();
/// assert!(catalog.refresh().await.skills().is_empty());
/// // The agent has tools on the same backend, and writes a skill.
/// let tools = FilesToolkit::on(backend.clone());
/// let text = "---\nname: greet\ndescription: Greets.\n---\nSay hello.\n";
/// backend.with_file("/skills/greet/SKILL.md", text)?;
/// assert!(catalog.refresh().await.get("greet").is_ok());
/// # let _ = tools;
/// # Ok::<(), prowess_toolkits::FileError>(())
/// # }).unwrap();
/// ```
pub struct BackendSource {
    info: SourceInfo,
    backend: Arc<dyn Backend>,
    folder: WorkspacePath,
    limits: ScanLimits,
    last: Mutex<Arc<SourceListing>>,
}

const FILE: &str = "SKILL.md";

impl BackendSource {
    /// The skills in this folder of a backend, not trusted.
    pub fn new(backend: impl Backend, folder: &str) -> Result<Self, FileError> {
        let folder = path_of(folder)?;
        let label = folder.names().last().unwrap_or("files").to_owned();
        let location = format!("/{folder}");
        Ok(Self {
            info: SourceInfo::new(label, location).with_trust(Trust::Untrusted),
            backend: Arc::new(backend),
            folder,
            limits: ScanLimits::default(),
            last: Mutex::default(),
        })
    }

    /// Another label than the name of the folder.
    pub fn with_label(mut self, label: impl Into<String>) -> Self {
        self.info.label = label.into();
        self
    }

    /// How far it is believed. Only what no agent can write should be trusted.
    pub fn with_trust(mut self, trust: Trust) -> Self {
        self.info.trust = trust;
        self
    }

    /// Other limits than the default ones: `folders` that are looked into, `bytes` and `file_bytes`
    /// of texts, and those of resources.
    pub fn with_limits(mut self, limits: ScanLimits) -> Self {
        self.limits = limits;
        self
    }

    async fn look(&self) -> Arc<SourceListing> {
        let mut listing = SourceListing::default();
        let location = self.info.location.as_str();
        let most = self.limits.folders;
        match self.backend.list(&self.folder, most as u64).await {
            // Nobody has written a skill yet.
            Err(FileError::NotFound { .. }) => {}
            Err(error) => listing.add_unreadable(location, &error),
            Ok(listed) => {
                let mut room = self.limits.bytes;
                let folders = listed.entries.iter().filter(|it| it.kind == EntryKind::Folder);
                for entry in folders.filter(|it| !SKIPPED_FOLDERS.contains(&&*it.name)) {
                    let bytes = self.look_at(&entry.name, room, &mut listing).await;
                    let Some(left) = room.checked_sub(bytes) else {
                        listing.diagnostics.push(self.limit("bytes", self.limits.bytes));
                        break;
                    };
                    room = left;
                }
                if listed.omitted > 0 {
                    listing.diagnostics.push(self.limit("folders", most as u64));
                }
            }
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if **last != listing {
            *last = Arc::new(listing);
        }
        Arc::clone(&last)
    }

    fn limit(&self, name: &str, most: u64) -> Diagnostic {
        let message = format!("The limit `scan.{name}` = {most} was reached; the rest is not read");
        Diagnostic::new(Code::ScanLimit, Level::Warning, message).with_path(&*self.info.location)
    }

    /// Adds the skill in a folder, if there is one and room for it; how many bytes it has.
    async fn look_at(&self, folder: &str, room: u64, listing: &mut SourceListing) -> u64 {
        let path = Path::new(&self.info.location).join(folder).join(FILE).display().to_string();
        let limit = self.limits.file_bytes;
        let file = match self.place(Path::new(folder), FILE) {
            Ok(place) => self.backend.read(&place, limit).await,
            Err(error) => Err(error),
        };
        match file {
            Err(FileError::NotFound { .. }) => 0,
            Err(error) => {
                listing.add_unreadable(&path, &error);
                0
            }
            Ok(file) if file.truncated => {
                listing.add_too_large(&path, limit);
                0
            }
            Ok(file) => {
                let text = SkillText {
                    folder: Path::new(folder),
                    file: FILE,
                    path: &path,
                    bytes: &file.bytes,
                    executable: false,
                };
                if file.size_bytes <= room {
                    listing.add(&text, &self.limits);
                }
                file.size_bytes
            }
        }
    }

    /// Where a file of a skill is.
    fn place(&self, folder: &Path, path: &str) -> Result<WorkspacePath, FileError> {
        let inside = format!("{}/{path}", folder.to_string_lossy());
        Ok(self.folder.join(&path_of(&inside)?))
    }

    async fn bytes(
        &self,
        skill: &FoundSkill,
        path: &str,
        limit: u64,
    ) -> Result<Vec<u8>, ReadError> {
        let shown = || path.to_owned();
        let failed = |error: FileError| match error {
            FileError::NotFound { .. } | FileError::NotAFolder { .. } => {
                ReadError::NotFound { path: shown() }
            }
            FileError::Link { .. } => ReadError::Outside { path: shown() },
            FileError::IsFolder { .. } | FileError::NotAFile { .. } => {
                ReadError::NotAFile { path: shown() }
            }
            error => ReadError::Io { path: shown(), cause: std::io::Error::other(error) },
        };
        let place = self.place(&skill.folder, path).map_err(failed)?;
        let file = self.backend.read(&place, limit).await.map_err(failed)?;
        match file.truncated {
            true => Err(ReadError::TooLarge { path: shown(), limit }),
            false => Ok(file.bytes),
        }
    }

    /// All files of a skill, however deep, in the order of their paths.
    async fn walk(&self, skill: &FoundSkill) -> Result<ResourceListing, ReadError> {
        let mut found = ResourceListing::default();
        let mut waiting: Vec<(String, usize)> = vec![(String::new(), 0)];
        while let Some((prefix, depth)) = waiting.pop() {
            let mut leave_out =
                |path: &str, reason| found.left_out.push(LeftOut::new(path, reason));
            let listed = match self.place(&skill.folder, &prefix) {
                Ok(place) => self.backend.list(&place, self.limits.entries as u64).await,
                Err(error) => Err(error),
            };
            let listed = match listed {
                Ok(listed) => listed,
                Err(FileError::NotFound { .. }) if depth == 0 => return Err(ReadError::Replaced),
                Err(_) => {
                    leave_out(&prefix, LeftOutReason::Unreadable);
                    continue;
                }
            };
            if listed.omitted > 0 {
                leave_out(&prefix, LeftOutReason::TooMany);
            }
            for entry in listed.entries {
                let path = format!("{prefix}{}", entry.name);
                let Ok(resource) = ResourcePath::parse(&path) else {
                    leave_out(&path, LeftOutReason::Name);
                    continue;
                };
                match entry.kind {
                    EntryKind::Link => leave_out(&path, LeftOutReason::Outside),
                    EntryKind::Special => leave_out(&path, LeftOutReason::Special),
                    EntryKind::Folder if is_version_control(&entry.name) => {
                        leave_out(&path, LeftOutReason::VersionControl);
                    }
                    EntryKind::Folder if depth >= self.limits.resource_depth => {
                        leave_out(&path, LeftOutReason::TooDeep);
                    }
                    EntryKind::Folder => waiting.push((format!("{path}/"), depth + 1)),
                    EntryKind::File if path == skill.file => {}
                    EntryKind::File if found.resources.len() >= self.limits.resources => {
                        leave_out(&path, LeftOutReason::TooMany);
                        waiting.clear();
                        break;
                    }
                    EntryKind::File => {
                        let mut resource = Resource::new(resource, entry.size_bytes);
                        resource.executable = entry.executable;
                        found.resources.push(resource);
                    }
                }
            }
        }
        found.resources.sort_by(|a, b| a.path.cmp(&b.path));
        found.left_out.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }
}

fn is_version_control(name: &str) -> bool {
    name != "node_modules" && SKIPPED_FOLDERS.contains(&name)
}

impl std::fmt::Debug for BackendSource {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("BackendSource").field("info", &self.info).finish_non_exhaustive()
    }
}

impl Source for BackendSource {
    fn info(&self) -> &SourceInfo {
        &self.info
    }

    fn list(&self) -> SourceFuture<'_, Arc<SourceListing>> {
        Box::pin(self.look())
    }

    fn read<'a>(&'a self, skill: &'a FoundSkill) -> SourceFuture<'a, Result<Vec<u8>, ReadError>> {
        Box::pin(self.bytes(skill, skill.file, self.limits.file_bytes))
    }

    fn resources<'a>(
        &'a self,
        skill: &'a FoundSkill,
        scope: ResourceScope,
    ) -> SourceFuture<'a, Result<ResourceListing, ReadError>> {
        Box::pin(async move { Ok(self.walk(skill).await?.within(scope)) })
    }

    fn read_resource<'a>(
        &'a self,
        skill: &'a FoundSkill,
        path: &'a ResourcePath,
    ) -> SourceFuture<'a, Result<Vec<u8>, ReadError>> {
        let is_hidden = path.as_str().split('/').any(is_version_control);
        Box::pin(async move {
            match is_hidden {
                true => Err(ReadError::NotFound { path: path.to_string() }),
                false => self.bytes(skill, path.as_str(), self.limits.resource_bytes).await,
            }
        })
    }
}
