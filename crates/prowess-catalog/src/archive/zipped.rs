//! Reads zip archives.

use std::io::{Read, Seek};

use zip::CompressionMethod;
use zip::read::{ArchiveOffset, Config, ZipReadOptions};
use zip::result::ZipError;
use zip::unstable::read::ZipIterable;

use super::Executable;
use super::admit::limit;
use super::error::{ArchiveError, shown};
use super::write::Writer;
use super::zip_end::Directory;
use crate::remote_limits::RemoteLimits;

/// The bits of a mode that say what a file is.
const KIND: u32 = 0o170_000;
const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;

/// Unpacks a zip archive. The central directory is read entry by entry and compared with the
/// headers of the entries; every byte in front of it must belong to one entry, and to one only.
pub(super) fn unpack<R: Read + Seek>(
    mut archive: R,
    limits: &RemoteLimits,
    writer: &mut Writer<'_>,
) -> Result<(), ArchiveError> {
    let directory = Directory::find(&mut archive)?;
    if directory.entries > limits.entries as u64 {
        return Err(limit("entries", limits.entries as u64));
    }
    let config = Config { archive_offset: ArchiveOffset::Known(0) };
    let mut archive =
        ZipIterable::try_new(archive, config).map_err(refused)?.enforce_header_consistency(true);
    if archive.len() as u64 != directory.entries {
        return Err(ArchiveError::disagrees("the archive", "it has two directories"));
    }
    let mut places = Vec::with_capacity(archive.len());
    let (mut first, mut last) = (None, None);
    let entries = archive.files().map_err(refused)?;
    while let Some(entry) = entries.next() {
        let entry = entry.map_err(refused)?;
        let raw = entry.name_raw().to_vec();
        let name = match String::from_utf8(raw) {
            // As Windows writes them.
            Ok(name) => name.replace('\\', "/"),
            Err(error) => {
                let name = shown(&String::from_utf8_lossy(error.as_bytes()));
                return Err(ArchiveError::NotUtf8 { name });
            }
        };
        last = Some(entry.central_header_start());
        first = first.or(last);
        let mode = entry.external_attributes() >> 16;
        let (start, length) = (entry.header_start(), entry.compressed_size());
        let has_descriptor = entry.flags().is_using_data_descriptor();
        let unsupported = |what| ArchiveError::Unsupported { name: shown(&name), what };
        if entry.encrypted() {
            return Err(unsupported("it is encrypted"));
        }
        if !matches!(entry.compression(), CompressionMethod::Stored | CompressionMethod::Deflated) {
            return Err(unsupported("its compression is neither none nor deflate"));
        }
        let size = entry.size();
        let kind = kind_of(&name, mode, size)?;
        let mut content =
            entry.with_reader(entries.reader_mut(), ZipReadOptions::new()).map_err(refused)?;
        let data = content.data_start().unwrap_or(start);
        places.push(Place { start, end: data.saturating_add(length), has_descriptor });
        match kind {
            Kind::Folder => writer.folder(&name)?,
            Kind::File => {
                let executable = Executable::of_mode(mode);
                writer.file(&name, size, executable, &mut content)?;
            }
        }
    }
    if first.is_some_and(|first| first != directory.start) {
        return Err(ArchiveError::disagrees("the archive", "it has two directories"));
    }
    directory.ends_with(entries.reader_mut(), last)?;
    fills(&mut places, directory.start)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    File,
    Folder,
}

/// What an entry is, if its name and its mode agree.
fn kind_of(name: &str, mode: u32, size: u64) -> Result<Kind, ArchiveError> {
    let special = |what| Err(ArchiveError::Special { name: shown(name), what });
    let is_folder = name.ends_with('/');
    match mode & KIND {
        0 | FILE if !is_folder => Ok(Kind::File),
        0 | FILE | FOLDER if is_folder && size == 0 => Ok(Kind::Folder),
        0 | FILE | FOLDER => Err(ArchiveError::disagrees(name, "is it a file or a folder?")),
        0o120_000 => special("a link"),
        _ => special("a special file"),
    }
}

/// Where an entry is: from its header to the end of its data.
struct Place {
    start: u64,
    end: u64,
    has_descriptor: bool,
}

/// Whether the entries fill everything up to the directory, and none overlaps with another. What
/// the directory does not mention other readers would see.
fn fills(places: &mut [Place], directory: u64) -> Result<(), ArchiveError> {
    places.sort_unstable_by_key(|place| place.start);
    let ends = places.iter().map(|place| (place.end, place.has_descriptor));
    let starts = places.iter().map(|place| place.start).chain([directory]);
    for ((end, has_descriptor), next) in [(0, false)].into_iter().chain(ends).zip(starts) {
        let fits = match next.checked_sub(end) {
            Some(0) => !has_descriptor,
            // Sizes and checksum behind the data, of 32 or 64 bits, with a signature or without.
            Some(12 | 16 | 20 | 24) => has_descriptor,
            _ => false,
        };
        if !fits {
            let what = match next < end {
                true => format!("entries overlap at byte {next}"),
                false => format!("bytes {end} to {next} belong to no entry"),
            };
            return Err(ArchiveError::disagrees("the archive", what));
        }
    }
    Ok(())
}

fn refused(error: ZipError) -> ArchiveError {
    let text = error.to_string();
    match error {
        ZipError::Io(cause) => ArchiveError::Damaged { cause },
        _ if text.contains("header inconsistency") => ArchiveError::disagrees("the archive", text),
        _ => ArchiveError::Damaged { cause: std::io::Error::other(text) },
    }
}
