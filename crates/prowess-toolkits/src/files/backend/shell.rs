//! Commands where the files are.

use std::time::Duration;

use super::BackendFuture;

/// What runs commands where the files of a backend are.
pub trait Shell: Send + Sync {
    /// Runs a command to its end. A command that fails or runs out of time is an outcome; an error
    /// means that nothing was started, or that it is not known how it ended.
    fn execute<'a>(
        &'a self,
        command: &'a str,
        limits: CommandLimits,
    ) -> BackendFuture<'a, CommandOutcome>;
}

/// How much a command may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandLimits {
    /// How long it may take.
    pub timeout: Duration,
    /// How much of what it writes is told.
    pub output_bytes: usize,
}

impl CommandLimits {
    /// So long, and so much.
    pub fn new(timeout: Duration, output_bytes: usize) -> Self {
        Self { timeout, output_bytes }
    }
}

/// What came of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandOutcome {
    /// What it wrote, standard output before standard error.
    pub output: String,
    /// The code that it ended with.
    pub exit_code: i32,
    /// Whether its time was over.
    pub timed_out: bool,
    /// Whether it wrote more than is told.
    pub truncated: bool,
}

impl CommandOutcome {
    /// A command that ended with this code and wrote this.
    pub fn new(exit_code: i32, output: impl Into<String>) -> Self {
        Self { output: output.into(), exit_code, ..Self::default() }
    }
}
