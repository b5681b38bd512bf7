//! Git: what of it runs nothing but git.
//!
//! It has more subcommands than anybody knows, some of which are made to run programs, and those of
//! the user are lines of shell. So only the plain ones are taken.

use super::programs::{Launching, NOTHING};

/// Options of git itself, before the subcommand. Others name settings, programs or folders.
const OPTIONS: [&str; 9] = [
    "--glob-pathspecs",
    "--icase-pathspecs",
    "--literal-pathspecs",
    "--no-optional-locks",
    "--no-pager",
    "--no-replace-objects",
    "--noglob-pathspecs",
    "--version",
    "-P",
];

/// Subcommands that run nothing else by themselves.
#[rustfmt::skip]
const SUBCOMMANDS: &[&str] = &[
    "add", "blame", "branch", "cat-file", "check-ignore", "checkout", "cherry", "cherry-pick",
    "clean", "clone", "commit", "count-objects", "describe", "diff", "diff-files", "diff-index",
    "diff-tree", "fetch", "for-each-ref", "grep", "init", "log", "ls-files", "ls-remote", "ls-tree",
    "merge", "merge-base", "mv", "name-rev", "pull", "push", "range-diff", "rebase", "reflog",
    "remote", "reset", "restore", "rev-list", "rev-parse", "revert", "rm", "shortlog", "show",
    "show-ref", "stash", "status", "switch", "tag", "version",
];

/// What runs programs, or writes where git looks for them, in any subcommand.
const ANY: Launching = Launching {
    long: &[
        "--exec",
        "--ext-diff",
        "--extcmd",
        "--open-files-in-pager",
        "--output",
        "--receive-pack",
        "--template",
        "--textconv",
        "--tool",
        "--upload-pack",
    ],
    others: &["--text"],
    words: &["--help"],
    beginnings: &["-O", "ext::"],
    ..NOTHING
};

/// The same in some subcommands. Where an editor is started, or hunks are picked, of which one can
/// be edited, what is written to the command goes to the editor, and that runs anything.
const SOME: &[Launching] = &[
    Launching {
        programs: &["add", "checkout", "reset", "restore", "stash"],
        long: &["--edit", "--interactive", "--patch"],
        short: "eip",
        ..NOTHING
    },
    Launching { programs: &["branch"], long: &["--edit-description"], ..NOTHING },
    Launching {
        programs: &["cherry-pick", "revert"],
        long: &["--continue", "--edit", "--strategy"],
        short: "e",
        ..NOTHING
    },
    Launching { programs: &["clone"], long: &["--config"], short: "cu", ..NOTHING },
    Launching {
        programs: &["commit", "tag"],
        long: &["--edit", "--interactive", "--patch", "--reedit-message", "--squash"],
        ..NOTHING
    },
    Launching { programs: &["fetch", "ls-remote"], short: "u", ..NOTHING },
    Launching { programs: &["grep"], short: "O", ..NOTHING },
    Launching {
        programs: &["merge"],
        long: &["--continue", "--edit", "--strategy"],
        short: "es",
        ..NOTHING
    },
    Launching { programs: &["pull"], long: &["--edit", "--strategy"], short: "esu", ..NOTHING },
    Launching {
        programs: &["rebase"],
        long: &["--continue", "--edit-todo", "--interactive", "--strategy"],
        short: "isx",
        ..NOTHING
    },
];

/// Options without a value that may stand before the message.
const BEFORE_MESSAGE: [&str; 10] = [
    "--all",
    "--allow-empty",
    "--amend",
    "--annotate",
    "--force",
    "--no-verify",
    "--only",
    "--quiet",
    "--signoff",
    "--verbose",
];

/// Subcommands that take addresses; one of the form `name::rest` is given to a program.
const REMOTE: [&str; 6] = ["clone", "fetch", "ls-remote", "pull", "push", "remote"];

/// The word by which git would run other programs.
pub(super) fn launching(arguments: &[String]) -> Option<&str> {
    let mut at = 0;
    while let Some(option) = arguments.get(at).filter(|word| word.starts_with('-')) {
        at += match option.as_str() {
            "-C" => 2,
            option if OPTIONS.contains(&option) => 1,
            _ => return Some(option),
        };
    }
    let folders = &arguments[..at.min(arguments.len())];
    let subcommand = arguments.get(at);
    let Some(subcommand) = subcommand else {
        return folders.iter().find(|word| is_inside(word)).map(String::as_str);
    };
    if !SUBCOMMANDS.contains(&subcommand.as_str()) {
        return Some(subcommand);
    }
    let more = SOME.iter().find(|it| it.programs.contains(&subcommand.as_str()));
    let is_remote = REMOTE.contains(&subcommand.as_str());
    let is_meant = |word: &&String| {
        ANY.is_meant(word)
            || more.is_some_and(|more| more.is_meant(word))
            || is_inside(word)
            || (is_remote && names_a_helper(word))
            || (matches!(subcommand.as_str(), "commit" | "tag") && edits(word))
    };
    let found = folders.iter().find(|word| is_inside(word));
    let found = found.or_else(|| arguments[at + 1..].iter().find(is_meant));
    let asks = asks_for_a_message(subcommand, &arguments[at + 1..]).then_some(subcommand);
    found.or(asks).map(String::as_str)
}

