//! What shall be different about a skill.

use prowess_catalog::SkillContents;
use serde::{Deserialize, Serialize};

use super::check::{self, Violations};
use super::error::DocumentError;
use super::files;
use super::read::Current;
use super::write;
use super::{DocumentFile, DocumentResource, DocumentServer, DocumentTool, SkillDocument};
use crate::version::SkillId;

/// What shall be different about a skill. What is not named stays as it is; a list that is named
/// replaces the list, and an empty one clears it. A file that is named without its content stays as
/// it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct DocumentChange {
    /// Its display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 100, pattern = "\\S"))]
    pub name: Option<String>,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 10, max_length = 500))]
    pub description: Option<String>,
    /// Its category.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 200))]
    pub category: Option<String>,
    /// Its semantic version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 200))]
    pub version: Option<String>,
    /// Whom it names as its author; an empty text names nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 200))]
    pub author: Option<String>,
    /// What is below the frontmatter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 10))]
    pub core_content: Option<String>,
    /// Its files, those in `scripts` excepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_items = 1000))]
    pub resources: Option<Vec<DocumentFile>>,
    /// Its files to be run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_items = 1000))]
    pub scripts: Option<Vec<DocumentFile>>,
    /// The tools that it declares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_items = 1000))]
    pub tool_configs: Option<Vec<DocumentTool>>,
    /// The level-3 content that it declares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_items = 1000))]
    pub resource_configs: Option<Vec<DocumentResource>>,
    /// The tools of MCP servers that it uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_items = 1000))]
    pub mcp_tool_configs: Option<Vec<DocumentServer>>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 500))]
    pub change_summary: Option<String>,
}

impl DocumentChange {
    /// The skill of this id as it is after the change. Frontmatter that says nothing else than
    /// before stays as it is, byte for byte; so do all files that the change does not name.
    pub fn apply(
        &self,
        contents: &SkillContents,
        id: &SkillId,
    ) -> Result<SkillContents, DocumentError> {
        let current = Current::of(contents)?;
        let mut target = self.overlay(&current.document).normalized();
        files::keep(&mut target, contents);
        let mut violations = Violations::default();
        check::summary(self.change_summary.as_deref(), &mut violations);
        check::lengths(&target, Some(&current.document), &mut violations);
        write::compose(&target, Some(&current), id, violations)
    }

    /// A document with what this names.
    fn overlay(&self, document: &SkillDocument) -> SkillDocument {
        let Self { name, description, category, version, author, core_content, .. } = self.clone();
        let Self { resources, scripts, tool_configs, resource_configs, mcp_tool_configs, .. } =
            self.clone();
        let old = document.clone();
        SkillDocument {
            id: old.id,
            name: name.unwrap_or(old.name),
            description: description.unwrap_or(old.description),
            category: category.unwrap_or(old.category),
            version: version.unwrap_or(old.version),
            author: author.or(old.author),
            core_content: core_content.unwrap_or(old.core_content),
            resources: resources.unwrap_or(old.resources),
            scripts: scripts.unwrap_or(old.scripts),
            tool_configs: tool_configs.unwrap_or(old.tool_configs),
            resource_configs: resource_configs.unwrap_or(old.resource_configs),
            mcp_tool_configs: mcp_tool_configs.unwrap_or(old.mcp_tool_configs),
        }
    }
}
