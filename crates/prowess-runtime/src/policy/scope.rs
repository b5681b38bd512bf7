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

/// The arguments that a scope can be about, in this order, and what kind of text they are.
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

/// Whether an entry covers a call.
pub(super) fn covers(
    entry: &ToolPattern,
    tool: &str,
    arguments: &Value,
    certainty: Certainty,
) -> bool {
    if !names(&entry.tool, tool) {
        return false;
    }
    let Some(scope) = entry.scope.as_deref().map(str::trim) else { return true };
    if scope.is_empty() || scope == "*" || scope == ":*" {
        return true;
    }
    // A call that says nothing the scope can be about.
    let uncertain = certainty == Certainty::Possible;
    let said = |name: &str| arguments.get(name).and_then(Value::as_str);
    let subject = SUBJECTS.iter().find_map(|(name, subject)| Some((said(name)?, *subject)));
    match subject {
        None => uncertain,
        Some((text, Subject::Command)) => command(scope, text, certainty),
        Some((text, Subject::Path)) => path(scope, text).unwrap_or(uncertain),
        Some((text, Subject::Url)) => url(scope, text).unwrap_or(uncertain),
        Some((text, Subject::Text)) => matches_text(scope, text),
    }
}

/// Whether an entry names a tool: by its name, all of them, or all of an MCP server.
fn names(entry: &str, tool: &str) -> bool {
    if entry == tool || entry == "*" {
        return true;
    }
    let Some(server) = entry.strip_prefix("mcp__") else { return false };
    let server = server.strip_suffix("__*").unwrap_or(server);
    let of_server = tool.strip_prefix("mcp__").and_then(|tool| tool.strip_prefix(server));
    let is_server = !server.is_empty() && !server.contains("__");
    is_server && of_server.is_some_and(|rest| rest.len() > 2 && rest.starts_with("__"))
}

/// What makes more of a text than one command with its arguments.
const SEPARATORS: [char; 8] = ['\n', '\r', ';', '&', '|', '<', '>', '('];
/// What makes a command that only a shell can tell.
const EXPANSIONS: [char; 3] = ['$', '`', '\\'];

fn command(scope: &str, text: &str, certainty: Certainty) -> bool {
    let is_plain = !text.contains(SEPARATORS) && !text.contains(EXPANSIONS);
    match certainty {
        Certainty::Certain => is_plain && one_command(scope, text),
        Certainty::Possible => {
            text.contains(EXPANSIONS)
                || text.split(SEPARATORS).any(|part| one_command(scope, &bare(part)))
        }
    }
}

/// Programs that run the one that is named behind them.
const RUNNERS: [&str; 10] =
    ["builtin", "command", "doas", "env", "exec", "nice", "nohup", "sudo", "time", "xargs"];

/// A command without what can stand before its name: assignments, other programs with their
/// options, and the folder of the program.
fn bare(text: &str) -> String {
    let is_assignment = |word: &str| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        })
    };
    let plain = |word: &str| {
        let word = word.trim_matches(['"', '\'', '{']);
        word.rsplit('/').next().unwrap_or_default().to_owned()
    };
    let mut words = text.split_whitespace().peekable();
    let mut is_run = false;
    while let Some(word) = words.peek() {
        let is_runner = RUNNERS.contains(&plain(word).as_str());
        let is_option = is_run && word.starts_with('-');
        if !(is_assignment(word) || is_runner || is_option) {
            break;
        }
        is_run |= is_runner;
        words.next();
    }
    let program = words.next().map(plain).unwrap_or_default();
    std::iter::once(program.as_str()).chain(words).collect::<Vec<_>>().join(" ")
}

/// `git:*` covers `git` and everything that begins with it; else `*` stands for anything.
fn one_command(scope: &str, text: &str) -> bool {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match scope.strip_suffix(":*") {
        Some(prefix) => {
            let rest = text.strip_prefix(prefix.trim_end());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        }
        None => matches_text(scope, &text),
    }
}

/// A path below a pattern; nobody can tell where a path with `..` leads.
fn path(scope: &str, text: &str) -> Option<bool> {
    let text = text.strip_prefix("./").unwrap_or(text);
    if text.split('/').any(|part| part == "..") {
        return None;
    }
    let scope = match scope.strip_prefix("//") {
        Some(absolute) => format!("/{absolute}"),
        None => scope.strip_prefix("./").unwrap_or(scope).to_owned(),
    };
    let (scope, text): (Vec<&str>, Vec<&str>) =
        (scope.split('/').collect(), text.split('/').filter(|part| *part != ".").collect());
    Some(matches_path(&scope, &text))
}

