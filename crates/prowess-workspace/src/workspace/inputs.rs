//! What commands are given.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, RenameFlags, renameat, renameat_with, symlinkat, unlinkat};
use rustix::io::Errno;
use uuid::Uuid;

use super::copy::{Budget, Copying, OtherNames, copy_file};
use super::metadata::create;
use super::read::failed;
use super::stage::{LINKS, StagedSkill, VENV};
use super::{Workspace, WorkspaceError, shown};
use crate::beneath::{Folder, Stamp, give};
use crate::collect::{RefusedFile, mime_type};
use crate::jail::{Expected, Guard, Wrote, check_content};
use crate::path::WorkspacePath;
use crate::remove::remove;

/// A file that was put into a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputFile {
    /// Where.
    pub path: WorkspacePath,
    /// How large it is.
    pub size_bytes: u64,
    /// What it is, by its content and the end of its name.
    pub mime_type: String,
}

/// What was copied into a workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopiedIn {
    /// The files, in the order of their paths.
    pub files: Vec<InputFile>,
    /// What a folder held besides, by its path below the folder.
    pub refused: Vec<RefusedFile>,
}

impl Workspace {
    /// Writes a file below `work/`, `out/` or `runs/`; folders on the way are made. The file is
    /// there as a whole or not at all; a file or link in its place is replaced, a folder is not.
    pub fn put(&self, to: &WorkspacePath, bytes: &[u8]) -> Result<InputFile, WorkspaceError> {
        self.put_with(to, bytes, 0o644)
    }

    fn put_with(
        &self,
        to: &WorkspacePath,
        bytes: &[u8],
        mode: u32,
    ) -> Result<InputFile, WorkspaceError> {
        let _span = self.span();
        let size_bytes = bytes.len() as u64;
        let mut budget = self.budget(&to);
        budget.take_bytes(size_bytes)?;
        let place = self.place_for(to)?;
        let mut draft = self.draft()?;
        let wrote = |cause| failed(to, cause);
        draft.file.write_all(bytes).map_err(wrote)?;
        give(&draft.file, mode, self.inner.owner).map_err(wrote)?;
        draft.settle(&place)?;
        let mime_type = mime_type(to.as_str(), bytes, size_bytes);
        Ok(InputFile { path: place.path, size_bytes, mime_type })
    }

    /// Writes a file as [`Workspace::put`] does, if what is there is what was expected; a file that
    /// is replaced keeps its permissions. Between callers of this nothing is lost; what a command
    /// writes meanwhile may be replaced.
    pub fn put_if(
        &self,
        to: &WorkspacePath,
        bytes: &[u8],
        expected: Expected<'_>,
    ) -> Result<Wrote, WorkspaceError> {
        let folder = &self.inner.folder;
        let _guard = Guard::of(folder).map_err(|cause| failed(to, cause))?;
        let meant = self.redirect(to);
        let (parent, name) = split(&meant);
        let found = folder.open_folder(&parent).and_then(|it| it.look(name.as_ref()));
        let mode = match found {
            Ok(stamp) => {
                check_content(expected, to, |limit| self.read(to, limit))?;
                Some(if stamp.is_file() { stamp.mode & 0o777 } else { 0o644 })
            }
            Err(_) if matches!(expected, Expected::Content(_)) => {
                return Err(WorkspaceError::NotFound { path: to.to_string() });
            }
            Err(_) => None,
        };
        self.put_with(to, bytes, mode.unwrap_or(0o644))?;
        Ok(if mode.is_some() { Wrote::Replaced } else { Wrote::Created })
    }

