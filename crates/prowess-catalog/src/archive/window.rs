//! A file that is read at two places in turn.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

const WINDOW: usize = 64 << 10;

/// Keeps what it read last at two places: reading a zip archive goes back and forth between its
/// directory and its entries, and a buffer that forgets at each jump reads everything many times.
pub(super) struct Window<'a> {
    file: &'a File,
    at: u64,
    panes: [Pane; 2],
    /// The pane that was used last.
    last: usize,
}

#[derive(Default)]
struct Pane {
    start: u64,
    bytes: Vec<u8>,
}

impl Pane {
    fn from(&self, at: u64) -> Option<&[u8]> {
        let offset = usize::try_from(at.checked_sub(self.start)?).ok()?;
        self.bytes.get(offset..).filter(|rest| !rest.is_empty())
    }
}

impl<'a> Window<'a> {
    pub(super) fn new(file: &'a File) -> Self {
        Self { file, at: 0, panes: Default::default(), last: 0 }
    }
}

impl Read for Window<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let known = (0..2).find(|pane| self.panes[*pane].from(self.at).is_some());
        self.last = match known {
            Some(pane) => pane,
            None => {
                let other = 1 - self.last;
                let pane = &mut self.panes[other];
                pane.bytes.resize(WINDOW, 0);
                pane.start = self.at;
                let read = self.file.read_at(&mut pane.bytes, self.at);
                pane.bytes.truncate(*read.as_ref().unwrap_or(&0));
                read?;
                other
            }
        };
        let rest = self.panes[self.last].from(self.at).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Window<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.file.metadata()?.len().checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
