//! Which entries of an archive are admitted. Plain decisions: nothing is read or written here.

use std::collections::HashMap;

use unicode_normalization::UnicodeNormalization;

use super::error::{ArchiveError, shown};
use crate::beneath::{InvalidResourcePath, ResourcePath};
use crate::remote_limits::RemoteLimits;

/// What was admitted so far.
#[derive(Debug)]
pub(crate) struct Admission {
    limits: RemoteLimits,
    /// How long the archive is.
    archive_bytes: u64,
    bytes: u64,
    extensions: usize,
    /// Every file and folder under a name that stands for all that is confused with it.
    names: HashMap<String, Claim>,
}

#[derive(Debug)]
struct Claim {
    path: String,
    is_file: bool,
}

impl Admission {
    pub(crate) fn new(limits: RemoteLimits, archive_bytes: u64) -> Self {
        Self { limits, archive_bytes, bytes: 0, extensions: 0, names: HashMap::new() }
    }

    /// How many files and folders there are.
    pub(crate) fn entries(&self) -> usize {
        self.names.len()
    }

    /// How many bytes the files have.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Admits a folder; `None` is the archive itself.
    pub(crate) fn folder(&mut self, name: &str) -> Result<Option<ResourcePath>, ArchiveError> {
        match ResourcePath::parse(name) {
            // `./` is how many archives begin.
            Err(InvalidResourcePath::Empty) if name.contains('.') => Ok(None),
            Err(cause) => Err(ArchiveError::Path { name: shown(name), cause }),
            Ok(path) => {
                self.claim_folders(path.as_str(), path.as_str().len())?;
                Ok(Some(path))
            }
        }
    }

    /// Admits a file of so many bytes.
    pub(crate) fn file(&mut self, name: &str, bytes: u64) -> Result<ResourcePath, ArchiveError> {
        let path = ResourcePath::parse(name)
            .map_err(|cause| ArchiveError::Path { name: shown(name), cause })?;
        let text = path.as_str();
        if let Some(end) = text.rfind('/') {
            self.claim_folders(text, end)?;
        }
        if let Some(other) = self.names.get(&confused(text)) {
            let (name, other) = (shown(text), shown(&other.path));
            return Err(ArchiveError::Duplicate { name, other });
        }
        self.claim(text, true)?;
        if bytes > self.limits.entry_bytes {
            return Err(limit("entry_bytes", self.limits.entry_bytes));
        }
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.limits.total_bytes {
            return Err(limit("total_bytes", self.limits.total_bytes));
        }
        self.ratio(self.bytes)?;
        Ok(path)
    }

    /// Admits an extended header of so many bytes.
    pub(crate) fn extension(&mut self, bytes: u64) -> Result<(), ArchiveError> {
        self.extensions += 1;
        if self.extensions > self.limits.entries {
            return Err(limit("entries", self.limits.entries as u64));
        }
        match bytes > self.limits.extension_bytes {
            true => Err(limit("extension_bytes", self.limits.extension_bytes)),
            false => Ok(()),
        }
    }

    /// Whether an archive may turn into so many bytes.
    pub(crate) fn ratio(&self, bytes: u64) -> Result<(), ArchiveError> {
        let most = self.archive_bytes.saturating_mul(self.limits.ratio);
        match bytes > self.limits.ratio_from && bytes > most {
            true => Err(limit("ratio", self.limits.ratio)),
            false => Ok(()),
        }
    }

    /// The folders on the way to `text[..end]`, that itself included.
    fn claim_folders(&mut self, text: &str, end: usize) -> Result<(), ArchiveError> {
        let inner = text[..end].match_indices('/').map(|(at, _)| at);
        for end in inner.chain([end]) {
            let folder = &text[..end];
            match self.names.get(&confused(folder)) {
                None => self.claim(folder, false)?,
                Some(claim) if !claim.is_file && claim.path == folder => {}
                Some(claim) => {
                    let (name, other) = (shown(text), shown(&claim.path));
                    return Err(ArchiveError::Duplicate { name, other });
                }
            }
        }
        Ok(())
    }

    fn claim(&mut self, path: &str, is_file: bool) -> Result<(), ArchiveError> {
        if self.names.len() >= self.limits.entries {
            return Err(limit("entries", self.limits.entries as u64));
        }
        self.names.insert(confused(path), Claim { path: path.to_owned(), is_file });
        Ok(())
    }
}

pub(super) fn limit(limit: &'static str, most: u64) -> ArchiveError {
    ArchiveError::Limit { limit, most }
}

/// One name for all that file systems and readers confuse: without case, in one Unicode form.
fn confused(path: &str) -> String {
    match path.is_ascii() {
        true => path.to_ascii_lowercase(),
        false => path.nfkc().flat_map(char::to_lowercase).nfkc().collect(),
    }
}
