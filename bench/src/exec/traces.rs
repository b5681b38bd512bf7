//! What runs could leave behind.

use std::fs;
use std::path::Path;

use anyhow::Result;

use super::Ground;

/// How much there is of what runs could leave behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Traces {
    processes: usize,
    mounts: usize,
    cgroups: usize,
    descriptors: usize,
    files: usize,
}

impl Traces {
    /// What there is now. Processes whose parents have gone are ours from the first call on.
    pub(super) fn of(ground: &Ground) -> Result<Self> {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        Ok(Self {
            processes: children(),
            mounts: fs::read_to_string("/proc/self/mounts")?.lines().count(),
            cgroups: abandoned_groups(Path::new("/sys/fs/cgroup"), 0),
            descriptors: fs::read_dir("/proc/self/fd")?.count(),
            files: files(ground.folder.path()),
        })
    }

    /// How much more there is than before, each with its name.
    pub(super) fn since(self, before: Self) -> [(&'static str, usize); 5] {
        [
            ("processes", self.processes.saturating_sub(before.processes)),
            ("mounts", self.mounts.saturating_sub(before.mounts)),
            ("cgroups", self.cgroups.saturating_sub(before.cgroups)),
            ("descriptors", self.descriptors.saturating_sub(before.descriptors)),
            ("files and folders", self.files.saturating_sub(before.files)),
        ]
    }
}

/// The processes of which this one is the parent.
fn children() -> usize {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return 0 };
    let of = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).ok();
    threads.flatten().filter_map(of).map(|text| text.split_whitespace().count()).sum()
}

/// The groups of supervisors that have gone; others on this machine may have runs, too.
fn abandoned_groups(folder: &Path, depth: usize) -> usize {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir()));
    let is_abandoned = |name: &str| {
        let owner = name.strip_prefix("prowess-").and_then(|it| it.split_once('-'));
        owner.is_some_and(|(pid, _)| !Path::new("/proc").join(pid).exists())
    };
    folders
        .map(|entry| {
            let below = if depth < 4 { abandoned_groups(&entry.path(), depth + 1) } else { 0 };
            usize::from(is_abandoned(&entry.file_name().to_string_lossy())) + below
        })
        .sum()
}

fn files(folder: &Path) -> usize {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let below = |entry: fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => 1 + files(&entry.path()),
        _ => 1,
    };
    entries.flatten().map(below).sum()
}

/// How many processes have this word among their arguments.
pub(super) fn count_running(word: &str) -> usize {
    let Ok(entries) = fs::read_dir("/proc") else { return 0 };
    let has_word = |entry: &fs::DirEntry| {
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|it| it == word.as_bytes())
    };
    entries.flatten().filter(has_word).count()
}
