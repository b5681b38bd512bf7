//! Workspaces that nobody uses any more.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use prowess_workspace::Workspaces;

/// How long it is at least between two looks for garbage.
const EVERY: Duration = Duration::from_secs(3600);

/// When somebody looked for garbage last.
#[derive(Debug, Default)]
pub(crate) struct Garbage {
    looked: Mutex<Option<Instant>>,
}

impl Garbage {
    /// Removes, beside other work, the workspaces that are too old or too large, unless that was
    /// done a short while ago.
    pub(crate) fn look(&self, workspaces: &Workspaces) {
        let now = Instant::now();
        {
            let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
            if looked.is_some_and(|looked| now.duration_since(looked) < EVERY) {
                return;
            }
            *looked = Some(now);
        }
        let workspaces = workspaces.clone();
        tokio::task::spawn_blocking(move || match workspaces.collect_garbage() {
            Ok(report) => {
                let (removed, failed) = (report.removed.len(), report.failed.len());
                tracing::debug!(removed, failed, kept = report.kept, "workspaces are looked at");
            }
            Err(error) => tracing::warn!(%error, "workspaces cannot be collected"),
        });
    }
}
