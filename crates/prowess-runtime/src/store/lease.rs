//! Sessions that several engines share: one works on a session at a time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;

use super::{
    Fence, Revision, SessionStore, SessionSummary, StoreError, StoreFuture, StoredSession,
};
use crate::event::Event;
use crate::message::Message;
use crate::session::{AgentName, SessionDelta, SessionKey};

/// How an engine takes sessions that it shares with others.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseSettings {
    /// Who it is. No two engines may have the same name.
    pub holder: String,
    /// So long others wait for it if it dies. It prolongs its leases three times as often.
    pub time: Duration,
    /// So long it waits for others before it says that the session is busy. Longer than a lease
    /// lasts, so that one that has died is outwaited.
    pub patience: Duration,
}

impl LeaseSettings {
    /// 15 seconds for a lease, 20 seconds of patience.
    pub fn new(holder: impl Into<String>) -> Self {
        let (time, patience) = (Duration::from_secs(15), Duration::from_secs(20));
        Self { holder: holder.into(), time, patience }
    }

    /// Another time than 15 seconds.
    pub fn with_time(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// Another patience than 20 seconds.
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }
}

/// The times between two attempts to take a session.
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

tokio::task_local! {
    /// What this task holds.
    static HELD: Arc<Held>;
}

/// A session that a task holds, and what it holds besides.
struct Held {
    sessions: Arc<LeasedSessions>,
    key: SessionKey,
    slot: Arc<Slot>,
    outer: Option<Arc<Held>>,
}

impl Held {
    /// What this task holds a session of this store with.
    fn slot(sessions: &LeasedSessions, key: &SessionKey) -> Option<Arc<Slot>> {
        let mut held = HELD.try_with(Arc::clone).ok();
        while let Some(it) = held {
            if std::ptr::eq(&*it.sessions, sessions) && it.key == *key {
                return Some(Arc::clone(&it.slot));
            }
            held = it.outer.clone();
        }
        None
    }
}

/// A store of sessions that are taken before they are changed. What is committed by a task that
/// holds a session carries the number of the lease that it was taken with: whoever has lost that one
/// changes nothing any more, even if somebody else of the same engine holds the session by now.
pub(crate) struct LeasedSessions {
    sessions: Arc<dyn SessionStore>,
    settings: LeaseSettings,
    /// Those that are held, and by how many at once.
    slots: Mutex<HashMap<SessionKey, Arc<Slot>>>,
}

/// A session that this engine holds, or is about to.
#[derive(Default)]
struct Slot {
    /// How many hold it; changed only while the slots are locked.
    users: AtomicUsize,
    /// One takes it for all.
    taking: tokio::sync::Mutex<()>,
    taken: Mutex<Option<Taken>>,
}

struct Taken {
    fence: Fence,
    renewal: AbortHandle,
}

impl Slot {
    fn taken(&self) -> MutexGuard<'_, Option<Taken>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fence(&self) -> Option<Fence> {
        self.taken().as_ref().map(|taken| taken.fence)
    }
}

/// Holds a session: as long as this is there, no other engine changes it. Several parts of one
/// engine may hold a session at the same time.
#[must_use]
pub struct Hold {
    held: Option<(Arc<LeasedSessions>, SessionKey, Arc<Slot>)>,
}

impl std::fmt::Debug for Hold {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let session = self.held.as_ref().map(|(_, key, _)| key);
        formatter.debug_struct("Hold").field("session", &session).finish_non_exhaustive()
    }
}

impl Hold {
    /// Of a session that nobody else can change.
    pub(crate) fn unshared() -> Self {
        Self { held: None }
    }

    /// Does something with this hold: whatever it commits to the session, and whoever holds it
    /// meanwhile, does so with the same lease, or not at all.
    pub async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        let Some((sessions, key, slot)) = &self.held else { return work.await };
        let held = Held {
            sessions: Arc::clone(sessions),
            key: key.clone(),
            slot: Arc::clone(slot),
            outer: HELD.try_with(Arc::clone).ok(),
        };
        HELD.scope(Arc::new(held), work).await
    }

    /// Gives the session back, and waits until others can take it.
    pub async fn release(mut self) {
        if let Some((sessions, key, slot)) = self.held.take()
            && let Some(fence) = sessions.leave(&key, &slot)
        {
            sessions.give_back(key, fence).await;
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some((sessions, key, slot)) = self.held.take()
            && let Some(fence) = sessions.leave(&key, &slot)
            && let Ok(tokio) = tokio::runtime::Handle::try_current()
        {
            tokio.spawn(async move { sessions.give_back(key, fence).await });
        }
    }
}

