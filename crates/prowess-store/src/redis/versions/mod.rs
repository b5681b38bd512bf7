//! Versions of skills in Redis.

mod read;
pub(super) mod rows;
mod write;

use jiff::Timestamp;
use prowess_catalog::{SkillContents, TreeDigest};
use prowess_format::Digest;
use serde_json::Value;

use super::batch::Batch;
use super::link::{Link, Unavailable};
use crate::version::{
    Actor, Appended, AuditEntry, Changes, Expected, Listed, NewVersion, SkillId, Version,
    VersionError, VersionFuture, VersionStore, VersionedSkill,
};

type Result<T> = std::result::Result<T, VersionError>;

/// So often a change is decided again because another process was faster.
const ATTEMPTS: usize = 100;

fn busy() -> VersionError {
    Unavailable(format!("others were faster {ATTEMPTS} times; try again")).into()
}

/// Versions of skills in Redis.
#[derive(Clone, Debug)]
pub struct RedisVersions {
    link: Link,
}

impl RedisVersions {
    pub(super) fn new(link: Link) -> Self {
        Self { link }
    }

    /// A key of the registry.
    fn name(&self, part: &str) -> String {
        self.link.names().of_registry(part)
    }
}

impl VersionStore for RedisVersions {
    fn append<'a>(&'a self, version: NewVersion) -> VersionFuture<'a, Appended> {
        self.link.operate(async move {
            let mut results = self.append_now(&[version]).await?;
            results.pop().ok_or_else(busy)
        })
    }

    fn append_all<'a>(&'a self, versions: Vec<NewVersion>) -> VersionFuture<'a, Vec<Appended>> {
        self.link.operate(async move { self.append_now(&versions).await })
    }

    fn activate<'a>(
        &'a self,
        skill: &'a SkillId,
        number: u64,
        expected: Expected,
        actor: &'a Actor,
    ) -> VersionFuture<'a, VersionedSkill> {
        self.link.operate(self.activate_now(skill, number, expected, actor))
    }

    fn reset<'a>(
        &'a self,
        skill: &'a SkillId,
        expected: Expected,
        actor: &'a Actor,
    ) -> VersionFuture<'a, VersionedSkill> {
        self.link.operate(self.reset_now(skill, expected, actor))
    }

    fn delete<'a>(
        &'a self,
        skill: &'a SkillId,
        expected: Expected,
        actor: &'a Actor,
    ) -> VersionFuture<'a, ()> {
        self.link.operate(self.delete_now(skill, expected, actor))
    }

    fn skill<'a>(&'a self, skill: &'a SkillId) -> VersionFuture<'a, VersionedSkill> {
        self.link.operate(async move {
            self.skill_now(skill).await?.ok_or_else(|| VersionError::NoSkill(skill.clone()))
        })
    }

    fn changes(&self, since: Option<u64>) -> VersionFuture<'_, Changes> {
        self.link.operate(async move {
            match since {
                None => self.all_now().await,
                Some(since) => self.changes_now(since).await,
            }
        })
    }

    fn version<'a>(&'a self, skill: &'a SkillId, number: u64) -> VersionFuture<'a, Version> {
        self.link.operate(self.version_now(skill, number))
    }

    fn head<'a>(&'a self, skill: &'a SkillId) -> VersionFuture<'a, (u64, Version)> {
        self.link.operate(self.head_now(skill))
    }

    fn version_with<'a>(
        &'a self,
        skill: &'a SkillId,
        tree_digest: TreeDigest,
    ) -> VersionFuture<'a, Option<Version>> {
        self.link.operate(self.version_with_now(skill, tree_digest))
    }

    fn versions<'a>(
        &'a self,
        skill: &'a SkillId,
        offset: u64,
        limit: usize,
    ) -> VersionFuture<'a, Listed<Version>> {
        self.link.operate(self.versions_now(skill, offset, limit))
    }

    fn file<'a>(&'a self, skill: &'a SkillId, digest: &'a Digest) -> VersionFuture<'a, Vec<u8>> {
        self.link.operate(async move {
            let mut files = self.files_now(skill, &[*digest]).await?;
            Ok(files.pop().unwrap_or_default())
        })
    }

    fn contents<'a>(&'a self, version: &'a Version) -> VersionFuture<'a, SkillContents> {
        self.link.operate(self.contents_now(version))
    }

    fn audit(&self, before: Option<u64>, limit: usize) -> VersionFuture<'_, Vec<AuditEntry>> {
        self.link.operate(self.audit_now(before, limit))
    }

    fn note<'a>(
        &'a self,
        actor: &'a Actor,
        action: &'a str,
        subject: &'a str,
        detail: Value,
    ) -> VersionFuture<'a, ()> {
        self.link.operate(async move {
            let mut batch = Batch::new(&self.link);
            batch.note(actor, action, subject, &detail, Timestamp::now());
            batch.commit().await?;
            Ok(())
        })
    }
}
