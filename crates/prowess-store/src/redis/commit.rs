//! How a session changes.

use jiff::Timestamp;
use prowess_runtime::{Event, Lifetime, Revision, Session, SessionDelta, SessionKey, StoreError};

use super::leases;
use super::link::{Link, Unavailable};
use super::outbox::{Announced, Entries, announce_call, announced, uses_of};
use super::script::{COMMIT, Call, LOOK};
use super::sessions::{ATTEMPTS, Result, busy, is_over};
use crate::stored::{read, write};
use crate::usage::count::use_of;

/// So long after its end the server frees the memory of a session: clocks differ.
const FREED_AFTER: jiff::SignedDuration = jiff::SignedDuration::from_hours(1);

/// A change that somebody wants.
pub(super) struct Change<'a> {
    pub(super) key: &'a SessionKey,
    pub(super) expected: Revision,
    pub(super) delta: &'a SessionDelta,
    pub(super) events: &'a [Event],
}

/// A session as it was seen, whether its time is over or not.
struct Seen {
    born: Option<String>,
    revision: Option<u64>,
    state: Option<String>,
    expires: Option<i64>,
    lease: Option<u64>,
    holder: Option<String>,
    /// In microseconds.
    left: i64,
}

type Row =
    (Option<String>, Option<u64>, Option<String>, Option<i64>, Option<u64>, Option<String>, i64);

impl From<Row> for Seen {
    fn from((born, revision, state, expires, lease, holder, left): Row) -> Self {
        Self { born, revision, state, expires, lease, holder, left }
    }
}

/// The number of an announcement, and uses that are still to be counted.
pub(super) type Left = Option<(String, Entries)>;

impl Change<'_> {
    /// Makes the change: reads, decides, and writes if what was read is still so.
    pub(super) async fn make(&self, link: &Link, lifetime: &Lifetime) -> Result<(Revision, Left)> {
        let names = link.names();
        let look = Call::new(&LOOK, &names.session(self.key));
        let is_counted = self.events.iter().any(|event| use_of(event).is_some());
        let announce =
            (is_counted || self.expected == Revision(0)).then(|| self.announcement(link));
        for _ in 0..ATTEMPTS {
            // First the look: whoever is announced after a revision has the higher number.
            let (seen, announced): (Row, Option<Announced>) = match &announce {
                Some(announce) => {
                    let (seen, words) = link.run_all(&[&look, announce]).await?;
                    (seen, Some(announced(words)?))
                }
                None => (link.run(&look).await?, None),
            };
            let seen = Seen::from(seen);
            let now = lifetime.now();
            let state = self.decide(&seen, now)?;
            let call = self.call(link, lifetime, &seen, announced.as_ref(), &state, now)?;
            let answer: Vec<String> = link.run(&call).await?;
            let mut words = answer.into_iter();
            match words.next().as_deref() {
                Some("done") => {
                    let left = announced.map(|it| (it.number, Entries(words.collect())));
                    return Ok((Revision(self.expected.0 + 1), left));
                }
                Some("changed" | "late") => {}
                other => return Err(Unavailable(format!("Redis has answered {other:?}")).into()),
            }
        }
        Err(busy())
    }

    fn announcement(&self, link: &Link) -> Call {
        let is_new = self.expected == Revision(0);
        announce_call(link, self.key, is_new, self.events)
    }

    /// The new state, if the change may be made.
    fn decide(&self, seen: &Seen, now: Timestamp) -> Result<String> {
        self.check_lease(seen)?;
        let there = seen.state.as_deref().filter(|_| !is_over(seen.expires, now));
        let actual = Revision(there.and(seen.revision).unwrap_or_default());
        if actual != self.expected {
            return Err(StoreError::Conflict { expected: self.expected, actual });
        }
        let mut session: Session = match there {
            Some(state) => read(self.key, state)?,
            None => Session::default(),
        };
        session.apply(self.delta);
        write(self.key, &session)
    }

    /// Whether whoever has this lease, or none, may change the session.
    fn check_lease(&self, seen: &Seen) -> Result<()> {
        match (self.delta.fence, &seen.holder, u64::try_from(seen.left)) {
            (Some(fence), ..) if seen.lease != Some(fence.0) => {
                Err(StoreError::Fenced { key: self.key.clone(), fence })
            }
            (None, Some(holder), Ok(left @ 1..)) => Err(leases::held(holder, left)),
            _ => Ok(()),
        }
    }

    fn call(
        &self,
        link: &Link,
        lifetime: &Lifetime,
        seen: &Seen,
        announced: Option<&Announced>,
        state: &str,
        now: Timestamp,
    ) -> Result<Call> {
        let (names, key, delta) = (link.names(), self.key, self.delta);
        let expires = lifetime.expiry(now);
        let freed = expires
            .filter(|_| lifetime.is_by_system_clock())
            .and_then(|expires| expires.checked_add(FREED_AFTER).ok());
        let uses = match announced {
            Some(announced) => uses_of(key, self.events, &announced.facts)?,
            None => None,
        };
        let mut call = Call::new(&COMMIT, &names.session(key))
            .maybe(seen.born.as_deref())
            .maybe(seen.revision)
            .arg(u8::from(self.expected == Revision(0)))
            .maybe(delta.fence.map(|fence| fence.0))
            .maybe(announced.map(|it| &it.number))
            .maybe(announced.map(|it| &it.counted))
            .arg(self.expected.0 + 1)
            .arg(state)
            .arg(now.as_millisecond())
            .maybe(expires.map(Timestamp::as_millisecond))
            .maybe(freed.map(Timestamp::as_millisecond))
            .maybe(uses)
            .arg(&names.channel)
            .arg(key.to_string())
            .arg(delta.agent.as_str())
            .arg(delta.messages.len());
        for message in &delta.messages {
            call = call.arg(write(key, message)?);
        }
        for event in self.events {
            call = call.arg(write(key, event)?);
        }
        Ok(call)
    }
}
