//! Bounded, parallel, incremental scans of a folder tree.
//!
//! A scan goes level by level. A folder with a `SKILL.md` is a skill and, by default, a leaf. What
//! has not changed since the last scan (size, times, inode) is taken from it; what was changed so
//! shortly before a scan that a second change could hide behind the same times is read again.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prowess_format::{Code, Diagnostic, Level, Options, Skill};
use rustix::fs::{AtFlags, Dir, FileType, statat};
use rustix::io::Errno;

use crate::beneath::{Folder, Stamp};
use crate::found::{FoundSkill, SourceListing};
use crate::limits::ScanLimits;
use crate::read::read_limited;

/// Folders that are never searched.
pub const SKIPPED_FOLDERS: [&str; 4] = [".git", ".hg", ".svn", "node_modules"];

/// Whether folders inside a skill are searched for more skills.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nested {
    /// A skill is a leaf.
    #[default]
    Ignore,
    /// Skills inside skills are skills.
    Find,
}

/// Times that are at most this old when a scan begins are not trusted by the next one.
const TIME_GRAIN: Duration = Duration::from_millis(20);

/// Fewer folders than this are not worth a thread.
const FOLDERS_PER_THREAD: usize = 32;

/// So many folders a thread takes at a time.
const FOLDERS_PER_TURN: usize = 16;

const FILE_NAMES: [&str; 2] = ["SKILL.md", "skill.md"];

/// What is known about a folder from the last scan.
#[derive(Clone, Debug)]
enum Known {
    Skill(Arc<KnownSkill>),
    Folder(Arc<KnownFolder>),
}

#[derive(Debug)]
struct KnownSkill {
    file: &'static str,
    /// `None` if it must be read again.
    stamp: Option<Stamp>,
    found: Option<Arc<FoundSkill>>,
    diagnostics: Vec<Diagnostic>,
    /// The folders inside, if nested skills are searched.
    inside: Option<Arc<KnownFolder>>,
}

#[derive(Debug)]
struct KnownFolder {
    stamp: Option<Stamp>,
    folders: Vec<OsString>,
    links: Vec<OsString>,
}

/// A folder that waits to be looked at.
#[derive(Clone, Debug)]
struct Task {
    path: PathBuf,
    depth: usize,
    /// Where it really is, if a link led here.
    real: Option<PathBuf>,
}

/// Scans one folder again and again.
#[derive(Debug)]
pub(crate) struct Scanner {
    root: PathBuf,
    limits: ScanLimits,
    nested: Nested,
    known: HashMap<OsString, Known>,
    last: Arc<SourceListing>,
    /// What the last scan said about folders and limits.
    last_notes: Vec<Diagnostic>,
}

impl Scanner {
    pub(crate) fn new(root: PathBuf, limits: ScanLimits, nested: Nested) -> Self {
        Self {
            root,
            limits,
            nested,
            known: HashMap::new(),
            last: Arc::default(),
            last_notes: vec![],
        }
    }

    /// What is there now. If nothing has changed, this is the listing of the last scan itself.
    pub(crate) fn scan(&mut self) -> Arc<SourceListing> {
        let root = match Folder::open(&self.root) {
            Ok(root) => root,
            Err(error) => {
                self.known.clear();
                let diagnostics = vec![self.unreadable(&self.root, &error)];
                self.last_notes.clone_from(&diagnostics);
                return self.publish(SourceListing { diagnostics, ..SourceListing::default() });
            }
        };
        let known = std::mem::take(&mut self.known);
        let mut pass = Pass::new(self, &root, &known);
        pass.run();
        let Pass { seen, diagnostics: notes, changed, .. } = pass;
        let changed = changed.into_inner() || seen.len() != known.len();
        self.known = seen;
        if !changed && notes == self.last_notes {
            return Arc::clone(&self.last);
        }
        self.last_notes.clone_from(&notes);
        let mut skills: Vec<(&OsString, &Arc<KnownSkill>)> = self
            .known
            .iter()
            .filter_map(|(path, known)| match known {
                Known::Skill(skill) => Some((path, skill)),
                Known::Folder(_) => None,
            })
            .collect();
        skills.sort_unstable_by_key(|(path, _)| *path);
        let mut listing = SourceListing::default();
        for (_, skill) in skills {
            listing.skills.extend(skill.found.clone());
            listing.diagnostics.extend(skill.diagnostics.iter().cloned());
        }
        listing.diagnostics.extend(notes);
        self.publish(listing)
    }

