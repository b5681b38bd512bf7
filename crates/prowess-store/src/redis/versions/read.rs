//! What is asked of a registry.

use std::collections::{BTreeMap, BTreeSet};

use prowess_catalog::{SkillContents, TreeDigest};
use prowess_format::Digest;
use redis::{Pipeline, cmd};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::rows::{Row, version_from};
use super::{RedisVersions, Result};
use crate::redis::script::{CHANGES, Call};
use crate::version::rows::{Stored, corrupt, lost, time, verified};
use crate::version::rules::expect;
use crate::version::{
    Actor, AuditEntry, Changes, Expected, Listed, SkillId, Version, VersionError, VersionedSkill,
};

/// A change in the log.
#[derive(Serialize, Deserialize)]
pub(super) struct Noted {
    pub(super) time: i64,
    pub(super) actor: String,
    pub(super) action: String,
    pub(super) subject: String,
    pub(super) detail: Value,
}

/// A skill from what is kept of it and of its active version.
fn skill_from(
    id: &SkillId,
    row: Option<&str>,
    active: Option<&str>,
) -> Result<Option<VersionedSkill>> {
    let Some(row) = row else { return Ok(None) };
    let row = Row::read(id, row)?;
    let active = active.map(|text| version_from(id, text)).transpose()?;
    Ok(row.skill(id, active.as_ref()))
}

/// What is kept of a skill, as far as its row and its active version tell.
enum Found {
    /// It is not there.
    Nothing,
    Used(Box<VersionedSkill>),
    /// None of its versions is used; the one with this number waits.
    Waiting(Box<Row>, u64),
}

fn found_from(id: &SkillId, row: Option<&str>, active: Option<&str>) -> Result<Found> {
    if let Some(skill) = skill_from(id, row, active)? {
        return Ok(Found::Used(skill.into()));
    }
    let row = row.map(|row| Row::read(id, row)).transpose()?;
    Ok(match row.and_then(|row| row.waits().map(|number| (row, number))) {
        Some((row, number)) => Found::Waiting(row.into(), number),
        None => Found::Nothing,
    })
}

impl RedisVersions {
    pub(super) async fn skill_now(&self, id: &SkillId) -> Result<Option<VersionedSkill>> {
        let (row, active) = self.kept(id).await?;
        skill_from(id, row.as_deref(), active.as_deref())
    }

    /// What is kept of a skill and of its active version, at one point in time.
    pub(super) async fn kept(&self, id: &SkillId) -> Result<(Option<String>, Option<String>)> {
        let mut together = Pipeline::new();
        together.atomic();
        for part in [":skills", ":active"] {
            together.cmd("HGET").arg(self.name(part)).arg(id.as_str());
        }
        Ok(self.link.ask_all(&together).await?)
    }

    pub(super) async fn row(&self, id: &SkillId) -> Result<Option<Row>> {
        let command = cmd("HGET").arg(self.name(":skills")).arg(id.as_str()).to_owned();
        let text: Option<String> = self.link.ask(&command).await?;
        text.map(|text| Row::read(id, &text)).transpose()
    }

    /// What is kept of a version.
    pub(super) async fn kept_version(&self, id: &SkillId, number: u64) -> Result<String> {
        let name = self.name(&format!(":versions:{id}"));
        let text: Option<String> = self.link.ask(cmd("HGET").arg(name).arg(number)).await?;
        text.ok_or_else(|| VersionError::NoVersion { skill: id.clone(), number })
    }

    pub(super) async fn version_now(&self, id: &SkillId, number: u64) -> Result<Version> {
        version_from(id, &self.kept_version(id, number).await?)
    }

    pub(super) async fn head_now(&self, id: &SkillId) -> Result<(u64, Version)> {
        let row = self.row(id).await?;
        let found = expect(row.as_ref().map(Row::skill_row), id, Expected::Present)?;
        let number = found.head().ok_or_else(|| lost(id))?;
        Ok((found.revision, self.version_now(id, number).await?))
    }

    pub(super) async fn version_with_now(
        &self,
        id: &SkillId,
        tree: TreeDigest,
    ) -> Result<Option<Version>> {
        let name = self.name(&format!(":trees:{id}"));
        let command = cmd("HGET").arg(name).arg(tree.to_string()).to_owned();
        match self.link.ask::<Option<u64>>(&command).await? {
            Some(number) => self.version_now(id, number).await.map(Some),
            None => Ok(None),
        }
    }

    pub(super) async fn versions_now(
        &self,
        id: &SkillId,
        offset: u64,
        limit: usize,
    ) -> Result<Listed<Version>> {
        let row = self.row(id).await?;
        let total = expect(row.as_ref().map(Row::skill_row), id, Expected::Present)?.version_count;
        let newest = row.map_or(0, |row| row.newest);
        // Numbers have no gaps.
        let left = total.saturating_sub(offset).min(limit as u64);
        let numbers: Vec<u64> = (offset..offset + left).map(|at| newest - at).collect();
        if numbers.is_empty() {
            return Ok(Listed { items: Vec::new(), total });
        }
        let name = self.name(&format!(":versions:{id}"));
        let texts: Vec<Option<String>> =
            self.link.ask(cmd("HMGET").arg(name).arg(&numbers)).await?;
        let versions = numbers.iter().zip(texts).map(|(number, text)| {
            let missing = || VersionError::NoVersion { skill: id.clone(), number: *number };
            version_from(id, &text.ok_or_else(missing)?)
        });
        Ok(Listed { items: versions.collect::<Result<_>>()?, total })
    }

