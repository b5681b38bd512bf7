//! Versions as stores keep them.

use jiff::Timestamp;
use prowess_catalog::{ContentFile, ResourcePath, SkillContents, TreeDigest};
use prowess_format::Digest;
use serde_json::json;

use super::{
    Actor, Changes, NewVersion, Origin, SKILL_FILE, SkillId, Version, VersionError, VersionFile,
    VersionedSkill, WaitingSkill,
};

/// A time as it is stored.
pub(crate) fn time(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MIN)
}

/// A number as it is stored.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn corrupt(skill: impl Into<String>, cause: impl std::fmt::Display) -> VersionError {
    VersionError::Corrupt { skill: skill.into(), cause: cause.to_string() }
}

pub(crate) fn origin_word(origin: Origin) -> &'static str {
    match origin {
        Origin::BuiltIn => "built_in",
        Origin::Custom => "custom",
    }
}

pub(crate) fn origin(word: &str) -> Origin {
    match word {
        "built_in" => Origin::BuiltIn,
        _ => Origin::Custom,
    }
}

/// What is written of a new version besides its number and its files.
pub(crate) struct Written {
    pub(crate) digest: Digest,
    pub(crate) tree_digest: String,
    /// As JSON.
    pub(crate) about: String,
    /// As JSON.
    pub(crate) manifest: String,
    /// What its files hold, in their order.
    pub(crate) digests: Vec<Digest>,
}

impl Written {
    pub(crate) fn of(new: &NewVersion) -> Result<Self, VersionError> {
        let unstorable = |cause: &dyn ToString| VersionError::Unstorable(cause.to_string());
        let mut manifest = Vec::with_capacity(new.contents.files.len());
        for file in &new.contents.files {
            let (path, digest) = (file.path.as_str().to_owned(), Digest::of(&file.bytes));
            let (bytes, executable) = (file.bytes.len() as u64, file.executable);
            manifest.push(VersionFile { path, digest, bytes, executable });
        }
        let text = manifest.iter().find(|file| file.path == SKILL_FILE);
        Ok(Self {
            digest: text.ok_or_else(|| unstorable(&"there is no SKILL.md"))?.digest,
            tree_digest: new.contents.tree_digest.to_string(),
            about: serde_json::to_string(&new.about).map_err(|error| unstorable(&error))?,
            manifest: serde_json::to_string(&manifest).map_err(|error| unstorable(&error))?,
            digests: manifest.into_iter().map(|file| file.digest).collect(),
        })
    }
}

/// A version as it is stored, not yet understood.
pub(crate) struct VersionRow {
    pub(crate) skill: String,
    pub(crate) number: u64,
    pub(crate) tree_digest: String,
    pub(crate) digest: Vec<u8>,
    pub(crate) about: String,
    pub(crate) manifest: String,
    pub(crate) created: i64,
    pub(crate) created_by: String,
    pub(crate) change_summary: Option<String>,
}

pub(crate) fn tree_digest(text: &str) -> Result<TreeDigest, serde_json::Error> {
    serde_json::from_value(json!(text))
}

pub(crate) fn read_version(row: VersionRow) -> Result<Version, VersionError> {
    let wrong = |cause: String| corrupt(&row.skill, format!("version {}: {cause}", row.number));
    let bytes: [u8; 32] =
        row.digest.as_slice().try_into().map_err(|_| wrong("no digest".to_owned()))?;
    let tree_digest = tree_digest(&row.tree_digest).map_err(|error| wrong(error.to_string()))?;
    let files: Vec<VersionFile> =
        serde_json::from_str(&row.manifest).map_err(|error| wrong(error.to_string()))?;
    let about = serde_json::from_str(&row.about).map_err(|error| wrong(error.to_string()))?;
    let skill = row.skill.parse().map_err(|error| corrupt(&row.skill, error))?;
    Ok(Version {
        skill,
        number: row.number,
        tree_digest,
        digest: Digest::from_bytes(bytes),
        about,
        files: files.into(),
        created: time(row.created),
        created_by: Actor(row.created_by.into()),
        change_summary: row.change_summary,
    })
}

