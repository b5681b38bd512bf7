//! Who sees which skill.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use prowess_catalog::{CatalogSkill, Scope, Snapshot};
use serde::{Deserialize, Serialize};

/// How far a skill shows itself to a model. The order is from open to closed.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Visibility {
    /// With its description.
    #[default]
    Listed,
    /// With its name alone; it can be loaded.
    NameOnly,
    /// Not at all; only people can load it.
    ManualOnly,
    /// For nobody: it answers like a skill that is not there.
    Hidden,
}

/// Decides for a user, a session and an agent how far a skill shows itself.
pub trait VisibilityFilter: Send + Sync + 'static {
    /// How far.
    fn visibility(&self, scope: &Scope, skill: &CatalogSkill) -> Visibility;
}

impl<F: Fn(&Scope, &CatalogSkill) -> Visibility + Send + Sync + 'static> VisibilityFilter for F {
    fn visibility(&self, scope: &Scope, skill: &CatalogSkill) -> Visibility {
        self(scope, skill)
    }
}

/// How far a skill itself wants to be seen.
pub(crate) fn own_visibility(skill: &CatalogSkill) -> Visibility {
    match skill.found().frontmatter.disable_model_invocation() {
        true => Visibility::ManualOnly,
        false => Visibility::Listed,
    }
}

/// Everybody who has a say: the skill itself, the settings, the host. The most closed one counts.
#[derive(Clone, Default)]
pub(crate) struct Visibilities {
    pub(crate) settings: BTreeMap<String, Visibility>,
    pub(crate) filter: Option<Arc<dyn VisibilityFilter>>,
    /// Who is not among these is hidden.
    pub(crate) only: Option<Arc<BTreeSet<String>>>,
}

impl Visibilities {
    pub(crate) fn of(&self, scope: &Scope, skill: &CatalogSkill) -> Visibility {
        self.with_own(scope, skill, own_visibility(skill))
    }

    /// The same, where what the skill itself wants is known.
    pub(crate) fn with_own(
        &self,
        scope: &Scope,
        skill: &CatalogSkill,
        own: Visibility,
    ) -> Visibility {
        let is_left = |only: &Arc<BTreeSet<String>>| {
            only.contains(skill.name()) || only.contains(&skill.qualified_name())
        };
        if !self.only.as_ref().is_none_or(is_left) {
            return Visibility::Hidden;
        }
        if self.settings.is_empty() && self.filter.is_none() {
            return own;
        }
        let set = self.settings.get(skill.name()).copied().unwrap_or_default();
        let host = self.filter.as_ref().map(|filter| filter.visibility(scope, skill));
        own.max(set).max(host.unwrap_or_default())
    }

    /// Whether somebody may hide a skill.
    pub(crate) fn can_hide(&self) -> bool {
        let narrows = self.filter.is_some() || self.only.is_some();
        narrows || self.settings.values().any(|it| *it == Visibility::Hidden)
    }

    /// Without what is hidden.
    pub(crate) fn visible(&self, scope: &Scope, snapshot: &Snapshot) -> Snapshot {
        snapshot.visible(|skill| self.of(scope, skill) != Visibility::Hidden)
    }
}
