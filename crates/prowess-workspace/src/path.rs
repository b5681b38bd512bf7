//! Paths inside a workspace.

use std::fmt;

use serde::{Serialize, Serializer};

/// A path inside a workspace: relative to its root, without `..`; the root itself is empty.
///
/// ```
/// use prowess_workspace::WorkspacePath;
///
/// assert_eq!(WorkspacePath::parse("./out//a.txt").unwrap().as_str(), "out/a.txt");
/// assert!(WorkspacePath::parse("out/../../a").is_err());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkspacePath(String);

/// Why a text is no path inside a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidPath {
    /// It begins at the root.
    #[error("the path is absolute; paths are relative to the workspace")]
    Absolute,
    /// It goes up.
    #[error("the path leaves the workspace")]
    Escapes,
    /// It holds a control character or a backslash.
    #[error("the path has a control character or a backslash")]
    Character,
    /// It is longer than [`WorkspacePath::MAX_BYTES`], or one of its names is longer than
    /// [`WorkspacePath::MAX_NAME_BYTES`].
    #[error("the path is too long")]
    TooLong,
}

impl WorkspacePath {
    /// The most bytes of a path.
    pub const MAX_BYTES: usize = 1024;
    /// The most bytes of one name in a path.
    pub const MAX_NAME_BYTES: usize = 255;

    /// Takes a path as it was written. `.` and double slashes are dropped.
    pub fn parse(text: &str) -> Result<Self, InvalidPath> {
        if text.len() > Self::MAX_BYTES {
            return Err(InvalidPath::TooLong);
        }
        if text.chars().any(|c| c.is_control() || c == '\\') {
            return Err(InvalidPath::Character);
        }
        if text.starts_with('/') {
            return Err(InvalidPath::Absolute);
        }
        let mut names = Vec::new();
        for name in text.split('/') {
            match name {
                "" | "." => {}
                ".." => return Err(InvalidPath::Escapes),
                name if name.len() > Self::MAX_NAME_BYTES => return Err(InvalidPath::TooLong),
                name => names.push(name),
            }
        }
        Ok(Self(names.join("/")))
    }

    /// The root of the workspace.
    pub fn root() -> Self {
        Self::default()
    }

    /// A path below this one.
    pub fn join(&self, below: &Self) -> Self {
        match (self.0.as_str(), below.0.as_str()) {
            ("", _) => below.clone(),
            (_, "") => self.clone(),
            (above, below) => Self(format!("{above}/{below}")),
        }
    }

    /// The path with single slashes; empty for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The names that it consists of.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').filter(|name| !name.is_empty())
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Serialize for WorkspacePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}
