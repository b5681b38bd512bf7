//! The files of a skill as they are written, and how a copy of them looks.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{FileType, readlinkat, symlinkat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::metadata::create;
use super::stage::{LINKS, SkillFile, VENV};
use super::{WorkspaceError, shown};
use crate::beneath::{Folder, give};
use crate::key::hex;
use crate::path::WorkspacePath;

/// The most names in the path of a skill's file.
const MAX_DEPTH: usize = 64;

/// The files of a skill, checked.
pub(super) struct Tree<'a> {
    files: Vec<(WorkspacePath, &'a SkillFile<'a>)>,
    /// The names `out`, `work`, `inputs` and `.venv`, as far as the skill has them itself.
    pub(super) own: BTreeSet<&'static str>,
}

impl<'a> Tree<'a> {
    pub(super) fn of(files: &'a [SkillFile<'a>]) -> Result<Self, WorkspaceError> {
        let refused = |file: &SkillFile<'_>, cause: &str| WorkspaceError::SkillFile {
            path: shown(file.path),
            cause: cause.to_owned(),
        };
        let mut checked = Vec::with_capacity(files.len());
        for file in files {
            let path = WorkspacePath::parse(file.path);
            let path = path.map_err(|cause| refused(file, &cause.to_string()))?;
            match path.names().count() {
                0 => return Err(refused(file, "the path is empty")),
                depth if depth > MAX_DEPTH => return Err(refused(file, "it lies too deep")),
                _ => checked.push((path, file)),
            }
        }
        checked.sort_by(|(a, _), (b, _)| a.names().cmp(b.names()));
        for pair in checked.windows(2) {
            let [(above, _), (below, file)] = pair else { continue };
            if below.names().zip(above.names()).filter(|(a, b)| a == b).count()
                == above.names().count()
            {
                return Err(refused(file, "another file has its path, or is in its way"));
            }
        }
        let names = LINKS.iter().map(|(link, _)| *link).chain([VENV]);
        let own =
            names.filter(|name| checked.iter().any(|(path, _)| path.names().next() == Some(*name)));
        Ok(Self { own: own.collect(), files: checked })
    }

    /// Writes all files and links into an empty folder.
    pub(super) fn write(&self, draft: &Folder) -> io::Result<()> {
        let mut folders = BTreeSet::new();
        let mut current: Option<(String, Folder)> = None;
        for (path, file) in &self.files {
            let (parent, name) = path.as_str().rsplit_once('/').unwrap_or(("", path.as_str()));
            if current.as_ref().is_none_or(|(known, _)| known != parent) {
                let path = WorkspacePath::parse(parent).map_err(io::Error::other)?;
                current = Some((parent.to_owned(), draft.make_all(&path, None)?));
                let names: Vec<_> = path.names().collect();
                folders.extend((1..=names.len()).map(|count| names[..count].join("/")));
            }
            let Some((_, folder)) = &current else { continue };
            let mut handle = File::from(create(folder, name, 0o600)?);
            handle.write_all(&file.bytes)?;
            give(&handle, if file.executable { 0o555 } else { 0o444 }, None)?;
        }
        for folder in folders {
            let path = WorkspacePath::parse(&folder).map_err(io::Error::other)?;
            give(draft.open_folder(&path)?, 0o555, None)?;
        }
        for (link, target) in LINKS.iter().filter(|(link, _)| !self.own.contains(link)) {
            symlinkat(*target, draft, *link)?;
        }
        Ok(())
    }
}

/// What a copy looks like: every name, kind, mode, size, time and inode, and no content. The
/// folder that commands may write is left out. The time of the last change of an inode cannot be
/// set by anybody, so that a file cannot be changed without being noticed.
pub(super) fn copy_stamp(top: &Folder, own: &BTreeSet<&str>) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let top = top.open_folder(&WorkspacePath::root())?;
    let mut stack = vec![(top, Vec::new())];
    stack[0].1 = listed(&stack[0].0)?;
    stack[0].1.retain(|name| own.contains(VENV) || name != VENV);
    while let Some((folder, names)) = stack.last_mut() {
        let Some(name) = names.pop() else {
            hasher.update(b"/");
            stack.pop();
            continue;
        };
        let stamp = folder.look(&name)?;
        hasher.update((name.len() as u64).to_le_bytes());
        hasher.update(name.as_bytes());
        hasher.update(stamp.mode.to_le_bytes());
        hasher.update(stamp.inode.to_le_bytes());
        hasher.update(stamp.device.to_le_bytes());
        match stamp.kind() {
            FileType::Directory => {
                if stack.len() > MAX_DEPTH {
                    return Err(Errno::NAMETOOLONG.into());
                }
                let Some((folder, _)) = stack.last() else { break };
                let inner = folder.enter(&name)?;
                let names = listed(&inner)?;
                stack.push((inner, names));
            }
            FileType::Symlink => {
                let target = readlinkat(&*folder, &name, Vec::new())?;
                hasher.update(target.to_bytes_with_nul());
            }
            _ => {
                hasher.update(stamp.bytes.to_le_bytes());
                for (seconds, nanoseconds) in [stamp.modified, stamp.changed] {
                    hasher.update(seconds.to_le_bytes());
                    hasher.update(nanoseconds.to_le_bytes());
                }
            }
        }
    }
    Ok(hex(&hasher.finalize()))
}

/// The names in a folder, the last first.
fn listed(folder: &Folder) -> io::Result<Vec<OsString>> {
    let names: io::Result<Vec<_>> = folder.entries()?.map(|entry| Ok(entry?.name)).collect();
    let mut names = names?;
    names.sort_unstable_by(|a, b| b.cmp(a));
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::{SkillFile, Tree};

    #[test]
    fn files_that_collide_or_lead_out_are_refused() {
        let refused = |paths: &[&str]| {
            let file = |path| SkillFile { path, executable: false, bytes: b"x"[..].into() };
            let files: Vec<_> = paths.iter().map(|path| file(*path)).collect();
            Tree::of(&files).is_err()
        };
        let deep = vec!["a"; 65].join("/");
        for paths in [
            &["../a"][..],
            &["/a"],
            &[""],
            &["."],
            &["a", "a"],
            &["a", "./a"],
            &["a", "a/b"],
            &["a/b/c", "a/b"],
            &["a", "a/b/c", "a-b"],
            &["a\\b"],
            &[&deep],
        ] {
            assert!(refused(paths), "{paths:?}");
        }
        for paths in [&["a", "b"][..], &["a/b", "a/c", "a-b", "ab"], &["SKILL.md", ".venv/x"]] {
            assert!(!refused(paths), "{paths:?}");
        }
    }
}
