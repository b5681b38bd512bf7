//! From the JSON of a version to a document.

use std::collections::HashSet;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use prowess_catalog::ResourcePath;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json, json};

use super::{ImportedVersion, Problems};
use crate::document::{ArgumentType, DocumentFile, SkillDocument};
use crate::version::SkillId;

type Object = Map<String, Json>;

/// The fields of a version.
const FIELDS: [&str; 15] = [
    "skill_id",
    "version_number",
    "semantic_version",
    "name",
    "description",
    "category",
    "author",
    "core_content",
    "resources",
    "scripts",
    "tool_configs",
    "resource_configs",
    "mcp_tool_configs",
    "created_at",
    "change_summary",
];

/// A version, if files can be made of it.
pub(super) fn version_of(
    key: &str,
    id: &SkillId,
    number: u64,
    snapshot: &Object,
    listed: Option<Timestamp>,
    problems: &mut Problems,
) -> Option<ImportedVersion> {
    let mut text = |field: &str| match snapshot.get(field) {
        None | Some(Json::Null) => None,
        Some(Json::String(text)) => Some(text.clone()),
        // `2.0` without quotes.
        Some(Json::Number(number)) => Some(number.to_string()),
        Some(other) => {
            problems.add(key, format!("`{field}` is {}; left out", shown(other)));
            None
        }
    };
    let name = text("name").filter(|name| !name.trim().is_empty());
    let description = text("description").filter(|text| !text.trim().is_empty());
    let (category, version) = (text("category"), text("semantic_version"));
    let (author, change_summary) = (text("author"), text("change_summary"));
    let body = text("core_content");
    if name.is_none() {
        problems.add(key, format!("has no `name`; it is called '{id}'"));
    }
    let name = name.unwrap_or_else(|| id.to_string());
    if description.is_none() {
        problems.add(key, format!("has no `description`; it is described as '{name}'"));
    }
    if body.is_none() {
        problems.add(key, "has no `core_content`; it is empty");
    }
    if snapshot.get("version_number").is_some_and(|it| it.as_u64() != Some(number)) {
        let other = shown(&snapshot["version_number"]);
        problems
            .add(key, format!("`version_number` is {other}; the key counts, which is {number}"));
    }
    for field in snapshot.keys().filter(|field| !FIELDS.contains(&field.as_str())) {
        problems.add(key, format!("`{field}` is not known, and is left out"));
    }
    let mut document = SkillDocument::new(
        name.as_str(),
        description.unwrap_or_else(|| name.clone()),
        body.unwrap_or_default(),
    );
    document.id = Some(id.to_string());
    document.category = category.unwrap_or(document.category);
    document.version = version.unwrap_or(document.version);
    document.author.clone_from(&author);
    let mut paths = HashSet::new();
    document.resources = files(key, snapshot, "resources", &mut paths, problems);
    document.scripts = files(key, snapshot, "scripts", &mut paths, problems);
    document.tool_configs = configs(key, snapshot, "tool_configs", problems);
    document.resource_configs = configs(key, snapshot, "resource_configs", problems);
    document.mcp_tool_configs = configs(key, snapshot, "mcp_tool_configs", problems);
    let document = document.normalized();
    if let Err(error) = document.contents(id) {
        problems.add(key, format!("{error}; the version is not imported"));
        return None;
    }
    let created = moment(key, snapshot, "created_at", problems).or(listed);
    Some(ImportedVersion { number, document, created, author, change_summary })
}

/// The items of a list.
fn items<'a>(key: &str, snapshot: &'a Object, field: &str, problems: &mut Problems) -> &'a [Json] {
    match snapshot.get(field) {
        None | Some(Json::Null) => &[],
        Some(Json::Array(items)) => items,
        Some(other) => {
            problems.add(key, format!("`{field}` is {}, not a list; left out", shown(other)));
            &[]
        }
    }
}

/// Files, each with a path that no other one has.
fn files(
    key: &str,
    snapshot: &Object,
    field: &str,
    paths: &mut HashSet<String>,
    problems: &mut Problems,
) -> Vec<DocumentFile> {
    let mut files: Vec<DocumentFile> = Vec::new();
    for (at, item) in items(key, snapshot, field, problems).iter().enumerate() {
        let mut file: DocumentFile = match read(item) {
            Ok(file) => file,
            Err(error) => {
                problems.add(key, format!("`{field}[{at}]` is left out: {error}"));
                continue;
            }
        };
        if file.name.trim().is_empty() {
            file.name = format!("{}-{}", field.trim_end_matches('s'), at + 1);
            problems.add(key, format!("`{field}[{at}]` has no name; it is called '{}'", file.name));
        }
        let wanted = file.path.clone().unwrap_or_else(|| format!("{field}/{}", file.name));
        let path = free_path(&wanted, &format!("{field}/{}", at + 1), paths);
        if path != wanted {
            problems.add(key, format!("`{field}[{at}]`: '{wanted}' is put at '{path}'"));
        }
        file.path = Some(path);
        files.push(file);
    }
    files
}

