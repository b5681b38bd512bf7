//! Files of a skill in a document, and what its frontmatter says about them.

use std::collections::{HashMap, HashSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prowess_catalog::{
    ContentFile, InvalidResourcePath, ResourceKind, ResourcePath, SkillContents,
};
use prowess_format::yaml::{Mapping, Node, Value};
use prowess_format::{FileEntry, Frontmatter};

use super::{DocumentFile, Encoding, SkillDocument};
use crate::version::SKILL_FILE;

/// Which list of a document, and of the frontmatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    Resources,
    Scripts,
}

impl List {
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Resources => "resources",
            Self::Scripts => "scripts",
        }
    }

    /// Where a file is that nobody says anything about.
    fn by_nature(path: &ResourcePath) -> Self {
        match ResourceKind::of(path) {
            ResourceKind::Script => Self::Scripts,
            _ => Self::Resources,
        }
    }

    /// The path of a file that has only a name.
    fn path_of(self, name: &str) -> String {
        format!("{}/{name}", self.key())
    }

    fn entries(self, frontmatter: &Frontmatter) -> Vec<FileEntry> {
        match self {
            Self::Resources => frontmatter.resource_entries(),
            Self::Scripts => frontmatter.script_entries(),
        }
    }
}

/// The two lists of a skill: what its frontmatter mentions, in that order, and then everything
/// else in the order of paths.
pub(super) fn documents(
    contents: &SkillContents,
    frontmatter: &Frontmatter,
) -> (Vec<DocumentFile>, Vec<DocumentFile>) {
    let files = contents.files.iter().filter(|file| file.path.as_str() != SKILL_FILE);
    let files: HashMap<&str, &ContentFile> = files.map(|it| (it.path.as_str(), it)).collect();
    let mut mentioned = HashSet::new();
    let mut of_list = |list: List| -> Vec<DocumentFile> {
        let entries = list.entries(frontmatter).into_iter();
        let document = entries.map(|entry| {
            let path = entry.file.unwrap_or_else(|| list.path_of(&entry.name));
            let parsed = ResourcePath::parse(&path).ok();
            let path = parsed.map_or(path, |parsed| parsed.as_str().to_owned());
            let file = files.get(path.as_str()).filter(|_| mentioned.insert(path.clone()));
            DocumentFile {
                name: entry.name,
                description: entry.description,
                language: entry.language.filter(|language| !language.is_empty()),
                path: Some(path),
                ..file.map(|file| content_of(file)).unwrap_or_default()
            }
        });
        document.collect()
    };
    let (mut resources, mut scripts) = (of_list(List::Resources), of_list(List::Scripts));
    for file in &contents.files {
        let path = file.path.as_str();
        if path == SKILL_FILE || mentioned.contains(path) {
            continue;
        }
        let list = match List::by_nature(&file.path) {
            List::Resources => &mut resources,
            List::Scripts => &mut scripts,
        };
        let (name, path) = (path.to_owned(), Some(path.to_owned()));
        list.push(DocumentFile { name, path, ..content_of(file) });
    }
    (resources, scripts)
}

fn content_of(file: &ContentFile) -> DocumentFile {
    let (encoding, content) = encode(&file.bytes);
    let executable = file.executable;
    DocumentFile { content: Some(content), encoding, executable, ..DocumentFile::default() }
}

fn encode(bytes: &[u8]) -> (Encoding, String) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (Encoding::Utf8, text.to_owned()),
        Err(_) => (Encoding::Base64, STANDARD.encode(bytes)),
    }
}

/// Gives every file the form that [`documents`] gives it. One without a path is where a declaration
/// looks for it that names it so.
pub(super) fn normalize(files: &mut [DocumentFile], list: List, declared: &[&str]) {
    let declared: HashSet<ResourcePath> =
        declared.iter().filter_map(|path| ResourcePath::parse(path).ok()).collect();
    let place = |name: &str| match ResourcePath::parse(name) {
        Ok(path) if declared.contains(&path) => name.to_owned(),
        _ => list.path_of(name),
    };
    for file in files {
        let path = file.path.take().unwrap_or_else(|| place(&file.name));
        let parsed = ResourcePath::parse(&path).ok();
        file.path = Some(parsed.map_or(path, |parsed| parsed.as_str().to_owned()));
        file.language = file.language.take().filter(|language| !language.is_empty());
        match &file.content {
            None => (file.encoding, file.executable) = (Encoding::Utf8, false),
            Some(content) if file.encoding == Encoding::Base64 => {
                if let Ok(bytes) = STANDARD.decode(content) {
                    let (encoding, content) = encode(&bytes);
                    (file.encoding, file.content) = (encoding, Some(content));
                }
            }
            Some(_) => {}
        }
    }
}

