//! Commands that a host lists (S10, 3): hostile ones are refused and honest ones are run, by
//! tables, by mutations of the honest ones, and compared with a real shell.
//!
//! Nothing here runs a command of a table; `command_policy_runs.rs` does that, in the sandbox.

use std::collections::BTreeMap;
use std::process::{Command as Process, Stdio};

use proptest::prelude::*;
use prowess_toolkits::CommandPolicy;
use prowess_workspace::Command;
use tempfile::TempDir;

/// A group of a table: what it is about, its lists, and its lines.
struct Group {
    about: String,
    allowed: Vec<String>,
    denied: Vec<String>,
    lines: Vec<String>,
}

impl Group {
    fn policy(&self) -> CommandPolicy {
        CommandPolicy::new(&self.allowed, &self.denied).unwrap()
    }
}

fn groups(text: &str) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let header = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        match header.and_then(|header| header.split_once(": ")) {
            Some((about, lists)) => {
                let names = |kind: &str| {
                    let list = lists.split("; ").find_map(|list| list.strip_prefix(kind));
                    let words = list.unwrap_or_default().split_whitespace();
                    words.map(str::to_owned).collect()
                };
                groups.push(Group {
                    about: about.to_owned(),
                    allowed: names("allowed "),
                    denied: names("denied "),
                    lines: Vec::new(),
                });
            }
            None => groups.last_mut().unwrap().lines.push(line.to_owned()),
        }
    }
    groups
}

/// A command of a table, with the characters that cannot be written there.
fn decoded(text: &str) -> String {
    let mut parts = text.split('⟦');
    let mut whole = parts.next().unwrap().to_owned();
    for part in parts {
        let (number, rest) = part.split_once('⟧').unwrap();
        let number = u32::from_str_radix(number, 16).unwrap();
        whole.push(char::from_u32(number).unwrap());
        whole.push_str(rest);
    }
    whole
}

fn hostile() -> Vec<Group> {
    groups(include_str!("command_policy/hostile.txt"))
}

/// A command and its words.
type Honest = (String, Vec<String>);

/// The honest commands, by their groups.
fn honest() -> Vec<(Group, Vec<Honest>)> {
    let groups = groups(include_str!("command_policy/honest.txt"));
    let read = |group: Group| {
        let parse = |line: &String| {
            let (command, words) = line.rsplit_once(" => ").unwrap();
            (decoded(command), serde_json::from_str(words).unwrap())
        };
        let commands = group.lines.iter().map(parse).collect();
        (group, commands)
    };
    groups.into_iter().map(read).collect()
}

/// The words that are run; or the name of the error.
fn judged(policy: &CommandPolicy, text: &str) -> Result<Vec<String>, String> {
    match policy.command(text) {
        Ok(Command::Installed { words, .. }) => Ok(words),
        Ok(other) => panic!("{text:?}: {other:?}"),
        Err(error) => {
            let named = format!("{error:?}");
            Err(named.split([' ', '{', '(']).next().unwrap().to_owned())
        }
    }
}

