//! What can be typed behind `prowess keys`.

use std::time::Duration;

use clap::{Args, Subcommand};
use prowess_store::Role;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  prowess keys create ci --role editor --expires 30d
  prowess keys list
  prowess keys revoke ci

Roles: viewer reads, loads and uses sessions; editor makes and changes skills; publisher decides which
versions are used, and deletes; admin sees what everybody does. As soon as there is a key, the service
asks everybody for one.")]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    pub(crate) command: KeysCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Make a key. It is shown now, and never again.
    Create {
        /// What it is called: letters, digits, '.', '_' and '-'. The name of a revoked key may be
        /// given again; who has the new key has the sessions of the old one.
        name: String,

        /// What its owner may do: viewer, editor, publisher or admin.
        #[arg(long, value_name = "ROLE", value_parser = role_parser())]
        role: Role,

        /// How long it works: a number with s, m, h, d or w, as in `30d`. Without it, until it is
        /// revoked.
        #[arg(long, value_name = "TIME", value_parser = lifetime)]
        expires: Option<Duration>,

        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// List the keys, without what makes them keys.
    #[command(visible_alias = "ls")]
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// End a key, by its name or its id.
    Revoke {
        /// Its name or its id.
        name: String,

        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

impl KeysCommand {
    /// Whether JSON is printed.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Create { json, .. } | Self::List { json } | Self::Revoke { json, .. } => *json,
        }
    }
}

/// Offers the roles to help texts and completions.
fn role_parser() -> impl clap::builder::TypedValueParser<Value = Role> {
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    PossibleValuesParser::new(Role::ALL.map(Role::as_str)).try_map(|word| word.parse::<Role>())
}

/// A text that is no time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write a whole number from 1 and s, m, h, d or w behind it, as in 30d")]
struct InvalidLifetime;

/// A number with a unit behind it.
fn lifetime(text: &str) -> Result<Duration, InvalidLifetime> {
    let unit = text.chars().next_back().ok_or(InvalidLifetime)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        'w' => 7 * 24 * 60 * 60,
        _ => return Err(InvalidLifetime),
    };
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| InvalidLifetime)?;
    match number.checked_mul(seconds) {
        Some(seconds) if seconds > 0 => Ok(Duration::from_secs(seconds)),
        _ => Err(InvalidLifetime),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_a_number_with_a_unit() {
        let table = [("1s", 1), ("2m", 120), ("3h", 10_800), ("30d", 2_592_000), ("1w", 604_800)];
        for (text, seconds) in table {
            assert_eq!(lifetime(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "d", "0d", "30", "-1d", "1.5d", "1y", "30 d", "99999999999999999w", "1é"]
        {
            assert_eq!(lifetime(text), Err(InvalidLifetime), "{text}");
        }
    }
}
