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
        ("mcp__git__*", "mcp__git", json!({}), false, false),
        ("mcp__git", "mcp__git__", json!({}), false, false),
        ("mcp__my__git__*", "mcp__my__git__push", json!({}), true, true),
        ("mcp__git__p*", "mcp__git__push", json!({}), true, true),
        ("mcp__git__p*", "mcp__git__log", json!({}), false, false),
        ("Re*", "Read", json!({}), false, false),
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
        // However it is named, whatever stands before it.
        ("Bash(rm:*)", "Bash", bash("r'm' x"), false, true),
        ("Bash(rm:*)", "Bash", bash("A+=1 rm x"), false, true),
        ("Bash(rm:*)", "Bash", bash("sudo -u root rm x"), false, true),
        ("Bash(rm:*)", "Bash", bash("/usr/bin/timeout 5 /bin/rm x"), false, true),
        ("Bash(rm:*)", "Bash", bash("sh -c 'rm x'"), false, true),
        ("Bash(rm:*)", "Bash", bash("if true; then rm x; fi"), false, true),
        ("Bash(rm:*)", "Bash", bash("{ A=1 rm x"), false, true),
        ("Bash(rm:*)", "Bash", bash("case x in a) rm x"), false, true),
        ("Bash(rm:*)", "Bash", bash("> out rm x"), false, true),
        ("Bash(rm:*)", "Bash", bash("2>&1 rm x"), false, true),
        ("Bash(rm:*)", "Bash", bash("ls > out"), false, false),
        ("Bash(rm:*)", "Bash", bash("ls > out a rm"), false, false),
        ("Bash(rm:*)", "Bash", bash("{rm,x}"), false, true),
        ("Bash(rm:*)", "Bash", bash("/bin/r? x"), false, true),
        ("Bash(rm:*)", "Bash", bash("r[m] x"), false, true),
        ("Bash(rm:*)", "Bash", bash("r* x"), false, true),
        ("Bash(rm:*)", "Bash", bash("[ -f x ]"), false, false),
        ("Bash(rm:*)", "Bash", bash("[[ -f x ]]"), false, false),
        ("Bash(rm:*)", "Bash", bash("ls [a-z]*"), false, false),
        ("Bash(./bin/up.sh:*)", "Bash", bash("./bin/up.sh now"), true, true),
        ("Bash(./bin/up.sh:*)", "Bash", bash("bin/up.sh now"), false, true),
        ("Bash(say \"a b\":*)", "Bash", bash("say \"a b\""), true, true),
        ("Bash(git:*)", "Bash", bash("git\u{a0}x"), false, true),
        // Whichever argument a tool heeds.
        ("Bash(git:*)", "Bash", json!({"command": "git", "cmd": "rm x"}), false, true),
        ("Bash(rm:*)", "Bash", json!({"command": "git", "cmd": "rm x"}), false, true),
        ("Bash(git:*)", "Bash", json!({"command": ["rm"], "cmd": "git"}), false, true),
        ("Bash(git:*)", "Bash", json!({"command": null, "cmd": "git"}), true, true),
        ("Read(src/*)", "Read", json!({"file_path": "src/a", "path": "/x"}), false, true),
        ("Read(src/*)", "Read", json!({"command": "src/a", "path": "/x"}), false, true),
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
        ("Read(src/**)", "Read", file("~/src/a"), false, true),
        ("Read(a/b)", "Read", file(".//a//b"), true, true),
        ("Read(a/b)", "Read", file("a/b/"), true, true),
        ("Read(a/**/c)", "Read", file("a/c"), true, true),
        ("Read(a/**/c)", "Read", file("a/b/b/d"), false, false),
        ("Read(a/**/b/**)", "Read", file("a/x/b/b/y"), true, true),
        ("Read(**)", "Read", file("/etc/passwd"), true, true),
        ("Read(**)", "Read", file(""), false, false),
        // In which folder a tool works is not known.
        ("Read(/etc/*)", "Read", file("etc/passwd"), false, true),
        ("Read(/etc/*)", "Read", file("passwd"), false, true),
        ("Read(/etc/*)", "Read", file("src/passwd"), false, false),
        ("Read(src/*)", "Read", file("/home/src/a"), false, true),
        ("Read(src/*)", "Read", file("/home/etc/a"), false, false),
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
        ("Web(domain:a.org)", "Web", json!({"url": "https://a.org./x"}), true, true),
        ("Web(domain:a.org)", "Web", json!({"url": "https:///a.org"}), false, true),
        ("Web(https://a.org/*)", "Web", json!({"url": "https://A.org/x"}), false, true),
        ("Web(https://a.org/*)", "Web", json!({"url": "https://x@a.org/x"}), false, true),
        ("Web(https://a.org/*)", "Web", json!({"url": "https://b.org/x"}), false, false),
        ("Web(domain:*.a.org)", "Web", json!({"url": "https://x.a.org"}), true, true),
        ("Web(https://a.org/*)", "Web", json!({"url": "https://a.org/x"}), true, true),
        ("Find(cats)", "Find", json!({"query": "cats"}), true, true),
        ("Find(c*s)", "Find", json!({"query": "cat"}), false, false),
    ];
    for (entry, tool, arguments, allows, forbids) in table {
        let pattern = ToolPattern::parse(entry);
        let what = format!("{entry} {tool} {arguments}");
        let call = Called { tool, arguments: &arguments, schema: &Value::Null };
        assert_eq!(covers(&pattern, call, Certainty::Certain), allows, "{what}");
        assert_eq!(covers(&pattern, call, Certainty::Possible), forbids, "{what}");
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
        ("a*b*b", "ab", false),
        ("a*b*b", "a-b", false),
        ("a*b*b", "a-b-b", true),
        ("**", "x", true),
    ];
    for (pattern, text, expected) in table {
        assert_eq!(matches_text(pattern, text), expected, "{pattern} {text}");
    }
}

#[test]
fn behind_a_program_that_runs_others_a_limited_number_of_words_is_looked_at() {
    let forbids = |words: usize| {
        let command = format!("sudo {}", "x ".repeat(words - 1));
        let (arguments, schema) = (&bash(&command), &Value::Null);
        let call = Called { tool: "Bash", arguments, schema };
        covers(&ToolPattern::parse("Bash(rm:*)"), call, Certainty::Possible)
    };
    assert!(!forbids(MAX_WORDS));
    assert!(forbids(MAX_WORDS + 1));
}

/// A pattern that is written to keep a matcher busy does not.
#[test]
fn no_pattern_takes_long() {
    let scope = format!("{}z", "**/a/".repeat(40));
    let path = "a/".repeat(400);
    let entry = ToolPattern::parse(&format!("Read({scope})"));
    let call = Called { tool: "Read", arguments: &file(&path), schema: &Value::Null };
    assert!(!covers(&entry, call, Certainty::Possible));
}

#[test]
fn what_a_tool_does_not_take_allows_nothing() {
    let entry = ToolPattern::parse("Bash(git:*)");
    let table = [
        (json!({"properties": {"script": {}}}), false),
        (json!({"properties": {"script": {}, "command": {}}}), true),
        (json!({"properties": {}}), true),
        (json!({"type": "object"}), true),
    ];
    for (schema, allows) in table {
        let arguments = &json!({"command": "git log", "script": "rm x"});
        let call = Called { tool: "Bash", arguments, schema: &schema };
        assert_eq!(covers(&entry, call, Certainty::Certain), allows, "{schema}");
        assert!(covers(&entry, call, Certainty::Possible), "{schema}");
    }
}
