//! Where sessions live.

mod lease;
mod memory;

pub(crate) use lease::LeasedSessions;
pub use lease::{Hold, LeaseSettings};
pub use memory::MemorySessions;

use std::pin::Pin;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::Event;
use crate::message::Message;
use crate::session::{AgentName, Session, SessionDelta, SessionKey};

/// How often a session was committed. A session that does not exist has revision 0.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Revision(pub u64);

/// Which lease of a session somebody holds. A later lease has a higher number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fence(pub u64);

/// A session and its revision.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct StoredSession {
    /// Its revision.
    pub revision: Revision,
    /// Its states.
    pub session: Session,
}

impl StoredSession {
    /// A session at this revision.
    pub fn new(revision: Revision, session: Session) -> Self {
        Self { revision, session }
    }
}

/// A line in a list of sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SessionSummary {
    /// Which.
    pub key: SessionKey,
    /// Its revision.
    pub revision: Revision,
    /// When it was committed first.
    pub created: Timestamp,
    /// When it was committed last.
    pub updated: Timestamp,
    /// When it will be gone, if it will.
    pub expires: Option<Timestamp>,
}

impl SessionSummary {
    /// A line that never expires.
    pub fn new(
        key: SessionKey,
        revision: Revision,
        created: Timestamp,
        updated: Timestamp,
    ) -> Self {
        Self { key, revision, created, updated, expires: None }
    }
}

/// Why a store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Somebody else was faster. Read again, decide again.
    #[error("the session is at revision {actual}, not {expected}", actual = actual.0, expected = expected.0)]
    Conflict {
        /// The revision that was expected.
        expected: Revision,
        /// The revision that is there.
        actual: Revision,
    },
    /// Somebody else works on the session. Wait, and try again.
    #[error("{holder} works on the session for at most {} ms more", expires_in.as_millis())]
    Leased {
        /// Who.
        holder: String,
        /// So long at most, unless it is prolonged.
        expires_in: Duration,
    },
    /// Somebody else has taken the session over: nothing may be committed with this lease any more.
    #[error("the lease {} of the session {key} is over: another one has taken it", fence.0)]
    Fenced {
        /// The session.
        key: SessionKey,
        /// The lease.
        fence: Fence,
    },
    /// What is stored cannot be read.
    #[error("the stored session {key} cannot be read: {cause}")]
    Corrupt {
        /// The session.
        key: SessionKey,
        /// What is wrong with it.
        cause: String,
    },
    /// What should be stored could not be read again.
    #[error("the session {key} cannot be stored: {cause}")]
    Unstorable {
        /// The session.
        key: SessionKey,
        /// What is wrong with it.
        cause: String,
    },
    /// The store is not there, or refuses.
    #[error("the session store failed: {cause}")]
    Unavailable {
        /// What it says.
        cause: String,
    },
}

impl StoreError {
    /// The stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Conflict { .. } => "conflict",
            Self::Leased { .. } => "session_busy",
            Self::Fenced { .. } => "lease_lost",
            Self::Corrupt { .. } => "session_corrupt",
            Self::Unstorable { .. } => "session_unstorable",
            Self::Unavailable { .. } => "store_unavailable",
        }
    }
}

/// A future that a store returns.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Keeps sessions: states, transcripts and events.
///
/// A commit is all or nothing: state, messages and events together, and only if nobody else has
/// committed since the state was read.
///
/// Several engines may use one store. Whoever has a lease of a session is the only one who changes
/// it: commits carry the number of the lease ([`SessionDelta::fence`]), and a commit with the number
/// of a lease that is gone is refused, however late it comes. A commit without a number is refused
/// while somebody has a lease.
pub trait SessionStore: Send + Sync + 'static {
    /// A session; `None` if there is none, or its time is over.
    fn get<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<StoredSession>>;

    /// Changes a session if it is at this revision, and returns the next one. What is acknowledged
    /// is not lost, even if the process dies.
    fn commit<'a>(
        &'a self,
        key: &'a SessionKey,
        expected: Revision,
        delta: SessionDelta,
        events: Vec<Event>,
    ) -> StoreFuture<'a, Revision>;

    /// The transcript of an agent.
    fn messages<'a>(
        &'a self,
        key: &'a SessionKey,
        agent: &'a AgentName,
    ) -> StoreFuture<'a, Vec<Message>>;

    /// The events of a session, oldest first, from this place on.
    fn events<'a>(
        &'a self,
        key: &'a SessionKey,
        skip: u64,
        most: usize,
    ) -> StoreFuture<'a, Vec<Event>>;

    /// All sessions whose time is not over, in the order of their keys.
    fn list(&self) -> StoreFuture<'_, Vec<SessionSummary>>;

    /// Removes a session with everything, and says whether there was one.
    fn delete<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, bool>;

    /// Takes a session for so long, whether it exists or not, with a number that no lease had
    /// before. Refused as long as another holder has it; the same holder takes it from itself.
    fn lease<'a>(
        &'a self,
        key: &'a SessionKey,
        holder: &'a str,
        time: Duration,
    ) -> StoreFuture<'a, Fence>;

    /// Keeps a lease for so long from now on. Refused if it is gone; one whose time is over and that
    /// nobody else has taken is not.
    fn renew<'a>(
        &'a self,
        key: &'a SessionKey,
        fence: Fence,
        time: Duration,
    ) -> StoreFuture<'a, ()>;

    /// Gives a session back. A lease that is gone stays gone.
    fn release<'a>(&'a self, key: &'a SessionKey, fence: Fence) -> StoreFuture<'a, ()>;
}

/// How long sessions live after their last commit, and what time it is.
#[derive(Clone)]
pub struct Lifetime {
    ttl: Option<Duration>,
    now: std::sync::Arc<dyn Fn() -> Timestamp + Send + Sync>,
    is_by_system_clock: bool,
}

impl Default for Lifetime {
    /// For ever.
    fn default() -> Self {
        Self { ttl: None, now: std::sync::Arc::new(Timestamp::now), is_by_system_clock: true }
    }
}

impl std::fmt::Debug for Lifetime {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Lifetime").field("ttl", &self.ttl).finish_non_exhaustive()
    }
}

impl Lifetime {
    /// So long.
    pub fn of(ttl: Duration) -> Self {
        Self { ttl: Some(ttl), ..Self::default() }
    }

    /// Another clock than the system's.
    pub fn with_clock(mut self, now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.now = std::sync::Arc::new(now);
        self.is_by_system_clock = false;
        self
    }

    /// Whether it goes by the system's clock, which others have too.
    pub fn is_by_system_clock(&self) -> bool {
        self.is_by_system_clock
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// When a session is gone that is committed now.
    pub fn expiry(&self, now: Timestamp) -> Option<Timestamp> {
        self.ttl.map(|ttl| now.checked_add(ttl).unwrap_or(Timestamp::MAX))
    }
}