fn matches_path(scope: &[&str], path: &[&str]) -> bool {
    match (scope, path) {
        ([], []) => true,
        (["**"], path) => !path.is_empty(),
        (["**", rest @ ..], _) => {
            matches_path(rest, path)
                || path.split_first().is_some_and(|(_, below)| matches_path(scope, below))
        }
        ([part, scope @ ..], [name, path @ ..]) => {
            matches_text(part, name) && matches_path(scope, path)
        }
        _ => false,
    }
}

/// `domain:example.com`; the host of a URL that is written to confuse is not known.
fn url(scope: &str, text: &str) -> Option<bool> {
    let Some(domain) = scope.strip_prefix("domain:") else {
        return Some(matches_text(scope, text));
    };
    let (scheme, rest) = text.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':');
    if !matches!(scheme, "http" | "https") || !authority.chars().all(is_plain) {
        return None;
    }
    let host = authority.split(':').next().unwrap_or_default().to_ascii_lowercase();
    Some(matches_text(&domain.to_ascii_lowercase(), &host))
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
mod tests {
    use super::*;
    use serde_json::json;

    /// An entry, a tool, its arguments, whether it allows, whether it forbids.
    type Row = (&'static str, &'static str, Value, bool, bool);

    fn bash(command: &str) -> Value {
        json!({"command": command})
    }

    fn file(path: &str) -> Value {
        json!({"file_path": path})
    }

