//! How a registry changes: what was read decides, and a script writes if it is still so.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use prowess_catalog::SkillContents;
use redis::Pipeline;
use serde_json::json;

use super::rows::{Kept, Row, version_from};
use super::{RedisVersions, Result};
use crate::redis::batch::Batch;
use crate::version::rows::{Written, lost};
use crate::version::rules::{
    Decision, appended, decide, expect, expect_to_append, reset_detail, reset_summary,
};
use crate::version::{
    Actor, Appended, Expected, NewVersion, Origin, SkillId, Version, VersionError, VersionedSkill,
};

/// A skill while it is changed.
#[derive(Clone, Default)]
struct Draft {
    row: Option<Row>,
    active: Option<Version>,
}

impl Draft {
    fn skill(&self, id: &SkillId) -> Option<VersionedSkill> {
        self.row.as_ref()?.skill(id, self.active.as_ref())
    }
}

impl RedisVersions {
    /// Reads skills, and makes their being so the condition of what is to be written.
    async fn drafts(
        &self,
        ids: &[&SkillId],
        batch: &mut Batch,
    ) -> Result<BTreeMap<SkillId, Draft>> {
        let mut drafts = BTreeMap::new();
        for &id in ids {
            if drafts.contains_key(id) {
                continue;
            }
            let (row, active) = self.kept(id).await?;
            batch.expect(":skills", id.as_str(), row.as_deref().unwrap_or_default());
            let row = row.map(|text| Row::read(id, &text)).transpose()?;
            let active = active.map(|text| version_from(id, &text)).transpose()?;
            drafts.insert(id.clone(), Draft { row, active });
        }
        Ok(drafts)
    }

    /// Decides again and again until nobody was faster.
    pub(super) async fn append_now(&self, news: &[NewVersion]) -> Result<Vec<Appended>> {
        let ids: Vec<&SkillId> = news.iter().map(|new| &new.skill).collect();
        let _alone = self.link.writing().lock().await;
        for _ in 0..super::ATTEMPTS {
            let mut batch = Batch::new(&self.link);
            let mut drafts = self.drafts(&ids, &mut batch).await?;
            let now = Timestamp::now();
            let mut results = Vec::with_capacity(news.len());
            for new in news {
                let draft = drafts.entry(new.skill.clone()).or_default();
                results.push(append(new, draft, &mut batch, now)?);
            }
            if self.add_files(news, &results, &mut batch).await? && !batch.commit().await? {
                continue;
            }
            return Ok(results);
        }
        Err(super::busy())
    }

    /// Adds the files of new versions that are not there yet. Says whether anything is new.
    async fn add_files(
        &self,
        news: &[NewVersion],
        results: &[Appended],
        batch: &mut Batch,
    ) -> Result<bool> {
        let made = || news.iter().zip(results).filter(|(_, result)| result.is_new_version);
        let mut files = BTreeMap::new();
        for (new, result) in made() {
            for (file, about) in new.contents.files.iter().zip(result.version.files.iter()) {
                files.insert(about.digest, &file.bytes);
            }
        }
        let mut together = Pipeline::new();
        for digest in files.keys() {
            together.cmd("HEXISTS").arg(self.name(":files")).arg(digest.hex());
        }
        if files.is_empty() {
            return Ok(made().next().is_some());
        }
        // What is there stays.
        let there: Vec<bool> = self.link.ask_all(&together).await?;
        for ((digest, bytes), is_there) in files.iter().zip(there) {
            if !is_there {
                batch.add("HSET", ":files", &[digest.hex().as_bytes(), bytes]);
            }
        }
        Ok(true)
    }

    pub(super) async fn activate_now(
        &self,
        id: &SkillId,
        number: u64,
        expected: Expected,
        actor: &Actor,
    ) -> Result<VersionedSkill> {
        let _alone = self.link.writing().lock().await;
        for _ in 0..super::ATTEMPTS {
            let mut batch = Batch::new(&self.link);
            let draft = self.drafts(&[id], &mut batch).await?.remove(id).unwrap_or_default();
            expect(draft.row.as_ref().map(Row::skill_row), id, expected)?;
            let Some(mut row) = draft.row.clone() else {
                return Err(VersionError::NoSkill(id.clone()));
            };
            let before = row.active;
            let kept = self.kept_version(id, number).await?;
            let version = version_from(id, &kept)?;
            if before == Some(number) {
                return draft.skill(id).ok_or_else(|| lost(id));
            }
            let now = Timestamp::now();
            row.active = Some(number);
            row.active_tree = Some(version.tree_digest.to_string());
            row.pending = None;
            row.revision += 1;
            row.updated = now.as_millisecond();
            batch.set_skill(id, &row.write()?, Some(&kept));
            let about = json!({"version": number, "before": before});
            batch.note(actor, "skill.activate", id.as_str(), &about, now);
            if batch.commit().await? {
                return row.skill(id, Some(&version)).ok_or_else(|| lost(id));
            }
        }
        Err(super::busy())
    }

