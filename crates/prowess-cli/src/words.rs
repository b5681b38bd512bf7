//! Words and figures in columns.

/// `12,345`
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1.2 kB`
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{}.{} kB", bytes / 1_000, bytes % 1_000 / 100),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

/// At most so many characters, with a sign where something is missing.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Lines of at most so many characters, broken between words where that is possible.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut room = width;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if room < width && length < room {
            room -= length + 1;
            if let Some(line) = lines.last_mut() {
                line.push(' ');
                line.push_str(word);
            }
            continue;
        }
        let characters: Vec<char> = word.chars().collect();
        for piece in characters.chunks(width.max(1)) {
            match lines.last_mut() {
                Some(line) if line.is_empty() => line.extend(piece),
                _ => lines.push(piece.iter().collect()),
            }
            room = width - piece.len();
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_grouped() {
        for (number, expected) in
            [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")]
        {
            assert_eq!(grouped(number), expected);
        }
    }

    #[test]
    fn lines_are_broken_between_words_and_long_words_anywhere() {
        for (text, expected) in [
            ("", vec![""]),
            ("one two", vec!["one two"]),
            ("one two three", vec!["one two", "three"]),
            ("a longerword b", vec!["a", "longerwo", "rd b"]),
        ] {
            assert_eq!(wrapped(text, 8), expected, "{text}");
        }
    }

    #[test]
    fn what_is_cut_says_so() {
        assert_eq!(cut("four", 4), "four");
        assert_eq!(cut("four five", 6), "four…");
    }
}
