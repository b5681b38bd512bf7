//! How text that comes from Jira is put into ours: as data. It cannot steer a terminal, end the line
//! or the block that it stands in, or grow beyond a limit without a word about it.

use std::borrow::Cow;

use prowess_format::is_deceptive;

/// How much of something is shown, and what the limit is called.
#[derive(Clone, Copy, Debug)]
pub(super) struct Most {
    pub(super) bytes: usize,
    pub(super) name: &'static str,
}

/// The text up to a limit, and a word about the rest.
pub(super) fn cut(text: &str, most: Most) -> (&str, Option<String>) {
    if text.len() <= most.bytes {
        return (text, None);
    }
    let kept = &text[..text.floor_char_boundary(most.bytes)];
    let note = format!("[cut: {} of {} bytes shown; {}]", kept.len(), text.len(), most.name);
    (kept, Some(note))
}

fn is_harmful(character: char) -> bool {
    is_deceptive(character) || matches!(character, '\u{2028}' | '\u{2029}')
}

/// The text with what steers or hides made visible. Line breaks and tabs stay.
fn shown(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| is_harmful(c) && !matches!(c, '\n' | '\t');
    if !text.contains(harmful) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            // A line that ends as on Windows.
            '\r' if characters.peek() == Some(&'\n') => {}
            character if harmful(character) => out.extend(character.escape_unicode()),
            character => out.push(character),
        }
    }
    Cow::Owned(out)
}

/// The text as data, with a word about what was cut.
pub(super) fn datum(text: &str, most: Most) -> String {
    match cut(text, most) {
        (kept, Some(note)) => format!("{kept} {note}"),
        (kept, None) => kept.to_owned(),
    }
}

/// The text on one line.
pub(super) fn line(text: &str, most: Most) -> String {
    let (kept, note) = cut(text.trim(), most);
    let mut out = shown(kept).replace('\n', "\\n").replace('\t', " ");
    if let Some(note) = note {
        out.push(' ');
        out.push_str(&note);
    }
    out
}

/// The text on one line between bars.
pub(super) fn cell(text: &str, most: Most) -> String {
    line(text, most).replace('|', "\\|")
}

/// The text on one line in single quotes.
pub(super) fn in_quotes(text: &str, most: Most) -> String {
    line(text, most).replace('\'', "\\'")
}

/// The text with every line behind `> `, so that no line of it can be taken for one of ours.
pub(super) fn quoted(text: &str, note: Option<&str>) -> String {
    let text = shown(text);
    let lines = text.trim_end_matches('\n').split('\n').chain(note);
    let lines = lines.map(|line| match line.trim_end() {
        "" => ">".to_owned(),
        line => format!("> {line}"),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FEW: Most = Most { bytes: 8, name: "max_field_bytes" };
    const MANY: Most = Most { bytes: 1 << 20, name: "max_field_bytes" };

    #[test]
    fn what_is_longer_than_the_limit_says_so() {
        assert_eq!(line("12345678", FEW), "12345678");
        assert_eq!(line("123456789", FEW), "12345678 [cut: 8 of 9 bytes shown; max_field_bytes]");
        assert_eq!(datum("12345678", FEW), "12345678");
        assert_eq!(datum("123456789", FEW), "12345678 [cut: 8 of 9 bytes shown; max_field_bytes]");
        // Not in the middle of a letter.
        assert_eq!(line("1234567é", FEW), "1234567 [cut: 7 of 9 bytes shown; max_field_bytes]");
    }

    #[test]
    fn characters_that_steer_are_shown() {
        assert_eq!(line("a\u{1b}[2Jb\r\nc\u{2028}d\te", MANY), "a\\u{1b}[2Jb\\nc\\u{2028}d e");
        assert_eq!(cell("a | Priority: High", MANY), "a \\| Priority: High");
        assert_eq!(in_quotes("a' → 'b", MANY), "a\\' → \\'b");
        assert_eq!(quoted("a\r\n\n# b\r# c\n", Some("[cut]")), "> a\n>\n> # b\\u{d}# c\n> [cut]");
    }

    proptest! {
        #[test]
        fn no_text_ends_the_place_that_it_stands_in(text in any::<String>()) {
            let one = line(&text, MANY);
            prop_assert!(!one.chars().any(is_harmful), "{one:?}");
            let block = quoted(&text, None);
            prop_assert!(block.split('\n').all(|line| line.starts_with('>')), "{block:?}");
            let harmful = |c| is_harmful(c) && c != '\n' && c != '\t';
            prop_assert!(!block.contains(harmful), "{block:?}");
        }
    }
}
