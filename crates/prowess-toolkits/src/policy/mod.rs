//! Which commands a host allows, and what of them is run.

mod git;
mod launchers;
mod lists;
mod programs;
mod sed;
mod variables;
mod words;

use std::collections::BTreeSet;

use prowess_workspace::Command;

pub use lists::InvalidCommandList;
use lists::{is_name, last_name};
#[cfg(feature = "exec")]
pub(crate) use variables::is_posix;

/// Which commands a host allows.
///
/// Without lists, every one, through a shell. With either list, a command is one program with its
/// arguments, and no shell sees it:
///
/// - What a shell would not pass on as it is written is refused: separators, pipes and redirections
///   even in quotes; variables, patterns, braces, `~`, comments and the like outside of single
///   quotes. Empty words in quotes are words.
/// - A bare name is a program of the system, whatever a skill, a run or a variable says. A path
///   is an absolute one outside of the workspace, or a file of the skill that cannot be written.
/// - It is allowed by exactly the name that the host wrote. It is denied by its last name, in upper
///   or lower case, through links and as the same file, and with the machine that it is for
///   (`x86_64-linux-gnu-gcc` is `gcc`); and denying wins.
/// - Where commands are denied, so is whatever runs others (shells, `env`, `xargs` and the like),
///   unless it is allowed by its name. Options by which other programs run others
///   (`find -exec`, `tar --to-command`, `git -c`) are refused with either list.
/// - Of git, only plain subcommands are run.
/// - A call may set variables of language, time and colour (`LANG`, the `LC_…` of POSIX and glibc,
///   `TZ`, `TERM`, `COLUMNS`, `LINES`, `NO_COLOR`, `CLICOLOR`, `FORCE_COLOR`, `SOURCE_DATE_EPOCH`)
///   and no others, because programs find, load and run things by too many. Those that the host
///   passes are not asked about here.
///
/// A list that says nothing may come from a variable of the environment, under our name or under
/// one of those of trpc-agent-go, with names between commas or blanks:
/// `PROWESS_EXEC_ALLOWED_COMMANDS`, `TRPC_AGENT_SKILL_RUN_ALLOWED_COMMANDS` or
/// `TRPC_AGENT_WORKSPACE_EXEC_ALLOWED_COMMANDS`; `PROWESS_EXEC_DENIED_COMMANDS`,
/// `TRPC_AGENT_SKILL_RUN_DENIED_COMMANDS` or `TRPC_AGENT_WORKSPACE_EXEC_DENIED_COMMANDS`. Each
/// holds for every tool that runs commands, whichever tool it is named for. One that is set
/// and names nothing, or two that differ, are errors and allow nothing.
///
/// ```
/// use prowess_toolkits::CommandPolicy;
/// use prowess_workspace::Command;
///
/// let policy = CommandPolicy::new(&["python3".to_owned()], &[])?;
/// let Command::Installed { words, .. } = policy.command("python3 sum.py 'a b' ''")? else { panic!() };
/// assert_eq!(words, ["python3", "sum.py", "a b", ""]);
/// for refused in ["./python3 sum.py", "python3 sum.py > out", "python3 $HOME", "env python3"] {
///     assert_eq!(policy.command(refused).unwrap_err().code(), "command_not_allowed");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandPolicy {
    /// The names that are allowed; `None`: all of them.
    allowed: Option<BTreeSet<String>>,
    /// The last names that are denied, in lower case.
    denied: BTreeSet<String>,
}

