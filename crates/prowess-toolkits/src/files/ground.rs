//! Where files are: in the session's workspace, or in a backend.

use std::sync::Arc;

use prowess_runtime::{Invocation, ToolOutcome};
use prowess_workspace::{ArtifactRef, WorkspacePath, Workspaces};

use super::backend::{Backend, BackendFuture, WorkspaceBackend, path_of};
use super::target::{InvalidTarget, Target};
use super::{FileError, Files, failure, not_found};
use crate::invalid::InvalidArguments;
use crate::session::workspace_of;

/// Where files are.
#[derive(Clone)]
pub(crate) enum Ground {
    /// Each session has its own.
    Workspaces(Workspaces),
    /// All sessions share them.
    Backend(Arc<dyn Backend>),
}

impl Ground {
    pub(super) fn has_shell(&self) -> bool {
        match self {
            Self::Workspaces(_) => false,
            Self::Backend(backend) => backend.shell().is_some(),
        }
    }

    /// The name that leads to a file again.
    pub(super) fn reference(&self, path: &str) -> String {
        match self {
            Self::Workspaces(_) => format!("workspace://{path}"),
            Self::Backend(_) => format!("/{path}"),
        }
    }

    /// A path as results show it.
    pub(super) fn shown(&self, path: &WorkspacePath) -> String {
        match self {
            Self::Workspaces(_) => path.to_string(),
            Self::Backend(_) => format!("/{path}"),
        }
    }
}

/// What a path of a call means.
pub(super) enum Meant {
    Artifact(ArtifactRef),
    Artifacts,
    Files(Spot),
}

/// Places in a backend, of which the first is meant at which something is.
pub(super) struct Spot {
    pub(super) backend: Arc<dyn Backend>,
    places: Vec<WorkspacePath>,
    /// What the call wrote.
    text: String,
}

impl Files {
    /// What a path of a call means.
    pub(super) async fn meant(
        &self,
        invocation: Invocation<'_>,
        text: &str,
    ) -> Result<Meant, ToolOutcome> {
        let invalid = |why: InvalidArguments| why.outcome(invocation);
        let (backend, target): (Arc<dyn Backend>, Target) = match &self.ground {
            Ground::Workspaces(workspaces) => {
                let workspace = workspace_of(workspaces, invocation.session).await?;
                let target = Target::parse(text, workspace.path()).map_err(invalid)?;
                (Arc::new(WorkspaceBackend::new(workspace)), target)
            }
            Ground::Backend(backend) => {
                let target = match Target::artifact(text).map_err(invalid)? {
                    Some(target) => target,
                    None => {
                        Target::Places(vec![path_of(text).map_err(|error| failure(&error, text))?])
                    }
                };
                (Arc::clone(backend), target)
            }
        };
        Ok(match target {
            Target::Artifact(artifact) => Meant::Artifact(artifact),
            Target::Artifacts => Meant::Artifacts,
            Target::Places(places) => Meant::Files(Spot { backend, places, text: text.to_owned() }),
        })
    }

    /// Files of a backend, for a tool that does nothing with artifacts.
    pub(super) async fn spot(
        &self,
        invocation: Invocation<'_>,
        text: &str,
    ) -> Result<Spot, ToolOutcome> {
        match self.meant(invocation, text).await? {
            Meant::Files(spot) => Ok(spot),
            Meant::Artifact(_) | Meant::Artifacts => {
                Err(InvalidArguments::from(InvalidTarget::ReadOnly).outcome(invocation))
            }
        }
    }
}

impl Spot {
    /// What comes of the first place at which something is, and that place.
    pub(super) async fn first<'a, T>(
        &'a self,
        look: impl Fn(&'a dyn Backend, &'a WorkspacePath) -> BackendFuture<'a, T>,
    ) -> Result<(T, &'a WorkspacePath), ToolOutcome> {
        for place in &self.places {
            match look(&*self.backend, place).await {
                Err(FileError::NotFound { .. }) => {}
                Err(error) => return Err(self.failure(&error)),
                Ok(found) => return Ok((found, place)),
            }
        }
        Err(not_found(&self.text))
    }

    /// Where something new is put.
    pub(super) fn place(&self) -> Result<&WorkspacePath, ToolOutcome> {
        self.places.first().ok_or_else(|| not_found(&self.text))
    }

    pub(super) fn failure(&self, error: &FileError) -> ToolOutcome {
        failure(error, &self.text)
    }
}