/// Whether a word of `commit` or `tag` starts an editor, by a letter that is not part of a value.
fn edits(word: &str) -> bool {
    let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    let is_known = |letter: &char| "cetpmFCSu".contains(*letter);
    letters.and_then(|it| it.chars().find(is_known)).is_some_and(|it| "cetp".contains(it))
}

/// Whether an editor is started for a message, because none is given.
fn asks_for_a_message(subcommand: &str, arguments: &[String]) -> bool {
    match subcommand {
        "commit" => !has_message(arguments),
        "tag" => {
            let annotates = |word: &String| {
                let is_short = !word.starts_with("--") && word.contains(['a', 's', 'u']);
                let long = ["--annotate", "--sign", "--local-user"];
                let option = word.split('=').next().unwrap_or_default();
                word.starts_with('-') && (is_short || long.iter().any(|it| it.starts_with(option)))
            };
            arguments.iter().any(annotates) && !has_message(arguments)
        }
        "revert" => arguments.first().is_none_or(|first| first != "--no-edit"),
        _ => false,
    }
}

/// Whether a message is given, before anything that could take its option for a value.
fn has_message(arguments: &[String]) -> bool {
    for word in arguments {
        let option = word.split('=').next().unwrap_or_default();
        let plain = |letter: char| "afnoqsv".contains(letter);
        match (option, option.strip_prefix('-')) {
            ("--message" | "--file" | "--reuse-message" | "--no-edit" | "--dry-run", _) => {
                return true;
            }
            (option, _) if BEFORE_MESSAGE.contains(&option) => {}
            (option, _) if option.starts_with("--") && option != word => {}
            (_, Some(letters)) if !letters.is_empty() && !letters.starts_with('-') => {
                let rest = letters.trim_start_matches(plain);
                match rest.is_empty() {
                    true => {}
                    false => return rest.starts_with(['m', 'F', 'C']),
                }
            }
            _ => return false,
        }
    }
    false
}

/// Whether a word leads to where git keeps its settings and hooks.
fn is_inside(word: &str) -> bool {
    word.split(['/', '=', ':']).any(|part| part.eq_ignore_ascii_case(".git"))
}

/// Whether a word is an address that names the program which is to read it.
fn names_a_helper(word: &str) -> bool {
    let address = word.rsplit('=').next().unwrap_or_default();
    let name = address.split_once("::").map(|(name, _)| name);
    name.is_some_and(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Option<String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        launching(&words).map(str::to_owned)
    }

    #[test]
    fn tables_are_in_order() {
        assert!(OPTIONS.is_sorted());
        assert!(SUBCOMMANDS.is_sorted());
        for name in SOME.iter().flat_map(|it| it.programs).chain(&REMOTE) {
            assert!(SUBCOMMANDS.contains(name), "{name}");
        }
    }

    #[test]
    fn the_word_is_named_that_would_run_something() {
        let table = [
            ("-c a=b log", "-c"),
            ("-p log", "-p"),
            ("-C", "-C"),
            ("-C a -C", "-C"),
            ("--git-dir=x log", "--git-dir=x"),
            ("--work-tree=x checkout a", "--work-tree=x"),
            ("--help log", "--help"),
            ("-C .git log", ".git"),
            ("statsu", "statsu"),
            ("remote-ext x y", "remote-ext"),
            ("merge-index x -a", "merge-index"),
            ("log --outp=x", "--outp=x"),
            ("log --help", "--help"),
            ("mv a .GIT/config", ".GIT/config"),
            ("clone --config=a=b c", "--config=a=b"),
            ("fetch x::y", "x::y"),
            ("remote add o x::y", "x::y"),
            ("grep -nOx y", "-nOx"),
            ("merge -s index x", "-s"),
            ("commit", "commit"),
            ("commit -a", "commit"),
            ("commit a -m", "commit"),
            ("commit -- -m", "commit"),
            ("commit --pathspec-from-file -m", "commit"),
            ("commit -ac HEAD", "-ac"),
            ("commit -m x -e", "-e"),
            ("commit -am x --edit", "--edit"),
            ("tag -a v1", "tag"),
            ("revert HEAD", "revert"),
            ("add -p", "-p"),
            ("rebase --continue", "--continue"),
        ];
        for (line, word) in table {
            // Without a folder and a subcommand, git itself complains.
            let expected = (word != "-C").then(|| word.to_owned());
            assert_eq!(found(line), expected, "{line}");
        }
        for line in ["", "--version", "-C a -P log", "grep a::b", "diff --text", "push -u o main"] {
            let words = line.split(' ').filter(|word| !word.is_empty());
            let words: Vec<String> = words.map(str::to_owned).collect();
            assert_eq!(launching(&words), None, "{line}");
        }
    }
}
