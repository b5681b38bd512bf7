//! The workspace and the artifacts of a session.

use prowess_runtime::{SessionKey, ToolOutcome};
use prowess_workspace::{
    ArtifactError, ArtifactScope, Workspace, WorkspaceError, WorkspaceId, Workspaces,
};

/// The artifacts that a session sees.
pub(crate) fn scope_of(session: &SessionKey) -> ArtifactScope {
    ArtifactScope::new(session.app(), session.user(), session.session())
}

/// The workspace of a session: made, or used again.
pub(crate) async fn workspace_of(
    workspaces: &Workspaces,
    session: &SessionKey,
) -> Result<Workspace, ToolOutcome> {
    let id = WorkspaceId::new(session.app(), session.user(), session.session());
    let workspaces = workspaces.clone();
    blocking(move || workspaces.open(&id)).await?.map_err(|error| workspace_failure(&error))
}

/// Does something that blocks where blocking is allowed.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ToolOutcome> {
    // The span of the call is also that of what is done for it.
    let span = tracing::Span::current();
    let done = tokio::task::spawn_blocking(move || span.in_scope(work)).await;
    done.map_err(|_| ToolOutcome::error("workspace_io", "Error: the workspace broke down"))
}

/// Something of a workspace failed.
pub(crate) fn workspace_failure(error: &WorkspaceError) -> ToolOutcome {
    ToolOutcome::error(error.code(), format!("Error: {error}"))
}

/// Something of the artifacts failed.
pub(crate) fn artifact_failure(error: &ArtifactError) -> ToolOutcome {
    ToolOutcome::error(error.code(), format!("Error: {error}"))
}
