//! What `sed` does: one command of it runs programs, and hides well.

/// Which argument of `sed` might run a program; `None` if none does. Scripts that cannot be judged
/// at a glance are taken only behind `--sandbox`, by which `sed` itself refuses that command.
pub(super) fn launching(arguments: &[String]) -> Option<&str> {
    if arguments.first().is_some_and(|first| first == "--sandbox") {
        return None;
    }
    let mut rest = arguments.iter().map(String::as_str);
    let mut operands = Vec::new();
    let mut has_script = false;
    while let Some(word) = rest.next() {
        let script = match word.strip_prefix("--").ok_or_else(|| word.strip_prefix('-')) {
            Ok("") => {
                operands.extend(rest.by_ref());
                continue;
            }
            Ok(long) => match long.split_once('=') {
                Some(("expression", script)) => Some(script),
                Some(("in-place" | "line-length", _)) => None,
                None if LONG.contains(&long) => None,
                _ => return Some(word),
            },
            Err(None | Some("")) => {
                operands.push(word);
                continue;
            }
            Err(Some(cluster)) => match script_of(cluster) {
                Cluster::Flags => None,
                Cluster::Script("") => Some(rest.next().unwrap_or_default()),
                Cluster::Script(script) => Some(script),
                Cluster::Unknown => return Some(word),
            },
        };
        if let Some(script) = script {
            has_script = true;
            if !is_plain(script) {
                return Some(script);
            }
        }
    }
    let script = operands.first().copied().filter(|_| !has_script);
    script.filter(|script| !is_plain(script))
}

/// Options that take nothing and run nothing.
const LONG: [&str; 10] = [
    "debug",
    "help",
    "in-place",
    "null-data",
    "posix",
    "quiet",
    "regexp-extended",
    "separate",
    "silent",
    "version",
];

/// What options of one letter come to.
enum Cluster<'a> {
    Flags,
    /// This is a script, or, if it is empty, what follows.
    Script(&'a str),
    Unknown,
}

fn script_of(cluster: &str) -> Cluster<'_> {
    for (at, letter) in cluster.char_indices() {
        match letter {
            'n' | 'E' | 'r' | 's' | 'u' | 'z' => {}
            'i' => return Cluster::Flags,
            'e' => return Cluster::Script(&cluster[at + 1..]),
            _ => return Cluster::Unknown,
        }
    }
    Cluster::Flags
}

/// Whether a script is one command that prints, deletes, replaces or adds lines.
fn is_plain(script: &str) -> bool {
    let Some(rest) = without_addresses(script.trim_start()) else { return false };
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('!').map_or(rest, str::trim_start);
    let mut characters = rest.chars();
    let command = characters.next();
    let after = characters.as_str();
    match command {
        Some('p' | 'd' | 'D' | 'P' | 'h' | 'H' | 'g' | 'G' | 'x' | 'n' | 'N' | '=') => {
            after.trim_end().is_empty()
        }
        Some('q' | 'Q') => after.trim().chars().all(|c| c.is_ascii_digit()),
        Some('a' | 'i' | 'c') => true,
        Some('s' | 'y') => {
            let flags =
                |rest: &str| rest.trim_end().chars().all(|c| "gpiIMm0123456789".contains(c));
            let parts = || {
                let delimiter = after.chars().next().filter(char::is_ascii_punctuation)?;
                let after = &after[delimiter.len_utf8()..];
                behind(behind(after, delimiter)?, delimiter)
            };
            !after.starts_with('\\') && parts().is_some_and(flags)
        }
        _ => false,
    }
}

/// What follows the lines that a command is for; `None` if they are not understood.
fn without_addresses(script: &str) -> Option<&str> {
    let rest = without_address(script)?;
    match rest.trim_start().strip_prefix(',') {
        Some(second) if rest.len() < script.len() => {
            let second = second.trim_start();
            let second = second.strip_prefix(['+', '~']).unwrap_or(second);
            without_address(second).filter(|rest| rest.len() < second.len())
        }
        _ => Some(rest),
    }
}

fn without_address(script: &str) -> Option<&str> {
    match script.chars().next() {
        Some('/') => behind(&script[1..], '/').map(|rest| rest.trim_start_matches(['I', 'M'])),
        Some('$') => Some(&script[1..]),
        Some('0'..='9') => {
            let rest = script.trim_start_matches(|c: char| c.is_ascii_digit());
            let step = rest.strip_prefix('~').unwrap_or(rest);
            Some(step.trim_start_matches(|c: char| c.is_ascii_digit()))
        }
        _ => Some(script),
    }
}

/// What follows the next delimiter that is not behind a backslash.
fn behind(text: &str, delimiter: char) -> Option<&str> {
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                characters.next()?;
            }
            character if character == delimiter => return Some(characters.as_str()),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(words: &[&str]) -> bool {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        launching(&words).is_some()
    }

    #[test]
    fn plain_scripts_run_nothing() {
        let table: [&[&str]; 22] = [
            &["-n", "5p", "f"],
            &["-n", "2,5p", "f"],
            &["-n", "/re/,/x\\/y/p"],
            &["-n", "$="],
            &["/x/d", "f"],
            &["/x/!d"],
            &["/x/I,+3d"],
            &["0~3d"],
            &["s/a/b/"],
            &["-i", "s/a/b/g", "f"],
            &["-i.bak", "-E", "s,(a+),\\1,gI", "f"],
            &["-nE", "-e", "s/a/b/p", "-e", "1d", "f"],
            &["-ne", "1p"],
            &["-es/a/b/"],
            &["--expression=s/a/b/2", "--quiet", "f"],
            &["--in-place=.bak", "1d", "f"],
            &["y/abc/xyz/"],
            &["3q"],
            &["3q5"],
            &["$a the end"],
            &["--sandbox", "-f", "script.sed"],
            &["--", "1d", "e"],
        ];
        for words in table {
            assert!(!is_refused(words), "{words:?}");
        }
        assert!(!is_refused(&[]));
    }

    #[test]
    fn whatever_could_run_a_program_is_refused() {
        let table: [&[&str]; 24] = [
            &["1e id"],
            &["e"],
            &["e id"],
            &["s/a/b/e"],
            &["s/a/b/ge"],
            &["s,a,id,e"],
            &["s/a/id/eg", "f"],
            &["-n", "-e", "1p", "-e", "1e id"],
            &["-ne", "1e id"],
            &["-e1e id"],
            &["--expression=1e id"],
            &["--expr=1e id"],
            &["-f", "script.sed"],
            &["-nf", "script.sed"],
            &["--file=script.sed"],
            &["1{e id"],
            &["/x/e"],
            &["/x/,/y/ e id"],
            &["1,2!e id"],
            &["\\cxce id"],
            &["s\\a\\b\\e"],
            &["sxaxidxe"],
            &["1w out"],
            &["s/a/b/", "--sandbox", "-e", "e id"],
        ];
        for words in table {
            assert!(is_refused(words), "{words:?}");
        }
        let more = [
            ["--", "1e id"],
            ["-e", ""],
            ["1,e", "f"],
            ["1,p", "f"],
            [",5p", "f"],
            ["s/a/b", "f"],
            ["--file", "a.sed"],
            ["--expression", "1d"],
            ["--quie", "1d"],
        ];
        for words in more {
            assert!(is_refused(&words), "{words:?}");
        }
    }
}
