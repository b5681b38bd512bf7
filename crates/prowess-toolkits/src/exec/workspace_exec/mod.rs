//! Commands in the workspace, on copies of skills that they may change: `workspace_exec` and its
//! family.

mod arguments;
mod begin;
mod copies;
mod declaration;
mod save;
mod tool;

use std::sync::Arc;

use prowess_runtime::Tool;

use super::interactive::{Act, Family, Sessions, Talk};
use super::plan::Runner;

/// `workspace_exec`, what its sessions are talked to with, and `workspace_save_artifact`.
pub(crate) fn tools(runner: &Runner, sessions: &Arc<Sessions>) -> Vec<Arc<dyn Tool>> {
    let talk = |act| -> Arc<dyn Tool> {
        Arc::new(Talk::new(act, Family::Workspace, runner.clone(), Arc::clone(sessions)))
    };
    vec![
        Arc::new(tool::WorkspaceExec::new(runner.clone(), Arc::clone(sessions))),
        talk(Act::Write),
        talk(Act::Kill),
        Arc::new(save::SaveArtifact::new(runner.clone())),
    ]
}
