//! Looking into a workspace.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{FileType, readlinkat};
use rustix::io::Errno;
use serde::Serialize;

use super::stage::{SKILLS, link_target};
use super::{Workspace, WorkspaceError, shown};
use crate::beneath::{Folder, Stamp};
use crate::collect::{CollectLimits, Collected, CollectedFile, collect, read_head};
use crate::path::WorkspacePath;

/// What is in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entries {
    /// The entries, in the order of names.
    pub entries: Vec<Entry>,
    /// How many more there are than were asked for.
    pub omitted: u64,
}

impl Entries {
    /// The first of these in the order of names, at most so many.
    pub fn first(mut entries: Vec<Entry>, most: u64) -> Self {
        entries.sort_unstable();
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let omitted = entries.len().saturating_sub(most) as u64;
        entries.truncate(most);
        Self { entries, omitted }
    }
}

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Entry {
    /// Its name, on one line, as far as it can be shown.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// How large it is, if it is a file.
    pub size_bytes: u64,
    /// Whether it is a file that may be run.
    pub executable: bool,
}

impl Entry {
    /// A file of this name and size that is not run.
    pub fn file(name: impl Into<String>, size_bytes: u64) -> Self {
        Self { name: name.into(), kind: EntryKind::File, size_bytes, executable: false }
    }

    /// A folder of this name.
    pub fn folder(name: impl Into<String>) -> Self {
        Self { name: name.into(), kind: EntryKind::Folder, size_bytes: 0, executable: false }
    }
}

/// What an entry of a folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder; also a staged skill's link to one of the workspace's folders.
    Folder,
    /// A link that is not followed.
    Link,
    /// A pipe, a socket or a device.
    Special,
}

impl Workspace {
    /// Reads a regular file, up to so many bytes. The links `out`, `work` and `inputs` of a staged
    /// skill are understood; no other link is.
    pub fn read(&self, path: &WorkspacePath, limit: u64) -> Result<CollectedFile, WorkspaceError> {
        let meant = self.redirect(path);
        if meant.names().take(1).any(|name| is_hidden(&WorkspacePath::root(), name.as_ref())) {
            return Err(WorkspaceError::NotFound { path: path.to_string() });
        }
        read_regular(&self.inner.folder, &meant, path, limit)
    }

    /// Opens a regular file, to be read piece by piece. It is found as by [`Workspace::read`].
    pub fn open_file(&self, path: &WorkspacePath) -> Result<File, WorkspaceError> {
        let meant = self.redirect(path);
        if meant.names().take(1).any(|name| is_hidden(&WorkspacePath::root(), name.as_ref())) {
            return Err(WorkspaceError::NotFound { path: path.to_string() });
        }
        open_regular(&self.inner.folder, &meant, path).map(|(file, _)| File::from(file))
    }

    /// Lists a folder, up to [`crate::WorkspaceLimits::max_listed_entries`].
    pub fn list(&self, path: &WorkspacePath) -> Result<Entries, WorkspaceError> {
        let meant = self.redirect(path);
        let failed = |error| failed(path, error);
        let folder = self.inner.folder.open_folder(&meant).map_err(failed)?;
        let most = self.inner.limits.max_listed_entries;
        let is_link = |name: &str| self.is_skill_link(&folder, &meant, name);
        entries_of(&folder, most, |name| is_hidden(&meant, name), is_link).map_err(failed)
    }

    /// Collects the files that match any of the globs, as relative to the workspace.
    /// `$WORKSPACE_DIR/`, `$SKILLS_DIR/`, `$WORK_DIR/`, `$OUTPUT_DIR/` and `$RUN_DIR/` (the given
    /// folder), also as `${…}/`, may begin a glob; what ends with `/` means all that is below.
    pub fn collect(
        &self,
        globs: &[String],
        run_dir: Option<&WorkspacePath>,
        limits: &CollectLimits,
    ) -> Result<Collected, WorkspaceError> {
        let _span =
            tracing::info_span!("workspace.collect", workspace = self.id().as_str()).entered();
        collect(&self.inner.folder, globs, run_dir, limits, |path| self.redirect(path))
    }

    /// The path that is meant by one that leads through a staged skill's own link:
    /// `skills/x/out/a` is `out/a`.
    pub(super) fn redirect(&self, path: &WorkspacePath) -> WorkspacePath {
        let names: Vec<_> = path.names().collect();
        let [SKILLS, skill, link, rest @ ..] = names.as_slice() else { return path.clone() };
        let Some(target) = link_target(link) else { return path.clone() };
        let Ok(root) = WorkspacePath::parse(&format!("{SKILLS}/{skill}")) else {
            return path.clone();
        };
        match self.inner.folder.open_folder(&root) {
            Ok(folder) if self.is_skill_link(&folder, &root, link) => {
                let target = target.trim_start_matches("../");
                let meant = [target].into_iter().chain(rest.iter().copied());
                let meant = meant.collect::<Vec<_>>().join("/");
                WorkspacePath::parse(&meant).unwrap_or_else(|_| path.clone())
            }
            _ => path.clone(),
        }
    }

