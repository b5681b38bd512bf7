//! At one folder: is it a skill, what is inside, has it changed?

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use prowess_format::{Code, Diagnostic, Digest, Options, Skill};
use rustix::fs::{AtFlags, Dir, FileType, statat};
use rustix::io::Errno;

use super::{
    FILE_NAMES, Known, KnownFolder, KnownSkill, Nested, Pass, SKIPPED_FOLDERS, Seen, Task, finding,
};
use crate::beneath::Stamp;
use crate::found::FoundSkill;
use crate::read::read_limited;

impl Pass<'_> {
    /// Looks at a folder, or believes what is known of it.
    pub(super) fn look_at(&self, task: &Task, buffer: &mut Vec<u8>) -> Seen {
        let limits = &self.scanner.limits;
        let mut seen = Seen::default();
        let count = self.folders.fetch_add(1, Ordering::Relaxed);
        if count >= limits.folders {
            if count == limits.folders {
                seen.diagnostics.push(self.limit(task, "folders", limits.folders as u64));
            }
            return seen;
        }
        let known = self.known.get(task.path.as_os_str());
        let known = match self.unchanged(task, known) {
            Some(known) => Some(known),
            None => {
                let fresh = self.look_anew(task, known, buffer, &mut seen);
                if !is_same(known, fresh.as_ref()) {
                    self.changed.store(true, Ordering::Relaxed);
                }
                fresh
            }
        };
        let inside = match &known {
            Some(Known::Folder(folder)) => Some(folder),
            Some(Known::Skill(skill)) => skill.inside.as_ref(),
            None => None,
        };
        if let Some(inside) = inside {
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

    fn look_anew(
        &self,
        task: &Task,
        known: Option<&Known>,
        buffer: &mut Vec<u8>,
        seen: &mut Seen,
    ) -> Option<Known> {
        let before = match known {
            Some(Known::Skill(skill)) => Some(skill),
            _ => None,
        };
        for file in FILE_NAMES {
            match self.root.open_file(&task.path.join(file)) {
                Ok(handle) => {
                    return Some(self.skill(task, file, Ok(handle), before, buffer, seen));
                }
                Err(error) if is_absent(&error) => {}
                Err(error) => {
                    return Some(self.skill(task, file, Err(error), before, buffer, seen));
                }
            }
        }
        match self.folder(task, seen) {
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
        buffer: &mut Vec<u8>,
        seen: &mut Seen,
    ) -> Known {
        let inside = match self.scanner.nested {
            Nested::Ignore => None,
            Nested::Find => self.folder(task, seen).ok().map(Arc::new),
        };
        let path = || self.scanner.root.join(&task.path).join(file);
        let failed = |diagnostic: Diagnostic, inside| {
            let diagnostics = vec![diagnostic];
            KnownSkill { file, stamp: None, found: None, diagnostics, inside }
        };
        let limit = self.scanner.limits.file_bytes;
        let read = handle.and_then(|handle| Ok((Stamp::of(&handle)?, handle))).and_then(
            |(stamp, handle)| read_limited(handle, &stamp, limit, buffer).map(|()| stamp),
        );
        let stamp = match read {
            Ok(stamp) => stamp,
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                let path = path();
                let message = format!("{} is larger than {limit} bytes", path.display());
                let diagnostic = finding(Code::FileTooLarge, &path, message)
                    .with_help("move long text into files of the skill");
                return Known::Skill(Arc::new(failed(diagnostic, inside)));
            }
            Err(error) => {
                let diagnostic = self.scanner.unreadable(&path(), &error);
                return Known::Skill(Arc::new(failed(diagnostic, inside)));
            }
        };
        let total = self.bytes.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        let limit = self.scanner.limits.bytes;
        if total + buffer.len() as u64 > limit {
            if total <= limit {
                seen.diagnostics.push(self.limit(task, "bytes", limit));
            }
            let known = KnownSkill { file, stamp: None, found: None, diagnostics: vec![], inside };
            return Known::Skill(Arc::new(known));
        }
        let digest = Digest::of(buffer);
        let trusted = Some(stamp).filter(|stamp| stamp.latest() < self.grain);
        // The times are new, the text is not.
        if let Some(before) = before
            && let Some(found) = &before.found
            && found.digest == digest
        {
            let found = Some(Arc::clone(found));
            let diagnostics = before.diagnostics.clone();
            let known = KnownSkill { file, stamp: trusted, found, diagnostics, inside };
            return Known::Skill(Arc::new(known));
        }
        let folder_name = self.folder_name(task);
        let folder_name = folder_name.as_deref().map(OsStr::to_string_lossy);
        let options = match &folder_name {
            Some(name) => Options::new().in_folder(name).without_body(),
            None => Options::new().without_body(),
        };
        let parsed = Skill::parse_bytes(buffer, &options);
        let mut diagnostics = parsed.diagnostics;
        if file != FILE_NAMES[0] {
            let message = "The file is not named SKILL.md; most runtimes find nothing else";
            let diagnostic = finding(Code::FileNameCase, &path(), message.to_owned());
            diagnostics.push(diagnostic.with_help("rename it"));
        }
        if !diagnostics.is_empty() {
            let shown: Arc<str> = path().display().to_string().into();
            for diagnostic in &mut diagnostics {
                diagnostic.path = Some(Arc::clone(&shown));
            }
        }
        let found = parsed.skill.map(|skill| {
            Arc::new(FoundSkill {
                folder: task.path.as_path().into(),
                file,
                digest,
                bytes: buffer.len() as u64,
                body_chars: u32::try_from(parsed.body_chars).unwrap_or(u32::MAX),
                name: skill.skill_name().clone(),
                frontmatter: skill.frontmatter,
            })
        });
        Known::Skill(Arc::new(KnownSkill { file, stamp: trusted, found, diagnostics, inside }))
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
    fn folder(&self, task: &Task, seen: &mut Seen) -> io::Result<KnownFolder> {
        let path = if task.path.as_os_str().is_empty() { Path::new(".") } else { &task.path };
        let folder = self.root.open_folder(path)?;
        let stamp = Stamp::of(folder.handle())?;
        let (mut folders, mut links) = (Vec::new(), Vec::new());
        for entry in Dir::read_from(folder.handle())? {
            let entry = entry?;
            let bytes = entry.file_name().to_bytes();
            if matches!(bytes, b"." | b"..") {
                continue;
            }
            let count = self.entries.fetch_add(1, Ordering::Relaxed);
            let limit = self.scanner.limits.entries;
            if count >= limit {
                if count == limit {
                    seen.diagnostics.push(self.limit(task, "entries", limit as u64));
                }
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
                FileType::Directory => folders.push(name),
                FileType::Symlink => links.push(name),
                _ => {}
            }
        }
        folders.sort_unstable();
        links.sort_unstable();
        let stamp = Some(stamp).filter(|stamp| stamp.latest() < self.grain);
        Ok(KnownFolder { stamp, folders, links })
    }

    /// Puts the folders inside on the list, unless they are too deep.
    fn descend(&self, task: &Task, inside: &KnownFolder, seen: &mut Seen) {
        let depth = task.depth + 1;
        if depth > self.scanner.limits.depth {
            // One level down is a mode, not a limit that surprises.
            seen.too_deep = !inside.folders.is_empty() && self.scanner.limits.depth > 1;
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

    fn limit(&self, task: &Task, name: &str, limit: u64) -> Diagnostic {
        let path = self.scanner.root.join(&task.path);
        let message = format!("The search stopped here: the limit of {limit} {name} is reached");
        finding(Code::ScanLimit, &path, message)
            .with_help(format!("raise the limit `scan.{name}`, or name the folders of the skills"))
    }
}

/// Whether a fresh look gave what was known before, times aside.
fn is_same(known: Option<&Known>, fresh: Option<&Known>) -> bool {
    match (known, fresh) {
        (Some(Known::Skill(a)), Some(Known::Skill(b))) => {
            let found = match (&a.found, &b.found) {
                (Some(a), Some(b)) => Arc::ptr_eq(a, b),
                (None, None) => true,
                _ => false,
            };
            found && a.diagnostics == b.diagnostics
        }
        (Some(Known::Folder(_)), Some(Known::Folder(_))) => true,
        _ => false,
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.raw_os_error().map(Errno::from_raw_os_error), Some(Errno::NOENT | Errno::NOTDIR))
}
