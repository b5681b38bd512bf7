//! `workspace_save_artifact`

use prowess_runtime::{ArtifactRef, Invocation, Tool, ToolDeclaration, ToolFuture, ToolOutcome};
use prowess_workspace::WorkspacePath;
use serde_json::json;

use super::super::arguments::Fields;
use super::super::plan::Runner;
use super::declaration;
use crate::invalid::InvalidArguments;
use crate::place::{PlaceError, Places, below};
use crate::session::{artifact_failure, blocking, scope_of, workspace_failure};

/// Keeps a file of the workspace as an artifact.
pub(crate) struct SaveArtifact {
    declaration: ToolDeclaration,
    runner: Runner,
}

impl SaveArtifact {
    pub(crate) fn new(runner: Runner) -> Self {
        Self { declaration: declaration::save_artifact(), runner }
    }

    async fn save(&self, invocation: Invocation<'_>) -> Result<ToolOutcome, ToolOutcome> {
        let invalid = |why: InvalidArguments| why.outcome(invocation);
        let mut fields = Fields::of(&invocation.call.arguments).map_err(invalid)?;
        let path = fields.text("path").map_err(invalid)?.unwrap_or_default();
        if path.trim().is_empty() {
            return Err(invalid(InvalidArguments::Required { name: "path".to_owned() }));
        }
        let Some(store) = &self.runner.artifacts else {
            let text = "Error: no artifact store is configured; nothing was saved";
            return Err(ToolOutcome::error("no_artifact_store", text).with_hint("Tell the user."));
        };
        let workspace = self.runner.workspace(invocation).await?;
        let places = Places { workspace: workspace.path(), run_dir: None };
        let path = place(path.trim(), &places).map_err(|why| invalid(why.into()))?;
        let (name, most) = (path.to_string(), self.runner.max_artifact_bytes);
        let file = blocking(move || workspace.read(&path, most)).await?;
        let file = file.map_err(|error| workspace_failure(&error))?;
        if file.truncated {
            let text = format!(
                "Error: '{name}' is too large; an artifact has at most {most} bytes \
                 (`max_artifact_bytes`)"
            );
            return Err(ToolOutcome::error("limit_exceeded", text));
        }
        let (size_bytes, mime_type) = (file.bytes.len(), file.mime_type);
        let bytes = file.bytes.into();
        let saved = store.save(&scope_of(invocation.session), &name, &mime_type, bytes).await;
        let version = saved.map_err(|error| artifact_failure(&error))?;
        let answer = json!({
            "name": name,
            "version": version,
            "ref": format!("artifact://{name}@{version}"),
            "mime_type": mime_type,
            "size_bytes": size_bytes,
        });
        Ok(ToolOutcome::json(answer).with_artifact(ArtifactRef { name, version }))
    }
}

/// A file that commands may have written.
fn place(text: &str, places: &Places<'_>) -> Result<WorkspacePath, PlaceError> {
    let path = match places.fixed(text)? {
        Some(path) => path,
        None => below(&WorkspacePath::root(), text, text)?,
    };
    let outside = PlaceError::NotOurs { text: text.to_owned() };
    let is_theirs = matches!(path.names().next(), Some("work" | "out" | "runs"));
    if is_theirs && path.names().count() > 1 { Ok(path) } else { Err(outside) }
}

impl Tool for SaveArtifact {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn call<'a>(&'a self, invocation: Invocation<'a>) -> ToolFuture<'a> {
        Box::pin(async move { self.save(invocation).await.unwrap_or_else(|refusal| refusal) })
    }
}