    /// Copies a file or a folder of this machine that lies inside `allowed`: nothing is found
    /// through a link that leads out of `allowed`, whatever happens to the tree meanwhile. `from`
    /// begins with `allowed`, or is relative to it. A folder replaces a folder. Of a folder, links
    /// and special files are left out, and listed.
    pub fn copy_in(
        &self,
        allowed: &Path,
        from: &Path,
        to: &WorkspacePath,
    ) -> Result<CopiedIn, WorkspaceError> {
        let _span = self.span();
        let shown_from = shown(&from.to_string_lossy());
        let inside = if from.is_absolute() { from.strip_prefix(allowed).ok() } else { Some(from) };
        let is_plain = |path: &&Path| path.iter().all(|name| name != "..");
        let Some(inside) = inside.filter(is_plain) else {
            return Err(WorkspaceError::Outside { path: shown_from });
        };
        let opened = Folder::open(allowed).and_then(|allowed| allowed.open_inside(inside));
        let source =
            opened.map_err(|cause| match cause.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::NOENT) => WorkspaceError::NotFound { path: shown_from.clone() },
                Some(Errno::XDEV) => WorkspaceError::Outside { path: shown_from.clone() },
                Some(Errno::LOOP) => WorkspaceError::Link { path: shown_from.clone() },
                _ => WorkspaceError::Io { doing: format!("open '{shown_from}'"), cause },
            })?;
        self.copy(source, &shown_from, to, OtherNames::Allowed)
    }

    /// Copies a file or a folder of the workspace. A folder replaces a folder. Of a folder, links
    /// and special files are left out, and listed.
    pub fn copy_within(
        &self,
        from: &WorkspacePath,
        to: &WorkspacePath,
    ) -> Result<CopiedIn, WorkspaceError> {
        let _span = self.span();
        let meant = self.redirect(from);
        if is_above(&meant, to) || is_above(to, &meant) {
            return Err(WorkspaceError::NotWritable { path: to.clone() });
        }
        let source = self.inner.folder.open_file(&meant).map_err(|cause| failed(from, cause))?;
        self.copy(source, from.as_str(), to, OtherNames::Refused)
    }

    /// Copies a staged skill to a folder that commands may write, in the place of what is there:
    /// its own files, without what staging has added.
    pub fn copy_skill(
        &self,
        skill: &StagedSkill,
        to: &WorkspacePath,
    ) -> Result<CopiedIn, WorkspaceError> {
        let _span = self.span();
        let (_, name) = split(&skill.path);
        let metadata = self.metadata()?;
        let own = metadata.skills.get(name).map(|it| it.own.as_slice()).unwrap_or_default();
        let added = LINKS.iter().map(|(name, _)| *name).chain([VENV]);
        let added: Vec<&str> = added.filter(|name| !own.iter().any(|it| it == name)).collect();
        let failed = |cause| failed(&skill.path, cause);
        let source = self.inner.folder.open_folder(&skill.path).map_err(failed)?;
        let place = self.place_for(to)?;
        // Whoever staged it has decided that it is not too large.
        let mut budget = Budget {
            max_bytes: u64::MAX,
            max_files: u64::MAX,
            max_depth: u64::MAX,
            ..self.budget(&skill.path)
        };
        self.copy_folder(&source, &place, OtherNames::Refused, &added, &mut budget)
    }

    /// Makes a relative link to a file or a folder of the workspace. A file or link in its place
    /// is replaced, a folder is not.
    pub fn link_within(
        &self,
        from: &WorkspacePath,
        to: &WorkspacePath,
    ) -> Result<(), WorkspaceError> {
        let _span = self.span();
        let meant = self.redirect(from);
        if is_above(&meant, to) || is_above(to, &meant) {
            return Err(WorkspaceError::NotWritable { path: to.clone() });
        }
        let (parent, name) = split(&meant);
        let stamp = self
            .inner
            .folder
            .open_folder(&parent)
            .and_then(|folder| folder.look(name.as_ref()))
            .map_err(|cause| failed(from, cause))?;
        if stamp.is_link() {
            return Err(WorkspaceError::Link { path: from.to_string() });
        }
        if !stamp.is_folder() && (!stamp.is_file() || stamp.has_other_names()) {
            return Err(WorkspaceError::NotAFile { path: from.to_string(), what: stamp.what() });
        }
        let place = self.place_for(to)?;
        let up = "../".repeat(place.path.names().count() - 1);
        let name = Uuid::now_v7().simple().to_string();
        let drafts = self.drafts()?;
        symlinkat(format!("{up}{meant}"), &drafts, &name)
            .map_err(|cause| failed(to, cause.into()))?;
        Draft::settle_from(&drafts, &name, &place)
    }

    fn span(&self) -> tracing::span::EnteredSpan {
        let id = self.id().as_str();
        tracing::info_span!("workspace.stage.inputs", workspace = id).entered()
    }

    fn copy(
        &self,
        source: OwnedFd,
        from: &str,
        to: &WorkspacePath,
        other_names: OtherNames,
    ) -> Result<CopiedIn, WorkspaceError> {
        let stamp = Stamp::of(&source).map_err(WorkspaceError::io(format!("look at '{from}'")))?;
        let mut budget = self.budget(&from);
        let mut copied = CopiedIn::default();
        let place = self.place_for(to)?;
        if stamp.is_folder() {
            if is_fixed(&place.path) {
                return Err(WorkspaceError::FolderInTheWay { path: place.path });
            }
            let source = Folder::from(source);
            copied = self.copy_folder(&source, &place, other_names, &[], &mut budget)?;
        } else if stamp.is_file()
            && (other_names == OtherNames::Allowed || !stamp.has_other_names())
        {
            let mut draft = self.draft()?;
            let mode = if stamp.is_executable() { 0o755 } else { 0o644 };
            let (size_bytes, mime_type) =
                copy_file(source, &mut draft.file, to.as_str(), &mut budget)?;
            give(&draft.file, mode, self.inner.owner).map_err(|cause| failed(to, cause))?;
            draft.settle(&place)?;
            copied.files.push(InputFile { path: place.path, size_bytes, mime_type });
        } else {
            return Err(WorkspaceError::NotAFile { path: from.to_owned(), what: stamp.what() });
        }
        Ok(copied)
    }

    /// Copies a folder without these of its entries.
    fn copy_folder(
        &self,
        source: &Folder,
        place: &Place,
        other_names: OtherNames,
        left_out: &[&str],
        budget: &mut Budget,
    ) -> Result<CopiedIn, WorkspaceError> {
        let mut copied = CopiedIn::default();
        let drafts = self.drafts()?;
        let name = Uuid::now_v7().simple().to_string();
        let copy = Copying { owner: self.inner.owner, other_names, left_out, to: &place.path };
        let settled = drafts
            .make(name.as_ref(), 0o755, self.inner.owner)
            .map_err(|cause| failed(&place.path, cause))
            .and_then(|target| copy.folder(source, &target, "", budget, &mut copied))
            .and_then(|()| self.settle_folder(&drafts, &name, place));
        if settled.is_err() {
            let _ = remove(&drafts, name.as_ref(), &self.inner.bin);
        }
        settled.map(|()| copied)
    }

    /// Puts a folder that is whole in the place of another one, or of nothing.
    fn settle_folder(&self, drafts: &Folder, name: &str, at: &Place) -> Result<(), WorkspaceError> {
        let failed = |cause: Errno| failed(&at.path, cause.into());
        let (folder, target) = (&at.folder, at.name.as_str());
        match renameat_with(drafts, name, folder, target, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(()),
            Err(Errno::EXIST | Errno::INVAL | Errno::NOSYS) => {}
            Err(error) => return Err(failed(error)),
        }
        match renameat_with(drafts, name, folder, target, RenameFlags::EXCHANGE) {
            Ok(()) => {}
            Err(Errno::NOENT | Errno::INVAL | Errno::NOSYS) => {
                remove(folder, target.as_ref(), &self.inner.bin)
                    .map_err(|cause| self::failed(&at.path, cause))?;
                renameat(drafts, name, folder, target).map_err(failed)?;
            }
            Err(error) => return Err(failed(error)),
        }
        remove(drafts, name.as_ref(), &self.inner.bin)
            .map_err(|cause| self::failed(&at.path, cause))
    }

    /// Where something is to be written, if it may be.
    pub(super) fn place_for(&self, to: &WorkspacePath) -> Result<Place, WorkspaceError> {
        let path = self.redirect(to);
        let is_writable = matches!(path.names().next(), Some("work" | "out" | "runs"));
        let (parent, name) = split(&path);
        if !is_writable || parent.as_str().is_empty() {
            return Err(WorkspaceError::NotWritable { path: to.clone() });
        }
        let folder = self
            .inner
            .folder
            .make_all(&parent, self.inner.owner)
            .map_err(|cause| failed(&parent, cause))?;
        Ok(Place { folder, name: name.to_owned(), path })
    }

    /// The folder for what is not whole yet. It is the workspace's own: no command sees it.
    fn drafts(&self) -> Result<Folder, WorkspaceError> {
        let made = self.inner.folder.make(".new".as_ref(), 0o700, None);
        made.map_err(WorkspaceError::io("make the folder of drafts"))
    }

    fn draft(&self) -> Result<Draft, WorkspaceError> {
        let drafts = self.drafts()?;
        let name = Uuid::now_v7().simple().to_string();
        let file = create(&drafts, &name, 0o600).map_err(WorkspaceError::io("make a file"))?;
        Ok(Draft { drafts, name, file: File::from(file) })
    }

    fn budget(&self, what: &dyn std::fmt::Display) -> Budget {
        let limits = &self.inner.limits;
        Budget {
            what: what.to_string(),
            max_bytes: limits.max_input_bytes,
            max_files: limits.max_input_files,
            max_depth: limits.max_input_depth,
            bytes: 0,
            files: 0,
        }
    }
}

