//! What of bytes is text, and some of its lines.

/// Bytes as text: none if they are not. Of a file that was cut, a character that was cut in two is
/// left out.
pub(crate) fn text_of(bytes: &[u8], size_bytes: u64) -> Option<&str> {
    if bytes.contains(&0) {
        return None;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) if (bytes.len() as u64) < size_bytes && error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    }
}

/// Some lines of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Window<'a> {
    pub(super) shown: &'a str,
    /// How many lines these are.
    pub(super) lines: u64,
    /// How many there are.
    pub(super) total: u64,
    /// Whether only the beginning of a line is shown.
    pub(super) is_line_cut: bool,
}

impl<'a> Window<'a> {
    /// At most so many lines and bytes, from a line on. Of a line that is too long by itself, the
    /// beginning is shown.
    pub(super) fn of(text: &'a str, skip: u64, most: u64, bytes: usize) -> Self {
        let total = text.split_inclusive('\n').count() as u64;
        let before = usize::try_from(skip).unwrap_or(usize::MAX);
        let begin: usize = text.split_inclusive('\n').take(before).map(str::len).sum();
        let rest = &text[begin..];
        let (mut end, mut lines) = (0, 0);
        for line in rest.split_inclusive('\n') {
            if lines >= most || end + line.len() > bytes {
                break;
            }
            end += line.len();
            lines += 1;
        }
        let is_line_cut = lines == 0 && most > 0 && !rest.is_empty();
        if is_line_cut {
            end = bytes.min(rest.len());
            while !rest.is_char_boundary(end) {
                end -= 1;
            }
            lines = 1;
        }
        Self { shown: &rest[..end], lines, total, is_line_cut }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_shows_whole_lines_within_both_limits() {
        let text = "one\ntwo\nthree\n";
        let table = [
            // Skipped, most lines, most bytes, shown, lines.
            (0, 9, 99, "one\ntwo\nthree\n", 3),
            (0, 2, 99, "one\ntwo\n", 2),
            (1, 1, 99, "two\n", 1),
            (0, 9, 8, "one\ntwo\n", 2),
            (0, 9, 7, "one\n", 1),
            (0, 9, 2, "on", 1),
            (3, 9, 99, "", 0),
            (u64::MAX, 9, 99, "", 0),
        ];
        for (skip, most, bytes, shown, lines) in table {
            let expected = Window { shown, lines, total: 3, is_line_cut: bytes == 2 };
            assert_eq!(Window::of(text, skip, most, bytes), expected, "{skip} {most} {bytes}");
        }
        let empty = Window { shown: "", lines: 0, total: 0, is_line_cut: false };
        assert_eq!(Window::of("", 0, 9, 99), empty);
        let cut = Window { shown: "ä", lines: 1, total: 1, is_line_cut: true };
        assert_eq!(Window::of("äöü", 0, 9, 3), cut);
    }

    #[test]
    fn only_text_is_text_and_a_cut_is_no_fault() {
        assert_eq!(text_of("äb".as_bytes(), 3), Some("äb"));
        assert_eq!(text_of(&"bä".as_bytes()[..2], 3), Some("b"));
        assert_eq!(text_of(&"bä".as_bytes()[..2], 2), None);
        assert_eq!(text_of(b"a\0b", 3), None);
        assert_eq!(text_of(&[0xff, 0x61], 9), None);
        assert_eq!(text_of(b"", 0), Some(""));
    }
}
