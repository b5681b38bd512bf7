//! What a line means that somebody has typed.

use std::fmt;

use prowess_runtime::{InvalidSessionKey, SessionKey};

/// What begins the name of a skill wherever a command could be meant.
const SKILL: &str = "skill:";

/// What can be typed besides messages: name, arguments, what it does.
pub(super) const COMMANDS: [(&str, &str, &str); 9] = [
    ("help", "", "show this"),
    ("skills", "[TEXT]", "the skills that are there, or those with this text"),
    ("load", "NAME [ARGUMENTS]", "load a skill with your next message"),
    ("unload", "NAME", "unload a skill"),
    ("tokens", "", "what the next request costs"),
    ("session", "[ID|new|list]", "show the session, go to another one, or list them"),
    ("resume", "", "go on with a turn that has not come to its end"),
    ("expand", "[COUNT]", "show what the last turn has folded, from its end"),
    ("quit", "", "leave; the session is kept"),
];

/// What a line means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Nothing.
    Nothing,
    /// A message to the model.
    Say(String),
    /// A command that answers.
    Command(Command),
    /// A skill, and its arguments; or a typo.
    Skill { name: String, arguments: String },
    /// Go on with the last turn.
    Resume,
    /// Leave.
    Quit,
}

/// A command that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Help,
    Skills(String),
    Load { skill: String, arguments: String },
    Unload(String),
    Tokens,
    Session(Place),
    Expand(usize),
}

/// Which session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Here,
    List,
    New,
    Other(SessionKey),
}

/// Why a command cannot be carried out as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Misuse {
    /// It lacks an argument, or has one that it does not take.
    Usage(&'static str),
    /// No session is called that.
    Session(InvalidSessionKey),
}

impl fmt::Display for Misuse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(error) => error.fmt(formatter),
            Self::Usage(command) => {
                let known = COMMANDS.iter().find(|(name, ..)| name == command);
                let arguments = known.map_or("", |(_, arguments, _)| arguments);
                write!(formatter, "{}", format!("write /{command} {arguments}").trim_end())
            }
        }
    }
}

/// What a line means.
pub(super) fn read(line: &str) -> Result<Line, Misuse> {
    let line = line.trim();
    let Some(typed) = line.strip_prefix('/') else {
        return Ok(match line {
            "" => Line::Nothing,
            message => Line::Say(message.to_owned()),
        });
    };
    let (word, rest) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
    let rest = rest.trim();
    if let Some(name) = word.strip_prefix(SKILL).filter(|name| !name.is_empty()) {
        return Ok(Line::Skill { name: name.to_owned(), arguments: rest.to_owned() });
    }
    // A path is part of a message.
    let is_path = word.split_once('/').is_some_and(|(first, _)| !first.contains('@'));
    if word.is_empty() || is_path {
        return Ok(Line::Say(line.to_owned()));
    }
    let alone = |command: &'static str, meant: Line| match rest {
        "" => Ok(meant),
        _ => Err(Misuse::Usage(command)),
    };
    Ok(Line::Command(match word {
        "help" | "?" => return alone("help", Line::Command(Command::Help)),
        "skills" => Command::Skills(rest.to_owned()),
        "load" => {
            let (skill, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let (skill, arguments) = (named(skill, "load")?, arguments.trim().to_owned());
            Command::Load { skill, arguments }
        }
        "unload" => Command::Unload(named(rest, "unload")?),
        "tokens" => return alone("tokens", Line::Command(Command::Tokens)),
        "session" => Command::Session(match rest {
            "" => Place::Here,
            "list" => Place::List,
            "new" => Place::New,
            other => Place::Other(other.parse().map_err(Misuse::Session)?),
        }),
        "resume" => return alone("resume", Line::Resume),
        "expand" => Command::Expand(match rest {
            "" => 1,
            count => match count.parse() {
                Ok(0) | Err(_) => return Err(Misuse::Usage("expand")),
                Ok(count) => count,
            },
        }),
        "quit" | "exit" => return alone("quit", Line::Quit),
        name => {
            return Ok(Line::Skill { name: name.to_owned(), arguments: rest.to_owned() });
        }
    }))
}

/// The name of a skill, with or without what it is called by.
fn named(text: &str, command: &'static str) -> Result<String, Misuse> {
    let name = text.strip_prefix('/').unwrap_or(text);
    let name = name.strip_prefix(SKILL).unwrap_or(name);
    match name.is_empty() || name.contains(char::is_whitespace) {
        true => Err(Misuse::Usage(command)),
        false => Ok(name.to_owned()),
    }
}

/// Whether a line goes on behind its end: it ends with one backslash, or three…
pub(super) fn is_open(text: &str) -> bool {
    let backslashes = text.len() - text.trim_end_matches('\\').len();
    backslashes % 2 == 1
}