/// Why a command is not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// A shell would do something with it.
    #[error(
        "the host lists the commands that may run, so that no shell reads them: '{}' at character \
         {position} {what}",
        character.escape_debug()
    )]
    Syntax {
        /// The character.
        character: char,
        /// Its place; the first one is 1.
        position: usize,
        /// What it would do, and what to write instead.
        what: &'static str,
    },
    /// A quote is not closed, or nothing follows a backslash.
    #[error(
        "nothing follows or closes {what} at the end of the command; close it, or write \\{what}"
    )]
    Open {
        /// What is open.
        what: &'static str,
    },
    /// It holds a NUL.
    #[error("the command holds a NUL; no command can")]
    Nul,
    /// It begins with a variable.
    #[error(
        "the host lists the commands that may run, so that no shell reads them: '{name}=' sets no \
         variable; use 'env'"
    )]
    Assignment {
        /// The variable.
        name: String,
    },
    /// The program is named in a way that is not taken.
    #[error(
        "'{}' is no plain name or path of a program, as the host wants it; write it in letters, \
         digits, and . _ + @ -, without '..' or '//'",
        name.escape_debug()
    )]
    Name {
        /// The name.
        name: String,
    },
    /// It is not one of those that are allowed.
    #[error("the command '{name}' is not allowed by the host{}", listed(allowed))]
    NotAllowed {
        /// The name.
        name: String,
        /// Those that are.
        allowed: Vec<String>,
    },
    /// It is denied.
    #[error("the command '{name}' is denied by the host")]
    Denied {
        /// The name.
        name: String,
    },
    /// It runs other programs, and some are denied.
    #[error(
        "the command '{name}' runs other programs, and the host denies some; run the program itself"
    )]
    Launcher {
        /// The name.
        name: String,
    },
    /// An option of it runs other programs.
    #[error(
        "'{option}' lets '{name}' run other programs, and the host lists those that may run; {remedy}"
    )]
    Launching {
        /// The program.
        name: String,
        /// The option.
        option: String,
        /// What to do instead.
        remedy: &'static str,
    },
    /// It runs other programs or code, and names a program that is denied.
    #[error("'{denied}', which '{name}' would run, is denied by the host")]
    Inner {
        /// The program that is run.
        name: String,
        /// The one that is denied.
        denied: String,
    },
    /// A variable could change what runs.
    #[error(
        "'env.{name}' could change what programs load or run, and the host lists those that may \
         run; pass it as an argument or in a file, or let the host declare it in [exec.env]"
    )]
    Variable {
        /// The variable.
        name: String,
    },
    /// An editor would be a line of shell.
    #[error(
        "'editor_text' sets EDITOR to a line of shell, and the host lists the commands that may \
         run; leave it out and pass the text as an argument or in a file"
    )]
    Editor,
    /// The lists cannot be used, so that nothing is allowed.
    #[error("no command is allowed by the host: {0}")]
    Lists(#[from] InvalidCommandList),
}

impl CommandError {
    /// The stable name.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Open { .. } | Self::Nul | Self::Variable { .. } | Self::Editor => {
                "invalid_arguments"
            }
            _ => "command_not_allowed",
        }
    }

    /// What the model may do about it.
    #[cfg(feature = "exec")]
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::Lists(_) => "Tell the user. Nothing was started.",
            _ => "Use a command that the host allows.",
        }
    }
}

fn listed(allowed: &[String]) -> String {
    match allowed.is_empty() {
        true => String::new(),
        false => format!("; allowed: {}", allowed.join(", ")),
    }
}

impl CommandPolicy {
    /// The policy of these lists. A list that is empty is that of the environment, if there is one.
    pub fn new(allowed: &[String], denied: &[String]) -> Result<Self, InvalidCommandList> {
        Self::with_environment(allowed, denied, |name| std::env::var_os(name))
    }

    /// What is run for the text of a command.
    pub fn command(&self, text: &str) -> Result<Command, CommandError> {
        if text.contains('\0') {
            return Err(CommandError::Nul);
        }
        if self.is_open() {
            return Ok(Command::Shell(text.to_owned()));
        }
        let words = words::split(text)?;
        let (name, arguments) = match words.split_first() {
            Some((name, arguments)) => (name.as_str(), arguments),
            None => ("", [].as_slice()),
        };
        self.check_name(name)?;
        self.check_arguments(name, arguments)?;
        Ok(Command::Installed { words, denied: self.denied.iter().cloned().collect() })
    }

