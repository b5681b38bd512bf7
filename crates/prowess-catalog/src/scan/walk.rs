//! From folder to folder: level by level, on all cores, links last.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use prowess_format::Code;

use super::{
    FOLDERS_PER_THREAD, FOLDERS_PER_TURN, Known, Pass, Scanner, Seen, TIME_GRAIN, Task, finding,
};
use crate::beneath::Folder;

impl<'a> Pass<'a> {
    pub(super) fn new(
        scanner: &'a Scanner,
        root: &'a Folder,
        known: &'a HashMap<OsString, Known>,
    ) -> Self {
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
}
