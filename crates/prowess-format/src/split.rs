//! Where the frontmatter ends and the body begins.

use std::ops::Range;

/// The parts of a `SKILL.md`, as byte ranges of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// The YAML between the fences, without them.
    pub frontmatter: Range<usize>,
    /// Everything after the line of the closing fence, every byte of it.
    pub body: Range<usize>,
    /// What was passed over in front of the opening fence.
    pub before: Before,
    /// Whether the line of the closing fence ends with a line break.
    pub closing_line: ClosingLine,
}

/// What stood in front of the opening fence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Before {
    /// A UTF-8 byte order mark.
    pub byte_order_mark: bool,
    /// The number of blank lines.
    pub blank_lines: usize,
}

/// How the line of the closing fence ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClosingLine {
    /// With a line break.
    LineBreak,
    /// With the file.
    EndOfFile,
}

/// Why a text has no frontmatter. The offset says where to point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SplitError {
    /// The first line with content is not `---`.
    #[error("SKILL.md must start with YAML frontmatter (---)")]
    Missing {
        /// Start of the first line with content.
        at: usize,
    },
    /// No later line is `---`.
    #[error("SKILL.md frontmatter not properly closed with ---")]
    Unclosed {
        /// Start of the opening fence.
        at: usize,
    },
    /// There are more bytes between the fences than allowed.
    #[error("SKILL.md frontmatter is {bytes} bytes long, the limit is {limit}")]
    TooLarge {
        /// Start of the opening fence.
        at: usize,
        /// Bytes between the fences.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
}

const FENCE: &str = "---";

/// Finds the fences. A fence is a line of its own: `---` at its start, then at most blanks. A
/// byte order mark and blank lines may stand before the first one.
pub fn split(text: &str, frontmatter_limit: usize) -> Result<Split, SplitError> {
    let mut before = Before::default();
    let mut at = 0;
    if text.starts_with('\u{feff}') {
        before.byte_order_mark = true;
        at = '\u{feff}'.len_utf8();
    }
    let opening = loop {
        let (line, next) = line_at(text, at);
        if is_fence(line) {
            break at;
        }
        let blank = line.trim_ascii().is_empty();
        if !blank || next >= text.len() {
            return Err(SplitError::Missing { at: if blank { 0 } else { at } });
        }
        before.blank_lines += 1;
        at = next;
    };
    let start = line_at(text, opening).1;
    let (closing, body) = closing_fence(text, start).ok_or(SplitError::Unclosed { at: opening })?;
    let bytes = closing - start;
    if bytes > frontmatter_limit {
        return Err(SplitError::TooLarge { at: opening, bytes, limit: frontmatter_limit });
    }
    let closing_line = match text[closing..body].ends_with('\n') {
        true => ClosingLine::LineBreak,
        false => ClosingLine::EndOfFile,
    };
    Ok(Split { frontmatter: start..closing, body: body..text.len(), before, closing_line })
}

/// The start of the closing fence and the end of its line.
fn closing_fence(text: &str, start: usize) -> Option<(usize, usize)> {
    let mut at = start;
    loop {
        let (line, next) = line_at(text, at);
        if is_fence(line) {
            return Some((at, next));
        }
        // Jump to the next line that can be one.
        let found = memchr::memmem::find(&text.as_bytes()[at..], b"\n---")?;
        at += found + 1;
    }
}

/// The line that starts at `at`, without its `\n`, and where the next one starts.
fn line_at(text: &str, at: usize) -> (&str, usize) {
    let rest = &text[at..];
    match memchr::memchr(b'\n', rest.as_bytes()) {
        Some(end) => (&rest[..end], at + end + 1),
        None => (rest, text.len()),
    }
}

fn is_fence(line: &str) -> bool {
    line.strip_prefix(FENCE)
        .is_some_and(|rest| rest.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\r')))
}
