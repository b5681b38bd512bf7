//! From a document to files.

use prowess_catalog::{ContentFile, ResourcePath, SkillContents};
use prowess_format::yaml::{self, Limits, Mapping, Node, Value};
use prowess_format::{Options, Skill, split};

use super::check::{self, Violations};
use super::error::{DocumentError, Violation, first_of};
use super::files::{self, List, Placed};
use super::read::Current;
use super::splice::splice;
use super::{DocumentFile, SkillDocument, configs};
use crate::version::{SKILL_FILE, SkillId};

impl SkillDocument {
    /// The files of a skill of this id that this is the document of.
    pub fn contents(&self, id: &SkillId) -> Result<SkillContents, DocumentError> {
        compose(&self.clone().normalized(), None, id, Violations::default())
    }

    /// The id of a new skill that this is the document of: the one that it names, else the one that
    /// its name suggests. Everything that keeps it from being a skill is listed.
    pub fn validate_new(&self) -> Result<SkillId, DocumentError> {
        let target = self.clone().normalized();
        let mut violations = Violations::default();
        check::lengths(&target, None, &mut violations);
        let id = match &target.id {
            Some(id) => id.parse::<SkillId>().map_err(|cause| cause.to_string()),
            None => SkillId::suggested_by(&target.name).ok_or_else(|| {
                format!("no id can be made of the name '{}'; name one", target.name.escape_debug())
            }),
        };
        match id {
            Ok(id) => compose(&target, None, &id, violations).map(|_| id),
            Err(message) => {
                violations.add("/id", message.as_str());
                Checked::of(&target, None, violations)?;
                Err(invalid("/id", message))
            }
        }
    }
}

/// The skill that a normalized document describes, if nothing is wrong besides what is known to be.
pub(super) fn compose(
    target: &SkillDocument,
    current: Option<&Current<'_>>,
    id: &SkillId,
    violations: Violations,
) -> Result<SkillContents, DocumentError> {
    let checked = Checked::of(target, current, violations)?;
    let mapping = frontmatter(target, current, id, &checked)?;
    let text = text_of(target, current, &mapping)?;
    let name = current.map_or(id.as_str(), |current| current.skill.name());
    verify(&text, name, &mapping, &target.core_content)?;
    let path = ResourcePath::parse(SKILL_FILE).map_err(|cause| invalid("", cause.to_string()))?;
    let own = current.and_then(|current| current.contents.file(SKILL_FILE));
    let mut files = checked.kept;
    files.push(ContentFile::new(path, own.is_some_and(|own| own.executable), text));
    for placed in [checked.resources, checked.scripts].into_iter().flatten().flatten() {
        if let Some(bytes) = placed.bytes {
            files.push(ContentFile::new(placed.path, placed.file.executable, bytes));
        }
    }
    Ok(SkillContents::of(files))
}

/// A document that breaks no rule.
struct Checked<'a> {
    /// The files of a list that is not as before.
    resources: Option<Vec<Placed<'a>>>,
    scripts: Option<Vec<Placed<'a>>>,
    /// The files of the others.
    kept: Vec<ContentFile>,
}

impl<'a> Checked<'a> {
    fn of(
        target: &'a SkillDocument,
        current: Option<&Current<'_>>,
        mut violations: Violations,
    ) -> Result<Self, DocumentError> {
        let before = current.map(|current| &current.document);
        check::fields(target, before, &mut violations);
        let mut kept = Vec::new();
        let mut place = |list: List, new: &'a [DocumentFile], old: Option<&[DocumentFile]>| match (
            old, current,
        ) {
            (Some(old), Some(current)) if old == new => {
                kept.extend(old.iter().filter_map(|file| keep(file, current.contents)));
                None
            }
            _ => Some(check::placed(target, list, &mut violations)),
        };
        let old = before.map(|it| it.resources.as_slice());
        let resources = place(List::Resources, &target.resources, old);
        let old = before.map(|it| it.scripts.as_slice());
        let scripts = place(List::Scripts, &target.scripts, old);
        let lists = [
            (List::Resources, resources.as_deref().unwrap_or_default()),
            (List::Scripts, scripts.as_deref().unwrap_or_default()),
        ];
        check::collisions(&kept, &lists, &mut violations);
        let is_changed = before.is_none_or(|before| before != target);
        if is_changed {
            let placed = lists.iter().flat_map(|(_, placed)| *placed);
            let new = placed.filter_map(|it| it.bytes.as_ref()).map(Vec::len).sum::<usize>();
            let old = kept.iter().map(|file| file.bytes.len()).sum::<usize>();
            check::total(target.core_content.len() + new + old, &mut violations);
        }
        violations.finish()?;
        Ok(Self { resources, scripts, kept })
    }
}

/// The file that a document showed.
fn keep(file: &DocumentFile, contents: &SkillContents) -> Option<ContentFile> {
    file.content.as_ref()?;
    let old = contents.file(file.path.as_deref()?)?;
    Some(ContentFile::new(old.path.clone(), old.executable, old.bytes.clone()))
}

