//! What a change of a registry means, whichever store it is in.

use prowess_catalog::TreeDigest;
use serde_json::{Value, json};

use super::{Activation, Expected, NewVersion, Origin, SameContent, SkillId, VersionError};

/// What a store knows of a skill, deleted or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SkillRow {
    pub(crate) origin: Origin,
    pub(crate) revision: u64,
    pub(crate) active_version: Option<u64>,
    /// The version that waits to be activated.
    pub(crate) pending: Option<u64>,
    pub(crate) version_count: u64,
    pub(crate) shipped: Option<u64>,
    pub(crate) is_deleted: bool,
}

/// What a decision must know of the versions of a skill.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Held {
    /// The highest number.
    pub(crate) newest: u64,
    /// The files of the version that is used.
    pub(crate) active: Option<TreeDigest>,
    /// The files of the version that was shipped last.
    pub(crate) shipped: Option<TreeDigest>,
}

/// What is written of a skill with something new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    /// The number of the new version.
    pub(crate) number: u64,
    /// Whether it is used from now on.
    pub(crate) is_active: bool,
    /// The version that is used from now on.
    pub(crate) active_version: Option<u64>,
    /// The version that waits to be activated.
    pub(crate) pending: Option<u64>,
    /// The version that was shipped last.
    pub(crate) shipped: Option<u64>,
    pub(crate) origin: Origin,
    pub(crate) is_new_skill: bool,
}

/// The row of a skill that is there, as it was expected.
pub(crate) fn expect(
    row: Option<SkillRow>,
    skill: &SkillId,
    expected: Expected,
) -> Result<SkillRow, VersionError> {
    let missing = || VersionError::NoSkill(skill.clone());
    let row = row.filter(|row| !row.is_deleted).ok_or_else(missing)?;
    match expected {
        Expected::Absent => Err(VersionError::Exists(skill.clone())),
        Expected::Revision(expected) if expected != row.revision => {
            Err(VersionError::Stale { skill: skill.clone(), expected, actual: row.revision })
        }
        _ => Ok(row),
    }
}

/// The row that a new version is appended to, if it may be: a skill that was deleted or never was
/// may be expected not to be there.
pub(crate) fn expect_to_append(
    row: Option<SkillRow>,
    new: &NewVersion,
) -> Result<Option<SkillRow>, VersionError> {
    let is_there = row.as_ref().is_some_and(|row| !row.is_deleted);
    match new.expected {
        Expected::Absent | Expected::Any if !is_there => Ok(row),
        expected => expect(row, &new.skill, expected).map(Some),
    }
}

/// Which number a version is given, and whether it is used; `None` if nothing is to be done.
pub(crate) fn decide(
    new: &NewVersion,
    row: Option<&SkillRow>,
    held: Held,
) -> Result<Option<Decision>, VersionError> {
    let tree_digest = Some(new.contents.tree_digest);
    let (mut is_active, mut is_new_skill) = (new.activation == Activation::Now, false);
    let number = match row {
        None => {
            is_new_skill = true;
            u64::from(new.origin == Origin::Custom)
        }
        Some(row) if new.origin == Origin::BuiltIn => {
            if row.origin != Origin::BuiltIn || row.shipped.is_none() {
                return Err(VersionError::Exists(new.skill.clone()));
            }
            if held.shipped == tree_digest {
                return Ok(None);
            }
            // Whoever has what was shipped, by whichever number, has changed nothing.
            is_active = row.active_version.is_none() || held.active == held.shipped;
            held.newest + 1
        }
        Some(row) => {
            is_new_skill = row.is_deleted;
            let is_kept = !row.is_deleted && new.same_content == SameContent::Keep;
            if is_kept && row.active_version.is_some() && held.active == tree_digest {
                return Ok(None);
            }
            held.newest + 1
        }
    };
    let active_version = match row {
        _ if is_active => Some(number),
        Some(row) if !row.is_deleted => row.active_version,
        _ => None,
    };
    let pending = match new.origin {
        _ if is_active => None,
        Origin::Custom => Some(number),
        // What is shipped anew is nobody's work that others go on with.
        Origin::BuiltIn => row.and_then(|row| row.pending),
    };
    let shipped = match new.origin {
        Origin::BuiltIn => Some(number),
        Origin::Custom => row.and_then(|row| row.shipped),
    };
    let origin = row.map_or(new.origin, |row| row.origin);
    let decision =
        Decision { number, is_active, active_version, pending, shipped, origin, is_new_skill };
    Ok(Some(decision))
}

impl SkillRow {
    /// The version that the next change that waits is made to: the one that waits, else the one
    /// that is used. There is always one of them unless the row is broken.
    pub(crate) fn head(&self) -> Option<u64> {
        self.pending.or(self.active_version)
    }
}

/// What the log says of a new version: the action, and more about it.
pub(crate) fn appended(new: &NewVersion, decision: &Decision) -> (&'static str, Value) {
    let action = if decision.is_new_skill { "skill.create" } else { "skill.update" };
    let mut detail = detail(decision.number, new.change_summary.as_deref());
    detail["active"] = json!(decision.is_active);
    detail["tree_digest"] = json!(new.contents.tree_digest);
    (action, detail)
}

/// Why a version is there that was made of the one that was shipped.
pub(crate) fn reset_summary(shipped: u64) -> String {
    format!("Reset to version {shipped}, as shipped")
}

/// What the log says of it.
pub(crate) fn reset_detail(number: u64, shipped: u64) -> Value {
    let mut detail = detail(number, Some(&reset_summary(shipped)));
    detail["shipped"] = json!(shipped);
    detail
}

fn detail(number: u64, summary: Option<&str>) -> Value {
    match summary {
        Some(summary) => json!({"version": number, "change_summary": summary}),
        None => json!({"version": number}),
    }
}