#[test]
fn hostile_commands_are_refused_for_the_right_reason() {
    let mut count = 0;
    let mut wrong = Vec::new();
    for group in hostile() {
        let policy = group.policy();
        for line in &group.lines {
            let (expected, command) = line.split_once(" | ").unwrap();
            let found = judged(&policy, &decoded(command));
            if found != Err(expected.to_owned()) {
                wrong.push(format!("{}: {line}: {found:?}", group.about));
            }
            count += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 150, "{count}");
}

#[test]
fn honest_commands_are_run_word_by_word() {
    let mut count = 0;
    let mut wrong = Vec::new();
    for (group, commands) in honest() {
        let policy = group.policy();
        for (command, words) in commands {
            let found = judged(&policy, &command);
            if found.as_ref() != Ok(&words) {
                wrong.push(format!("{}: {command}: {found:?}", group.about));
            }
            count += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 100, "{count}");
}

/// What makes any command hostile, wherever it stands.
const ANYWHERE: [char; 14] = [
    ';',
    '&',
    '|',
    '<',
    '>',
    '`',
    '\n',
    '\r',
    '\0',
    '\u{1b}',
    '\u{202e}',
    '\u{2066}',
    '\u{2028}',
    '\u{e0041}',
];

/// What makes any command hostile behind it.
const BEHIND: [&str; 26] = [
    " $HOME", " $(id)", " ${x}", " \"$x\"", "$x", " *", " a*", " ?", " [a]", " {a,b}", " a{1..3}",
    " (a)", ")", " ! a", " # a", " ~", " ~/a", " x=~", "\u{a0}a", "\u{200b}", "\u{3000}", " 'a",
    " \"a", " \\", " $'a'", " $\"a\"",
];

/// What makes any command hostile before it.
const BEFORE: [&str; 12] = [
    "A=b ",
    "PATH=work:/bin ",
    "LD_PRELOAD=./x.so ",
    "! ",
    "( ",
    "{ ",
    "# ",
    "$x ",
    "~/",
    "'' ",
    "\u{feff}",
    "../",
];

/// Programs that would run a command if nobody looked at them.
const WRAPPED: [&str; 16] = [
    "sudo",
    "nohup",
    "exec",
    "eval",
    "command",
    "builtin",
    "busybox",
    "nice",
    "setsid",
    "strace",
    "sh -c",
    "/bin/sh -c",
    "/usr/bin/env",
    "parallel -j1",
    "ld.so",
    "time",
];

/// How a name that is allowed is written to be another one.
fn disguises(name: &str) -> Vec<String> {
    let mut others = vec![
        name.to_uppercase(),
        format!("/tmp/{name}"),
        format!("work/{name}"),
        format!(".venv/bin/{name}"),
        format!("./evil/{name}"),
        format!("x/../{name}"),
        format!("{name}/"),
        format!("{name}2"),
        format!("{name}.sh"),
        format!("'{name} '"),
        format!("'{name}\u{200b}'"),
    ];
    for (letter, twin) in [('a', 'а'), ('c', 'с'), ('e', 'е'), ('o', 'о'), ('p', 'р'), ('s', 'ѕ')]
    {
        others.push(name.replacen(letter, &twin.to_string(), 1));
    }
    others.retain(|other| other != name);
    others
}

#[test]
fn every_mutation_of_an_honest_command_is_refused() {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut passed = Vec::new();
    for (group, commands) in honest() {
        let policy = group.policy();
        for (command, words) in commands {
            let mut attack = |technique, text: String| {
                *counts.entry(technique).or_default() += 1;
                if let Ok(words) = judged(&policy, &text) {
                    passed.push(format!("{technique}: {text:?} runs {words:?}"));
                }
            };
            let ends: Vec<usize> = command.char_indices().map(|(at, _)| at).collect();
            for at in ends.into_iter().chain([command.len()]) {
                for character in ANYWHERE {
                    let mut text = command.clone();
                    text.insert(at, character);
                    attack("anywhere", text);
                }
            }
            for behind in BEHIND {
                attack("behind", format!("{command}{behind}"));
            }
            for before in BEFORE {
                attack("before", format!("{before}{command}"));
            }
            for wrapped in WRAPPED {
                attack("wrapped", format!("{wrapped} {command}"));
            }
            let quoted = command.replace('\'', r"'\''");
            for shell in ["sh", "/bin/bash", "dash", "zsh"] {
                attack("shell", format!("{shell} -c '{quoted}'"));
            }
            for denied in &group.denied {
                for name in [denied.clone(), format!("/bin/{denied}"), denied.to_uppercase()] {
                    let rest = &words[1..].join(" ").replace(['\'', '"', '\\'], "");
                    attack("denied", format!("{name} '{rest}'"));
                }
            }
            // Where some are denied and the rest is not, another name is another program.
            if !group.allowed.is_empty() && command.trim_start().starts_with(&words[0]) {
                for name in disguises(&words[0]) {
                    attack("disguised", command.replacen(&words[0], &name, 1));
                }
            }
        }
    }
    println!("{counts:?}");
    assert!(passed.is_empty(), "{}", passed.join("\n"));
    assert_eq!(counts.len(), 7, "{counts:?}");
    let count: usize = counts.values().sum();
    assert!(count >= 5_000, "{count}");
}

/// What a real shell passes on for each of these texts, as the arguments of a function.
fn passed_by_bash(texts: &[String]) -> Vec<Vec<String>> {
    // A shell that expands something would find something.
    let folder = TempDir::new().unwrap();
    for name in ["a", "b", "ab", "x=a"] {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    let mut script = "show() { printf '%s\\0' \"$#\" \"$@\"; }\n".to_owned();
    for text in texts {
        script.push_str("show ");
        script.push_str(text);
        script.push('\n');
    }
    let output = Process::new("/bin/bash")
        .args(["--noprofile", "--norc", "-c", &script])
        .current_dir(folder.path())
        .env_clear()
        .envs([("HOME", "/home/tilde"), ("x", "expanded"), ("LC_ALL", "C.UTF-8"), ("PATH", "")])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let mut parts = said.split('\0');
    let mut all = Vec::new();
    for _ in texts {
        let count = parts.next().unwrap().parse().unwrap_or_else(|_| panic!("{said:?}: {script}"));
        all.push(parts.by_ref().take(count).map(str::to_owned).collect());
    }
    all
}

#[test]
fn a_shell_passes_on_the_same_words_of_honest_commands() {
    let all: Vec<_> = honest().into_iter().flat_map(|(_, commands)| commands).collect();
    let texts: Vec<String> = all.iter().map(|(text, _)| text.clone()).collect();
    for ((text, words), passed) in all.iter().zip(passed_by_bash(&texts)) {
        assert_eq!(words, &passed, "{text}");
    }
}

/// Pieces of commands that mean something to a shell, or nearly do.
fn piece() -> impl Strategy<Value = String> {
    let pieces = [
        "a", "b", "ab", "x", "x=", "=", ":", " ", " ", " ", "\t", "'", "'", "\"", "\"", "\\", "\\",
        "$", "$x", "${x}", "$'", "$\"", "*", "?", "[", "]", "[a]", "{", "}", "{}", "{a,b}", ",",
        "..", "(", ")", "!", "#", "~", "~a", "~/", "/", "-", "--", "^", "%", "@", "+", ".", "1",
        "''", "\"\"", "é", "猫", "\u{a0}", "\u{200b}", "if", "then", "\\\\", "\\'", "\\\"", "\\$",
        "\"\\", "'\\'", "^a^b", "%1", "a=b", "@(", "+", "-n", "&", ";", "|", "<", ">", "`", "\n",
    ];
    prop::sample::select(pieces.to_vec()).prop_map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 128,
        failure_persistence: None,
        ..Default::default()
    })]

    /// Whatever is accepted, a real shell would have passed on in the same words.
    #[test]
    fn what_is_accepted_a_shell_would_pass_on(
        texts in prop::collection::vec(prop::collection::vec(piece(), 0..8), 64)
    ) {
        let policy = CommandPolicy::new(&["x".to_owned()], &[]).unwrap();
        let mut accepted = Vec::new();
        for text in texts.iter().map(|pieces| pieces.concat()) {
            if let Ok(words) = judged(&policy, &format!("x {text}")) {
                accepted.push((text, words[1..].to_vec()));
            }
        }
        let texts: Vec<String> = accepted.iter().map(|(text, _)| text.clone()).collect();
        for ((text, words), passed) in accepted.iter().zip(passed_by_bash(&texts)) {
            prop_assert_eq!(words, &passed, "{:?}", text);
        }
    }

    /// Words in single quotes come back as they are, unless they hold what is never used.
    #[test]
    fn words_in_quotes_are_kept_or_refused(words in prop::collection::vec(".{0,6}", 0..5)) {
        let policy = CommandPolicy::new(&["x".to_owned()], &[]).unwrap();
        let quoted = words.iter().map(|word| format!(" '{}'", word.replace('\'', r"'\''")));
        let text = format!("x{}", quoted.collect::<String>());
        match judged(&policy, &text) {
            Ok(found) => prop_assert_eq!(&found[1..], words.as_slice()),
            Err(why) => {
                let never = |c: char| c.is_control() || ANYWHERE.contains(&c) || !c.is_ascii();
                prop_assert!(words.iter().any(|word| word.contains(never)), "{}: {}", why, text);
            }
        }
    }

    /// No text makes it panic, and none is accepted that holds what is never used.
    #[test]
    fn any_text_is_judged(text in "\\PC{0,40}|[ -~\n\t]{0,40}") {
        let allow = CommandPolicy::new(&["sed".to_owned(), "a".to_owned()], &[]).unwrap();
        let deny = CommandPolicy::new(&[], &["rm".to_owned()]).unwrap();
        for text in [text.clone(), format!("a {text}"), format!("sed {text}")] {
            for policy in [&allow, &deny] {
                if judged(policy, &text).is_ok() {
                    prop_assert!(!text.contains(ANYWHERE), "{}", text);
                }
            }
        }
    }
}
