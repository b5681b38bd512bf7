//! What can be typed behind `prowess skills`.

use std::fmt;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use prowess_store::CHANGE_SUMMARY_CHARS;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  prowess skills push skills/ --message 'Say where the tables are'
  prowess skills versions pdf
  prowess skills diff pdf                     what the active version has changed
  prowess skills activate pdf 3               go back, or forward, to version 3
  prowess skills pull pdf --version 2 --to /tmp
  PROWESS_KEY=… prowess skills list --server https://skills.example.com

The registry is $PROWESS_HOME/prowess.db, or that of a running `prowess serve` with --server. A
version never changes, and none is ever removed.")]
pub(crate) struct SkillsArgs {
    #[command(subcommand)]
    pub(crate) command: SkillsCommand,

    #[command(flatten)]
    pub(crate) place: RegistryArgs,
}

/// Whose registry is meant.
#[derive(Debug, Args)]
pub(crate) struct RegistryArgs {
    /// The address of a running server, as in http://127.0.0.1:7171. Without it, the registry of
    /// this machine.
    #[arg(long, global = true, value_name = "URL", env = "PROWESS_SERVER")]
    pub(crate) server: Option<String>,

    /// A key of that server. The variable keeps it out of the list of processes.
    #[arg(long, global = true, value_name = "KEY", env = "PROWESS_KEY", hide_env_values = true)]
    pub(crate) key: Option<ServerKey>,
}

/// A key that nothing prints.
#[derive(Clone)]
pub(crate) struct ServerKey(String);

impl ServerKey {
    /// The key itself.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ServerKey {
    fn from(text: &str) -> Self {
        Self(text.trim().to_owned())
    }
}

impl fmt::Debug for ServerKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ServerKey(…)")
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum SkillsCommand {
    /// List the skills of the registry.
    #[command(visible_alias = "ls")]
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Make versions of skills that are files here.
    Push(PushArgs),
    /// Write the files of a version into a folder.
    Pull(PullArgs),
    /// List the versions of a skill, the newest first.
    Versions {
        /// The id of the skill.
        name: String,

        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Decide which version is used, from the next load on.
    Activate {
        /// The id of the skill.
        name: String,

        /// The number of the version.
        #[arg(value_name = "VERSION")]
        number: u64,

        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show how two versions differ: every file, nothing cut.
    Diff(DiffArgs),
    /// Use a built-in skill as it was shipped; that becomes a version too.
    Reset {
        /// The id of the skill.
        name: String,

        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Hide a skill. Nothing is asked, and its versions stay.
    Delete {
        /// The id of the skill.
        name: String,

        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Bring the skills that langchain-docker keeps in Redis, with all their versions.
    ImportRedis(ImportRedisArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  prowess skills push my-skill
  prowess skills push skills/ pack.zip --message 'Mend the tables' --no-activate

What the active version holds already is left alone. A skill with errors is refused, and the others
are pushed. With a server, an editor's version waits until a publisher activates it.

Exit codes: 0 ok, 1 something was refused, 2 usage.")]
pub(crate) struct PushArgs {
    /// Skill folders, folders of skills, SKILL.md files (their whole folder is pushed), or archives
    /// (zip, tar, tar.gz).
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// Why, for the history.
    #[arg(long, short, value_name = "TEXT", value_parser = message)]
    pub(crate) message: Option<String>,

    /// Keep using the version that is active. A skill that is new waits until one is activated.
    #[arg(long)]
    pub(crate) no_activate: bool,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(disable_version_flag = true)]
#[command(after_help = "\
Examples:
  prowess skills pull pdf                     ./pdf, as the active version has it
  prowess skills pull pdf --version 2 --to old --force")]
pub(crate) struct PullArgs {
    /// The id of the skill.
    pub(crate) name: String,

    /// The number of a version; without it, the active one, or the one that waits if none is.
    #[arg(long, value_name = "N")]
    pub(crate) version: Option<u64>,

    /// The folder in which the skill's own folder is made.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub(crate) to: PathBuf,

    /// Replace the skill's folder if it is there: what is in it is gone.
    #[arg(long)]
    pub(crate) force: bool,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  prowess skills diff pdf                     the version before the active one, and the active one
  prowess skills diff pdf 2                   version 2, and the active one
  prowess skills diff pdf 2 5 | patch -d pdf -p1")]
pub(crate) struct DiffArgs {
    /// The id of the skill.
    pub(crate) name: String,

    /// The number of a version; without it, the one before TO.
    pub(crate) from: Option<u64>,

    /// The number of another one; without it, the active one, or the newest one if none is.
    pub(crate) to: Option<u64>,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  prowess skills import-redis redis://127.0.0.1:6379/0 --dry-run
  prowess skills import-redis rediss://user:password@redis.example.com/0

Redis is only read. A skill that is in the registry is left alone; one that an interrupted run has
begun is completed. A skill that cannot be brought hurts no other.

Exit codes: 0 ok, 1 something failed, 2 usage.")]
pub(crate) struct ImportRedisArgs {
    /// The address of the database.
    #[arg(value_name = "URL")]
    pub(crate) address: String,

    /// Say only what would happen.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl SkillsCommand {
    /// Whether JSON is printed.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::List { json }
            | Self::Versions { json, .. }
            | Self::Activate { json, .. }
            | Self::Reset { json, .. }
            | Self::Delete { json, .. } => *json,
            Self::Push(arguments) => arguments.json,
            Self::Pull(arguments) => arguments.json,
            Self::Diff(arguments) => arguments.json,
            Self::ImportRedis(arguments) => arguments.json,
        }
    }
}

/// A reason that is too long.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write at most {CHANGE_SUMMARY_CHARS} characters, not {0}")]
struct MessageTooLong(usize);

fn message(text: &str) -> Result<String, MessageTooLong> {
    match text.chars().count() {
        0..=CHANGE_SUMMARY_CHARS => Ok(text.to_owned()),
        chars => Err(MessageTooLong(chars)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_printed_by_accident() {
        assert!(!format!("{:?}", ServerKey::from("secret")).contains("secret"));
    }

    #[test]
    fn a_reason_has_an_end() {
        assert_eq!(message(&"é".repeat(500)).map(|it| it.len()), Ok(1000));
        assert_eq!(message(&"é".repeat(501)), Err(MessageTooLong(501)));
    }
}
