//! How a registry changes, inside of transactions that somebody else commits.

use std::sync::Arc;

use jiff::Timestamp;
use prowess_catalog::SkillContents;
use rusqlite::{Connection, params};
use serde_json::{Value, json};

use super::read::{contents, skill, version, written};
use super::rows::{Result, skill_row};
use crate::version::rows::{Written, origin_word, signed};
use crate::version::rules::{
    Decision, Held, SkillRow, appended, decide, expect, expect_to_append, reset_detail,
    reset_summary,
};
use crate::version::{
    Actor, Appended, Expected, NewVersion, Origin, SkillId, VersionError, VersionedSkill,
};

/// What a decision must know of the versions of a skill.
fn held(connection: &Connection, id: &SkillId, row: Option<&SkillRow>) -> Result<Held> {
    let Some(row) = row else { return Ok(Held::default()) };
    let mut statement = connection
        .prepare_cached("SELECT coalesce(max(number), 0) FROM versions WHERE skill = ?1")?;
    let newest = statement.query_row([id.as_str()], |row| row.get(0))?;
    let files = |number: Option<u64>| -> Result<_> {
        let version = number.map(|number| version(connection, id, number)).transpose()?;
        Ok(version.map(|version| version.tree_digest))
    };
    Ok(Held { newest, active: files(row.active_version)?, shipped: files(row.shipped)? })
}

/// Makes a version inside a transaction that somebody else commits.
pub(super) fn append(
    connection: &Connection,
    new: &NewVersion,
    now: Timestamp,
) -> Result<Appended> {
    let id = &new.skill;
    let row = expect_to_append(skill_row(connection, id)?, new)?;
    let held = held(connection, id, row.as_ref())?;
    let Some(decision) = decide(new, row.as_ref(), held)? else {
        let skill = written(connection, id)?;
        let (version, revision) = (skill.active.clone(), skill.revision);
        let skill = Some(skill);
        return Ok(Appended {
            skill,
            revision,
            version,
            is_new_skill: false,
            is_new_version: false,
        });
    };
    write_skill(connection, id, &decision, now)?;
    write_version(connection, new, decision.number, now)?;
    let (action, detail) = appended(new, &decision);
    note(connection, &new.actor, action, id.as_str(), &detail, now)?;
    Ok(Appended {
        skill: skill(connection, id)?,
        revision: row.map_or(0, |row| row.revision) + 1,
        version: version(connection, id, decision.number)?,
        is_new_skill: decision.is_new_skill,
        is_new_version: true,
    })
}

fn write_skill(
    connection: &Connection,
    id: &SkillId,
    decision: &Decision,
    now: Timestamp,
) -> Result<()> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO skills (id, origin, revision, active_version, version_count, shipped, created,
         updated, pending) VALUES (?1, ?2, 1, ?3, 1, ?4, ?5, ?5, ?6)
         ON CONFLICT (id) DO UPDATE SET revision = revision + 1, active_version = ?3,
         version_count = version_count + 1, shipped = ?4, updated = ?5, deleted = NULL,
         pending = ?6",
    )?;
    statement.execute(params![
        id.as_str(),
        origin_word(decision.origin),
        decision.active_version.map(signed),
        decision.shipped.map(signed),
        now.as_millisecond(),
        decision.pending.map(signed)
    ])?;
    Ok(())
}

fn write_version(
    connection: &Connection,
    new: &NewVersion,
    number: u64,
    now: Timestamp,
) -> Result<()> {
    let written = Written::of(new)?;
    let mut add =
        connection.prepare_cached("INSERT OR IGNORE INTO files (digest, bytes) VALUES (?1, ?2)")?;
    for (file, digest) in new.contents.files.iter().zip(&written.digests) {
        add.execute(params![digest.as_bytes(), file.bytes])?;
    }
    let mut statement = connection.prepare_cached(
        "INSERT INTO versions (skill, number, tree_digest, digest, about, manifest, created,
         created_by, change_summary) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    statement.execute(params![
        new.skill.as_str(),
        signed(number),
        written.tree_digest,
        written.digest.as_bytes(),
        written.about,
        written.manifest,
        new.created.unwrap_or(now).as_millisecond(),
        &*new.actor.0,
        new.change_summary
    ])?;
    Ok(())
}

pub(super) fn activate(
    connection: &Connection,
    id: &SkillId,
    number: u64,
    expected: Expected,
    actor: &Actor,
    now: Timestamp,
) -> Result<VersionedSkill> {
    let before = expect(skill_row(connection, id)?, id, expected)?.active_version;
    version(connection, id, number)?;
    if before == Some(number) {
        return written(connection, id);
    }
    let mut statement = connection.prepare_cached(
        "UPDATE skills SET active_version = ?2, pending = NULL, revision = revision + 1, updated = ?3
         WHERE id = ?1",
    )?;
    statement.execute(params![id.as_str(), signed(number), now.as_millisecond()])?;
    let about = json!({"version": number, "before": before});
    note(connection, actor, "skill.activate", id.as_str(), &about, now)?;
    written(connection, id)
}

pub(super) fn reset(
    connection: &Connection,
    id: &SkillId,
    expected: Expected,
    actor: &Actor,
    now: Timestamp,
) -> Result<VersionedSkill> {
    let row = expect(skill_row(connection, id)?, id, expected)?;
    let shipped = row.shipped.ok_or_else(|| VersionError::NotBuiltIn(id.clone()))?;
    let from = version(connection, id, shipped)?;
    let contents: Arc<SkillContents> = contents(connection, &from)?.into();
    let new = NewVersion::new(id.clone(), contents, from.about, actor.clone())
        .because(Some(reset_summary(shipped)));
    let held = held(connection, id, Some(&row))?;
    let Some(decision) = decide(&new, Some(&row), held)? else { return written(connection, id) };
    write_skill(connection, id, &decision, now)?;
    write_version(connection, &new, decision.number, now)?;
    let detail = reset_detail(decision.number, shipped);
    note(connection, actor, "skill.reset", id.as_str(), &detail, now)?;
    written(connection, id)
}

pub(super) fn delete(
    connection: &Connection,
    id: &SkillId,
    expected: Expected,
    actor: &Actor,
    now: Timestamp,
) -> Result<()> {
    let row = expect(skill_row(connection, id)?, id, expected)?;
    if row.origin == Origin::BuiltIn {
        return Err(VersionError::Protected(id.clone()));
    }
    let mut statement = connection.prepare_cached(
        "UPDATE skills SET deleted = ?2, pending = NULL, updated = ?2, revision = revision + 1
         WHERE id = ?1",
    )?;
    statement.execute(params![id.as_str(), now.as_millisecond()])?;
    let about = json!({"version": row.active_version});
    note(connection, actor, "skill.delete", id.as_str(), &about, now)
}

pub(super) fn note(
    connection: &Connection,
    actor: &Actor,
    action: &str,
    subject: &str,
    detail: &Value,
    now: Timestamp,
) -> Result<()> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO audit (time, actor, action, subject, detail) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    let time = now.as_millisecond();
    statement.execute(params![time, &*actor.0, action, subject, detail.to_string()])?;
    Ok(())
}
