//! The files of a skill besides its `SKILL.md`.

use std::sync::Arc;

use prowess_format::Diagnostic;
use serde::{Deserialize, Serialize};

use crate::beneath::ResourcePath;
use crate::error::ReadError;

/// What a resource is for, from the folder that it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ResourceKind {
    /// Something to run: `scripts/`, `bin/`.
    Script,
    /// Something to read: `references/`, `reference/`, `docs/`, `examples/`.
    Reference,
    /// Something to use: `assets/`, `templates/`, `themes/`, `fonts/`.
    Asset,
    /// Everything else, files beside `SKILL.md` included.
    Other,
}

impl ResourceKind {
    /// The kind of a resource at this path.
    pub fn of(path: &ResourcePath) -> Self {
        let Some((folder, _)) = path.as_str().split_once('/') else { return Self::Other };
        match folder {
            "scripts" | "bin" => Self::Script,
            "references" | "reference" | "docs" | "examples" => Self::Reference,
            "assets" | "templates" | "themes" | "fonts" => Self::Asset,
            _ => Self::Other,
        }
    }

    /// `script`, `reference`, `asset` or `other`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Script => "script",
            Self::Reference => "reference",
            Self::Asset => "asset",
            Self::Other => "other",
        }
    }
}

/// A file of a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Resource {
    /// Where it is, relative to the skill's folder.
    pub path: ResourcePath,
    /// What it is for.
    pub kind: ResourceKind,
    /// How long it is.
    pub bytes: u64,
    /// Whether it may be run.
    pub executable: bool,
}

impl Resource {
    /// A file of so many bytes that is not run.
    pub fn new(path: ResourcePath, bytes: u64) -> Self {
        Self { kind: ResourceKind::of(&path), path, bytes, executable: false }
    }

    /// Whether it is a text that can be put into a prompt: `.md` or `.txt`, and not the
    /// `SKILL.md` of a skill inside.
    pub fn is_doc(&self) -> bool {
        let path = self.path.as_str().to_ascii_lowercase();
        let name = path.rsplit('/').next().unwrap_or_default();
        (name.ends_with(".md") || name.ends_with(".txt")) && name != "skill.md"
    }
}

/// When resources are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResourceDiscovery {
    /// When somebody asks, which is when a skill is loaded.
    #[default]
    Lazy,
    /// Together with the skills, at every refresh.
    Eager,
}

/// Which files count as resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ResourceScope {
    /// Files beside `SKILL.md` and one level down in every folder but `node_modules`.
    #[default]
    OneLevel,
    /// All files, however deep.
    Recursive,
    /// Files beside `SKILL.md`, and one level down only in `scripts/`, `references/` and `assets/`.
    ThreeFolders,
}

impl ResourceScope {
    /// Whether a file at this path counts.
    pub fn holds(self, path: &str) -> bool {
        let Some((folder, rest)) = path.split_once('/') else { return true };
        match self {
            Self::Recursive => true,
            Self::OneLevel => !rest.contains('/') && folder != "node_modules",
            Self::ThreeFolders => {
                !rest.contains('/') && matches!(folder, "scripts" | "references" | "assets")
            }
        }
    }
}

/// The resources of a skill, sorted by path, and whether there are more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceListing {
    /// The resources.
    pub resources: Vec<Resource>,
    /// What was left out and why: links that leave the skill, special files, limits.
    pub left_out: Vec<LeftOut>,
}

/// The resources of every skill of every source, in their order; a finding in place of those that
/// cannot be read.
pub(crate) type EagerResources = Vec<Vec<Result<Arc<ResourceListing>, Diagnostic>>>;

impl ResourceListing {
    /// Whether nothing was left out that may be content.
    pub(crate) fn check_whole(&self) -> Result<(), ReadError> {
        match self.left_out.iter().find(|left| left.reason.loses_content()) {
            Some(left) => {
                let (path, why) = (left.path.clone(), left.reason.as_str());
                Err(ReadError::Incomplete { path, why })
            }
            None => Ok(()),
        }
    }

    /// What counts in a scope, out of all files.
    pub fn within(&self, scope: ResourceScope) -> Self {
        let resources = self.resources.iter().filter(|it| scope.holds(it.path.as_str()));
        let left_out = self.left_out.iter().filter(|it| scope.holds(&it.path));
        Self { resources: resources.cloned().collect(), left_out: left_out.cloned().collect() }
    }
}

/// Something in a skill's folder that is no resource.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// Where it is, relative to the skill's folder.
    pub path: String,
    /// Why it was left out.
    pub reason: LeftOutReason,
}

impl LeftOut {
    /// Something that is no resource for this reason.
    pub fn new(path: impl Into<String>, reason: LeftOutReason) -> Self {
        Self { path: path.into(), reason }
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident $loses:literal $why:literal;)+) => {
        /// Why something is no resource.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum LeftOutReason { $($(#[$doc])* $variant,)+ }

        impl LeftOutReason {
            /// In words.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $why,)+ }
            }

            /// Whether it may be content of the skill, so that the skill is not whole without it.
            pub fn loses_content(self) -> bool {
                match self { $(Self::$variant => $loses,)+ }
            }
        }
    };
}

reasons! {
    /// A link to somewhere else.
    Outside false "it leads out of the skill's folder";
    /// A link to nothing.
    Dangling false "it is a link to nothing";
    /// A pipe, a socket or a device.
    Special false "it is not a regular file";
    /// The folder of a version control system.
    VersionControl false "it belongs to version control";
    /// A folder that a link leads to a second time.
    Again false "it is a folder that is listed already";
    /// The folder of a skill of its own.
    OtherSkill false "it is a skill of its own";
    /// Packages that others wrote; all files together hold them.
    Packages false "it is a folder of packages";
    /// The system refuses.
    Unreadable true "it cannot be read";
    /// Below more folders than [`crate::ScanLimits::resource_depth`] allows.
    TooDeep true "it is deeper than the limit `scan.resource_depth` allows";
    /// Beyond [`crate::ScanLimits::resources`].
    TooMany true "there are more files than the limit `scan.resources` allows";
    /// A name that no text can hold.
    Name true "its name is no path of a skill";
    /// A file that may be anybody's, in a source that is not trusted.
    HardLink true "it is a hard link, and the source is not trusted";
}
