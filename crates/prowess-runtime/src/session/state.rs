//! What a session remembers of skills: names, digests and selections, no bytes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use prowess_catalog::{CatalogSkill, Gates, Resource, ResourceKind, Snapshot, TreeDigest, Trust};
use prowess_format::yaml::Value as Yaml;
use prowess_format::{Digest, ToolPattern};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::gate::brought_by;

/// The skills of one agent in one session: a small value with a stable JSON form.
///
/// It changes only by [`crate::StateDelta`]s. Bytes live in the content store.
///
/// ```
/// use prowess_runtime::SessionState;
///
/// let state = SessionState::default();
/// let json = serde_json::to_string(&state).unwrap();
/// assert_eq!(json, r#"{"version":1}"#);
/// assert_eq!(serde_json::from_str::<SessionState>(&json).unwrap(), state);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionState {
    version: Version,
    /// How many turns have begun.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub turn: u64,
    /// Which skills there were when the session was initialised. `None`: the next run looks again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skills: Option<KnownSkills>,
    /// The listing that was frozen when the session was initialised; the text is in the content
    /// store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listing: Option<Digest>,
    /// What identifies the dialect that the listing is in, if that is not the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dialect: Option<Digest>,
    /// The skills that the model was told of last, by the listing or by a note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<KnownSkills>,
    /// The loaded skills, in the order in which they were loaded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loaded: Vec<LoadedSkill>,
    /// The skills that went in this turn: what was given of them in earlier turns stays in the
    /// conversation until the next one begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) leaving: Vec<Leaving>,
    /// What tools remember for a skill.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub context: BTreeMap<String, Value>,
    /// What others remember for the agent, by the names of their slots.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub slots: BTreeMap<String, Value>,
    /// Another model than the agent's own, and the skill that asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelOverride>,
    /// What of the conversation is not sent any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction: Option<Compaction>,
    /// Counts touches.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) clock: u64,
    /// The ids of the last calls that were committed, oldest first.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub(crate) calls: VecDeque<Arc<str>>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The version of the JSON form. Another one is not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
struct Version;

/// The version is not known.
#[derive(Debug, thiserror::Error)]
#[error("session state of version {0}; this program reads version 1: update it")]
struct UnknownVersion(u64);

impl TryFrom<u64> for Version {
    type Error = UnknownVersion;

    fn try_from(number: u64) -> Result<Self, Self::Error> {
        match number {
            1 => Ok(Self),
            other => Err(UnknownVersion(other)),
        }
    }
}

impl From<Version> for u64 {
    fn from(_: Version) -> Self {
        1
    }
}

/// Which skills a session knows of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KnownSkills {
    /// How many.
    pub count: usize,
    /// What identifies all of them: the sha256 of their names and digests.
    pub digest: Digest,
}

impl KnownSkills {
    /// The skills of a snapshot.
    pub fn of(snapshot: &Snapshot) -> Self {
        Self::with_manifest(snapshot.skills()).0
    }

    /// These skills, and the names and digests that identify them, one per line.
    pub(crate) fn with_manifest<'s>(
        skills: impl IntoIterator<Item = &'s CatalogSkill>,
    ) -> (Self, String) {
        let mut text = String::new();
        let mut count = 0;
        for skill in skills {
            count += 1;
            text.push_str(skill.name());
            text.push('\0');
            text.push_str(&skill.found().digest.hex());
            text.push('\n');
        }
        (Self { count, digest: Digest::of(text.as_bytes()) }, text)
    }
}

/// Since when a skill is loaded. Giving its text again changes nothing about that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Since {
    /// In which turn it was loaded.
    pub turn: u64,
    /// By which call; none if it was not loaded by a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
}

impl Since {
    fn is_start(&self) -> bool {
        self.turn == 0 && self.call.is_none()
    }
}

/// A skill that went, and since when it had been loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Leaving {
    pub(crate) name: String,
    pub(crate) since: Since,
}