impl LeasedSessions {
    pub(crate) fn new(sessions: Arc<dyn SessionStore>, settings: LeaseSettings) -> Arc<Self> {
        Arc::new(Self { sessions, settings, slots: Mutex::default() })
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<SessionKey, Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a session, or waits for it.
    pub(crate) async fn hold(self: &Arc<Self>, key: &SessionKey) -> Result<Hold, StoreError> {
        let slot = {
            let own = Held::slot(self, key);
            let mut slots = self.slots();
            let slot = own.unwrap_or_else(|| Arc::clone(slots.entry(key.clone()).or_default()));
            slot.users.fetch_add(1, Ordering::Relaxed);
            slot
        };
        // From here on it is left again, whatever happens.
        let hold = Hold { held: Some((Arc::clone(self), key.clone(), Arc::clone(&slot))) };
        let _turn = slot.taking.lock().await;
        if slot.fence().is_none() {
            let fence = self.take(key).await?;
            let (sessions, own) = (Arc::downgrade(self), Arc::downgrade(&slot));
            let renewal = tokio::spawn(renew(sessions, own, key.clone(), fence));
            *slot.taken() = Some(Taken { fence, renewal: renewal.abort_handle() });
        }
        Ok(hold)
    }

    async fn take(&self, key: &SessionKey) -> Result<Fence, StoreError> {
        let LeaseSettings { holder, time, patience } = &self.settings;
        let begun = Instant::now();
        let mut pause = SHORTEST_PAUSE;
        loop {
            let expires_in = match self.sessions.lease(key, holder, *time).await {
                Err(StoreError::Leased { expires_in, .. }) if begun.elapsed() < *patience => {
                    expires_in
                }
                taken => return taken,
            };
            tokio::time::sleep(pause.min(expires_in).max(SHORTEST_PAUSE)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// One fewer holds it; the lease, if nobody does any more.
    fn leave(&self, key: &SessionKey, slot: &Slot) -> Option<Fence> {
        let mut slots = self.slots();
        if slot.users.fetch_sub(1, Ordering::Relaxed) > 1 {
            return None;
        }
        remove(&mut slots, key, slot);
        let taken = slot.taken().take()?;
        taken.renewal.abort();
        Some(taken.fence)
    }

    async fn give_back(&self, key: SessionKey, fence: Fence) {
        if let Err(error) = self.sessions.release(&key, fence).await {
            tracing::warn!(target: "prowess::runtime", session = %key, "not given back: {error}");
        }
    }

    /// The lease of a slot is lost: whoever comes from now on takes the session anew.
    fn forget(&self, key: &SessionKey, slot: &Slot) {
        remove(&mut self.slots(), key, slot);
    }
}

/// Takes a slot out, unless another one is in its place already.
fn remove(slots: &mut HashMap<SessionKey, Arc<Slot>>, key: &SessionKey, slot: &Slot) {
    if slots.get(key).is_some_and(|it| std::ptr::eq(&**it, slot)) {
        slots.remove(key);
    }
}

/// Prolongs a lease again and again, until it is gone.
async fn renew(sessions: Weak<LeasedSessions>, slot: Weak<Slot>, key: SessionKey, fence: Fence) {
    loop {
        let Some(time) = sessions.upgrade().map(|it| it.settings.time) else { return };
        tokio::time::sleep(time / 3).await;
        let Some(sessions) = sessions.upgrade() else { return };
        match sessions.sessions.renew(&key, fence, time).await {
            Err(error @ StoreError::Fenced { .. }) => {
                tracing::warn!(target: "prowess::runtime", session = %key, "{error}");
                if let Some(slot) = slot.upgrade() {
                    sessions.forget(&key, &slot);
                }
                return;
            }
            Err(error) => {
                tracing::warn!(target: "prowess::runtime", session = %key, "not renewed: {error}");
            }
            Ok(()) => {}
        }
    }
}

impl SessionStore for LeasedSessions {
    fn commit<'a>(
        &'a self,
        key: &'a SessionKey,
        expected: Revision,
        delta: SessionDelta,
        events: Vec<Event>,
    ) -> StoreFuture<'a, Revision> {
        if delta.fence.is_some() {
            return self.sessions.commit(key, expected, delta, events);
        }
        let slot = Held::slot(self, key).or_else(|| self.slots().get(key).cloned());
        let fence = slot.as_ref().and_then(|slot| slot.fence());
        let commit = self.sessions.commit(key, expected, delta.with_fence(fence), events);
        Box::pin(async move {
            let done = commit.await;
            if let (Err(StoreError::Fenced { .. }), Some(slot)) = (&done, &slot) {
                self.forget(key, slot);
            }
            done
        })
    }

    fn get<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<StoredSession>> {
        self.sessions.get(key)
    }

    fn messages<'a>(
        &'a self,
        key: &'a SessionKey,
        agent: &'a AgentName,
    ) -> StoreFuture<'a, Vec<Message>> {
        self.sessions.messages(key, agent)
    }

    fn events<'a>(
        &'a self,
        key: &'a SessionKey,
        skip: u64,
        most: usize,
    ) -> StoreFuture<'a, Vec<Event>> {
        self.sessions.events(key, skip, most)
    }

    fn list(&self) -> StoreFuture<'_, Vec<SessionSummary>> {
        self.sessions.list()
    }

    fn delete<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, bool> {
        self.sessions.delete(key)
    }

    fn lease<'a>(
        &'a self,
        key: &'a SessionKey,
        holder: &'a str,
        time: Duration,
    ) -> StoreFuture<'a, Fence> {
        self.sessions.lease(key, holder, time)
    }

    fn renew<'a>(
        &'a self,
        key: &'a SessionKey,
        fence: Fence,
        time: Duration,
    ) -> StoreFuture<'a, ()> {
        self.sessions.renew(key, fence, time)
    }

    fn release<'a>(&'a self, key: &'a SessionKey, fence: Fence) -> StoreFuture<'a, ()> {
        self.sessions.release(key, fence)
    }
}
