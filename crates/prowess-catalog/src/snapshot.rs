//! One immutable generation of all skills.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use prowess_format::{Code, Diagnostic, Level};

use crate::error::ReadError;
use crate::found::{FoundSkill, SourceListing};
use crate::resource::{Resource, ResourceListing, ResourceScope};
use crate::source::{Source, Trust};

/// Which of several skills of one name is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Precedence {
    /// That of the last source.
    #[default]
    LastWins,
    /// That of the first source.
    FirstWins,
    /// None: the name alone is refused, `name@source` is not.
    RefuseAmbiguous,
}

/// A skill in a snapshot: what was found, and in which source.
#[derive(Clone)]
pub struct CatalogSkill {
    found: Arc<FoundSkill>,
    source: Arc<SourceEntry>,
    /// The skills of the same name that this one hides.
    shadows: Vec<CatalogSkill>,
    /// Its resources, where they are found together with the skills.
    resources: Option<Arc<ResourceListing>>,
}

/// A source in a snapshot.
pub struct SourceEntry {
    /// What `name@id` calls it: its label in small letters, made unique.
    pub id: String,
    pub(crate) source: Arc<dyn Source>,
}

impl std::fmt::Debug for SourceEntry {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SourceEntry").field("id", &self.id).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for CatalogSkill {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("CatalogSkill")
            .field("name", &self.name())
            .field("source", &self.source.id)
            .finish_non_exhaustive()
    }
}

impl CatalogSkill {
    /// What was found.
    pub fn found(&self) -> &Arc<FoundSkill> {
        &self.found
    }

    /// The name that identifies it.
    pub fn name(&self) -> &str {
        self.found.name.as_str()
    }

    /// The source that it is in.
    pub fn source(&self) -> &Arc<dyn Source> {
        &self.source.source
    }

    /// What `name@id` calls the source.
    pub fn source_id(&self) -> &str {
        &self.source.id
    }

    /// How far it is believed.
    pub fn trust(&self) -> Trust {
        self.source().info().trust
    }

    /// The path of its `SKILL.md`, from the location of its source.
    pub fn path(&self) -> PathBuf {
        Path::new(&self.source().info().location).join(self.found.path())
    }

    /// The skills of the same name that this one hides.
    pub fn shadows(&self) -> &[CatalogSkill] {
        &self.shadows
    }

    /// Its resources: those that were found with it, else those that are there now.
    pub async fn resources(&self, scope: ResourceScope) -> Result<ResourceListing, ReadError> {
        match &self.resources {
            Some(known) if scope == ResourceScope::default() => Ok(ResourceListing::clone(known)),
            _ => self.source().resources(&self.found, scope).await,
        }
    }

    /// Its docs: the `.md` and `.txt` files at any depth that can be put into a prompt, in the
    /// order of their paths.
    pub async fn docs(&self) -> Result<Vec<Resource>, ReadError> {
        let listing = self.source().resources(&self.found, ResourceScope::Recursive).await?;
        Ok(listing.resources.into_iter().filter(Resource::is_doc).collect())
    }

    /// The text, if it is still the one that was found.
    pub async fn read(&self) -> Result<Vec<u8>, ReadError> {
        let bytes = self.source().read(&self.found).await?;
        let actual = prowess_format::Digest::of(&bytes);
        match actual == self.found.digest {
            true => Ok(bytes),
            false => Err(ReadError::ContentChanged { expected: self.found.digest, actual }),
        }
    }
}

/// All skills of all sources at one moment: immutable, cheap to clone, safe to share.
#[derive(Clone, Debug)]
pub struct Snapshot {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    generation: u64,
    /// Sorted by name.
    skills: Vec<CatalogSkill>,
    /// Refused for their name alone, sorted by name.
    ambiguous: Vec<CatalogSkill>,
    sources: Vec<Arc<SourceEntry>>,
    diagnostics: Vec<Diagnostic>,
}

/// Why a name leads to no skill.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LookupError {
    /// There is none.
    #[error("there is no skill '{name}'{}", did_you_mean(nearest))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The nearest name there is.
        nearest: Option<String>,
    },
    /// There are several, and none of them is preferred.
    #[error("'{name}' is ambiguous: use {}", candidates.join(" or "))]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// What can be asked for instead.
        candidates: Vec<String>,
    },
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!("; did you mean '{name}'?")).unwrap_or_default()
}

impl Snapshot {
    /// A snapshot of nothing.
    pub(crate) fn empty() -> Self {
        Self { inner: Arc::default() }
    }

