//! Where the directory of a zip archive is, if that can be read in one way only.

use std::io::{Read, Seek, SeekFrom};

use super::error::ArchiveError;

/// The record at the end of an archive, without its comment.
const RECORD: usize = 22;
const RECORD_SIGNATURE: &[u8] = b"PK\x05\x06";
/// The fixed part of an entry of the directory.
const HEADER: u64 = 46;
const HEADER_SIGNATURE: &[u8] = b"PK\x01\x02";
const LONGEST_COMMENT: u64 = 0xffff;

/// The directory, as the record at the end describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Directory {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) entries: u64,
}

impl Directory {
    /// Finds the directory.
    pub(super) fn find<R: Read + Seek>(archive: &mut R) -> Result<Self, ArchiveError> {
        let damaged = |cause| ArchiveError::Damaged { cause };
        let length = archive.seek(SeekFrom::End(0)).map_err(damaged)?;
        let tail_start = length.saturating_sub(RECORD as u64 + LONGEST_COMMENT);
        archive.seek(SeekFrom::Start(tail_start)).map_err(damaged)?;
        let mut tail = Vec::new();
        archive.take(length - tail_start).read_to_end(&mut tail).map_err(damaged)?;
        Self::in_tail(&tail, tail_start)
    }

    /// The directory that the last bytes of an archive describe: by one record, which ends with the
    /// archive, and which stands right behind the directory.
    fn in_tail(tail: &[u8], tail_start: u64) -> Result<Self, ArchiveError> {
        let at = tail.windows(RECORD_SIGNATURE.len()).rposition(|part| part == RECORD_SIGNATURE);
        let record = at.and_then(|at| tail.get(at..at + RECORD));
        let (Some(at), Some(record)) = (at, record) else {
            return Err(ArchiveError::damaged("it has no end, or is no zip archive"));
        };
        let short = |at: usize| u64::from(u16::from_le_bytes([record[at], record[at + 1]]));
        let long = |at: usize| short(at) | short(at + 2) << 16;
        let end = tail_start + at as u64;
        let (disk, first_disk, here, entries) = (short(4), short(6), short(8), short(10));
        let (size, start, comment) = (long(12), long(16), short(20));
        if end + RECORD as u64 + comment != tail_start + tail.len() as u64 {
            return Err(contradiction("its comment is not as long as it declares"));
        }
        if entries == 0xffff || size == 0xffff_ffff || start == 0xffff_ffff {
            let name = "the archive".to_owned();
            return Err(ArchiveError::Unsupported { name, what: "it is in the format zip64" });
        }
        if disk != 0 || first_disk != 0 || here != entries {
            let name = "the archive".to_owned();
            return Err(ArchiveError::Unsupported { name, what: "it is one of several parts" });
        }
        match start + size == end {
            true => Ok(Self { start, end, entries }),
            false => Err(contradiction("its directory is not where it declares")),
        }
    }

    /// Whether the directory ends with the entry that begins here: some readers go by the number of
    /// entries, others by the length of the directory.
    pub(super) fn ends_with<R: Read + Seek>(
        &self,
        archive: &mut R,
        last: Option<u64>,
    ) -> Result<(), ArchiveError> {
        let damaged = |cause| ArchiveError::Damaged { cause };
        let end = match last {
            None => self.start,
            Some(last) => {
                let mut header = [0; HEADER as usize];
                archive.seek(SeekFrom::Start(last)).map_err(damaged)?;
                archive.read_exact(&mut header).map_err(damaged)?;
                if !header.starts_with(HEADER_SIGNATURE) {
                    return Err(contradiction("its directory is not where it declares"));
                }
                let lengths = [28, 30, 32].map(|at| [header[at], header[at + 1]]);
                let lengths = lengths.into_iter().map(|pair| u64::from(u16::from_le_bytes(pair)));
                last + HEADER + lengths.sum::<u64>()
            }
        };
        match end == self.end {
            true => Ok(()),
            false => Err(contradiction("its directory holds more than it declares")),
        }
    }
}

fn contradiction(what: &'static str) -> ArchiveError {
    ArchiveError::disagrees("the archive", what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(here: u16, all: u16, size: u32, start: u32, comment: u16) -> Vec<u8> {
        let mut out = RECORD_SIGNATURE.to_vec();
        for number in [0, 0, here, all] {
            out.extend(number.to_le_bytes());
        }
        out.extend(size.to_le_bytes());
        out.extend(start.to_le_bytes());
        out.extend(comment.to_le_bytes());
        out
    }

    #[test]
    fn a_directory_is_found_by_one_record_that_ends_with_the_archive() {
        let found = |tail: &[u8]| Directory::in_tail(tail, 100).map_err(|error| error.code());
        let directory = Directory { start: 60, end: 100, entries: 2 };
        assert_eq!(found(&record(2, 2, 40, 60, 0)), Ok(directory));
        let with = |record: Vec<u8>, rest: &[u8]| [record.as_slice(), rest].concat();
        assert_eq!(found(&with(record(2, 2, 40, 60, 3), b"abc")), Ok(directory));
        for (tail, code) in [
            (b"".to_vec(), "damaged_archive"),
            (b"PK\x05\x06".to_vec(), "damaged_archive"),
            (with(record(2, 2, 40, 60, 0), b"abc"), "disagreeing_entry"),
            (with(record(2, 2, 40, 60, 4), b"abc"), "disagreeing_entry"),
            // A second record in the comment of the first.
            (with(record(2, 2, 40, 60, 22), &record(0, 0, 0, 0, 0)), "disagreeing_entry"),
            (record(2, 2, 40, 59, 0), "disagreeing_entry"),
            (record(2, 2, 41, 60, 0), "disagreeing_entry"),
            (record(1, 2, 40, 60, 0), "unsupported_entry"),
            (record(0xffff, 0xffff, 40, 60, 0), "unsupported_entry"),
            (record(2, 2, 0xffff_ffff, 60, 0), "unsupported_entry"),
            (record(2, 2, 40, 0xffff_ffff, 0), "unsupported_entry"),
        ] {
            assert_eq!(found(&tail), Err(code), "{tail:?}");
        }
    }
}
