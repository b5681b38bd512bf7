//! What can be typed behind `prowess source`.

use clap::{Args, Subcommand};

use super::CatalogArgs;

#[derive(Debug, Args)]
pub(crate) struct SourceArgs {
    #[command(subcommand)]
    pub(crate) command: SourceCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SourceCommand {
    /// Fetch a source and add it to prowess.toml.
    Add(SourceAddArgs),
    /// List the sources that flags, variables and prowess.toml name, and what is known of them.
    #[command(visible_alias = "ls")]
    List {
        #[command(flatten)]
        catalog: CatalogArgs,

        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Ask sources whether they have changed, and check what was fetched file by file.
    Refresh {
        /// Which ones; without any, all that are fetched.
        #[arg(value_name = "LOCATION")]
        locations: Vec<String>,

        #[command(flatten)]
        catalog: CatalogArgs,

        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Remove a source from prowess.toml, and what was fetched from it.
    #[command(visible_alias = "rm")]
    Remove {
        /// Which one: as it stands in prowess.toml, with or without its pin.
        location: String,

        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

impl SourceCommand {
    /// Whether JSON is wanted.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Add(arguments) => arguments.json,
            Self::List { json, .. } | Self::Refresh { json, .. } | Self::Remove { json, .. } => {
                *json
            }
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  prowess source add https://example.com/skills.zip --pin
  prowess source add https://example.com            its index of skills
  prowess source add ./skills.tar.gz

What is fetched is not trusted unless it is pinned: it hides no other skill. Loopback and private
addresses are refused; PROWESS_PRIVATE_ADDRESSES=10.1.2.3 lets this one through.")]
pub(crate) struct SourceAddArgs {
    /// A URL, an archive, or a folder: zip, tar, tar.gz, tgz, SKILL.md; the URL of a host alone
    /// stands for its index of skills. `#sha256=…` pins what must be there.
    pub(crate) location: String,

    /// Accept nothing but what is there now.
    #[arg(long)]
    pub(crate) pin: bool,

    /// Trust it, whatever comes from there. Prefer --pin.
    #[arg(long)]
    pub(crate) trust: bool,

    /// Write to prowess.toml in this folder, not to the one that is in effect.
    #[arg(long)]
    pub(crate) here: bool,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
