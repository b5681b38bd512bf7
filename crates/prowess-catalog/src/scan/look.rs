//! At one folder: is it a skill, what is inside, has it changed?

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use prowess_format::{Code, Digest, Options, Skill};
use rustix::fs::{AtFlags, Dir, FileType, statat};
use rustix::io::Errno;

use super::{
    FILE_NAMES, Known, KnownFolder, KnownSkill, Nested, Pass, SKIPPED_FOLDERS, Seen, Task, finding,
    path_not_utf8,
};
use crate::beneath::Stamp;
use crate::found::{FoundSkill, misnamed};
use crate::read::read_limited;
use crate::source::Trust;

/// Whether a file is read that exceeds the limit on bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// It is left for later.
    WithinLimit,
    /// It is: somebody has counted.
    Always,
}

impl Pass<'_> {
    /// Looks at a folder, or believes what is known of it.
    pub(super) fn look_at(&self, task: &Task, reading: Reading, buffer: &mut Vec<u8>) -> Seen {
        let mut seen = Seen::default();
        let known = self.known.get(task.path.as_os_str());
        let known = match self.unchanged(task, known) {
            Some(known) => Some(known),
            None => self.look_anew(task, known, reading, buffer, &mut seen),
        };
        let (inside, dangling) = match &known {
            Some(Known::Folder(folder)) => (Some(folder), folder.dangling),
            Some(Known::Skill(skill)) => (skill.inside.as_ref(), skill.dangling),
            None => (None, false),
        };
        if dangling {
            let path = self.scanner.root.join(&task.path).join(FILE_NAMES[0]);
            let message = format!("The link {} leads nowhere", path.display());
            let diagnostic = finding(Code::DanglingLink, &path, message);
            seen.diagnostics.push(diagnostic.with_help("mend or remove it"));
        }
        if let Some(inside) = inside {
            seen.entries = inside.entries;
            self.descend(task, inside, &mut seen);
        }
        seen.known = known;
        seen
    }

    /// What is known of this folder, if it still holds.
    fn unchanged(&self, task: &Task, known: Option<&Known>) -> Option<Known> {
        match known? {
            Known::Skill(skill) => {
                let same = self.stat(&task.path.join(skill.file)) == Some(skill.stamp?);
                let inside = skill.inside.as_ref();
                let same = same
                    && inside.is_none_or(|inside| {
                        inside.stamp.is_some() && self.stat(&task.path) == inside.stamp
                    });
                same.then(|| Known::Skill(Arc::clone(skill)))
            }
            Known::Folder(folder) => {
                let same = self.stat(&task.path) == Some(folder.stamp?);
                same.then(|| Known::Folder(Arc::clone(folder)))
            }
        }
    }

    fn stat(&self, path: &Path) -> Option<Stamp> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let stat = statat(self.root.handle(), path, AtFlags::empty()).ok()?;
        Some(Stamp::from(&stat))
    }

    /// Whether a link is there, wherever it leads.
    fn is_link(&self, path: &Path) -> bool {
        statat(self.root.handle(), path, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
    }

    fn look_anew(
        &self,
        task: &Task,
        known: Option<&Known>,
        reading: Reading,
        buffer: &mut Vec<u8>,
        seen: &mut Seen,
    ) -> Option<Known> {
        let before = match known {
            Some(Known::Skill(skill)) => Some(skill),
            _ => None,
        };
        for file in FILE_NAMES {
            let handle = match self.root.open_file(&task.path.join(file)) {
                Err(error) if is_absent(&error) => continue,
                handle => handle,
            };
            return Some(Known::Skill(Arc::new(
                self.skill(task, file, handle, before, reading, buffer),
            )));
        }
        match self.folder(task) {
            Ok(folder) => Some(Known::Folder(Arc::new(folder))),
            // A link to a file, or a folder that has just gone.
            Err(error) if is_absent(&error) && task.depth > 0 => None,
            Err(error) => {
                let path = self.scanner.root.join(&task.path);
                seen.diagnostics.push(self.scanner.unreadable(&path, &error));
                None
            }
        }
    }

    fn skill(
        &self,
        task: &Task,
        file: &'static str,
        handle: io::Result<OwnedFd>,
        before: Option<&Arc<KnownSkill>>,
        reading: Reading,
        buffer: &mut Vec<u8>,
    ) -> KnownSkill {
        let inside = match self.scanner.nested {
            Nested::Ignore => None,
            Nested::Find => self.folder(task).ok().map(Arc::new),
        };
        let mut known = KnownSkill {
            file,
            stamp: None,
            dangling: file != FILE_NAMES[0] && self.is_link(&task.path.join(FILE_NAMES[0])),
            bytes: 0,
            postponed: false,
            found: None,
            diagnostics: Vec::new(),
            inside,
        };
        let path = || self.scanner.root.join(&task.path).join(file);
        if task.path.to_str().is_none() || self.scanner.root.to_str().is_none() {
            known.diagnostics.extend(path_not_utf8(&path()));
        }
        let opened = handle.and_then(|handle| Ok((Stamp::of(&handle)?, handle)));
        let (stamp, handle) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                known.diagnostics.push(self.scanner.unreadable(&path(), &error));
                return known;
            }
        };
        if self.scanner.trust == Trust::Untrusted && stamp.has_other_names() {
            let message =
                format!("{} is a hard link, and the source is not trusted", path().display());
            let diagnostic = finding(Code::UnreadableFile, &path(), message);
            known.diagnostics.push(diagnostic.with_help("copy the file instead of linking it"));
            return known;
        }
        let limit = self.scanner.limits.file_bytes;
        if stamp.is_file() && stamp.bytes > limit {
            let message = format!("{} is larger than {limit} bytes", path().display());
            let diagnostic = finding(Code::FileTooLarge, &path(), message);
            let help = "move long text into files of the skill";
            known.diagnostics.push(diagnostic.with_help(help));
            return known;
        }
        known.bytes = stamp.bytes;
        let total = self.bytes_read.fetch_add(stamp.bytes, Ordering::Relaxed);
        let fits = total.saturating_add(stamp.bytes) <= self.scanner.limits.bytes;
        if reading == Reading::WithinLimit && !fits {
            known.postponed = true;
            return known;
        }
        if let Err(error) = read_limited(handle, &stamp, limit, buffer) {
            known.diagnostics.push(self.scanner.unreadable(&path(), &error));
            return known;
        }
        let digest = Digest::of(buffer);
        // Times are believed if they are old enough, and beside skill.md a SKILL.md may appear.
        let is_settled = stamp.latest() < self.grain && file == FILE_NAMES[0];
        known.stamp = Some(stamp).filter(|_| is_settled);
        // The times are new, the text is not.
        if let Some(before) = before
            && let Some(found) = &before.found
            && (found.digest, found.file, found.identity) == (digest, file, stamp.identity())
        {
            known.found = Some(Arc::clone(found));
            known.diagnostics.clone_from(&before.diagnostics);
            return known;
        }
        let folder_name = self.folder_name(task);
        let folder_name = folder_name.as_deref().map(OsStr::to_string_lossy);
        let options = match &folder_name {
            Some(name) => Options::new().in_folder(name).without_body(),
            None => Options::new().without_body(),
        };
        let parsed = Skill::parse_bytes(buffer, &options);
        let mut diagnostics = parsed.diagnostics;
        diagnostics.extend(misnamed(file, &path()));
        if !diagnostics.is_empty() {
            let shown: Arc<str> = path().display().to_string().into();
            for diagnostic in &mut diagnostics {
                diagnostic.path = Some(Arc::clone(&shown));
            }
        }
        known.found = parsed.skill.map(|skill| {
            Arc::new(FoundSkill {
                folder: task.path.as_path().into(),
                file,
                digest,
                identity: stamp.identity(),
                executable: stamp.is_executable(),
                bytes: buffer.len() as u64,
                body_chars: u32::try_from(parsed.body_chars).unwrap_or(u32::MAX),
                name: skill.skill_name().clone(),
                frontmatter: skill.frontmatter,
            })
        });
        known.diagnostics.extend(diagnostics);
        known
    }

    fn folder_name<'t>(&self, task: &'t Task) -> Option<Cow<'t, OsStr>> {
        if let Some(name) = task.path.file_name() {
            return Some(Cow::Borrowed(name));
        }
        let root = match self.scanner.root.file_name() {
            Some(_) => Cow::Borrowed(self.scanner.root.as_path()),
            None => Cow::Owned(std::fs::canonicalize(&self.scanner.root).ok()?),
        };
        root.file_name().map(|name| Cow::Owned(name.to_owned()))
    }

    /// The folders and links inside a folder, sorted.
    fn folder(&self, task: &Task) -> io::Result<KnownFolder> {
        let path = if task.path.as_os_str().is_empty() { Path::new(".") } else { &task.path };
        let folder = self.root.open_folder(path)?;
        let stamp = Stamp::of(folder.handle())?;
        let mut known = KnownFolder {
            stamp: Some(stamp).filter(|stamp| stamp.latest() < self.grain),
            entries: 0,
            dangling: false,
            folders: Vec::new(),
            links: Vec::new(),
        };
        let most = self.scanner.limits.entries.saturating_mul(10);
        for entry in Dir::read_from(folder.handle())? {
            let entry = entry?;
            let bytes = entry.file_name().to_bytes();
            if matches!(bytes, b"." | b"..") {
                continue;
            }
            known.entries += 1;
            // A flood: what is followed is cut elsewhere, reading ends here.
            if known.entries > most {
                break;
            }
            let name = OsString::from_vec(bytes.to_vec());
            if SKIPPED_FOLDERS.iter().any(|skipped| name == *skipped) {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => statat(folder.handle(), &name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
                kind => kind,
            };
            match kind {
                FileType::Directory => known.folders.push(name),
                FileType::Symlink if name == FILE_NAMES[0] => known.dangling = true,
                FileType::Symlink => known.links.push(name),
                _ => {}
            }
        }
        known.folders.sort_unstable();
        known.links.sort_unstable();
        Ok(known)
    }

    /// Puts the folders inside on the list, unless they are too deep.
    fn descend(&self, task: &Task, inside: &KnownFolder, seen: &mut Seen) {
        let depth = task.depth + 1;
        if depth > self.scanner.limits.depth {
            // One level down is a mode, not a limit that surprises.
            let any = !inside.folders.is_empty() || !inside.links.is_empty();
            seen.too_deep = any && self.scanner.limits.depth != 1;
            return;
        }
        let below = |name: &OsString| Task {
            path: task.path.join(name),
            depth,
            real: task.real.as_ref().map(|real| real.join(name)),
        };
        seen.folders.extend(inside.folders.iter().map(below));
        seen.links.extend(inside.links.iter().map(below));
    }
}

/// Whether a fresh look gave what was known before, times aside.
pub(super) fn is_same(known: Option<&Known>, fresh: Option<&Known>) -> bool {
    match (known, fresh) {
        (Some(Known::Skill(a)), Some(Known::Skill(b))) => {
            let found = match (&a.found, &b.found) {
                (Some(a), Some(b)) => Arc::ptr_eq(a, b),
                (None, None) => true,
                _ => false,
            };
            found && a.diagnostics == b.diagnostics
        }
        (Some(Known::Folder(_)), Some(Known::Folder(_))) | (None, None) => true,
        _ => false,
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.raw_os_error().map(Errno::from_raw_os_error), Some(Errno::NOENT | Errno::NOTDIR))
}
