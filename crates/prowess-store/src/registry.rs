//! What a registry holds now, at hand: for lists, and for whoever asks often.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard};
use std::time::Instant;

use jiff::Timestamp;
use tokio::sync::Mutex;

use crate::find::{SkillPage, SkillQuery, find, haystack};
use crate::version::{SkillId, VersionError, VersionStore, VersionedSkill, WaitingSkill};

/// The active versions of all skills of a store, and what waits to become one, in memory.
///
/// What it says is as old as its last [`Registry::refresh`]; whoever changes the store refreshes
/// before saying so.
pub struct Registry {
    store: Arc<dyn VersionStore>,
    shelf: RwLock<Shelf>,
    /// One refreshes at a time.
    refreshing: Mutex<()>,
}

#[derive(Default)]
struct Shelf {
    generation: Option<u64>,
    skills: BTreeMap<SkillId, Arc<Shelved>>,
    /// Those of which no version is used yet.
    waiting: BTreeMap<SkillId, Arc<WaitingSkill>>,
    /// Those that cannot be read, and why.
    broken: BTreeMap<String, String>,
}

/// A skill in a registry, and what a filter looks at.
#[derive(Debug)]
#[non_exhaustive]
pub struct Shelved {
    /// The skill.
    pub skill: VersionedSkill,
    pub(crate) haystack: String,
    row: OnceLock<Box<str>>,
    last_load: std::sync::Mutex<Known>,
}

/// When a skill was loaded last, as the store said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastLoad {
    /// When it was; `None` if never.
    pub at: Option<Timestamp>,
    /// When the store was asked.
    pub asked: Instant,
    /// What tells whoever asked whether something may have come in between.
    pub generation: u64,
}

/// What is known of loads.
#[derive(Debug, Default)]
struct Known {
    at: Option<Timestamp>,
    asked: Option<(Instant, u64)>,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shelf = self.shelf();
        formatter
            .debug_struct("Registry")
            .field("generation", &shelf.generation)
            .field("skills", &shelf.skills.len())
            .finish_non_exhaustive()
    }
}

impl Registry {
    /// A view of a store that has not looked yet.
    pub fn new(store: Arc<dyn VersionStore>) -> Self {
        Self { store, shelf: RwLock::default(), refreshing: Mutex::new(()) }
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn VersionStore> {
        &self.store
    }

    /// Takes over what was changed, by whichever process. Says whether anything was.
    pub async fn refresh(&self) -> Result<bool, VersionError> {
        let _turn = self.refreshing.lock().await;
        let since = self.shelf().generation;
        let mut changes = self.store.changes(since).await?;
        if since == Some(changes.generation) {
            return Ok(false);
        }
        // An old copy of the store is in its place: what came after it is not there any more.
        let is_older = since.is_some_and(|since| changes.generation < since);
        if is_older {
            changes = self.store.changes(None).await?;
        }
        let mut shelf = self.shelf.write().unwrap_or_else(PoisonError::into_inner);
        if is_older {
            *shelf = Shelf::default();
        }
        for (id, skill) in changes.skills {
            shelf.broken.remove(id.as_str());
            shelf.waiting.remove(&id);
            match skill {
                Some(skill) => shelf.skills.insert(id, Arc::new(Shelved::new(skill))),
                None => shelf.skills.remove(&id),
            };
        }
        for waiting in changes.waiting {
            shelf.waiting.insert(waiting.id.clone(), Arc::new(waiting));
        }
        for (id, cause) in changes.broken {
            tracing::error!(target: "prowess::store", skill = ?id, "left out a skill: {cause}");
            shelf.broken.insert(id, cause);
        }
        shelf.generation = Some(changes.generation);
        Ok(true)
    }

    /// Whether it has looked at least once. Before that it knows nothing of any skill.
    pub fn is_ready(&self) -> bool {
        self.shelf().generation.is_some()
    }

    /// Whoever has read the text of a skill says whether that can be done, and if not, why.
    pub(crate) fn report(&self, shelved: &Arc<Shelved>, cause: Option<String>) {
        let id = shelved.skill.id.as_str();
        if cause.is_none() && !self.shelf().broken.contains_key(id) {
            return;
        }
        let mut shelf = self.shelf.write().unwrap_or_else(PoisonError::into_inner);
        // It may be another one by now.
        if !shelf.skills.get(id).is_some_and(|now| Arc::ptr_eq(now, shelved)) {
            return;
        }
        match cause {
            None => drop(shelf.broken.remove(id)),
            Some(cause) if shelf.broken.get(id) == Some(&cause) => {}
            Some(cause) => {
                tracing::error!(target: "prowess::store", skill = ?id, "left out a skill: {cause}");
                shelf.broken.insert(id.to_owned(), cause);
            }
        }
    }

    /// The skills that were left out because they cannot be read, by their ids, and why.
    pub fn broken(&self) -> Vec<(String, String)> {
        self.shelf().broken.iter().map(|(id, cause)| (id.clone(), cause.clone())).collect()
    }

    /// The generation that this is of; 0 if it has not looked yet.
    pub fn generation(&self) -> u64 {
        self.shelf().generation.unwrap_or_default()
    }

    /// How many skills there are of which a version is used.
    pub fn len(&self) -> usize {
        self.shelf().skills.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A skill of which no version is used yet.
    pub fn waiting(&self, id: &str) -> Option<Arc<WaitingSkill>> {
        self.shelf().waiting.get(id).cloned()
    }

    /// A skill of which a version is used.
    pub fn get(&self, id: &str) -> Option<Arc<Shelved>> {
        self.shelf().skills.get(id).cloned()
    }

    /// All skills of which a version is used, in the order of their ids.
    pub fn all(&self) -> Vec<Arc<Shelved>> {
        self.shelf().skills.values().cloned().collect()
    }

    /// Some skills.
    pub fn find(&self, query: &SkillQuery) -> SkillPage {
        let shelf = self.shelf();
        find(&shelf.skills, &shelf.waiting, query)
    }

    fn shelf(&self) -> RwLockReadGuard<'_, Shelf> {
        self.shelf.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelved {
    fn new(skill: VersionedSkill) -> Self {
        Self {
            haystack: haystack(&skill.id, &skill.active.about),
            skill,
            row: OnceLock::new(),
            last_load: Default::default(),
        }
    }

    /// What lists say of it: made by whoever asks first, and kept until the skill changes.
    pub fn row(&self, make: impl FnOnce(&VersionedSkill) -> String) -> &str {
        self.row.get_or_init(|| make(&self.skill).into_boxed_str())
    }

    /// When it was loaded last, if somebody has asked for that since the skill changed.
    pub fn last_load(&self) -> Option<LastLoad> {
        let known = self.known();
        known.asked.map(|(asked, generation)| LastLoad { at: known.at, asked, generation })
    }

    /// Keeps what the store says, unless something later is known; gives what is known now.
    pub fn keep_last_load(&self, said: LastLoad) -> LastLoad {
        let mut known = self.known();
        known.at = known.at.max(said.at);
        known.asked = Some((said.asked, said.generation));
        LastLoad { at: known.at, ..said }
    }

    /// It was loaded, which the store has.
    pub fn loaded_at(&self, time: Timestamp) {
        // As exactly as stores keep it.
        let time = Timestamp::from_millisecond(time.as_millisecond()).ok();
        let mut known = self.known();
        known.at = known.at.max(time);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.last_load.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
