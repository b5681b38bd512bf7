//! Shared strings: texts that a workbook holds once.

use std::borrow::Cow;
use std::collections::BTreeMap;

use quick_xml::events::Event;

use super::book::Book;
use super::error::XlsxError;
use super::package::Package;
use super::settings::XlsxSettings;
use super::xml::{Xml, push_text};

/// Gives those of the shared strings that are wanted, in their order, until `take` has enough.
pub(super) fn each(
    package: &mut Package,
    book: &Book,
    limits: &XlsxSettings,
    take: &mut dyn FnMut(u32, &str),
) -> Result<u64, XlsxError> {
    let Some(part) = &book.shared_strings else { return Ok(0) };
    if !package.has(part) {
        return Ok(0);
    }
    let mut xml = Xml::new(package.stream(part)?, part, limits);
    let mut count = 0_u64;
    let mut text = String::new();
    let (mut is_text, mut is_aside) = (false, false);
    loop {
        let event = xml.next()?;
        match &event {
            Event::Start(it) => match it.local_name().as_ref() {
                "si" => text.clear(),
                "t" => is_text = true,
                "rPh" => is_aside = true,
                _ => {}
            },
            Event::Empty(it) if it.local_name().as_ref() == "si" => {
                take(u32::try_from(count).unwrap_or(u32::MAX), "");
                count += 1;
            }
            Event::End(it) => match it.local_name().as_ref() {
                "t" => is_text = false,
                "rPh" => is_aside = false,
                "si" => {
                    take(u32::try_from(count).unwrap_or(u32::MAX), &decoded(&text));
                    count += 1;
                    if count > limits.max_shared_strings {
                        let (limit, most) = ("max_shared_strings", limits.max_shared_strings);
                        return Err(XlsxError::limit("its shared strings", count, limit, most));
                    }
                }
                _ => {}
            },
            Event::Eof => return Ok(count),
            other if is_text && !is_aside => push_text(&mut text, other, part, limits)?,
            _ => {}
        }
    }
}

/// The shared strings with these numbers; each of them must be there.
pub(super) fn some(
    package: &mut Package,
    book: &Book,
    limits: &XlsxSettings,
    wanted: &mut BTreeMap<u32, String>,
) -> Result<(), XlsxError> {
    if wanted.is_empty() {
        return Ok(());
    }
    let count = each(package, book, limits, &mut |number, text| {
        if let Some(place) = wanted.get_mut(&number) {
            text.clone_into(place);
        }
    })?;
    match wanted.last_key_value() {
        Some((last, _)) if u64::from(*last) >= count => {
            let part = book.shared_strings.as_deref().unwrap_or("xl/sharedStrings.xml");
            let why = format!("a cell holds its text {last}, and it has {count}");
            Err(XlsxError::malformed(part, why))
        }
        _ => Ok(()),
    }
}

/// How long `_x000A_` is.
const CODE: usize = 7;

/// The number of the code that a text begins with: `_x000A_` is 10.
fn code_of(text: &str) -> Option<u16> {
    let digits = text.get(..CODE)?.strip_prefix("_x")?.strip_suffix('_')?;
    match digits.bytes().all(|it| it.is_ascii_hexdigit()) {
        true => u16::from_str_radix(digits, 16).ok(),
        false => None,
    }
}

/// A text of a file as people see it: `_x000A_` is a line break, `_x005F_x000A_` is `_x000A_`.
pub(super) fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains("_x") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("_x") {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        // A character beyond the first 65,536 has two codes.
        let units = code_of(from).map(|it| (it, from.get(CODE..).and_then(code_of)));
        let read = match units {
            Some((first, Some(second))) => {
                char::decode_utf16([first, second]).next().and_then(Result::ok).map(|c| {
                    let is_pair = c.len_utf16() == 2;
                    (c, if is_pair { 2 * CODE } else { CODE })
                })
            }
            Some((first, None)) => char::from_u32(u32::from(first)).map(|c| (c, CODE)),
            None => None,
        };
        let (c, length) = read.unwrap_or(('_', 1));
        out.push(c);
        rest = &from[length..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// A text as files hold it: what XML cannot hold has a code, and what looks like a code says that
/// it is none.
pub(super) fn encoded(text: &str) -> String {
    let needs_code = |c: char| {
        ((c as u32) < 0x20 && !matches!(c, '\t' | '\n')) || matches!(c, '\u{fffe}' | '\u{ffff}')
    };
    // The code that follows begins with what would end this one.
    let looks_like_code = |text: &str| match text.get(..CODE - 1) {
        Some(head) => {
            let next = text[CODE - 1..].chars().next();
            next.is_some_and(|c| c == '_' || needs_code(c))
                && code_of(&format!("{head}_")).is_some()
        }
        None => false,
    };
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        match c {
            '_' if looks_like_code(&text[at..]) => out.push_str("_x005F_"),
            c if needs_code(c) => out.push_str(&format!("_x{:04X}_", c as u32)),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn codes_are_read_from_left_to_right() {
        let table = [
            ("a_x000A_b", "a\nb"),
            ("_x005F_x000A_", "_x000A_"),
            ("_x005f_x005F_x000A_", "_x005F\n"),
            ("_xD83D__xDE00_", "😀"),
            ("_xD83D_ and more", "_xD83D_ and more"),
            ("_x0041__x0042_", "AB"),
            ("_x00_ _X000A_ _x00ZZ_ _x", "_x00_ _X000A_ _x00ZZ_ _x"),
            ("ä_x00Aä_", "ä_x00Aä_"),
            ("plain", "plain"),
        ];
        for (text, expected) in table {
            assert_eq!(decoded(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_text_comes_back(text in "([a-fx_0-9AD😀]|\\PC|[\\x00-\\x1f]|_x[0-9A-Fa-f]{4}_){0,24}") {
            let file = encoded(&text);
            prop_assert!(!file.contains(|c: char| (c as u32) < 0x20 && c != '\t' && c != '\n'));
            prop_assert_eq!(decoded(&file), text);
        }
    }
}
