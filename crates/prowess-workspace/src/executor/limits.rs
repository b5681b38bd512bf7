//! How much a run may use.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How much a run may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Limits {
    /// How long it may take. Then it is asked to end, and then made to.
    pub wall: Duration,
    /// How long it has to end after it was asked to.
    pub grace: Duration,
    /// Seconds of processor time, per process.
    pub cpu_seconds: u64,
    /// Bytes of memory: of all processes together where that can be enforced, else of each.
    pub memory_bytes: u64,
    /// Processes and threads at once.
    pub processes: u64,
    /// Bytes of a single file.
    pub file_bytes: u64,
    /// Files that a process has open at once.
    pub open_files: u64,
    /// Bytes that the workspace may hold.
    pub disk_bytes: u64,
    /// Files and folders that the workspace may hold.
    pub disk_files: u64,
    /// Bytes of standard output, and of standard error, that are kept: half of them from the
    /// beginning, half from the end.
    pub output_bytes: usize,
    /// Bytes of standard input. What is longer is not run; there can be no more than 4 GiB.
    pub stdin_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall: Duration::from_secs(300),
            grace: Duration::from_millis(100),
            cpu_seconds: 300,
            memory_bytes: 512 << 20,
            processes: 64,
            file_bytes: 64 << 20,
            open_files: 256,
            disk_bytes: 256 << 20,
            disk_files: 10_000,
            output_bytes: 1 << 20,
            stdin_bytes: 256 << 20,
        }
    }
}

/// A limit at which a run was stopped or refused something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LimitHit {
    /// Its time was over.
    Wall,
    /// A process used all its processor time.
    Cpu,
    /// Its processes used all the memory that they may.
    Memory,
    /// It wanted more processes than it may have.
    Processes,
    /// A process wrote a file larger than it may be.
    FileSize,
    /// The workspace holds more than it may.
    Disk,
}
