//! What a path of a file tool means.

use std::path::Path;

use prowess_workspace::{ArtifactRef, WorkspacePath};

use crate::invalid::InvalidArguments;
use crate::place::{Places, below, folder};

/// What is to be read or listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// An artifact.
    Artifact(ArtifactRef),
    /// All artifacts.
    Artifacts,
    /// The first of these places in the workspace that is there.
    Places(Vec<WorkspacePath>),
}

/// Why a path cannot be read or listed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidTarget {
    #[error(
        "'{scheme}://' cannot be read; use a path, workspace://path or artifact://name[@version]"
    )]
    Scheme { scheme: String },
    #[error("'{scheme}://' cannot be read; use a path or artifact://name[@version]")]
    BackendScheme { scheme: String },
    #[error("'artifact://' names no artifact")]
    NoArtifact,
    #[error("an artifact is no folder; 'artifact://' lists artifacts")]
    NoFolder,
    #[error("artifacts can only be read; use a path")]
    ReadOnly,
}

impl Target {
    /// Reads the name of an artifact, or of all; `None` if it is a path. Other schemes are errors.
    pub(crate) fn artifact(text: &str) -> Result<Option<Self>, InvalidArguments> {
        match text.split_once("://") {
            None => Ok(None),
            Some(("artifact", "")) => Ok(Some(Self::Artifacts)),
            Some(("artifact", rest)) => Ok(Some(Self::Artifact(ArtifactRef::parse(rest)?))),
            Some((scheme, _)) => {
                Err(InvalidTarget::BackendScheme { scheme: scheme.to_owned() }.into())
            }
        }
    }

    /// Reads a path of a workspace; else says what is wrong with it.
    pub(crate) fn parse(text: &str, workspace: &Path) -> Result<Self, InvalidArguments> {
        let root = WorkspacePath::root();
        let place = match text.split_once("://") {
            Some(("artifact", _)) => {
                return Self::artifact(text).map(|artifact| artifact.unwrap_or(Self::Artifacts));
            }
            Some(("workspace", rest)) => below(&root, rest, text),
            Some((scheme, _)) => {
                return Err(InvalidTarget::Scheme { scheme: scheme.to_owned() }.into());
            }
            None => Places { workspace, run_dir: None }.resolve(text, &root),
        };
        let place = place?;
        let mut places = Vec::new();
        // A workspace has no folder `inputs`: what commands know by that name is in `work/`.
        let inside = place.as_str().strip_prefix("inputs");
        if let Some(inside) = inside.filter(|it| it.is_empty() || it.starts_with('/')) {
            places.push(folder("work").join(&place));
            if let Ok(path) = below(&root, inside, text)
                && !path.as_str().is_empty()
            {
                places.push(path);
            }
        }
        places.push(place);
        Ok(Self::Places(places))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Target, InvalidArguments> {
        Target::parse(text, Path::new("/data/ws"))
    }

    #[test]
    fn paths_lead_into_the_workspace() {
        let table: [(&str, &[&str]); 9] = [
            ("", &[""]),
            ("out/a.txt", &["out/a.txt"]),
            ("workspace://out/a.txt", &["out/a.txt"]),
            ("$OUTPUT_DIR/a.txt", &["out/a.txt"]),
            ("/out/a.txt", &["out/a.txt"]),
            ("/workspace/out/a.txt", &["out/a.txt"]),
            ("/data/ws/out/a.txt", &["out/a.txt"]),
            ("inputs/x", &["work/inputs/x", "x", "inputs/x"]),
            ("inputs", &["work/inputs", "inputs"]),
        ];
        for (text, expected) in table {
            let expected = expected.iter().map(|it| WorkspacePath::parse(it).unwrap()).collect();
            assert_eq!(parse(text).unwrap(), Target::Places(expected), "{text}");
        }
    }

    #[test]
    fn artifacts_have_names_and_versions() {
        let expected = ArtifactRef::parse("a/b.txt@2").unwrap();
        assert_eq!(parse("artifact://a/b.txt@2").unwrap(), Target::Artifact(expected));
        assert_eq!(parse("artifact://").unwrap(), Target::Artifacts);
    }

    #[test]
    fn paths_that_lead_elsewhere_are_refused() {
        let attacks = [
            "../x",
            "workspace://../x",
            "/etc/passwd",
            "/data/ws/../x",
            "$HOME/x",
            "file:///etc/x",
            "host:///etc/passwd",
            "artifact://../x",
            "inputs/../../x",
            "a\\b",
            "$RUN_DIR/x",
        ];
        for text in attacks {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
