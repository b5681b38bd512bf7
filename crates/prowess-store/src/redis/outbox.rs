//! How the uses that a session tells of come to be counted, each once.
//!
//! Sessions and counters live under different tags, which a cluster keeps on different nodes, so
//! that no script can change both. Instead:
//!
//! 1. A change is *announced* in the registry, with a number that is higher than all before.
//! 2. The script that changes the session writes the uses, under this number, into the session's
//!    *outbox*; a change whose number is not higher than the session's last one is refused, and
//!    announced again.
//! 3. A script *counts* them in the registry, unless it has counted up to this number before, and
//!    forgets the announcement if there was no later one.
//!
//! Who dies in between leaves an announcement. Whoever reads counters looks at all announcements
//! first and counts what is in the outboxes; whoever changes the session does the same. An
//! announcement that is old is given up: before it is forgotten, the session is told to refuse its
//! number.

use std::collections::BTreeMap;

use prowess_runtime::{Event, SessionKey};
use redis::Pipeline;
use serde::{Deserialize, Serialize};

use super::link::{Link, Unavailable};
use super::names::{member, session_of};
use super::script::{ANNOUNCE, COUNT, Call, SETTLE};
use super::sessions::Result;
use super::versions::rows::Row;
use crate::stored;
use crate::usage::Use;
use crate::usage::count::{
    AGENTS_PER_DAY, OTHER_AGENTS, UNKNOWN_SKILL, agents, counted, use_of, word,
};

/// An announcement that is older, in microseconds, is given up: an operation takes less time.
const GIVEN_UP_AFTER: u64 = 60_000_000;

/// What the registry knows of a skill that is used.
pub(super) struct Fact {
    row: Option<Row>,
    /// The newest version that has the files.
    newest: Option<u64>,
}

/// That a session will be changed.
pub(super) struct Announced {
    pub(super) number: String,
    /// Up to which number uses are counted.
    pub(super) counted: String,
    /// For each event that tells of a use, in their order.
    pub(super) facts: Vec<Fact>,
}

/// Announces a change with these events.
pub(super) fn announce_call(
    link: &Link,
    key: &SessionKey,
    may_be_new: bool,
    events: &[Event],
) -> Call {
    let mut call =
        Call::new(&ANNOUNCE, &link.names().registry).arg(member(key)).arg(u8::from(may_be_new));
    for (event, it) in events.iter().filter_map(|event| Some((event, use_of(event)?))) {
        call = call.arg(it.skill).maybe(event.tree_digest.as_ref().map(ToString::to_string));
    }
    call
}

/// What the answer says.
pub(super) fn announced(words: Vec<Option<String>>) -> Result<Announced> {
    let mut words = words.into_iter();
    let (Some(Some(number)), Some(Some(counted))) = (words.next(), words.next()) else {
        return Err(Unavailable("Redis has not answered an announcement".to_owned()).into());
    };
    let mut facts = Vec::new();
    while let (Some(row), Some(newest)) = (words.next(), words.next()) {
        let row = row.and_then(|text| serde_json::from_str(&text).ok());
        facts.push(Fact { row, newest: newest.and_then(|text| text.parse().ok()) });
    }
    Ok(Announced { number, counted, facts })
}

/// Announces a change.
pub(super) async fn announce(
    link: &Link,
    key: &SessionKey,
    may_be_new: bool,
    events: &[Event],
) -> Result<Announced> {
    announced(link.run(&announce_call(link, key, may_be_new, events)).await?)
}

/// A row: skill, day, kind, version, agent, code, count, errors, time, bytes, tokens, last.
type Counted = (String, String, String, i64, String, String, i64, i64, i64, i64, i64, i64);

/// What is added to the counters.
#[derive(Default, Serialize, Deserialize)]
struct Sums {
    rows: Vec<Counted>,
    /// A skill, a session and a day.
    sessions: Vec<(String, String, String)>,
}

impl Sums {
    /// Of uses whose agents all count apart; which of them do is decided where they are counted.
    fn of(uses: &[Use]) -> Self {
        let counted = counted(uses, &agents(uses));
        let rows = counted.rows.into_iter().map(|(key, sums)| {
            (
                key.skill.to_owned(),
                key.day.to_string(),
                word(key.kind).to_owned(),
                key.version,
                // A zero parts the names of counters.
                key.agent.replace('\0', "\u{fffd}"),
                key.code.replace('\0', "\u{fffd}"),
                sums.count,
                sums.errors,
                sums.elapsed_us,
                sums.bytes,
                sums.tokens,
                sums.last,
            )
        });
        let sessions = counted
            .sessions
            .into_iter()
            .map(|(skill, session, day)| (skill.to_owned(), session.to_owned(), day.to_string()));
        Self { rows: rows.collect(), sessions: sessions.collect() }
    }

