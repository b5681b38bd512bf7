//! Sessions in Redis.

use std::time::Duration;

use jiff::Timestamp;
use prowess_runtime::{
    AgentName, Event, Fence, Lifetime, Message, Revision, SessionDelta, SessionKey, SessionStore,
    SessionSummary, StoreError, StoreFuture, StoredSession,
};
use redis::{Pipeline, cmd};
use serde::de::DeserializeOwned;

use super::link::{Link, Unavailable};
use super::names::{member, session_of};
use super::outbox::{self, Entries};
use super::script::{Call, DELETE};
use super::{commit, leases};
use crate::stored::read;
use crate::version::rows::time;

pub(super) type Result<T> = std::result::Result<T, StoreError>;

/// So many sessions are looked at in one go.
const PAGE: usize = 500;
/// So many sessions whose memory was freed by the server leave the list each time it is read.
const TIDIED: usize = 100;
/// So often a session is looked at again because somebody else was faster.
pub(super) const ATTEMPTS: usize = 100;

/// What a line of the list tells: revision, and when it was made, changed, and ends.
type Line = (Option<u64>, Option<i64>, Option<i64>, Option<i64>);

/// Sessions in Redis.
///
/// A session ends by the clock of whoever asks. Where that is the system's, the server frees the
/// memory of a session by itself, an hour after its end; with another clock only
/// [`RedisSessions::purge`] does. Leases end by the clock of the server.
#[derive(Clone, Debug)]
pub struct RedisSessions {
    pub(super) link: Link,
    lifetime: Lifetime,
}

/// A session's end, as it is stored.
pub(super) fn is_over(expires: Option<i64>, now: Timestamp) -> bool {
    expires.is_some_and(|expires| expires <= now.as_millisecond())
}

impl RedisSessions {
    pub(super) fn new(link: Link) -> Self {
        Self { link, lifetime: Lifetime::default() }
    }

    /// How long sessions live after their last commit.
    pub fn with_lifetime(mut self, lifetime: Lifetime) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// Removes all sessions whose time is over, and says how many.
    pub async fn purge(&self) -> Result<usize> {
        let now = self.lifetime.now();
        let mut removed = 0;
        for member in self.members().await? {
            let Some(key) = session_of(&member) else { continue };
            let over = self.link.operate(async {
                let name = format!("{}:meta", self.link.names().session(&key));
                let seen: (Option<u64>, Option<i64>) =
                    self.link.ask(cmd("HMGET").arg(name).arg("revision").arg("expires")).await?;
                if seen.0.is_some() && !is_over(seen.1, now) {
                    return Ok(false);
                }
                self.remove(&key, Some(now)).await.map(|gone| gone.is_some())
            });
            removed += usize::from(over.await?);
        }
        Ok(removed)
    }

    /// All sessions that there may be, in the order of their keys.
    async fn members(&self) -> Result<Vec<String>> {
        let key = self.link.names().of_registry(":sessions");
        let all = async { Ok(self.link.ask(cmd("ZRANGE").arg(key).arg(0).arg(-1)).await?) };
        self.link.operate(all).await
    }

    /// Removes a session, or one that ended before this time. Says when its end was if it was there.
    async fn remove(
        &self,
        key: &SessionKey,
        ended: Option<Timestamp>,
    ) -> Result<Option<Option<i64>>> {
        for _ in 0..ATTEMPTS {
            let announced = outbox::announce(&self.link, key, false, &[]).await?;
            let names = self.link.names();
            let call = Call::new(&DELETE, &names.session(key))
                .arg(&announced.number)
                .arg(&announced.counted)
                .maybe(ended.map(Timestamp::as_millisecond))
                .arg(&names.channel)
                .arg(key.to_string());
            let answer: Vec<String> = self.link.run(&call).await?;
            let mut words = answer.into_iter();
            match words.next().as_deref() {
                Some("late") => continue,
                Some("gone") => {}
                _ => return Ok(None),
            }
            let was_there = words.next().as_deref() == Some("1");
            let expires = words.next().and_then(|text| text.parse().ok());
            let left = Entries(words.collect());
            outbox::finish(&self.link, key, &announced.number, false, &left).await?;
            self.forget_outbox(key, &announced.number).await?;
            return Ok(was_there.then_some(expires));
        }
        Err(busy())
    }

    /// What is counted needs not be kept.
    async fn forget_outbox(&self, key: &SessionKey, number: &str) -> Result<()> {
        let name = format!("{}:outbox", self.link.names().session(key));
        let command = cmd("ZREMRANGEBYSCORE").arg(name).arg("-inf").arg(number).to_owned();
        Ok(self.link.ask(&command).await?)
    }

    /// What a session's end is, and a part of it, of one point in time.
    async fn part<T: DeserializeOwned>(
        &self,
        key: &SessionKey,
        part: &str,
        range: (i64, i64),
    ) -> Result<Vec<T>> {
        let name = self.link.names().session(key);
        let mut together = Pipeline::new();
        together.atomic();
        together.cmd("HGET").arg(format!("{name}:meta")).arg("expires");
        together.cmd("LRANGE").arg(format!("{name}{part}")).arg(range.0).arg(range.1);
        let (expires, texts): (Option<i64>, Vec<String>) = self.link.ask_all(&together).await?;
        if is_over(expires, self.lifetime.now()) {
            return Ok(Vec::new());
        }
        texts.iter().map(|text| read(key, text)).collect()
    }

