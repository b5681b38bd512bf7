//! What may reach a terminal: text of others cannot steer it.

use std::borrow::Cow;
use std::io;

use prowess_format::is_deceptive;

/// Text with deceptive characters made visible, so that a skill cannot move the cursor, recolour,
/// or hide what it says. Line breaks and tabs stay.
pub(crate) fn safe(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| is_deceptive(c) && !matches!(c, '\n' | '\t');
    if !text.contains(harmful) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match harmful(character) {
            true => out.extend(character.escape_unicode()),
            false => out.push(character),
        }
    }
    Cow::Owned(out)
}

/// [`safe`], on one line.
pub(crate) fn safe_line(text: &str) -> String {
    if text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        return text.to_owned();
    }
    safe(text).replace('\n', "\\n").replace('\t', " ")
}

/// Whether an error is a reader that went away.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
