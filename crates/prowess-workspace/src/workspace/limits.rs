//! How much workspaces may hold.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How much workspaces may hold, and for how long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct WorkspaceLimits {
    /// A workspace that was not used for so many seconds is garbage (7 days).
    pub max_age_seconds: u64,
    /// So many bytes on the disk may all workspaces have together (4 GiB); beyond, those that
    /// were used longest ago are garbage. A tree with more than 128 folders one below the other
    /// cannot be measured, and is garbage at once.
    pub max_total_bytes: u64,
    /// The most bytes of one input, all files of a folder together (64 MiB).
    pub max_input_bytes: u64,
    /// The most files and folders of one input (10,000).
    pub max_input_files: u64,
    /// The most folders one below the other in an input (32).
    pub max_input_depth: u64,
    /// The most inputs that are remembered (1,000); the oldest is forgotten first.
    pub max_input_records: u64,
    /// The most entries of a folder that are listed (10,000).
    pub max_listed_entries: u64,
    /// So many milliseconds are waited for commands that use another version of a skill that is to
    /// be staged (10,000).
    pub max_skill_wait_ms: u64,
}

impl Default for WorkspaceLimits {
    fn default() -> Self {
        Self {
            max_age_seconds: 7 * 24 * 60 * 60,
            max_total_bytes: 4 << 30,
            max_input_bytes: 64 << 20,
            max_input_files: 10_000,
            max_input_depth: 32,
            max_input_records: 1_000,
            max_listed_entries: 10_000,
            max_skill_wait_ms: 10_000,
        }
    }
}

impl WorkspaceLimits {
    pub(crate) fn max_age(&self) -> Duration {
        Duration::from_secs(self.max_age_seconds)
    }
}
