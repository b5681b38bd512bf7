//! Names of artifacts, and references to them.

use std::fmt;

use super::error::ArtifactError;
use crate::workspace::shown;

/// How the names of artifacts begin that belong to the user, not to a session.
const OF_USER: &str = "user:";
/// How a reference begins.
const SCHEME: &str = "artifact://";
/// The most bytes of a name.
const MAX_NAME_BYTES: usize = 512;

/// A reference to an artifact: `artifact://name` or `artifact://name@version`.
///
/// ```
/// use prowess_workspace::ArtifactRef;
///
/// let reference = ArtifactRef::parse("artifact://pref/report.txt@3").unwrap();
/// assert_eq!((reference.name.as_str(), reference.version), ("pref/report.txt", Some(3)));
/// assert_eq!(reference.to_string(), "artifact://pref/report.txt@3");
/// let mail = ArtifactRef::parse("artifact://mail@home").unwrap();
/// assert_eq!((mail.name.as_str(), mail.version), ("mail@home", None));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ArtifactRef {
    /// The name.
    pub name: String,
    /// The version; the newest if there is none.
    pub version: Option<u64>,
}

impl ArtifactRef {
    /// Takes a reference with or without `artifact://`. Digits behind the last `@` are a version;
    /// anything else belongs to the name.
    pub fn parse(text: &str) -> Result<Self, ArtifactError> {
        let text = text.strip_prefix(SCHEME).unwrap_or(text);
        let (name, version) = match split_version(text) {
            Some((name, digits)) => {
                let version = digits.parse().map_err(|_| ArtifactError::Name {
                    name: shown(text),
                    cause: "its version is too large",
                })?;
                (name, Some(version))
            }
            None => (text, None),
        };
        check_name(name)?;
        Ok(Self { name: name.to_owned(), version })
    }
}

impl fmt::Display for ArtifactRef {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{SCHEME}{}", self.name)?;
        self.version.map_or(Ok(()), |version| write!(formatter, "@{version}"))
    }
}

fn split_version(text: &str) -> Option<(&str, &str)> {
    let (name, digits) = text.rsplit_once('@')?;
    let is_version = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_version.then_some((name, digits))
}

/// Whether a name belongs to the user.
pub(super) fn is_of_user(name: &str) -> bool {
    name.starts_with(OF_USER)
}

/// Whether an artifact can have this name: one that could be a path below a folder, so that
/// nobody who writes artifacts to files is led astray by it.
pub(super) fn check_name(name: &str) -> Result<(), ArtifactError> {
    let bare = name.strip_prefix(OF_USER).unwrap_or(name);
    let cause = if bare.is_empty() {
        "it is empty"
    } else if name.len() > MAX_NAME_BYTES {
        "it is too long"
    } else if name.chars().any(|c| c.is_control() || c == '\\') {
        "it has a control character or a backslash"
    } else if bare.starts_with('/') {
        "it is absolute"
    } else if bare.split('/').any(|part| matches!(part, "" | "." | "..")) {
        "it has a part that is empty, '.' or '..'"
    } else if split_version(name).is_some() {
        "its end looks like a version"
    } else {
        return Ok(());
    };
    Err(ArtifactError::Name { name: shown(name), cause })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{ArtifactRef, check_name};

    #[test]
    fn hostile_names_are_refused() {
        let long = "x".repeat(513);
        for name in [
            "",
            "user:",
            "/etc/passwd",
            "user:/x",
            "../x",
            "a/../b",
            "user:../x",
            "a/..",
            ".",
            "a//b",
            "a/",
            "a\\b",
            "a\0b",
            "a\nb",
            "\u{85}",
            "x@1",
            "user:x@0",
            &long,
        ] {
            assert!(check_name(name).is_err(), "{name:?}");
            if let Err(error) = check_name(name) {
                assert_eq!(error.code(), "invalid_artifact_name");
            }
        }
    }

    #[test]
    fn ordinary_names_are_taken() {
        let long = "x".repeat(512);
        for name in
            ["a", "out/a.txt", "user:a", "...", "a b", "ä", "x@home", "x@1a", "%2e%2e", &long]
        {
            assert!(check_name(name).is_ok(), "{name:?}");
        }
    }

    #[test]
    fn references_are_taken_apart() {
        for (text, name, version) in [
            ("artifact://a", "a", None),
            ("a@7", "a", Some(7)),
            ("artifact://user:a@0", "user:a", Some(0)),
            ("a@b@12", "a@b", Some(12)),
            ("a@", "a@", None),
        ] {
            let reference = ArtifactRef::parse(text).unwrap();
            assert_eq!((reference.name.as_str(), reference.version), (name, version), "{text}");
        }
        for text in ["artifact://", "@3", "a@99999999999999999999999", "artifact://../x@1", "a@1@2"]
        {
            assert!(ArtifactRef::parse(text).is_err(), "{text}");
        }
    }
}