    fn add_to(&self, mut call: Call, number: &str) -> Call {
        call = call.arg(number).arg(self.rows.len());
        for row in &self.rows {
            call = call.arg(&row.0).arg(&row.1).arg(&row.2).arg(row.3).arg(&row.4).arg(&row.5);
            call = call.arg(&[row.6, row.7, row.8, row.9, row.10, row.11]);
        }
        call = call.arg(self.sessions.len());
        for (skill, session, day) in &self.sessions {
            call = call.arg(skill).arg(session).arg(day);
        }
        call
    }
}

/// What the events of a session use, as it is kept; `None` if they use nothing.
pub(super) fn uses_of(
    key: &SessionKey,
    events: &[Event],
    facts: &[Fact],
) -> Result<Option<String>> {
    let session = key.to_string();
    let told = events.iter().filter_map(|event| Some((event, use_of(event)?)));
    let mut uses = Vec::new();
    for ((event, mut it), fact) in told.zip(facts) {
        // Anybody can ask for any name. What was loaded is there, wherever it came from.
        if event.digest.is_none() && fact.row.is_none() {
            UNKNOWN_SKILL.clone_into(&mut it.skill);
        }
        it.session = Some(session.clone());
        it.version = version_of(event, fact);
        uses.push(it);
    }
    match uses.is_empty() {
        true => Ok(None),
        false => stored::write(key, &Sums::of(&uses)).map(Some),
    }
}

/// The version whose files a session has, if they are of a version.
fn version_of(event: &Event, fact: &Fact) -> Option<u64> {
    let (_, tree) = (event.skill.as_ref()?, event.tree_digest.as_ref()?);
    let row = fact.row.as_ref()?;
    let is_active = row.active_tree.as_ref().is_some_and(|active| *active == tree.to_string());
    if is_active { row.active } else { fact.newest }
}

/// Lists of uses from an outbox, each with its number.
pub(super) struct Entries(pub(super) Vec<String>);

impl Entries {
    fn add_to(&self, mut call: Call) -> Call {
        for entry in &self.0 {
            let (number, text) = entry.split_once(':').unwrap_or((entry, ""));
            let sums = serde_json::from_str(text).unwrap_or_else(|error| {
                tracing::error!(%error, "uses cannot be read and are not counted");
                Sums::default()
            });
            call = sums.add_to(call, number);
        }
        call
    }
}

fn count_call(link: &Link, session: &str, forget: Option<&str>, is_there: bool) -> Call {
    Call::new(&COUNT, &link.names().registry)
        .arg(session)
        .maybe(forget)
        .arg(u8::from(is_there))
        .arg(AGENTS_PER_DAY)
        .arg(OTHER_AGENTS)
}

/// Counts uses that no session tells of.
pub(super) async fn count(link: &Link, uses: &[Use]) -> std::result::Result<(), Unavailable> {
    let call = Sums::of(uses).add_to(count_call(link, "", None, true), "0");
    link.run::<i64>(&call).await.map(drop)
}

/// Counts uses of a session, and forgets the announcement.
pub(super) async fn finish(
    link: &Link,
    key: &SessionKey,
    number: &str,
    is_there: bool,
    entries: &Entries,
) -> Result<()> {
    let call = entries.add_to(count_call(link, &member(key), Some(number), is_there));
    link.run::<i64>(&call).await?;
    Ok(())
}

/// Counts whatever is not counted yet, of all sessions.
pub(super) async fn drain(link: &Link) -> std::result::Result<(), Unavailable> {
    let mut together = Pipeline::new();
    together.cmd("TIME");
    together.cmd("HGETALL").arg(link.names().of_registry(":pending"));
    let (time, pending): ((u64, u64), BTreeMap<String, String>) = link.ask_all(&together).await?;
    let now = time.0 * 1_000_000 + time.1;
    for (session, text) in pending {
        let Some((number, counted)) = text.split_once(' ') else { continue };
        let Some(key) = session_of(&session) else { continue };
        let is_old = number.parse().is_ok_and(|number| now.saturating_sub(number) > GIVEN_UP_AFTER);
        let forget = is_old.then_some(number);
        let settle = Call::new(&SETTLE, &link.names().session(&key)).maybe(forget).arg(counted);
        let answer: Vec<String> = link.run(&settle).await?;
        let is_there = answer.first().is_some_and(|word| word == "1");
        let entries = Entries(answer.into_iter().skip(1).collect());
        if is_old || !entries.0.is_empty() {
            let call = entries.add_to(count_call(link, &session, forget, is_there));
            link.run::<i64>(&call).await?;
        }
    }
    Ok(())
}

/// Whether a skill is in the registry, or was; of each of these.
pub(super) async fn registered(
    link: &Link,
    skills: &[&str],
) -> std::result::Result<Vec<bool>, Unavailable> {
    let mut together = Pipeline::new();
    for skill in skills {
        together.cmd("HEXISTS").arg(link.names().of_registry(":skills")).arg(*skill);
    }
    match skills.is_empty() {
        true => Ok(Vec::new()),
        false => link.ask_all(&together).await,
    }
}
