//! Writes what was admitted.

use std::collections::HashSet;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use prowess_format::Digest;
use sha2::{Digest as _, Sha256};

use super::admit::Admission;
use super::error::ArchiveError;
use super::{Executable, Unpacked, UnpackedFile};

const BUFFER: usize = 64 << 10;

/// Writes files below a folder that nobody else knows. It makes no links, so that none can lead
/// out of it.
pub(crate) struct Writer<'a> {
    root: PathBuf,
    pub(super) admission: Admission,
    folders: HashSet<PathBuf>,
    files: Vec<UnpackedFile>,
    buffer: Box<[u8]>,
    /// Told how many bytes are written.
    progress: &'a mut dyn FnMut(u64),
    written: u64,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(root: &Path, admission: Admission, progress: &'a mut dyn FnMut(u64)) -> Self {
        Self {
            root: root.to_owned(),
            admission,
            folders: HashSet::new(),
            files: Vec::new(),
            buffer: vec![0; BUFFER].into(),
            progress,
            written: 0,
        }
    }

    pub(crate) fn folder(&mut self, name: &str) -> Result<(), ArchiveError> {
        match self.admission.folder(name)? {
            Some(path) => self.make_folders(&self.root.join(path.as_str())),
            None => Ok(()),
        }
    }

    /// Writes a file that declares so many bytes, and must have as many.
    pub(crate) fn file(
        &mut self,
        name: &str,
        bytes: u64,
        executable: Executable,
        content: &mut dyn Read,
    ) -> Result<Digest, ArchiveError> {
        let path = self.admission.file(name, bytes)?;
        let target = self.root.join(path.as_str());
        if let Some(folder) = target.parent() {
            self.make_folders(folder)?;
        }
        let failed = |cause| ArchiveError::Io { path: target.clone(), cause };
        // Nobody is to change what was verified; no other bit of a mode is taken over.
        let mode = if executable == Executable::Yes { 0o555 } else { 0o444 };
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&target)
            .map_err(failed)?;
        let mut hasher = Sha256::new();
        let mut left = bytes;
        loop {
            let read = match content.read(&mut self.buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(cause) => return Err(ArchiveError::Damaged { cause }),
            };
            let Some(rest) = left.checked_sub(read as u64) else {
                return Err(ArchiveError::disagrees(name, "it is longer than it declares"));
            };
            left = rest;
            hasher.update(&self.buffer[..read]);
            file.write_all(&self.buffer[..read]).map_err(failed)?;
            self.written += read as u64;
            (self.progress)(self.written);
        }
        if left > 0 {
            return Err(ArchiveError::disagrees(name, "it is shorter than it declares"));
        }
        let digest = Digest::from_bytes(hasher.finalize().into());
        self.files.push(UnpackedFile { path, digest, executable });
        Ok(digest)
    }

    fn make_folders(&mut self, folder: &Path) -> Result<(), ArchiveError> {
        if folder == self.root || self.folders.contains(folder) {
            return Ok(());
        }
        let made = DirBuilder::new().recursive(true).mode(0o755).create(folder);
        made.map_err(|cause| ArchiveError::Io { path: folder.to_owned(), cause })?;
        self.folders.insert(folder.to_owned());
        Ok(())
    }

    /// What was written, in the order of paths.
    pub(crate) fn finish(self) -> Unpacked {
        let Self { admission, mut files, .. } = self;
        files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Unpacked { files, bytes: admission.bytes(), entries: admission.entries() }
    }
}