/// Gives the files of a normalized document that it only names what they hold now.
pub(super) fn keep(document: &mut SkillDocument, contents: &SkillContents) {
    let files = || document.resources.iter().chain(&document.scripts);
    let given = files().filter(|file| file.content.is_some()).filter_map(|it| it.path.clone());
    let mut given: HashSet<String> = given.collect();
    for file in document.resources.iter_mut().chain(&mut document.scripts) {
        let path =
            file.path.as_deref().filter(|path| *path != SKILL_FILE && !given.contains(*path));
        let Some(kept) = path.and_then(|path| contents.file(path)) else { continue };
        given.insert(kept.path.as_str().to_owned());
        let DocumentFile { content, encoding, executable, .. } = content_of(kept);
        (file.content, file.encoding, file.executable) = (content, encoding, executable);
    }
}

/// Why a file of a document is none of a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    Path(InvalidResourcePath),
    Content,
}

/// A file of a document that was checked.
pub(super) struct Placed<'a> {
    /// Its place in its list.
    pub(super) at: usize,
    pub(super) file: &'a DocumentFile,
    pub(super) path: ResourcePath,
    /// `None` if it is only mentioned.
    pub(super) bytes: Option<Vec<u8>>,
}

impl<'a> Placed<'a> {
    /// A normalized file at a place of its list.
    pub(super) fn of(at: usize, file: &'a DocumentFile) -> Result<Self, Refused> {
        let path = file.path.as_deref().unwrap_or_default();
        let path = ResourcePath::parse(path).map_err(Refused::Path)?;
        let bytes = match (&file.content, file.encoding) {
            (None, _) => None,
            (Some(text), Encoding::Utf8) => Some(text.clone().into_bytes()),
            (Some(text), Encoding::Base64) => {
                Some(STANDARD.decode(text).map_err(|_| Refused::Content)?)
            }
        };
        Ok(Self { at, file, path, bytes })
    }

    /// Whether a list of files would not show it like this, unless the frontmatter mentions it.
    fn needs_entry(&self, list: List) -> bool {
        let DocumentFile { name, description, language, .. } = self.file;
        name != self.path.as_str()
            || !description.is_empty()
            || language.is_some()
            || self.bytes.is_none()
            || List::by_nature(&self.path) != list
    }
}

/// What the frontmatter must say so that files are listed like this; `None` if it need not say
/// anything. Keys of `old` that mean nothing to us are kept.
pub(super) fn entries(placed: &[Placed<'_>], list: List, old: Option<&Node>) -> Option<Vec<Node>> {
    let mentioned = placed.iter().take_while(|it| it.needs_entry(list)).count();
    let rest = &placed[mentioned..];
    let in_order = !rest.iter().any(|it| it.needs_entry(list))
        && rest.is_sorted_by(|a, b| a.path.as_str() < b.path.as_str());
    let mentioned = if in_order { &placed[..mentioned] } else { placed };
    (!mentioned.is_empty()).then(|| mentioned.iter().map(|it| entry(it, list, old)).collect())
}

fn entry(placed: &Placed<'_>, list: List, old: Option<&Node>) -> Node {
    let DocumentFile { name, description, language, .. } = placed.file;
    let path = placed.path.as_str();
    let text = |mapping: &Mapping, key: &str| mapping.get(key)?.as_text().map(str::to_owned);
    let is_same = |mapping: &&Mapping| {
        let Some(old_name) = text(mapping, "name") else { return false };
        old_name == *name && text(mapping, "file").unwrap_or(list.path_of(&old_name)) == path
    };
    let records = old.and_then(Node::as_sequence).unwrap_or_default();
    let mut entry = records.iter().filter_map(Node::as_mapping).find(is_same).cloned();
    let entry_mut = entry.get_or_insert_default();
    let mut put = |key: &str, value: &str| match value {
        "" => drop(entry_mut.remove(key)),
        value if text(entry_mut, key).as_deref() == Some(value) => {}
        value => entry_mut.set(key, value),
    };
    put("name", name);
    put("description", description);
    put("file", path);
    put("language", language.as_deref().unwrap_or_default());
    Node::new(Value::Mapping(entry.unwrap_or_default()))
}
