//! Packs a skill, so that the same skill is always the same archive.

use std::io::{Cursor, Write};

use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::admit::Admission;
use super::error::{ArchiveError, shown};
use crate::beneath::{InvalidResourcePath, ResourcePath};
use crate::contents::SkillContents;
use crate::remote_limits::RemoteLimits;

/// A zip archive of all files of a skill, below a folder of this name.
///
/// The same files give the same bytes, whenever and wherever that is done: files are in the order
/// of their paths, and have no times. [`super::unpack`] accepts every archive that is made, within
/// the default limits; what it would refuse is not packed.
///
/// ```
/// use prowess_catalog::{ContentFile, ResourcePath, SkillContents, pack};
///
/// let path = ResourcePath::parse("SKILL.md")?;
/// let text = "---\nname: hello\ndescription: Says hello.\n---\nSay hello.\n";
/// let skill = SkillContents::of(vec![ContentFile::new(path, false, text)]);
/// assert_eq!(pack(&skill, "hello")?, pack(&skill, "hello")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn pack(contents: &SkillContents, folder: &str) -> Result<Vec<u8>, ArchiveError> {
    let refused = |cause| ArchiveError::Path { name: shown(folder), cause };
    let name = ResourcePath::parse(folder).map_err(refused)?;
    if name.as_str() != folder || folder.contains('/') {
        return Err(refused(InvalidResourcePath::Escapes));
    }
    let limits = RemoteLimits::default();
    // How well the archive packs is not known yet.
    let mut admission = Admission::new(limits, u64::MAX);
    let mut files = Vec::with_capacity(contents.files.len());
    for file in &contents.files {
        let path = format!("{folder}/{}", file.path);
        admission.file(&path, file.bytes.len() as u64)?;
        let mode = if file.executable { 0o755 } else { 0o644 };
        files.push((path, mode, file.bytes.as_slice()));
    }
    files.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let packed = write(&files, CompressionMethod::Deflated)?;
    match Admission::new(limits, packed.len() as u64).ratio(admission.bytes()) {
        Ok(()) => Ok(packed),
        // It packs so well that it would be taken for an attack.
        Err(_) => write(&files, CompressionMethod::Stored),
    }
}

fn write(
    files: &[(String, u32, &[u8])],
    method: CompressionMethod,
) -> Result<Vec<u8>, ArchiveError> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, mode, bytes) in files {
        let options = SimpleFileOptions::default()
            .compression_method(method)
            .last_modified_time(DateTime::default())
            .unix_permissions(*mode);
        writer.start_file(path.as_str(), options).map_err(|error| failed(path, error))?;
        writer.write_all(bytes).map_err(|cause| failed(path, ZipError::Io(cause)))?;
    }
    let packed = writer.finish().map_err(|error| failed("the archive", error))?;
    Ok(packed.into_inner())
}

fn failed(path: &str, error: ZipError) -> ArchiveError {
    let cause = match error {
        ZipError::Io(cause) => cause,
        other => std::io::Error::other(other.to_string()),
    };
    ArchiveError::Io { path: path.into(), cause }
}
