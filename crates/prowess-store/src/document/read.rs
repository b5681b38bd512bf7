//! From files to a document.

use prowess_catalog::SkillContents;
use prowess_format::yaml::Node;
use prowess_format::{Diagnostic, Options, Skill};

use super::configs;
use super::error::DocumentError;
use super::files;
use super::{SkillDocument, category, version};
use crate::version::{About, SKILL_FILE, SkillId};

/// A skill that can be stored: which one it is, and what it says about itself.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SkillReading {
    /// Its id: the name in its `SKILL.md`.
    pub id: SkillId,
    /// What it says about itself.
    pub about: About,
    /// What there is to say about its `SKILL.md`, with lines.
    pub diagnostics: Vec<Diagnostic>,
}

impl SkillReading {
    /// Reads the `SKILL.md` among the files of a skill.
    pub fn of(contents: &SkillContents) -> Result<Self, DocumentError> {
        let exists = |path: &str| contents.file(path).is_some();
        let (skill, diagnostics) = parse(contents, &Options::new().checking_links(&exists))?;
        Ok(Self { id: skill.name().parse()?, about: About::of(&skill), diagnostics })
    }
}

/// The skill that the `SKILL.md` is, and what there is to say about it.
fn parse(
    contents: &SkillContents,
    options: &Options<'_>,
) -> Result<(Skill, Vec<Diagnostic>), DocumentError> {
    let file = contents.file(SKILL_FILE).ok_or(DocumentError::NoSkillFile)?;
    let parsed = Skill::parse_bytes(&file.bytes, options);
    let located = |it: Diagnostic| it.with_path(SKILL_FILE);
    let diagnostics = parsed.diagnostics.into_iter().map(located).collect();
    match parsed.skill {
        Some(skill) => Ok((skill, diagnostics)),
        None => Err(DocumentError::Unreadable(diagnostics)),
    }
}

/// A skill as it is, as files, as a skill and as a document.
pub(super) struct Current<'a> {
    pub(super) contents: &'a SkillContents,
    pub(super) skill: Skill,
    pub(super) document: SkillDocument,
}

impl<'a> Current<'a> {
    pub(super) fn of(contents: &'a SkillContents) -> Result<Self, DocumentError> {
        let (skill, _) = parse(contents, &Options::new())?;
        let about = About::of(&skill);
        let frontmatter = &skill.frontmatter;
        let (resources, scripts) = files::documents(contents, frontmatter);
        let document = SkillDocument {
            id: Some(skill.name().to_owned()),
            name: about.title,
            description: about.description,
            category: about.category,
            version: about.semantic_version,
            author: about.author.filter(|author| !author.is_empty()),
            core_content: skill.body.clone(),
            resources,
            scripts,
            tool_configs: configs::tools(frontmatter),
            resource_configs: configs::resources(frontmatter),
            mcp_tool_configs: configs::servers(frontmatter),
        };
        Ok(Self { contents, skill, document })
    }

    /// What a field of the frontmatter holds.
    pub(super) fn field(&self, key: &str) -> Option<&Node> {
        self.skill.frontmatter.raw().get(key)
    }
}

impl SkillDocument {
    /// The document of a skill with these files.
    pub fn of(contents: &SkillContents) -> Result<Self, DocumentError> {
        Current::of(contents).map(|current| current.document)
    }

    /// The document as [`SkillDocument::of`] would give it: every file with its path, texts as
    /// text, fields of one line without blanks around them, and defaults for those that are empty.
    pub fn normalized(mut self) -> Self {
        let trimmed = |text: &str, default: fn() -> String| match text.trim() {
            "" => default(),
            text => text.to_owned(),
        };
        self.description = self.description.trim().to_owned();
        self.category = trimmed(&self.category, category);
        self.version = trimmed(&self.version, version);
        self.author = self.author.map(|it| it.trim().to_owned()).filter(|it| !it.is_empty());
        let files = self.resource_configs.iter().filter_map(|it| it.file.as_deref());
        let scripts = self.tool_configs.iter().filter_map(|it| it.script.as_deref());
        let declared: Vec<&str> = files.chain(scripts).collect();
        files::normalize(&mut self.resources, files::List::Resources, &declared);
        files::normalize(&mut self.scripts, files::List::Scripts, &declared);
        for argument in self.tool_configs.iter_mut().flat_map(|tool| &mut tool.args) {
            argument.default = argument.default.take().filter(|value| !value.is_null());
        }
        self
    }
}
