//! Which calls an entry such as `Bash(git:*)` covers.

use prowess_format::ToolPattern;
use serde_json::Value;

/// How sure one must be that an entry covers a call: what allows must, what forbids need not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Certainty {
    /// It surely does.
    Certain,
    /// It may.
    Possible,
}

/// The arguments that a scope can be about, and what kind of text they are.
const SUBJECTS: [(&str, Subject); 8] = [
    ("command", Subject::Command),
    ("cmd", Subject::Command),
    ("file_path", Subject::Path),
    ("file_name", Subject::Path),
    ("path", Subject::Path),
    ("file", Subject::Path),
    ("url", Subject::Url),
    ("query", Subject::Text),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Command,
    Path,
    Url,
    Text,
}

/// A call, and what its tool says that it takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Called<'a> {
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a Value,
    pub(crate) schema: &'a Value,
}

impl Called<'_> {
    /// Whether the tool may heed an argument: it says so, or says nothing of any.
    fn takes(&self, name: &str) -> bool {
        let properties = self.schema.get("properties").and_then(Value::as_object);
        properties.is_none_or(|known| known.is_empty() || known.contains_key(name))
    }
}

/// Whether an entry covers a call.
///
/// Nobody here knows which of its arguments a tool heeds: what allows must cover all that a scope
/// can be about, and the tool take one of them; what forbids need cover only one.
pub(super) fn covers(entry: &ToolPattern, call: Called<'_>, certainty: Certainty) -> bool {
    if !names(&entry.tool, call.tool) {
        return false;
    }
    let Some(scope) = entry.scope.as_deref().map(str::trim) else { return true };
    if scope.is_empty() || scope == "*" || scope == ":*" {
        return true;
    }
    let is_said = |name: &str| call.arguments.get(name).is_some_and(|value| !value.is_null());
    let said = || SUBJECTS.iter().filter(|(name, _)| is_said(name));
    let mut covered = said().map(|(name, subject)| {
        let text = call.arguments.get(name).and_then(Value::as_str);
        text.and_then(|text| subject.is_covered(scope, text, certainty))
    });
    match certainty {
        Certainty::Certain => {
            said().any(|(name, _)| call.takes(name)) && covered.all(|it| it == Some(true))
        }
        Certainty::Possible => said().next().is_none() || covered.any(|it| it != Some(false)),
    }
}

impl Subject {
    /// Whether a scope covers a text of this kind; `None` if nobody can tell.
    fn is_covered(self, scope: &str, text: &str, certainty: Certainty) -> Option<bool> {
        match self {
            Self::Command => Some(command(scope, text, certainty)),
            Self::Path => path(scope, text),
            Self::Url => url(scope, text),
            Self::Text => Some(matches_text(scope, text)),
        }
    }
}

/// Whether an entry names a tool: by its name, all of them, or those of an MCP server.
fn names(entry: &str, tool: &str) -> bool {
    if entry == tool || entry == "*" {
        return true;
    }
    let Some(rest) = entry.strip_prefix("mcp__") else { return false };
    let of_server = tool.strip_prefix(entry).and_then(|tool| tool.strip_prefix("__"));
    match rest.contains('*') {
        true => matches_text(entry, tool),
        false => {
            !rest.is_empty() && !rest.contains("__") && of_server.is_some_and(|it| !it.is_empty())
        }
    }
}

/// What makes more of a text than one command with its arguments.
const SEPARATORS: [char; 9] = ['\n', '\r', ';', '&', '|', '<', '>', '(', ')'];
/// What makes a command that only a shell can tell.
const EXPANSIONS: [char; 3] = ['$', '`', '\\'];

fn command(scope: &str, text: &str, certainty: Certainty) -> bool {
    let is_plain = !text.contains(SEPARATORS) && !text.contains(EXPANSIONS);
    match certainty {
        Certainty::Certain => is_plain && one_command(scope, text),
        Certainty::Possible => {
            // Behind a redirection stands a file, and then a command may follow.
            let skipped = usize::from(text.contains(['<', '>']));
            text.contains(EXPANSIONS)
                || text.split(SEPARATORS).any(|part| may_run(scope, part, skipped))
        }
    }
}

/// Words that a command can stand behind: of the shell, and programs that run another one.
const RUNNERS: [&str; 37] = [
    "!", "{", "bash", "builtin", "busybox", "chroot", "command", "coproc", "dash", "do", "doas",
    "elif", "else", "env", "eval", "exec", "find", "flock", "if", "ionice", "ksh", "nice", "nohup",
    "parallel", "setsid", "sh", "stdbuf", "sudo", "taskset", "then", "time", "timeout", "unshare",
    "until", "while", "xargs", "zsh",
];
/// So many words behind such a word are looked at; of more only a shell can tell.
const MAX_WORDS: usize = 100;

