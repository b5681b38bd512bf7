//! Skills and versions as they are kept: as JSON that no script touches.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use prowess_catalog::TreeDigest;
use serde::{Deserialize, Serialize};

use super::Result;
use crate::version::rows::{
    VersionRow, Written, corrupt, origin, origin_word, read_version, time, tree_digest,
};
use crate::version::rules::{Decision, Held, SkillRow};
use crate::version::{NewVersion, SkillId, Version, VersionError, VersionedSkill, WaitingSkill};

/// A skill, deleted or not.
#[derive(Clone, Serialize, Deserialize)]
pub(in crate::redis) struct Row {
    pub(super) origin: String,
    pub(super) revision: u64,
    /// None as long as nobody has activated one.
    pub(in crate::redis) active: Option<u64>,
    pub(in crate::redis) active_tree: Option<String>,
    /// The version that waits to be activated. Rows that are older do not say.
    #[serde(default)]
    pub(super) pending: Option<u64>,
    pub(super) count: u64,
    /// The version that the program shipped last.
    pub(super) shipped: Option<u64>,
    pub(super) shipped_tree: Option<String>,
    pub(super) newest: u64,
    pub(super) created: i64,
    pub(super) updated: i64,
    pub(super) deleted: Option<i64>,
}

impl Row {
    pub(super) fn read(id: &SkillId, text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|error| corrupt(id.as_str(), error))
    }

    pub(super) fn write(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| VersionError::Unstorable(error.to_string()))
    }

    /// What the rules know of it.
    pub(super) fn skill_row(&self) -> SkillRow {
        SkillRow {
            origin: origin(&self.origin),
            revision: self.revision,
            active_version: self.active,
            // Where none is used, the newest one waits.
            pending: self.pending.or_else(|| self.active.is_none().then_some(self.newest)),
            version_count: self.count,
            shipped: self.shipped,
            is_deleted: self.deleted.is_some(),
        }
    }

    pub(super) fn held(&self, id: &SkillId) -> Result<Held> {
        let tree = |text: &Option<String>| -> Result<Option<TreeDigest>> {
            let tree = text.as_deref().map(tree_digest).transpose();
            tree.map_err(|error| corrupt(id.as_str(), error))
        };
        let (active, shipped) = (tree(&self.active_tree)?, tree(&self.shipped_tree)?);
        Ok(Held { newest: self.newest, active, shipped })
    }

    /// The row after a new version with these files.
    pub(super) fn after(
        before: Option<&Self>,
        decision: &Decision,
        tree: &str,
        now: Timestamp,
    ) -> Self {
        let now = now.as_millisecond();
        let tree_of = |number: Option<u64>, old: Option<&Option<String>>| match number {
            None => None,
            Some(number) if number == decision.number => Some(tree.to_owned()),
            Some(_) => old.cloned().flatten(),
        };
        Self {
            origin: origin_word(decision.origin).to_owned(),
            revision: before.map_or(0, |it| it.revision) + 1,
            active: decision.active_version,
            active_tree: tree_of(decision.active_version, before.map(|it| &it.active_tree)),
            pending: decision.pending,
            count: before.map_or(0, |it| it.count) + 1,
            shipped: decision.shipped,
            shipped_tree: tree_of(decision.shipped, before.map(|it| &it.shipped_tree)),
            newest: decision.number,
            created: before.map_or(now, |it| it.created),
            updated: now,
            deleted: None,
        }
    }

    /// The skill, if it is there and a version of it is used.
    pub(super) fn skill(&self, id: &SkillId, active: Option<&Version>) -> Option<VersionedSkill> {
        let active = active.filter(|_| self.deleted.is_none())?.clone();
        let is_changed = self.shipped_tree.is_some() && self.shipped_tree != self.active_tree;
        Some(VersionedSkill {
            id: id.clone(),
            origin: origin(&self.origin),
            revision: self.revision,
            version_count: self.count,
            created: time(self.created),
            updated: time(self.updated),
            is_changed,
            pending: self.pending,
            active,
        })
    }

    /// The number of the version that waits, if the skill is there and none is used.
    pub(super) fn waits(&self) -> Option<u64> {
        let row = self.skill_row();
        row.pending.filter(|_| !row.is_deleted && row.active_version.is_none())
    }

    /// The skill that has this version, which waits.
    pub(super) fn waiting(&self, id: &SkillId, version: Version) -> WaitingSkill {
        WaitingSkill {
            id: id.clone(),
            origin: origin(&self.origin),
            revision: self.revision,
            version_count: self.count,
            created: time(self.created),
            updated: time(self.updated),
            version,
        }
    }
}

/// A version.
#[derive(Serialize, Deserialize)]
pub(super) struct Kept {
    number: u64,
    tree: String,
    /// In Base64.
    digest: String,
    about: String,
    manifest: String,
    created: i64,
    by: String,
    why: Option<String>,
}

impl Kept {
    pub(super) fn new(new: &NewVersion, written: &Written, number: u64, now: Timestamp) -> Self {
        Self {
            number,
            tree: written.tree_digest.clone(),
            digest: STANDARD.encode(written.digest.as_bytes()),
            about: written.about.clone(),
            manifest: written.manifest.clone(),
            created: new.created.unwrap_or(now).as_millisecond(),
            by: new.actor.to_string(),
            why: new.change_summary.clone(),
        }
    }

    pub(super) fn write(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| VersionError::Unstorable(error.to_string()))
    }
}

/// A version from what is kept of it.
pub(super) fn version_from(id: &SkillId, text: &str) -> Result<Version> {
    let kept: Kept = serde_json::from_str(text).map_err(|error| corrupt(id.as_str(), error))?;
    let digest = STANDARD.decode(&kept.digest).map_err(|error| corrupt(id.as_str(), error))?;
    read_version(VersionRow {
        skill: id.to_string(),
        number: kept.number,
        tree_digest: kept.tree,
        digest,
        about: kept.about,
        manifest: kept.manifest,
        created: kept.created,
        created_by: kept.by,
        change_summary: kept.why,
    })
}
