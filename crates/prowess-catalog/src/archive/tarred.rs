//! Reads tar archives.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use tar::EntryType;

use super::Executable;
use super::admit::Admission;
use super::error::{ArchiveError, shown};
use super::write::Writer;
use crate::remote_limits::RemoteLimits;

/// What an entry takes besides its content, at most: its header, those of its long name, padding.
const OVERHEAD: u64 = 4 * BLOCK;

const BLOCK: u64 = 512;

/// Behind the last entry there are at least so many zeros.
const END: u64 = 2 * BLOCK;

/// Unpacks a tar archive. `archive` is its content without compression.
///
/// Extended headers are read here and not by the `tar` crate, which would keep them in memory
/// however long they are.
pub(super) fn unpack<R: Read>(
    archive: R,
    limits: &RemoteLimits,
    writer: &mut Writer<'_>,
) -> Result<(), ArchiveError> {
    let most = limits.total_bytes.saturating_add(limits.entries as u64 * OVERHEAD);
    let state = Rc::new(Cell::new(0));
    let stream = Counted { inner: archive, most, seen: Rc::clone(&state) };
    let mut archive = tar::Archive::new(stream);
    let end = entries(&mut archive, &state, writer);
    // A stream that is too long looks like one that is damaged.
    if state.get() > most {
        return Err(super::admit::limit("total_bytes", limits.total_bytes));
    }
    writer.admission.ratio(state.get())?;
    finish(archive.into_inner(), end?, &state, &writer.admission)
}

/// Unpacks the entries, and says where the last one ends.
fn entries<R: Read>(
    archive: &mut tar::Archive<Counted<R>>,
    state: &Cell<u64>,
    writer: &mut Writer<'_>,
) -> Result<u64, ArchiveError> {
    let damaged = |cause| ArchiveError::Damaged { cause };
    // What was said of the entry that follows: that it follows, and what it is called.
    let mut said: Option<Option<Vec<u8>>> = None;
    let mut end: u64 = 0;
    for entry in archive.entries().map_err(damaged)?.raw(true) {
        let mut entry = entry.map_err(damaged)?;
        writer.admission.ratio(state.get())?;
        let header = entry.header();
        let size = header.entry_size().map_err(damaged)?;
        end = entry.raw_file_position().saturating_add(size.div_ceil(BLOCK).saturating_mul(BLOCK));
        let (kind, mode) = (header.entry_type(), header.mode().unwrap_or(0));
        let header_name = header.path_bytes().into_owned();
        if matches!(kind, EntryType::GNULongName | EntryType::XHeader | EntryType::XGlobalHeader) {
            writer.admission.extension(size)?;
            if said.is_some() {
                let name = String::from_utf8_lossy(&header_name);
                return Err(ArchiveError::disagrees(&name, "it extends an extended header"));
            }
            let mut text = Vec::new();
            entry.read_to_end(&mut text).map_err(damaged)?;
            match kind {
                EntryType::GNULongName => {
                    // A name in C. Another zero is part of it, and makes it one that is refused.
                    text.pop_if(|last| *last == 0);
                    said = Some(Some(text));
                }
                EntryType::XHeader => said = Some(pax(&text, Scope::Next)?),
                _ => {
                    pax(&text, Scope::All)?;
                }
            }
            continue;
        }
        let name =
            String::from_utf8(said.take().flatten().unwrap_or(header_name)).map_err(|error| {
                ArchiveError::NotUtf8 { name: shown(&String::from_utf8_lossy(error.as_bytes())) }
            })?;
        match kind {
            EntryType::Directory => {
                if size > 0 {
                    return Err(ArchiveError::disagrees(&name, "it is a folder with content"));
                }
                writer.folder(&name)?;
            }
            // Old archives have no other mark for a folder.
            EntryType::Regular if name.ends_with('/') => {
                if size > 0 {
                    return Err(ArchiveError::disagrees(&name, "is it a file or a folder?"));
                }
                writer.folder(&name)?;
            }
            EntryType::Regular => {
                writer.file(&name, size, Executable::of_mode(mode), &mut entry)?;
            }
            _ => return Err(ArchiveError::Special { name: shown(&name), what: what(kind) }),
        }
    }
    match said {
        Some(_) => {
            Err(ArchiveError::disagrees("the archive", "an extended header extends nothing"))
        }
        None => Ok(end),
    }
}

fn what(kind: EntryType) -> &'static str {
    match kind {
        EntryType::Symlink => "a link",
        EntryType::Link => "a hard link",
        EntryType::Char | EntryType::Block => "a device",
        EntryType::Fifo => "a named pipe",
        EntryType::GNUSparse => "a sparse file",
        EntryType::GNULongLink => "a link with a long name",
        _ => "of a kind that is not known",
    }
}

/// For which entries an extended header is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Next,
    All,
}

/// The name that an extended header gives, if it gives one. What would change the content or the
/// size of a file is refused, since not every reader heeds it.
fn pax(mut text: &[u8], scope: Scope) -> Result<Option<Vec<u8>>, ArchiveError> {
    let malformed = || ArchiveError::damaged("an extended header is malformed");
    let mut name = None;
    while !text.is_empty() {
        // `LENGTH KEY=VALUE\n`, where the length counts everything.
        let blank = text.iter().position(|byte| *byte == b' ').ok_or_else(malformed)?;
        let digits = &text[..blank];
        let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        let length = std::str::from_utf8(digits).ok().filter(|_| is_number);
        let length: usize = length.and_then(|text| text.parse().ok()).ok_or_else(malformed)?;
        let record = text.get(blank + 1..length).ok_or_else(malformed)?;
        text = &text[length..];
        let record = record.strip_suffix(b"\n").ok_or_else(malformed)?;
        let equals = record.iter().position(|byte| *byte == b'=').ok_or_else(malformed)?;
        let (key, value) = (&record[..equals], &record[equals + 1..]);
        let shown_key = String::from_utf8_lossy(key);
        match key {
            b"path" if scope == Scope::Next && name.is_none() => name = Some(value.to_vec()),
            b"path" | b"size" | b"linkpath" => {
                let what = "an extended header changes what it is, its size or its name";
                return Err(ArchiveError::disagrees(&shown_key, what));
            }
            _ if key.starts_with(b"GNU.sparse") => {
                return Err(ArchiveError::Special {
                    name: shown(&shown_key),
                    what: "a sparse file",
                });
            }
            _ => {}
        }
    }
    Ok(name)
}

/// Behind the end there may be zeros, and nothing else.
fn finish<R: Read>(
    mut rest: Counted<R>,
    end: u64,
    state: &Cell<u64>,
    admission: &Admission,
) -> Result<(), ArchiveError> {
    let mut buffer = [0; 8 << 10];
    loop {
        match rest.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) if buffer[..read].iter().all(|byte| *byte == 0) => {
                admission.ratio(state.get())?;
            }
            Ok(_) => {
                return Err(ArchiveError::disagrees("the archive", "there is more behind its end"));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(ArchiveError::Damaged { cause }),
        }
    }
    match state.get().saturating_sub(end) >= END {
        true => Ok(()),
        false => Err(ArchiveError::damaged("it has no end")),
    }
}

/// A stream that is counted, and ends with an error where it is too long.
struct Counted<R> {
    inner: R,
    most: u64,
    seen: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        let bytes = self.seen.get() + read as u64;
        self.seen.set(bytes);
        match bytes > self.most {
            true => Err(io::Error::new(io::ErrorKind::FileTooLarge, "the stream is too long")),
            false => Ok(read),
        }
    }
}
