//! Texts that are too long.

/// The beginning and the end of a text that is too long, and what is left out between them.
pub(crate) fn within(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(most / 2);
    let tail = text.ceil_char_boundary(text.len() - most / 2);
    format!("{}\n[{} bytes are left out here]\n{}", &text[..head], tail - head, &text[tail..])
}
