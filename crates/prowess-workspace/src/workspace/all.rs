//! All workspaces below one folder.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::FlockOperation;

use super::garbage::{self, Candidate, GarbageReport};
use super::{Inner, Workspace, WorkspaceError, WorkspaceId, WorkspaceLimits};
use crate::beneath::{Folder, Stamp, give};
use crate::locks::{Held, lock};
use crate::remove::{discard, remove, sweep, sweep_all};

/// Who owns what commands may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkspaceOwner {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

impl WorkspaceOwner {
    /// `nobody`, as which commands run where this process is root.
    pub const NOBODY: Self = Self { uid: 65534, gid: 65534 };

    /// `nobody` where this process is root; otherwise no other than this process.
    pub fn by_privilege() -> Option<Self> {
        rustix::process::geteuid().is_root().then_some(Self::NOBODY)
    }
}

/// All workspaces below one folder. Any number of processes may use the same folder.
///
/// ```
/// use prowess_workspace::{CollectLimits, WorkspaceId, WorkspacePath, Workspaces};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let workspaces = Workspaces::new(folder.path());
/// let workspace = workspaces.open(&WorkspaceId::new("shop", "ann", "monday"))?;
/// workspace.put(&WorkspacePath::parse("out/a.txt")?, b"hello")?;
/// let collected = workspace.collect(&["out/*".into()], None, &CollectLimits::default())?;
/// assert_eq!(collected.files[0].text(), Some("hello"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Workspaces {
    root: PathBuf,
    owner: Option<WorkspaceOwner>,
    limits: WorkspaceLimits,
}