    fn publish(&mut self, listing: SourceListing) -> Arc<SourceListing> {
        if *self.last != listing {
            self.last = Arc::new(listing);
        }
        Arc::clone(&self.last)
    }

    fn unreadable(&self, path: &Path, error: &io::Error) -> Diagnostic {
        let message = format!("Cannot read {}: {error}", path.display());
        finding(Code::UnreadableFile, path, message).with_help("check the path and its permissions")
    }
}

fn finding(code: Code, path: &Path, message: String) -> Diagnostic {
    let level = code.level(prowess_format::Profile::Prowess).unwrap_or(Level::Warning);
    Diagnostic::new(code, level, message).with_path(path.display().to_string())
}

/// The `SKILL.md` files below a folder, whether they can be used or not.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct FoundFiles {
    /// Where they are, in order.
    pub files: Vec<PathBuf>,
    /// What was not searched, and why.
    pub diagnostics: Vec<Diagnostic>,
}

/// Finds the `SKILL.md` files below a folder, as a [`crate::DirectorySource`] does. Blocks.
pub fn find_skill_files(root: &Path, limits: ScanLimits) -> FoundFiles {
    let mut scanner = Scanner::new(root.to_owned(), limits, Nested::Ignore);
    scanner.scan();
    let mut files: Vec<PathBuf> = scanner
        .known
        .iter()
        .filter_map(|(path, known)| match known {
            Known::Skill(skill) => Some(root.join(path).join(skill.file)),
            Known::Folder(_) => None,
        })
        .collect();
    files.sort_unstable();
    FoundFiles { files, diagnostics: scanner.last_notes }
}

/// One run over the tree.
struct Pass<'a> {
    scanner: &'a Scanner,
    root: &'a Folder,
    known: &'a HashMap<OsString, Known>,
    seen: HashMap<OsString, Known>,
    diagnostics: Vec<Diagnostic>,
    changed: AtomicBool,
    folders: AtomicUsize,
    entries: AtomicUsize,
    bytes: AtomicU64,
    /// Folders whose inside is too deep.
    too_deep: Vec<PathBuf>,
    /// Where the folders that were looked at really are, once links are followed.
    real: HashSet<PathBuf>,
    /// Times later than this are not to be trusted.
    grain: (i64, i64),
}

/// What came of looking at a folder.
#[derive(Default)]
struct Seen {
    known: Option<Known>,
    /// Folders and links to look at next.
    folders: Vec<Task>,
    links: Vec<Task>,
    diagnostics: Vec<Diagnostic>,
    /// Whether there are folders inside that are too deep to be looked at.
    too_deep: bool,
}

