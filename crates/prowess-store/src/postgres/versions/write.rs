//! How a registry changes, inside of transactions that somebody else commits.

use std::sync::Arc;

use jiff::Timestamp;
use prowess_catalog::SkillContents;
use serde_json::{Value, json};
use sqlx::PgConnection;

use super::read::{contents, skill, version, written};
use super::rows::{Result, skill_row, some_signed};
use crate::postgres::listen::{CHANNEL, SKILLS};
use crate::postgres::pool::Failed;
use crate::postgres::storable;
use crate::version::rows::{Written, origin_word, signed};
use crate::version::rules::{
    Decision, Held, SkillRow, appended, decide, expect, expect_to_append, reset_detail,
    reset_summary,
};
use crate::version::{
    Actor, Appended, Expected, NewVersion, Origin, SkillId, VersionError, VersionedSkill,
};

/// What a decision must know of the versions of a skill.
async fn held(connection: &mut PgConnection, id: &SkillId, row: Option<&SkillRow>) -> Result<Held> {
    let Some(row) = row else { return Ok(Held::default()) };
    let newest: i64 =
        sqlx::query_scalar("SELECT coalesce(max(number), 0) FROM versions WHERE skill = $1")
            .bind(id.as_str())
            .fetch_one(&mut *connection)
            .await?;
    let mut held = Held { newest: newest.unsigned_abs(), ..Held::default() };
    if let Some(number) = row.active_version {
        held.active = Some(version(connection, id, number).await?.tree_digest);
    }
    if let Some(number) = row.shipped {
        held.shipped = Some(version(connection, id, number).await?.tree_digest);
    }
    Ok(held)
}

/// Makes a version.
pub(super) async fn append(
    connection: &mut PgConnection,
    new: &NewVersion,
    now: Timestamp,
) -> Result<Appended> {
    let id = &new.skill;
    let row = expect_to_append(skill_row(connection, id).await?, new)?;
    let held = held(connection, id, row.as_ref()).await?;
    let Some(decision) = decide(new, row.as_ref(), held)? else {
        let skill = written(connection, id).await?;
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
    write_skill(connection, id, &decision, now).await?;
    write_version(connection, new, decision.number, now).await?;
    let (action, detail) = appended(new, &decision);
    note(connection, &new.actor, action, id.as_str(), &detail, now).await?;
    Ok(Appended {
        skill: skill(connection, id).await?,
        revision: row.map_or(0, |row| row.revision) + 1,
        version: version(connection, id, decision.number).await?,
        is_new_skill: decision.is_new_skill,
        is_new_version: true,
    })
}

async fn write_skill(
    connection: &mut PgConnection,
    id: &SkillId,
    decision: &Decision,
    now: Timestamp,
) -> Result<()> {
    sqlx::query(
        "INSERT INTO skills AS old (id, origin, revision, active_version, version_count, shipped,
         created, updated, pending) VALUES ($1, $2, 1, $3, 1, $4, $5, $5, $6)
         ON CONFLICT (id) DO UPDATE SET revision = old.revision + 1, active_version = $3,
         version_count = old.version_count + 1, shipped = $4, updated = $5, deleted = NULL,
         pending = $6",
    )
    .bind(id.as_str())
    .bind(origin_word(decision.origin))
    .bind(some_signed(decision.active_version))
    .bind(some_signed(decision.shipped))
    .bind(now.as_millisecond())
    .bind(some_signed(decision.pending))
    .execute(connection)
    .await?;
    Ok(())
}

async fn write_version(
    connection: &mut PgConnection,
    new: &NewVersion,
    number: u64,
    now: Timestamp,
) -> Result<()> {
    let written = Written::of(new)?;
    let digests: Vec<&[u8]> = written.digests.iter().map(|it| it.as_bytes().as_slice()).collect();
    let bytes: Vec<&[u8]> = new.contents.files.iter().map(|file| file.bytes.as_ref()).collect();
    sqlx::query(
        "INSERT INTO files (digest, bytes) SELECT * FROM unnest($1::bytea[], $2::bytea[])
         ON CONFLICT DO NOTHING",
    )
    .bind(&digests)
    .bind(&bytes)
    .execute(&mut *connection)
    .await?;
    sqlx::query(
        "INSERT INTO versions (skill, number, tree_digest, digest, about, manifest, created,
         created_by, change_summary) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(new.skill.as_str())
    .bind(signed(number))
    .bind(&written.tree_digest)
    .bind(written.digest.as_bytes().as_slice())
    .bind(&written.about)
    .bind(&written.manifest)
    .bind(new.created.unwrap_or(now).as_millisecond())
    .bind(storable(&new.actor.0))
    .bind(new.change_summary.as_ref().map(|summary| json!(summary).to_string()))
    .execute(connection)
    .await?;
    Ok(())
}

