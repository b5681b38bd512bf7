//! The name: what the specification asks of it.

use unicode_normalization::char::is_combining_mark;

use crate::lint::document::text_of;
use crate::lint::{Checker, Code, Document, Profile};
use crate::name::{SkillName, normalize};
use crate::yaml::{Entry, Node};

/// The most characters a name may have.
const MAX_NAME_CHARS: usize = 64;

pub(crate) fn check(document: &Document<'_>, checker: &mut Checker<'_>) {
    // An `id` names the skill, and `name` is for display; only the fields' own runtimes know that.
    let empty_id = document.mapping.entry("id").filter(|entry| !has_text(&entry.value));
    if let Some(entry) = empty_id.filter(|_| checker.profile == Profile::Prowess) {
        report_empty(entry, checker);
    } else if document.mapping.get("id").is_some() && checker.profile == Profile::Prowess {
        if let Some(entry) = document.mapping.entry("name").filter(|e| !has_text(&e.value)) {
            report_empty(entry, checker);
        }
        return check_written(document, checker);
    }
    let Some(entry) = document.mapping.entry("name") else {
        let message = "Missing required field in frontmatter: name";
        let help = match document.folder {
            Some(folder) => format!("add `name: {folder}`; until then the folder's name is used"),
            None => "add a `name`".to_owned(),
        };
        return checker.report_with_help(
            Code::MissingName,
            document.opening_fence(),
            message,
            help,
        );
    };
    match has_text(&entry.value) {
        true => check_written(document, checker),
        false => report_empty(entry, checker),
    }
}

fn has_text(node: &Node) -> bool {
    text_of(node).is_some_and(|text| !text.trim().is_empty())
}

fn report_empty(entry: &Entry, checker: &mut Checker<'_>) {
    checker.report_with_help(
        Code::EmptyName,
        entry.key_range.to(entry.value.range),
        format!("Field '{}' must be a non-empty string", entry.key),
        "give it a name of lowercase letters, digits and hyphens",
    );
}

fn check_written(document: &Document<'_>, checker: &mut Checker<'_>) {
    let from_id = document.written_name();
    let from_name =
        document.mapping.get("name").and_then(|node| text_of(node).map(|text| (node, text.trim())));
    let written = match checker.profile {
        Profile::Prowess => from_id,
        _ => from_name,
    };
    let Some((node, text)) = written else { return };
    let range = node.range;
    let name = &*normalize(text);
    if SkillName::parse(text).is_none() {
        checker.report_with_help(
            Code::UnsafeName,
            range,
            format!("Skill name '{}' cannot be part of a path", name.escape_debug()),
            "use lowercase letters, digits and hyphens",
        );
    }
    if !looks_plain(name) {
        check_form(name, range, checker);
    }
    // Whoever gives an id means it, whatever the folder is called.
    let has_id = checker.profile == Profile::Prowess && document.mapping.get("id").is_some();
    let other = document.folder.filter(|folder| !has_id && *normalize(folder) != *name);
    if let Some(folder) = other {
        checker.report_with_help(
            Code::NameFolderMismatch,
            range,
            format!("Directory name '{folder}' must match skill name '{name}'"),
            "rename one of the two",
        );
    }
}

/// The ordinary case, decided at once.
fn looks_plain(name: &str) -> bool {
    name.len() <= MAX_NAME_CHARS
        && name.split('-').all(|part| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        })
}

fn check_form(name: &str, range: crate::span::ByteRange, checker: &mut Checker<'_>) {
    let characters = name.chars().count();
    if characters > MAX_NAME_CHARS {
        checker.report_with_help(
            Code::NameTooLong,
            range,
            format!(
                "Skill name '{name}' exceeds {MAX_NAME_CHARS} character limit ({characters} chars)"
            ),
            "shorten it; the description can say the rest",
        );
    }
    if name.to_lowercase() != name {
        let lower = name.to_lowercase();
        checker.report_with_help(
            Code::NameNotLowercase,
            range,
            format!("Skill name '{name}' must be lowercase"),
            format!("write `{lower}`"),
        );
    }
    if name.starts_with('-') || name.ends_with('-') {
        let message = "Skill name cannot start or end with a hyphen";
        let help = format!("write `{}`", name.trim_matches('-'));
        checker.report_with_help(Code::NameHyphenEdge, range, message, help);
    }
    if name.contains("--") {
        let message = "Skill name cannot contain consecutive hyphens";
        checker.report_with_help(Code::NameDoubleHyphen, range, message, "use single hyphens");
    }
    if let Some(bad) = name.chars().find(|c| !is_allowed(*c, checker.profile)) {
        checker.report_with_help(
            Code::NameCharacters,
            range,
            format!(
                "Skill name '{name}' contains invalid characters. \
                 Only letters, digits, and hyphens are allowed."
            ),
            format!("replace '{}'", bad.escape_debug()),
        );
    }
}

fn is_allowed(character: char, profile: Profile) -> bool {
    let lettered = match profile {
        // Python's `isalpha() and islower()`: letters without a case do not pass.
        Profile::DeepAgents => {
            (character.is_alphabetic() && character.is_lowercase()) || character.is_numeric()
        }
        // Python's `isalnum()`: marks that belong to a letter do not pass.
        Profile::Spec => character.is_alphanumeric() && !is_combining_mark(character),
        _ => character.is_alphanumeric(),
    };
    lettered || character == '-' || (character == '_' && profile == Profile::Prowess)
}
