//! The registry of the store.

use std::sync::Arc;

use prowess_catalog::SkillContents;
use prowess_store::{
    Activation, Actor, Expected, FileDiff, NewVersion, Origin, SameContent, SkillId, VersionError,
    VersionStore, VersionedSkill, compare,
};

use super::desk::{DeskError, Push, Pushed, SkillRow, VersionRow};
use crate::built_in;
use crate::finder::Finder;
use crate::store::StorePlace;

/// So many versions are read at once.
const PAGE: usize = 500;

/// The registry of the store.
pub(super) struct Local {
    pub(super) store: Arc<dyn VersionStore>,
}

impl Local {
    pub(super) async fn open(finder: &Finder) -> anyhow::Result<Self> {
        let open = StorePlace::find(finder)?.open().await?;
        built_in::register_missing(open.store.versions.as_ref()).await?;
        Ok(Self { store: open.store.versions })
    }

    pub(super) async fn list(&self) -> Result<Vec<SkillRow>, DeskError> {
        let all = self.store.changes(None).await?;
        let used = all.skills.into_iter().filter_map(|(_, it)| it).map(|skill| SkillRow {
            id: skill.id.to_string(),
            name: skill.active.about.title,
            version: skill.active.about.semantic_version,
            active_version: Some(skill.active.number),
            pending_version: skill.pending,
            version_count: skill.version_count,
            is_builtin: skill.origin == Origin::BuiltIn,
            updated_at: skill.updated,
        });
        let waiting = all.waiting.into_iter().map(|skill| SkillRow {
            id: skill.id.to_string(),
            name: skill.version.about.title,
            version: skill.version.about.semantic_version,
            active_version: None,
            pending_version: Some(skill.version.number),
            version_count: skill.version_count,
            is_builtin: skill.origin == Origin::BuiltIn,
            updated_at: skill.updated,
        });
        let mut rows: Vec<SkillRow> = used.chain(waiting).collect();
        rows.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(rows)
    }

    pub(super) async fn push(&self, push: Push) -> Result<Pushed, DeskError> {
        let Push { reading, contents, message, activate } = push;
        // The same reason as a server writes down.
        let why = message.or_else(|| Some("Imported".to_owned()));
        let mut new =
            NewVersion::new(reading.id, contents, reading.about, Actor::local()).because(why);
        new.same_content = SameContent::Keep;
        new.activation = if activate { Activation::Now } else { Activation::Later };
        let appended = self.store.append(new).await?;
        let status = match (appended.is_new_skill, appended.is_new_version) {
            (true, _) => "created",
            (_, true) => "updated",
            _ => "unchanged",
        };
        Ok(Pushed {
            status: status.to_owned(),
            version_number: appended.version.number,
            active_version: appended.skill.map(|skill| skill.active.number),
        })
    }

    /// The skill, if a version of it is used.
    async fn used(&self, skill: &SkillId) -> Result<Option<VersionedSkill>, DeskError> {
        match self.store.skill(skill).await {
            Ok(skill) => Ok(Some(skill)),
            Err(VersionError::NoSkill(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) async fn versions(&self, skill: &SkillId) -> Result<Vec<VersionRow>, DeskError> {
        let used = self.used(skill).await?;
        let active = used.as_ref().map(|skill| skill.active.number);
        let pending = match used {
            Some(skill) => skill.pending,
            None => Some(self.store.head(skill).await?.1.number),
        };
        let mut rows = Vec::new();
        loop {
            let page = self.store.versions(skill, rows.len() as u64, PAGE).await?;
            let is_last = page.items.len() < PAGE;
            rows.extend(page.items.into_iter().map(|version| VersionRow {
                version_number: version.number,
                semantic_version: version.about.semantic_version,
                change_summary: version.change_summary,
                created_at: version.created,
                author: Some(version.created_by.to_string()),
                created_by: version.created_by.to_string(),
                is_active: Some(version.number) == active,
                is_pending: Some(version.number) == pending,
                tree_digest: version.tree_digest.to_string(),
            }));
            if is_last {
                return Ok(rows);
            }
        }
    }

    pub(super) async fn contents(
        &self,
        skill: &SkillId,
        version: Option<u64>,
    ) -> Result<(u64, SkillContents), DeskError> {
        let (used, (_, waiting)) = (self.used(skill).await?, self.store.head(skill).await?);
        let version = match version {
            Some(number) => self.store.version(skill, number).await?,
            None => used.map_or(waiting, |skill| skill.active),
        };
        Ok((version.number, self.store.contents(&version).await?))
    }

    pub(super) async fn activate(&self, skill: &SkillId, version: u64) -> Result<(), DeskError> {
        self.store.activate(skill, version, Expected::Present, &Actor::local()).await?;
        Ok(())
    }

    pub(super) async fn diff(
        &self,
        skill: &SkillId,
        from: u64,
        to: u64,
    ) -> Result<Vec<FileDiff>, DeskError> {
        let (_, from) = self.contents(skill, Some(from)).await?;
        let (_, to) = self.contents(skill, Some(to)).await?;
        Ok(compare(&from, &to))
    }

    pub(super) async fn reset(&self, skill: &SkillId) -> Result<u64, DeskError> {
        let skill = self.store.reset(skill, Expected::Present, &Actor::local()).await?;
        Ok(skill.active.number)
    }

    pub(super) async fn delete(&self, skill: &SkillId) -> Result<(), DeskError> {
        Ok(self.store.delete(skill, Expected::Present, &Actor::local()).await?)
    }
}
