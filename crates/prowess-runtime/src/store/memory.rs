//! Sessions in memory.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::{
    Fence, Lifetime, Revision, SessionStore, SessionSummary, StoreError, StoreFuture, StoredSession,
};
use crate::event::Event;
use crate::message::Message;
use crate::session::{AgentName, Session, SessionDelta, SessionKey};

/// Sessions that are gone when the process is.
#[derive(Debug)]
pub struct MemorySessions {
    lifetime: Lifetime,
    hasher: RandomState,
    /// Several, so that sessions do not wait for each other.
    shelves: [Mutex<HashMap<SessionKey, Entry>>; 16],
    leases: Mutex<Leases>,
}

#[derive(Debug, Default)]
struct Leases {
    last: u64,
    held: HashMap<SessionKey, Lease>,
}

#[derive(Debug)]
struct Lease {
    fence: Fence,
    holder: String,
    expires: Timestamp,
}

#[derive(Debug)]
struct Entry {
    revision: Revision,
    session: Session,
    messages: BTreeMap<AgentName, Vec<Message>>,
    events: Vec<Event>,
    created: Timestamp,
    updated: Timestamp,
    expires: Option<Timestamp>,
}

impl Default for MemorySessions {
    fn default() -> Self {
        Self {
            lifetime: Lifetime::default(),
            hasher: RandomState::new(),
            shelves: std::array::from_fn(|_| Mutex::default()),
            leases: Mutex::default(),
        }
    }
}

impl MemorySessions {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// How long sessions live after their last commit.
    pub fn with_lifetime(mut self, lifetime: Lifetime) -> Self {
        self.lifetime = lifetime;
        self
    }

    fn shelf(&self, key: &SessionKey) -> MutexGuard<'_, HashMap<SessionKey, Entry>> {
        let at = self.hasher.hash_one(key) as usize % self.shelves.len();
        self.shelves[at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leases(&self) -> MutexGuard<'_, Leases> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lease_now(
        &self,
        key: &SessionKey,
        holder: &str,
        time: Duration,
    ) -> Result<Fence, StoreError> {
        let now = self.lifetime.now();
        let mut leases = self.leases();
        if let Some(lease) = leases.held.get(key)
            && lease.holder != holder
            && let Some(error) = lease.still_held(now)
        {
            return Err(error);
        }
        leases.last += 1;
        let fence = Fence(leases.last);
        let expires = now.checked_add(time).unwrap_or(Timestamp::MAX);
        leases.held.insert(key.clone(), Lease { fence, holder: holder.to_owned(), expires });
        Ok(fence)
    }

    fn renew_now(&self, key: &SessionKey, fence: Fence, time: Duration) -> Result<(), StoreError> {
        let now = self.lifetime.now();
        match self.leases().held.get_mut(key).filter(|lease| lease.fence == fence) {
            Some(lease) => {
                lease.expires = now.checked_add(time).unwrap_or(Timestamp::MAX);
                Ok(())
            }
            None => Err(StoreError::Fenced { key: key.clone(), fence }),
        }
    }

    /// Whether whoever has this lease, or none, may change a session.
    fn check_fence(
        &self,
        key: &SessionKey,
        fence: Option<Fence>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let leases = self.leases();
        let held = leases.held.get(key);
        match fence {
            Some(fence) if held.is_none_or(|lease| lease.fence != fence) => {
                Err(StoreError::Fenced { key: key.clone(), fence })
            }
            Some(_) => Ok(()),
            None => held.and_then(|lease| lease.still_held(now)).map_or(Ok(()), Err),
        }
    }

    /// Looks at a session whose time is not over.
    fn look<T>(&self, key: &SessionKey, look: impl FnOnce(&Entry) -> T) -> Option<T> {
        let mut shelf = self.shelf(key);
        let now = self.lifetime.now();
        if shelf.get(key)?.expires.is_some_and(|time| time <= now) {
            shelf.remove(key);
            return None;
        }
        shelf.get(key).map(look)
    }

