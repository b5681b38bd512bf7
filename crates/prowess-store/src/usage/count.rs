//! What is counted, whichever store it is in.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use prowess_runtime::{Event, EventKind};

use super::{UsageKind, Use};

/// So many agents are counted apart, for each skill and day.
pub(crate) const AGENTS_PER_DAY: u64 = 100;
/// The agents beyond them, together.
pub(crate) const OTHER_AGENTS: &str = "other";
/// Under this name uses of skills count that are not there.
pub(crate) const UNKNOWN_SKILL: &str = "";
/// What comes of a call that was refused, whichever tool it was.
const DENIALS: [&str; 6] = [
    "skill_not_loaded",
    "tool_not_allowed",
    "tool_disallowed",
    "call_denied",
    "manual_only",
    "load_limit",
];

pub(crate) fn word(kind: UsageKind) -> &'static str {
    match kind {
        UsageKind::Load => "load",
        UsageKind::Detail => "detail",
        UsageKind::ToolCall => "tool_call",
        UsageKind::Denial => "denial",
    }
}

pub(crate) fn kind(word: &str) -> UsageKind {
    match word {
        "load" => UsageKind::Load,
        "detail" => UsageKind::Detail,
        "denial" => UsageKind::Denial,
        _ => UsageKind::ToolCall,
    }
}

/// What is counted apart. An empty agent or code is none; version -1 is unknown.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key<'a> {
    pub(crate) skill: &'a str,
    pub(crate) day: Date,
    pub(crate) kind: UsageKind,
    pub(crate) version: i64,
    pub(crate) agent: &'a str,
    pub(crate) code: &'a str,
}

/// What is added to a row.
#[derive(Default)]
pub(crate) struct Sums {
    pub(crate) count: i64,
    pub(crate) errors: i64,
    pub(crate) elapsed_us: i64,
    pub(crate) bytes: i64,
    pub(crate) tokens: i64,
    /// Milliseconds since 1970.
    pub(crate) last: i64,
}

/// What uses add to the counters: those that have all in common are one change of one row.
#[derive(Default)]
pub(crate) struct Counted<'a> {
    pub(crate) rows: BTreeMap<Key<'a>, Sums>,
    /// Skills, sessions that have used them, and when.
    pub(crate) sessions: BTreeSet<(&'a str, &'a str, Date)>,
}

/// A skill, a day and an agent.
pub(crate) type AgentOfDay<'a> = (&'a str, Date, &'a str);

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn day_of(time: Timestamp) -> Date {
    time.to_zoned(TimeZone::UTC).date()
}

/// The agents of these uses, on their days: of each it must be known whether it is counted apart.
pub(crate) fn agents(uses: &[Use]) -> BTreeSet<AgentOfDay<'_>> {
    let named = uses.iter().filter_map(|it| {
        let agent = it.agent.as_deref().filter(|agent| !agent.is_empty())?;
        Some((it.skill.as_str(), day_of(it.time), agent))
    });
    named.collect()
}

/// What these uses add, where these agents are counted apart.
pub(crate) fn counted<'a>(uses: &'a [Use], apart: &BTreeSet<AgentOfDay<'_>>) -> Counted<'a> {
    let mut counted = Counted::default();
    for it in uses {
        let day = day_of(it.time);
        let agent = match it.agent.as_deref().unwrap_or_default() {
            "" => "",
            agent if apart.contains(&(it.skill.as_str(), day, agent)) => agent,
            _ => OTHER_AGENTS,
        };
        let key = Key {
            skill: &it.skill,
            day,
            kind: it.kind,
            version: it.version.map_or(-1, signed),
            agent,
            code: it.code.as_deref().unwrap_or_default(),
        };
        let sums = counted.rows.entry(key).or_default();
        sums.count += 1;
        sums.errors += i64::from(it.is_error);
        sums.elapsed_us = sums.elapsed_us.saturating_add(signed(it.elapsed_us));
        sums.bytes = sums.bytes.saturating_add(signed(it.bytes));
        sums.tokens = sums.tokens.saturating_add(signed(it.tokens));
        sums.last = sums.last.max(it.time.as_millisecond());
        // Who is refused has not used it.
        if let (Some(session), true) = (&it.session, it.kind != UsageKind::Denial) {
            counted.sessions.insert((&it.skill, session, day));
        }
    }
    counted
}

/// What an event says about the use of a skill, if it does.
pub(crate) fn use_of(event: &Event) -> Option<Use> {
    // Whoever manages skills, or asks for a tool that is not there, has called no tool of a skill.
    let is_unknown = event.code.as_deref() == Some("unknown_tool");
    let is_call = event.call_id.is_some() && !event.manages_skills && !is_unknown;
    let is_denied = event.code.as_deref().is_some_and(|code| DENIALS.contains(&code));
    let (kind, is_error) = match event.kind {
        _ if is_denied => (UsageKind::Denial, true),
        EventKind::SkillLoaded => (UsageKind::Load, false),
        EventKind::DocsSelected | EventKind::DetailGiven => (UsageKind::Detail, false),
        EventKind::ToolCalled if is_call => (UsageKind::ToolCall, false),
        EventKind::CallFailed if is_call => (UsageKind::ToolCall, true),
        EventKind::ToolBlocked | EventKind::LoadLimitReached => (UsageKind::Denial, true),
        _ => return None,
    };
    let skill = match &event.skill {
        Some(skill) => skill,
        // What was refused counts, even if it belongs to no skill.
        None if kind == UsageKind::Denial => UNKNOWN_SKILL,
        None => return None,
    };
    let mut it = Use::new(kind, skill);
    it.time = event.time;
    it.is_error = is_error;
    it.agent = Some(event.agent.to_string());
    it.code.clone_from(&event.code);
    it.elapsed_us = event.elapsed_us.unwrap_or_default();
    it.bytes = event.content_bytes.unwrap_or_default();
    it.tokens = event.tokens.unwrap_or_default();
    Some(it)
}