/// Whether a part of a command may run what a scope is about, whatever folder it is in: at its
/// beginning, behind so many words, or anywhere if it begins with a word that runs others.
fn may_run(scope: &str, part: &str, skipped: usize) -> bool {
    let unquoted = |text: &str| text.replace(['"', '\''], "");
    let is_assignment = |word: &str| {
        word.split_once('=').is_some_and(|(name, _)| {
            let name = name.strip_suffix('+').unwrap_or(name);
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        })
    };
    let (scope, part) = (without_folder(&unquoted(scope)), unquoted(part));
    let words: Vec<&str> = part.split_whitespace().skip_while(|it| is_assignment(it)).collect();
    let Some(first) = words.first() else { return false };
    let is_pattern =
        |word: &str| word.len() > 1 && word != "[[" && word.contains(['*', '?', '[', '{']);
    let runs_others = RUNNERS.contains(&without_folder(first).as_str());
    if is_pattern(first) || runs_others && words.len() > MAX_WORDS {
        return true;
    }
    let places = if runs_others { words.len() } else { words.len().min(1 + skipped) };
    (0..places).any(|at| one_command(&scope, &without_folder(&words[at..].join(" "))))
}

/// A command whose program is named without the folder that it is in.
fn without_folder(command: &str) -> String {
    let (program, rest) = command.split_at(command.find(' ').unwrap_or(command.len()));
    let name = program.rsplit('/').next().unwrap_or_default();
    format!("{name}{rest}")
}

/// `git:*` covers `git` and everything that begins with it; else `*` stands for anything.
fn one_command(scope: &str, text: &str) -> bool {
    let text = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    match scope.strip_suffix(":*") {
        Some(prefix) => {
            let rest = text.strip_prefix(prefix.trim_end());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        }
        None => matches_text(scope, &text),
    }
}

/// A path below a pattern. Nobody can tell where a path with `..` or `~` leads, nor in which folder
/// a tool works.
fn path(scope: &str, text: &str) -> Option<bool> {
    if text.starts_with('~') || text.split('/').any(|part| part == "..") {
        return None;
    }
    let is_absolute = |path: &str| path.starts_with('/');
    let parts = |path| -> Vec<&str> {
        str::split(path, '/').filter(|part| !matches!(*part, "" | ".")).collect()
    };
    let (pattern, names) = (parts(scope), parts(text));
    let end_of = |all: &[&str], matches: &dyn Fn(&[&str]) -> bool| {
        (0..all.len()).any(|at| matches(&all[at..]))
    };
    let may = match (is_absolute(scope), is_absolute(text)) {
        (false, true) if pattern.first() != Some(&"**") => {
            end_of(&names, &|names| matches_path(&pattern, names))
        }
        (true, false) => end_of(&pattern, &|pattern| matches_path(pattern, &names)),
        _ => return Some(matches_path(&pattern, &names)),
    };
    if may { None } else { Some(false) }
}

/// `**` stands for any number of folders, and at the end for everything below.
fn matches_path(pattern: &[&str], path: &[&str]) -> bool {
    // How much of the path the pattern can stand for up to here.
    let mut reached = vec![false; path.len() + 1];
    reached[0] = true;
    for (at, part) in pattern.iter().enumerate() {
        let mut next = vec![false; path.len() + 1];
        let is_last = at + 1 == pattern.len();
        let mut is_below = false;
        for end in 0..=path.len() {
            next[end] = match *part {
                "**" => is_below || reached[end] && !is_last,
                name => end > 0 && reached[end - 1] && matches_text(name, path[end - 1]),
            };
            is_below |= reached[end];
        }
        reached = next;
    }
    reached[path.len()]
}

/// `domain:example.com`, or an address; nobody knows the host of one that is written to confuse.
fn url(scope: &str, text: &str) -> Option<bool> {
    let (scheme, rest) = text.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':');
    let is_web = matches!(scheme, "http" | "https");
    if !is_web || authority.is_empty() || !authority.chars().all(is_plain) {
        return None;
    }
    let Some(domain) = scope.strip_prefix("domain:") else {
        // The case of a host means nothing.
        let may = matches_text(&scope.to_ascii_lowercase(), &text.to_ascii_lowercase());
        return if may && !matches_text(scope, text) { None } else { Some(may) };
    };
    let host = authority.split(':').next().unwrap_or_default().to_ascii_lowercase();
    let host = host.strip_suffix('.').unwrap_or(&host);
    Some(matches_text(&domain.to_ascii_lowercase(), host))
}

/// Whether a text is a pattern in which `*` stands for anything.
fn matches_text(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let Some(last) = parts.pop() else { return true };
    for part in parts {
        match text.find(part) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    text.ends_with(last)
}

#[cfg(test)]
#[path = "scope_tests.rs"]
mod tests;
