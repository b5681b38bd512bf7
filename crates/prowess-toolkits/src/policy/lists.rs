//! The lists of a host: names of commands, from settings or from the environment.

use std::collections::BTreeSet;
use std::ffi::OsString;

use super::CommandPolicy;

/// A list: its name in the settings, and its variables, ours and those that trpc-agent-go has for
/// two of its tools.
struct List {
    key: &'static str,
    variables: [&'static str; 3],
}

const ALLOWED: List = List {
    key: "allowed_commands",
    variables: [
        "PROWESS_EXEC_ALLOWED_COMMANDS",
        "TRPC_AGENT_SKILL_RUN_ALLOWED_COMMANDS",
        "TRPC_AGENT_WORKSPACE_EXEC_ALLOWED_COMMANDS",
    ],
};

const DENIED: List = List {
    key: "denied_commands",
    variables: [
        "PROWESS_EXEC_DENIED_COMMANDS",
        "TRPC_AGENT_SKILL_RUN_DENIED_COMMANDS",
        "TRPC_AGENT_WORKSPACE_EXEC_DENIED_COMMANDS",
    ],
};

/// Why a list of commands cannot be used. Nothing is allowed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidCommandList {
    /// A variable is set and names nothing.
    #[error("{variable} is set but names no command; name some between commas, or unset it")]
    Empty {
        /// The variable.
        variable: &'static str,
    },
    /// A variable is no text.
    #[error("{variable} is not UTF-8; name commands between commas, or unset it")]
    NotText {
        /// The variable.
        variable: &'static str,
    },
    /// Two variables for one list say different things.
    #[error("{} and {} name different commands; unset one of them", variables[0], variables[1])]
    Different {
        /// The variables.
        variables: [&'static str; 2],
    },
    /// Something in a list is no name of a command.
    #[error(
        "{list}: '{}' is no name of a command; write a bare name, a path in the skill's folder, or \
         an absolute path, without arguments or patterns",
        name.escape_debug()
    )]
    Name {
        /// The list: a key of the settings, or a variable.
        list: &'static str,
        /// What is in it.
        name: String,
    },
}

impl CommandPolicy {
    /// The policy of these lists, and of this environment where they are empty.
    pub(crate) fn with_environment(
        allowed: &[String],
        denied: &[String],
        environment: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, InvalidCommandList> {
        let allowed = ALLOWED.names(allowed, &environment)?;
        let denied = DENIED.names(denied, &environment)?.unwrap_or_default();
        Ok(Self { allowed, denied: denied.iter().map(|name| last_name(name)).collect() })
    }
}

impl List {
    /// The names in this list, if there is one.
    fn names(
        &self,
        named: &[String],
        environment: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Option<BTreeSet<String>>, InvalidCommandList> {
        if !named.is_empty() {
            return usable(self.key, named.iter().map(String::as_str)).map(Some);
        }
        let mut found: Option<(&'static str, BTreeSet<String>)> = None;
        for variable in self.variables {
            let Some(value) = environment(variable) else { continue };
            let names = names_of_variable(variable, value)?;
            match &found {
                Some((other, others)) if *others != names => {
                    let variables = [*other, variable];
                    return Err(InvalidCommandList::Different { variables });
                }
                _ => found = Some((variable, names)),
            }
        }
        Ok(found.map(|(_, names)| names))
    }
}

fn names_of_variable(
    variable: &'static str,
    value: OsString,
) -> Result<BTreeSet<String>, InvalidCommandList> {
    let value = value.into_string().map_err(|_| InvalidCommandList::NotText { variable })?;
    let parts = value.split([',', ' ', '\t', '\n', '\r']).filter(|name| !name.is_empty());
    let names = usable(variable, parts)?;
    match names.is_empty() {
        true => Err(InvalidCommandList::Empty { variable }),
        false => Ok(names),
    }
}

fn usable<'a>(
    list: &'static str,
    names: impl Iterator<Item = &'a str>,
) -> Result<BTreeSet<String>, InvalidCommandList> {
    let check = |name: &'a str| match is_name(name) {
        true => Ok(name.to_owned()),
        false => Err(InvalidCommandList::Name { list, name: name.to_owned() }),
    };
    names.map(check).collect()
}

/// Whether this is a plain name or path of a program: it can be read, and means one thing.
pub(super) fn is_name(name: &str) -> bool {
    let below = name.strip_prefix("./").or_else(|| name.strip_prefix('/')).unwrap_or(name);
    below.split('/').all(|part| {
        !matches!(part, "" | "." | "..") && !part.starts_with('-') && part.chars().all(is_plain)
    })
}

fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '+' | '@' | '-')
}

/// The last name of a path, in lower case.
pub(super) fn last_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_lowercase()
}

/// Everything in a text that could be the last name of a program, in lower case.
pub(super) fn names_in(text: &str) -> impl Iterator<Item = String> {
    let parts = text.split(|character| !is_plain(character));
    let trimmed = parts.map(|part| part.trim_matches(['.', '-', '+', '@']));
    trimmed.filter(|part| !part.is_empty()).map(str::to_lowercase)
}
