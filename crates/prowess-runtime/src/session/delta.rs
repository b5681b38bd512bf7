//! How a session's state changes: by deltas, in the order of calls, each of them once.

use std::borrow::Cow;
use std::collections::HashSet;

use prowess_format::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::storable;

use super::state::{
    Compaction, DocSelection, KnownSkills, Leaving, LoadedSkill, ModelOverride, SelectedDoc,
    SessionState, Since,
};

/// So many ids of calls a state remembers, and never less than those of one delta.
pub const REMEMBERED_CALLS: usize = 64;

/// What one call changes.
///
/// Merging sorts by the order of the calls and takes each call once, so that calls may complete
/// in any order, and be delivered twice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StateDelta {
    /// The place of the call among the calls of its step.
    pub call_index: usize,
    /// The call.
    pub call_id: String,
    /// What it changes, in order.
    pub changes: Vec<Change>,
}

impl StateDelta {
    /// What a call changes.
    pub fn new(call_index: usize, call_id: impl Into<String>, changes: Vec<Change>) -> Self {
        Self { call_index, call_id: call_id.into(), changes }
    }
}

/// One change of a state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// The session knows which skills there are.
    Initialise {
        /// Which.
        skills: KnownSkills,
        /// The listing that it will see.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        listing: Option<Digest>,
        /// What identifies the dialect that it is in, if that is not the default one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dialect: Option<Digest>,
    },
    /// The model was told that there are other skills now.
    Tell {
        /// Which.
        skills: KnownSkills,
    },
    /// The first messages of the transcript are not sent any more; others said what they said.
    Compact {
        /// How many, and what stands for them.
        compaction: Compaction,
    },
    /// The next run looks again which skills there are.
    Forget,
    /// A turn begins.
    BeginTurn {
        /// What happens to loaded skills.
        reset: Reset,
    },
    /// A state from elsewhere takes the place of this one.
    Adopt {
        /// The state.
        state: Box<SessionState>,
    },
    /// A skill is loaded, or its text is given again.
    Load {
        /// The skill. Counts and touches are set when the change is applied.
        skill: Box<LoadedSkill>,
        /// Another model that it asks for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// A skill is not needed any more.
    Unload {
        /// The skill.
        skill: String,
    },
    /// A request has held the text of a skill that was to hold it once.
    MarkSent {
        /// The skill.
        skill: String,
    },
    /// Docs of a loaded skill are selected.
    SelectDocs {
        /// The skill.
        skill: String,
        /// How they relate to those that are selected.
        mode: DocMode,
        /// The docs.
        docs: DocSelection,
    },
    /// A loaded skill was used.
    Touch {
        /// The skill.
        skill: String,
    },
    /// A slot of the agent holds something else; `null` empties it.
    SetSlot {
        /// The slot.
        slot: String,
        /// What it holds.
        value: Value,
    },
    /// A tool remembers something for a skill; `null` forgets it.
    SetContext {
        /// The skill.
        skill: String,
        /// What.
        value: Value,
    },
}

/// What happens to loaded skills when a turn begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reset {
    /// They stay.
    Keep,
    /// They are gone.
    Clear,
}

/// How selected docs relate to those that were selected before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DocMode {
    /// They come in addition.
    Add,
    /// They take their place.
    #[default]
    Replace,
    /// None are selected any more.
    Clear,
}

/// What bounds a state. Decided when a delta is committed, not when a call begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Caps {
    /// How many skills may be loaded at the same time.
    pub max_loaded_skills: usize,
    /// What happens when one more is asked for.
    pub when_full: WhenFull,
}

impl Default for Caps {
    fn default() -> Self {
        Self { max_loaded_skills: 10, when_full: WhenFull::Refuse }
    }
}

/// What happens when a skill is asked for and no more may be loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhenFull {
    /// The load is refused.
    #[default]
    Refuse,
    /// The least recently used skill goes.
    Evict,
}

/// What came of the changes of one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Applied {
    /// Skills that went to make room.
    pub evicted: Vec<String>,
    /// Why the changes were refused; then nothing of the call was applied.
    pub refused: Option<Refusal>,
}

/// Why a change was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// As many skills are loaded as may be.
    #[error("at most {limit} skills may be loaded, and these are: {}", loaded.join(", "))]
    LimitReached {
        /// The limit.
        limit: usize,
        /// The loaded skills.
        loaded: Vec<String>,
    },
    /// The skill is not loaded any more.
    #[error("'{skill}' is not loaded")]
    NotLoaded {
        /// The skill.
        skill: String,
    },
}