    /// Merges what sources hold, lowest precedence first. Decides who hides whom, and says so.
    pub(crate) fn merge(
        generation: u64,
        sources: &[(Arc<dyn Source>, Arc<SourceListing>)],
        resources: &[Vec<Arc<ResourceListing>>],
        precedence: Precedence,
    ) -> Self {
        let entries = source_entries(sources);
        let mut diagnostics = Vec::new();
        let total = sources.iter().map(|(_, listing)| listing.skills.len()).sum();
        let mut everyone: Vec<CatalogSkill> = Vec::with_capacity(total);
        for (at, (entry, (_, listing))) in entries.iter().zip(sources).enumerate() {
            diagnostics.extend(listing.diagnostics.iter().cloned());
            let eager = resources.get(at);
            for (number, found) in listing.skills.iter().enumerate() {
                let skill = CatalogSkill {
                    found: Arc::clone(found),
                    source: Arc::clone(entry),
                    shadows: Vec::new(),
                    resources: eager.and_then(|eager| eager.get(number)).cloned(),
                };
                everyone.push(skill);
            }
        }
        // Stable: within a name the order of sources and paths is kept.
        everyone.sort_by(|a, b| fold(a.name()).cmp(&fold(b.name())));
        let (mut skills, mut ambiguous) = (Vec::with_capacity(total), Vec::new());
        let mut shadowing = Vec::new();
        let mut everyone = everyone.into_iter().peekable();
        while let Some(skill) = everyone.next() {
            let is_rival = |next: &CatalogSkill| fold(next.name()) == fold(skill.name());
            let rival = everyone.next_if(is_rival);
            let Some(rival) = rival else {
                skills.push(skill);
                continue;
            };
            let mut group = vec![skill, rival];
            while let Some(rival) =
                everyone.next_if(|next| fold(next.name()) == fold(group[0].name()))
            {
                group.push(rival);
            }
            decide(group, precedence, &mut skills, &mut ambiguous, &mut shadowing);
        }
        let by_place = |a: &CatalogSkill, b: &CatalogSkill| {
            (a.name(), &a.source.id, &a.found.folder).cmp(&(
                b.name(),
                &b.source.id,
                &b.found.folder,
            ))
        };
        skills.sort_unstable_by(|a, b| a.name().cmp(b.name()));
        ambiguous.sort_by(by_place);
        shadowing.sort_by(|a: &Diagnostic, b| (&a.path, &a.message).cmp(&(&b.path, &b.message)));
        diagnostics.extend(shadowing);
        let inner = Inner { generation, skills, ambiguous, sources: entries, diagnostics };
        Self { inner: Arc::new(inner) }
    }

    /// The number of this generation; a later one has a higher number.
    pub fn generation(&self) -> u64 {
        self.inner.generation
    }

    /// All skills that their name alone leads to, sorted by name.
    pub fn skills(&self) -> &[CatalogSkill] {
        &self.inner.skills
    }

    /// The sources, lowest precedence first.
    pub fn sources(&self) -> &[Arc<SourceEntry>] {
        &self.inner.sources
    }

    /// What there is to say about sources, skills, and who hides whom.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.inner.diagnostics
    }

    /// Whether both are the same generation of the same catalog.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// A snapshot of the skills that pass a filter. A skill that does not hides nothing any more
    /// and answers like an unknown one, under every name.
    pub fn visible(&self, filter: impl Fn(&CatalogSkill) -> bool) -> Self {
        let keep = |skills: &[CatalogSkill]| -> Vec<CatalogSkill> {
            let promoted = skills.iter().filter_map(|skill| {
                let everyone = std::iter::once(skill).chain(&skill.shadows);
                let mut seen = everyone.filter(|skill| filter(skill)).cloned();
                let first = seen.next()?;
                Some(CatalogSkill { shadows: seen.collect(), ..first })
            });
            let mut skills: Vec<CatalogSkill> = promoted.collect();
            skills.sort_unstable_by(|a, b| a.name().cmp(b.name()));
            skills
        };
        let Inner { generation, sources, .. } = &*self.inner;
        let (skills, ambiguous) = (keep(&self.inner.skills), keep(&self.inner.ambiguous));
        let inner = Inner {
            generation: *generation,
            skills,
            ambiguous,
            sources: sources.clone(),
            // They may speak of what is hidden.
            diagnostics: Vec::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The skill that `name` or `name@source` leads to. After the `@` stands the id of a source
    /// or the folder of the skill.
    pub fn get(&self, name: &str) -> Result<&CatalogSkill, LookupError> {
        let skills = &self.inner.skills;
        if let Ok(at) = skills.binary_search_by(|skill| skill.name().cmp(name)) {
            return Ok(&skills[at]);
        }
        let rivals: Vec<&CatalogSkill> =
            self.inner.ambiguous.iter().filter(|skill| skill.name() == name).collect();
        if !rivals.is_empty() {
            return Err(LookupError::Ambiguous {
                name: name.to_owned(),
                candidates: rivals.iter().map(|skill| skill.qualified_name()).collect(),
            });
        }
        name.rsplit_once('@')
            .and_then(|(name, source)| self.get_from(name, source))
            .ok_or_else(|| self.unknown(name))
    }

    fn get_from(&self, name: &str, source: &str) -> Option<&CatalogSkill> {
        let winners = self.inner.skills.iter().chain(&self.inner.ambiguous);
        winners
            .flat_map(|skill| std::iter::once(skill).chain(&skill.shadows))
            .filter(|skill| skill.name() == name)
            .find(|skill| {
                skill.source.id == source || skill.found.folder.as_ref() == Path::new(source)
            })
    }

    fn unknown(&self, name: &str) -> LookupError {
        let nearest =
            prowess_format::nearest_name(name, self.inner.skills.iter().map(CatalogSkill::name));
        LookupError::Unknown { name: name.to_owned(), nearest: nearest.map(str::to_owned) }
    }
}

impl CatalogSkill {
    /// `name@source`.
    pub fn qualified_name(&self) -> String {
        format!("{}@{}", self.name(), self.source.id)
    }
}

/// Names that differ in nothing but case are one name: some file systems cannot tell them apart,
/// and neither can most readers.
fn fold(name: &str) -> Cow<'_, str> {
    match name.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        true => Cow::Borrowed(name),
        false => Cow::Owned(name.to_lowercase()),
    }
}

