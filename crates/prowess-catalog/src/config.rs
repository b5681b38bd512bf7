//! `prowess.toml`: what a project or a user sets for all.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::limits::ScanLimits;
use crate::merge::Precedence;
use crate::roots::{Environment, Root, RootOrigin};

/// The settings of a `prowess.toml`.
///
/// ```toml
/// [skills]
/// sources = ["./skills", "~/team-skills"]  # later ones win; relative to this file
/// default_roots = true
/// precedence = "last-wins"                 # or "first-wins", "refuse-ambiguous"
///
/// [scan]
/// depth = 6
/// folders = 50000
/// entries = 500000
/// bytes = 1073741824
/// file_bytes = 10485760
/// resources = 10000
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// The file that was read, if there is one.
    pub path: Option<PathBuf>,
    /// `skills.sources`, resolved.
    pub sources: Vec<Root>,
    /// `skills.default_roots`.
    pub default_roots: Option<bool>,
    /// `skills.precedence`.
    pub precedence: Precedence,
    /// `[scan]`.
    pub limits: ScanLimits,
}

/// Why a `prowess.toml` could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// It cannot be read.
    #[error("cannot read {path}: {cause}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// It is not what it should be.
    #[error("{path}: {cause}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong, and on which line.
        cause: Box<toml::de::Error>,
    },
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct File {
    skills: Skills,
    scan: Scan,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Skills {
    sources: Vec<PathBuf>,
    default_roots: Option<bool>,
    precedence: PrecedenceWord,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
enum PrecedenceWord {
    #[default]
    LastWins,
    FirstWins,
    RefuseAmbiguous,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Scan {
    depth: Option<usize>,
    folders: Option<usize>,
    entries: Option<usize>,
    bytes: Option<u64>,
    file_bytes: Option<u64>,
    resources: Option<usize>,
}

impl Config {
    /// The nearest `prowess.toml`: in the working directory or above it up to the repository's
    /// root, else in Prowess' own home. Without any, the defaults.
    pub fn find(environment: &Environment) -> Result<Self, ConfigError> {
        let mut folders = environment.project_folders();
        folders.reverse();
        folders.extend(environment.prowess_home());
        let file = folders.iter().map(|folder| folder.join("prowess.toml")).find(|f| f.is_file());
        match file {
            Some(file) => Self::read(&file, environment),
            None => Ok(Self::default()),
        }
    }

    /// Reads this file.
    pub fn read(path: &Path, environment: &Environment) -> Result<Self, ConfigError> {
        let text = fs::read_to_string(path)
            .map_err(|cause| ConfigError::Io { path: path.to_owned(), cause })?;
        let File { skills, scan } = toml::from_str(&text).map_err(|cause| {
            ConfigError::Invalid { path: path.to_owned(), cause: Box::new(cause) }
        })?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let resolve = |source: PathBuf| {
            let path = match (source.strip_prefix("~"), &environment.home) {
                (Ok(rest), Some(home)) => home.join(rest),
                _ => folder.join(source),
            };
            Root { path, origin: RootOrigin::Configuration }
        };
        let default = ScanLimits::default();
        Ok(Self {
            path: Some(path.to_owned()),
            sources: skills.sources.into_iter().map(resolve).collect(),
            default_roots: skills.default_roots,
            precedence: match skills.precedence {
                PrecedenceWord::LastWins => Precedence::LastWins,
                PrecedenceWord::FirstWins => Precedence::FirstWins,
                PrecedenceWord::RefuseAmbiguous => Precedence::RefuseAmbiguous,
            },
            limits: ScanLimits {
                depth: scan.depth.unwrap_or(default.depth),
                folders: scan.folders.unwrap_or(default.folders),
                entries: scan.entries.unwrap_or(default.entries),
                bytes: scan.bytes.unwrap_or(default.bytes),
                file_bytes: scan.file_bytes.unwrap_or(default.file_bytes),
                resources: scan.resources.unwrap_or(default.resources),
            },
        })
    }
}