/// A loaded skill: what is pinned, and what was given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LoadedSkill {
    /// Its name.
    pub name: String,
    /// What identifies its `SKILL.md`; the bytes are in the content store.
    pub digest: Digest,
    /// What identifies all its files, as far as that could be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree_digest: Option<TreeDigest>,
    /// Its version, in the author's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How often its text was given.
    pub load_count: u32,
    /// When it was used last; a higher number is later.
    pub touched: u64,
    /// The call whose result holds its text; none if it was not loaded by a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Since when it is loaded.
    #[serde(default, skip_serializing_if = "Since::is_start")]
    pub since: Since,
    /// The arguments that were put into its text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arguments: String,
    /// What identifies its text with arguments put in, if that changed it; the bytes are in the
    /// content store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Digest>,
    /// The docs that were selected.
    #[serde(default, skip_serializing_if = "DocSelection::is_empty")]
    pub docs: DocSelection,
    /// Its resources.
    #[serde(default, skip_serializing_if = "KnownResources::is_empty")]
    pub resources: KnownResources,
    /// Which tools its author says that it uses, and which not.
    #[serde(default, skip_serializing_if = "ToolRules::is_empty")]
    pub tools: ToolRules,
    /// Whether a request has held its text that was to hold it once: it goes with the next one.
    /// Until then it counts for what the model answers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) sent: bool,
    /// Whether the host pinned it: it is not evicted, and the model cannot unload it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
}

impl LoadedSkill {
    /// A skill with this digest that was never touched.
    pub fn new(name: impl Into<String>, digest: Digest) -> Self {
        Self {
            name: name.into(),
            digest,
            tree_digest: None,
            version: None,
            load_count: 0,
            touched: 0,
            call: None,
            since: Since::default(),
            arguments: String::new(),
            text: None,
            docs: DocSelection::default(),
            resources: KnownResources::default(),
            tools: ToolRules::default(),
            sent: false,
            pinned: false,
        }
    }

    /// Whether this, which the catalog has now, is another text or has other files than what was
    /// loaded. Files that cannot be read or were not known say nothing.
    pub async fn is_outdated_by(&self, now: &CatalogSkill) -> bool {
        if now.found().digest != self.digest {
            return true;
        }
        let Some(loaded) = self.tree_digest else { return false };
        now.tree_digest().await.is_ok_and(|tree_digest| tree_digest != loaded)
    }

    /// The same skill for an agent whose conversation holds nothing of it.
    pub(crate) fn inherited(&self) -> Self {
        let mut inherited = Self { call: None, sent: false, load_count: 0, ..self.clone() };
        for doc in &mut inherited.docs.docs {
            doc.call = None;
        }
        inherited
    }
}

/// What the pinned text of a skill says of tools. Only the policy gives it a meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolRules {
    /// `allowed-tools`; `None` if the skill does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<String>>,
    /// `disallowed-tools`
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disallowed: Vec<String>,
    /// The tools that it declares and that wait for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub brings: Vec<String>,
    /// Whether tools of the host are among those.
    #[serde(default, skip_serializing_if = "Gates::is_default")]
    pub gates: Gates,
}

impl ToolRules {
    /// What a skill says. A blank field says nothing, an empty list that nothing is allowed; a
    /// skill that is not trusted and says nothing allows nothing.
    pub fn of(skill: &CatalogSkill) -> Self {
        let texts = |patterns: Vec<ToolPattern>| patterns.iter().map(ToString::to_string).collect();
        let frontmatter = &skill.found().frontmatter;
        let is_blank = frontmatter.raw().get("allowed-tools").is_some_and(|node| {
            node.value == Yaml::Null || node.as_str().is_some_and(|text| text.trim().is_empty())
        });
        let silent = (skill.trust() == Trust::Untrusted).then(Vec::new);
        Self {
            allowed: frontmatter.allowed_tools().filter(|_| !is_blank).map(texts).or(silent),
            disallowed: texts(frontmatter.disallowed_tools()),
            brings: brought_by(skill).collect(),
            gates: skill.gates(),
        }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Which docs of a skill were selected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DocSelection {
    /// Whether all of them were asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Each of them, in the order of selection.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub docs: Vec<SelectedDoc>,
}

/// A doc whose text was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SelectedDoc {
    /// Where it is, relative to the skill's folder.
    pub path: String,
    /// What identifies its text, once it was given; the bytes are in the content store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// The call whose result holds its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
}

impl SelectedDoc {
    /// A doc that no call has given yet.
    pub fn new(path: impl Into<String>, digest: Option<Digest>) -> Self {
        Self { path: path.into(), digest, call: None }
    }
}

impl DocSelection {
    /// Whether nothing was selected.
    pub fn is_empty(&self) -> bool {
        !self.all && self.docs.is_empty()
    }

