//! Which workspaces are garbage.

use std::time::SystemTime;

use rustix::fs::FileType;

use super::{WorkspaceError, WorkspaceId, WorkspaceLimits};
use crate::beneath::{Folder, Stamp};

/// What became of the garbage.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct GarbageReport {
    /// What was removed, in the order in which it was.
    pub removed: Vec<RemovedWorkspace>,
    /// What should have been removed and could not be.
    pub failed: Vec<(WorkspaceId, WorkspaceError)>,
    /// How many workspaces are left, those in use included.
    pub kept: u64,
    /// How many bytes they have on the disk.
    pub kept_bytes: u64,
}

/// A workspace that was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemovedWorkspace {
    /// Which one.
    pub id: WorkspaceId,
    /// How many bytes it had on the disk.
    pub bytes: u64,
}

impl GarbageReport {
    pub(super) fn removed_bytes(&self) -> u64 {
        self.removed.iter().map(|removed| removed.bytes).fold(0, u64::saturating_add)
    }

    pub(super) fn note_removed(&mut self, id: WorkspaceId, bytes: u64) {
        self.removed.push(RemovedWorkspace { id, bytes });
    }

    pub(super) fn note_kept(&mut self, bytes: u64) {
        self.kept += 1;
        self.kept_bytes = self.kept_bytes.saturating_add(bytes);
    }
}

/// A workspace that may be garbage.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) id: WorkspaceId,
    pub(super) used_at: SystemTime,
    pub(super) size: Size,
}

/// How large a tree is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) bytes: u64,
    /// Whether there is more, deeper than was looked.
    pub(super) has_more: bool,
}

/// A workspace, and when it is to be removed.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) id: WorkspaceId,
    pub(super) size: Size,
    is_old: bool,
    /// How many bytes have to be removed of all, so that the rest is small enough.
    excess: u64,
}

impl Judged {
    /// Whether it is garbage after so many bytes have been removed.
    pub(super) fn is_garbage(&self, removed: u64) -> bool {
        self.is_old || removed < self.excess
    }
}

/// The order in which workspaces are to be removed: the old ones, those that are too deep to be
/// measured, then whichever was used longest ago.
pub(super) fn in_order(
    mut all: Vec<Candidate>,
    now: SystemTime,
    limits: &WorkspaceLimits,
) -> Vec<Judged> {
    let is_old = |candidate: &Candidate| {
        // What was used in the future was used just now.
        let age = now.duration_since(candidate.used_at).unwrap_or_default();
        age >= limits.max_age()
    };
    all.sort_by(|a, b| {
        let rank = |it: &Candidate| (!is_old(it), !it.size.has_more, it.used_at);
        rank(a).cmp(&rank(b)).then_with(|| a.id.cmp(&b.id))
    });
    let total = all.iter().map(|it| it.size.bytes).fold(0, u64::saturating_add);
    let excess = total.saturating_sub(limits.max_total_bytes);
    all.into_iter()
        .map(|candidate| Judged {
            is_old: is_old(&candidate) || candidate.size.has_more,
            id: candidate.id,
            size: candidate.size,
            excess,
        })
        .collect()
}

/// How deep a tree is measured.
const MOST_DEPTH: usize = 128;
/// What an entry costs besides its content.
const ENTRY_BYTES: u64 = 256;

/// How large a tree is on the disk. What cannot be read does not count.
pub(super) fn measure(folder: Folder) -> Size {
    let mut size = Size::default();
    let mut stack: Vec<_> = folder.entries().map(|entries| (folder, entries)).into_iter().collect();
    while let Some((folder, entries)) = stack.last_mut() {
        let Some(entry) = entries.next() else {
            stack.pop();
            continue;
        };
        let Ok(entry) = entry else { continue };
        let stamp = folder.look(&entry.name);
        let bytes = stamp.as_ref().map_or(0, |stamp: &Stamp| stamp.disk_bytes);
        size.bytes = size.bytes.saturating_add(bytes).saturating_add(ENTRY_BYTES);
        if stamp.is_ok_and(|stamp| stamp.kind() == FileType::Directory) {
            let Ok(inner) = folder.enter(&entry.name) else { continue };
            if stack.len() >= MOST_DEPTH {
                size.has_more = true;
            } else if let Ok(entries) = inner.entries() {
                stack.push((inner, entries));
            }
        }
    }
    size
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::{Candidate, Size, in_order};
    use crate::workspace::{WorkspaceId, WorkspaceLimits};

    /// Which of the workspaces, given as (name, age in seconds, bytes, has more), are removed.
    fn removed(all: &[(&str, u64, u64, bool)], max_age: u64, max_bytes: u64) -> Vec<String> {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let candidates = all.iter().map(|(name, age, bytes, has_more)| Candidate {
            id: WorkspaceId::of_folder(&format!("ws_{name}")).unwrap(),
            used_at: now - Duration::from_secs(*age),
            size: Size { bytes: *bytes, has_more: *has_more },
        });
        let limits = WorkspaceLimits {
            max_age_seconds: max_age,
            max_total_bytes: max_bytes,
            ..WorkspaceLimits::default()
        };
        let mut bytes = 0;
        let mut names = Vec::new();
        for judged in in_order(candidates.collect(), now, &limits) {
            if judged.is_garbage(bytes) {
                bytes += judged.size.bytes;
                names.push(judged.id.as_str()[3..].to_owned());
            }
        }
        names
    }

    #[test]
    fn age_and_size_decide() {
        let all = [("a", 5, 10, false), ("b", 50, 10, false), ("c", 20, 10, false)];
        assert_eq!(removed(&all, 100, 100), Vec::<String>::new());
        assert_eq!(removed(&all, 100, 30), Vec::<String>::new());
        assert_eq!(removed(&all, 100, 29), ["b"]);
        assert_eq!(removed(&all, 100, 20), ["b"]);
        assert_eq!(removed(&all, 100, 19), ["b", "c"]);
        assert_eq!(removed(&all, 100, 0), ["b", "c", "a"]);
        assert_eq!(removed(&all, 50, 100), ["b"]);
        assert_eq!(removed(&all, 51, 100), Vec::<String>::new());
        assert_eq!(removed(&all, 20, 100), ["b", "c"]);
        assert_eq!(removed(&all, 0, 100), ["b", "c", "a"]);
        // What age removes counts for the size.
        assert_eq!(removed(&all, 50, 20), ["b"]);
    }

    #[test]
    fn what_is_too_deep_to_be_measured_goes_before_the_innocent() {
        let all = [("a", 50, 10, false), ("deep", 5, 1, true), ("b", 20, 10, false)];
        assert_eq!(removed(&all, 100, 100), ["deep"]);
        assert_eq!(removed(&all, 100, 20), ["deep"]);
    }
}
