//! Wakes those who wait for events of a session.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prowess_runtime::{Event, EventSink, SessionKey};
use tokio::sync::Notify;

/// So often it is looked for events where nobody tells of them.
const LOOK: Duration = Duration::from_secs(1);
/// So often it is looked for events of other processes, where our own wake those who wait.
const LOOK_IF_WOKEN: Duration = Duration::from_secs(5);

/// Hears of every event that the engine commits, and wakes the streams that wait for it. Give it to
/// the engine as a sink and to the server, so that streams need not wait for their next look.
///
/// ```
/// use std::sync::Arc;
/// use prowess_catalog::Catalog;
/// use prowess_runtime::Runtime;
/// use prowess_server::SessionEvents;
///
/// let events = SessionEvents::new();
/// let runtime = Runtime::builder(Catalog::builder().build())
///     .sink(Arc::new(events.clone()))
///     .build()
///     .unwrap();
/// # let _ = runtime;
/// ```
#[derive(Clone, Debug, Default)]
pub struct SessionEvents {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Whether the engine has told us anything: then it tells us everything.
    has_heard: AtomicBool,
    waiting: AtomicUsize,
    sessions: Mutex<HashMap<SessionKey, Arc<Notify>>>,
}

impl SessionEvents {
    /// Nobody waits yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// So often those who wait look by themselves: for what other processes do, and, as long as the
    /// engine has told us nothing, for everything.
    pub(crate) fn look_every(&self) -> Duration {
        if self.shared.has_heard.load(Ordering::Relaxed) { LOOK_IF_WOKEN } else { LOOK }
    }

    /// Waits for a session from now on.
    pub(crate) fn subscribe(&self, session: &SessionKey) -> Subscription {
        self.shared.waiting.fetch_add(1, Ordering::SeqCst);
        let mut sessions = self.shared.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let notify = Arc::clone(sessions.entry(session.clone()).or_default());
        Subscription { shared: Arc::clone(&self.shared), session: session.clone(), notify }
    }
}

impl SessionEvents {
    /// Something has happened in a session, wherever that was.
    pub(crate) fn wake(&self, session: &SessionKey) {
        if self.shared.waiting.load(Ordering::SeqCst) == 0 {
            return;
        }
        let sessions = self.shared.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(notify) = sessions.get(session) {
            notify.notify_waiters();
        }
    }

    /// Something may have happened in any session.
    pub(crate) fn wake_all(&self) {
        let sessions = self.shared.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.values().for_each(|notify| notify.notify_waiters());
    }
}

impl EventSink for SessionEvents {
    fn event(&self, session: &SessionKey, _: &Event) {
        self.shared.has_heard.store(true, Ordering::Relaxed);
        self.wake(session);
    }
}

/// Somebody who waits for events of a session.
pub(crate) struct Subscription {
    shared: Arc<Shared>,
    session: SessionKey,
    pub(crate) notify: Arc<Notify>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut sessions = self.shared.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        // The map and this one hold it.
        if Arc::strong_count(&self.notify) <= 2 {
            sessions.remove(&self.session);
        }
        self.shared.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_woken_looks_seldom() {
        let (events, agent) = (SessionEvents::new(), prowess_runtime::AgentName::default());
        assert_eq!(events.look_every(), LOOK);
        let event = Event::new(prowess_runtime::EventKind::ToolCalled, &agent, 0, "");
        events.clone().event(&"demo".parse().unwrap(), &event);
        assert_eq!(events.look_every(), LOOK_IF_WOKEN);
    }

    #[test]
    fn whoever_does_not_wait_any_more_is_forgotten() {
        let events = SessionEvents::new();
        let session: SessionKey = "demo".parse().unwrap();
        let count = || events.shared.sessions.lock().unwrap().len();
        let (one, two) = (events.subscribe(&session), events.subscribe(&session));
        assert_eq!(count(), 1);
        drop(one);
        assert_eq!(count(), 1);
        drop(two);
        assert_eq!((count(), events.shared.waiting.load(Ordering::SeqCst)), (0, 0));
    }
}
