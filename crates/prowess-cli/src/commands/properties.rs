//! The properties of a skill as the reference library sees them.

use std::path::{Path, PathBuf};

use prowess_catalog::ScanLimits;
use prowess_format::yaml::{self, Node};
use prowess_format::{Code, Diagnostic, Profile, Skill};
use serde_json::{Map, Value, json};

use crate::locate::{self, Links, Located};

/// A skill that has a name and a description of its own.
pub(crate) struct Properties {
    pub(crate) skill: Skill,
    /// Its file.
    pub(crate) file: PathBuf,
    source: String,
}

/// Why there are no properties, in the words of the reference library.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) String);

impl Properties {
    pub(crate) fn read(path: &Path, limits: ScanLimits) -> Result<Self, Refused> {
        Self::from_located(locate::locate(path, Profile::Spec), limits)
    }

    pub(crate) fn from_located(located: Located, limits: ScanLimits) -> Result<Self, Refused> {
        let folder = located.folder.display().to_string();
        let file = located.file.clone();
        let checked = locate::check(located, Profile::Spec, Links::Ignore, limits);
        let refused = |diagnostic: &Diagnostic| match diagnostic.code {
            Code::MissingSkillFile => Refused(format!("SKILL.md not found in {folder}")),
            _ => Refused(diagnostic.message.clone()),
        };
        let skill = checked.skill.as_ref();
        let has_id = skill.is_some_and(|skill| skill.frontmatter.id().is_some());
        let lacks = |diagnostic: &&Diagnostic| match diagnostic.code {
            Code::MissingName | Code::EmptyName => !has_id,
            Code::MissingDescription | Code::EmptyDescription => true,
            _ => false,
        };
        let diagnostics = &checked.diagnostics;
        if let Some(missing) = diagnostics.iter().find(lacks) {
            return Err(refused(missing));
        }
        match (checked.skill, file) {
            (Some(skill), Ok(file)) => Ok(Self { skill, file, source: checked.source }),
            _ => Err(diagnostics
                .first()
                .map_or_else(|| Refused(format!("Cannot read {folder}")), refused)),
        }
    }

    /// The name as it was written.
    pub(crate) fn name(&self) -> &str {
        self.skill.frontmatter.name().unwrap_or_else(|| self.skill.name())
    }

    /// The name that identifies the skill: its `id`, else its name as it was written.
    pub(crate) fn id(&self) -> &str {
        self.skill.frontmatter.id().unwrap_or_else(|| self.name())
    }

    /// A value as the reference library has it: every scalar is the text that was written, and
    /// what is nested is one text, as Python shows it.
    fn reference_text(&self, node: &Node) -> String {
        match &node.value {
            yaml::Value::String(text) => text.clone(),
            yaml::Value::Sequence(items) => {
                let items: Vec<String> = items.iter().map(|item| self.python_text(item)).collect();
                format!("[{}]", items.join(", "))
            }
            yaml::Value::Mapping(mapping) => {
                let entries: Vec<String> = mapping
                    .iter()
                    .map(|entry| {
                        format!("{}: {}", python_string(&entry.key), self.python_text(&entry.value))
                    })
                    .collect();
                format!("{{{}}}", entries.join(", "))
            }
            _ => self.source.get(node.range.as_usize()).unwrap_or_default().to_owned(),
        }
    }

    fn python_text(&self, node: &Node) -> String {
        match &node.value {
            yaml::Value::Sequence(_) | yaml::Value::Mapping(_) => self.reference_text(node),
            _ => python_string(&self.reference_text(node)),
        }
    }

    /// The fields of the specification that are there, in its order.
    pub(crate) fn to_json(&self) -> Value {
        let frontmatter = &self.skill.frontmatter;
        let mut object = Map::new();
        object.insert("name".to_owned(), json!(self.name()));
        object.insert("description".to_owned(), json!(self.skill.description()));
        for key in ["license", "compatibility", "allowed-tools"] {
            if let Some(node) = frontmatter.raw().get(key) {
                let value = match node.as_sequence() {
                    Some(items) => json!(items),
                    None => json!(self.reference_text(node)),
                };
                object.insert(key.to_owned(), value);
            }
        }
        if let Some(metadata) = frontmatter.metadata().filter(|metadata| !metadata.is_empty()) {
            let texts: Map<String, Value> = metadata
                .iter()
                .map(|entry| (entry.key.clone(), json!(self.reference_text(&entry.value))))
                .collect();
            object.insert("metadata".to_owned(), Value::Object(texts));
        }
        Value::Object(object)
    }
}

/// A string as Python shows it inside a list or a dictionary.
fn python_string(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t");
    match text.contains('\'') && !text.contains('"') {
        true => format!("\"{escaped}\""),
        false => format!("'{}'", escaped.replace('\'', "\\'")),
    }
}
