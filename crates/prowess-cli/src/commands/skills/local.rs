//! The registry of the store.

use std::sync::Arc;

use prowess_catalog::SkillContents;
use prowess_store::{
    Activation, Actor, Expected, FileDiff, NewVersion, Origin, SameContent, SkillId, Version,
    VersionError, VersionStore, compare,
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
        let all = self.store.changes(None).await?.skills.into_iter().filter_map(|(_, it)| it);
        let rows = all.map(|skill| SkillRow {
            id: skill.id.to_string(),
            name: skill.active.about.title,
            version: skill.active.about.semantic_version,
            active_version: skill.active.number,
            version_count: skill.version_count,
            is_builtin: skill.origin == Origin::BuiltIn,
            updated_at: skill.updated,
        });
        Ok(rows.collect())
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

    /// The version that is used, if one is.
    async fn active(&self, skill: &SkillId) -> Result<Option<Version>, DeskError> {
        match self.store.skill(skill).await {
            Ok(skill) => Ok(Some(skill.active)),
            Err(VersionError::NoSkill(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) async fn versions(&self, skill: &SkillId) -> Result<Vec<VersionRow>, DeskError> {
        let active = self.active(skill).await?.map(|active| active.number);
        let mut rows = Vec::new();
        loop {
            let page = self.store.versions(skill, rows.len() as u64, PAGE).await?;
            let is_last = page.items.len() < PAGE;
            rows.extend(page.items.into_iter().map(|version| VersionRow {
                version_number: version.number,
                semantic_version: version.about.semantic_version,
                change_summary: version.change_summary,
                created_at: version.created,
                author: version.about.author,
                created_by: version.created_by.to_string(),
                is_active: Some(version.number) == active,
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
        let (active, (_, waiting)) = (self.active(skill).await?, self.store.head(skill).await?);
        let version = match version {
            Some(number) => self.store.version(skill, number).await?,
            None => active.unwrap_or(waiting),
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
