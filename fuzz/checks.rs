//! What must hold for every input. The fuzz targets call these on inputs that they invent, the
//! tests call them on the inputs that were found and kept in `corpus/`.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

use prowess_format::yaml::{self, Limits};
use prowess_format::{Arguments, Options, Profile, Skill};

/// The parts of a split are the text, and the fences are whole lines.
pub fn split(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let limit = Limits::default().frontmatter_bytes;
    let Ok(split) = prowess_format::split(text, limit) else {
        return;
    };
    let is_fence = |line: &str| line.trim_end_matches([' ', '\t', '\r']) == "---";
    let frontmatter = &text[split.frontmatter.clone()];
    let opening = text[..split.frontmatter.start].strip_suffix('\n').expect("a whole line");
    let opening = opening.rsplit('\n').next().unwrap().trim_start_matches('\u{feff}');
    let closing = &text[split.frontmatter.end..split.body.start];
    assert!(is_fence(opening), "opening fence {opening:?}");
    assert!(is_fence(closing.strip_suffix('\n').unwrap_or(closing)), "closing fence {closing:?}");
    assert!(frontmatter.is_empty() || frontmatter.ends_with('\n'));
    assert!(!frontmatter.split('\n').any(is_fence), "a fence inside");
    assert!(frontmatter.len() <= limit);
    assert_eq!(split.body.end, text.len(), "the body goes to the end");
}

/// Whatever is in a file, it is read or refused within bounds, and what was read can be written
/// and read again.
pub fn frontmatter(data: &[u8]) {
    for profile in Profile::ALL {
        let options = Options::new().in_folder("folder").with_profile(profile);
        let parsed = Skill::parse_bytes(data, &options);
        for diagnostic in &parsed.diagnostics {
            let span = diagnostic.span.expect("every finding has a place");
            assert!(span.start <= span.end && span.end as usize <= data.len());
            assert!(!diagnostic.message.is_empty());
        }
        let Some(skill) = parsed.skill else {
            assert!(!parsed.diagnostics.is_empty(), "refused without a word");
            continue;
        };
        touch(&skill);
        let written = skill.to_markdown();
        let again = Skill::parse(&written, &options).skill;
        assert_eq!(again.as_ref(), Some(&skill), "written as {written}");
    }
}

fn touch(skill: &Skill) {
    let frontmatter = &skill.frontmatter;
    frontmatter.allowed_tools();
    frontmatter.arguments();
    frontmatter.paths();
    frontmatter.context();
    frontmatter.include_tools();
    frontmatter.tool_configs();
    frontmatter.resource_configs();
    frontmatter.mcp_tool_configs();
}

/// What the fast reader accepts, the full reader reads as the same tree in the same places.
pub fn plain(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let limits = Limits::default();
    let Some(fast) = yaml::read_plain(text, 7, &limits) else {
        return;
    };
    let full = yaml::read_full(text, 7, &limits).expect("the full reader accepts it too");
    assert!(full.notes.is_empty(), "{:?}", full.notes);
    assert_eq!(format!("{fast:#?}"), format!("{:#?}", full.mapping));
}

/// Substitution ends, and leaves a body without `$` alone.
pub fn arguments(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (typed, body) = text.split_once('\n').unwrap_or(("", text));
    let arguments = Arguments::new(typed)
        .with_names(["one", "two-three", "one_more"])
        .with_variable("CLAUDE_SKILL_DIR", "/skill$0");
    let out = arguments.substitute(body);
    if !body.contains('$') {
        assert!(out.starts_with(body));
    }
}