impl Workspaces {
    /// Workspaces below a folder, which is made when it is needed.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            owner: WorkspaceOwner::by_privilege(),
            limits: WorkspaceLimits::default(),
        }
    }

    /// How much they may hold.
    pub fn with_limits(mut self, limits: WorkspaceLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Who owns what commands may write, if that is not this process.
    pub fn with_owner(mut self, owner: Option<WorkspaceOwner>) -> Self {
        self.owner = owner;
        self
    }

    /// The workspace of a session: made, or used again.
    pub fn open(&self, id: &WorkspaceId) -> Result<Workspace, WorkspaceError> {
        let _span = tracing::info_span!("workspace.create", workspace = id.as_str()).entered();
        let place = self.place().map_err(self.failed("make the folder of workspaces"))?;
        let used = lock(&place.lock_of(id), FlockOperation::LockShared)
            .and_then(|used| used.touch().map(|()| used))
            .map_err(WorkspaceError::io(format!("lock the workspace {id}")))?;
        let folder = self
            .make(&place, id)
            .map_err(WorkspaceError::io(format!("make the workspace {id}")))?;
        let workspace = Workspace {
            inner: Arc::new(Inner {
                id: id.clone(),
                path: place.root.join(id.as_str()),
                folder,
                bin: place.bin,
                change_lock: place.locks.join(format!("{id}.change")),
                used,
                owner: self.owner,
                limits: self.limits.clone(),
            }),
        };
        workspace.begin_metadata()?;
        Ok(workspace)
    }

    /// Removes workspaces that were not used for long, and those used longest ago while all are
    /// too large together. Never one that somebody has open.
    pub fn collect_garbage(&self) -> Result<GarbageReport, WorkspaceError> {
        let _span = tracing::info_span!("workspace.cleanup").entered();
        let failed = || self.failed("look for garbage");
        let place = self.place().map_err(failed())?;
        // What a crash left is removed first.
        sweep_all(&place.bin).map_err(failed())?;
        let folder = Folder::open(&place.root).map_err(failed())?;
        let mut all = Vec::new();
        for entry in folder.entries().map_err(failed())? {
            let entry = entry.map_err(failed())?;
            let Some(id) = entry.name.to_str().and_then(WorkspaceId::of_folder) else { continue };
            // What cannot be looked at has gone meanwhile.
            let Ok(content) = folder.enter(&entry.name) else { continue };
            let used_at = fs::metadata(place.lock_of(&id)).and_then(|lock| lock.modified());
            let used_at = used_at.unwrap_or(SystemTime::UNIX_EPOCH);
            all.push(Candidate { id, used_at, size: garbage::measure(content) });
        }
        let mut report = GarbageReport::default();
        for candidate in garbage::in_order(all, SystemTime::now(), &self.limits) {
            let bytes = candidate.size.bytes;
            let is_garbage = candidate.is_garbage(report.removed_bytes());
            let outcome =
                if is_garbage { self.remove_from(&place, &candidate.id) } else { Ok(false) };
            match outcome {
                Ok(true) => report.note_removed(candidate.id, bytes),
                // It is used, or has been opened again meanwhile.
                Ok(false) | Err(WorkspaceError::InUse { .. }) => report.note_kept(bytes),
                Err(error) => {
                    report.note_kept(bytes);
                    report.failed.push((candidate.id, error));
                }
            }
        }
        Ok(report)
    }

    /// Removes a workspace that nobody has open, and says whether there was one.
    pub fn remove(&self, id: &WorkspaceId) -> Result<bool, WorkspaceError> {
        let _span = tracing::info_span!("workspace.cleanup", workspace = id.as_str()).entered();
        let place = self.place().map_err(self.failed("find the folder of workspaces"))?;
        self.remove_from(&place, id)
    }

    fn remove_from(&self, place: &Place, id: &WorkspaceId) -> Result<bool, WorkspaceError> {
        let failed = || WorkspaceError::io(format!("remove the workspace {id}"));
        let path = place.lock_of(id);
        let used = match lock(&path, FlockOperation::NonBlockingLockExclusive) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(WorkspaceError::InUse { id: id.to_string() });
            }
            used => used.map_err(failed())?,
        };
        let root = Folder::open(&place.root).map_err(failed())?;
        let heap = discard(&root, id.as_str().as_ref(), &place.bin).map_err(failed())?;
        let own = format!("{id}.");
        let others = fs::read_dir(&place.locks).map_err(failed())?.flatten();
        let others = others.filter(|it| it.file_name().to_string_lossy().starts_with(&own));
        for path in others.map(|it| it.path()).chain([path]) {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(failed()(error));
                }
                _ => {}
            }
        }
        // From here on it can be made anew.
        drop(used);
        let Some(heap) = heap else { return Ok(false) };
        sweep(&place.bin, heap.as_ref()).map_err(failed())?;
        Ok(true)
    }

    /// Makes the folders that all workspaces need.
    fn place(&self) -> io::Result<Place> {
        let mode = if self.owner.is_some() { 0o711 } else { 0o700 };
        DirBuilder::new().recursive(true).mode(mode).create(&self.root)?;
        let root = fs::canonicalize(&self.root)?;
        let folder = Folder::open(&root)?;
        folder.make(".locks".as_ref(), 0o700, None)?;
        let bin = folder.make(".trash".as_ref(), 0o700, None)?;
        Ok(Place { locks: root.join(".locks"), root, bin })
    }

    /// Makes what is missing of a workspace.
    fn make(&self, place: &Place, id: &WorkspaceId) -> io::Result<Folder> {
        let mode = if self.owner.is_some() { 0o711 } else { 0o700 };
        let root = Folder::open(&place.root)?;
        let folder = root.make(id.as_str().as_ref(), mode, None)?;
        let ours = if self.owner.is_some() { 0o755 } else { 0o700 };
        self.make_part(&folder, "skills", ours, None, place)?;
        let work = self.make_part(&folder, "work", 0o700, self.owner, place)?;
        self.make_part(&work, "inputs", 0o700, self.owner, place)?;
        self.make_part(&folder, "out", 0o700, self.owner, place)?;
        self.make_part(&folder, "runs", 0o700, self.owner, place)?;
        Ok(folder)
    }

    /// Makes a folder that has to be there, as it has to be.
    fn make_part(
        &self,
        folder: &Folder,
        name: &str,
        mode: u32,
        owner: Option<WorkspaceOwner>,
        place: &Place,
    ) -> io::Result<Folder> {
        let is_in_the_way = |stamp: Stamp| !stamp.is_folder();
        if folder.look(name.as_ref()).is_ok_and(is_in_the_way) {
            tracing::warn!(name, "something else than a folder was in the workspace; removed");
            remove(folder, name.as_ref(), &place.bin)?;
        } else if self.owner.is_none() {
            // A command may have locked us out.
            let _ = folder.unlock_entry(name.as_ref());
        }
        let part = folder.make(name.as_ref(), mode, owner)?;
        let stamp = Stamp::of(&part)?;
        let is_right = stamp.mode & 0o7777 == mode
            && owner.is_none_or(|owner| (stamp.uid, stamp.gid) == (owner.uid, owner.gid));
        if !is_right {
            give(&part, mode, owner)?;
        }
        Ok(part)
    }

    fn failed(&self, doing: &str) -> impl FnOnce(io::Error) -> WorkspaceError + use<> {
        WorkspaceError::io(format!("{doing} at {}", self.root.display()))
    }
}

/// The folders that all workspaces share.
struct Place {
    root: PathBuf,
    locks: PathBuf,
    bin: Folder,
}

impl Place {
    fn lock_of(&self, id: &WorkspaceId) -> PathBuf {
        self.locks.join(id.as_str())
    }
}

/// Holds the lock under which a workspace is changed.
pub(super) fn lock_for_change(path: &Path) -> Result<Held, WorkspaceError> {
    lock(path, FlockOperation::LockExclusive)
        .map_err(WorkspaceError::io("lock the workspace for a change"))
}
