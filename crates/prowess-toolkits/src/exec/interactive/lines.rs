//! What a command has written, line by line, as far as it is kept.

use std::collections::VecDeque;

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineLimits {
    /// Lines.
    pub(crate) lines: usize,
    /// Bytes of a line; what is longer counts as several.
    pub(crate) line_bytes: usize,
    /// Bytes of all lines.
    pub(crate) bytes: usize,
}

/// Lines with numbers, from 0 on. Of too many, the first are dropped; numbers stay what they are.
#[derive(Debug)]
pub(crate) struct Lines {
    limits: LineLimits,
    lines: VecDeque<Line>,
    /// The number of the first line that is kept.
    first: u64,
    bytes: usize,
    total_bytes: u64,
}

#[derive(Debug, Default)]
struct Line {
    text: String,
    /// Whether a line break follows it.
    is_ended: bool,
    /// Whether the rest of it is the next line.
    is_split: bool,
}

/// How far somebody has read: lines, and bytes of the line after them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) line: u64,
    byte: usize,
}

impl Cursor {
    /// The beginning of a line.
    pub(crate) fn at(line: u64) -> Self {
        Self { line, byte: 0 }
    }
}

/// What somebody reads at once.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) text: String,
    /// The number of its first line.
    pub(crate) offset: u64,
    /// How far it goes.
    pub(crate) next: Cursor,
    /// Lines before it that nobody has read and that are not kept.
    pub(crate) dropped: u64,
    /// Lines behind it.
    pub(crate) remaining: u64,
}

impl Lines {
    pub(crate) fn new(limits: LineLimits) -> Self {
        Self { limits, lines: VecDeque::new(), first: 0, bytes: 0, total_bytes: 0 }
    }

    /// How many bytes were written, as text.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Adds what was written.
    pub(crate) fn push(&mut self, text: &str) {
        self.total_bytes += text.len() as u64;
        for part in text.split_inclusive('\n') {
            match part.strip_suffix('\n') {
                Some(part) => {
                    self.append(part);
                    if self.lines.back().is_none_or(|line| line.is_ended || line.is_split) {
                        self.lines.push_back(Line::default());
                    }
                    if let Some(line) = self.lines.back_mut() {
                        // As terminals write it.
                        if line.text.ends_with('\r') {
                            line.text.pop();
                            self.bytes -= 1;
                        }
                        line.is_ended = true;
                    }
                }
                None => self.append(part),
            }
            self.drop_excess();
        }
    }

    /// Adds text without a line break.
    fn append(&mut self, mut text: &str) {
        while !text.is_empty() {
            if self.lines.back().is_none_or(|line| line.is_ended || line.is_split) {
                self.lines.push_back(Line::default());
            }
            let Some(line) = self.lines.back_mut() else { return };
            let room = self.limits.line_bytes.saturating_sub(line.text.len());
            let (part, rest) = match text.len() <= room {
                true => (text, ""),
                false => text.split_at(text.floor_char_boundary(room)),
            };
            // A line takes a character at least, however short lines are.
            let (part, rest) = match part.is_empty() && line.text.is_empty() {
                true => text.split_at(text.ceil_char_boundary(1)),
                false => (part, rest),
            };
            line.text.push_str(part);
            line.is_split = !rest.is_empty();
            self.bytes += part.len();
            text = rest;
            self.drop_excess();
        }
    }

    fn drop_excess(&mut self) {
        let is_over = |this: &Self| {
            this.lines.len() > this.limits.lines.max(1) || this.bytes > this.limits.bytes
        };
        while is_over(self) && self.lines.len() > 1 {
            if let Some(line) = self.lines.pop_front() {
                self.bytes -= line.text.len();
                self.first += 1;
            }
        }
    }

    /// What follows, at most so many lines and bytes of it.
    pub(crate) fn read(&self, from: Cursor, most_lines: u64, most_bytes: usize) -> Page {
        let dropped = self.first.saturating_sub(from.line);
        let mut next = if dropped > 0 { Cursor::at(self.first) } else { from };
        // Whoever asks for what is not there yet waits at the end.
        let end = self.first + self.lines.len() as u64;
        if next.line > end {
            next = Cursor::at(end);
        }
        let (offset, mut text) = (next.line, String::new());
        let mut lines = 0;
        while lines < most_lines
            && let Some(line) = self.line(next.line)
        {
            let start = line.text.floor_char_boundary(next.byte.min(line.text.len()));
            let rest = &line.text[start..];
            let room = most_bytes.saturating_sub(text.len());
            let taken = rest.floor_char_boundary(room.min(rest.len()));
            text.push_str(&rest[..taken]);
            next.byte = start + taken;
            if taken < rest.len() || (!line.is_ended && !line.is_split) {
                break;
            }
            if line.is_ended {
                text.push('\n');
            }
            next = Cursor::at(next.line + 1);
            lines += 1;
        }
        // A line that is still being written is read as far as it goes.
        let is_read =
            |line: &Line| !line.is_ended && !line.is_split && next.byte >= line.text.len();
        let remaining = end - next.line - u64::from(self.line(next.line).is_some_and(is_read));
        Page { text, offset, next, dropped, remaining }
    }

    fn line(&self, number: u64) -> Option<&Line> {
        self.lines.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// The last lines that are not blank, in their order.
    pub(crate) fn last(&self, most: usize) -> Vec<&str> {
        let written = self.lines.iter().rev().map(|line| line.text.as_str());
        let mut last: Vec<&str> =
            written.filter(|text| !text.trim().is_empty()).take(most).collect();
        last.reverse();
        last
    }
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
