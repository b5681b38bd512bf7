//! How a turn begins.

use crate::customise::CustomisationError;
use crate::message::Message;
use crate::session::{LoadedSkill, Refusal};
use crate::store::{Revision, StoreError};

/// What the caller wants at the beginning of a turn.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TurnRequest {
    /// Skills that shall be loaded: all of them, or the turn does not begin.
    pub loads: Vec<LoadRequest>,
    /// Skills that shall be loaded and stay: unknown ones are left out, and reported.
    pub pinned: Vec<String>,
    /// Skills that are loaded as another agent has loaded them. Their text is given where no
    /// message of this turn gives it.
    pub inherited: Vec<LoadedSkill>,
    /// What is said: by the user, or before the turn began.
    pub messages: Vec<Message>,
}

impl TurnRequest {
    /// A turn with nothing special.
    pub fn new() -> Self {
        Self::default()
    }

    /// Loads a skill.
    pub fn with_load(mut self, load: LoadRequest) -> Self {
        self.loads.push(load);
        self
    }

    /// Pins a skill.
    pub fn with_pinned(mut self, skill: impl Into<String>) -> Self {
        self.pinned.push(skill.into());
        self
    }

    /// Loads a skill as another agent has loaded it.
    pub fn with_inherited(mut self, skill: LoadedSkill) -> Self {
        self.inherited.push(skill);
        self
    }

    /// Adds what is said.
    pub fn with_message(mut self, message: Message) -> Self {
        self.messages.push(message);
        self
    }
}

/// Who loads a skill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoadedBy {
    /// A model, by a call.
    Model,
    /// A host, for a turn.
    #[default]
    Host,
    /// A person, who has typed its name.
    Person,
}

/// A skill that the caller wants loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadRequest {
    /// The skill.
    pub skill: String,
    /// Some of its docs.
    pub docs: Vec<String>,
    /// All of its docs.
    pub include_all_docs: bool,
    /// Arguments to put into its text.
    pub arguments: String,
    /// Who wants it. A skill with `user-invocable: false` cannot be loaded by people; commands in
    /// a skill's text are run for them alone.
    pub by: LoadedBy,
}

impl LoadRequest {
    /// The skill without docs.
    pub fn new(skill: impl Into<String>) -> Self {
        Self { skill: skill.into(), ..Self::default() }
    }

    /// A person has typed the skill's name, and this behind it.
    pub fn typed(skill: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self { by: LoadedBy::Person, ..Self::new(skill).with_arguments(arguments) }
    }

    /// With a doc.
    pub fn with_doc(mut self, path: impl Into<String>) -> Self {
        self.docs.push(path.into());
        self
    }

    /// With all docs.
    pub fn with_all_docs(mut self) -> Self {
        self.include_all_docs = true;
        self
    }

    /// With arguments.
    pub fn with_arguments(mut self, arguments: impl Into<String>) -> Self {
        self.arguments = arguments.into();
        self
    }
}

/// A turn that has begun.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Turn {
    /// Its number, from 1.
    pub number: u64,
    /// What is to be appended to the conversation; it is in the stored transcript already.
    pub messages: Vec<Message>,
    /// What is not as it was asked for: pinned skills that could not be loaded, and why.
    pub problems: Vec<String>,
    /// The session's revision.
    pub revision: Revision,
}

/// Why the engine did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The session store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The content store failed.
    #[error(transparent)]
    Content(#[from] prowess_catalog::ContentError),
    /// Others commit to the same session all the time.
    #[error("the session is too busy: {attempts} commits were overtaken")]
    TooBusy {
        /// How many.
        attempts: usize,
    },
    /// A change from outside does not fit the state.
    #[error("the state cannot be changed: {0}")]
    Refused(Refusal),
    /// A function of the host has failed.
    #[error(transparent)]
    Customisation(#[from] CustomisationError),
    /// A declared load makes no sense.
    #[error("the declared load of '{skill}' is not valid: {why}")]
    InvalidLoad {
        /// The skill.
        skill: String,
        /// What is wrong.
        why: String,
    },
    /// A declared skill or doc is not there, or not for this agent.
    #[error("skill '{skill}' is unavailable: {why}")]
    SkillUnavailable {
        /// The skill.
        skill: String,
        /// What is missing.
        why: String,
    },
}

impl RuntimeError {
    /// The stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Store(error) => error.code(),
            Self::Content(error) => error.code(),
            Self::TooBusy { .. } => "too_busy",
            Self::Refused(_) => "change_refused",
            Self::Customisation(_) => "customisation_failed",
            Self::InvalidLoad { .. } => "invalid_load",
            Self::SkillUnavailable { .. } => "skill_unavailable",
        }
    }
}