/// Where something is to be written.
pub(super) struct Place {
    pub(super) folder: Folder,
    pub(super) name: String,
    pub(super) path: WorkspacePath,
}

/// A file that is not whole yet.
struct Draft {
    drafts: Folder,
    name: String,
    file: File,
}

impl Draft {
    /// Puts the file in its place.
    fn settle(self, place: &Place) -> Result<(), WorkspaceError> {
        Self::settle_from(&self.drafts, &self.name, place)
    }

    fn settle_from(drafts: &Folder, name: &str, place: &Place) -> Result<(), WorkspaceError> {
        renameat(drafts, name, &place.folder, &place.name).map_err(|error| {
            let _ = unlinkat(drafts, name, AtFlags::empty());
            match error {
                Errno::ISDIR | Errno::EXIST | Errno::NOTEMPTY => {
                    WorkspaceError::FolderInTheWay { path: place.path.clone() }
                }
                error => failed(&place.path, error.into()),
            }
        })
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = unlinkat(&self.drafts, &self.name, AtFlags::empty());
    }
}

/// The folder of a path, and its last name.
pub(crate) fn split(path: &WorkspacePath) -> (WorkspacePath, &str) {
    let (parent, name) = path.as_str().rsplit_once('/').unwrap_or(("", path.as_str()));
    (WorkspacePath::parse(parent).unwrap_or_default(), name)
}

/// Whether a path is another, or a folder on the way to it.
fn is_above(above: &WorkspacePath, below: &WorkspacePath) -> bool {
    above.names().zip(below.names()).filter(|(a, b)| a == b).count() == above.names().count()
}

/// Whether a folder belongs to every workspace and is never replaced.
fn is_fixed(path: &WorkspacePath) -> bool {
    matches!(path.as_str(), "work/inputs")
}
