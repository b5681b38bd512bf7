//! Bounded, parallel, incremental scans of a folder tree.
//!
//! A scan goes level by level. A folder with a `SKILL.md` is a skill and, by default, a leaf. What
//! has not changed since the last scan (size, times, inode) is taken from it; what was changed so
//! shortly before a scan that a second change could hide behind the same times is read again.

mod look;
mod walk;

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prowess_format::{Code, Diagnostic, Level};

use crate::beneath::{Folder, Stamp};
use crate::found::{FoundSkill, SourceListing};
use crate::limits::ScanLimits;
use crate::source::Trust;

/// Folders that are never searched.
pub const SKIPPED_FOLDERS: [&str; 11] = [
    ".git",
    ".hg",
    ".svn",
    ".bzr",
    ".jj",
    ".sl",
    ".pijul",
    "_darcs",
    "CVS",
    ".fossil",
    "node_modules",
];

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

/// Times before this, in seconds and nanoseconds, are trusted: whatever changes from now on bears
/// a later one.
pub(crate) fn trusted_until() -> (i64, i64) {
    let now = SystemTime::now().checked_sub(TIME_GRAIN).unwrap_or(UNIX_EPOCH);
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    (i64::try_from(since.as_secs()).unwrap_or(i64::MAX), since.subsec_nanos().into())
}

/// Fewer folders than this are not worth a thread.
const FOLDERS_PER_THREAD: usize = 32;

/// So many folders a thread takes at a time.
const FOLDERS_PER_TURN: usize = 16;

pub(crate) const FILE_NAMES: [&str; 2] = ["SKILL.md", "skill.md"];

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
    /// Whether a `SKILL.md` that leads nowhere stands beside the file.
    dangling: bool,
    /// The length of the file; 0 if that is not known.
    bytes: u64,
    /// Whether it was not read, because others had used up the limit.
    postponed: bool,
    found: Option<Arc<FoundSkill>>,
    diagnostics: Vec<Diagnostic>,
    /// The folders inside, if nested skills are searched.
    inside: Option<Arc<KnownFolder>>,
}

#[derive(Debug)]
struct KnownFolder {
    stamp: Option<Stamp>,
    /// How many names it holds.
    entries: usize,
    /// Whether one of them is a `SKILL.md` that leads nowhere.
    dangling: bool,
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
    trust: Trust,
    known: HashMap<OsString, Known>,
    last: Arc<SourceListing>,
    /// What the last scan said about folders and limits.
    last_notes: Vec<Diagnostic>,
}

impl Scanner {
    pub(crate) fn new(root: PathBuf, limits: ScanLimits, nested: Nested, trust: Trust) -> Self {
        Self {
            root,
            limits,
            nested,
            trust,
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

pub(crate) fn finding(code: Code, path: &Path, message: String) -> Diagnostic {
    let level = code.level(prowess_format::Profile::Prowess).unwrap_or(Level::Warning);
    Diagnostic::new(code, level, message).with_path(path.display().to_string())
}

/// The finding that a path is not UTF-8, with its bytes as `bad-\xff-name`; `None` if it is.
///
/// Every path that is printed is a text, and such a path is not the same as a text. One finding
/// per skill says so once, for whoever prints its path, instead of a second form of each path.
pub fn path_not_utf8(path: &Path) -> Option<Diagnostic> {
    if path.to_str().is_some() {
        return None;
    }
    let bytes = path.as_os_str().as_encoded_bytes().escape_ascii();
    let message = format!("The path is not UTF-8 and is not shown as it is; its bytes are {bytes}");
    Some(finding(Code::PathNotUtf8, path, message).with_help("rename the folder"))
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
    let mut scanner = Scanner::new(root.to_owned(), limits, Nested::Ignore, Trust::Trusted);
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
    /// What was counted against the limits, in the order of the tree.
    folders: usize,
    entries: usize,
    bytes: u64,
    /// What threads have read or know, in any order: reading stops at the limit.
    bytes_read: AtomicU64,
    /// The limits that were reported.
    reported: Vec<&'static str>,
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
    /// How many names the folder holds.
    entries: usize,
    /// Whether there are folders inside that are too deep to be looked at.
    too_deep: bool,
}