    /// Whether a call may set these variables. Without lists, it may set any.
    pub fn check_env<'a>(
        &self,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), CommandError> {
        let mut refused = names.into_iter().filter(|name| !variables::is_harmless(name));
        match refused.next().filter(|_| !self.is_open()) {
            Some(name) => Err(CommandError::Variable { name: name.to_owned() }),
            None => Ok(()),
        }
    }

    /// Whether a call may bring a text that an editor writes.
    #[cfg(feature = "exec")]
    pub(crate) fn check_editor(&self) -> Result<(), CommandError> {
        match self.is_open() {
            true => Ok(()),
            false => Err(CommandError::Editor),
        }
    }

    /// Whether a shell runs everything.
    pub fn is_open(&self) -> bool {
        self.allowed.is_none() && self.denied.is_empty()
    }

    /// What a model is told about commands that it may use, if a shell does not run them.
    #[cfg(feature = "exec")]
    pub(crate) fn told(&self) -> Option<String> {
        let names = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(", ");
        let mut told = "One program with its arguments; no shell syntax.".to_owned();
        if let Some(allowed) = &self.allowed {
            told += &format!(" Allowed: {}.", names(allowed));
        }
        if !self.denied.is_empty() {
            told += &format!(" Denied: {}.", names(&self.denied));
        }
        (!self.is_open()).then_some(told)
    }

    /// Whether a program may be run, by its name.
    fn check_name(&self, name: &str) -> Result<(), CommandError> {
        let own = || name.to_owned();
        if self.denies(&last_name(name)) {
            return Err(CommandError::Denied { name: own() });
        }
        if let Some((variable, _)) = name.split_once('=')
            && variables::is_posix(variable.strip_suffix('+').unwrap_or(variable))
        {
            return Err(CommandError::Assignment { name: variable.to_owned() });
        }
        if !name.is_empty() && !is_name(name) {
            return Err(CommandError::Name { name: own() });
        }
        let is_allowed = self.allowed.as_ref().map(|allowed| allowed.contains(name));
        let launches = !self.denied.is_empty() && launchers::is_launcher(name);
        match is_allowed {
            Some(true) => Ok(()),
            _ if launches => Err(CommandError::Launcher { name: own() }),
            None if !name.is_empty() => Ok(()),
            _ => {
                let allowed = self.allowed.iter().flatten().cloned().collect();
                Err(CommandError::NotAllowed { name: own(), allowed })
            }
        }
    }

    /// Whether a last name is denied, or that of the same program for any machine.
    fn denies(&self, name: &str) -> bool {
        self.denied.contains(name)
            || launchers::elsewhere(name).any(|name| self.denied.contains(name))
    }

    /// Whether it may be run with these arguments.
    fn check_arguments(&self, name: &str, arguments: &[String]) -> Result<(), CommandError> {
        if let Some((option, remedy)) = launchers::launching(name, arguments) {
            let (name, option) = (name.to_owned(), option.to_owned());
            return Err(CommandError::Launching { name, option, remedy });
        }
        if !launchers::is_launcher(name) && !launchers::runs_code(name, arguments) {
            return Ok(());
        }
        let denied = arguments.iter().find_map(|word| self.denied_in(word));
        denied.map_or(Ok(()), |denied| {
            let (name, denied) = (name.to_owned(), denied.clone());
            Err(CommandError::Inner { name, denied })
        })
    }

    /// The program that is denied and named in an argument of what runs programs.
    fn denied_in(&self, word: &str) -> Option<&String> {
        let names: Vec<String> = lists::names_in(word).collect();
        // What an option says may follow it at once.
        let is_option = word.starts_with('-');
        self.denied.iter().find(|denied| {
            names.iter().any(|name| {
                name == *denied
                    || (is_option && name.ends_with(*denied))
                    || launchers::elsewhere(name).any(|name| name == *denied)
            })
        })
    }
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