/// Lines without the backslashes that joined them.
pub(super) fn joined(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut lines = text.split('\n').peekable();
    while let Some(line) = lines.next() {
        match lines.peek() {
            Some(_) if is_open(line) => out.push_str(&line[..line.len() - 1]),
            _ => out.push_str(line),
        }
        if lines.peek().is_some() {
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_message_a_command_or_a_skill() {
        let say = |text: &str| Line::Say(text.to_owned());
        let skill = |name: &str, arguments: &str| Line::Skill {
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        };
        let load = |skill: &str, arguments: &str| {
            let (skill, arguments) = (skill.to_owned(), arguments.to_owned());
            Line::Command(Command::Load { skill, arguments })
        };
        let session = |place| Line::Command(Command::Session(place));
        let table = [
            ("", Line::Nothing),
            ("  \t ", Line::Nothing),
            ("Hello", say("Hello")),
            (" two\nlines ", say("two\nlines")),
            ("/", say("/")),
            ("/ is a slash", say("/ is a slash")),
            ("/etc/hosts is broken", say("/etc/hosts is broken")),
            ("/home/me@there is full", say("/home/me@there is full")),
            ("/help", Line::Command(Command::Help)),
            ("/?", Line::Command(Command::Help)),
            ("/skills", Line::Command(Command::Skills(String::new()))),
            ("/skills two words", Line::Command(Command::Skills("two words".to_owned()))),
            ("/load deploy", load("deploy", "")),
            ("/load /deploy  to staging ", load("deploy", "to staging")),
            ("/load skill:deploy", load("deploy", "")),
            ("/unload deploy", Line::Command(Command::Unload("deploy".to_owned()))),
            ("/tokens", Line::Command(Command::Tokens)),
            ("/session", session(Place::Here)),
            ("/session list", session(Place::List)),
            ("/session new", session(Place::New)),
            ("/session work", session(Place::Other("work".parse().unwrap()))),
            ("/session a/b/c", session(Place::Other("a/b/c".parse().unwrap()))),
            ("/resume", Line::Resume),
            ("/expand", Line::Command(Command::Expand(1))),
            ("/expand 3", Line::Command(Command::Expand(3))),
            ("/quit", Line::Quit),
            ("/exit", Line::Quit),
            ("/deploy", skill("deploy", "")),
            ("/deploy to\nstaging", skill("deploy", "to\nstaging")),
            ("/deploy@team/tools now", skill("deploy@team/tools", "now")),
            ("/skill:help me", skill("help", "me")),
            ("/skill:", skill("skill:", "")),
        ];
        for (line, expected) in table {
            assert_eq!(read(line), Ok(expected), "{line:?}");
        }
    }

    #[test]
    fn a_command_says_how_it_is_written() {
        let table = [
            ("/help me", "write /help"),
            ("/load", "write /load NAME [ARGUMENTS]"),
            ("/load /", "write /load NAME [ARGUMENTS]"),
            ("/unload", "write /unload NAME"),
            ("/unload a b", "write /unload NAME"),
            ("/tokens now", "write /tokens"),
            ("/expand all", "write /expand [COUNT]"),
            ("/expand 0", "write /expand [COUNT]"),
            ("/expand -1", "write /expand [COUNT]"),
            (
                "/session a/b",
                "'a/b' names no session: it has neither one name nor three; write `session` or \
                 `app/user/session`",
            ),
        ];
        for (line, expected) in table {
            assert_eq!(read(line).unwrap_err().to_string(), expected, "{line}");
        }
    }

    #[test]
    fn every_command_that_is_listed_is_one() {
        for (name, arguments, _) in COMMANDS {
            let line = match arguments.starts_with("NAME") {
                true => format!("/{name} deploy"),
                false => format!("/{name}"),
            };
            assert!(
                !matches!(read(&line), Err(_) | Ok(Line::Skill { .. } | Line::Say(_))),
                "{line}"
            );
        }
    }

    #[test]
    fn a_backslash_at_the_end_joins_lines() {
        for (text, is_so) in [
            ("", false),
            ("a", false),
            ("a\\", true),
            ("a\\\\", false),
            ("\\", true),
            ("a\\ ", false),
        ] {
            assert_eq!(is_open(text), is_so, "{text:?}");
        }
        for (text, expected) in [
            ("one", "one"),
            ("one\\\ntwo", "one\ntwo"),
            ("one\ntwo", "one\ntwo"),
            ("one\\\\\ntwo\\", "one\\\\\ntwo\\"),
        ] {
            assert_eq!(joined(text), expected, "{text:?}");
        }
    }
}
