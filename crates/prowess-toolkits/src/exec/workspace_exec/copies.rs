//! Copies of the loaded skills that commands may change.

use prowess_runtime::{Invocation, ToolOutcome};
use prowess_workspace::{InputMode, InputRecord, Workspace, WorkspaceError, WorkspacePath};
use tokio::sync::Mutex;

use super::super::stage::{Loading, folder_name, stage};
use crate::place::folder;
use crate::session::{blocking, workspace_failure};

/// Where they are.
pub(crate) fn skills_dir() -> WorkspacePath {
    folder("work/skills")
}

/// Makes copies of skills. What is copied is what the session has pinned; the read-only skills that
/// `skill_run` runs stay as they are.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    /// Two at once would replace each other's.
    busy: Mutex<()>,
}

impl Copies {
    /// Makes those that are missing, or made of other files than the loaded ones. A skill that
    /// cannot be copied, because it has changed or is gone, hinders nobody: that is said, and what
    /// was there stays.
    pub(crate) async fn make(
        &self,
        invocation: Invocation<'_>,
        workspace: &Workspace,
        limit: u64,
    ) -> Vec<String> {
        let _busy = self.busy.lock().await;
        let mut warnings = Vec::new();
        for name in invocation.state.loaded_names() {
            match copy(invocation, workspace, name, limit).await {
                Ok(Copied::Kept | Copied::New) => {}
                Ok(Copied::Anew { before }) => warnings.push(format!(
                    "the copy of the skill '{name}' was made anew: another version is loaded; what \
                     was there is in {before}"
                )),
                Err(why) => {
                    let code = &why.code;
                    warnings.push(format!("the skill '{name}' was not copied ({code})"));
                }
            }
        }
        warnings
    }
}

/// What became of a copy.
enum Copied {
    /// It is there.
    Kept,
    New,
    /// In the place of another version, which is somewhere else now.
    Anew {
        before: WorkspacePath,
    },
}

async fn copy(
    invocation: Invocation<'_>,
    workspace: &Workspace,
    name: &str,
    limit: u64,
) -> Result<Copied, ToolOutcome> {
    let loaded = invocation.loaded_skill(name)?;
    let digest = match loaded.tree_digest {
        Some(digest) => digest.to_string(),
        None => loaded.digest.to_string(),
    };
    let folder = WorkspacePath::parse(&folder_name(name)).unwrap_or_default();
    let to = skills_dir().join(&folder);
    let (here, at, known) = (workspace.clone(), to.clone(), digest.clone());
    let is_there = blocking(move || is_there(&here, &at, &known)).await?;
    let (is_there, is_current) = is_there.map_err(|error| workspace_failure(&error))?;
    if is_current {
        return Ok(Copied::Kept);
    }
    let ready = stage(invocation, workspace, name, Loading::Required, limit).await?;
    let here = workspace.clone();
    let record = InputRecord {
        from: format!("skill://{name}"),
        to: to.to_string(),
        resolved: digest,
        version: None,
        mode: InputMode::Copy,
        at: String::new(),
    };
    let work = move || {
        let copied = match is_there {
            // Somebody may have worked on it.
            true => Copied::Anew { before: here.copy_skill_anew(&ready.staged, &to)? },
            false => here.copy_skill(&ready.staged, &to).map(|_| Copied::New)?,
        };
        here.record_input(record)?;
        Ok(copied)
    };
    blocking(work).await?.map_err(|error| workspace_failure(&error))
}

/// Whether there is a copy, and whether it was made of this. Blocks.
fn is_there(
    workspace: &Workspace,
    at: &WorkspacePath,
    digest: &str,
) -> Result<(bool, bool), WorkspaceError> {
    let is_there = match workspace.list(at) {
        Ok(_) => true,
        Err(WorkspaceError::NotFound { .. }) => false,
        Err(error) => return Err(error),
    };
    Ok((is_there, is_there && workspace.recorded_input(at, digest)?.is_some()))
}