/// A skill with the version that is used, else with the one that waits, as it is stored, not yet
/// understood.
pub(crate) struct JoinedRow {
    pub(crate) id: String,
    pub(crate) origin: Origin,
    pub(crate) revision: u64,
    pub(crate) version_count: u64,
    pub(crate) created: i64,
    pub(crate) updated: i64,
    pub(crate) is_changed: bool,
    pub(crate) is_used: bool,
    pub(crate) pending: Option<u64>,
    pub(crate) version: VersionRow,
}

/// A skill that is there.
pub(crate) enum Stored {
    /// A version of it is used.
    Used(Box<VersionedSkill>),
    /// None is, and one waits.
    Waiting(Box<WaitingSkill>),
}

impl Stored {
    /// The skill, if a version of it is used.
    pub(crate) fn used(self) -> Option<VersionedSkill> {
        match self {
            Self::Used(skill) => Some(*skill),
            Self::Waiting(_) => None,
        }
    }
}

impl Changes {
    /// Adds a skill as it is now, if it is there.
    pub(crate) fn add(&mut self, id: SkillId, skill: Option<Stored>) {
        match skill {
            Some(Stored::Used(skill)) => self.skills.push((id, Some(*skill))),
            Some(Stored::Waiting(skill)) => {
                self.skills.push((id, None));
                self.waiting.push(*skill);
            }
            None => self.skills.push((id, None)),
        }
    }

    /// Adds a skill that cannot be read. What it was before is not what it is.
    pub(crate) fn add_broken(&mut self, id: &str, error: &VersionError) {
        self.broken.push((id.to_owned(), error.to_string()));
        if let Ok(id) = id.parse() {
            self.skills.push((id, None));
        }
    }
}

pub(crate) fn read_skill(row: JoinedRow) -> Result<Stored, VersionError> {
    let id: SkillId = row.id.parse().map_err(|error| corrupt(&row.id, error))?;
    let version = read_version(row.version)?;
    let (origin, revision, version_count) = (row.origin, row.revision, row.version_count);
    let (created, updated) = (time(row.created), time(row.updated));
    Ok(match row.is_used {
        true => Stored::Used(Box::new(VersionedSkill {
            id,
            origin,
            revision,
            version_count,
            created,
            updated,
            is_changed: row.is_changed,
            pending: row.pending,
            active: version,
        })),
        false => Stored::Waiting(Box::new(WaitingSkill {
            id,
            origin,
            revision,
            version_count,
            created,
            updated,
            version,
        })),
    })
}

/// What a store holds under a digest for a skill, if it holds that.
pub(crate) fn verified(
    skill: &SkillId,
    digest: &Digest,
    bytes: Option<Vec<u8>>,
) -> Result<Vec<u8>, VersionError> {
    let wrong = |what: &str| corrupt(skill.as_str(), format!("the file {} {what}", digest.hex()));
    let bytes = bytes.ok_or_else(|| wrong("is missing"))?;
    match Digest::of(&bytes) == *digest {
        true => Ok(bytes),
        false => Err(wrong("holds something else")),
    }
}

/// All files of a version, from what each of them holds, in their order.
pub(crate) fn contents(
    version: &Version,
    bytes: impl IntoIterator<Item = Vec<u8>>,
) -> Result<SkillContents, VersionError> {
    let mut files = Vec::with_capacity(version.files.len());
    for (about, bytes) in version.files.iter().zip(bytes) {
        let path = ResourcePath::parse(&about.path)
            .map_err(|error| corrupt(version.skill.as_str(), error))?;
        files.push(ContentFile::new(path, about.executable, bytes));
    }
    let contents = SkillContents::of(files);
    match contents.tree_digest == version.tree_digest {
        true => Ok(contents),
        false => Err(corrupt(version.skill.as_str(), "its files are not those of the version")),
    }
}

/// A skill that was just written and is not there.
pub(crate) fn lost(id: &SkillId) -> VersionError {
    corrupt(id.as_str(), "its active version is missing")
}
