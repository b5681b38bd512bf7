//! Looking into a workspace.

use serde::Serialize;

/// What is in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entries {
    /// The entries, in the order of names.
    pub entries: Vec<Entry>,
    /// How many more there are than [`crate::WorkspaceLimits::max_listed_entries`].
    pub omitted: u64,
}

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Entry {
    /// Its name, on one line, as far as it can be shown.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// How large it is, if it is a file.
    pub size_bytes: u64,
}

/// What an entry of a folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder; also a staged skill's link to one of the workspace's folders.
    Folder,
    /// A link that is not followed.
    Link,
    /// A pipe, a socket or a device.
    Special,
}
