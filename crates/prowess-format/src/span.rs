//! Where something stands in a source text.

use serde::Serialize;

/// A half-open range of byte offsets into the source text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ByteRange {
    /// First byte of the range.
    pub start: u32,
    /// First byte after the range.
    pub end: u32,
}

impl ByteRange {
    /// The range from `start` to `end`. Offsets past 4 GiB are clamped.
    pub fn new(start: usize, end: usize) -> Self {
        let clamp = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Self { start: clamp(start), end: clamp(end) }
    }

    /// The empty range at the end of this one.
    pub fn after(self) -> Self {
        Self { start: self.end, end: self.end }
    }

    /// The smallest range that covers both.
    pub fn to(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// As a range that slices a string.
    pub fn as_usize(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A [`ByteRange`] together with the line and column where it starts, so that it can be shown
/// after the source text is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Span {
    /// First byte of the range.
    pub start: u32,
    /// First byte after the range.
    pub end: u32,
    /// Line of the first byte, from 1.
    pub line: u32,
    /// Column of the first byte in characters, from 1.
    pub column: u32,
}

/// Where the lines of a text begin, so that many places can be located at the cost of one.
#[derive(Clone, Debug, Default)]
pub(crate) struct LineStarts(Vec<usize>);

impl LineStarts {
    pub(crate) fn of(source: &str) -> Self {
        let after_breaks = memchr::memchr_iter(b'\n', source.as_bytes()).map(|at| at + 1);
        Self(std::iter::once(0).chain(after_breaks).collect())
    }

    /// As [`Span::locate`].
    pub(crate) fn locate(&self, source: &str, range: ByteRange) -> Span {
        let start = floor_char_boundary(source, range.start as usize);
        let line = self.0.partition_point(|line_start| *line_start <= start);
        let line_start = line.checked_sub(1).and_then(|at| self.0.get(at)).copied().unwrap_or(0);
        Span::at(source, range, line, line_start)
    }
}

impl Span {
    /// Finds line and column of `range` in `source`. A range that does not fit is clamped to the
    /// source and to character boundaries.
    pub fn locate(source: &str, range: ByteRange) -> Self {
        let start = floor_char_boundary(source, range.start as usize);
        let before = &source.as_bytes()[..start];
        let line_start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        Self::at(source, range, line, line_start)
    }

    fn at(source: &str, range: ByteRange, line: usize, line_start: usize) -> Self {
        let start = floor_char_boundary(source, range.start as usize);
        let end = floor_char_boundary(source, range.end as usize).max(start);
        let before = &source[..start];
        let column =
            before[line_start..].chars().filter(|character| *character != '\u{feff}').count() + 1;
        let ByteRange { start, end } = ByteRange::new(start, end);
        let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Self { start, end, line: narrow(line), column: narrow(column) }
    }
}

fn floor_char_boundary(source: &str, offset: usize) -> usize {
    let mut offset = offset.min(source.len());
    while !source.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}
