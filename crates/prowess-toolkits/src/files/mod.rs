//! `read_file` and `ls`: what is in a session's workspace, and its artifacts.

mod arguments;
mod list;
mod read;
mod settings;
mod target;

use std::sync::Arc;

use prowess_runtime::{Invocation, Tool, ToolDeclaration, ToolFuture, ToolOutcome, Toolkit};
use prowess_workspace::{ArtifactStore, Workspaces};
use serde_json::json;

pub(crate) use arguments::InvalidLines;
pub use settings::{FilesSettings, InvalidFilesSettings};
pub(crate) use target::InvalidTarget;

/// The tools `read_file` and `ls`, on the workspace of a session and its artifacts. What a command
/// wrote can be read in later turns too.
#[derive(Clone)]
pub struct FilesToolkit {
    files: Files,
}

/// What both tools work on.
#[derive(Clone)]
pub(crate) struct Files {
    workspaces: Workspaces,
    artifacts: Option<Arc<dyn ArtifactStore>>,
    settings: Arc<FilesSettings>,
}

impl FilesToolkit {
    /// Reads in these workspaces.
    pub fn new(workspaces: Workspaces) -> Self {
        Self { files: Files { workspaces, artifacts: None, settings: Arc::default() } }
    }

    /// Where artifacts are read from.
    pub fn with_artifacts(mut self, artifacts: Arc<dyn ArtifactStore>) -> Self {
        self.files.artifacts = Some(artifacts);
        self
    }

    /// Other settings than the default ones.
    pub fn with_settings(mut self, settings: FilesSettings) -> Self {
        self.files.settings = Arc::new(settings);
        self
    }
}

impl std::fmt::Debug for FilesToolkit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let settings = &self.files.settings;
        formatter.debug_struct("FilesToolkit").field("settings", settings).finish_non_exhaustive()
    }
}

impl Toolkit for FilesToolkit {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let read = FileTool {
            declaration: read_declaration(),
            files: self.files.clone(),
            kind: Kind::Read,
        };
        let list = FileTool {
            declaration: list_declaration(),
            files: self.files.clone(),
            kind: Kind::List,
        };
        vec![Arc::new(read), Arc::new(list)]
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Read,
    List,
}

struct FileTool {
    declaration: ToolDeclaration,
    files: Files,
    kind: Kind,
}

impl Tool for FileTool {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn call<'a>(&'a self, invocation: Invocation<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let outcome = match self.kind {
                Kind::Read => self.files.read(invocation).await,
                Kind::List => self.files.list(invocation).await,
            };
            outcome.unwrap_or_else(|refusal| refusal)
        })
    }
}

fn read_declaration() -> ToolDeclaration {
    let parameters = json!({
        "type": "object",
        "properties": {
            "path": {
                "type": "string",
                "description": "Path such as out/a.txt, or workspace://path or artifact://name[@version]",
            },
            "start_line": {"type": "integer", "description": "From 1."},
            "num_lines": {"type": "integer"},
        },
        "required": ["path"],
    });
    ToolDeclaration::new("read_file", "Read a text file of the workspace.", parameters)
}

fn list_declaration() -> ToolDeclaration {
    let parameters = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Default: the workspace. artifact:// lists artifacts."},
        },
    });
    ToolDeclaration::new("ls", "List a folder of the workspace.", parameters)
}

/// There is nothing of this name.
fn not_found(text: &str) -> ToolOutcome {
    ToolOutcome::error("file_not_found", format!("Error: There is no file or folder '{text}'"))
        .with_hint("ls shows what is there.")
}
