//! What is known of a source.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prowess_format::Digest;
use serde::{Deserialize, Serialize};

use super::fetch::Validators;
use super::location::Location;
use crate::archive::ArchiveKind;
use crate::remote_limits::RemoteLimits;

/// What is known of a source: which tree it is, and how to ask whether that has changed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) location: String,
    /// What was fetched.
    pub(super) digest: Digest,
    pub(super) tree: String,
    /// The digest of the tree's manifest.
    pub(super) manifest: Digest,
    /// When the server was asked last, in seconds since 1970.
    pub(super) checked: u64,
    #[serde(default)]
    pub(super) validators: Validators,
    /// Which of several URLs it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) url: Option<String>,
    /// The file, if it is on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stamp: Option<FileStamp>,
    /// When fetching failed last, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failed: Option<Failure>,
    /// What the skills of an index were fetched as.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) parts: BTreeMap<String, Part>,
    /// What there is to say about the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) problems: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Failure {
    pub(super) at: u64,
    pub(super) code: String,
    pub(super) message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) digest: Digest,
    pub(super) kind: ArchiveKind,
}

/// What identifies the content of a file without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileStamp {
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    inode: u64,
    device: u64,
}

/// Times that are at most so old when a file is read are not believed: a second change could hide
/// behind the same times.
const GRAIN: Duration = Duration::from_millis(20);

impl FileStamp {
    /// The stamp of a file that is read now; `None` if its times are too young to be believed.
    pub(super) fn settled(metadata: &fs::Metadata) -> Option<Self> {
        let stamp = Self::of(metadata);
        let (seconds, nanoseconds) = stamp.modified.max(stamp.changed);
        let age = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        let latest = Duration::new(seconds.try_into().ok()?, nanoseconds.try_into().ok()?);
        (latest + GRAIN < age).then_some(stamp)
    }

    pub(super) fn of(metadata: &fs::Metadata) -> Self {
        Self {
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            inode: metadata.ino(),
            device: metadata.dev(),
        }
    }
}

impl Record {
    /// The record of this source, if there is one that can be read.
    pub(super) fn read(path: &Path, location: &Location) -> Option<Self> {
        Self::read_any(path)
            .filter(|record| record.location == location.key())
            .filter(|record| location.pin().is_none_or(|pin| pin == record.digest))
    }

    pub(super) fn read_any(path: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    /// Whether the source need not be asked at a time.
    pub(super) fn is_fresh(&self, location: &Location, limits: &RemoteLimits, now: u64) -> bool {
        if let Some(pin) = location.pin() {
            return self.digest == pin;
        }
        if let Some(path) = location.file() {
            let stamp = fs::metadata(path).ok().map(|metadata| FileStamp::of(&metadata));
            return self.stamp.is_some() && stamp == self.stamp;
        }
        is_within(self.checked, limits.fresh_seconds, now)
    }

    /// Why it need not be asked again yet, if asking failed shortly before.
    pub(super) fn recent_failure(&self, limits: &RemoteLimits, now: u64) -> Option<&Failure> {
        self.failed.as_ref().filter(|failure| is_within(failure.at, limits.retry_seconds, now))
    }

    pub(super) fn status(&self) -> SourceStatus {
        let skills = self.parts.len();
        SourceStatus {
            digest: self.digest,
            checked: self.checked,
            failure: self.failed.as_ref().map(|failure| failure.message.clone()),
            index_skills: (skills > 0).then_some(skills),
        }
    }
}

/// Whether a moment was at most so many seconds ago. A moment to come was never.
fn is_within(moment: u64, seconds: u64, now: u64) -> bool {
    now.checked_sub(moment).is_some_and(|age| age < seconds)
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// What is known of a source without asking it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SourceStatus {
    /// What was fetched: put it behind `#sha256=` to pin it.
    pub digest: Digest,
    /// When it was asked last, in seconds since 1970.
    pub checked: u64,
    /// Why asking failed since, if it did.
    pub failure: Option<String>,
    /// The skills that were fetched one by one.
    pub index_skills: Option<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freshness_ends_on_the_second_and_no_clock_that_goes_back_prolongs_it() {
        for (moment, seconds, now, expected) in [
            (100, 10, 100, true),
            (100, 10, 109, true),
            (100, 10, 110, false),
            (100, 0, 100, false),
            (100, 10, 99, false),
        ] {
            assert_eq!(is_within(moment, seconds, now), expected, "{moment} {seconds} {now}");
        }
    }
}