    pub(super) async fn reset_now(
        &self,
        id: &SkillId,
        expected: Expected,
        actor: &Actor,
    ) -> Result<VersionedSkill> {
        let _alone = self.link.writing().lock().await;
        for _ in 0..super::ATTEMPTS {
            let mut batch = Batch::new(&self.link);
            let mut draft = self.drafts(&[id], &mut batch).await?.remove(id).unwrap_or_default();
            let row = expect(draft.row.as_ref().map(Row::skill_row), id, expected)?;
            let shipped = row.shipped.ok_or_else(|| VersionError::NotBuiltIn(id.clone()))?;
            let from = self.version_now(id, shipped).await?;
            let contents: Arc<SkillContents> = self.contents_now(&from).await?.into();
            let new = NewVersion::new(id.clone(), contents, from.about, actor.clone())
                .because(Some(reset_summary(shipped)));
            let held = draft.row.as_ref().map(|row| row.held(id)).transpose()?;
            let Some(decision) = decide(&new, Some(&row), held.unwrap_or_default())? else {
                return draft.skill(id).ok_or_else(|| lost(id));
            };
            let now = Timestamp::now();
            write(&new, &decision, &mut draft, &mut batch, now)?;
            let detail = reset_detail(decision.number, shipped);
            batch.note(actor, "skill.reset", id.as_str(), &detail, now);
            if batch.commit().await? {
                return draft.skill(id).ok_or_else(|| lost(id));
            }
        }
        Err(super::busy())
    }

    pub(super) async fn delete_now(
        &self,
        id: &SkillId,
        expected: Expected,
        actor: &Actor,
    ) -> Result<()> {
        let _alone = self.link.writing().lock().await;
        for _ in 0..super::ATTEMPTS {
            let mut batch = Batch::new(&self.link);
            let draft = self.drafts(&[id], &mut batch).await?.remove(id).unwrap_or_default();
            let found = expect(draft.row.as_ref().map(Row::skill_row), id, expected)?;
            if found.origin == Origin::BuiltIn {
                return Err(VersionError::Protected(id.clone()));
            }
            let Some(mut row) = draft.row else { return Err(VersionError::NoSkill(id.clone())) };
            let now = Timestamp::now();
            row.deleted = Some(now.as_millisecond());
            row.pending = None;
            row.updated = now.as_millisecond();
            row.revision += 1;
            batch.set_skill(id, &row.write()?, None);
            let about = json!({"version": found.active_version});
            batch.note(actor, "skill.delete", id.as_str(), &about, now);
            if batch.commit().await? {
                return Ok(());
            }
        }
        Err(super::busy())
    }
}

/// Makes a version of a skill, in the draft and in what is to be written.
fn append(
    new: &NewVersion,
    draft: &mut Draft,
    batch: &mut Batch,
    now: Timestamp,
) -> Result<Appended> {
    let id = &new.skill;
    let row = expect_to_append(draft.row.as_ref().map(Row::skill_row), new)?;
    let held = draft.row.as_ref().map(|row| row.held(id)).transpose()?;
    let Some(decision) = decide(new, row.as_ref(), held.unwrap_or_default())? else {
        let skill = draft.skill(id).ok_or_else(|| lost(id))?;
        return Ok(Appended {
            revision: skill.revision,
            version: skill.active.clone(),
            skill: Some(skill),
            is_new_skill: false,
            is_new_version: false,
        });
    };
    let version = write(new, &decision, draft, batch, now)?;
    let (action, detail) = appended(new, &decision);
    batch.note(&new.actor, action, id.as_str(), &detail, now);
    Ok(Appended {
        skill: draft.skill(id),
        revision: draft.row.as_ref().map_or(0, |row| row.revision),
        version,
        is_new_skill: decision.is_new_skill,
        is_new_version: true,
    })
}

/// Writes a version, and the skill with it.
fn write(
    new: &NewVersion,
    decision: &Decision,
    draft: &mut Draft,
    batch: &mut Batch,
    now: Timestamp,
) -> Result<Version> {
    let (id, written) = (&new.skill, Written::of(new)?);
    let kept = Kept::new(new, &written, decision.number, now).write()?;
    let version = version_from(id, &kept)?;
    let row = Row::after(draft.row.as_ref(), decision, &written.tree_digest, now);
    match row.active {
        Some(number) if number == decision.number => draft.active = Some(version.clone()),
        Some(_) => {}
        None => draft.active = None,
    }
    let number = decision.number.to_string();
    batch.add("HSET", &format!(":versions:{id}"), &[number.as_bytes(), kept.as_bytes()]);
    let tree = written.tree_digest.as_bytes();
    batch.add("HSET", &format!(":trees:{id}"), &[tree, number.as_bytes()]);
    let text = row.write()?;
    match row.active {
        Some(number) if number == decision.number => batch.set_skill(id, &text, Some(&kept)),
        Some(_) => batch.set_row(id, &text),
        None => batch.set_skill(id, &text, None),
    }
    draft.row = Some(row);
    Ok(version)
}
