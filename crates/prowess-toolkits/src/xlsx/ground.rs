//! Where workbooks come from and go to: the session's workspace and its artifacts.

use std::io::Cursor;
use std::sync::Arc;

use prowess_runtime::{ArtifactRef as Kept, Invocation, ToolOutcome};
use prowess_workspace::{
    ArtifactRef, ArtifactStore, Expected, Workspace, WorkspaceError, WorkspacePath, Workspaces,
    Wrote,
};

use super::error::{XlsxError, shown};
use super::package::Bytes;
use crate::files::{Backend as _, FileError, Target, WorkspaceBackend};
use crate::invalid::InvalidArguments;
use crate::session::{artifact_failure, blocking, scope_of, workspace_of};

/// Where workbooks come from and go to.
#[derive(Clone)]
pub(super) struct Ground {
    pub(super) workspaces: Workspaces,
    pub(super) artifacts: Option<Arc<dyn ArtifactStore>>,
}

/// A file or an artifact that a call names.
#[derive(Clone)]
pub(super) enum Place {
    File { workspace: Workspace, places: Vec<WorkspacePath>, text: String },
    Artifact { artifact: ArtifactRef },
}

/// What was read, and where it is.
pub(super) struct Loaded {
    pub(super) bytes: Arc<[u8]>,
    /// Where a changed one goes.
    pub(super) home: Home,
    pub(super) reference: String,
}

/// Where a file is written.
#[derive(Clone)]
pub(super) enum Home {
    File { workspace: Workspace, place: WorkspacePath },
    Artifact { name: String },
}

impl Home {
    /// Whether files are written there. Who asks first need not calculate in vain.
    pub(super) fn check(&self) -> Result<(), ToolOutcome> {
        let Self::File { place, .. } = self else { return Ok(()) };
        let mut names = place.names();
        match (names.next(), names.next()) {
            (Some("work" | "out"), Some(_)) => Ok(()),
            _ => {
                let error = WorkspaceError::NotWritable { path: place.clone() };
                Err(not_written(&FileError::of_workspace(error, place), place))
            }
        }
    }
}

/// What is expected where a file is written.
pub(super) enum Before {
    Nothing,
    Anything,
    Bytes(Arc<[u8]>),
}

/// What was written.
pub(super) struct Saved {
    pub(super) reference: String,
    pub(super) size_bytes: u64,
    pub(super) artifact: Option<Kept>,
}

impl Ground {
    /// What a path of a call means.
    pub(super) async fn place(
        &self,
        invocation: Invocation<'_>,
        text: &str,
    ) -> Result<Place, ToolOutcome> {
        let invalid = |why: InvalidArguments| why.outcome(invocation);
        let workspace = workspace_of(&self.workspaces, invocation.session).await?;
        match Target::parse(text, workspace.path()).map_err(invalid)? {
            Target::Artifact(artifact) => Ok(Place::Artifact { artifact }),
            Target::Artifacts => {
                Err(invocation.invalid_arguments("'artifact://' names no artifact"))
            }
            Target::Places(places) => Ok(Place::File { workspace, places, text: text.to_owned() }),
        }
    }

    /// A workbook as a stream, and a name that leads to it again.
    pub(super) async fn open(
        &self,
        invocation: Invocation<'_>,
        text: &str,
    ) -> Result<(Box<dyn Bytes>, String), ToolOutcome> {
        match self.place(invocation, text).await? {
            Place::Artifact { artifact } => {
                let (bytes, reference) = self.artifact(invocation, &artifact).await?;
                Ok((Box::new(Cursor::new(bytes)), reference))
            }
            Place::File { workspace, places, text } => {
                let opened = blocking(move || {
                    first(&places, |place| workspace.open_file(place))
                        .map_err(|(error, place)| failed(error, &place, &text))
                });
                let (file, place) = opened.await??;
                Ok((Box::new(file), format!("workspace://{place}")))
            }
        }
    }

    /// A whole workbook of at most so many bytes.
    pub(super) async fn load(
        &self,
        invocation: Invocation<'_>,
        text: &str,
        most: u64,
    ) -> Result<Loaded, ToolOutcome> {
        let too_large =
            |bytes: u64| XlsxError::limit("its bytes", bytes, "max_file_bytes", most).outcome(text);
        match self.place(invocation, text).await? {
            Place::Artifact { artifact } => {
                let (bytes, reference) = self.artifact(invocation, &artifact).await?;
                if bytes.len() as u64 > most {
                    return Err(too_large(bytes.len() as u64));
                }
                Ok(Loaded { bytes, reference, home: Home::Artifact { name: artifact.name } })
            }
            Place::File { workspace, places, text } => {
                let from = workspace.clone();
                let read = blocking(move || {
                    first(&places, |place| from.read(place, most))
                        .map_err(|(error, place)| failed(error, &place, &text))
                });
                let (file, place) = read.await??;
                if file.truncated {
                    return Err(too_large(file.size_bytes));
                }
                Ok(Loaded {
                    bytes: file.bytes.into(),
                    reference: format!("workspace://{place}"),
                    home: Home::File { workspace, place },
                })
            }
        }
    }

