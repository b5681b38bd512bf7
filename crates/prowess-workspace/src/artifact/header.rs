//! What a version is: a line of JSON in front of its bytes.

use std::io::{self, Read};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Artifact, ArtifactError};
use crate::key::hex;

/// The most bytes of the line that says what a version is.
pub(super) const MAX_HEADER_BYTES: u64 = 8 << 10;
/// The most bytes of one artifact, if nobody says otherwise.
pub(super) const DEFAULT_MAX_BYTES: u64 = 64 << 20;

/// What a version is.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) name: String,
    pub(super) mime_type: String,
    pub(super) size_bytes: u64,
    pub(super) sha256: String,
    /// Which save wrote it, where somebody has to know that afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) save: Option<String>,
}

impl Header {
    /// What these bytes are.
    pub(super) fn of(name: &str, mime_type: &str, bytes: &[u8]) -> Self {
        Self {
            name: name.to_owned(),
            // Nobody needs more of it, and the line has to stay one that can be read.
            mime_type: mime_type.chars().take(256).collect(),
            size_bytes: bytes.len() as u64,
            sha256: hex(&Sha256::digest(bytes)),
            save: None,
        }
    }

    /// What the bytes are that can be read.
    pub(super) fn read_from(
        name: &str,
        mime_type: &str,
        bytes: &mut impl Read,
    ) -> io::Result<Self> {
        let (mut sha256, mut size_bytes) = (Sha256::new(), 0);
        let mut piece = vec![0; 64 << 10];
        loop {
            match bytes.read(&mut piece)? {
                0 => break,
                read => {
                    sha256.update(&piece[..read]);
                    size_bytes += read as u64;
                }
            }
        }
        let sha256 = hex(&sha256.finalize());
        Ok(Self { size_bytes, sha256, ..Self::of(name, mime_type, &[]) })
    }

    /// The line, with its end.
    pub(super) fn line(&self) -> io::Result<Vec<u8>> {
        let mut line = serde_json::to_vec(self).map_err(io::Error::from)?;
        line.push(b'\n');
        Ok(line)
    }

    /// What a line says; `None` if that cannot be understood.
    pub(super) fn read(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }

    /// The version, if this is its name and these are its bytes.
    pub(super) fn artifact(self, name: &str, version: u64, bytes: &[u8]) -> Option<Artifact> {
        let is_whole = self.name == name
            && self.size_bytes == bytes.len() as u64
            && self.sha256 == hex(&Sha256::digest(bytes));
        let (name, mime_type) = (self.name, self.mime_type);
        is_whole.then(|| Artifact { name, version, mime_type, bytes: bytes.into() })
    }
}

/// Whether an artifact may have so many bytes.
pub(super) fn check_size(name: &str, bytes: u64, most: u64) -> Result<(), ArtifactError> {
    if bytes <= most {
        return Ok(());
    }
    let limit = "max_artifact_bytes";
    Err(ArtifactError::Limit { name: name.to_owned(), bytes, limit, most })
}
