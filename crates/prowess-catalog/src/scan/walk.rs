//! From folder to folder: level by level, on all cores, links last.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use prowess_format::Code;

use super::look::{Reading, is_same};
use super::{
    FOLDERS_PER_THREAD, FOLDERS_PER_TURN, Known, Pass, Scanner, Seen, Task, finding, trusted_until,
};
use crate::beneath::Folder;

impl<'a> Pass<'a> {
    pub(super) fn new(
        scanner: &'a Scanner,
        root: &'a Folder,
        known: &'a HashMap<OsString, Known>,
    ) -> Self {
        Self {
            scanner,
            root,
            known,
            seen: HashMap::with_capacity(known.len()),
            diagnostics: Vec::new(),
            changed: AtomicBool::new(false),
            folders: 0,
            entries: 0,
            bytes: 0,
            bytes_read: AtomicU64::new(0),
            reported: Vec::new(),
            too_deep: Vec::new(),
            real: HashSet::new(),
            grain: trusted_until(),
        }
    }

    pub(super) fn run(&mut self) {
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
                    Err(error) => {
                        let message =
                            format!("The link {} cannot be followed: {error}", full.display());
                        let diagnostic = finding(Code::DanglingLink, &full, message);
                        self.diagnostics.push(diagnostic.with_help("mend or remove it"));
                    }
                }
            }
            links = self.levels(fresh);
        }
    }

    /// Looks at folders level by level and returns the links that were met.
    ///
    /// Threads look in any order; what counts against the limits is counted here, in the order of
    /// the tree, so that the same tree always gives the same result.
    fn levels(&mut self, mut level: Vec<Task>) -> Vec<Task> {
        let mut links = Vec::new();
        while !level.is_empty() {
            let room = self.scanner.limits.folders.saturating_sub(self.folders);
            if let Some(first) = level.get(room) {
                self.report_limit(
                    &first.path.clone(),
                    "folders",
                    self.scanner.limits.folders as u64,
                );
                level.truncate(room);
            }
            self.folders += level.len();
            let results = self.look_at_all(&level);
            let mut next = Vec::new();
            for (task, mut seen) in level.into_iter().zip(results) {
                self.count_bytes(&task, &mut seen);
                self.count_entries(&task, &mut seen);
                // The same folder by two ways is one folder.
                next.extend(seen.folders.into_iter().filter(|folder| {
                    folder.real.as_ref().is_none_or(|real| self.real.insert(real.clone()))
                }));
                links.extend(seen.links);
                self.diagnostics.extend(seen.diagnostics);
                if seen.too_deep {
                    self.too_deep.push(task.path.clone());
                }
                let before = self.known.get(task.path.as_os_str());
                if !is_same(before, seen.known.as_ref()) {
                    self.changed.store(true, Ordering::Relaxed);
                }
                if let Some(known) = seen.known {
                    self.seen.insert(task.path.into_os_string(), known);
                }
            }
            level = next;
        }
        links
    }

    /// Takes a skill only while the limit on bytes allows.
    fn count_bytes(&mut self, task: &Task, seen: &mut Seen) {
        let Some(Known::Skill(skill)) = &seen.known else { return };
        let limit = self.scanner.limits.bytes;
        if self.bytes.saturating_add(skill.bytes) > limit {
            seen.known = None;
            self.report_limit(&task.path, "bytes", limit);
            return;
        }
        self.bytes += skill.bytes;
        // Others were faster, but this one comes first.
        if skill.postponed {
            *seen = self.look_at(task, Reading::Always, &mut Vec::new());
        }
    }

    /// Follows the names in a folder only while the limit on entries allows.
    fn count_entries(&mut self, task: &Task, seen: &mut Seen) {
        let limit = self.scanner.limits.entries;
        let room = limit.saturating_sub(self.entries);
        self.entries = self.entries.saturating_add(seen.entries);
        if seen.entries <= room {
            return;
        }
        self.report_limit(&task.path, "entries", limit as u64);
        let mut names: Vec<PathBuf> =
            seen.folders.iter().chain(&seen.links).map(|task| task.path.clone()).collect();
        names.sort_unstable();
        names.truncate(room);
        let kept = |task: &Task| names.binary_search(&task.path).is_ok();
        seen.folders.retain(kept);
        seen.links.retain(kept);
    }

    fn report_limit(&mut self, path: &std::path::Path, name: &'static str, limit: u64) {
        if self.reported.contains(&name) {
            return;
        }
        self.reported.push(name);
        let message = format!("The search stopped here: the limit of {limit} {name} is reached");
        let help = format!("raise the limit `scan.{name}`, or name the folders of the skills");
        let path = self.scanner.root.join(path);
        self.diagnostics.push(finding(Code::ScanLimit, &path, message).with_help(help));
    }

    /// Looks at all folders of a level, on all cores, and gives the results in order.
    fn look_at_all(&self, level: &[Task]) -> Vec<Seen> {
        let threads = match level.len() / FOLDERS_PER_THREAD {
            0 | 1 => 1,
            worth => worth.min(cores()),
        };
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
                    own.push((at, self.look_at(task, Reading::WithinLimit, &mut buffer)));
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
}

/// How many cores there are. Finding out takes as long as reading ten skills, so it is done once.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}
