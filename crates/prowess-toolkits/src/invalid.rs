//! Why the arguments of a call cannot be used.

use prowess_runtime::{Invocation, ToolOutcome};
use prowess_workspace::ArtifactError;

#[cfg(feature = "exec")]
use crate::exec::{InvalidCwd, InvalidInput, InvalidVariable};
#[cfg(feature = "files")]
use crate::files::{InvalidEdit, InvalidLines, InvalidTarget};
use crate::place::PlaceError;
#[cfg(feature = "exec")]
use crate::policy::CommandError;

/// Why the arguments of a call cannot be used. What it says is for the model that made the call,
/// and names what to write instead.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidArguments {
    #[error("they must be a JSON object")]
    NotAnObject,
    #[error("{name} is required")]
    Required { name: String },
    #[error("they name two {things}")]
    Two { things: &'static str },
    #[error("'{name}' must be {must}")]
    Wrong { name: String, must: &'static str },
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    #[cfg(feature = "exec")]
    #[error("'{name}' is not known")]
    Unknown { name: String },
    #[cfg(feature = "exec")]
    #[error(transparent)]
    Command(#[from] CommandError),
    #[cfg(feature = "exec")]
    #[error(transparent)]
    Variable(#[from] InvalidVariable),
    #[cfg(feature = "exec")]
    #[error("cwd: {0}")]
    Cwd(#[from] InvalidCwd),
    #[cfg(feature = "exec")]
    #[error("there are {count} inputs; at most {most} are taken")]
    TooManyInputs { count: usize, most: usize },
    #[cfg(feature = "exec")]
    #[error("inputs[{at}]: {cause}")]
    Input { at: usize, cause: InvalidInput },
    #[cfg(feature = "files")]
    #[error(transparent)]
    Lines(#[from] InvalidLines),
    #[cfg(feature = "files")]
    #[error(transparent)]
    Edit(#[from] InvalidEdit),
    #[cfg(feature = "files")]
    #[error(transparent)]
    Target(#[from] InvalidTarget),
}

impl InvalidArguments {
    /// What a call comes to that has these arguments: `invalid_arguments`.
    pub(crate) fn outcome(&self, invocation: Invocation<'_>) -> ToolOutcome {
        invocation.invalid_arguments(self.to_string())
    }
}
