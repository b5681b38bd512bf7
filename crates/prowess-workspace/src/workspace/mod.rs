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
mod aside;
mod copy;
mod error;
mod garbage;
mod id;
mod inputs;
mod limits;
mod metadata;
mod read;
mod stage;
mod tree;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, mkdirat};
use rustix::io::Errno;
use uuid::Uuid;

pub use all::{WorkspaceOwner, Workspaces};
pub use error::WorkspaceError;
pub(crate) use error::shown;
pub use garbage::{GarbageReport, RemovedWorkspace};
pub use id::WorkspaceId;
pub(crate) use inputs::split;
pub use inputs::{CopiedIn, InputFile};
pub use limits::WorkspaceLimits;
pub(crate) use metadata::create;
pub use metadata::{InputMode, InputRecord};
pub use read::{Entries, Entry, EntryKind};
pub(crate) use read::{entries_of, failed, read_regular};
pub use stage::{SkillFile, StagedSkill};

use crate::beneath::{Folder, give};
use crate::locks::Held;
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
    folder: Folder,
    /// Where what is removed goes.
    bin: Folder,
    change_lock: PathBuf,
    /// Locked as long as this lives; its time is when the workspace was used.
    used: Held,
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

    /// Makes the folder of a new run: `runs/run_<id>`, which nobody else has.
    pub fn begin_run(&self) -> Result<WorkspacePath, WorkspaceError> {
        let failed = || WorkspaceError::io("make the folder of a run");
        let runs = self.inner.folder.enter("runs".as_ref()).map_err(failed())?;
        self.inner.used.touch().map_err(failed())?;
        loop {
            let name = format!("run_{}", Uuid::now_v7().simple());
            match mkdirat(&runs, &name, Mode::RWXU) {
                // Somebody guessed it.
                Err(Errno::EXIST) => continue,
                made => made.map_err(io::Error::from).map_err(failed())?,
            }
            let folder = runs.enter(name.as_ref()).map_err(failed())?;
            give(&folder, 0o700, self.inner.owner).map_err(failed())?;
            let path = WorkspacePath::parse(&format!("runs/{name}"));
            return path.map_err(|error| failed()(io::Error::other(error)));
        }
    }
}
