//! What can be typed behind `prowess artifacts`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use prowess_runtime::SessionKey;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  prowess artifacts list --session s
  prowess artifacts get out/report.pdf@2 --session s --output report.pdf

Names that begin with user: are the user's, whatever the session. [artifacts] in prowess.toml says
where artifacts are kept: in files, in memory, or in a bucket.")]
pub(crate) struct ArtifactsArgs {
    #[command(subcommand)]
    pub(crate) command: ArtifactsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ArtifactsCommand {
    /// List the artifacts that a session sees, with their newest version.
    #[command(visible_alias = "ls")]
    List {
        #[command(flatten)]
        place: ArtifactPlaceArgs,
    },
    /// List the versions of an artifact.
    Versions {
        /// Its name.
        name: String,

        #[command(flatten)]
        place: ArtifactPlaceArgs,
    },
    /// Print an artifact, or write it to a file.
    Get {
        /// Its name; `name@version` is that version, not the newest.
        name: String,

        /// Write it to this file, which must not be there yet.
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,

        #[command(flatten)]
        place: ArtifactPlaceArgs,
    },
    /// Delete all versions of an artifact.
    #[command(visible_alias = "rm")]
    Delete {
        /// Its name.
        name: String,

        #[command(flatten)]
        place: ArtifactPlaceArgs,
    },
}

/// Whose artifacts, and for whom they are printed.
#[derive(Debug, Args)]
pub(crate) struct ArtifactPlaceArgs {
    /// The session: a name, or app/user/session.
    #[arg(long, value_name = "ID", default_value = "default")]
    pub(crate) session: SessionKey,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl ArtifactsCommand {
    /// Whose artifacts, and for whom they are printed.
    pub(crate) fn place(&self) -> &ArtifactPlaceArgs {
        match self {
            Self::List { place }
            | Self::Versions { place, .. }
            | Self::Get { place, .. }
            | Self::Delete { place, .. } => place,
        }
    }
}
