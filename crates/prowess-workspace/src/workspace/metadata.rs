//! What is known about a workspace: `metadata.json`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::all::lock_for_change;
use super::{Workspace, WorkspaceError};
use crate::beneath::{Folder, Stamp};
use crate::collect::read_head;
use crate::path::WorkspacePath;

/// The name of the file.
const NAME: &str = "metadata.json";
/// More than this no workspace has to say.
const MAX_BYTES: u64 = 16 << 20;

/// Where an input came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputRecord {
    /// What was asked for: `artifact://name`.
    pub from: String,
    /// Where it is in the workspace.
    pub to: String,
    /// What that turned out to be: the name of the artifact, or a path.
    pub resolved: String,
    /// Its version, if it has versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// How it came.
    pub mode: InputMode,
    /// When, in RFC 3339; written by [`Workspace::record_input`].
    #[serde(default)]
    pub at: String,
}

/// How an input comes into a workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputMode {
    /// As a copy.
    #[default]
    Copy,
    /// As a link.
    Link,
}

/// All that is known.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Metadata {
    pub(super) skills: BTreeMap<String, SkillRecord>,
    pub(super) inputs: Vec<InputRecord>,
}

/// A skill that is staged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SkillRecord {
    /// The tree digest of what was staged.
    pub(super) digest: String,
    /// How the source looked.
    pub(super) source_stamp: Option<String>,
    /// How the copy looked.
    pub(super) copy_stamp: String,
    /// The names `out`, `work`, `inputs` and `.venv`, as far as the skill has them itself.
    pub(super) own: Vec<String>,
    /// When, in RFC 3339.
    pub(super) at: String,
}

impl Workspace {
    /// Remembers where an input came from.
    pub fn record_input(&self, mut record: InputRecord) -> Result<(), WorkspaceError> {
        record.at = now();
        let most = usize::try_from(self.inner.limits.max_input_records).unwrap_or(usize::MAX);
        self.change_metadata(|metadata| {
            metadata.inputs.retain(|old| (&old.to, &old.from) != (&record.to, &record.from));
            metadata.inputs.push(record);
            let excess = metadata.inputs.len().saturating_sub(most);
            metadata.inputs.drain(..excess);
        })
    }

    /// The newest record of an input at `to` that turned out to be `resolved`.
    pub fn recorded_input(
        &self,
        to: &WorkspacePath,
        resolved: &str,
    ) -> Result<Option<InputRecord>, WorkspaceError> {
        let inputs = self.metadata()?.inputs;
        let is_meant = |it: &InputRecord| it.to == to.as_str() && it.resolved == resolved;
        Ok(inputs.into_iter().rev().find(is_meant))
    }

    /// Makes the file, if there is none.
    pub(super) fn begin_metadata(&self) -> Result<(), WorkspaceError> {
        match self.inner.folder.open_entry(NAME.as_ref()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.change_metadata(|_| {}),
            _ => Ok(()),
        }
    }

    /// What is known. What cannot be understood counts as nothing.
    pub(super) fn metadata(&self) -> Result<Metadata, WorkspaceError> {
        let bytes = match read(&self.inner.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Metadata::default()),
            bytes => bytes.map_err(WorkspaceError::io(format!("read {NAME}")))?,
        };
        Ok(serde_json::from_slice(&bytes).unwrap_or_else(|error| {
            tracing::warn!(%error, workspace = self.id().as_str(), "metadata.json is damaged");
            Metadata::default()
        }))
    }

    pub(super) fn change_metadata(
        &self,
        change: impl FnOnce(&mut Metadata),
    ) -> Result<(), WorkspaceError> {
        let _held = lock_for_change(&self.inner.change_lock)?;
        let mut metadata = self.metadata()?;
        change(&mut metadata);
        self.write_metadata(&metadata)
    }

    /// Replaces what is known; whoever does holds the lock.
    pub(super) fn write_metadata(&self, metadata: &Metadata) -> Result<(), WorkspaceError> {
        serde_json::to_vec_pretty(metadata)
            .map_err(io::Error::from)
            .and_then(|bytes| write(&self.inner.folder, &bytes))
            .map_err(WorkspaceError::io(format!("write {NAME}")))
    }
}

fn read(folder: &Folder) -> io::Result<Vec<u8>> {
    let file = folder.open_entry(NAME.as_ref())?;
    let stamp = Stamp::of(&file)?;
    // Whatever else it is, it is not ours: as if it were empty.
    if stamp.is_file() { read_head(file, &stamp, MAX_BYTES) } else { Ok(Vec::new()) }
}

fn write(folder: &Folder, bytes: &[u8]) -> io::Result<()> {
    let temporary = format!(".metadata-{}", Uuid::now_v7().simple());
    let file = create(folder, &temporary, 0o600)?;
    let written = File::from(file)
        .write_all(bytes)
        .and_then(|()| Ok(renameat(folder, &temporary, folder, NAME)?));
    if written.is_err() {
        let _ = unlinkat(folder, &temporary, AtFlags::empty());
    }
    written
}

/// Makes a new file to be written.
pub(crate) fn create(folder: &Folder, name: &str, mode: u32) -> io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(folder, name, flags, Mode::from_raw_mode(mode))?)
}

/// The time, as it is written down.
pub(super) fn now() -> String {
    jiff::Timestamp::now().to_string()
}