impl SessionState {
    /// Applies deltas in the order of their calls, each call once, and says what came of them, in
    /// that order. A call is applied as a whole or not at all.
    pub fn apply(&mut self, deltas: &[StateDelta], caps: &Caps) -> Vec<(String, Applied)> {
        let mut ordered: Vec<&StateDelta> = deltas.iter().collect();
        ordered.sort_by_key(|delta| (delta.call_index, delta.call_id.as_str()));
        let mut outcomes: Vec<(String, Applied)> = Vec::with_capacity(ordered.len());
        let mut seen = HashSet::with_capacity(ordered.len());
        let mut new = Vec::new();
        for delta in ordered {
            if !seen.insert(delta.call_id.as_str()) {
                continue;
            }
            let applied = match self.has_call(&delta.call_id) {
                true => Applied::default(),
                false => {
                    new.push(delta.call_id.as_str().into());
                    self.apply_one(delta, caps)
                }
            };
            outcomes.push((delta.call_id.clone(), applied));
        }
        self.calls.extend(new);
        let most = REMEMBERED_CALLS.max(outcomes.len());
        let surplus = self.calls.len().saturating_sub(most);
        self.calls.drain(..surplus);
        outcomes
    }

    /// Applies changes that belong to no call: all of them, or none.
    pub(super) fn set_up(&mut self, changes: &[Change], caps: &Caps) -> Option<Applied> {
        let delta = StateDelta::new(0, "", changes.to_vec());
        (!changes.is_empty()).then(|| self.apply_one(&delta, caps))
    }

    fn apply_one(&mut self, delta: &StateDelta, caps: &Caps) -> Applied {
        let before = (delta.changes.len() > 1).then(|| self.clone());
        let mut applied = Applied::default();
        for change in &delta.changes {
            if let Err(refusal) = self.change(change, &delta.call_id, caps, &mut applied.evicted) {
                if let Some(before) = before {
                    *self = before;
                }
                return Applied { evicted: Vec::new(), refused: Some(refusal) };
            }
        }
        applied
    }

    fn change(
        &mut self,
        change: &Change,
        call: &str,
        caps: &Caps,
        evicted: &mut Vec<String>,
    ) -> Result<(), Refusal> {
        match change {
            Change::Initialise { skills, listing, dialect } => {
                self.skills = Some(*skills);
                self.told = Some(*skills);
                self.listing = *listing;
                self.dialect = *dialect;
            }
            Change::Tell { skills } => self.told = Some(*skills),
            Change::Compact { compaction } => self.compaction = Some(*compaction),
            Change::Forget => self.skills = None,
            Change::Adopt { state } => {
                *self = SessionState::clone(state);
                for value in self.context.values_mut() {
                    *value = storable(value.take());
                }
            }
            Change::BeginTurn { reset } => {
                self.turn = self.turn.saturating_add(1);
                self.leaving.clear();
                if *reset == Reset::Clear {
                    self.loaded.clear();
                    self.model = None;
                }
            }
            Change::Load { skill, model } => self.load(skill, model.as_ref(), caps, evicted)?,
            Change::Unload { skill } => {
                if !self.is_loaded(skill) {
                    return Err(Refusal::NotLoaded { skill: skill.clone() });
                }
                self.unload(skill);
            }
            Change::SelectDocs { skill, mode, docs } => {
                let touched = self.tick();
                let Some(loaded) = self.loaded_mut(skill) else {
                    return Err(Refusal::NotLoaded { skill: skill.clone() });
                };
                loaded.touched = touched;
                // What is used again stays for one more request.
                loaded.sent = false;
                loaded.docs.select(*mode, docs, call);
            }
            Change::MarkSent { skill } => {
                if let Some(loaded) = self.loaded_mut(skill) {
                    loaded.sent = true;
                }
            }
            Change::Touch { skill } => {
                let touched = self.tick();
                if let Some(loaded) = self.loaded_mut(skill) {
                    loaded.touched = touched;
                }
            }
            Change::SetSlot { slot, value } => {
                match value {
                    Value::Null => self.slots.remove(slot),
                    value => self.slots.insert(slot.clone(), storable(value.clone())),
                };
            }
            Change::SetContext { skill, value } => {
                match value {
                    Value::Null => self.context.remove(skill),
                    value => self.context.insert(skill.clone(), storable(value.clone())),
                };
            }
        }
        Ok(())
    }

