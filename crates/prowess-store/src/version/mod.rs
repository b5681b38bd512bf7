//! Versions of skills: what there is to know of them, and where they are kept.

pub(crate) mod rows;
pub(crate) mod rules;

use std::fmt;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;
use prowess_catalog::{ResourcePath, SkillContents, TreeDigest};
use prowess_format::{Digest, Skill};
use serde::{Deserialize, Serialize};

/// Words that are no ids, because addresses end with them.
pub const RESERVED_IDS: [&str; 2] = ["import", "new"];

/// The id of a skill in the registry: `^[a-z0-9][a-z0-9_-]{0,63}$`, and no reserved word.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct SkillId(Arc<str>);

/// Why a text is no id of a skill.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSkillId {
    /// It is reserved.
    #[error("'{0}' is reserved; choose another id")]
    Reserved(String),
    /// It has another form.
    #[error(
        "'{0}' is no id: 1 to 64 of a-z, 0-9, '-' and '_', and the first one a letter or a digit"
    )]
    Form(String),
}

impl SkillId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id that a name suggests: lowercase letters and digits, `_` between them. `None` if
    /// nothing is left of it.
    pub fn suggested_by(name: &str) -> Option<Self> {
        let is_kept = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let lower = name.to_lowercase();
        let words = lower.split(|c| !is_kept(c)).filter(|word| !word.is_empty());
        let mut id = words.collect::<Vec<_>>().join("_");
        id.truncate(64);
        id.parse().ok()
    }
}

impl std::borrow::Borrow<str> for SkillId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl FromStr for SkillId {
    type Err = InvalidSkillId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_first = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
        let is_next = |c: u8| is_first(c) || c == b'_' || c == b'-';
        let bytes = text.as_bytes();
        let has_form = bytes.first().is_some_and(|first| is_first(*first))
            && bytes.len() <= 64
            && bytes.iter().all(|byte| is_next(*byte));
        if !has_form {
            let shown: String = text.chars().take(80).collect();
            return Err(InvalidSkillId::Form(shown.escape_debug().to_string()));
        }
        if RESERVED_IDS.contains(&text) {
            return Err(InvalidSkillId::Reserved(text.to_owned()));
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for SkillId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Who changes something: `local`, `key:NAME`, `built-in`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Actor(pub Arc<str>);

impl Actor {
    /// Whoever uses this machine.
    pub fn local() -> Self {
        Self("local".into())
    }

    /// The program itself, with what it brings.
    pub fn built_in() -> Self {
        Self("built-in".into())
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Who brought a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The program.
    BuiltIn,
    /// Somebody.
    Custom,
}

/// What a version says about itself, in its frontmatter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct About {
    /// Its display name.
    pub title: String,
    /// What it does.
    pub description: String,
    /// `general` unless it says otherwise.
    pub category: String,
    /// `1.0.0` unless it says otherwise.
    pub semantic_version: String,
    /// Whom it names.
    pub author: Option<String>,
    /// How many tools it declares.
    pub tool_count: usize,
}

impl About {
    /// What this skill says.
    pub fn of(skill: &Skill) -> Self {
        let frontmatter = &skill.frontmatter;
        let text = |text: Option<&str>, default: &str| {
            text.filter(|text| !text.is_empty()).unwrap_or(default).to_owned()
        };
        Self {
            title: text(frontmatter.title(), skill.name()),
            description: skill.description().to_owned(),
            category: text(frontmatter.category(), "general"),
            semantic_version: text(frontmatter.version(), "1.0.0"),
            author: frontmatter.author().map(str::to_owned),
            tool_count: frontmatter.tool_configs().len(),
        }
    }
}

/// A file of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VersionFile {
    /// Where it is in the skill's folder.
    pub path: String,
    /// What it holds.
    pub digest: Digest,
    /// How much that is.
    pub bytes: u64,
    /// Whether it may be run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
}

/// A version of a skill. It never changes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Version {
    /// Which skill.
    pub skill: SkillId,
    /// 1, 2, 3 …; what a program has shipped first is 0.
    pub number: u64,
    /// What identifies all its files.
    pub tree_digest: TreeDigest,
    /// What identifies its `SKILL.md`.
    pub digest: Digest,
    /// What it says about itself.
    pub about: About,
    /// Its files, in the order of their paths.
    pub files: Arc<[VersionFile]>,
    /// When it was made.
    pub created: Timestamp,
    /// By whom.
    pub created_by: Actor,
    /// Why.
    pub change_summary: Option<String>,
}

/// A skill in the registry, with its active version.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct VersionedSkill {
    /// Its id.
    pub id: SkillId,
    /// Who brought it.
    pub origin: Origin,
    /// Counts its changes.
    pub revision: u64,
    /// How many versions there are.
    pub version_count: u64,
    /// When it was made.
    pub created: Timestamp,
    /// When it was changed last.
    pub updated: Timestamp,
    /// Whether it is one that the program brings, and somebody has changed it.
    pub is_changed: bool,
    /// The number of the version that waits to be activated, if one does.
    pub pending: Option<u64>,
    /// The version that is used.
    pub active: Version,
}

