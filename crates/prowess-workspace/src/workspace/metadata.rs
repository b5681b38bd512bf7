//! What is known about a workspace: `metadata.json`.

use serde::{Deserialize, Serialize};

/// Where an input came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputRecord {
    /// What was asked for: `artifact://name`.
    pub from: String,
    /// Where it is in the workspace.
    pub to: String,
    /// What that turned out to be: the name of the artifact, or a path.
    pub resolved: String,
    /// Its version, if it has versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// How it came.
    pub mode: InputMode,
    /// When, in RFC 3339; written by [`crate::Workspace::record_input`].
    #[serde(default)]
    pub at: String,
}

/// How an input comes into a workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputMode {
    /// As a copy.
    #[default]
    Copy,
    /// As a link.
    Link,
}
