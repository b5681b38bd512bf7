//! Workspaces: one directory tree for each session.
//!
//! ```text
//! <root>/<id>/
//!   skills/<name>/    staged skills, read-only, with links to out, work and inputs, and .venv/
//!   work/             where commands work; work/inputs/ is what they were given
//!   out/              what they are to hand back
//!   runs/run_<id>/    a folder for each run
//!   metadata.json     what is staged, and where inputs came from
//! <root>/.locks/      who uses which workspace
//! <root>/.trash/      what is being removed
//! ```
//!
//! Commands may write below `work/`, `out/`, `runs/` and `.venv/`; whatever they do there, nothing
//! here follows a link that they made, waits for a pipe, or touches anything outside.

mod all;
mod error;
mod garbage;
mod id;
mod inputs;
mod limits;
mod metadata;
mod read;
mod stage;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use all::{WorkspaceOwner, Workspaces};
pub use error::WorkspaceError;
pub(crate) use error::shown;
pub use garbage::{GarbageReport, RemovedWorkspace};
pub use id::WorkspaceId;
pub use inputs::{CopiedIn, InputFile};
pub use limits::WorkspaceLimits;
pub use metadata::{InputMode, InputRecord};
pub use read::{Entries, Entry, EntryKind};
pub use stage::{SkillFile, StagedSkill};

use crate::collect::{CollectLimits, Collected, CollectedFile};
use crate::path::WorkspacePath;

/// The workspace of a session. While any clone of it lives, in whichever process, it is not
/// garbage. All methods block; none of them follows a link that a command made.
#[derive(Clone, Debug)]
pub struct Workspace {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    id: WorkspaceId,
    path: PathBuf,
    owner: Option<WorkspaceOwner>,
    limits: WorkspaceLimits,
}

impl Workspace {
    /// Which one it is.
    pub fn id(&self) -> &WorkspaceId {
        &self.inner.id
    }

    /// Its root on this machine: absolute, without links.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Who owns what commands may write, if that is not this process.
    pub fn owner(&self) -> Option<WorkspaceOwner> {
        self.inner.owner
    }

    /// Whether a skill is staged with this tree digest from an unchanged source (`None`: no matter
    /// which), and nobody touched the copy. Looks at every file, and reads none.
    pub fn staged(
        &self,
        name: &str,
        digest: &str,
        source_stamp: Option<&str>,
    ) -> Result<Option<StagedSkill>, WorkspaceError> {
        unimplemented!("{name} {digest} {source_stamp:?}")
    }

    /// Stages a skill from bytes: a read-only copy that appears at once or not at all. What is
    /// already staged and untouched stays; a `.venv/` is kept. Whether the bytes have the digest
    /// is the caller's knowledge.
    pub fn stage(
        &self,
        name: &str,
        digest: &str,
        source_stamp: Option<&str>,
        files: &[SkillFile<'_>],
    ) -> Result<StagedSkill, WorkspaceError> {
        unimplemented!("{name} {digest} {source_stamp:?} {}", files.len())
    }

    /// Makes the folder of a new run: `runs/run_<id>`, which nobody else has.
    pub fn begin_run(&self) -> Result<WorkspacePath, WorkspaceError> {
        unimplemented!()
    }

    /// Writes a file below `work/`, `out/` or `runs/`; folders on the way are made. The file is
    /// there as a whole or not at all; a file or link in its place is replaced, a folder is not.
    pub fn put(&self, to: &WorkspacePath, bytes: &[u8]) -> Result<InputFile, WorkspaceError> {
        unimplemented!("{to} {}", bytes.len())
    }

    /// Copies a file or a folder of this machine that lies inside `allowed`: what a link that
    /// leads out of `allowed` hides is not found, whatever happens to the tree meanwhile. A folder
    /// replaces a folder. Of a folder, links and special files are left out, and listed.
    pub fn copy_in(
        &self,
        allowed: &Path,
        from: &Path,
        to: &WorkspacePath,
    ) -> Result<CopiedIn, WorkspaceError> {
        unimplemented!("{allowed:?} {from:?} {to}")
    }

    /// Copies a file or a folder of the workspace.
    pub fn copy_within(
        &self,
        from: &WorkspacePath,
        to: &WorkspacePath,
    ) -> Result<CopiedIn, WorkspaceError> {
        unimplemented!("{from} {to}")
    }

    /// Makes a relative link to a file or a folder of the workspace. A file or link in its place
    /// is replaced, a folder is not.
    pub fn link_within(
        &self,
        from: &WorkspacePath,
        to: &WorkspacePath,
    ) -> Result<(), WorkspaceError> {
        unimplemented!("{from} {to}")
    }

    /// Remembers where an input came from.
    pub fn record_input(&self, record: InputRecord) -> Result<(), WorkspaceError> {
        unimplemented!("{record:?}")
    }

    /// The newest record of an input at `to` that turned out to be `resolved`.
    pub fn recorded_input(
        &self,
        to: &WorkspacePath,
        resolved: &str,
    ) -> Result<Option<InputRecord>, WorkspaceError> {
        unimplemented!("{to} {resolved}")
    }

    /// Reads a regular file, up to so many bytes. The links `out`, `work` and `inputs` of a staged
    /// skill are understood; no other link is.
    pub fn read(&self, path: &WorkspacePath, limit: u64) -> Result<CollectedFile, WorkspaceError> {
        unimplemented!("{path} {limit}")
    }

    /// Lists a folder.
    pub fn list(&self, path: &WorkspacePath) -> Result<Entries, WorkspaceError> {
        unimplemented!("{path}")
    }

    /// Collects the files that match any of the globs, as relative to the workspace.
    /// `$WORKSPACE_DIR/`, `$SKILLS_DIR/`, `$WORK_DIR/`, `$OUTPUT_DIR/` and `$RUN_DIR/` (the given
    /// folder), also as `${…}/`, may begin a glob.
    pub fn collect(
        &self,
        globs: &[String],
        run_dir: Option<&WorkspacePath>,
        limits: &CollectLimits,
    ) -> Result<Collected, WorkspaceError> {
        unimplemented!("{globs:?} {run_dir:?} {limits:?}")
    }
}