impl VersionedSkill {
    /// The number of its newest version. Numbers have no gaps; those of what the program brings
    /// begin with 0.
    pub fn newest(&self) -> u64 {
        self.version_count.saturating_sub(u64::from(self.origin == Origin::BuiltIn))
    }
}

/// A skill in the registry of which no version is used yet.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct WaitingSkill {
    /// Its id.
    pub id: SkillId,
    /// Who brought it.
    pub origin: Origin,
    /// Counts its changes.
    pub revision: u64,
    /// How many versions there are.
    pub version_count: u64,
    /// When it was made.
    pub created: Timestamp,
    /// When it was changed last.
    pub updated: Timestamp,
    /// The version that waits to be activated.
    pub version: Version,
}

/// What must be there for a change to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// No skill of this id.
    Absent,
    /// The skill, at this revision.
    Revision(u64),
    /// The skill, at any revision.
    Present,
    /// Anything or nothing.
    Any,
}

/// Whether a new version is used from now on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activation {
    /// From now on.
    #[default]
    Now,
    /// When somebody says so. A skill of which no version was activated is used by nobody.
    Later,
}

/// What to do with content that the active version has already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SameContent {
    /// It becomes a version all the same.
    #[default]
    Append,
    /// Nothing.
    Keep,
}

/// A version to be made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NewVersion {
    /// Of which skill.
    pub skill: SkillId,
    /// All files, with a `SKILL.md` among them.
    pub contents: Arc<SkillContents>,
    /// What it says about itself.
    pub about: About,
    /// What must be there.
    pub expected: Expected,
    /// Who makes it.
    pub actor: Actor,
    /// Why.
    pub change_summary: Option<String>,
    /// Whether it is used from now on.
    pub activation: Activation,
    /// What to do if nothing is new.
    pub same_content: SameContent,
    /// When it was made, if that was not now: elsewhere, before it came here.
    pub created: Option<Timestamp>,
    /// Who brings it. What a program brings becomes a version if it ships another text than before,
    /// and is used from now on unless somebody has changed the skill.
    pub origin: Origin,
}

impl NewVersion {
    /// A version of a skill, whatever is there.
    pub fn new(skill: SkillId, contents: Arc<SkillContents>, about: About, actor: Actor) -> Self {
        Self {
            skill,
            contents,
            about,
            expected: Expected::Any,
            actor,
            change_summary: None,
            activation: Activation::default(),
            same_content: SameContent::default(),
            created: None,
            origin: Origin::Custom,
        }
    }

    /// Sets what must be there.
    pub fn expecting(mut self, expected: Expected) -> Self {
        self.expected = expected;
        self
    }

    /// Says why.
    pub fn because(mut self, summary: Option<String>) -> Self {
        self.change_summary = summary;
        self
    }
}

/// What came of a version that was to be made.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Appended {
    /// The skill as it is now; none as long as no version of it was activated.
    pub skill: Option<VersionedSkill>,
    /// Counts the changes of the skill.
    pub revision: u64,
    /// The version that holds the content.
    pub version: Version,
    /// Whether the skill is new.
    pub is_new_skill: bool,
    /// Whether the version is new.
    pub is_new_version: bool,
}

/// What was changed in a registry.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Changes {
    /// The generation that this leads to: another one after each change, by whichever process.
    pub generation: u64,
    /// Skills as they are now, in the order of their ids; `None` for those that nobody uses: they
    /// are gone, or wait.
    pub skills: Vec<(SkillId, Option<VersionedSkill>)>,
    /// Those of them that wait, in the order of their ids.
    pub waiting: Vec<WaitingSkill>,
    /// Skills that cannot be read, by their ids, and why. They do not hurt the others.
    pub broken: Vec<(String, String)>,
}

/// A part of a list, and how long the whole is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Listed<T> {
    /// This part.
    pub items: Vec<T>,
    /// How many there are in all.
    pub total: u64,
}

/// A change that was made, and by whom.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AuditEntry {
    /// Its place in the log.
    pub place: u64,
    /// When.
    pub time: Timestamp,
    /// Who.
    pub actor: Actor,
    /// What was done: `skill.create`, `skill.update`, `skill.activate`, `skill.delete`,
    /// `skill.reset`, `key.create`, `key.revoke`.
    pub action: String,
    /// To what.
    pub subject: String,
    /// More about it.
    pub detail: serde_json::Value,
}

