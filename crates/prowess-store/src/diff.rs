//! What differs between two versions of a skill.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use prowess_catalog::{ContentFile, SkillContents};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use similar::{ChangeTag, TextDiff};

use crate::document::SkillDocument;
use crate::version::SKILL_FILE;

/// So many lines before and behind a change are shown with it.
pub const CONTEXT_LINES: usize = 3;

/// So long the fewest changes are looked for. After that all changes are still told, but there may be
/// more of them than needed.
pub const FEWEST_CHANGES_TIME: Duration = Duration::from_secs(2);

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum FileStatus {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// It holds something else.
    Changed,
    /// It holds the same, and may be run where it might not, or the other way round.
    Mode,
}

/// A file that differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct FileDiff {
    /// Where it is in the skill's folder.
    pub path: String,
    /// What became of it.
    pub status: FileStatus,
    /// Whether one of the two is no text, so that there are no hunks.
    pub is_binary: bool,
    /// Whether it might be run before; absent if it was not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_executable: Option<bool>,
    /// Whether it may be run now; absent if it is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_executable: Option<bool>,
    /// How many lines are new.
    pub added: usize,
    /// How many lines are gone.
    pub removed: usize,
    /// All that differs, as unified hunks with their `@@` lines; never cut.
    pub hunks: String,
    /// For `SKILL.md`: which fields differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldDiff>,
}

/// A field that differs. What is absent is `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct FieldDiff {
    /// Its name: `description`, `tool_configs.sql_query`.
    pub field: String,
    /// What it held.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub from_value: Json,
    /// What it holds.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub to_value: Json,
}

/// Every file that differs, in the order of paths. A patch program that is given the hunks makes
/// `to` out of `from`.
pub fn compare(from: &SkillContents, to: &SkillContents) -> Vec<FileDiff> {
    let mut pairs: BTreeMap<&str, (Option<&ContentFile>, Option<&ContentFile>)> = BTreeMap::new();
    for file in &from.files {
        pairs.entry(file.path.as_str()).or_default().0 = Some(file);
    }
    for file in &to.files {
        pairs.entry(file.path.as_str()).or_default().1 = Some(file);
    }
    let deadline = Instant::now() + FEWEST_CHANGES_TIME;
    let differs = |(path, (old, new))| file_diff(path, old, new, deadline);
    let mut differences: Vec<FileDiff> = pairs.into_iter().filter_map(differs).collect();
    if let Some(own) = differences.iter_mut().find(|it| it.path == SKILL_FILE) {
        own.fields = field_diffs(from, to);
    }
    differences
}

fn file_diff(
    path: &str,
    old: Option<&ContentFile>,
    new: Option<&ContentFile>,
    deadline: Instant,
) -> Option<FileDiff> {
    let status = match (old, new) {
        (Some(old), Some(new)) if old.bytes != new.bytes => FileStatus::Changed,
        (Some(old), Some(new)) if old.executable != new.executable => FileStatus::Mode,
        (None, Some(_)) => FileStatus::Added,
        (Some(_), None) => FileStatus::Removed,
        _ => return None,
    };
    let (old_text, new_text) = (text(old), text(new));
    let lines = match (old_text, new_text) {
        (Some(old), Some(new)) => Some(Lines::of(old, new, deadline)),
        _ => None,
    };
    let is_binary = lines.is_none();
    let Lines { added, removed, hunks } = lines.unwrap_or_default();
    Some(FileDiff {
        path: path.to_owned(),
        status,
        is_binary,
        from_executable: old.map(|file| file.executable),
        to_executable: new.map(|file| file.executable),
        added,
        removed,
        hunks,
        fields: Vec::new(),
    })
}

/// How two texts differ.
#[derive(Default)]
struct Lines {
    added: usize,
    removed: usize,
    hunks: String,
}

