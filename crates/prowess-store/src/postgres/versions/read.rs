//! What is asked of a registry.

use std::collections::HashMap;
use std::sync::LazyLock;

use prowess_catalog::{SkillContents, TreeDigest};
use prowess_format::Digest;
use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use super::rows::{Result, VERSION, joined_row, skill_row, skills_where, version_row};
use crate::version::rows::{
    Stored, corrupt, lost, read_skill, read_version, signed, time, verified,
};
use crate::version::rules::expect;
use crate::version::{
    Actor, AuditEntry, Changes, Expected, Listed, SkillId, Version, VersionError, VersionedSkill,
};

static ONE_VERSION: LazyLock<String> = LazyLock::new(|| {
    format!("SELECT {VERSION} FROM versions v WHERE v.skill = $1 AND v.number = $2")
});

pub(super) async fn version(
    connection: &mut PgConnection,
    skill: &SkillId,
    number: u64,
) -> Result<Version> {
    let row = sqlx::query(ONE_VERSION.as_str())
        .bind(skill.as_str())
        .bind(signed(number))
        .fetch_optional(connection)
        .await?;
    let missing = || VersionError::NoVersion { skill: skill.clone(), number };
    Ok(read_version(version_row(&row.ok_or_else(missing)?)?)?)
}

static VERSIONS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {VERSION} FROM versions v WHERE v.skill = $1
         ORDER BY v.number DESC LIMIT $3 OFFSET $2"
    )
});

pub(super) async fn versions(
    connection: &mut PgConnection,
    skill: &SkillId,
    offset: u64,
    limit: usize,
) -> Result<Listed<Version>> {
    let row = expect(skill_row(connection, skill).await?, skill, Expected::Present)?;
    let rows = sqlx::query(VERSIONS.as_str())
        .bind(skill.as_str())
        .bind(signed(offset))
        .bind(signed(limit as u64))
        .fetch_all(connection)
        .await?;
    let read = |row: &PgRow| Ok(read_version(version_row(row)?)?);
    let items = rows.iter().map(read).collect::<Result<_>>()?;
    Ok(Listed { items, total: row.version_count })
}

pub(super) async fn head(connection: &mut PgConnection, skill: &SkillId) -> Result<(u64, Version)> {
    let row = expect(skill_row(connection, skill).await?, skill, Expected::Present)?;
    let number = row.head().ok_or_else(|| lost(skill))?;
    Ok((row.revision, version(connection, skill, number).await?))
}

static VERSION_WITH: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {VERSION} FROM versions v WHERE v.skill = $1 AND v.tree_digest = $2
         ORDER BY v.number DESC LIMIT 1"
    )
});

pub(super) async fn version_with(
    connection: &mut PgConnection,
    skill: &SkillId,
    tree_digest: TreeDigest,
) -> Result<Option<Version>> {
    let row = sqlx::query(VERSION_WITH.as_str())
        .bind(skill.as_str())
        .bind(tree_digest.to_string())
        .fetch_optional(connection)
        .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(read_version(version_row(&row)?)?))
}

static ONE_SKILL: LazyLock<String> = LazyLock::new(|| skills_where("AND s.id = $1"));

pub(super) async fn skill(
    connection: &mut PgConnection,
    skill: &SkillId,
) -> Result<Option<VersionedSkill>> {
    let row =
        sqlx::query(ONE_SKILL.as_str()).bind(skill.as_str()).fetch_optional(connection).await?;
    let Some(row) = row else { return Ok(None) };
    Ok(read_skill(joined_row(&row)?)?.used())
}

/// One that must be there, because it was just written.
pub(super) async fn written(connection: &mut PgConnection, id: &SkillId) -> Result<VersionedSkill> {
    Ok(skill(connection, id).await?.ok_or_else(|| lost(id))?)
}

/// A skill whose row was found. What fails here is wrong with the row, not with the store.
fn understood(text: &str, row: &PgRow) -> std::result::Result<(SkillId, Stored), VersionError> {
    let skill = joined_row(row).map_err(|error| corrupt(text, error)).and_then(read_skill)?;
    Ok((text.parse().map_err(|error| corrupt(text, error))?, skill))
}

/// Every change is in the log, so that the log's end is another one after each.
pub(super) async fn generation(connection: &mut PgConnection) -> Result<u64> {
    let sql = "SELECT coalesce(max(place), 0) FROM audit";
    let place: i64 = sqlx::query_scalar(sql).fetch_one(connection).await?;
    Ok(place.unsigned_abs())
}

