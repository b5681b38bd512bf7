//! Sessions in a SQLite database.

use std::path::Path;
use std::time::Duration;

use prowess_runtime::{
    AgentName, Event, Fence, Lifetime, Message, Revision, SessionDelta, SessionKey, SessionStore,
    SessionSummary, StoreError, StoreFuture, StoredSession,
};

use super::database::Database;
use super::{leases, session_queries as queries};
use crate::open::OpenError;

/// Sessions in a SQLite database.
///
/// ```no_run
/// use prowess_store::SqliteSessions;
///
/// let sessions = SqliteSessions::open("/var/lib/prowess/prowess.db").unwrap();
/// # let _ = sessions;
/// ```
#[derive(Clone, Debug)]
pub struct SqliteSessions {
    database: Database,
    lifetime: Lifetime,
}

impl SqliteSessions {
    /// Opens a database, or makes it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Ok(Self::new(Database::open(path.as_ref())?))
    }

    pub(super) fn new(database: Database) -> Self {
        Self { database, lifetime: Lifetime::default() }
    }

    /// How long sessions live after their last commit.
    pub fn with_lifetime(mut self, lifetime: Lifetime) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// Removes all sessions whose time is over, and says how many.
    pub async fn purge(&self) -> Result<usize, StoreError> {
        let now = self.lifetime.now();
        self.database.write(move |connection| queries::purge(connection, now)).await
    }
}

impl SessionStore for SqliteSessions {
    fn get<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<StoredSession>> {
        let (key, now) = (key.clone(), self.lifetime.now());
        self.database.read(move |connection| queries::get(connection, &key, now))
    }

    fn commit<'a>(
        &'a self,
        key: &'a SessionKey,
        expected: Revision,
        delta: SessionDelta,
        events: Vec<Event>,
    ) -> StoreFuture<'a, Revision> {
        let (key, now) = (key.clone(), self.lifetime.now());
        let expires = self.lifetime.expiry(now);
        self.database.write(move |connection| {
            queries::commit(connection, &key, expected, &delta, &events, now, expires)
        })
    }

    fn messages<'a>(
        &'a self,
        key: &'a SessionKey,
        agent: &'a AgentName,
    ) -> StoreFuture<'a, Vec<Message>> {
        let (key, agent, now) = (key.clone(), agent.clone(), self.lifetime.now());
        self.database.read(move |connection| queries::messages(connection, &key, &agent, now))
    }

    fn events<'a>(
        &'a self,
        key: &'a SessionKey,
        skip: u64,
        most: usize,
    ) -> StoreFuture<'a, Vec<Event>> {
        let (key, now) = (key.clone(), self.lifetime.now());
        self.database.read(move |connection| queries::events(connection, &key, skip, most, now))
    }

    fn list(&self) -> StoreFuture<'_, Vec<SessionSummary>> {
        let now = self.lifetime.now();
        self.database.read(move |connection| queries::list(connection, now))
    }

    fn delete<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, bool> {
        let (key, now) = (key.clone(), self.lifetime.now());
        self.database.write(move |connection| {
            let existed = queries::get(connection, &key, now).map_or(true, |it| it.is_some());
            Ok(queries::delete(connection, &key)? && existed)
        })
    }

    fn lease<'a>(
        &'a self,
        key: &'a SessionKey,
        holder: &'a str,
        time: Duration,
    ) -> StoreFuture<'a, Fence> {
        let (key, holder, now) = (key.clone(), holder.to_owned(), self.lifetime.now());
        self.database.write(move |connection| leases::lease(connection, &key, &holder, time, now))
    }

    fn renew<'a>(
        &'a self,
        key: &'a SessionKey,
        fence: Fence,
        time: Duration,
    ) -> StoreFuture<'a, ()> {
        let (key, now) = (key.clone(), self.lifetime.now());
        self.database.write(move |connection| leases::renew(connection, &key, fence, time, now))
    }

    fn release<'a>(&'a self, _: &'a SessionKey, fence: Fence) -> StoreFuture<'a, ()> {
        self.database.write(move |connection| leases::release(connection, fence))
    }
}