    fn load(
        &mut self,
        skill: &LoadedSkill,
        model: Option<&String>,
        caps: &Caps,
        evicted: &mut Vec<String>,
    ) -> Result<(), Refusal> {
        if !self.is_loaded(&skill.name) && self.loaded.len() >= caps.max_loaded_skills {
            self.make_room(caps, evicted)?;
        }
        let touched = self.tick();
        // What was sent and is asked for again is given again, as if it had gone.
        let sent = self.loaded.iter().position(|it| it.sent && it.name == skill.name);
        let sent = sent.map(|at| self.loaded.remove(at).load_count);
        if let Some(model) = model {
            self.model = Some(ModelOverride { model: model.clone(), skill: skill.name.clone() });
        }
        match self.loaded_mut(&skill.name) {
            Some(loaded) => {
                let docs = std::mem::take(&mut loaded.docs);
                let (count, pinned) = (loaded.load_count, loaded.pinned);
                let since = std::mem::take(&mut loaded.since);
                *loaded = skill.clone();
                loaded.since = since;
                loaded.pinned |= pinned;
                loaded.load_count = count.saturating_add(1);
                loaded.touched = touched;
                let given = std::mem::replace(&mut loaded.docs, docs);
                loaded.docs.merge(&given);
            }
            None => {
                let mut loaded = skill.clone();
                loaded.load_count = sent.unwrap_or_default().saturating_add(1);
                loaded.touched = touched;
                loaded.since = Since { turn: self.turn, call: skill.call.clone() };
                self.loaded.push(loaded);
            }
        }
        Ok(())
    }

    /// Lets the least recently used skills go until there is room for one more.
    fn make_room(&mut self, caps: &Caps, evicted: &mut Vec<String>) -> Result<(), Refusal> {
        let full = || Refusal::LimitReached {
            limit: caps.max_loaded_skills,
            loaded: self.loaded.iter().map(|skill| skill.name.clone()).collect(),
        };
        let surplus = (self.loaded.len() + 1).saturating_sub(caps.max_loaded_skills);
        let mut candidates: Vec<&LoadedSkill> =
            self.loaded.iter().filter(|skill| !skill.pinned).collect();
        candidates.sort_by_key(|skill| skill.touched);
        let going: Vec<String> =
            candidates.into_iter().take(surplus).map(|skill| skill.name.clone()).collect();
        if caps.when_full == WhenFull::Refuse || going.len() < surplus {
            return Err(full());
        }
        for name in going {
            self.unload(&name);
            evicted.push(name);
        }
        Ok(())
    }

    /// As the next request holds it: without the skills that were to be held once and were.
    pub(crate) fn unsent(&self) -> Cow<'_, Self> {
        let mut next = Cow::Borrowed(self);
        for skill in self.loaded.iter().filter(|skill| skill.sent) {
            next.to_mut().unload(&skill.name);
        }
        next
    }

    fn unload(&mut self, name: &str) {
        // What was given in this turn stays until it ends anyway.
        let turn = self.turn;
        let earlier = self.loaded(name).filter(|skill| skill.since.turn < turn);
        let leaving = earlier.map(|it| Leaving { name: it.name.clone(), since: it.since.clone() });
        self.leaving.extend(leaving);
        self.loaded.retain(|skill| skill.name != name);
        self.context.remove(name);
        if self.model.as_ref().is_some_and(|model| model.skill == name) {
            self.model = None;
        }
    }

    fn tick(&mut self) -> u64 {
        self.clock = self.clock.saturating_add(1);
        self.clock
    }
}

impl DocSelection {
    fn select(&mut self, mode: DocMode, docs: &Self, call: &str) {
        let mut given = docs.clone();
        for doc in &mut given.docs {
            // Those that are in the conversation already stay where they are.
            let before = self.get(&doc.path).filter(|before| before.digest == doc.digest);
            match (&doc.call, before) {
                (Some(_), _) => {}
                (None, Some(before)) => doc.call.clone_from(&before.call),
                (None, None) => doc.call = Some(call.to_owned()),
            }
        }
        match mode {
            DocMode::Add => self.merge(&given),
            DocMode::Replace => *self = given,
            DocMode::Clear => *self = Self::default(),
        }
    }

    /// Adds what is not there yet; what is there with another text is replaced in its place.
    fn merge(&mut self, given: &Self) {
        self.all |= given.all;
        for doc in &given.docs {
            match self.docs.iter_mut().find(|known| known.path == doc.path) {
                Some(known) => *known = SelectedDoc::clone(doc),
                None => self.docs.push(doc.clone()),
            }
        }
    }
}
