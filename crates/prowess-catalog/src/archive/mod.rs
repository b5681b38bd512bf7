//! Unpacks archives that anybody may have made, and packs skills into archives.
//!
//! An archive is taken as a whole or not at all. It is refused if an entry would be written
//! elsewhere, is no file or folder, has the name of another one, or if two readers could see
//! different contents in it. Memory does not grow with the archive, only with the number of names.

mod admit;
mod error;
mod pack;
mod skills;
mod tarred;
mod window;
mod write;
mod zip_end;
mod zipped;

pub use error::ArchiveError;
pub use pack::pack;
pub use skills::{ArchivedSkill, ArchivedSkills, read_archive};
#[cfg(feature = "remote")]
pub(crate) use {admit::Admission, write::Writer};

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use prowess_format::Digest;
use serde::{Deserialize, Serialize};

use crate::beneath::ResourcePath;
use crate::remote_limits::RemoteLimits;

/// What a file is that skills come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ArchiveKind {
    /// A zip archive.
    Zip,
    /// A tar archive.
    Tar,
    /// A tar archive in gzip.
    TarGz,
    /// A `SKILL.md`.
    SkillFile,
}

impl ArchiveKind {
    /// So many bytes are enough for [`ArchiveKind::of`].
    pub const HEAD: usize = 512;

    /// What a file is, by the end of its name, else by its first bytes, else by its name.
    ///
    /// ```
    /// use prowess_catalog::ArchiveKind;
    ///
    /// assert_eq!(ArchiveKind::of("skills.TGZ", b""), Some(ArchiveKind::TarGz));
    /// assert_eq!(ArchiveKind::of("download", b"PK\x03\x04"), Some(ArchiveKind::Zip));
    /// assert_eq!(ArchiveKind::of("page.html", b"<html>"), None);
    /// ```
    pub fn of(name: &str, head: &[u8]) -> Option<Self> {
        Self::of_name(name)
            .or_else(|| Self::of_head(head))
            .or_else(|| name.eq_ignore_ascii_case("SKILL.md").then_some(Self::SkillFile))
    }

    fn of_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let suffixes = [
            (".zip", Self::Zip),
            (".tar.gz", Self::TarGz),
            (".tgz", Self::TarGz),
            (".tar", Self::Tar),
        ];
        suffixes.into_iter().find(|(suffix, _)| name.ends_with(suffix)).map(|(_, kind)| kind)
    }

    fn of_head(head: &[u8]) -> Option<Self> {
        match head {
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Some(Self::Zip),
            [0x1f, 0x8b, ..] => Some(Self::TarGz),
            _ if head.get(257..262) == Some(b"ustar") => Some(Self::Tar),
            _ => None,
        }
    }

    /// `zip`, `tar`, `tar-gz` or `skill-file`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Zip => "zip",
            Self::Tar => "tar",
            Self::TarGz => "tar-gz",
            Self::SkillFile => "skill-file",
        }
    }
}

/// Whether a file may be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executable {
    /// It may.
    Yes,
    /// It may not.
    No,
}

impl Executable {
    /// What a mode says; all its other bits are dropped.
    pub(crate) fn of_mode(mode: u32) -> Self {
        if mode & 0o111 == 0 { Self::No } else { Self::Yes }
    }
}

/// A file that was unpacked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnpackedFile {
    /// Where, below the folder.
    pub path: ResourcePath,
    /// What it holds.
    pub digest: Digest,
    /// Whether it may be run.
    pub executable: Executable,
}

/// What came out of an archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unpacked {
    /// The files, in the order of their paths.
    pub files: Vec<UnpackedFile>,
    /// Their bytes.
    pub bytes: u64,
    /// How many files and folders there are.
    pub entries: usize,
}

/// Unpacks a file into an empty folder that nobody else writes to. If it is refused, what is in the
/// folder is of no use. Blocks.
///
/// `progress` is told how many bytes are written.
pub fn unpack(
    archive: &File,
    kind: ArchiveKind,
    folder: &Path,
    limits: &RemoteLimits,
    progress: &mut dyn FnMut(u64),
) -> Result<Unpacked, ArchiveError> {
    unpack_from(window::Window::new(archive), kind, folder, limits, progress)
}

/// [`unpack`], from any reader.
pub fn unpack_from<R: Read + Seek>(
    mut archive: R,
    kind: ArchiveKind,
    folder: &Path,
    limits: &RemoteLimits,
    progress: &mut dyn FnMut(u64),
) -> Result<Unpacked, ArchiveError> {
    let damaged = |cause| ArchiveError::Damaged { cause };
    let bytes = archive.seek(SeekFrom::End(0)).map_err(damaged)?;
    archive.seek(SeekFrom::Start(0)).map_err(damaged)?;
    if bytes > limits.download_bytes {
        return Err(admit::limit("download_bytes", limits.download_bytes));
    }
    let admission = admit::Admission::new(*limits, bytes);
    let mut writer = write::Writer::new(folder, admission, progress);
    match kind {
        ArchiveKind::Zip => zipped::unpack(archive, limits, &mut writer)?,
        ArchiveKind::Tar => tarred::unpack(archive, limits, &mut writer)?,
        ArchiveKind::TarGz => {
            let plain = MultiGzDecoder::new(BufReader::with_capacity(64 << 10, archive));
            tarred::unpack(plain, limits, &mut writer)?;
        }
        ArchiveKind::SkillFile => {
            writer.file("SKILL.md", bytes, Executable::No, &mut archive)?;
        }
    }
    Ok(writer.finish())
}