    /// The doc at this path.
    pub fn get(&self, path: &str) -> Option<&SelectedDoc> {
        self.docs.iter().find(|doc| doc.path == path)
    }

    /// The paths, in the order of selection.
    pub fn paths(&self) -> Vec<&str> {
        self.docs.iter().map(|doc| doc.path.as_str()).collect()
    }
}

/// The resources of a loaded skill: some by name, the rest as a number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KnownResources {
    /// At most [`KnownResources::MOST_NAMED`], in the order of their paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<NamedResource>,
    /// How many more there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
}

/// A resource by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NamedResource {
    /// Where it is, relative to the skill's folder.
    pub path: String,
    /// What it is for.
    pub kind: ResourceKind,
}

impl KnownResources {
    /// So many resources of a skill are named in the state.
    pub const MOST_NAMED: usize = 64;

    /// These resources, the first of them by name.
    pub fn of(resources: &[Resource]) -> Self {
        let named = resources.iter().take(Self::MOST_NAMED);
        Self {
            named: named
                .map(|resource| NamedResource {
                    path: resource.path.as_str().to_owned(),
                    kind: resource.kind,
                })
                .collect(),
            more: resources.len().saturating_sub(Self::MOST_NAMED) as u64,
        }
    }

    /// These paths, the first of them by name.
    pub fn of_paths(paths: impl IntoIterator<Item = (String, ResourceKind)>) -> Self {
        let mut known = Self::default();
        for (path, kind) in paths {
            match known.named.len() < Self::MOST_NAMED {
                true => known.named.push(NamedResource { path, kind }),
                false => known.more += 1,
            }
        }
        known
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && self.more == 0
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        (self.named.len() as u64).saturating_add(self.more)
    }
}

/// Another model than the agent's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelOverride {
    /// The model.
    pub model: String,
    /// The loaded skill that asks for it.
    pub skill: String,
}

/// What of a conversation is not sent any more, and what stands for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Compaction {
    /// How many messages of the transcript, from its beginning.
    pub messages: usize,
    /// How many there were when that was decided: what they cost says nothing any more.
    pub of: usize,
    /// What is said in their place; the text is in the content store.
    pub summary: Digest,
}

impl SessionState {
    /// The loaded skill of this name.
    pub fn loaded(&self, name: &str) -> Option<&LoadedSkill> {
        self.loaded.iter().find(|skill| skill.name == name)
    }

    pub(crate) fn loaded_mut(&mut self, name: &str) -> Option<&mut LoadedSkill> {
        self.loaded.iter_mut().find(|skill| skill.name == name)
    }

    /// Whether a skill is loaded.
    pub fn is_loaded(&self, name: &str) -> bool {
        self.loaded(name).is_some()
    }

    /// The names of the loaded skills, in the order in which they were loaded.
    pub fn loaded_names(&self) -> Vec<&str> {
        self.loaded.iter().map(|skill| skill.name.as_str()).collect()
    }

    /// The names of the loaded skills, least recently used first.
    pub fn touch_order(&self) -> Vec<&str> {
        let mut skills: Vec<&LoadedSkill> = self.loaded.iter().collect();
        skills.sort_by_key(|skill| skill.touched);
        skills.into_iter().map(|skill| skill.name.as_str()).collect()
    }

    /// Whether a call was committed lately.
    pub fn has_call(&self, id: &str) -> bool {
        self.calls.iter().any(|call| **call == *id)
    }

    /// The content that must be kept as long as this state is.
    pub fn referenced(&self) -> BTreeSet<Digest> {
        let skills = self.loaded.iter().flat_map(|skill| {
            let docs = skill.docs.docs.iter().filter_map(|doc| doc.digest);
            std::iter::once(skill.digest).chain(skill.text).chain(docs)
        });
        let told = self.told.map(|told| told.digest);
        let summary = self.compaction.map(|it| it.summary);
        skills.chain(self.listing).chain(told).chain(summary).collect()
    }
}
