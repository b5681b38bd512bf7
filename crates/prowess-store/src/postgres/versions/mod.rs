//! Versions of skills in a PostgreSQL database.

mod read;
mod rows;
mod write;

pub(super) use write::note;

use jiff::Timestamp;
use prowess_catalog::{SkillContents, TreeDigest};
use prowess_format::Digest;
use serde_json::Value;

use super::Database;
use crate::version::{
    Actor, Appended, AuditEntry, Changes, Expected, Listed, NewVersion, SkillId, Version,
    VersionError, VersionFuture, VersionStore, VersionedSkill,
};

/// Versions of skills in a PostgreSQL database.
#[derive(Clone, Debug)]
pub struct PostgresVersions {
    database: Database,
}

impl PostgresVersions {
    pub(super) fn new(database: Database) -> Self {
        Self { database }
    }
}

impl VersionStore for PostgresVersions {
    fn append<'a>(&'a self, version: NewVersion) -> VersionFuture<'a, Appended> {
        let now = Timestamp::now();
        Box::pin(
            self.database
                .pool
                .change(async move |connection| write::append(connection, &version, now).await),
        )
    }

    fn append_all<'a>(&'a self, versions: Vec<NewVersion>) -> VersionFuture<'a, Vec<Appended>> {
        let now = Timestamp::now();
        Box::pin(self.database.pool.change(async move |connection| {
            let mut all = Vec::with_capacity(versions.len());
            for version in &versions {
                all.push(write::append(connection, version, now).await?);
            }
            Ok(all)
        }))
    }

    fn activate<'a>(
        &'a self,
        skill: &'a SkillId,
        number: u64,
        expected: Expected,
        actor: &'a Actor,
    ) -> VersionFuture<'a, VersionedSkill> {
        let (skill, actor, now) = (skill.clone(), actor.clone(), Timestamp::now());
        Box::pin(self.database.pool.change(async move |connection| {
            write::activate(connection, &skill, number, expected, &actor, now).await
        }))
    }

    fn reset<'a>(
        &'a self,
        skill: &'a SkillId,
        expected: Expected,
        actor: &'a Actor,
    ) -> VersionFuture<'a, VersionedSkill> {
        let (skill, actor, now) = (skill.clone(), actor.clone(), Timestamp::now());
        Box::pin(self.database.pool.change(async move |connection| {
            write::reset(connection, &skill, expected, &actor, now).await
        }))
    }

    fn delete<'a>(
        &'a self,
        skill: &'a SkillId,
        expected: Expected,
        actor: &'a Actor,
    ) -> VersionFuture<'a, ()> {
        let (skill, actor, now) = (skill.clone(), actor.clone(), Timestamp::now());
        Box::pin(self.database.pool.change(async move |connection| {
            write::delete(connection, &skill, expected, &actor, now).await
        }))
    }

    fn skill<'a>(&'a self, skill: &'a SkillId) -> VersionFuture<'a, VersionedSkill> {
        let skill = skill.clone();
        Box::pin(self.database.pool.ask(async move |connection| {
            let missing = || VersionError::NoSkill(skill.clone());
            Ok(read::skill(connection, &skill).await?.ok_or_else(missing)?)
        }))
    }

    fn changes(&self, since: Option<u64>) -> VersionFuture<'_, Changes> {
        Box::pin(async move {
            let Some(since) = since else { return self.database.pool.look(read::all).await };
            // Mostly there are none: one question.
            let generation = self.database.pool.ask(read::generation).await?;
            if generation == since {
                return Ok(Changes { generation, ..Changes::default() });
            }
            let changes = async move |connection: &mut _| read::changes(connection, since).await;
            self.database.pool.look(changes).await
        })
    }

    fn version<'a>(&'a self, skill: &'a SkillId, number: u64) -> VersionFuture<'a, Version> {
        let skill = skill.clone();
        Box::pin(
            self.database
                .pool
                .ask(async move |connection| read::version(connection, &skill, number).await),
        )
    }

    fn head<'a>(&'a self, skill: &'a SkillId) -> VersionFuture<'a, (u64, Version)> {
        let skill = skill.clone();
        Box::pin(
            self.database.pool.look(async move |connection| read::head(connection, &skill).await),
        )
    }

    fn version_with<'a>(
        &'a self,
        skill: &'a SkillId,
        tree_digest: TreeDigest,
    ) -> VersionFuture<'a, Option<Version>> {
        let skill = skill.clone();
        Box::pin(
            self.database.pool.ask(async move |connection| {
                read::version_with(connection, &skill, tree_digest).await
            }),
        )
    }

    fn versions<'a>(
        &'a self,
        skill: &'a SkillId,
        offset: u64,
        limit: usize,
    ) -> VersionFuture<'a, Listed<Version>> {
        let skill = skill.clone();
        Box::pin(
            self.database.pool.look(async move |connection| {
                read::versions(connection, &skill, offset, limit).await
            }),
        )
    }

    fn file<'a>(&'a self, skill: &'a SkillId, digest: &'a Digest) -> VersionFuture<'a, Vec<u8>> {
        let (skill, digest) = (skill.clone(), *digest);
        Box::pin(
            self.database
                .pool
                .ask(async move |connection| read::file(connection, &skill, &digest).await),
        )
    }

    fn contents<'a>(&'a self, version: &'a Version) -> VersionFuture<'a, SkillContents> {
        let version = version.clone();
        Box::pin(
            self.database
                .pool
                .ask(async move |connection| read::contents(connection, &version).await),
        )
    }

    fn audit(&self, before: Option<u64>, limit: usize) -> VersionFuture<'_, Vec<AuditEntry>> {
        Box::pin(
            self.database
                .pool
                .ask(async move |connection| read::audit(connection, before, limit).await),
        )
    }

    fn note<'a>(
        &'a self,
        actor: &'a Actor,
        action: &'a str,
        subject: &'a str,
        detail: Value,
    ) -> VersionFuture<'a, ()> {
        let (actor, now) = (actor.clone(), Timestamp::now());
        let (action, subject) = (action.to_owned(), subject.to_owned());
        Box::pin(self.database.pool.change(async move |connection| {
            write::note(connection, &actor, &action, &subject, &detail, now).await
        }))
    }
}
