//! Rows of the database.

use rusqlite::{Connection, OptionalExtension, Row};

use crate::version::rows::{JoinedRow, VersionRow, origin};
use crate::version::rules::SkillRow;
use crate::version::{SkillId, VersionError};

pub(super) type Result<T> = std::result::Result<T, VersionError>;

pub(super) fn skill_row(connection: &Connection, skill: &SkillId) -> Result<Option<SkillRow>> {
    let mut statement = connection.prepare_cached(
        "SELECT origin, revision, active_version, version_count, shipped, deleted, pending
         FROM skills WHERE id = ?1",
    )?;
    let row = |row: &Row<'_>| {
        Ok(SkillRow {
            origin: origin(&row.get::<_, String>(0)?),
            revision: row.get(1)?,
            active_version: row.get(2)?,
            version_count: row.get(3)?,
            shipped: row.get(4)?,
            is_deleted: row.get::<_, Option<i64>>(5)?.is_some(),
            pending: row.get(6)?,
        })
    };
    Ok(statement.query_row([skill.as_str()], row).optional()?)
}

/// The columns of a version, as [`version_row`] takes them.
pub(super) const VERSION: &str = "v.skill, v.number, v.tree_digest, v.digest, v.about, v.manifest, v.created, v.created_by, \
     v.change_summary";

/// A version whose columns begin there.
fn version_at(row: &Row<'_>, first: usize) -> rusqlite::Result<VersionRow> {
    Ok(VersionRow {
        skill: row.get(first)?,
        number: row.get(first + 1)?,
        tree_digest: row.get(first + 2)?,
        digest: row.get(first + 3)?,
        about: row.get(first + 4)?,
        manifest: row.get(first + 5)?,
        created: row.get(first + 6)?,
        created_by: row.get(first + 7)?,
        change_summary: row.get(first + 8)?,
    })
}

pub(super) fn version_row(row: &Row<'_>) -> rusqlite::Result<VersionRow> {
    version_at(row, 0)
}

const SKILLS: &str = "SELECT s.id, s.origin, s.revision, s.version_count, s.created, s.updated,
    v.tree_digest <> (SELECT tree_digest FROM versions WHERE skill = s.id AND number = s.shipped),
    s.active_version IS NOT NULL, s.pending,";

pub(super) fn skills_where(condition: &str) -> String {
    let version = VERSION;
    format!(
        "{SKILLS} {version} FROM skills s
         JOIN versions v ON v.skill = s.id AND v.number = coalesce(s.active_version, s.pending)
         WHERE s.deleted IS NULL {condition}"
    )
}

pub(super) fn joined_row(row: &Row<'_>) -> rusqlite::Result<JoinedRow> {
    Ok(JoinedRow {
        id: row.get(0)?,
        origin: origin(&row.get::<_, String>(1)?),
        revision: row.get(2)?,
        version_count: row.get(3)?,
        created: row.get(4)?,
        updated: row.get(5)?,
        is_changed: row.get::<_, Option<bool>>(6)?.unwrap_or_default(),
        is_used: row.get(7)?,
        pending: row.get(8)?,
        version: version_at(row, 9)?,
    })
}