    async fn artifact(
        &self,
        invocation: Invocation<'_>,
        artifact: &ArtifactRef,
    ) -> Result<(Arc<[u8]>, String), ToolOutcome> {
        let scope = scope_of(invocation.session);
        let loaded = self.store()?.load(&scope, &artifact.name, artifact.version).await;
        let loaded = loaded.map_err(|error| artifact_failure(&error))?;
        let loaded = loaded.ok_or_else(|| not_found(&artifact.to_string()))?;
        Ok((loaded.bytes, format!("artifact://{}@{}", loaded.name, loaded.version)))
    }

    fn store(&self) -> Result<&dyn ArtifactStore, ToolOutcome> {
        self.artifacts.as_deref().ok_or_else(|| {
            ToolOutcome::error("no_artifact_store", "Error: no artifact store is configured")
        })
    }

    /// Where a file of this name is written.
    pub(super) async fn home(
        &self,
        invocation: Invocation<'_>,
        text: &str,
    ) -> Result<Home, ToolOutcome> {
        match self.place(invocation, text).await? {
            Place::Artifact { artifact } if artifact.version.is_some() => {
                let why = "a version is never written again; leave out '@' and the number";
                Err(invocation.invalid_arguments(why))
            }
            Place::Artifact { artifact } => Ok(Home::Artifact { name: artifact.name }),
            Place::File { workspace, places, text } => {
                let place = places.into_iter().next().ok_or_else(|| not_found(&text))?;
                let home = Home::File { workspace, place };
                home.check()?;
                Ok(home)
            }
        }
    }

    /// Writes a file as a whole, or not at all. An artifact gets a new version.
    pub(super) async fn save(
        &self,
        invocation: Invocation<'_>,
        home: &Home,
        mime_type: &str,
        bytes: Vec<u8>,
        before: Before,
    ) -> Result<Saved, ToolOutcome> {
        let size_bytes = bytes.len() as u64;
        match home {
            Home::Artifact { name } => {
                let scope = scope_of(invocation.session);
                let saved = self.store()?.save(&scope, name, mime_type, bytes.into()).await;
                let version = saved.map_err(|error| artifact_failure(&error))?;
                let reference = format!("artifact://{name}@{version}");
                let artifact = Some(Kept { name: name.clone(), version });
                Ok(Saved { reference, size_bytes, artifact })
            }
            Home::File { workspace, place } => {
                let expected = match &before {
                    Before::Nothing => Expected::Nothing,
                    Before::Anything => Expected::Anything,
                    Before::Bytes(bytes) => Expected::Content(bytes),
                };
                let backend = WorkspaceBackend::new(workspace.clone());
                let wrote: Result<Wrote, FileError> = backend.write(place, &bytes, expected).await;
                wrote.map_err(|error| match error {
                    FileError::Exists { .. } => {
                        let text = format!("Error: '{place}' is there already");
                        ToolOutcome::error("already_exists", text)
                            .with_hint("Choose another path, or set overwrite.")
                    }
                    error => not_written(&error, place),
                })?;
                let reference = format!("workspace://{place}");
                Ok(Saved { reference, size_bytes, artifact: None })
            }
        }
    }
}

/// What comes of the first place at which something is.
fn first<T>(
    places: &[WorkspacePath],
    look: impl Fn(&WorkspacePath) -> Result<T, WorkspaceError>,
) -> Result<(T, WorkspacePath), (WorkspaceError, WorkspacePath)> {
    let mut missing = None;
    for place in places {
        match look(place) {
            Ok(found) => return Ok((found, place.clone())),
            Err(error @ WorkspaceError::NotFound { .. }) => missing = Some((error, place.clone())),
            Err(error) => return Err((error, place.clone())),
        }
    }
    Err(missing.unwrap_or_else(|| {
        let root = WorkspacePath::root();
        (WorkspaceError::NotFound { path: root.to_string() }, root)
    }))
}

fn failed(error: WorkspaceError, place: &WorkspacePath, text: &str) -> ToolOutcome {
    match FileError::of_workspace(error, place) {
        FileError::NotFound { .. } => not_found(text),
        error => ToolOutcome::error(error.code(), format!("Error: {error}")),
    }
}

fn not_written(error: &FileError, place: &WorkspacePath) -> ToolOutcome {
    let outcome = ToolOutcome::error(error.code(), format!("Error: {error}"));
    match error {
        FileError::Denied { .. } => {
            let name = place.names().last().unwrap_or("a.xlsx");
            outcome.with_hint(format!(
                "Files are written below work/ or out/: name it out/{}, or artifact://{0}.",
                shown(name)
            ))
        }
        _ => outcome,
    }
}

fn not_found(text: &str) -> ToolOutcome {
    let text = format!("Error: There is no file '{}'", shown(text));
    ToolOutcome::error("file_not_found", text).with_hint("ls shows what is there.")
}