    fn commit_now(
        &self,
        key: &SessionKey,
        expected: Revision,
        delta: SessionDelta,
        events: Vec<Event>,
    ) -> Result<Revision, StoreError> {
        let mut shelf = self.shelf(key);
        let now = self.lifetime.now();
        let is_over = |entry: &Entry| entry.expires.is_some_and(|time| time <= now);
        if shelf.get(key).is_some_and(is_over) {
            shelf.remove(key);
        }
        self.check_fence(key, delta.fence, now)?;
        let actual = shelf.get(key).map(|entry| entry.revision).unwrap_or_default();
        if actual != expected {
            return Err(StoreError::Conflict { expected, actual });
        }
        let entry = shelf.entry(key.clone()).or_insert_with(|| Entry {
            revision: Revision(0),
            session: Session::default(),
            messages: BTreeMap::new(),
            events: Vec::new(),
            created: now,
            updated: now,
            expires: None,
        });
        entry.session.apply(&delta);
        if !delta.messages.is_empty() {
            entry.messages.entry(delta.agent).or_default().extend(delta.messages);
        }
        entry.events.extend(events);
        entry.revision = Revision(expected.0 + 1);
        entry.updated = now;
        entry.expires = self.lifetime.expiry(now);
        Ok(entry.revision)
    }

    fn list_now(&self) -> Vec<SessionSummary> {
        let now = self.lifetime.now();
        let mut sessions = Vec::new();
        for shelf in &self.shelves {
            let mut shelf = shelf.lock().unwrap_or_else(PoisonError::into_inner);
            shelf.retain(|_, entry| entry.expires.is_none_or(|time| time > now));
            sessions.extend(shelf.iter().map(|(key, entry)| SessionSummary {
                key: key.clone(),
                revision: entry.revision,
                created: entry.created,
                updated: entry.updated,
                expires: entry.expires,
            }));
        }
        sessions.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        sessions
    }
}

impl Lease {
    /// What others are told as long as its time is not over.
    fn still_held(&self, now: Timestamp) -> Option<StoreError> {
        let expires_in = Duration::try_from(self.expires.duration_since(now)).ok()?;
        let holder = self.holder.clone();
        (!expires_in.is_zero()).then_some(StoreError::Leased { holder, expires_in })
    }
}

fn ready<'a, T: Send + 'a>(result: Result<T, StoreError>) -> StoreFuture<'a, T> {
    Box::pin(std::future::ready(result))
}

impl SessionStore for MemorySessions {
    fn get<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<StoredSession>> {
        let stored = |entry: &Entry| StoredSession {
            revision: entry.revision,
            session: entry.session.clone(),
        };
        ready(Ok(self.look(key, stored)))
    }

    fn commit<'a>(
        &'a self,
        key: &'a SessionKey,
        expected: Revision,
        delta: SessionDelta,
        events: Vec<Event>,
    ) -> StoreFuture<'a, Revision> {
        ready(self.commit_now(key, expected, delta, events))
    }

    fn messages<'a>(
        &'a self,
        key: &'a SessionKey,
        agent: &'a AgentName,
    ) -> StoreFuture<'a, Vec<Message>> {
        let messages = |entry: &Entry| entry.messages.get(agent).cloned().unwrap_or_default();
        ready(Ok(self.look(key, messages).unwrap_or_default()))
    }

    fn events<'a>(
        &'a self,
        key: &'a SessionKey,
        skip: u64,
        most: usize,
    ) -> StoreFuture<'a, Vec<Event>> {
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        let events =
            |entry: &Entry| entry.events.iter().skip(skip).take(most).cloned().collect::<Vec<_>>();
        ready(Ok(self.look(key, events).unwrap_or_default()))
    }

    fn list(&self) -> StoreFuture<'_, Vec<SessionSummary>> {
        ready(Ok(self.list_now()))
    }

    fn delete<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, bool> {
        let removed = self.shelf(key).remove(key);
        let now = self.lifetime.now();
        ready(Ok(removed.is_some_and(|entry| entry.expires.is_none_or(|time| time > now))))
    }

    fn lease<'a>(
        &'a self,
        key: &'a SessionKey,
        holder: &'a str,
        time: Duration,
    ) -> StoreFuture<'a, Fence> {
        ready(self.lease_now(key, holder, time))
    }

    fn renew<'a>(
        &'a self,
        key: &'a SessionKey,
        fence: Fence,
        time: Duration,
    ) -> StoreFuture<'a, ()> {
        ready(self.renew_now(key, fence, time))
    }

    fn release<'a>(&'a self, key: &'a SessionKey, fence: Fence) -> StoreFuture<'a, ()> {
        let mut leases = self.leases();
        if leases.held.get(key).is_some_and(|lease| lease.fence == fence) {
            leases.held.remove(key);
        }
        ready(Ok(()))
    }
}
