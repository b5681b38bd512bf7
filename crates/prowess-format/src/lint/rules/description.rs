//! The description: what makes a model pick the skill.

use crate::lint::document::text_of;
use crate::lint::{Checker, Code, Document};

/// The most characters a description may have.
const MAX_DESCRIPTION_CHARS: usize = 1024;
/// The most characters of description and `when_to_use` that Claude Code lists.
const MAX_CLAUDE_CODE_LISTING_CHARS: usize = 1536;

pub(crate) fn check(document: &Document<'_>, checker: &mut Checker<'_>) {
    let Some(entry) = document.mapping.entry("description") else {
        let message = "Missing required field in frontmatter: description";
        let help = "say what the skill does and when to use it";
        let fence = document.opening_fence();
        return checker.report_with_help(Code::MissingDescription, fence, message, help);
    };
    let range = entry.value.range;
    let text = text_of(&entry.value).unwrap_or_default();
    if text.trim().is_empty() {
        let message = "Field 'description' must be a non-empty string";
        let help = match entry.value.kind() {
            "text" | "null" => "say what the skill does and when to use it".to_owned(),
            kind => format!("it is {kind}; write it as text, in quotes if need be"),
        };
        let range = entry.key_range.to(range);
        return checker.report_with_help(Code::EmptyDescription, range, message, help);
    }
    // A character is at least a byte: no need to count short ones.
    if text.len() > MAX_DESCRIPTION_CHARS {
        let characters = text.chars().count();
        if characters > MAX_DESCRIPTION_CHARS {
            checker.report_with_help(
                Code::DescriptionTooLong,
                range,
                format!(
                    "Description exceeds {MAX_DESCRIPTION_CHARS} character limit \
                     ({characters} chars)"
                ),
                "keep what and when; move the how into the body",
            );
        }
    }
    let when = document.mapping.get("when_to_use").and_then(text_of).unwrap_or_default();
    if text.len() + when.len() > MAX_CLAUDE_CODE_LISTING_CHARS {
        let characters = text.chars().count() + when.chars().count();
        if characters > MAX_CLAUDE_CODE_LISTING_CHARS {
            let limit = MAX_CLAUDE_CODE_LISTING_CHARS;
            checker.report(
                Code::ListingTooLong,
                range,
                format!("Claude Code lists {limit} characters of description and when_to_use, these are {characters}"),
            );
        }
    }
    if memchr::memchr2(b'<', b'>', text.as_bytes()).is_some() {
        checker.report_with_help(
            Code::AngleBrackets,
            range,
            "The description has angle brackets, which claude.ai refuses on upload",
            "use other words or quotes",
        );
    }
}
