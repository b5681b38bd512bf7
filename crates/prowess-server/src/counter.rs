//! Counts uses of skills, many of them in one commit.

use std::sync::Arc;

use prowess_store::{UsageStore, Use, VersionError};
use tokio::sync::{mpsc, oneshot};

/// So many uses are counted in one commit.
const USES_PER_COMMIT: usize = 1024;

type Waiting = (Use, oneshot::Sender<Result<(), VersionError>>);

/// Counts uses of skills. Those that come while others are committed share the next commit.
#[derive(Clone, Debug)]
pub(crate) struct Counter {
    uses: mpsc::Sender<Waiting>,
}

impl Counter {
    /// Begins to count, until nobody can ask for it any more.
    pub(crate) fn start(usage: Arc<dyn UsageStore>) -> Self {
        let (uses, waiting) = mpsc::channel(USES_PER_COMMIT);
        tokio::spawn(count(usage, waiting));
        Self { uses }
    }

    /// Counts a use. When this is done, it is on the disk.
    pub(crate) async fn count(&self, it: Use) -> Result<(), VersionError> {
        let gone = || VersionError::Unavailable("uses are not counted any more".to_owned());
        let (answer, answered) = oneshot::channel();
        self.uses.send((it, answer)).await.map_err(|_| gone())?;
        answered.await.unwrap_or_else(|_| Err(gone()))
    }
}

async fn count(usage: Arc<dyn UsageStore>, mut waiting: mpsc::Receiver<Waiting>) {
    let mut together = Vec::with_capacity(USES_PER_COMMIT);
    while waiting.recv_many(&mut together, USES_PER_COMMIT).await > 0 {
        let (uses, answers): (Vec<Use>, Vec<_>) = together.drain(..).unzip();
        let counted = usage.record(uses).await;
        for answer in answers {
            // Whoever does not wait any more is counted all the same.
            let _ = answer.send(counted.clone());
        }
    }
}