impl Lines {
    fn of(old: &str, new: &str, deadline: Instant) -> Self {
        let old: Vec<&str> = old.split_inclusive('\n').collect();
        let new: Vec<&str> = new.split_inclusive('\n').collect();
        let diff = TextDiff::configure().deadline(deadline).diff_slices(&old, &new);
        let mut lines = Self::default();
        for group in diff.grouped_ops(CONTEXT_LINES) {
            let (mut before, mut after, mut hunk) = (None, None, String::new());
            for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
                match change.tag() {
                    ChangeTag::Insert => lines.added += 1,
                    ChangeTag::Delete => lines.removed += 1,
                    ChangeTag::Equal => {}
                }
                count(&mut before, change.old_index());
                count(&mut after, change.new_index());
                // Writing to a string cannot fail.
                let _ = write!(hunk, "{}{}", change.tag(), change.value());
                if !change.value().ends_with('\n') {
                    hunk.push_str("\n\\ No newline at end of file\n");
                }
            }
            let _ = write!(lines.hunks, "@@ -{} +{} @@\n{hunk}", range(before), range(after));
        }
        lines
    }
}

/// Counts a line of a hunk, if it is one of this side: where the first one is, and how many.
fn count(lines: &mut Option<(usize, usize)>, at: Option<usize>) {
    if let Some(at) = at {
        lines.get_or_insert((at + 1, 0)).1 += 1;
    }
}

/// The lines of a hunk as its head tells them. Only an empty file has none: elsewhere there is
/// context.
fn range(lines: Option<(usize, usize)>) -> String {
    match lines {
        None => "0,0".to_owned(),
        Some((first, 1)) => first.to_string(),
        Some((first, count)) => format!("{first},{count}"),
    }
}

/// What a file says, if a person can read it; nothing, if it is not there.
fn text(file: Option<&ContentFile>) -> Option<&str> {
    let bytes = file.map(|file| file.bytes.as_slice()).unwrap_or_default();
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

/// The fields of two skills that differ. A skill that is none has no fields.
fn field_diffs(from: &SkillContents, to: &SkillContents) -> Vec<FieldDiff> {
    let (from, to) = (fields(from), fields(to));
    let mut names: Vec<&str> = from.iter().map(|(name, _)| name.as_str()).collect();
    let new = to.iter().map(|(name, _)| name.as_str());
    let known: HashSet<&str> = names.iter().copied().collect();
    names.extend(new.filter(|name| !known.contains(name)));
    let value = |fields: &[(String, Json)], name: &str| {
        let found = fields.iter().find(|(it, _)| it == name);
        found.map_or(Json::Null, |(_, value)| value.clone())
    };
    let compared = names.into_iter().filter_map(|name| {
        let (from_value, to_value) = (value(&from, name), value(&to, name));
        let differs = from_value != to_value;
        differs.then(|| FieldDiff { field: name.to_owned(), from_value, to_value })
    });
    compared.collect()
}

/// All fields of a skill by their names, in the order of documents.
fn fields(contents: &SkillContents) -> Vec<(String, Json)> {
    let Ok(document) = SkillDocument::of(contents) else { return Vec::new() };
    let json = |value: serde_json::Result<Json>| value.unwrap_or_default();
    let mut fields = vec![
        ("name".to_owned(), Json::from(document.name)),
        ("description".to_owned(), Json::from(document.description)),
        ("category".to_owned(), Json::from(document.category)),
        ("version".to_owned(), Json::from(document.version)),
        ("author".to_owned(), Json::from(document.author)),
        ("core_content".to_owned(), Json::from(document.core_content)),
    ];
    for tool in &document.tool_configs {
        fields.push((format!("tool_configs.{}", tool.name), json(serde_json::to_value(tool))));
    }
    for it in &document.resource_configs {
        fields.push((format!("resource_configs.{}", it.name), json(serde_json::to_value(it))));
    }
    for it in &document.mcp_tool_configs {
        fields.push((format!("mcp_tool_configs.{}", it.server), json(serde_json::to_value(it))));
    }
    fields
}