    pub(super) async fn all_now(&self) -> Result<Changes> {
        // One point in time for all.
        let mut together = Pipeline::new();
        together.atomic();
        together.cmd("LLEN").arg(self.name(":audit"));
        together.cmd("HGETALL").arg(self.name(":skills"));
        together.cmd("HGETALL").arg(self.name(":active"));
        let (generation, rows, active): (u64, BTreeMap<String, String>, BTreeMap<String, String>) =
            self.link.ask_all(&together).await?;
        let skills = rows.into_iter().map(|(text, row)| {
            let active = active.get(&text).cloned();
            (text, Some(row), active)
        });
        self.changes_from(generation, skills.collect()).await
    }

    pub(super) async fn changes_now(&self, since: u64) -> Result<Changes> {
        let call = Call::new(&CHANGES, &self.link.names().registry).arg(since);
        let words: Vec<Option<String>> = self.link.run(&call).await?;
        let mut words = words.into_iter();
        let generation = words.next().flatten().and_then(|text| text.parse().ok());
        let mut found = BTreeMap::new();
        while let (Some(id), row, active) = (words.next(), words.next(), words.next()) {
            let Some(id) = id.filter(|text| text.parse::<SkillId>().is_ok()) else { continue };
            found.insert(id, (row.flatten(), active.flatten()));
        }
        let found = found.into_iter().map(|(id, (row, active))| (id, row, active));
        self.changes_from(generation.unwrap_or_default(), found.collect()).await
    }

    /// Skills from what is kept of them, by their ids: their rows, and their active versions.
    async fn changes_from(
        &self,
        generation: u64,
        kept: Vec<(String, Option<String>, Option<String>)>,
    ) -> Result<Changes> {
        let mut read = Vec::with_capacity(kept.len());
        for (text, row, active) in kept {
            let skill = text
                .parse::<SkillId>()
                .map_err(|error| corrupt(&text, error))
                .and_then(|id| Ok((found_from(&id, row.as_deref(), active.as_deref())?, id)));
            read.push((text, skill));
        }
        let numbers = read.iter().filter_map(|(_, skill)| match skill {
            Ok((Found::Waiting(_, number), id)) => Some((id, *number)),
            _ => None,
        });
        let mut waiting = self.kept_versions(numbers).await?.into_iter();
        let mut changes = Changes { generation, ..Changes::default() };
        for (text, skill) in read {
            let stored = skill.and_then(|(found, id)| match found {
                Found::Nothing => Ok((id, None)),
                Found::Used(skill) => Ok((id, Some(Stored::Used(skill)))),
                Found::Waiting(row, number) => {
                    let missing = || VersionError::NoVersion { skill: id.clone(), number };
                    let kept = waiting.next().flatten().ok_or_else(missing)?;
                    let skill = row.waiting(&id, version_from(&id, &kept)?);
                    Ok((id, Some(Stored::Waiting(skill.into()))))
                }
            });
            match stored {
                Ok((id, skill)) => changes.add(id, skill),
                Err(error) => changes.add_broken(&text, &error),
            }
        }
        Ok(changes)
    }

    /// What is kept of versions. They never change, so that it does not matter when they are read.
    async fn kept_versions(
        &self,
        numbers: impl Iterator<Item = (&SkillId, u64)>,
    ) -> Result<Vec<Option<String>>> {
        let mut together = Pipeline::new();
        for (id, number) in numbers {
            together.cmd("HGET").arg(self.name(&format!(":versions:{id}"))).arg(number);
        }
        match together.is_empty() {
            true => Ok(Vec::new()),
            false => Ok(self.link.ask_all(&together).await?),
        }
    }

    /// What is kept under these digests for a skill, in their order.
    pub(super) async fn files_now(&self, id: &SkillId, digests: &[Digest]) -> Result<Vec<Vec<u8>>> {
        let distinct: BTreeSet<&Digest> = digests.iter().collect();
        let mut command = cmd("HMGET");
        command.arg(self.name(":files"));
        for digest in &distinct {
            command.arg(digest.hex());
        }
        if distinct.is_empty() {
            return Ok(Vec::new());
        }
        let bytes: Vec<Option<Vec<u8>>> = self.link.ask(&command).await?;
        let mut files = BTreeMap::new();
        for (digest, bytes) in distinct.into_iter().zip(bytes) {
            files.insert(digest, verified(id, digest, bytes)?);
        }
        Ok(digests.iter().map(|digest| files.get(digest).cloned().unwrap_or_default()).collect())
    }

    pub(super) async fn contents_now(&self, version: &Version) -> Result<SkillContents> {
        let digests: Vec<Digest> = version.files.iter().map(|file| file.digest).collect();
        crate::version::rows::contents(version, self.files_now(&version.skill, &digests).await?)
    }

    pub(super) async fn audit_now(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<AuditEntry>> {
        let name = self.name(":audit");
        let length: u64 = self.link.ask(cmd("LLEN").arg(&name)).await?;
        let end = before.map_or(length, |before| before.saturating_sub(1).min(length));
        let first = end.saturating_sub(limit as u64);
        if first == end {
            return Ok(Vec::new());
        }
        // Places are never given away, so that a longer log changes nothing here.
        let texts: Vec<String> =
            self.link.ask(cmd("LRANGE").arg(&name).arg(first).arg(end - 1)).await?;
        let entries = (first + 1..).zip(texts).map(|(place, text)| {
            let noted: Noted =
                serde_json::from_str(&text).map_err(|error| corrupt("the log", error))?;
            Ok(AuditEntry {
                place,
                time: time(noted.time),
                actor: Actor(noted.actor.into()),
                action: noted.action,
                subject: noted.subject,
                detail: noted.detail,
            })
        });
        let mut entries = entries.collect::<Result<Vec<_>>>()?;
        entries.reverse();
        Ok(entries)
    }
}
