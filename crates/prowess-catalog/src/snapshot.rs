//! One immutable generation of all skills.

use std::path::Path;
use std::sync::Arc;

use prowess_format::Diagnostic;

use crate::found::SourceListing;
use crate::merge::{Merged, Precedence, merge};
use crate::resource::ResourceListing;
use crate::skill::{CatalogSkill, SourceEntry};
use crate::source::Source;

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
        let Merged { skills, ambiguous, sources, diagnostics } =
            merge(sources, resources, precedence);
        let inner = Inner { generation, skills, ambiguous, sources, diagnostics };
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
