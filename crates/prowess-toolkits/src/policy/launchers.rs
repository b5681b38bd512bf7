//! Programs that run other programs: by their nature, by an option, or by code in an argument.

use super::lists::last_name;
use super::programs::{
    BEGINNINGS, KINDS, LANGUAGES, LAUNCHERS, LAUNCHING, LINKING, Launching, MACHINES, NOTHING,
};
use super::{git, sed};

const USE_THE_PROGRAM: &str = "run that program itself, or a script of the skill";
const USE_PLAIN_GIT: &str = "use a plain subcommand, as status, log, diff, add, commit, fetch or \
                             push, without it";
const USE_THE_SANDBOX: &str = "write one plain command, or begin its arguments with --sandbox";

/// Options of env that have a value, which may follow as a word of its own.
const VALUES: [&str; 3] = ["--argv0", "--chdir", "--unset"];

/// Whether running others is what a program is for.
pub(super) fn is_launcher(name: &str) -> bool {
    let name = last_name(name);
    BEGINNINGS.iter().any(|start| name.starts_with(start))
        || spellings(&name).any(|name| LAUNCHERS.contains(&name))
}

/// By which argument a program would run others, and what to do instead.
pub(super) fn launching<'a>(
    name: &str,
    arguments: &'a [String],
) -> Option<(&'a str, &'static str)> {
    let name = last_name(name);
    let is_called = |called: &str| spellings(&name).any(|name| name == called);
    if is_called("sed") || is_called("gsed") {
        return sed::launching(arguments).map(|word| (word, USE_THE_SANDBOX));
    }
    if is_called("git") {
        return git::launching(arguments).map(|word| (word, USE_PLAIN_GIT));
    }
    if is_called("env") {
        return splitting(arguments).map(|word| (word, USE_THE_PROGRAM));
    }
    if is_called("rustc")
        && let Some(word) = arguments.iter().find(|word| links_otherwise(word))
    {
        return Some((word, USE_THE_PROGRAM));
    }
    let launching = LAUNCHING.iter().find(|it| it.programs.iter().any(|name| is_called(name)))?;
    // The first argument of tar may be options without a dash.
    let bundle = arguments.first().filter(|first| !first.starts_with('-') && is_called_tar(&name));
    let bundle = bundle.filter(|first| first.contains(|c| launching.short.contains(c)));
    let found = bundle.or_else(|| arguments.iter().find(|word| launching.is_meant(word)));
    found.map(|word| (word.as_str(), USE_THE_PROGRAM))
}

/// Whether the arguments of a language hold code.
pub(super) fn runs_code(name: &str, arguments: &[String]) -> bool {
    let name = last_name(name);
    let is_called = |called: &&str| spellings(&name).any(|name| name == *called);
    let language = LANGUAGES.iter().find(|(names, ..)| names.iter().any(is_called));
    language.is_some_and(|(_, short, long)| {
        let options = Launching { long, short, words: long, ..NOTHING };
        arguments.iter().any(|word| options.is_meant(word))
    })
}

fn is_called_tar(name: &str) -> bool {
    spellings(name).any(|name| matches!(name, "tar" | "gtar" | "bsdtar"))
}

/// The option of env that makes words of a text, among those before the program.
fn splitting(arguments: &[String]) -> Option<&str> {
    let mut words = arguments.iter();
    loop {
        let word = words.next().filter(|word| word.starts_with('-') && *word != "--")?;
        let takes_next = match word.strip_prefix("--") {
            Some(_) => {
                let option = word.split('=').next().unwrap_or_default();
                if "--split-string".starts_with(option) {
                    return Some(word);
                }
                word == option && VALUES.iter().any(|long| long.starts_with(option))
            }
            None => {
                let letters = &word[1..];
                let value = letters.find(['u', 'C', 'a']);
                if letters[..value.unwrap_or(letters.len())].contains('S') {
                    return Some(word);
                }
                value.is_some_and(|at| at + 1 == letters.len())
            }
        };
        if takes_next {
            words.next();
        }
    }
}

/// Whether a word lets rustc run another linker, or give it instructions.
fn links_otherwise(word: &str) -> bool {
    let option = match (word.strip_prefix("--codegen="), word.strip_prefix('-')) {
        (Some(option), _) => option,
        (None, Some(letters)) if !letters.starts_with('-') => {
            letters.split_once('C').map_or(letters, |(_, option)| option)
        }
        _ => word,
    };
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    !value.is_empty() && LINKING.contains(&name.replace('_', "-").as_str())
}

/// The names that a program is known by: its own, and that without the machine it is for; without
/// what kind of it this is, and without the number of its version.
fn spellings(name: &str) -> impl Iterator<Item = &str> {
    let plain = without_machine(name).unwrap_or(name);
    let kind = KINDS.iter().find_map(|kind| plain.strip_suffix(kind)).unwrap_or(plain);
    let version = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-');
    [name, plain, kind, kind.trim_end_matches(version)].into_iter()
}

/// The names of a program for one machine (`x86_64-linux-gnu-gcc-12`) as it is called elsewhere
/// (`gcc-12`, `gcc`), in lower case; of any other, none.
pub(super) fn elsewhere(name: &str) -> impl Iterator<Item = &str> {
    without_machine(name).into_iter().flat_map(spellings)
}

