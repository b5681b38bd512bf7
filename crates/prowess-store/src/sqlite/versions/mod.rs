//! Versions of skills in a SQLite database.

mod read;
mod rows;
mod write;

use jiff::Timestamp;
use prowess_catalog::{SkillContents, TreeDigest};
use prowess_format::Digest;
use serde_json::Value;

use super::database::Database;
use crate::unavailable::Unavailable;
use crate::version::{
    Actor, Appended, AuditEntry, Changes, Expected, Listed, NewVersion, SkillId, Version,
    VersionError, VersionFuture, VersionStore, VersionedSkill,
};

impl From<rusqlite::Error> for VersionError {
    fn from(error: rusqlite::Error) -> Self {
        Unavailable::from(error).into()
    }
}

/// Versions of skills in a SQLite database.
#[derive(Clone, Debug)]
pub struct SqliteVersions {
    database: Database,
}

impl SqliteVersions {
    pub(super) fn new(database: Database) -> Self {
        Self { database }
    }
}

impl VersionStore for SqliteVersions {
    fn append<'a>(&'a self, version: NewVersion) -> VersionFuture<'a, Appended> {
        let now = Timestamp::now();
        self.database.write(move |connection| write::append(connection, &version, now))
    }

    fn append_all<'a>(&'a self, versions: Vec<NewVersion>) -> VersionFuture<'a, Vec<Appended>> {
        let now = Timestamp::now();
        self.database.write(move |connection| {
            versions.iter().map(|version| write::append(connection, version, now)).collect()
        })
    }

    fn activate<'a>(
        &'a self,
        skill: &'a SkillId,
        number: u64,
        expected: Expected,
        actor: &'a Actor,
    ) -> VersionFuture<'a, VersionedSkill> {
        let (skill, actor, now) = (skill.clone(), actor.clone(), Timestamp::now());
        self.database.write(move |connection| {
            write::activate(connection, &skill, number, expected, &actor, now)
        })
    }

    fn reset<'a>(
        &'a self,
        skill: &'a SkillId,
        expected: Expected,
        actor: &'a Actor,
    ) -> VersionFuture<'a, VersionedSkill> {
        let (skill, actor, now) = (skill.clone(), actor.clone(), Timestamp::now());
        self.database
            .write(move |connection| write::reset(connection, &skill, expected, &actor, now))
    }

    fn delete<'a>(
        &'a self,
        skill: &'a SkillId,
        expected: Expected,
        actor: &'a Actor,
    ) -> VersionFuture<'a, ()> {
        let (skill, actor, now) = (skill.clone(), actor.clone(), Timestamp::now());
        self.database
            .write(move |connection| write::delete(connection, &skill, expected, &actor, now))
    }

    fn skill<'a>(&'a self, skill: &'a SkillId) -> VersionFuture<'a, VersionedSkill> {
        let skill = skill.clone();
        self.database.read(move |connection| {
            read::skill(connection, &skill)?.ok_or(VersionError::NoSkill(skill))
        })
    }

    fn changes(&self, since: Option<u64>) -> VersionFuture<'_, Changes> {
        self.database.read(move |connection| match since {
            None => read::all(connection),
            Some(since) => read::changes(connection, since),
        })
    }

    fn version<'a>(&'a self, skill: &'a SkillId, number: u64) -> VersionFuture<'a, Version> {
        let skill = skill.clone();
        self.database.read(move |connection| read::version(connection, &skill, number))
    }

    fn head<'a>(&'a self, skill: &'a SkillId) -> VersionFuture<'a, (u64, Version)> {
        let skill = skill.clone();
        self.database.read(move |connection| read::head(connection, &skill))
    }

    fn version_with<'a>(
        &'a self,
        skill: &'a SkillId,
        tree_digest: TreeDigest,
    ) -> VersionFuture<'a, Option<Version>> {
        let skill = skill.clone();
        self.database.read(move |connection| read::version_with(connection, &skill, tree_digest))
    }

    fn versions<'a>(
        &'a self,
        skill: &'a SkillId,
        offset: u64,
        limit: usize,
    ) -> VersionFuture<'a, Listed<Version>> {
        let skill = skill.clone();
        self.database.read(move |connection| read::versions(connection, &skill, offset, limit))
    }

    fn file<'a>(&'a self, skill: &'a SkillId, digest: &'a Digest) -> VersionFuture<'a, Vec<u8>> {
        let (skill, digest) = (skill.clone(), *digest);
        self.database.read(move |connection| read::file(connection, &skill, &digest))
    }

    fn contents<'a>(&'a self, version: &'a Version) -> VersionFuture<'a, SkillContents> {
        let version = version.clone();
        self.database.read(move |connection| read::contents(connection, &version))
    }

    fn audit(&self, before: Option<u64>, limit: usize) -> VersionFuture<'_, Vec<AuditEntry>> {
        self.database.read(move |connection| read::audit(connection, before, limit))
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
        self.database.write(move |connection| {
            write::note(connection, &actor, &action, &subject, &detail, now)
        })
    }
}