/// Why a registry did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VersionError {
    /// There is no such skill.
    #[error("Skill not found: {0}")]
    NoSkill(SkillId),
    /// There is no such version.
    #[error("Version {number} not found for skill: {skill}")]
    NoVersion {
        /// The skill.
        skill: SkillId,
        /// The version.
        number: u64,
    },
    /// There is one already.
    #[error("Skill with ID '{0}' already exists")]
    Exists(SkillId),
    /// Somebody else was faster.
    #[error("the skill '{skill}' is at revision {actual}, not {expected}: read it again")]
    Stale {
        /// The skill.
        skill: SkillId,
        /// The revision that was expected.
        expected: u64,
        /// The revision that is there.
        actual: u64,
    },
    /// What the program brings stays.
    #[error("Cannot delete built-in skill: {0}")]
    Protected(SkillId),
    /// Nothing was shipped that it could be reset to.
    #[error("Only built-in skills can be reset: {0}")]
    NotBuiltIn(SkillId),
    /// What should be stored is no skill.
    #[error("the version cannot be stored: {0}")]
    Unstorable(String),
    /// What is stored cannot be read.
    #[error("what is stored of '{skill}' cannot be read: {cause}")]
    Corrupt {
        /// The skill.
        skill: String,
        /// What is wrong.
        cause: String,
    },
    /// The store is not there, or refuses.
    #[error("the store failed: {0}")]
    Unavailable(String),
}

impl VersionError {
    /// The stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoSkill(_) => "skill_not_found",
            Self::NoVersion { .. } => "version_not_found",
            Self::Exists(_) => "skill_exists",
            Self::Stale { .. } => "stale",
            Self::Protected(_) => "protected",
            Self::NotBuiltIn(_) => "not_built_in",
            Self::Unstorable(_) => "unstorable",
            Self::Corrupt { .. } => "corrupt",
            Self::Unavailable(_) => "store_unavailable",
        }
    }
}

/// A future that a registry returns.
pub type VersionFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, VersionError>> + Send + 'a>>;

/// Keeps versions of skills. A version never changes and is never removed.
///
/// What is acknowledged is not lost, even if the process dies. Of writers that expect the same
/// revision one wins, and the others are told.
pub trait VersionStore: Send + Sync + 'static {
    /// Makes a version.
    fn append<'a>(&'a self, version: NewVersion) -> VersionFuture<'a, Appended>;

    /// Makes several versions of different skills, all of them or none.
    fn append_all<'a>(&'a self, versions: Vec<NewVersion>) -> VersionFuture<'a, Vec<Appended>>;

    /// Decides which version is used.
    fn activate<'a>(
        &'a self,
        skill: &'a SkillId,
        number: u64,
        expected: Expected,
        actor: &'a Actor,
    ) -> VersionFuture<'a, VersionedSkill>;

    /// Makes a version of what was shipped last, which is used from now on.
    fn reset<'a>(
        &'a self,
        skill: &'a SkillId,
        expected: Expected,
        actor: &'a Actor,
    ) -> VersionFuture<'a, VersionedSkill>;

    /// Hides a skill. Its versions stay; a new skill of this id continues their numbers.
    fn delete<'a>(
        &'a self,
        skill: &'a SkillId,
        expected: Expected,
        actor: &'a Actor,
    ) -> VersionFuture<'a, ()>;

    /// A skill with its active version.
    fn skill<'a>(&'a self, skill: &'a SkillId) -> VersionFuture<'a, VersionedSkill>;

    /// The skills that were changed after this generation; with `None`, all skills.
    fn changes(&self, since: Option<u64>) -> VersionFuture<'_, Changes>;

    /// A version.
    fn version<'a>(&'a self, skill: &'a SkillId, number: u64) -> VersionFuture<'a, Version>;

    /// What the next change that waits is made to, and the skill's revision: the version that waits
    /// to be activated, else the one that is used. Once one is activated, none waits any more.
    fn head<'a>(&'a self, skill: &'a SkillId) -> VersionFuture<'a, (u64, Version)>;

    /// The newest version of a skill that has these files, whether it is used or not.
    fn version_with<'a>(
        &'a self,
        skill: &'a SkillId,
        tree_digest: TreeDigest,
    ) -> VersionFuture<'a, Option<Version>>;

    /// The versions of a skill, the newest first; `offset` of them are left out.
    fn versions<'a>(
        &'a self,
        skill: &'a SkillId,
        offset: u64,
        limit: usize,
    ) -> VersionFuture<'a, Listed<Version>>;

    /// A file of a skill, by what it holds.
    fn file<'a>(&'a self, skill: &'a SkillId, digest: &'a Digest) -> VersionFuture<'a, Vec<u8>>;

    /// All files of a version.
    fn contents<'a>(&'a self, version: &'a Version) -> VersionFuture<'a, SkillContents>;

    /// What was changed, the newest first; those before this place.
    fn audit(&self, before: Option<u64>, limit: usize) -> VersionFuture<'_, Vec<AuditEntry>>;

    /// Writes down that something else was changed.
    fn note<'a>(
        &'a self,
        actor: &'a Actor,
        action: &'a str,
        subject: &'a str,
        detail: serde_json::Value,
    ) -> VersionFuture<'a, ()>;
}

/// The path of a skill's text.
pub const SKILL_FILE: &str = "SKILL.md";

impl Version {
    /// The file at this path.
    pub fn file(&self, path: &ResourcePath) -> Option<&VersionFile> {
        self.files.iter().find(|file| file.path == path.as_str())
    }
}
