//! Text of skills on a line of a listing.

use prowess_format::is_deceptive;

use crate::session::KnownResources;

/// `2 scripts, 1 reference`
pub(crate) fn resource_summary(resources: &KnownResources) -> String {
    let mut counts: std::collections::BTreeMap<&str, usize> = std::collections::BTreeMap::new();
    for resource in &resources.named {
        *counts.entry(resource.kind.as_str()).or_default() += 1;
    }
    let mut parts: Vec<String> = counts
        .into_iter()
        .map(|(kind, count)| format!("{count} {kind}{}", if count == 1 { "" } else { "s" }))
        .collect();
    if resources.more > 0 {
        parts.push(format!("{} more", resources.more));
    }
    parts.join(", ")
}

/// Text of a skill on one line: it cannot begin a heading, a list or a tag, nor hide characters.
pub(crate) fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut blank = false;
    for character in text.trim().chars() {
        if character.is_whitespace() {
            blank = true;
            continue;
        }
        if std::mem::take(&mut blank) {
            out.push(' ');
        }
        match is_deceptive(character) {
            true => out.extend(character.escape_unicode()),
            false => out.push(character),
        }
    }
    escape(&out)
}

/// Text in which nothing is hidden, and nothing reordered.
pub(crate) fn revealed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match is_deceptive(character) && !character.is_whitespace() {
            true => out.extend(character.escape_unicode()),
            false => out.push(character),
        }
    }
    out
}

/// No text makes a tag.
pub(crate) fn escape(text: &str) -> String {
    if !text.contains(['<', '>', '&']) {
        return text.to_owned();
    }
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// At most so many characters; what is cut is marked.
pub(crate) fn cut(text: &str, most: usize) -> String {
    const MARK: &str = "... [truncated]";
    match text.chars().count() <= most {
        true => text.to_owned(),
        false => text.chars().take(most - MARK.len()).chain(MARK.chars()).collect(),
    }
}
