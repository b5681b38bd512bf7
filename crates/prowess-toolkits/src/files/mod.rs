//! Files: what is in a session's workspace and its artifacts, or in any backend.

mod access;
mod arguments;
mod backend;
mod declaration;
mod edit;
mod execute;
mod ground;
mod list;
mod read;
mod search;
mod settings;
mod source;
mod target;
mod text;
mod write;

use std::sync::Arc;

use prowess_runtime::{Invocation, Tool, ToolDeclaration, ToolFuture, ToolOutcome, Toolkit};
use prowess_workspace::{ArtifactStore, Workspaces};

pub use access::FilesAccess;
pub(crate) use arguments::{InvalidEdit, InvalidLines};
#[cfg(feature = "xlsx")]
pub(crate) use backend::WorkspaceBackend;
pub use backend::{
    Backend, BackendFuture, CommandLimits, CommandOutcome, CompositeBackend, FileError, GlobQuery,
    Globbed, GrepFile, GrepLine, GrepMode, GrepQuery, Grepped, LocalBackend, MemoryBackend,
    PathGlob, SearchCut, SearchLimits, Shell, Skipped,
};
use ground::Ground;
pub use settings::{FilesSettings, InvalidFilesSettings};
pub use source::BackendSource;
pub(crate) use target::InvalidTarget;
#[cfg(feature = "xlsx")]
pub(crate) use target::Target;

/// The tools `read_file`, `ls`, `glob`, `grep`, `write_file`, `edit_file` and `execute`: on the
/// workspace of a session, or on any [`Backend`]. What was written can be read in later turns too.
///
/// ```
/// use prowess_toolkits::{FilesAccess, FilesToolkit, MemoryBackend};
///
/// let all = FilesToolkit::on(MemoryBackend::new());
/// let no_changes = FilesToolkit::on(MemoryBackend::new()).with_access(FilesAccess::Search);
/// # let _ = (all, no_changes);
/// ```
#[derive(Clone)]
pub struct FilesToolkit {
    files: Files,
    access: FilesAccess,
}

/// What all tools work on.
#[derive(Clone)]
pub(crate) struct Files {
    ground: Ground,
    artifacts: Option<Arc<dyn ArtifactStore>>,
    settings: Arc<FilesSettings>,
}

impl FilesToolkit {
    /// Works in the workspaces of sessions: `read_file` and `ls`, and more with
    /// [`FilesToolkit::with_access`]. Commands are run by `skill_run`.
    pub fn new(workspaces: Workspaces) -> Self {
        Self::with_ground(Ground::Workspaces(workspaces), FilesAccess::Read)
    }

    /// Works in a backend, which all sessions share: all tools, and `execute` if the backend has a
    /// shell.
    pub fn on(backend: impl Backend) -> Self {
        Self::with_ground(Ground::Backend(Arc::new(backend)), FilesAccess::Write)
    }

    fn with_ground(ground: Ground, access: FilesAccess) -> Self {
        Self { files: Files { ground, artifacts: None, settings: Arc::default() }, access }
    }

    /// Which tools there are.
    pub fn with_access(mut self, access: FilesAccess) -> Self {
        self.access = access;
        self
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
        formatter
            .debug_struct("FilesToolkit")
            .field("access", &self.access)
            .field("settings", &self.files.settings)
            .finish_non_exhaustive()
    }
}

impl Toolkit for FilesToolkit {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let has_shell = self.files.ground.has_shell();
        let kinds = self.access.kinds().iter().filter(|kind| **kind != Kind::Execute || has_shell);
        let tool = |kind: &Kind| -> Arc<dyn Tool> {
            let declaration = declaration::of(*kind, &self.files.ground);
            Arc::new(FileTool { declaration, files: self.files.clone(), kind: *kind })
        };
        kinds.map(tool).collect()
    }
}

/// The tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    List,
    Glob,
    Grep,
    Write,
    Edit,
    Execute,
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
            let files = &self.files;
            let outcome = match self.kind {
                Kind::Read => files.read(invocation).await,
                Kind::List => files.list(invocation).await,
                Kind::Glob => files.glob(invocation).await,
                Kind::Grep => files.grep(invocation).await,
                Kind::Write => files.write(invocation).await,
                Kind::Edit => files.edit(invocation).await,
                Kind::Execute => files.execute(invocation).await,
            };
            outcome.unwrap_or_else(|refusal| refusal)
        })
    }
}

/// There is nothing of this name.
fn not_found(text: &str) -> ToolOutcome {
    ToolOutcome::error("file_not_found", format!("Error: There is no file or folder '{text}'"))
        .with_hint("ls shows what is there.")
}

/// Something was not done with the file that was called so.
fn failure(error: &FileError, text: &str) -> ToolOutcome {
    match error {
        FileError::NotFound { .. } => not_found(text),
        error => ToolOutcome::error(error.code(), format!("Error: {error}")),
    }
}
