//! What a document must be like.

use std::collections::{HashMap, HashSet};

use prowess_catalog::{ContentFile, ResourcePath, SKIPPED_FOLDERS};
use serde_json::Value as Json;
use unicode_normalization::UnicodeNormalization;

use super::error::{DocumentError, Violation};
use super::files::{List, Placed, Refused};
use super::{DocumentTool, SkillDocument};
use crate::version::SKILL_FILE;

/// The most characters of a display name.
pub const NAME_CHARS: usize = 100;
/// The fewest and the most characters of a description.
pub const DESCRIPTION_CHARS: (usize, usize) = (10, 500);
/// The fewest characters of a body.
pub const CORE_CONTENT_CHARS: usize = 10;
/// The most characters of a category, a version or an author.
pub const TEXT_CHARS: usize = 200;
/// The most characters that say why something was changed.
pub const CHANGE_SUMMARY_CHARS: usize = 500;
/// The most bytes of a body and all files together.
pub const DOCUMENT_BYTES: usize = 10 << 20;
/// The most entries of a list.
pub const LIST_ENTRIES: usize = 1_000;
/// The most values in the default of an argument.
pub const DEFAULT_VALUES: usize = 1_000;
/// The most folders that a file is in.
pub const FILE_FOLDERS: usize = 16;

/// Everything that is wrong.
#[derive(Debug, Default)]
pub(super) struct Violations(Vec<Violation>);

impl Violations {
    pub(super) fn add(&mut self, place: impl Into<String>, message: impl Into<String>) {
        self.0.push(Violation::new(place, message));
    }

    /// Whether nothing is wrong.
    pub(super) fn finish(self) -> Result<(), DocumentError> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(DocumentError::Invalid(self.0)),
        }
    }
}

/// Whether a field is another one than before.
fn differs<T: PartialEq + ?Sized>(
    target: &SkillDocument,
    current: Option<&SkillDocument>,
    field: impl Fn(&SkillDocument) -> &T,
) -> bool {
    current.is_none_or(|current| field(current) != field(target))
}

/// How long the fields are that differ from before.
pub(super) fn lengths(
    target: &SkillDocument,
    current: Option<&SkillDocument>,
    violations: &mut Violations,
) {
    let mut check = |place: &str, text: &str, least: usize, most: usize| {
        let chars = text.chars().count();
        if chars < least {
            let message = format!("must have at least {least} characters, not {chars}");
            violations.add(place, message);
        } else if chars > most {
            violations.add(place, format!("must have at most {most} characters, not {chars}"));
        }
    };
    let new =
        |field: fn(&SkillDocument) -> &str| differs(target, current, field).then(|| field(target));
    let (least, most) = DESCRIPTION_CHARS;
    for (place, text, least, most) in [
        ("/name", new(|it| &it.name), 1, NAME_CHARS),
        ("/description", new(|it| &it.description), least, most),
        ("/category", new(|it| &it.category), 1, TEXT_CHARS),
        ("/version", new(|it| &it.version), 1, TEXT_CHARS),
        ("/author", new(|it| it.author.as_deref().unwrap_or_default()), 0, TEXT_CHARS),
        ("/core_content", new(|it| &it.core_content), CORE_CONTENT_CHARS, usize::MAX),
    ] {
        if let Some(text) = text {
            check(place, text, least, most);
        }
    }
}

/// How long a summary is.
pub(super) fn summary(summary: Option<&str>, violations: &mut Violations) {
    let chars = summary.unwrap_or_default().chars().count();
    if chars > CHANGE_SUMMARY_CHARS {
        let message = format!("must have at most {CHANGE_SUMMARY_CHARS} characters, not {chars}");
        violations.add("/change_summary", message);
    }
}

/// Whether the fields can stand in frontmatter, those that differ from before.
pub(super) fn fields(
    target: &SkillDocument,
    current: Option<&SkillDocument>,
    violations: &mut Violations,
) {
    for (place, text) in [("/name", &target.name), ("/description", &target.description)] {
        if text.trim().is_empty() && !violations.0.iter().any(|it| it.place == place) {
            violations.add(place, "must not be empty");
        }
    }
    if differs(target, current, |it| &it.tool_configs) {
        let names = target.tool_configs.iter().map(|it| it.name.as_str());
        distinct(names, "/tool_configs", "name", violations);
        for (at, tool) in target.tool_configs.iter().enumerate().take(LIST_ENTRIES) {
            arguments(tool, &format!("/tool_configs/{at}/args"), violations);
        }
    }
    if differs(target, current, |it| &it.resource_configs) {
        let names = target.resource_configs.iter().map(|it| it.name.as_str());
        distinct(names, "/resource_configs", "name", violations);
    }
    if differs(target, current, |it| &it.mcp_tool_configs) {
        let servers = &target.mcp_tool_configs;
        long(servers.len(), "/mcp_tool_configs", violations);
        for (at, server) in servers.iter().enumerate().take(LIST_ENTRIES) {
            let place = format!("/mcp_tool_configs/{at}");
            if server.server.trim().is_empty() {
                violations.add(format!("{place}/server"), "must not be empty");
            }
            long(server.tools.len(), &format!("{place}/tools"), violations);
            for (at, tool) in server.tools.iter().enumerate().take(LIST_ENTRIES) {
                if tool.trim() != tool || tool.is_empty() {
                    let message = "must be a name without blanks around it";
                    violations.add(format!("{place}/tools/{at}"), message);
                }
            }
        }
    }
}