    /// Whether this is one of the links that every staged skill has.
    fn is_skill_link(&self, folder: &Folder, path: &WorkspacePath, name: &str) -> bool {
        let mut names = path.names();
        let is_skill =
            names.next() == Some(SKILLS) && names.next().is_some() && names.next().is_none();
        let Some(target) = link_target(name).filter(|_| is_skill) else { return false };
        readlinkat(folder, name, Vec::new())
            .is_ok_and(|found| found.to_bytes() == target.as_bytes())
    }
}

/// Reads a regular file with one name below a folder, up to so many bytes; `shown` is what it is
/// called in errors.
pub(crate) fn read_regular(
    folder: &Folder,
    path: &WorkspacePath,
    shown: &WorkspacePath,
    limit: u64,
) -> Result<CollectedFile, WorkspaceError> {
    let (file, stamp) = open_regular(folder, path, shown)?;
    let bytes = read_head(file, &stamp, limit).map_err(|error| failed(shown, error))?;
    Ok(CollectedFile::new(path.to_string(), bytes, stamp.bytes))
}

/// Opens a regular file with one name below a folder.
fn open_regular(
    folder: &Folder,
    path: &WorkspacePath,
    shown: &WorkspacePath,
) -> Result<(OwnedFd, Stamp), WorkspaceError> {
    let failed = |error| failed(shown, error);
    if path.as_str().is_empty() {
        return Err(WorkspaceError::NotAFile { path: shown.to_string(), what: "a folder" });
    }
    let file = folder.open_file(path).map_err(failed)?;
    let stamp = Stamp::of(&file).map_err(failed)?;
    if !stamp.is_file() || stamp.has_other_names() {
        return Err(WorkspaceError::NotAFile { path: shown.to_string(), what: stamp.what() });
    }
    Ok((file, stamp))
}

/// The first entries of a folder by name, however many there are. A link counts as a folder if
/// `is_folder_link` says so.
pub(crate) fn entries_of(
    folder: &Folder,
    most: u64,
    is_hidden: impl Fn(&OsStr) -> bool,
    is_folder_link: impl Fn(&str) -> bool,
) -> io::Result<Entries> {
    let mut names: BTreeSet<OsString> = BTreeSet::new();
    let mut omitted = 0;
    for entry in folder.entries()? {
        let name = entry?.name;
        if is_hidden(&name) {
            continue;
        }
        names.insert(name);
        if names.len() as u64 > most {
            names.pop_last();
            omitted += 1;
        }
    }
    let entries = names.into_iter().filter_map(|name| {
        let stamp = folder.look(&name).ok()?;
        let name = name.to_string_lossy();
        // What can be asked for is shown as it is.
        let name = match WorkspacePath::parse(&name) {
            Ok(path) => path.to_string(),
            Err(_) => shown(&name),
        };
        let kind = match stamp.kind() {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Folder,
            FileType::Symlink if is_folder_link(&name) => EntryKind::Folder,
            FileType::Symlink => EntryKind::Link,
            _ => EntryKind::Special,
        };
        let is_file = kind == EntryKind::File;
        let size_bytes = if is_file { stamp.bytes } else { 0 };
        Some(Entry { name, kind, size_bytes, executable: is_file && stamp.is_executable() })
    });
    Ok(Entries { entries: entries.collect(), omitted })
}

/// What belongs to the workspace, not to anybody who works in it.
fn is_hidden(folder: &WorkspacePath, name: &OsStr) -> bool {
    let is_dotted = name.as_bytes().starts_with(b".");
    match folder.as_str() {
        "" => is_dotted || name == "metadata.json",
        SKILLS => is_dotted,
        _ => false,
    }
}

/// What it means that something could not be opened.
pub(crate) fn failed(path: &WorkspacePath, cause: io::Error) -> WorkspaceError {
    let path = path.to_string();
    match cause.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT) => WorkspaceError::NotFound { path },
        Some(Errno::LOOP) => WorkspaceError::Link { path },
        Some(Errno::NOTDIR) => WorkspaceError::NotAFolder { path },
        Some(Errno::NXIO) => WorkspaceError::NotAFile { path, what: "a socket" },
        _ => WorkspaceError::Io { doing: format!("use '{path}'"), cause },
    }
}
