//! From the text of a command to what is run; with lists of commands, without a shell.

use prowess_workspace::Command;

/// Characters that mean something to a shell and that no single command needs, not even quoted.
const SHELL: [char; 8] = ['\n', '\r', ';', '&', '|', '<', '>', '`'];

/// Programs that run other programs: where some commands are denied, these would run them.
const LAUNCHERS: [&str; 35] = [
    "ash", "awk", "bash", "busybox", "chroot", "command", "csh", "dash", "doas", "env", "eval",
    "exec", "find", "fish", "flock", "gawk", "ksh", "make", "nice", "nohup", "nsenter", "parallel",
    "script", "setsid", "sh", "stdbuf", "strace", "su", "sudo", "taskset", "time", "timeout",
    "unshare", "xargs", "zsh",
];

/// Which commands a host allows. Without lists, every one, through a shell.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CommandPolicy<'a> {
    pub(crate) allowed: &'a [String],
    pub(crate) denied: &'a [String],
}

/// Why a command is not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CommandError {
    #[error(
        "the host allows single commands only, without a shell: '{}' cannot be used; run one \
         program with its arguments",
        character.escape_default()
    )]
    Syntax { character: char },
    #[error("a quote is not closed, or the command ends with a backslash")]
    Open,
    #[error("the command '{name}' is not allowed by the host{}", listed(allowed))]
    NotAllowed { name: String, allowed: Vec<String> },
    #[error("the command '{name}' is denied by the host")]
    Denied { name: String },
    #[error("the command holds a NUL")]
    Nul,
}

impl CommandError {
    /// The stable name.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::NotAllowed { .. } | Self::Denied { .. } | Self::Syntax { .. } => {
                "command_not_allowed"
            }
            Self::Open | Self::Nul => "invalid_arguments",
        }
    }
}

fn listed(allowed: &[String]) -> String {
    match allowed.is_empty() {
        true => String::new(),
        false => format!("; allowed: {}", allowed.join(", ")),
    }
}

impl CommandPolicy<'_> {
    fn is_open(&self) -> bool {
        self.allowed.is_empty() && self.denied.is_empty()
    }

    /// What is run.
    pub(crate) fn command(&self, text: &str) -> Result<Command, CommandError> {
        if text.contains('\0') {
            return Err(CommandError::Nul);
        }
        if self.is_open() {
            return Ok(Command::Shell(text.to_owned()));
        }
        if let Some(character) = text.chars().find(|it| SHELL.contains(it)) {
            return Err(CommandError::Syntax { character });
        }
        let words = split(text).ok_or(CommandError::Open)?;
        let name = words.first().map(String::as_str).unwrap_or_default();
        self.check(name)?;
        Ok(Command::Program(words))
    }

    /// Whether a program may be run. It is allowed by exactly the name that the host wrote: a path
    /// is none of a bare name, and a bare name none of a path. It is denied by its last name,
    /// whatever stands before it, and so is whatever would run it.
    fn check(&self, name: &str) -> Result<(), CommandError> {
        let last = name.rsplit('/').next().unwrap_or_default();
        let is_denied = |it: &String| it == name || it.eq_ignore_ascii_case(last);
        let is_allowed = self.allowed.iter().any(|it| it == name);
        let launches = !self.denied.is_empty() && !is_allowed && LAUNCHERS.contains(&last);
        if self.denied.iter().any(is_denied) || launches {
            return Err(CommandError::Denied { name: name.to_owned() });
        }
        if name.is_empty() || (!self.allowed.is_empty() && !is_allowed) {
            let (name, allowed) = (name.to_owned(), self.allowed.to_vec());
            return Err(CommandError::NotAllowed { name, allowed });
        }
        Ok(())
    }
}

/// Splits a command into words as a shell does, with quotes and backslashes and nothing else.
/// `None` if a quote is open at the end. Empty words in quotes are words.
fn split(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        '\'' => break,
                        inside => word.push(inside),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        '"' => break,
                        '\\' => match characters.next()? {
                            escaped @ ('"' | '\\' | '$') => word.push(escaped),
                            other => word.extend(['\\', other]),
                        },
                        inside => word.push(inside),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(characters.next()?),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn without_lists_a_shell_runs_everything() {
        let command = CommandPolicy::default().command("a | b > c").unwrap();
        assert_eq!(command, Command::Shell("a | b > c".to_owned()));
    }

    #[test]
    fn words_are_split_as_a_shell_does() {
        let table = [
            ("a b  c", Some(vec!["a", "b", "c"])),
            ("a 'b c' \"d e\"", Some(vec!["a", "b c", "d e"])),
            ("a '' \"\"", Some(vec!["a", "", ""])),
            ("a b\\ c", Some(vec!["a", "b c"])),
            ("a \"\\\"b\\n\"", Some(vec!["a", "\"b\\n"])),
            ("a'b'\"c\"d", Some(vec!["abcd"])),
            ("'$HOME' $HOME *", Some(vec!["$HOME", "$HOME", "*"])),
            ("a 'b", None),
            ("a \"b", None),
            ("a \\", None),
            ("", Some(vec![])),
        ];
        for (text, expected) in table {
            let expected = expected.map(|words| names(&words));
            assert_eq!(split(text), expected, "{text}");
        }
    }

    #[test]
    fn an_allow_list_admits_exactly_what_it_names() {
        let allowed = names(&["python3", "scripts/run.sh"]);
        let policy = CommandPolicy { allowed: &allowed, denied: &[] };
        for text in ["python3 a.py", "'python3' a.py", "pyth\\on3", "scripts/run.sh 'a b'"] {
            assert!(matches!(policy.command(text), Ok(Command::Program(_))), "{text}");
        }
        let attacks = [
            "./python3",
            "./evil/python3 a.py",
            "/tmp/python3",
            "python3.11",
            "PYTHON3",
            "./scripts/run.sh",
            "scripts/../run.sh",
            "bash -c python3",
            "env python3",
            "A=b python3",
            "",
            "''",
        ];
        for text in attacks {
            let refused = policy.command(text).unwrap_err();
            assert_eq!(refused.code(), "command_not_allowed", "{text}");
        }
    }

    #[test]
    fn shell_syntax_is_refused_even_in_quotes() {
        let allowed = names(&["echo"]);
        let policy = CommandPolicy { allowed: &allowed, denied: &[] };
        let attacks =
            ["echo a; id", "echo a\nid", "echo a && id", "echo a | sh", "echo a > b", "echo `id`"];
        for text in attacks.into_iter().chain(["echo 'a;b'", "echo <(id)"]) {
            let refused = policy.command(text).unwrap_err();
            assert!(matches!(refused, CommandError::Syntax { .. }), "{text}");
        }
        // Nothing expands it: it is a word like any other.
        let words = names(&["echo", "$(id)"]);
        assert_eq!(policy.command("echo '$(id)'"), Ok(Command::Program(words)));
    }

    #[test]
    fn a_deny_list_denies_by_last_name_and_what_would_run_it() {
        let denied = names(&["rm"]);
        let policy = CommandPolicy { allowed: &[], denied: &denied };
        assert!(policy.command("ls -l").is_ok());
        for text in ["rm -rf x", "/bin/rm x", "./rm", "RM x", "busybox rm x", "/usr/bin/env rm"] {
            assert_eq!(policy.command(text).unwrap_err().code(), "command_not_allowed", "{text}");
        }
        // Denying wins, and a host may allow what runs others.
        let allowed = names(&["rm", "env"]);
        let both = CommandPolicy { allowed: &allowed, denied: &denied };
        assert!(both.command("rm x").is_err());
        assert!(both.command("env").is_ok());
    }
}
