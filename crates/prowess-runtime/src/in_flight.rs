//! Calls that are being carried out: who sends one again meanwhile waits for it.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::message::ToolCall;
use crate::session::{AgentName, SessionKey};

tokio::task_local! {
    /// Said of whoever carries out calls. What a call does itself waits for nothing here: it would
    /// wait for itself.
    static CALLING: ();
}

/// The calls that are being carried out, each as a number. If two have the same, which hardly ever
/// happens, one waits for the other in vain.
#[derive(Default)]
pub(crate) struct InFlight {
    hasher: RandomState,
    calls: Mutex<HashSet<u64>>,
    /// Some have ended.
    ended: Notify,
}

/// Calls that were begun. When this goes, they have ended, however they did.
struct Begun<'a> {
    all: &'a InFlight,
    numbers: Vec<u64>,
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
        let number = |call: &ToolCall| self.hasher.hash_one((session, agent, &call.id));
        let numbers = calls.iter().filter(|call| !call.id.is_empty()).map(number).collect();
        let _begun = self.begin(numbers).await;
        CALLING.scope((), work).await
    }

    async fn begin(&self, numbers: Vec<u64>) -> Begun<'_> {
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            // Before the look: what ends after it is noticed.
            ended.as_mut().enable();
            if self.take(&numbers) {
                return Begun { all: self, numbers };
            }
            ended.await;
        }
    }

    /// Takes all of them, or none.
    fn take(&self, numbers: &[u64]) -> bool {
        let mut calls = self.calls();
        let are_free = numbers.iter().all(|number| !calls.contains(number));
        if are_free {
            calls.extend(numbers);
        }
        are_free
    }

    fn calls(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        let mut calls = self.all.calls();
        for number in &self.numbers {
            calls.remove(number);
        }
        drop(calls);
        self.all.ended.notify_waiters();
    }
}
