//! What a host can set of workspaces and artifacts: the section `[workspace]` of `prowess.toml`.

use prowess_workspace::WorkspaceLimits;
use serde::{Deserialize, Serialize};

/// How much workspaces and artifacts hold, and for how long: the section `[workspace]` of
/// `prowess.toml`.
///
/// ```toml
/// [workspace]
/// max_artifact_bytes = 67108864  # of one artifact
///
/// [workspace.limits]
/// max_age_seconds = 604800       # without use, then a workspace is garbage
/// max_total_bytes = 4294967296   # of all workspaces; beyond, the oldest are garbage
/// max_input_bytes = 67108864     # of one input
/// max_input_files = 10000        # of one input
/// max_input_depth = 32           # folders one below the other in an input
/// max_input_records = 1000       # inputs that are remembered
/// max_listed_entries = 10000     # of a folder
/// max_skill_wait_ms = 10000      # for commands that use another version of a skill
/// ```
///
/// Whoever makes [`Workspaces`](prowess_workspace::Workspaces) and a store of artifacts gives them
/// these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct WorkspaceSettings {
    /// Bytes of one artifact.
    pub max_artifact_bytes: u64,
    /// How much workspaces hold, and for how long.
    pub limits: WorkspaceLimits,
}

/// Why a section `[workspace]` cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("[workspace]: {0}")]
pub struct InvalidWorkspaceSettings(Box<toml::de::Error>);

impl InvalidWorkspaceSettings {
    /// The stable name.
    pub fn code(&self) -> &'static str {
        "invalid_workspace_settings"
    }
}

impl Default for WorkspaceSettings {
    fn default() -> Self {
        Self { max_artifact_bytes: 64 << 20, limits: WorkspaceLimits::default() }
    }
}

impl WorkspaceSettings {
    /// The settings in a section `[workspace]`.
    pub fn from_table(table: toml::Table) -> Result<Self, InvalidWorkspaceSettings> {
        table.try_into().map_err(|error| InvalidWorkspaceSettings(Box::new(error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<WorkspaceSettings, InvalidWorkspaceSettings> {
        WorkspaceSettings::from_table(toml::from_str(text).unwrap())
    }

    #[test]
    fn every_key_of_the_documentation_is_known_and_has_its_default() {
        assert_eq!(read("").unwrap(), WorkspaceSettings::default());
        let documentation = include_str!("workspace.rs").lines();
        let section = documentation
            .filter_map(|line| line.strip_prefix("/// "))
            .skip_while(|line| *line != "```toml")
            .skip(1)
            .take_while(|line| *line != "```");
        let section: Vec<&str> = section.collect();
        let mut file: toml::Table = toml::from_str(&section.join("\n")).unwrap();
        let Some(toml::Value::Table(table)) = file.remove("workspace") else { panic!("{file}") };
        let own = toml::Table::try_from(WorkspaceSettings::default()).unwrap();
        assert_eq!(table, own, "the documentation and the settings differ");
        assert_eq!(WorkspaceSettings::from_table(table).unwrap(), WorkspaceSettings::default());
    }

    #[test]
    fn a_section_says_what_is_different_and_wrong_settings_are_named() {
        let settings = read("max_artifact_bytes = 1\n[limits]\nmax_age_seconds = 2").unwrap();
        assert_eq!((settings.max_artifact_bytes, settings.limits.max_age_seconds), (1, 2));
        assert_eq!(settings.limits.max_input_files, WorkspaceLimits::default().max_input_files);
        for (text, expected) in [
            ("max_artefact_bytes = 1", "unknown field `max_artefact_bytes`, expected"),
            ("max_artifact_bytes = \"1 MB\"", "max_artifact_bytes"),
            ("[limits]\nmax_age = 1", "unknown field `max_age`, expected"),
            ("[limits]\nmax_age_seconds = -1", "max_age_seconds"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.to_string().starts_with("[workspace]: "), "{text}: {error}");
            assert!(error.to_string().contains(expected), "{text}: {error}");
            assert_eq!(error.code(), "invalid_workspace_settings");
        }
    }
}