pub(super) async fn activate(
    connection: &mut PgConnection,
    id: &SkillId,
    number: u64,
    expected: Expected,
    actor: &Actor,
    now: Timestamp,
) -> Result<VersionedSkill> {
    let before = expect(skill_row(connection, id).await?, id, expected)?.active_version;
    version(connection, id, number).await?;
    if before == Some(number) {
        return written(connection, id).await;
    }
    sqlx::query(
        "UPDATE skills SET active_version = $2, pending = NULL, revision = revision + 1, updated = $3
         WHERE id = $1",
    )
    .bind(id.as_str())
    .bind(signed(number))
    .bind(now.as_millisecond())
    .execute(&mut *connection)
    .await?;
    let about = json!({"version": number, "before": before});
    note(connection, actor, "skill.activate", id.as_str(), &about, now).await?;
    written(connection, id).await
}

pub(super) async fn reset(
    connection: &mut PgConnection,
    id: &SkillId,
    expected: Expected,
    actor: &Actor,
    now: Timestamp,
) -> Result<VersionedSkill> {
    let row = expect(skill_row(connection, id).await?, id, expected)?;
    let shipped = row.shipped.ok_or_else(|| VersionError::NotBuiltIn(id.clone()))?;
    let from = version(connection, id, shipped).await?;
    let contents: Arc<SkillContents> = contents(connection, &from).await?.into();
    let new = NewVersion::new(id.clone(), contents, from.about, actor.clone())
        .because(Some(reset_summary(shipped)));
    let held = held(connection, id, Some(&row)).await?;
    let Some(decision) = decide(&new, Some(&row), held)? else {
        return written(connection, id).await;
    };
    write_skill(connection, id, &decision, now).await?;
    write_version(connection, &new, decision.number, now).await?;
    let detail = reset_detail(decision.number, shipped);
    note(connection, actor, "skill.reset", id.as_str(), &detail, now).await?;
    written(connection, id).await
}

pub(super) async fn delete(
    connection: &mut PgConnection,
    id: &SkillId,
    expected: Expected,
    actor: &Actor,
    now: Timestamp,
) -> Result<()> {
    let row = expect(skill_row(connection, id).await?, id, expected)?;
    if row.origin == Origin::BuiltIn {
        return Err(VersionError::Protected(id.clone()).into());
    }
    sqlx::query(
        "UPDATE skills SET deleted = $2, pending = NULL, updated = $2, revision = revision + 1
         WHERE id = $1",
    )
    .bind(id.as_str())
    .bind(now.as_millisecond())
    .execute(&mut *connection)
    .await?;
    let about = json!({"version": row.active_version});
    note(connection, actor, "skill.delete", id.as_str(), &about, now).await
}

/// Writes down what was done, and tells the others if it was done to a skill.
pub(in crate::postgres) async fn note<E>(
    connection: &mut PgConnection,
    actor: &Actor,
    action: &str,
    subject: &str,
    detail: &Value,
    now: Timestamp,
) -> std::result::Result<(), Failed<E>> {
    sqlx::query(
        "WITH noted AS (
             INSERT INTO audit (time, actor, action, subject, detail) VALUES ($1, $2, $3, $4, $5)
         )
         SELECT pg_notify($6, $7) WHERE $3 LIKE 'skill.%'",
    )
    .bind(now.as_millisecond())
    .bind(storable(&actor.0))
    .bind(storable(action))
    .bind(storable(subject))
    .bind(detail.to_string())
    .bind(CHANNEL)
    .bind(SKILLS)
    .execute(connection)
    .await?;
    Ok(())
}
