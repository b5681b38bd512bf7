//! Programs that run other programs: by their nature, by an option, or by code in an argument.

use super::lists::last_name;
use super::programs::{KINDS, LANGUAGES, LAUNCHERS, LAUNCHING, LOADERS, Launching, NOTHING};
use super::sed;

const USE_THE_PROGRAM: &str = "run that program itself, or a script of the skill";
const USE_THE_SANDBOX: &str = "write one plain command, or begin its arguments with --sandbox";

/// Whether running others is what a program is for.
pub(super) fn is_launcher(name: &str) -> bool {
    let name = last_name(name);
    LOADERS.iter().any(|start| name.starts_with(start))
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

/// The names that a program is known by: its own, without what kind of it this is, and without the
/// number of its version.
fn spellings(name: &str) -> impl Iterator<Item = &str> {
    let kind = KINDS.iter().find_map(|kind| name.strip_suffix(kind)).unwrap_or(name);
    let version = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-');
    [name, kind, kind.trim_end_matches(version)].into_iter()
}

impl Launching {
    fn is_meant(&self, word: &str) -> bool {
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