fn frontmatter(
    target: &SkillDocument,
    current: Option<&Current<'_>>,
    id: &SkillId,
    checked: &Checked<'_>,
) -> Result<Mapping, DocumentError> {
    let before = current.map(|current| &current.document);
    let differs = |is_same: fn(&SkillDocument, &SkillDocument) -> bool| {
        before.is_none_or(|before| !is_same(before, target))
    };
    let old = |key: &str| current.and_then(|current| current.field(key));
    let mut mapping = match current {
        Some(current) => current.skill.frontmatter.raw().clone(),
        None => {
            let mut mapping = Mapping::new();
            mapping.set("name", id.as_str());
            mapping
        }
    };
    if differs(|a, b| a.description == b.description) {
        mapping.set("description", target.description.as_str());
    }
    if differs(|a, b| a.name == b.name) {
        set_title(&mut mapping, &target.name, id)?;
    }
    if differs(|a, b| a.category == b.category) {
        mapping.set("category", target.category.as_str());
    }
    if differs(|a, b| a.version == b.version) {
        mapping.set("version", target.version.as_str());
    }
    if differs(|a, b| a.author == b.author) {
        match &target.author {
            Some(author) => mapping.set("author", author.as_str()),
            None => drop(mapping.remove("author")),
        }
    }
    if differs(|a, b| a.tool_configs == b.tool_configs) {
        let nodes = configs::tool_nodes(&target.tool_configs, old("tool_configs"));
        set_list(&mut mapping, "tool_configs", nodes);
    }
    if differs(|a, b| a.resource_configs == b.resource_configs) {
        let nodes = configs::resource_nodes(&target.resource_configs, old("resource_configs"));
        set_list(&mut mapping, "resource_configs", nodes);
    }
    if differs(|a, b| a.mcp_tool_configs == b.mcp_tool_configs) {
        let nodes = configs::server_nodes(&target.mcp_tool_configs, old("mcp_tool_configs"));
        set_list(&mut mapping, "mcp_tool_configs", nodes);
    }
    let lists = [(List::Resources, &checked.resources), (List::Scripts, &checked.scripts)];
    for (list, placed) in lists {
        if let Some(placed) = placed {
            let nodes = files::entries(placed, list, old(list.key()));
            set_list(&mut mapping, list.key(), nodes.unwrap_or_default());
        }
    }
    Ok(mapping)
}

/// A list; an empty one is left out.
fn set_list(mapping: &mut Mapping, key: &str, nodes: Vec<Node>) {
    match nodes.is_empty() {
        true => drop(mapping.remove(key)),
        false => mapping.set(key, nodes),
    }
}

/// Sets the display name: where it is, else as `metadata.title`. A skill whose title is its id
/// needs none.
fn set_title(mapping: &mut Mapping, title: &str, id: &SkillId) -> Result<(), DocumentError> {
    let has_id = mapping.get("id").is_some_and(|id| id.as_text().is_some());
    let mut metadata = match mapping.get("metadata").map(|node| &node.value) {
        None | Some(Value::Null) => Mapping::new(),
        Some(Value::Mapping(metadata)) => metadata.clone(),
        Some(_) => {
            let message = "cannot be set: `metadata` in the frontmatter is no mapping";
            return Err(invalid("/name", message));
        }
    };
    if has_id && metadata.get("title").is_none() {
        mapping.set("name", title);
        return Ok(());
    }
    match title == id.as_str() && !has_id {
        true => drop(metadata.remove("title")),
        false => metadata.set("title", title),
    }
    match metadata.is_empty() {
        true => drop(mapping.remove("metadata")),
        false => mapping.set("metadata", metadata),
    }
    Ok(())
}

/// The text with this frontmatter: that of before, changed as little as can be.
fn text_of(
    target: &SkillDocument,
    current: Option<&Current<'_>>,
    mapping: &Mapping,
) -> Result<String, DocumentError> {
    let body = target.core_content.as_str();
    let Some(current) = current else {
        return Ok(format!("---\n{}---\n{body}", yaml::write(mapping)));
    };
    let own = current.contents.file(SKILL_FILE).ok_or(DocumentError::NoSkillFile)?;
    let unreadable = || DocumentError::Unreadable(Vec::new());
    let text = std::str::from_utf8(&own.bytes).map_err(|_| unreadable())?;
    let parts = split(text, Limits::default().frontmatter_bytes).map_err(|_| unreadable())?;
    let old = current.skill.frontmatter.raw();
    let mut out = text[..parts.frontmatter.start].to_owned();
    match mapping == old {
        true => out.push_str(&text[parts.frontmatter.clone()]),
        false => {
            let changed = splice(text, parts.frontmatter.clone(), old, mapping);
            out.push_str(&changed.unwrap_or_else(|| yaml::write(mapping)));
        }
    }
    out.push_str(&text[parts.frontmatter.end..parts.body.start]);
    if !body.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    out.push_str(body);
    Ok(out)
}

/// Whether a text reads as what was written. It does not if it is too large for frontmatter, or if
/// values nest too deep.
fn verify(text: &str, name: &str, mapping: &Mapping, body: &str) -> Result<(), DocumentError> {
    let parsed = Skill::parse(text, &Options::new());
    let is_same = parsed.skill.as_ref().is_some_and(|skill| {
        skill.name() == name && skill.frontmatter.raw() == mapping && skill.body == body
    });
    match is_same {
        true => Ok(()),
        false => {
            let why = first_of(&parsed.diagnostics);
            Err(invalid("", format!("no SKILL.md can be made of the document: {why}")))
        }
    }
}

fn invalid(place: &str, message: impl Into<String>) -> DocumentError {
    DocumentError::Invalid(vec![Violation::new(place, message)])
}
