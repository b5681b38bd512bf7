//! Rows of the database.

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use crate::postgres::pool::Failed;
use crate::version::rows::{JoinedRow, VersionRow, origin, signed};
use crate::version::rules::SkillRow;
use crate::version::{SkillId, VersionError};

pub(super) type Result<T> = std::result::Result<T, Failed<VersionError>>;

impl From<VersionError> for Failed<VersionError> {
    fn from(error: VersionError) -> Self {
        Self::Said(error)
    }
}

fn number(row: &PgRow, at: usize) -> std::result::Result<u64, sqlx::Error> {
    row.try_get::<i64, _>(at).map(i64::unsigned_abs)
}

fn some_number(row: &PgRow, at: usize) -> std::result::Result<Option<u64>, sqlx::Error> {
    Ok(row.try_get::<Option<i64>, _>(at)?.map(i64::unsigned_abs))
}

pub(super) async fn skill_row(
    connection: &mut PgConnection,
    skill: &SkillId,
) -> Result<Option<SkillRow>> {
    let row = sqlx::query(
        "SELECT origin, revision, active_version, version_count, shipped, deleted, pending
         FROM skills WHERE id = $1",
    )
    .bind(skill.as_str())
    .fetch_optional(connection)
    .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(SkillRow {
        origin: origin(row.try_get(0)?),
        revision: number(&row, 1)?,
        active_version: some_number(&row, 2)?,
        version_count: number(&row, 3)?,
        shipped: some_number(&row, 4)?,
        is_deleted: row.try_get::<Option<i64>, _>(5)?.is_some(),
        pending: some_number(&row, 6)?,
    }))
}

/// The columns of a version, as [`version_row`] takes them.
pub(super) const VERSION: &str = "v.skill, v.number, v.tree_digest, v.digest, v.about, \
     v.manifest, v.created, v.created_by, v.change_summary";

/// A version whose columns begin there.
fn version_at(row: &PgRow, first: usize) -> std::result::Result<VersionRow, sqlx::Error> {
    let summary: Option<String> = row.try_get(first + 8)?;
    Ok(VersionRow {
        skill: row.try_get(first)?,
        number: number(row, first + 1)?,
        tree_digest: row.try_get(first + 2)?,
        digest: row.try_get(first + 3)?,
        about: row.try_get(first + 4)?,
        manifest: row.try_get(first + 5)?,
        created: row.try_get(first + 6)?,
        created_by: row.try_get(first + 7)?,
        change_summary: summary.map(|text| serde_json::from_str(&text).unwrap_or(text)),
    })
}

pub(super) fn version_row(row: &PgRow) -> std::result::Result<VersionRow, sqlx::Error> {
    version_at(row, 0)
}

pub(super) fn skills_where(condition: &str) -> String {
    format!(
        "SELECT s.id, s.origin, s.revision, s.version_count, s.created, s.updated,
         v.tree_digest <> (SELECT tree_digest FROM versions
         WHERE skill = s.id AND number = s.shipped), s.active_version IS NOT NULL, s.pending,
         {VERSION} FROM skills s
         JOIN versions v ON v.skill = s.id AND v.number = coalesce(s.active_version, s.pending)
         WHERE s.deleted IS NULL {condition}"
    )
}

pub(super) fn joined_row(row: &PgRow) -> std::result::Result<JoinedRow, sqlx::Error> {
    Ok(JoinedRow {
        id: row.try_get(0)?,
        origin: origin(row.try_get(1)?),
        revision: number(row, 2)?,
        version_count: number(row, 3)?,
        created: row.try_get(4)?,
        updated: row.try_get(5)?,
        is_changed: row.try_get::<Option<bool>, _>(6)?.unwrap_or_default(),
        is_used: row.try_get(7)?,
        pending: some_number(row, 8)?,
        version: version_at(row, 9)?,
    })
}

/// A number that may be none, as it is stored.
pub(super) fn some_signed(number: Option<u64>) -> Option<i64> {
    number.map(signed)
}
