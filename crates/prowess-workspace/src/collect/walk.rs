//! Finding the files that match, without following a link.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::glob::Pattern;
use super::{CollectLimit, CollectLimits, Collected, RefusedFile, RefusedReason};
use crate::beneath::{Folder, Stamp};
use crate::path::WorkspacePath;
use crate::workspace::shown;

/// What was found, and what was left out on the way.
pub(super) struct Found<'a> {
    limits: &'a CollectLimits,
    pub(super) files: BTreeSet<WorkspacePath>,
    refused: BTreeSet<RefusedFile>,
    refused_count: u64,
    limits_hit: BTreeSet<CollectLimit>,
    entries_left: u64,
}

impl<'a> Found<'a> {
    pub(super) fn new(limits: &'a CollectLimits) -> Self {
        Self {
            limits,
            files: BTreeSet::new(),
            refused: BTreeSet::new(),
            refused_count: 0,
            limits_hit: BTreeSet::new(),
            entries_left: limits.max_entries,
        }
    }

    pub(super) fn refuse(&mut self, name: &str, reason: RefusedReason) {
        self.refused_count += 1;
        self.refused.insert(RefusedFile { name: shown(name), reason });
        // The first ones by name are listed.
        if self.refused.len() as u64 > self.limits.max_refused {
            self.refused.pop_last();
        }
    }

    pub(super) fn hit(&mut self, limit: CollectLimit) {
        self.limits_hit.insert(limit);
    }

    pub(super) fn finish(self, into: &mut Collected) {
        into.refused = self.refused.into_iter().collect();
        into.refused_count = self.refused_count;
        into.limits_hit = self.limits_hit.into_iter().collect();
    }

    /// Looks for everything below a base that matches any of the patterns.
    pub(super) fn walk(&mut self, root: &Folder, base: &[String], patterns: &[Pattern]) {
        // A name that no path can have belongs to no file that could be collected.
        let Ok(path) = WorkspacePath::parse(&base.join("/")) else { return };
        let folder = match root.open_folder(&path) {
            Ok(folder) => folder,
            Err(error) => {
                if let Some(reason) = reason_of(&error) {
                    self.refuse(path.as_str(), reason);
                }
                return;
            }
        };
        let mut stack = vec![self.level(folder, path.names().map(OsString::from).collect())];
        while let Some(level) = stack.last_mut() {
            let Some((name, kind)) = level.entries.pop() else {
                stack.pop();
                continue;
            };
            let deeper = level.visit(&name, kind, patterns, self);
            if let Some((folder, names)) = deeper {
                stack.push(self.level(folder, names));
            }
        }
    }

    /// Reads the entries of a folder.
    fn level(&mut self, folder: Folder, names: Vec<OsString>) -> Level {
        let mut entries = Vec::new();
        let listed = folder.entries().and_then(|listed| {
            for entry in listed {
                let entry = entry?;
                let Some(left) = self.entries_left.checked_sub(1) else {
                    self.limits_hit.insert(CollectLimit::MaxEntries);
                    break;
                };
                self.entries_left = left;
                let Ok(kind) = folder.kind(&entry) else { continue };
                entries.push((entry.name, kind));
            }
            Ok(())
        });
        if listed.is_err() {
            let path: PathBuf = names.iter().collect();
            self.refuse(&path.to_string_lossy(), RefusedReason::Unreadable);
        }
        entries.sort_unstable_by(|(a, _), (b, _)| b.cmp(a));
        Level { folder, names, entries }
    }
}

/// A folder on the way down.
struct Level {
    folder: Folder,
    names: Vec<OsString>,
    /// What is left to be looked at, the last first.
    entries: Vec<(OsString, FileType)>,
}

impl Level {
    fn visit(
        &self,
        name: &OsString,
        kind: FileType,
        patterns: &[Pattern],
        found: &mut Found<'_>,
    ) -> Option<(Folder, Vec<OsString>)> {
        let mut names = self.names.clone();
        names.push(name.clone());
        if is_ours(&names) {
            return None;
        }
        let path: PathBuf = names.iter().collect();
        if kind == FileType::Directory {
            let readable: Vec<_> =
                names.iter().map(|name| name.to_string_lossy().into_owned()).collect();
            if !patterns.iter().any(|pattern| pattern.reaches(&readable)) {
                return None;
            }
            if names.len() as u64 >= found.limits.max_depth {
                found.refuse(&path.to_string_lossy(), RefusedReason::Depth);
                found.hit(CollectLimit::MaxDepth);
                return None;
            }
            return match self.folder.enter(name) {
                Ok(folder) => Some((folder, names)),
                Err(error) => {
                    if let Some(reason) = reason_of(&error) {
                        found.refuse(&path.to_string_lossy(), reason);
                    }
                    None
                }
            };
        }
        if !patterns.iter().any(|pattern| pattern.matches(&path)) {
            return None;
        }
        match self.admit(name, &path) {
            Ok(Some(path)) => {
                found.files.insert(path);
            }
            Ok(None) => {}
            Err(reason) => found.refuse(&path.to_string_lossy(), reason),
        }
        None
    }

    fn admit(
        &self,
        name: &OsString,
        path: &std::path::Path,
    ) -> Result<Option<WorkspacePath>, RefusedReason> {
        let stamp = match self.folder.look(name) {
            Ok(stamp) => stamp,
            Err(error) => return reason_of(&error).map_or(Ok(None), Err),
        };
        if stamp.is_link() && is_skill_link(path) {
            return Ok(None);
        }
        check(&stamp)?;
        let text = path.to_str().ok_or(RefusedReason::NotUtf8Name)?;
        WorkspacePath::parse(text).map(Some).map_err(|_| RefusedReason::Name)
    }
}

/// Whether it is a file that may be read.
pub(super) fn check(stamp: &Stamp) -> Result<(), RefusedReason> {
    if stamp.is_link() {
        Err(RefusedReason::Symlink)
    } else if !stamp.is_file() {
        Err(RefusedReason::Special)
    } else if stamp.has_other_names() {
        Err(RefusedReason::HardLinked)
    } else {
        Ok(())
    }
}

/// Why something could not be opened; `None` if there is nothing.
pub(super) fn reason_of(error: &io::Error) -> Option<RefusedReason> {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT | Errno::NOTDIR) => None,
        Some(Errno::LOOP) => Some(RefusedReason::Symlink),
        Some(Errno::NXIO) => Some(RefusedReason::Special),
        Some(Errno::NAMETOOLONG) => Some(RefusedReason::Name),
        _ => Some(RefusedReason::Unreadable),
    }
}

/// What belongs to the workspace, not to anybody who works in it.
fn is_ours(names: &[OsString]) -> bool {
    match names {
        [name] => name == "metadata.json" || name.as_bytes().starts_with(b"."),
        [skills, name] => skills == "skills" && name.as_bytes().starts_with(b"."),
        _ => false,
    }
}

/// The links of a staged skill: what they lead to is collected where it is.
fn is_skill_link(path: &std::path::Path) -> bool {
    let names: Vec<_> = path.iter().collect();
    matches!(names[..], [skills, _, link] if skills == "skills"
        && ["out", "work", "inputs"].iter().any(|ours| link == *ours))
}