fn arguments(tool: &DocumentTool, list: &str, violations: &mut Violations) {
    distinct(tool.args.iter().map(|it| it.name.as_str()), list, "name", violations);
    for (at, argument) in tool.args.iter().enumerate().take(LIST_ENTRIES) {
        let mut left = DEFAULT_VALUES;
        if argument.default.as_ref().is_some_and(|default| !count(default, &mut left)) {
            let message = format!("must hold at most {DEFAULT_VALUES} values");
            violations.add(format!("{list}/{at}/default"), message);
        }
    }
}

/// Whether a value has no more parts than are left.
fn count(value: &Json, left: &mut usize) -> bool {
    let Some(rest) = left.checked_sub(1) else { return false };
    *left = rest;
    match value {
        Json::Array(items) => items.iter().all(|item| count(item, left)),
        Json::Object(entries) => entries.values().all(|item| count(item, left)),
        _ => true,
    }
}

fn long(entries: usize, list: &str, violations: &mut Violations) {
    if entries > LIST_ENTRIES {
        let message = format!("must have at most {LIST_ENTRIES} entries, not {entries}");
        violations.add(list, message);
    }
}

/// Whether names are there, and differ.
fn distinct<'a>(
    names: impl ExactSizeIterator<Item = &'a str>,
    list: &str,
    key: &str,
    violations: &mut Violations,
) {
    long(names.len(), list, violations);
    let mut seen = HashSet::new();
    for (at, name) in names.enumerate().take(LIST_ENTRIES) {
        if name.trim().is_empty() {
            violations.add(format!("{list}/{at}/{key}"), "must not be empty");
        } else if !seen.insert(name) {
            let message = format!("'{name}' stands in the list twice; choose another name");
            violations.add(format!("{list}/{at}/{key}"), message);
        }
    }
}

/// The files of a list, those that can be files of a skill.
pub(super) fn placed<'a>(
    document: &'a SkillDocument,
    list: List,
    violations: &mut Violations,
) -> Vec<Placed<'a>> {
    let files = match list {
        List::Resources => &document.resources,
        List::Scripts => &document.scripts,
    };
    long(files.len(), &format!("/{}", list.key()), violations);
    let mut all = Vec::with_capacity(files.len().min(LIST_ENTRIES));
    for (at, file) in files.iter().enumerate().take(LIST_ENTRIES) {
        let place = format!("/{}/{at}", list.key());
        if file.name.trim().is_empty() {
            violations.add(format!("{place}/name"), "must not be empty");
        }
        match Placed::of(at, file) {
            Ok(placed) => {
                if let Some(message) = misplaced(&placed.path) {
                    violations.add(format!("{place}/path"), message);
                }
                all.push(placed);
            }
            Err(Refused::Content) => {
                violations.add(format!("{place}/content"), "is not base64 with padding");
            }
            Err(Refused::Path(cause)) => {
                let path = file.path.as_deref().unwrap_or_default().escape_debug();
                let path: String = path.take(120).collect();
                violations.add(format!("{place}/path"), format!("'{path}': {cause}"));
            }
        }
    }
    all
}

/// Why no skill keeps a file there.
fn misplaced(path: &ResourcePath) -> Option<String> {
    let mut folders: Vec<&str> = path.as_str().split('/').collect();
    folders.pop();
    if folders.len() > FILE_FOLDERS {
        return Some(format!("must be below at most {FILE_FOLDERS} folders"));
    }
    let is_skipped = |it: &&&str| **it != "node_modules" && SKIPPED_FOLDERS.contains(*it);
    folders.iter().find(is_skipped).map(|folder| {
        format!("'{folder}' belongs to version control, and is no part of a skill; leave it out")
    })
}

/// Whether files have paths that no file system and no archive confuses. Files that were there
/// before are as they are.
pub(super) fn collisions(
    kept: &[ContentFile],
    lists: &[(List, &[Placed<'_>])],
    violations: &mut Violations,
) {
    let mut claims: HashMap<String, (String, bool)> = HashMap::new();
    for path in kept.iter().map(|file| file.path.as_str()).chain([SKILL_FILE]) {
        for folder in folders_of(path) {
            claims.entry(confused(folder)).or_insert((folder.to_owned(), false));
        }
        claims.insert(confused(path), (path.to_owned(), true));
    }
    for (list, placed) in lists {
        for placed in *placed {
            let path = placed.path.as_str();
            let mut taken = None;
            for folder in folders_of(path) {
                let claim =
                    claims.entry(confused(folder)).or_insert((folder.to_owned(), false)).clone();
                if claim != (folder.to_owned(), false) {
                    taken = Some(claim.0);
                }
            }
            let before = claims.insert(confused(path), (path.to_owned(), true));
            if let Some(other) = before.map(|(other, _)| other).or(taken) {
                let message = match other == SKILL_FILE {
                    true => "SKILL.md is made of the other fields; choose another path".to_owned(),
                    false => format!("'{path}' is the path of another file, '{other}'"),
                };
                violations.add(format!("/{}/{}/path", list.key(), placed.at), message);
            }
        }
    }
}

/// The folders on the way to a path.
fn folders_of(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(end, _)| &path[..end])
}

/// One path for all that file systems and readers confuse.
fn confused(path: &str) -> String {
    match path.is_ascii() {
        true => path.to_ascii_lowercase(),
        false => path.nfkc().flat_map(char::to_lowercase).nfkc().collect(),
    }
}

/// How much all of it is.
pub(super) fn total(bytes: usize, violations: &mut Violations) {
    if bytes > DOCUMENT_BYTES {
        let message = format!("all files together must have at most {DOCUMENT_BYTES} bytes");
        violations.add("", message);
    }
}
