//! Which workspace belongs to which session.

use std::fmt;

use crate::key::key;

/// The name of a session's workspace: readable in part, different for every session, and never
/// anything but the name of one folder.
///
/// ```
/// use prowess_workspace::WorkspaceId;
///
/// let id = WorkspaceId::new("shop", "ann", "../../monday");
/// assert!(id.as_str().starts_with("ws_______monday_"));
/// assert_ne!(id, WorkspaceId::new("shop", "ann/..", "/../monday"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkspaceId(String);

impl WorkspaceId {
    /// The workspace of a session.
    pub fn new(app: &str, user: &str, session: &str) -> Self {
        Self(format!("ws_{}", key(session, &[app, user, session])))
    }

    /// The name of its folder.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Takes the name of a folder, if it can be one that we made.
    pub(crate) fn of_folder(name: &str) -> Option<Self> {
        let harmless = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        let ours = name.starts_with("ws_") && name.len() <= 80 && name.bytes().all(harmless);
        ours.then(|| Self(name.to_owned()))
    }
}

impl fmt::Display for WorkspaceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