/// The path that is wanted, if a file can be there; else one that is like it, or another one.
fn free_path(wanted: &str, other: &str, paths: &mut HashSet<String>) -> String {
    let mended = || {
        let (folder, name) = wanted.split_once('/').unwrap_or(("resources", wanted));
        let keep = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ' ');
        let name: String = name.chars().map(|c| if keep(c) { c } else { '_' }).take(60).collect();
        let name = name.trim_start_matches(['.', '_', ' ']).trim_end().to_owned();
        match name.is_empty() {
            true => other.to_owned(),
            false => format!("{folder}/{name}"),
        }
    };
    let is_path = ResourcePath::parse(wanted).is_ok_and(|path| path.as_str() == wanted);
    let base = if is_path { wanted.to_owned() } else { mended() };
    let numbered = (2_u64..).map(|number| match base.rsplit_once('.') {
        Some((stem, end)) if !end.contains('/') => format!("{stem}-{number}.{end}"),
        _ => format!("{base}-{number}"),
    });
    let mut candidates = std::iter::once(base.clone()).chain(numbered);
    let free = candidates.find(|path| paths.insert(path.to_lowercase()));
    free.unwrap_or_else(|| base.clone())
}

/// Entries of a list of configurations, as far as they can be read.
fn configs<T: DeserializeOwned>(
    key: &str,
    snapshot: &Object,
    field: &str,
    problems: &mut Problems,
) -> Vec<T> {
    let mut configs = Vec::new();
    let mut names = HashSet::new();
    for (at, item) in items(key, snapshot, field, problems).iter().enumerate() {
        let mut item = item.clone();
        let name = item.get("name").and_then(Json::as_str).unwrap_or_default().to_owned();
        if field != "mcp_tool_configs" && (name.trim().is_empty() || !names.insert(name)) {
            let cause = "it has no name, or that of another one";
            problems.add(key, format!("`{field}[{at}]` is left out: {cause}"));
            continue;
        }
        mend_arguments(key, &format!("{field}[{at}]"), &mut item, problems);
        match read(&item) {
            Ok(config) => configs.push(config),
            Err(error) => problems.add(key, format!("`{field}[{at}]` is left out: {error}")),
        }
    }
    configs
}

/// Arguments as langchain-docker understands them: required unless they say otherwise, and texts if
/// their type is not known.
fn mend_arguments(key: &str, place: &str, tool: &mut Json, problems: &mut Problems) {
    let arguments = tool.get_mut("args").and_then(Json::as_array_mut);
    for (at, argument) in arguments.into_iter().flatten().enumerate() {
        let Some(argument) = argument.as_object_mut() else { continue };
        argument.entry("required").or_insert(json!(true));
        let kind = argument.entry("type").or_insert(json!("string"));
        if serde_json::from_value::<ArgumentType>(kind.clone()).is_err() {
            let cause = format!("`{place}.args[{at}].type` is {}; taken for string", shown(kind));
            problems.add(key, cause);
            *kind = json!("string");
        }
    }
}

/// Reads a value in which `null` stands for what is absent.
fn read<T: DeserializeOwned>(item: &Json) -> serde_json::Result<T> {
    let mut item = item.clone();
    if let Some(object) = item.as_object_mut() {
        object.retain(|_, value| !value.is_null());
    }
    serde_json::from_value(item)
}

/// A number that counts something.
pub(super) fn count(key: &str, object: &Object, field: &str, problems: &mut Problems) -> u64 {
    match object.get(field) {
        None | Some(Json::Null) => 0,
        Some(value) => value.as_u64().unwrap_or_else(|| {
            problems.add(key, format!("`{field}` is {}; taken for 0", shown(value)));
            0
        }),
    }
}

/// A time: with an offset, or in UTC without one.
pub(super) fn moment(
    key: &str,
    object: &Object,
    field: &str,
    problems: &mut Problems,
) -> Option<Timestamp> {
    let value = object.get(field).filter(|value| !value.is_null())?;
    let time = value.as_str().and_then(|text| {
        let naive = || -> Option<Timestamp> {
            let time: DateTime = text.parse().ok()?;
            time.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
        };
        text.parse::<Timestamp>().ok().or_else(naive)
    });
    if time.is_none() {
        problems.add(key, format!("`{field}` is {}, which is no time; left out", shown(value)));
    }
    time
}

/// A value, not longer than a line.
fn shown(value: &Json) -> String {
    let text = value.to_string();
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