    async fn summaries(
        &self,
        members: &[String],
    ) -> Result<(Vec<SessionSummary>, Vec<SessionKey>)> {
        let now = self.lifetime.now();
        let keys: Vec<SessionKey> = members.iter().filter_map(|it| session_of(it)).collect();
        let mut together = Pipeline::new();
        for key in &keys {
            let name = format!("{}:meta", self.link.names().session(key));
            together.cmd("HMGET").arg(name).arg("revision").arg("created").arg("updated");
            together.arg("expires");
        }
        let rows: Vec<Line> = self.link.ask_all(&together).await?;
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for (key, (revision, created, updated, expires)) in keys.into_iter().zip(rows) {
            let Some(revision) = revision else {
                missing.push(key);
                continue;
            };
            if is_over(expires, now) {
                continue;
            }
            let time = |millis: Option<i64>| time(millis.unwrap_or_default());
            let mut summary =
                SessionSummary::new(key, Revision(revision), time(created), time(updated));
            summary.expires = expires.map(|expires| time(Some(expires)));
            found.push(summary);
        }
        Ok((found, missing))
    }

    /// Takes sessions out of the list that are not there any more, unless they are about to be.
    async fn tidy(&self, missing: &[SessionKey]) -> Result<()> {
        let pending = self.link.names().of_registry(":pending");
        for key in missing.iter().take(TIDIED) {
            let is_pending: bool =
                self.link.ask(cmd("HEXISTS").arg(&pending).arg(member(key))).await?;
            if !is_pending {
                self.remove(key, Some(self.lifetime.now())).await?;
            }
        }
        Ok(())
    }
}

/// Others are always faster.
pub(super) fn busy() -> StoreError {
    Unavailable(format!("others were faster {ATTEMPTS} times; try again")).into()
}

impl SessionStore for RedisSessions {
    fn get<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<StoredSession>> {
        self.link.operate(async move {
            let name = format!("{}:meta", self.link.names().session(key));
            let command =
                cmd("HMGET").arg(name).arg("revision").arg("state").arg("expires").to_owned();
            let (revision, state, expires): (Option<u64>, Option<String>, Option<i64>) =
                self.link.ask(&command).await?;
            let (Some(revision), Some(state)) = (revision, state) else { return Ok(None) };
            if is_over(expires, self.lifetime.now()) {
                return Ok(None);
            }
            Ok(Some(StoredSession::new(Revision(revision), read(key, &state)?)))
        })
    }

    fn commit<'a>(
        &'a self,
        key: &'a SessionKey,
        expected: Revision,
        delta: SessionDelta,
        events: Vec<Event>,
    ) -> StoreFuture<'a, Revision> {
        Box::pin(async move {
            let change = commit::Change { key, expected, delta: &delta, events: &events };
            let done = change.make(&self.link, &self.lifetime);
            let (revision, left) = self.link.operate(done).await?;
            // It is done, whatever becomes of the counters: whoever comes next counts the rest.
            if let Some((number, entries)) = left {
                let finished = outbox::finish(&self.link, key, &number, true, &entries);
                if let Err(error) = self.link.operate(finished).await {
                    tracing::warn!(session = %key, %error, "uses are counted later");
                }
            }
            Ok(revision)
        })
    }

    fn messages<'a>(
        &'a self,
        key: &'a SessionKey,
        agent: &'a AgentName,
    ) -> StoreFuture<'a, Vec<Message>> {
        self.link.operate(async move {
            self.part(key, &format!(":m:{}", agent.as_str()), (0, -1)).await
        })
    }

    fn events<'a>(
        &'a self,
        key: &'a SessionKey,
        skip: u64,
        most: usize,
    ) -> StoreFuture<'a, Vec<Event>> {
        self.link.operate(async move {
            let (Ok(first), 1..) = (i64::try_from(skip), most) else { return Ok(Vec::new()) };
            let last = first.saturating_add(i64::try_from(most - 1).unwrap_or(i64::MAX));
            self.part(key, ":events", (first, last)).await
        })
    }

    fn list(&self) -> StoreFuture<'_, Vec<SessionSummary>> {
        Box::pin(async move {
            let (mut sessions, mut gone) = (Vec::new(), Vec::new());
            for page in self.members().await?.chunks(PAGE) {
                let (found, missing) = self.link.operate(self.summaries(page)).await?;
                sessions.extend(found);
                gone.extend(missing);
            }
            // The list is right without them, so that this may come to nothing.
            if let Err(error) = self.link.operate(self.tidy(&gone)).await {
                tracing::debug!(%error, "the list of sessions is tidied later");
            }
            Ok(sessions)
        })
    }

    fn delete<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, bool> {
        self.link.operate(async move {
            let name = format!("{}:meta", self.link.names().session(key));
            if !self.link.ask::<bool>(cmd("EXISTS").arg(name)).await? {
                return Ok(false);
            }
            let now = self.lifetime.now();
            let gone = self.remove(key, None).await?;
            Ok(gone.is_some_and(|expires| !is_over(expires, now)))
        })
    }

    fn lease<'a>(
        &'a self,
        key: &'a SessionKey,
        holder: &'a str,
        time: Duration,
    ) -> StoreFuture<'a, Fence> {
        self.link.operate(leases::lease(&self.link, key, holder, time))
    }

    fn renew<'a>(
        &'a self,
        key: &'a SessionKey,
        fence: Fence,
        time: Duration,
    ) -> StoreFuture<'a, ()> {
        self.link.operate(leases::renew(&self.link, key, fence, time))
    }

    fn release<'a>(&'a self, key: &'a SessionKey, fence: Fence) -> StoreFuture<'a, ()> {
        self.link.operate(leases::release(&self.link, key, fence))
    }
}
