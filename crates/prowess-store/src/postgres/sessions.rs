//! Sessions in a PostgreSQL database.

use std::time::Duration;

use prowess_runtime::{
    AgentName, Event, Fence, Lifetime, Message, Revision, SessionDelta, SessionKey, SessionStore,
    SessionSummary, StoreError, StoreFuture, StoredSession,
};

use super::commit::{self, Commit};
use super::{Database, leases, session_queries as queries};

/// Sessions in a PostgreSQL database. What is used in them counts in the transaction that commits
/// it.
#[derive(Clone, Debug)]
pub struct PostgresSessions {
    database: Database,
    lifetime: Lifetime,
}

impl PostgresSessions {
    pub(super) fn new(database: Database) -> Self {
        Self { database, lifetime: Lifetime::default() }
    }

    /// How long sessions live after their last commit. The time of leases is the server's.
    pub fn with_lifetime(mut self, lifetime: Lifetime) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// Removes all sessions whose time is over and on which nobody works, and says how many.
    pub async fn purge(&self) -> Result<usize, StoreError> {
        let now = self.lifetime.now();
        let mut removed = 0;
        loop {
            let purge = async move |connection: &mut _| commit::purge(connection, now).await;
            let (sessions, has_more) = self.database.pool.ask(purge).await?;
            removed += usize::try_from(sessions).unwrap_or(usize::MAX);
            if !has_more {
                return Ok(removed);
            }
        }
    }
}

impl SessionStore for PostgresSessions {
    fn get<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<StoredSession>> {
        let (key, now) = (key.clone(), self.lifetime.now());
        Box::pin(
            self.database
                .pool
                .ask(async move |connection| queries::get(connection, &key, now).await),
        )
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
        let change = Commit { key, expected, delta, events, now, expires };
        Box::pin(
            self.database
                .pool
                .ask(async move |connection| commit::commit(connection, &change).await),
        )
    }

    fn messages<'a>(
        &'a self,
        key: &'a SessionKey,
        agent: &'a AgentName,
    ) -> StoreFuture<'a, Vec<Message>> {
        let (key, agent, now) = (key.clone(), agent.clone(), self.lifetime.now());
        Box::pin(
            self.database.pool.ask(async move |connection| {
                queries::messages(connection, &key, &agent, now).await
            }),
        )
    }

    fn events<'a>(
        &'a self,
        key: &'a SessionKey,
        skip: u64,
        most: usize,
    ) -> StoreFuture<'a, Vec<Event>> {
        let (key, now) = (key.clone(), self.lifetime.now());
        Box::pin(
            self.database.pool.ask(async move |connection| {
                queries::events(connection, &key, skip, most, now).await
            }),
        )
    }

    fn list(&self) -> StoreFuture<'_, Vec<SessionSummary>> {
        let now = self.lifetime.now();
        Box::pin(
            self.database.pool.ask(async move |connection| queries::list(connection, now).await),
        )
    }

    fn delete<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, bool> {
        let (key, now) = (key.clone(), self.lifetime.now());
        Box::pin(
            self.database
                .pool
                .ask(async move |connection| commit::delete(connection, &key, now).await),
        )
    }

    fn lease<'a>(
        &'a self,
        key: &'a SessionKey,
        holder: &'a str,
        time: Duration,
    ) -> StoreFuture<'a, Fence> {
        let (key, holder) = (key.clone(), holder.to_owned());
        Box::pin(
            self.database
                .pool
                .ask(async move |connection| leases::lease(connection, &key, &holder, time).await),
        )
    }

    fn renew<'a>(
        &'a self,
        key: &'a SessionKey,
        fence: Fence,
        time: Duration,
    ) -> StoreFuture<'a, ()> {
        let key = key.clone();
        Box::pin(
            self.database
                .pool
                .ask(async move |connection| leases::renew(connection, &key, fence, time).await),
        )
    }

    fn release<'a>(&'a self, key: &'a SessionKey, fence: Fence) -> StoreFuture<'a, ()> {
        let key = key.clone();
        Box::pin(
            self.database
                .pool
                .ask(async move |connection| leases::release(connection, &key, fence).await),
        )
    }
}