    #[test]
    fn entries_cover_what_they_say() {
        let table: Vec<Row> = vec![
            ("Read", "Read", json!({}), true, true),
            ("Read", "read", json!({}), false, false),
            ("Read", "ReadMore", json!({}), false, false),
            ("*", "anything", json!({}), true, true),
            // MCP
            ("mcp__git__log", "mcp__git__log", json!({}), true, true),
            ("mcp__git__log", "mcp__git__push", json!({}), false, false),
            ("mcp__git", "mcp__git__push", json!({}), true, true),
            ("mcp__git__*", "mcp__git__push", json!({}), true, true),
            ("mcp__git", "mcp__github__push", json!({}), false, false),
            ("mcp__git", "mcp__git", json!({}), true, true),
            ("mcp__git__*", "mcp__git__", json!({}), false, false),
            ("mcp__", "mcp____x", json!({}), false, false),
            ("mcp__a__b", "mcp__a__b__c", json!({}), false, false),
            // Commands
            ("Bash(git:*)", "Bash", bash("git"), true, true),
            ("Bash(git:*)", "Bash", bash("git  status -s"), true, true),
            ("Bash(git:*)", "Bash", bash("gitk"), false, false),
            ("Bash(git:*)", "Bash", bash("rm x"), false, false),
            ("Bash(git:*)", "Shell", bash("git"), false, false),
            ("Bash(git add:*)", "Bash", bash("git add ."), true, true),
            ("Bash(git add:*)", "Bash", bash("git push"), false, false),
            ("Bash(git add *)", "Bash", bash("git add a b"), true, true),
            ("Bash(git add *)", "Bash", bash("git add"), false, false),
            ("Bash(npm run test)", "Bash", bash("npm run test"), true, true),
            ("Bash(npm run test)", "Bash", bash("npm run test2"), false, false),
            ("Bash(*)", "Bash", bash("anything; at all"), true, true),
            ("Bash()", "Bash", bash("x"), true, true),
            ("Bash(:*)", "Bash", bash("x"), true, true),
            // What allows one command allows no second one; what forbids it forbids it anywhere.
            ("Bash(git:*)", "Bash", bash("git status; rm -rf /"), false, true),
            ("Bash(git:*)", "Bash", bash("git log | sh"), false, true),
            ("Bash(git:*)", "Bash", bash("git log > /etc/passwd"), false, true),
            ("Bash(git:*)", "Bash", bash("git log < x"), false, true),
            ("Bash(git:*)", "Bash", bash("git status && curl x"), false, true),
            ("Bash(git:*)", "Bash", bash("git status\ncurl x"), false, true),
            ("Bash(git:*)", "Bash", bash("git status\rcurl x"), false, true),
            ("Bash(git:*)", "Bash", bash("git $(curl x)"), false, true),
            ("Bash(git:*)", "Bash", bash("git `curl x`"), false, true),
            ("Bash(git:*)", "Bash", bash("git $HOME"), false, true),
            ("Bash(git:*)", "Bash", bash("git a\\;b"), false, true),
            ("Bash(rm:*)", "Bash", bash("ls; rm x"), false, true),
            ("Bash(rm:*)", "Bash", bash("(rm x)"), false, true),
            ("Bash(rm:*)", "Bash", bash("/bin/rm x"), false, true),
            ("Bash(rm:*)", "Bash", bash("A=1 B_2=x rm x"), false, true),
            ("Bash(rm:*)", "Bash", bash("'rm' x"), false, true),
            ("Bash(rm:*)", "Bash", bash("{ rm x"), false, true),
            ("Bash(rm:*)", "Bash", bash("sudo -n /usr/bin/env A=1 rm x"), false, true),
            ("Bash(rm:*)", "Bash", bash("ls -n rm x"), false, false),
            ("Bash(rm:*)", "Bash", bash("sudo"), false, false),
            ("Bash(rm:*)", "Bash", bash("-x rm"), false, false),
            ("Bash(rm:*)", "Bash", bash("echo rm"), false, false),
            ("Bash(rm:*)", "Bash", bash("A-=1 rm"), false, false),
            ("Bash(rm:*)", "Bash", bash("=1 rm"), false, false),
            ("Bash(rm:*)", "Bash", bash("r$X"), false, true),
            ("Bash(rm:*)", "Bash", bash(""), false, false),
            // Nothing that a scope can be about.
            ("Bash(git:*)", "Bash", json!({}), false, true),
            ("Bash(git:*)", "Bash", json!({"command": 7}), false, true),
            ("Bash(git:*)", "Bash", json!("git"), false, true),
            ("Bash(git:*)", "Bash", json!({"cmd": "git log"}), true, true),
            // Paths
            ("Read(src/**)", "Read", file("src/a/b.rs"), true, true),
            ("Read(./src/**)", "Read", file("./src/a.rs"), true, true),
            ("Read(src/**)", "Read", file("src"), false, false),
            ("Read(src/*)", "Read", file("src/a/b.rs"), false, false),
            ("Read(src/*.rs)", "Read", file("src/a.rs"), true, true),
            ("Read(**/*.rs)", "Read", file("a/b/c.rs"), true, true),
            ("Read(**/c.rs)", "Read", file("c.rs"), true, true),
            ("Read(src/**)", "Read", file("src/../secret"), false, true),
            ("Read(src/**)", "Read", file("src/./a"), true, true),
            ("Read(//etc/*)", "Read", file("/etc/passwd"), true, true),
            ("Read(/etc/*)", "Read", file("etc/passwd"), false, false),
            ("Read(a)", "Read", json!({"path": "a"}), true, true),
            ("Read(a)", "Read", json!({"file": "b"}), false, false),
            ("Read(a)", "Read", json!({"file_name": "a"}), true, true),
            // Addresses
            ("Web(domain:a.org)", "Web", json!({"url": "https://A.org:8080/x?y"}), true, true),
            ("Web(domain:a.org)", "Web", json!({"url": "http://b.org/a.org"}), false, false),
            ("Web(domain:a.org)", "Web", json!({"url": "https://a.org@b.org/"}), false, true),
            ("Web(domain:a.org)", "Web", json!({"url": "https://b.org\\@a.org"}), false, true),
            ("Web(domain:a.org)", "Web", json!({"url": "https://b.org#a.org"}), false, false),
            ("Web(domain:a.org)", "Web", json!({"url": "file://a.org/x"}), false, true),
            ("Web(domain:a.org)", "Web", json!({"url": "a.org"}), false, true),
            ("Web(domain:*.a.org)", "Web", json!({"url": "https://x.a.org"}), true, true),
            ("Web(https://a.org/*)", "Web", json!({"url": "https://a.org/x"}), true, true),
            ("Find(cats)", "Find", json!({"query": "cats"}), true, true),
            ("Find(c*s)", "Find", json!({"query": "cat"}), false, false),
        ];
        for (entry, tool, arguments, allows, forbids) in table {
            let pattern = ToolPattern::parse(entry);
            let what = format!("{entry} {tool} {arguments}");
            assert_eq!(covers(&pattern, tool, &arguments, Certainty::Certain), allows, "{what}");
            assert_eq!(covers(&pattern, tool, &arguments, Certainty::Possible), forbids, "{what}");
        }
    }

    #[test]
    fn a_star_stands_for_anything() {
        let table = [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("a*", "ab", true),
            ("*b", "ab", true),
            ("*b", "ba", false),
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*c", "a", false),
            ("ab*ba", "aba", false),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("**", "x", true),
        ];
        for (pattern, text, expected) in table {
            assert_eq!(matches_text(pattern, text), expected, "{pattern} {text}");
        }
    }
}
