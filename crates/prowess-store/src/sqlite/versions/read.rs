//! What is asked of a registry.

use prowess_catalog::{SkillContents, TreeDigest};
use prowess_format::Digest;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value;

use super::rows::{Result, VERSION, joined_row, skill_row, skills_where, version_row};
use crate::version::rows::{
    JoinedRow, Stored, corrupt, lost, read_skill, read_version, signed, time, verified,
};
use crate::version::rules::expect;
use crate::version::{
    Actor, AuditEntry, Changes, Expected, Listed, SkillId, Version, VersionError, VersionFile,
    VersionedSkill,
};

pub(super) fn version(connection: &Connection, skill: &SkillId, number: u64) -> Result<Version> {
    let sql = format!("SELECT {VERSION} FROM versions v WHERE v.skill = ?1 AND v.number = ?2");
    let mut statement = connection.prepare_cached(&sql)?;
    let found =
        statement.query_row(params![skill.as_str(), signed(number)], version_row).optional()?;
    let missing = || VersionError::NoVersion { skill: skill.clone(), number };
    read_version(found.ok_or_else(missing)?)
}

pub(super) fn head(connection: &Connection, skill: &SkillId) -> Result<(u64, Version)> {
    let together = connection.unchecked_transaction()?;
    let row = expect(skill_row(&together, skill)?, skill, Expected::Present)?;
    let number = row.head().ok_or_else(|| lost(skill))?;
    Ok((row.revision, version(&together, skill, number)?))
}

pub(super) fn version_with(
    connection: &Connection,
    skill: &SkillId,
    tree_digest: TreeDigest,
) -> Result<Option<Version>> {
    let sql = format!(
        "SELECT {VERSION} FROM versions v WHERE v.skill = ?1 AND v.tree_digest = ?2
         ORDER BY v.number DESC LIMIT 1"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let values = params![skill.as_str(), tree_digest.to_string()];
    let found = statement.query_row(values, version_row).optional()?;
    found.map(read_version).transpose()
}

pub(super) fn skill(connection: &Connection, skill: &SkillId) -> Result<Option<VersionedSkill>> {
    let mut statement = connection.prepare_cached(&skills_where("AND s.id = ?1"))?;
    let found = statement.query_row([skill.as_str()], joined_row).optional()?;
    Ok(found.map(read_skill).transpose()?.and_then(Stored::used))
}

/// One that must be there, because it was just written.
pub(super) fn written(connection: &Connection, id: &SkillId) -> Result<VersionedSkill> {
    skill(connection, id)?.ok_or_else(|| lost(id))
}

pub(super) fn all(connection: &Connection) -> Result<Changes> {
    // One point in time for both.
    let together = connection.unchecked_transaction()?;
    let generation = generation(&together)?;
    let mut statement = together.prepare_cached(&skills_where("ORDER BY s.id"))?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, joined_row(row))))?;
    let mut changes = Changes { generation, ..Changes::default() };
    for row in rows {
        let (text, row): (String, _) = row?;
        match understood(&text, row) {
            Ok((id, skill)) => changes.add(id, Some(skill)),
            Err(error) => changes.add_broken(&text, &error),
        }
    }
    Ok(changes)
}

/// A skill whose row was found. What fails here is wrong with the row, not with the store.
fn understood(text: &str, row: rusqlite::Result<JoinedRow>) -> Result<(SkillId, Stored)> {
    let skill = row.map_err(|error| corrupt(text, error)).and_then(read_skill)?;
    Ok((text.parse().map_err(|error| corrupt(text, error))?, skill))
}

/// Every change is in the log, so that the log's end is another one after each.
fn generation(connection: &Connection) -> Result<u64> {
    let mut statement = connection.prepare_cached("SELECT coalesce(max(place), 0) FROM audit")?;
    Ok(statement.query_row([], |row| row.get(0))?)
}

pub(super) fn changes(connection: &Connection, since: u64) -> Result<Changes> {
    let together = connection.unchecked_transaction()?;
    let generation = generation(&together)?;
    if generation == since {
        return Ok(Changes { generation, ..Changes::default() });
    }
    let mut statement = together.prepare_cached(
        "SELECT DISTINCT subject FROM audit WHERE place > ?1 AND action GLOB 'skill.*'
         ORDER BY subject",
    )?;
    let subjects = statement.query_map([signed(since)], |row| row.get::<_, String>(0))?;
    let mut changes = Changes { generation, ..Changes::default() };
    let mut one = together.prepare_cached(&skills_where("AND s.id = ?1"))?;
    for subject in subjects {
        let Ok(id) = subject?.parse::<SkillId>() else { continue };
        let row = one.query_row([id.as_str()], |row| Ok(joined_row(row))).optional()?;
        match row.map(|row| understood(id.as_str(), row)).transpose() {
            Ok(found) => changes.add(id, found.map(|(_, skill)| skill)),
            Err(error) => changes.add_broken(id.as_str(), &error),
        }
    }
    Ok(changes)
}

pub(super) fn versions(
    connection: &Connection,
    skill: &SkillId,
    offset: u64,
    limit: usize,
) -> Result<Listed<Version>> {
    let together = connection.unchecked_transaction()?;
    let row = expect(skill_row(&together, skill)?, skill, Expected::Present)?;
    let sql = format!(
        "SELECT {VERSION} FROM versions v WHERE v.skill = ?1
         ORDER BY v.number DESC LIMIT ?3 OFFSET ?2"
    );
    let mut statement = together.prepare_cached(&sql)?;
    let limit = signed(limit as u64);
    let rows = statement.query_map(params![skill.as_str(), signed(offset), limit], version_row)?;
    let items = rows.map(|row| read_version(row?)).collect::<Result<_>>()?;
    Ok(Listed { items, total: row.version_count })
}

pub(super) fn file(connection: &Connection, skill: &SkillId, digest: &Digest) -> Result<Vec<u8>> {
    let mut statement = connection.prepare_cached("SELECT bytes FROM files WHERE digest = ?1")?;
    let bytes: Option<Vec<u8>> =
        statement.query_row([digest.as_bytes()], |row| row.get(0)).optional()?;
    verified(skill, digest, bytes)
}

pub(super) fn contents(connection: &Connection, version: &Version) -> Result<SkillContents> {
    let read = |about: &VersionFile| file(connection, &version.skill, &about.digest);
    let bytes: Result<Vec<_>> = version.files.iter().map(read).collect();
    crate::version::rows::contents(version, bytes?)
}

pub(super) fn audit(
    connection: &Connection,
    before: Option<u64>,
    limit: usize,
) -> Result<Vec<AuditEntry>> {
    let mut statement = connection.prepare_cached(
        "SELECT place, time, actor, action, subject, detail FROM audit
         WHERE place < ?1 ORDER BY place DESC LIMIT ?2",
    )?;
    let before = before.map_or(i64::MAX, signed);
    let rows = statement.query_map(params![before, signed(limit as u64)], |row| {
        let detail: String = row.get(5)?;
        Ok(AuditEntry {
            place: row.get(0)?,
            time: time(row.get(1)?),
            actor: Actor(row.get::<_, String>(2)?.into()),
            action: row.get(3)?,
            subject: row.get(4)?,
            detail: serde_json::from_str(&detail).unwrap_or(Value::String(detail)),
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
