//! `prowess.toml`: what a project or a user sets for all.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::limits::ScanLimits;
use crate::merge::Precedence;
use crate::remote_limits::RemoteLimits;
use crate::roots::{Environment, Root, RootOrigin};
use crate::source::Trust;

/// The settings of a `prowess.toml`.
///
/// ```toml
/// [skills]
/// sources = ["./skills", "~/team-skills"]  # later ones win; relative to this file
/// untrusted_sources = ["./downloaded"]     # below all others; they hide nothing that is trusted
/// trusted_sources = ["https://example.com/skills.zip"]  # above all others, pinned or not
/// index_origins = ["https://cdn.example.com"]  # where an index of skills may send us
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
/// resource_depth = 16
/// resource_bytes = 67108864
///
/// [remote]
/// download_bytes = 67108864                # and the other fields of `RemoteLimits`
///
/// [artifacts]                              # where artifacts are kept
/// store = "file"
///
/// [sql]                                    # which databases are asked
/// default_connection = "default"
///
/// [chat]                                   # whom `prowess chat` talks with
/// model = "ollama:qwen3"
///
/// [jira]                                   # how Jira is asked
/// url = "https://jira.example.com"
///
/// [server]                                 # how `prowess serve` serves
/// port = 7171
///
/// [store]                                  # where sessions and versions are kept
/// url = "sqlite:/var/lib/prowess/prowess.db"
///
/// [telemetry]                              # where traces and metrics are sent
/// otlp_endpoint = "http://127.0.0.1:4318"
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
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
    /// `skills.index_origins`.
    pub index_origins: Vec<String>,
    /// `[scan]`.
    pub limits: ScanLimits,
    /// `[remote]`.
    pub remote: RemoteLimits,
    /// `[runtime]`, for the engine to read.
    pub runtime: toml::Table,
    /// `[exec]`, for the tools to read that run commands.
    pub exec: toml::Table,
    /// `[sql]`, for the tools to read that ask databases.
    pub sql: toml::Table,
    /// `[files]`, for the tools to read that read files.
    pub files: toml::Table,
    /// `[workspace]`, for the tools to read that keep what commands write.
    pub workspace: toml::Table,
    /// `[artifacts]`, for whoever keeps artifacts.
    pub artifacts: toml::Table,
    /// `[jira]`, for whoever asks Jira.
    pub jira: toml::Table,
    /// `[xlsx]`, for the tools to read that work on workbooks.
    pub xlsx: toml::Table,
    /// `[chat]`, for whoever talks with a model.
    pub chat: toml::Table,
    /// `[server]`, for whoever serves.
    pub server: toml::Table,
    /// `[store]`, for whoever keeps sessions and versions.
    pub store: toml::Table,
    /// `[telemetry]`, for whoever sends traces and metrics.
    pub telemetry: toml::Table,
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

impl ConfigError {
    /// The stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } => "unreadable_config",
            Self::Invalid { .. } => "invalid_config",
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct File {
    skills: Skills,
    scan: Scan,
    remote: RemoteLimits,
    runtime: toml::Table,
    exec: toml::Table,
    sql: toml::Table,
    files: toml::Table,
    workspace: toml::Table,
    artifacts: toml::Table,
    jira: toml::Table,
    xlsx: toml::Table,
    chat: toml::Table,
    server: toml::Table,
    store: toml::Table,
    telemetry: toml::Table,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Skills {
    sources: Vec<PathBuf>,
    untrusted_sources: Vec<PathBuf>,
    trusted_sources: Vec<PathBuf>,
    index_origins: Vec<String>,
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
    resource_depth: Option<usize>,
    resource_bytes: Option<u64>,
}

impl Config {
    /// The nearest `prowess.toml`: in the working directory or above it up to the repository's
    /// root, else in Prowess' own home. Without any, the defaults.
    pub fn find(environment: &Environment) -> Result<Self, ConfigError> {
        let mut folders = environment.project_folders();
        folders.reverse();
        folders.extend(environment.prowess_home());
        // Whatever has that name is meant: if it cannot be read, that is told.
        let file = folders
            .iter()
            .map(|folder| folder.join("prowess.toml"))
            .find(|file| fs::symlink_metadata(file).is_ok());
        match file {
            Some(file) => Self::read(&file, environment),
            None => Ok(Self::default()),
        }
    }

    /// Reads this file.
    pub fn read(path: &Path, environment: &Environment) -> Result<Self, ConfigError> {
        let text = fs::read_to_string(path)
            .map_err(|cause| ConfigError::Io { path: path.to_owned(), cause })?;
        let file: File = toml::from_str(&text).map_err(|cause| ConfigError::Invalid {
            path: path.to_owned(),
            cause: Box::new(cause),
        })?;
        let File { skills, scan, remote, .. } = file;
        let folder = path.parent().unwrap_or(Path::new("."));
        let roots = |sources: Vec<PathBuf>, trust: Option<Trust>| {
            let paths = sources.into_iter().map(|source| environment.resolve(folder, source));
            let roots = paths.map(|path| Root::new(path, RootOrigin::Configuration));
            roots.map(|root| Root { trust, ..root }).collect::<Vec<_>>()
        };
        let sources = [
            roots(skills.untrusted_sources, Some(Trust::Untrusted)),
            roots(skills.sources, None),
            roots(skills.trusted_sources, Some(Trust::Trusted)),
        ]
        .concat();
        let default = ScanLimits::default();
        Ok(Self {
            path: Some(path.to_owned()),
            runtime: file.runtime,
            exec: file.exec,
            sql: file.sql,
            files: file.files,
            workspace: file.workspace,
            artifacts: file.artifacts,
            jira: file.jira,
            xlsx: file.xlsx,
            chat: file.chat,
            server: file.server,
            store: file.store,
            telemetry: file.telemetry,
            sources,
            index_origins: skills.index_origins,
            remote,
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
                resource_depth: scan.resource_depth.unwrap_or(default.resource_depth),
                resource_bytes: scan.resource_bytes.unwrap_or(default.resource_bytes),
            },
        })
    }
}