static ALL_SKILLS: LazyLock<String> = LazyLock::new(|| skills_where("ORDER BY s.id"));

pub(super) async fn all(connection: &mut PgConnection) -> Result<Changes> {
    let generation = generation(connection).await?;
    let rows = sqlx::query(ALL_SKILLS.as_str()).fetch_all(connection).await?;
    let mut changes = Changes { generation, ..Changes::default() };
    for row in &rows {
        let text: String = row.try_get(0)?;
        match understood(&text, row) {
            Ok((id, skill)) => changes.add(id, Some(skill)),
            Err(error) => changes.add_broken(&text, &error),
        }
    }
    Ok(changes)
}

static SOME_SKILLS: LazyLock<String> = LazyLock::new(|| skills_where("AND s.id = ANY ($1)"));

pub(super) async fn changes(connection: &mut PgConnection, since: u64) -> Result<Changes> {
    let generation = generation(connection).await?;
    let subjects: Vec<String> = sqlx::query_scalar(
        "SELECT DISTINCT subject FROM audit WHERE place > $1 AND action LIKE 'skill.%'
         ORDER BY subject",
    )
    .bind(signed(since))
    .fetch_all(&mut *connection)
    .await?;
    let rows = sqlx::query(SOME_SKILLS.as_str()).bind(&subjects).fetch_all(connection).await?;
    let mut found = HashMap::new();
    for row in &rows {
        let text: String = row.try_get(0)?;
        let skill = understood(&text, row);
        found.insert(text, skill);
    }
    let mut changes = Changes { generation, ..Changes::default() };
    for subject in subjects {
        let Ok(id) = subject.parse::<SkillId>() else { continue };
        match found.remove(&subject).transpose() {
            Ok(found) => changes.add(id, found.map(|(_, skill)| skill)),
            Err(error) => changes.add_broken(&subject, &error),
        }
    }
    Ok(changes)
}

pub(super) async fn file(
    connection: &mut PgConnection,
    skill: &SkillId,
    digest: &Digest,
) -> Result<Vec<u8>> {
    let bytes = sqlx::query_scalar("SELECT bytes FROM files WHERE digest = $1")
        .bind(digest.as_bytes().as_slice())
        .fetch_optional(connection)
        .await?;
    Ok(verified(skill, digest, bytes)?)
}

pub(super) async fn contents(
    connection: &mut PgConnection,
    version: &Version,
) -> Result<SkillContents> {
    let digests: Vec<&[u8]> =
        version.files.iter().map(|file| file.digest.as_bytes().as_slice()).collect();
    let rows: Vec<(Vec<u8>, Vec<u8>)> =
        sqlx::query_as("SELECT digest, bytes FROM files WHERE digest = ANY ($1)")
            .bind(&digests)
            .fetch_all(connection)
            .await?;
    // Files may be the same under several names.
    let found: HashMap<Vec<u8>, Vec<u8>> = rows.into_iter().collect();
    let bytes = version.files.iter().map(|file| {
        let bytes = found.get(file.digest.as_bytes().as_slice()).cloned();
        verified(&version.skill, &file.digest, bytes)
    });
    let bytes: Vec<Vec<u8>> = bytes.collect::<std::result::Result<_, _>>()?;
    Ok(crate::version::rows::contents(version, bytes)?)
}

pub(super) async fn audit(
    connection: &mut PgConnection,
    before: Option<u64>,
    limit: usize,
) -> Result<Vec<AuditEntry>> {
    let rows = sqlx::query(
        "SELECT place, time, actor, action, subject, detail FROM audit
         WHERE place < $1 ORDER BY place DESC LIMIT $2",
    )
    .bind(before.map_or(i64::MAX, signed))
    .bind(signed(limit as u64))
    .fetch_all(connection)
    .await?;
    let entry = |row: &PgRow| {
        let detail: String = row.try_get(5)?;
        Ok(AuditEntry {
            place: row.try_get::<i64, _>(0)?.unsigned_abs(),
            time: time(row.try_get(1)?),
            actor: Actor(row.try_get::<String, _>(2)?.into()),
            action: row.try_get(3)?,
            subject: row.try_get(4)?,
            detail: serde_json::from_str(&detail).unwrap_or(Value::String(detail)),
        })
    };
    rows.iter().map(entry).collect()
}
