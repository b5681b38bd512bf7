//! How skills are shown.

use std::fmt::Write as _;

use bytes::Bytes;
use jiff::Timestamp;
use prowess_store::{
    DocumentFile, DocumentResource, DocumentServer, DocumentTool, Origin, Shelved, SkillDocument,
    Version, VersionedSkill, WaitingSkill,
};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::problem::Problem;

/// A skill in a list.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SkillSummary {
    id: String,
    /// Its display name.
    name: String,
    description: String,
    category: String,
    /// Its semantic version.
    version: String,
    author: Option<String>,
    is_builtin: bool,
    /// The number of the version that is used; none as long as nobody has activated one.
    active_version: Option<u64>,
    version_count: u64,
    tool_count: usize,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
    /// The number of the version that waits for a publisher, if one does and whoever asks makes
    /// versions.
    pending_version: Option<u64>,
    /// When it was loaded last. The last two, so that everything before can be kept ready.
    #[schema(value_type = Option<String>, format = DateTime)]
    last_used: Option<Timestamp>,
}

impl SkillSummary {
    fn new(skill: &VersionedSkill) -> Self {
        let about = &skill.active.about;
        Self {
            id: skill.id.to_string(),
            name: about.title.clone(),
            description: about.description.clone(),
            category: about.category.clone(),
            version: about.semantic_version.clone(),
            author: about.author.clone(),
            is_builtin: skill.origin == Origin::BuiltIn,
            active_version: Some(skill.active.number),
            version_count: skill.version_count,
            tool_count: about.tool_count,
            created_at: skill.created,
            updated_at: skill.updated,
            pending_version: None,
            last_used: None,
        }
    }

    fn waiting(skill: &WaitingSkill) -> Self {
        let about = &skill.version.about;
        Self {
            id: skill.id.to_string(),
            name: about.title.clone(),
            description: about.description.clone(),
            category: about.category.clone(),
            version: about.semantic_version.clone(),
            author: about.author.clone(),
            is_builtin: skill.origin == Origin::BuiltIn,
            active_version: None,
            version_count: skill.version_count,
            tool_count: about.tool_count,
            created_at: skill.created,
            updated_at: skill.updated,
            pending_version: Some(skill.version.number),
            last_used: None,
        }
    }

    /// Appends the text of a summary.
    pub(super) fn write(
        text: &mut String,
        shelved: &Shelved,
        pending: Option<u64>,
        last_used: Option<Timestamp>,
    ) -> Result<(), Problem> {
        let unused =
            |skill: &VersionedSkill| serde_json::to_string(&Self::new(skill)).unwrap_or_default();
        let row = shelved.row(unused);
        let beginning = row
            .strip_suffix("null,\"last_used\":null}")
            .ok_or_else(|| Problem::broken("a skill has no row in lists"))?;
        text.push_str(beginning);
        let pending = json!(pending);
        let end = match last_used {
            Some(time) => write!(text, "{pending},\"last_used\":\"{time}\"}}"),
            None => write!(text, "{pending},\"last_used\":null}}"),
        };
        end.map_err(Problem::broken)
    }

    /// Appends the text of a summary of a skill of which no version is used.
    pub(super) fn write_waiting(text: &mut String, skill: &WaitingSkill) -> Result<(), Problem> {
        let summary = serde_json::to_string(&Self::waiting(skill)).map_err(Problem::broken)?;
        text.push_str(&summary);
        Ok(())
    }
}

/// Everything about a skill, as one of its versions has it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SkillInfo {
    id: String,
    /// Its display name.
    name: String,
    description: String,
    category: String,
    /// Its semantic version.
    version: String,
    author: Option<String>,
    /// What is below the frontmatter.
    core_content: String,
    resources: Vec<DocumentFile>,
    scripts: Vec<DocumentFile>,
    tool_configs: Vec<DocumentTool>,
    resource_configs: Vec<DocumentResource>,
    mcp_tool_configs: Vec<DocumentServer>,
    is_builtin: bool,
    /// Whether it is a built-in skill that somebody has changed.
    has_custom_content: bool,
    /// The number of the version that is used; none as long as nobody has activated one.
    active_version: Option<u64>,
    /// The number of the version that this is.
    version_number: u64,
    version_count: u64,
    /// Counts its changes; the ETag begins with it.
    revision: u64,
    /// What identifies all files of this version.
    tree_digest: String,
    /// Who made this version.
    created_by: String,
    /// Why.
    change_summary: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
    /// The number of the version that waits for a publisher, if one does and whoever asks makes
    /// versions. The last one, so that everything before can be kept ready.
    pending_version: Option<u64>,
}

impl SkillInfo {
    /// A skill as it is used, for those who do not see what waits.
    pub(crate) fn active(skill: &VersionedSkill, document: SkillDocument) -> Self {
        let info = Self::new(Some(skill), skill.revision, &skill.active, document);
        Self { pending_version: None, ..info }
    }

    /// A skill of which no version is used yet.
    pub(super) fn waiting(skill: &WaitingSkill, document: SkillDocument) -> Self {
        let info = Self::new(None, skill.revision, &skill.version, document);
        Self {
            is_builtin: skill.origin == Origin::BuiltIn,
            version_count: skill.version_count,
            created_at: skill.created,
            updated_at: skill.updated,
            ..info
        }
    }

    /// A version of a skill, which may be used or not.
    pub(crate) fn new(
        skill: Option<&VersionedSkill>,
        revision: u64,
        version: &Version,
        document: SkillDocument,
    ) -> Self {
        Self {
            id: version.skill.to_string(),
            name: document.name,
            description: document.description,
            category: document.category,
            version: document.version,
            author: document.author,
            core_content: document.core_content,
            resources: document.resources,
            scripts: document.scripts,
            tool_configs: document.tool_configs,
            resource_configs: document.resource_configs,
            mcp_tool_configs: document.mcp_tool_configs,
            is_builtin: skill.is_some_and(|skill| skill.origin == Origin::BuiltIn),
            has_custom_content: skill.is_some_and(|skill| skill.is_changed),
            active_version: skill.map(|skill| skill.active.number),
            version_number: version.number,
            version_count: skill.map_or(version.number, |skill| skill.version_count),
            revision,
            tree_digest: version.tree_digest.to_string(),
            created_by: version.created_by.to_string(),
            change_summary: version.change_summary.clone(),
            created_at: skill.map_or(version.created, |skill| skill.created),
            updated_at: skill.map_or(version.created, |skill| skill.updated),
            pending_version: skill.map_or(Some(version.number), |skill| skill.pending),
        }
    }

    /// A skill in which nothing waits, and its version, as those see it for whom this one does.
    pub(super) fn with_pending(info: &Bytes, pending: Option<u64>) -> Result<Bytes, Problem> {
        let Some(number) = pending else { return Ok(info.clone()) };
        let beginning = info
            .strip_suffix(b"null}")
            .ok_or_else(|| Problem::broken("what is ready of a skill does not end as it should"))?;
        Ok([beginning, number.to_string().as_bytes(), b"}"].concat().into())
    }
}
