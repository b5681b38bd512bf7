//! Calls that are being carried out: who sends one again meanwhile waits for it.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::message::ToolCall;
use crate::session::{AgentName, SessionKey};

tokio::task_local! {
    /// Said of whoever carries out calls. What a call does itself waits for nothing here: it would
    /// wait for itself.
    static CALLING: ();
}

/// The calls that are being carried out, by their ids.
#[derive(Default)]
pub(crate) struct InFlight {
    calls: Mutex<HashSet<Key>>,
    /// Some have ended.
    ended: Notify,
}

type Key = (SessionKey, AgentName, String);

/// Calls that were begun. When this goes, they have ended, however they did.
struct Begun<'a> {
    all: &'a InFlight,
    keys: Vec<Key>,
}

impl InFlight {
    /// Does something that carries out these calls, when none of them is being carried out.
    pub(crate) async fn during<T>(
        &self,
        session: &SessionKey,
        agent: &AgentName,
        calls: &[ToolCall],
        work: impl Future<Output = T>,
    ) -> T {
        if CALLING.try_with(|()| ()).is_ok() {
            return work.await;
        }
        let key = |call: &ToolCall| (session.clone(), agent.clone(), call.id.clone());
        let keys = calls.iter().filter(|call| !call.id.is_empty()).map(key).collect();
        let _begun = self.begin(keys).await;
        CALLING.scope((), work).await
    }

    async fn begin(&self, keys: Vec<Key>) -> Begun<'_> {
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            // Before the look: what ends after it is noticed.
            ended.as_mut().enable();
            if self.take(&keys) {
                return Begun { all: self, keys };
            }
            ended.await;
        }
    }

    /// Takes all of them, or none.
    fn take(&self, keys: &[Key]) -> bool {
        let mut calls = self.calls();
        let are_free = keys.iter().all(|key| !calls.contains(key));
        if are_free {
            calls.extend(keys.iter().cloned());
        }
        are_free
    }

    fn calls(&self) -> MutexGuard<'_, HashSet<Key>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        let mut calls = self.all.calls();
        for key in &self.keys {
            calls.remove(key);
        }
        drop(calls);
        self.all.ended.notify_waiters();
    }
}