/// A name without the machine in front or at its end, if there is one.
fn without_machine(name: &str) -> Option<&str> {
    let system = name.find("-linux-")?;
    let after = &name[system + "-linux-".len()..];
    let vendor = ["-pc", "-unknown"].iter().find_map(|it| name[..system].strip_suffix(it));
    let machine = vendor.unwrap_or(&name[..system]);
    let start = machine.rfind('-').map_or(0, |at| at + 1);
    MACHINES.iter().find(|it| machine[start..].starts_with(**it))?;
    match start {
        0 => after.split_once('-').map(|(_, program)| program),
        start => Some(&name[..start - 1]),
    }
}

impl Launching {
    pub(super) fn is_meant(&self, word: &str) -> bool {
        let lower = self.any_case.then(|| word.to_lowercase());
        let word = lower.as_deref().unwrap_or(word);
        let is_word = self.words.contains(&word)
            || self.beginnings.iter().any(|beginning| word.starts_with(beginning))
            || self.endings.iter().any(|ending| word.ends_with(ending));
        let option = word.split('=').next().unwrap_or_default();
        let is_option = match (option.strip_prefix("--"), option.strip_prefix('-')) {
            (Some(""), _) | (None, None) => false,
            // An option may be cut as long as it cannot be mistaken.
            (Some(_), _) if self.others.contains(&option) => false,
            (Some(_), _) => self.long.iter().any(|long| long.starts_with(option)),
            (None, Some(letters)) => letters.contains(|letter| self.short.contains(letter)),
        };
        is_word || is_option
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_in_lower_case() {
        assert!(LAUNCHERS.is_sorted_by(|one, other| one < other));
        for name in LAUNCHERS {
            assert_eq!(*name, name.to_lowercase());
        }
    }

    #[test]
    fn launchers_are_known_by_every_spelling() {
        let table = [
            "bash",
            "BASH",
            "/bin/sh",
            "./env",
            "vim.basic",
            "busybox-static",
            "bash5.2",
            "gawk-5.1",
            "sqlite3",
            "ld-linux-x86-64.so.2",
            "/lib64/ld-linux-x86-64.so.2",
            "ld-musl-x86_64.so.1",
            "nc.openbsd",
            "x86_64",
            "linux32",
            "systemd-run",
            "cargo",
            "toybox",
        ];
        for name in table {
            assert!(is_launcher(name), "{name}");
        }
        for name in ["ls", "python3", "cat", "find", "git", "tar", "", "3", ".", "shuf", "bashful"]
        {
            assert!(!is_launcher(name), "{name}");
        }
    }

    #[test]
    fn a_program_for_one_machine_is_known() {
        let table = [
            ("perl5.36-x86_64-linux-gnu", "perl"),
            ("x86_64-linux-gnu-gcc", "gcc"),
            ("aarch64-linux-gnu-g++-12", "g++"),
            ("arm-linux-gnueabihf-gcc-12", "gcc"),
            ("x86_64-pc-linux-gnu-clang", "clang"),
            ("x86_64-linux-gnux32-gcc", "gcc"),
            ("i686-linux-musl-cc", "cc"),
        ];
        for (name, program) in table {
            assert!(elsewhere(name).any(|it| it == program), "{name}");
            assert!(spellings(name).any(|it| it == program), "{name}");
        }
        for name in ["gcc", "x86_64", "a-linux-b-c", "x86_64-linux-gnu", "-linux-", "linux-gnu-gcc"]
        {
            assert_eq!(elsewhere(name).next(), None, "{name}");
        }
    }

    #[test]
    fn options_are_known_cut_and_bundled() {
        let launching = |line: &str| {
            let mut words = line.split(' ').map(str::to_owned);
            let name = words.next().unwrap();
            launching(&name, &words.collect::<Vec<_>>()).map(|(word, _)| word.to_owned())
        };
        let table = [
            ("find . -exec rm", "-exec"),
            ("find . -name x -okdir rm", "-okdir"),
            ("tar xf a --to-command=rm", "--to-command=rm"),
            ("tar xf a --to-comm rm", "--to-comm"),
            ("tar -xIf rm a", "-xIf"),
            ("tar xIf rm a", "xIf"),
            ("/bin/tar --checkpoint-act=exec=rm", "--checkpoint-act=exec=rm"),
            ("git -c core.pager=rm log", "-c"),
            ("git -ccore.pager=rm log", "-ccore.pager=rm"),
            ("rsync -ae rm a b", "-ae"),
            ("sed 1e", "1e"),
            ("GTAR cI rm", "cI"),
        ];
        for (line, option) in table {
            assert_eq!(launching(line).as_deref(), Some(option), "{line}");
        }
        for line in [
            "find . -name exec",
            "tar -xzf a.tgz -C out",
            "tar xzf a.tgz",
            "git log --oneline -5",
            "git -C repo status",
            "rsync -av a b",
            "sort -k2 -n a",
            "sed -n 5p a",
            "ls -exec",
            "tar --",
            "tar -cf IF.tar a",
        ] {
            assert_eq!(launching(line), None, "{line}");
        }
    }

    #[test]
    fn code_in_arguments_is_noticed() {
        let runs = |line: &str| {
            let mut words = line.split(' ').map(str::to_owned);
            let name = words.next().unwrap();
            runs_code(&name, &words.collect::<Vec<_>>())
        };
        for line in [
            "python3 -c x",
            "python3.11 -Bc x",
            "perl -ne x",
            "node --eval x",
            "node --ev=x",
            "deno eval x",
            "ruby -e x",
            "php -r x",
            "Rscript -e x",
        ] {
            assert!(runs(line), "{line}");
        }
        for line in ["python3 a.py", "perl a.pl", "node a.js", "deno run a.ts", "ls -c -e"] {
            assert!(!runs(line), "{line}");
        }
    }
}
