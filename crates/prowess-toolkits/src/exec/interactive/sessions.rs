//! All sessions of a toolkit.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::super::plan::Runner;
use super::session::{Beginning, Family, Owner, Session};
use super::settings::SessionSettings;

/// What time it is.
#[derive(Clone)]
pub(crate) struct Clock(Arc<dyn Fn() -> Instant + Send + Sync>);

impl Clock {
    pub(crate) fn now(&self) -> Instant {
        (self.0)()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self(Arc::new(Instant::now))
    }
}

/// All sessions of a toolkit. They end with it.
#[derive(Default)]
pub(crate) struct Sessions {
    all: Mutex<BTreeMap<String, Arc<Session>>>,
    clock: Clock,
}

/// Why no other session can begin.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TooMany {
    #[error("this conversation has {most} sessions, and may have no more (`max_sessions`)")]
    Own { most: usize },
    #[error("there are {most} sessions, and may be no more (`max_total_sessions`)")]
    All { most: usize },
}

impl TooMany {
    /// The stable name.
    pub(crate) fn code(&self) -> &'static str {
        "too_many_sessions"
    }
}

impl Sessions {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Session>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a session, if there may be another one. The first of those that somebody knows to
    /// have ended makes room for it.
    pub(crate) fn begin(
        self: &Arc<Self>,
        beginning: Beginning,
        runner: &Runner,
    ) -> Result<Arc<Session>, TooMany> {
        let settings = &runner.settings.sessions;
        let mut all = self.all();
        let gone = self.take_expired(&mut all, settings);
        let owner = &beginning.owner;
        let own = |session: &Session| session.owner == *owner;
        let most = settings.max_sessions;
        let room = make_room(&mut all, most, own).ok_or(TooMany::Own { most })?;
        let most = settings.max_total_sessions;
        let more = make_room(&mut all, most, |_| true).ok_or(TooMany::All { most })?;
        let (this, ttl) = (Arc::downgrade(self), settings.ttl());
        let forget = move |id: String| async move {
            tokio::time::sleep(ttl).await;
            if let Some(this) = this.upgrade() {
                drop(this.take(&id));
            }
        };
        let session = Session::begin(beginning, runner, self.clock.clone(), forget);
        let session = Arc::new(session);
        all.insert(session.id.clone(), Arc::clone(&session));
        drop(all);
        drop((gone, room, more));
        Ok(session)
    }

    /// A session of this owner and family.
    pub(crate) fn find(
        &self,
        id: &str,
        owner: &Owner,
        family: Family,
        settings: &SessionSettings,
    ) -> Option<Arc<Session>> {
        let mut all = self.all();
        let gone = self.take_expired(&mut all, settings);
        let found = all.get(id).cloned();
        drop(all);
        drop(gone);
        found.filter(|session| session.owner == *owner && session.family == family)
    }

    /// Forgets a session.
    pub(crate) fn take(&self, id: &str) -> Option<Arc<Session>> {
        self.all().remove(id)
    }

    /// Forgets the sessions that ended too long ago.
    fn take_expired(
        &self,
        all: &mut BTreeMap<String, Arc<Session>>,
        settings: &SessionSettings,
    ) -> Vec<Arc<Session>> {
        let (now, ttl) = (self.clock.now(), settings.ttl());
        let is_expired = |session: &Session| {
            let ended = session.screen().ended();
            ended.is_some_and(|it| now.saturating_duration_since(it.at) >= ttl)
        };
        all.extract_if(.., |_, session| is_expired(session)).map(|(_, session)| session).collect()
    }

    /// How many commands run.
    pub(crate) fn running(&self) -> usize {
        self.all().values().filter(|session| session.screen().ended().is_none()).count()
    }
}

/// Makes room for one more of these, if there can be. What had to go for it.
fn make_room(
    all: &mut BTreeMap<String, Arc<Session>>,
    most: usize,
    counts: impl Fn(&Session) -> bool,
) -> Option<Vec<Arc<Session>>> {
    let mut gone = Vec::new();
    while all.values().filter(|session| counts(session)).count() >= most {
        // Ids are in the order in which sessions began.
        let first = all.iter().find(|(_, session)| counts(session) && session.is_over());
        let id = first.map(|(id, _)| id.clone())?;
        gone.extend(all.remove(&id));
    }
    Some(gone)
}

impl SessionSettings {
    fn ttl(&self) -> Duration {
        Duration::from_secs(self.ttl_seconds)
    }
}

/// Forgets a session that nobody was told of.
pub(crate) struct Forget<'a> {
    sessions: &'a Sessions,
    session: &'a Session,
}

impl<'a> Forget<'a> {
    /// Forgets it, unless it is kept.
    pub(crate) fn unless_told(sessions: &'a Sessions, session: &'a Session) -> Self {
        Self { sessions, session }
    }

    /// Somebody was told.
    pub(crate) fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        drop(self.sessions.take(&self.session.id));
    }
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