/// Ids for the sources: labels in small letters, numbered where they repeat.
fn source_entries(sources: &[(Arc<dyn Source>, Arc<SourceListing>)]) -> Vec<Arc<SourceEntry>> {
    let mut used: HashMap<String, usize> = HashMap::new();
    sources
        .iter()
        .map(|(source, _)| {
            let label = source.info().label.to_lowercase().replace([' ', '@'], "-");
            let count = used.entry(label.clone()).or_default();
            *count += 1;
            let id = if *count == 1 { label } else { format!("{label}-{count}") };
            Arc::new(SourceEntry { id, source: Arc::clone(source) })
        })
        .collect()
}

/// Picks the skill that a name leads to, of several in the order of sources and paths.
fn decide(
    mut group: Vec<CatalogSkill>,
    precedence: Precedence,
    skills: &mut Vec<CatalogSkill>,
    ambiguous: &mut Vec<CatalogSkill>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    // The best comes first: what is believed before what is not, then by the order of sources.
    if precedence != Precedence::FirstWins {
        group.reverse();
    }
    group.sort_by_key(|skill| std::cmp::Reverse(skill.trust()));
    let believed = group[0].trust();
    let rivals = group.iter().filter(|skill| skill.trust() == believed).count();
    if precedence == Precedence::RefuseAmbiguous && rivals > 1 {
        let names: Vec<String> = group.iter().map(CatalogSkill::qualified_name).collect();
        for skill in &group {
            let message = format!(
                "The name '{}' is ambiguous and refused: {}",
                skill.name(),
                names.join(", ")
            );
            let help = "use one of these names, rename a skill, or set another precedence";
            diagnostics.push(about(skill, Code::AmbiguousName, Level::Error, message, help));
        }
        ambiguous.append(&mut group);
        return;
    }
    let mut winner = group.remove(0);
    for skill in &group {
        let message = format!(
            "Skill '{}' of source '{}' is hidden by {}",
            skill.name(),
            skill.source.id,
            winner.path().display()
        );
        let help = match skill.trust() < winner.trust() {
            true => "an untrusted source never hides a trusted one; rename the skill",
            false => "rename one of the two, or remove it",
        };
        let help = format!("{help}; it can be reached as '{}'", reachable_name(skill, &winner));
        diagnostics.push(about(skill, Code::ShadowedSkill, Level::Warning, message, &help));
    }
    winner.shadows = group;
    skills.push(winner);
}

/// The name under which a hidden skill can be reached.
fn reachable_name(skill: &CatalogSkill, winner: &CatalogSkill) -> String {
    match skill.source.id == winner.source.id {
        true => format!("{}@{}", skill.name(), skill.found.folder.display()),
        false => skill.qualified_name(),
    }
}

fn about(
    skill: &CatalogSkill,
    code: Code,
    level: Level,
    message: String,
    help: &str,
) -> Diagnostic {
    Diagnostic::new(code, level, message)
        .with_path(skill.path().display().to_string())
        .with_help(help)
}