impl<'a> Pass<'a> {
    fn new(scanner: &'a Scanner, root: &'a Folder, known: &'a HashMap<OsString, Known>) -> Self {
        let now = SystemTime::now().checked_sub(TIME_GRAIN).unwrap_or(UNIX_EPOCH);
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            scanner,
            root,
            known,
            seen: HashMap::with_capacity(known.len()),
            diagnostics: Vec::new(),
            changed: AtomicBool::new(false),
            folders: AtomicUsize::new(0),
            entries: AtomicUsize::new(0),
            bytes: AtomicU64::new(0),
            too_deep: Vec::new(),
            real: HashSet::new(),
            grain: (
                i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
                since.subsec_nanos().into(),
            ),
        }
    }

    fn run(&mut self) {
        self.look_everywhere();
        self.too_deep.sort_unstable();
        if let Some(first) = self.too_deep.first() {
            let limit = self.scanner.limits.depth;
            let more = match self.too_deep.len() - 1 {
                0 => String::new(),
                more => format!("; the same holds for {more} other folders"),
            };
            let message = format!("Folders more than {limit} levels down are not searched{more}");
            let diagnostic = finding(Code::ScanDepth, &self.scanner.root.join(first), message)
                .with_help("raise the limit `scan.depth`, or name the folders of the skills");
            self.diagnostics.push(diagnostic);
        }
    }

    fn look_everywhere(&mut self) {
        let root = Task { path: PathBuf::new(), depth: 0, real: None };
        let mut links = self.levels(vec![root]);
        if links.is_empty() {
            return;
        }
        // Links come last, so that what they lead to is found under its own name if it is here.
        let Ok(real_root) = std::fs::canonicalize(&self.scanner.root) else { return };
        self.real = self.seen.keys().map(|path| real_root.join(path)).collect();
        while !links.is_empty() {
            links.sort_unstable_by(|a, b| a.path.cmp(&b.path));
            let mut fresh = Vec::new();
            for link in links {
                let full = self.scanner.root.join(&link.path);
                match std::fs::canonicalize(&full) {
                    Ok(target) => {
                        if target.is_dir() && self.real.insert(target.clone()) {
                            fresh.push(Task { real: Some(target), ..link });
                        }
                    }
                    Err(error) => self.diagnostics.push(self.scanner.unreadable(&full, &error)),
                }
            }
            links = self.levels(fresh);
        }
    }

    /// Looks at folders level by level and returns the links that were met.
    fn levels(&mut self, mut level: Vec<Task>) -> Vec<Task> {
        let mut links = Vec::new();
        while !level.is_empty() {
            let results = self.look_at_all(&level);
            let mut next = Vec::new();
            for (task, seen) in level.into_iter().zip(results) {
                // The same folder by two ways is one folder.
                next.extend(seen.folders.into_iter().filter(|folder| {
                    folder.real.as_ref().is_none_or(|real| self.real.insert(real.clone()))
                }));
                links.extend(seen.links);
                self.diagnostics.extend(seen.diagnostics);
                if seen.too_deep {
                    self.too_deep.push(task.path.clone());
                }
                match seen.known {
                    Some(known) => {
                        self.seen.insert(task.path.into_os_string(), known);
                    }
                    None => self.changed.store(true, Ordering::Relaxed),
                }
            }
            level = next;
        }
        links
    }

    /// Looks at all folders of a level, on all cores, and gives the results in order.
    fn look_at_all(&self, level: &[Task]) -> Vec<Seen> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = cores.min(level.len() / FOLDERS_PER_THREAD).max(1);
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::with_capacity(level.len()));
        let work = || {
            let mut buffer = Vec::new();
            let mut own = Vec::with_capacity(level.len() / threads + FOLDERS_PER_TURN);
            loop {
                let start = next.fetch_add(FOLDERS_PER_TURN, Ordering::Relaxed);
                let end = (start + FOLDERS_PER_TURN).min(level.len());
                if start >= end {
                    break;
                }
                for (at, task) in level.iter().enumerate().take(end).skip(start) {
                    own.push((at, self.look_at(task, &mut buffer)));
                }
            }
            done.lock().unwrap_or_else(PoisonError::into_inner).append(&mut own);
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(work);
            }
            work();
        });
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_unstable_by_key(|(at, _)| *at);
        done.into_iter().map(|(_, seen)| seen).collect()
    }

    fn look_at(&self, task: &Task, buffer: &mut Vec<u8>) -> Seen {
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
        handle: io::Result<std::os::fd::OwnedFd>,
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
        let digest = prowess_format::Digest::of(buffer);
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
