//! The properties of a skill as the reference library sees them.

use std::path::{Path, PathBuf};

use prowess_format::{Code, Diagnostic, Profile, Skill};
use serde_json::{Map, Value, json};

use crate::locate::{self, Links, Located};

/// A skill that has a name and a description of its own.
pub(crate) struct Properties {
    pub(crate) skill: Skill,
    /// Its file.
    pub(crate) file: PathBuf,
}

/// Why there are no properties, in the words of the reference library.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) String);

impl Properties {
    pub(crate) fn read(path: &Path) -> Result<Self, Refused> {
        Self::from_located(locate::locate(path, Profile::Spec))
    }

    pub(crate) fn from_located(located: Located) -> Result<Self, Refused> {
        let folder = located.folder.display().to_string();
        let file = located.file.clone();
        let checked = locate::check(located, Profile::Spec, Links::Ignore);
        let refused = |diagnostic: &Diagnostic| match diagnostic.code {
            Code::MissingSkillFile => Refused(format!("SKILL.md not found in {folder}")),
            _ => Refused(diagnostic.message.clone()),
        };
        let lacks = |diagnostic: &&Diagnostic| {
            matches!(
                diagnostic.code,
                Code::MissingName
                    | Code::EmptyName
                    | Code::MissingDescription
                    | Code::EmptyDescription
            )
        };
        let diagnostics = &checked.diagnostics;
        if let Some(missing) = diagnostics.iter().find(lacks) {
            return Err(refused(missing));
        }
        match (checked.skill, file) {
            (Some(skill), Ok(file)) => Ok(Self { skill, file }),
            _ => Err(diagnostics
                .first()
                .map_or_else(|| Refused(format!("Cannot read {folder}")), refused)),
        }
    }

    /// The name as it was written.
    pub(crate) fn name(&self) -> &str {
        self.skill.frontmatter.name().unwrap_or_else(|| self.skill.name())
    }

    /// The fields of the specification that are there, in its order.
    pub(crate) fn to_json(&self) -> Value {
        let frontmatter = &self.skill.frontmatter;
        let mut object = Map::new();
        object.insert("name".to_owned(), json!(self.name()));
        object.insert("description".to_owned(), json!(self.skill.description()));
        if let Some(license) = frontmatter.license() {
            object.insert("license".to_owned(), json!(license));
        }
        if let Some(compatibility) = frontmatter.compatibility() {
            object.insert("compatibility".to_owned(), json!(compatibility));
        }
        if let Some(tools) = frontmatter.raw().get("allowed-tools") {
            object.insert("allowed-tools".to_owned(), json!(tools));
        }
        if let Some(metadata) = frontmatter.metadata().filter(|metadata| !metadata.is_empty()) {
            let texts: Map<String, Value> = metadata
                .iter()
                .map(|entry| {
                    let text = entry.value.as_text().map(|text| json!(text));
                    (entry.key.clone(), text.unwrap_or_else(|| json!(entry.value)))
                })
                .collect();
            object.insert("metadata".to_owned(), Value::Object(texts));
        }
        Value::Object(object)
    }
}
