//! One immutable generation of all skills.

use std::sync::Arc;

use prowess_format::Diagnostic;

use crate::found::SourceListing;
use crate::merge::{Merged, Precedence, fold, merge};
use crate::resource::EagerResources;
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
        resources: &EagerResources,
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
        let winners = self.inner.skills.iter().chain(&self.inner.ambiguous);
        let mut everybody = winners.flat_map(|skill| std::iter::once(skill).chain(&skill.shadows));
        if everybody.all(&filter) {
            return self.clone();
        }
        let keep = |skills: &[CatalogSkill]| -> Vec<CatalogSkill> {
            let promoted = skills.iter().filter_map(|skill| {
                let everyone = std::iter::once(skill).chain(&skill.shadows);
                let mut seen = everyone.filter(|skill| filter(skill)).cloned();
                let first = seen.next()?;
                Some(CatalogSkill { shadows: seen.collect(), ..first })
            });
            promoted.collect()
        };
        let Inner { generation, sources, .. } = &*self.inner;
        let (mut skills, rivals) = (keep(&self.inner.skills), keep(&self.inner.ambiguous));
        // Who has no rival left is not ambiguous.
        let is_alone = |skill: &CatalogSkill| {
            rivals.iter().filter(|rival| fold(rival.name()) == fold(skill.name())).count() == 1
        };
        let (alone, ambiguous): (Vec<_>, Vec<_>) = rivals.iter().cloned().partition(is_alone);
        skills.extend(alone);
        skills.sort_unstable_by(|a, b| a.name().cmp(b.name()));
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

    /// The skills that their name alone does not lead to, because there are several.
    pub fn ambiguous(&self) -> &[CatalogSkill] {
        &self.inner.ambiguous
    }

    /// The skill that `name`, `name@source` or `name@source/folder` leads to.
    pub fn get(&self, name: &str) -> Result<&CatalogSkill, LookupError> {
        let skills = &self.inner.skills;
        if let Ok(at) = skills.binary_search_by(|skill| skill.name().cmp(name)) {
            return Ok(&skills[at]);
        }
        let is_meant = |skill: &&CatalogSkill| fold(skill.name()) == fold(name);
        let rivals: Vec<&CatalogSkill> = self.inner.ambiguous.iter().filter(is_meant).collect();
        if !rivals.is_empty() {
            return Err(LookupError::Ambiguous {
                name: name.to_owned(),
                candidates: rivals.iter().map(|skill| skill.qualified_name()).collect(),
            });
        }
        if !name.contains('@') {
            return skills.iter().find(is_meant).ok_or_else(|| self.unknown(name));
        }
        let winners = skills.iter().chain(&self.inner.ambiguous);
        winners
            .flat_map(|skill| std::iter::once(skill).chain(&skill.shadows))
            .find(|skill| skill.answers_to(name))
            .ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> LookupError {
        let nearest =
            prowess_format::nearest_name(name, self.inner.skills.iter().map(CatalogSkill::name));
        LookupError::Unknown { name: name.to_owned(), nearest: nearest.map(str::to_owned) }
    }
}
