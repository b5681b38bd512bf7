//! The body: instructions that are there, short enough, and whose links lead somewhere.

use pulldown_cmark::{Event, Parser, Tag};

use crate::lint::{Checker, Code, Document};
use crate::span::ByteRange;

/// Broken links beyond these are counted, not shown.
const MOST_BROKEN_LINKS: usize = 50;

/// The most lines that the specification advises for a `SKILL.md`.
const ADVISED_LINES: usize = 500;

pub(crate) fn check(document: &Document<'_>, checker: &mut Checker<'_>) {
    let body = document.body();
    let start = document.split.body.start;
    if body.trim().is_empty() {
        checker.report_with_help(
            Code::EmptyBody,
            ByteRange::new(start, start),
            "There are no instructions below the frontmatter",
            "say how to do the job, step by step",
        );
        return;
    }
    let lines = document.source.as_bytes();
    let lines = memchr::memchr_iter(b'\n', lines).count() + usize::from(!lines.ends_with(b"\n"));
    if lines > ADVISED_LINES {
        let first = body.lines().next().unwrap_or_default();
        checker.report_with_help(
            Code::LongBody,
            ByteRange::new(start, start + first.len()),
            format!(
                "The file has {lines} lines; the specification advises at most {ADVISED_LINES}"
            ),
            "move details into files of the skill and name them in the body",
        );
    }
    if let Some(file_exists) = document.file_exists {
        check_links(body, start, file_exists, checker);
    }
}

fn check_links(
    body: &str,
    start: usize,
    file_exists: &dyn Fn(&str) -> bool,
    checker: &mut Checker<'_>,
) {
    let mut broken = 0;
    for (event, range) in Parser::new(body).into_offset_iter() {
        let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event else {
            continue;
        };
        let Some(path) = relative_path(&dest_url) else {
            continue;
        };
        let message = match escapes(&path) {
            true => format!("The link '{}' leaves the skill's folder", path.escape_debug()),
            false if file_exists(&path) => continue,
            false => format!("There is no file '{}' in the skill", path.escape_debug()),
        };
        broken += 1;
        if broken <= MOST_BROKEN_LINKS {
            checker.report_with_help(
                Code::BrokenLink,
                ByteRange::new(start + range.start, start + range.end),
                message,
                "paths are relative to the folder of SKILL.md, and stay inside it",
            );
        }
    }
    if broken > MOST_BROKEN_LINKS {
        let more = broken - MOST_BROKEN_LINKS;
        let message = format!("{more} more links lead nowhere");
        checker.report(Code::BrokenLink, ByteRange::new(start, start), message);
    }
}

/// Whether a relative path goes up further than it went down.
fn escapes(path: &str) -> bool {
    let mut depth = 0_usize;
    !path.split('/').all(|name| match name {
        "" | "." => true,
        ".." => depth.checked_sub(1).map(|up| depth = up).is_some(),
        _ => {
            depth += 1;
            true
        }
    })
}

/// The path of a link to a file of the skill: no scheme, no host, no fragment, not absolute.
fn relative_path(link: &str) -> Option<String> {
    let path = link.split(['#', '?']).next().unwrap_or_default();
    let has_scheme = path.split_once(':').is_some_and(|(scheme, _)| {
        !scheme.is_empty()
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
    });
    let special = path.is_empty() || has_scheme || path.starts_with(['/', '$', '{', '<', '~']);
    // Placeholders in templates are not links.
    (!special && !path.contains(['{', '<', '*', '$'])).then(|| decode(path))
}

/// Undoes percent encoding where it is well formed.
fn decode(path: &str) -> String {
    let bytes = path.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = (bytes[at] == b'%')
            .then(|| path.get(at + 1..at + 3))
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match hex {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
