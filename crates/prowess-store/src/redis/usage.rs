//! What skills are used for, in Redis.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use redis::{Pipeline, cmd};

use super::link::Link;
use super::outbox::{count, drain, registered};
use crate::usage::count::{UNKNOWN_SKILL, kind, word};
use crate::usage::{SkillUsage, UsageRow, UsageStore, Use};
use crate::version::rows::time;
use crate::version::{VersionError, VersionFuture};

/// So many seconds what a probe writes is there.
const PROBED: u64 = 60;

/// What skills are used for, in Redis. Sessions under the same prefix count by themselves: what
/// was committed is counted before it is acknowledged, or before anybody reads the counters.
#[derive(Clone, Debug)]
pub struct RedisUsage {
    link: Link,
}

impl RedisUsage {
    pub(super) fn new(link: Link) -> Self {
        Self { link }
    }

    async fn rows_of(&self, skills: &[String]) -> Result<Vec<UsageRow>, VersionError> {
        let mut together = Pipeline::new();
        for skill in skills {
            together.cmd("HGETALL").arg(self.link.names().of_registry(&format!(":usage:{skill}")));
        }
        if skills.is_empty() {
            return Ok(Vec::new());
        }
        let counters: Vec<HashMap<String, i64>> = self.link.ask_all(&together).await?;
        Ok(skills.iter().zip(&counters).flat_map(|(skill, it)| rows(skill, it)).collect())
    }

    async fn of_skill(&self, skill: &str) -> Result<SkillUsage, VersionError> {
        drain(&self.link).await?;
        let names = self.link.names();
        // One point in time for all.
        let mut together = Pipeline::new();
        together.atomic();
        together.cmd("HGETALL").arg(names.of_registry(&format!(":usage:{skill}")));
        together.cmd("SCARD").arg(names.of_registry(&format!(":users:{skill}")));
        together.cmd("HGETALL").arg(names.of_registry(&format!(":days:{skill}")));
        let (counters, unique_sessions, days): (HashMap<String, i64>, u64, BTreeMap<String, u64>) =
            self.link.ask_all(&together).await?;
        let days = days.into_iter().map(|(day, count)| (day.parse().unwrap_or_default(), count));
        Ok(SkillUsage {
            rows: rows(skill, &counters),
            unique_sessions,
            sessions_by_day: days.collect(),
        })
    }
}

/// The rows of one skill, by day, kind, version, agent and code.
fn rows(skill: &str, counters: &HashMap<String, i64>) -> Vec<UsageRow> {
    let mut rows: BTreeMap<[&str; 5], UsageRow> = BTreeMap::new();
    for (field, value) in counters {
        let words: Vec<&str> = field.split('\0').collect();
        let [day, what, version, agent, code, name] = words.as_slice() else { continue };
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let row = rows.entry([day, what, version, agent, code]).or_insert_with(|| UsageRow {
            skill: skill.to_owned(),
            day: day.parse().unwrap_or_default(),
            kind: kind(what),
            version: version.parse().ok(),
            agent: some(agent),
            code: some(code),
            count: 0,
            errors: 0,
            elapsed_us: 0,
            bytes: 0,
            tokens: 0,
            last: Timestamp::MIN,
        });
        let sum = u64::try_from(*value).unwrap_or_default();
        match *name {
            "count" => row.count = sum,
            "errors" => row.errors = sum,
            "elapsed" => row.elapsed_us = sum,
            "bytes" => row.bytes = sum,
            "tokens" => row.tokens = sum,
            _ => row.last = time(*value),
        }
    }
    let mut rows: Vec<UsageRow> = rows.into_values().collect();
    rows.sort_by(|a, b| place(a).cmp(&place(b)));
    rows
}

/// Where a row stands among those of its skill.
fn place(row: &UsageRow) -> impl Ord + '_ {
    (row.day, word(row.kind), row.version, row.agent.as_deref(), row.code.as_deref())
}

/// Days and agents together.
fn sum_up(rows: Vec<UsageRow>) -> Vec<UsageRow> {
    type Key = (String, &'static str, Option<u64>, Option<String>);
    let mut totals: BTreeMap<Key, UsageRow> = BTreeMap::new();
    for mut row in rows {
        row.agent = None;
        let key = (row.skill.clone(), word(row.kind), row.version, row.code.clone());
        match totals.get_mut(&key) {
            None => drop(totals.insert(key, row)),
            Some(total) => {
                total.day = total.day.max(row.day);
                total.count = total.count.saturating_add(row.count);
                total.errors = total.errors.saturating_add(row.errors);
                total.elapsed_us = total.elapsed_us.saturating_add(row.elapsed_us);
                total.bytes = total.bytes.saturating_add(row.bytes);
                total.tokens = total.tokens.saturating_add(row.tokens);
                total.last = total.last.max(row.last);
            }
        }
    }
    totals.into_values().collect()
}

impl UsageStore for RedisUsage {
    fn record(&self, uses: Vec<Use>) -> VersionFuture<'_, ()> {
        self.link.operate(async move {
            let mut uses = uses;
            let skills: Vec<&str> = uses.iter().map(|it| it.skill.as_str()).collect();
            let known = registered(&self.link, &skills).await?;
            for (it, is_known) in uses.iter_mut().zip(known) {
                if !is_known {
                    UNKNOWN_SKILL.clone_into(&mut it.skill);
                }
            }
            match uses.is_empty() {
                true => Ok(()),
                false => Ok(count(&self.link, &uses).await?),
            }
        })
    }

    fn probe(&self) -> VersionFuture<'_, ()> {
        self.link.operate(async move {
            let key = self.link.names().of_registry(":probe");
            Ok(self.link.ask::<()>(cmd("SET").arg(key).arg("").arg("EX").arg(PROBED)).await?)
        })
    }

    fn usage<'a>(&'a self, skill: &'a str) -> VersionFuture<'a, SkillUsage> {
        self.link.operate(self.of_skill(skill))
    }

    fn last_loads(&self, skills: Vec<String>) -> VersionFuture<'_, Vec<Option<Timestamp>>> {
        self.link.operate(async move {
            if skills.is_empty() {
                return Ok(Vec::new());
            }
            drain(&self.link).await?;
            let key = self.link.names().of_registry(":loads");
            let last: Vec<Option<i64>> = self.link.ask(cmd("HMGET").arg(key).arg(skills)).await?;
            Ok(last.into_iter().map(|last| last.map(time)).collect())
        })
    }

    fn totals(&self) -> VersionFuture<'_, Vec<UsageRow>> {
        self.link.operate(async move {
            drain(&self.link).await?;
            let key = self.link.names().of_registry(":used");
            let skills: Vec<String> = self.link.ask(cmd("SMEMBERS").arg(key)).await?;
            Ok(sum_up(self.rows_of(&skills).await?))
        })
    }
}
