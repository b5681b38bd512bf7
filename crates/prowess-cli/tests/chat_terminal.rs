//! `prowess chat` in a real terminal.

mod support;

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use support::Sandbox;
use support::chat::{chat, command, project, stored};
use support::exec::Project;
use support::provider::{Provider, Reply};
use support::terminal::Terminal;

/// Begins a conversation in a terminal.
fn begin(terminal: &Terminal, sandbox: &Sandbox, url: &str, more: &str) {
    let path = sandbox.path().display();
    let line = format!(
        "cd '{path}' && env -u OPENAI_API_KEY HOME='{path}' PROWESS_HOME='{path}/home' \
         PROWESS_SKILLS='{path}/skills' '{}' chat --model openai:test --base-url {url} {more}",
        env!("CARGO_BIN_EXE_prowess"),
    );
    terminal.begin("chat", &line);
    terminal.wait_until("chat", is_ready);
}

/// Whether somebody can type.
fn is_ready(lines: &[String]) -> bool {
    lines.last().is_some_and(|line| line == "›")
}

fn has(text: &str) -> impl Fn(&[String]) -> bool + '_ {
    move |lines| lines.iter().any(|line| line.contains(text))
}

fn enter(terminal: &Terminal, text: &str) {
    terminal.type_text("chat", text);
    terminal.press("chat", &["Enter"]);
}

#[test]
fn an_answer_appears_while_it_comes() {
    let test = "chat_terminal::an_answer_appears_while_it_comes";
    let Some(terminal) = Terminal::new(test) else { return };
    let sandbox = project();
    let provider = Provider::answering([
        Reply::call("load_skill", json!({"skill": "greet"})),
        Reply::slow("one two three four five six seven", Duration::from_millis(600)),
    ]);
    begin(&terminal, &sandbox, &provider.url, "--session s");
    enter(&terminal, "Count");
    terminal.wait_until("chat", has("thinking"));
    let partly = terminal.wait_until("chat", has("two"));
    assert!(!has("seven")(&partly), "all of it came at once: {partly:#?}");
    let whole = terminal.wait_until("chat", is_ready);
    insta::assert_snapshot!("terminal", whole.join("\n"));
    terminal.press("chat", &["C-d"]);
    terminal.wait("chat");
    assert!(has("`prowess chat --session s` goes on.")(&terminal.lines("chat", &[])));
}

#[test]
fn ctrl_c_ends_a_turn_and_keeps_the_session() {
    let test = "chat_terminal::ctrl_c_ends_a_turn_and_keeps_the_session";
    let Some(terminal) = Terminal::new(test) else { return };
    let sandbox = project();
    let provider = Provider::answering([
        Reply::text("Hello."),
        Reply::Endless("Once upon a time".to_owned()),
        Reply::text("The end."),
        Reply::text("Again."),
    ]);
    begin(&terminal, &sandbox, &provider.url, "--session s");
    enter(&terminal, "Hello");
    terminal.wait_until("chat", has("Hello."));
    enter(&terminal, "Tell me a story");
    terminal.wait_until("chat", has("Once upon"));
    terminal.press("chat", &["C-c"]);
    let lines = terminal.wait_until("chat", is_ready);
    assert!(has("! cancelled; ")(&lines) && has("The session is kept: ")(&lines), "{lines:#?}");
    assert_eq!(stored(&sandbox, "s").1, ["user", "assistant", "user"]);
    enter(&terminal, "/resume");
    terminal.wait_until("chat", has("The end."));
    // At the prompt it warns first; what was typed is only discarded.
    terminal.wait_until("chat", is_ready);
    terminal.type_text("chat", "half a thought");
    terminal.wait_until("chat", has("› half a thought"));
    terminal.press("chat", &["C-c"]);
    terminal.wait_until("chat", is_ready);
    terminal.press("chat", &["C-c"]);
    terminal.wait_until("chat", |lines| has("Ctrl-C once more")(lines) && is_ready(lines));
    terminal.press("chat", &["C-c"]);
    terminal.wait("chat");
    assert_eq!(stored(&sandbox, "s").1.len(), 4);
    // And in another process it goes on.
    let run = chat(&sandbox, &provider, &["--continue", "-p", "Once more"], "");
    assert_eq!((run.code, run.stdout.as_str()), (0, "Again.\n"), "{run:?}");
}

/// Ctrl-C reaches what runs in the sandbox too; what it came to is part of the session.
#[test]
fn ctrl_c_ends_a_command_of_a_skill() {
    let test = "chat_terminal::ctrl_c_ends_a_command_of_a_skill";
    let Some(terminal) = Terminal::new(test) else { return };
    let Some(skills) = Project::new(test) else { return };
    let provider = Provider::answering([
        Reply::call("load_skill", json!({"skill": "demo"})),
        Reply::call("skill_run", json!({"skill": "demo", "command": "sleep 300"})),
        Reply::text("It was cut short."),
    ]);
    begin(&terminal, &skills.sandbox, &provider.url, "--session s");
    enter(&terminal, "Sleep");
    terminal.wait_until("chat", has("skill_run demo sleep 300"));
    terminal.press("chat", &["C-c"]);
    let lines = terminal.wait_until("chat", is_ready);
    assert!(has("✗ skill_run demo sleep 300 … ")(&lines), "{lines:#?}");
    assert!(has("The session is kept: ")(&lines), "{lines:#?}");
    let roles = stored(&skills.sandbox, "s").1;
    assert_eq!(roles, ["user", "assistant", "tool", "assistant", "tool"]);
    enter(&terminal, "/session");
    terminal.wait_until("chat", has("The last turn has not come to its end"));
    enter(&terminal, "/resume");
    terminal.wait_until("chat", has("It was cut short."));
}

#[test]
fn skills_that_change_meanwhile_are_noticed() {
    let test = "chat_terminal::skills_that_change_meanwhile_are_noticed";
    let Some(terminal) = Terminal::new(test) else { return };
    let sandbox = project();
    let provider = Provider::answering(["1.", "2."].map(Reply::text));
    begin(&terminal, &sandbox, &provider.url, "--session s");
    enter(&terminal, "Hello");
    terminal.wait_until("chat", |lines| has("1.")(lines) && is_ready(lines));
    let text = "---\nname: fresh\ndescription: Is new. Use it.\n---\nNew.\n";
    sandbox.write("skills/fresh/SKILL.md", text);
    for round in 1.. {
        enter(&terminal, "/skills fresh");
        let lines = terminal.wait_until("chat", |lines| {
            let asked = lines.iter().filter(|line| line.as_str() == "› /skills fresh").count();
            asked == round && is_ready(lines)
        });
        if has("/fresh  Is new. Use it.")(&lines) {
            break;
        }
        assert!(round < 8, "nobody has noticed: {lines:#?}");
        std::thread::sleep(Duration::from_millis(500));
    }
    enter(&terminal, "Hello again");
    terminal.wait_until("chat", |lines| has("2.")(lines) && is_ready(lines));
    let told = provider.messages(1);
    assert!(told[3].1.contains("fresh"), "the model is told: {told:?}");
    assert!(!told[0].1.contains("fresh"), "where it can be cached: {told:?}");
}

#[test]
fn a_turn_that_was_killed_is_offered_again() {
    let test = "chat_terminal::a_turn_that_was_killed_is_offered_again";
    let Some(terminal) = Terminal::new(test) else { return };
    let sandbox = project();
    let provider =
        Provider::answering([Reply::Endless("Once upon".into()), Reply::text("The end.")]);
    let all = ["chat", "--model", "openai:test", "--base-url", &provider.url, "-p", "Tell"];
    let mut killed = command(&sandbox, &all);
    killed.current_dir(sandbox.path()).stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = killed.stdout(Stdio::piped()).spawn().unwrap();
    let mut said = [0; 9];
    child.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    begin(&terminal, &sandbox, &provider.url, "--continue");
    let lines = terminal.lines("chat", &[]);
    assert!(has("The last turn has not come to its end: /resume")(&lines), "{lines:#?}");
    enter(&terminal, "/resume");
    terminal.wait_until("chat", has("The end."));
    assert_eq!(provider.messages(1).last().unwrap().1, "Tell");
}

#[test]
fn lines_are_remembered_completed_and_continued() {
    let test = "chat_terminal::lines_are_remembered_completed_and_continued";
    let Some(terminal) = Terminal::new(test) else { return };
    let sandbox = project();
    let provider = Provider::answering(["1.", "2.", "3.", "4."].map(Reply::text));
    begin(&terminal, &sandbox, &provider.url, "--session s");
    // Tab: a command, a skill, and what it takes.
    terminal.type_text("chat", "/sess");
    terminal.press("chat", &["Tab"]);
    terminal.wait_until("chat", has("› /session"));
    terminal.press("chat", &["C-u"]);
    terminal.type_text("chat", "/gr");
    terminal.press("chat", &["Tab"]);
    terminal.wait_until("chat", has("› /greet [whom]"));
    terminal.type_text("chat", "Ada");
    terminal.wait_until("chat", |lines| has("› /greet Ada")(lines) && !has("[whom]")(lines));
    terminal.press("chat", &["Enter"]);
    terminal.wait_until("chat", |lines| has("1.")(lines) && is_ready(lines));
    assert_eq!(provider.messages(0).last().unwrap().1, "Ada");
    // A line that goes on.
    enter(&terminal, "first \\");
    enter(&terminal, "second");
    terminal.wait_until("chat", |lines| has("2.")(lines) && is_ready(lines));
    assert_eq!(provider.messages(1).last().unwrap().1, "first \nsecond");
    // A paste of several lines is one message.
    terminal.paste("chat", "pasted\nlines");
    terminal.press("chat", &["Enter"]);
    terminal.wait_until("chat", |lines| has("3.")(lines) && is_ready(lines));
    assert_eq!(provider.messages(2).last().unwrap().1, "pasted\nlines");
    enter(&terminal, " a secret");
    terminal.wait_until("chat", |lines| has("4.")(lines) && is_ready(lines));
    enter(&terminal, "/quit");
    terminal.wait("chat");
    // In another process: the last line, and the one before it.
    let history = sandbox.path().join("home/chat_history");
    let mode = std::fs::metadata(&history).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!std::fs::read_to_string(&history).unwrap().contains("secret"));
    let again = Terminal::new(test).unwrap();
    begin(&again, &sandbox, &provider.url, "--continue");
    again.press("chat", &["Up"]);
    again.wait_until("chat", has("› /quit"));
    // Within a message of several lines it goes up line by line.
    again.press("chat", &["Up", "Up", "Up", "Up", "Up", "Up"]);
    again.wait_until("chat", has("› /greet Ada"));
    again.press("chat", &["C-u", "C-d"]);
    again.wait("chat");
}

/// What a model says, or a skill, cannot rename the terminal or clear it.
#[test]
fn nothing_that_is_said_steers_the_terminal() {
    let test = "chat_terminal::nothing_that_is_said_steers_the_terminal";
    let Some(terminal) = Terminal::new(test) else { return };
    const ATTACK: &str = "\u{1b}]2;owned\u{7}\u{1b}[2J\u{1b}[H";
    let sandbox = project();
    sandbox.write("attack", ATTACK);
    terminal.begin("control", &format!("cat '{}/attack'", sandbox.path().display()));
    terminal.wait("control");
    assert_eq!(terminal.title("control"), "owned", "unprotected, the attack succeeds");
    let body = format!("---\nname: evil\ndescription: Evil. Use it.\n---\n{ATTACK}\n");
    sandbox.write("skills/evil/SKILL.md", body);
    let provider = Provider::answering([
        Reply::call("load_skill", json!({"skill": "evil", "arguments": ATTACK})),
        Reply::Thought(ATTACK.to_owned(), format!("{ATTACK}Done.")),
    ]);
    begin(&terminal, &sandbox, &provider.url, "");
    enter(&terminal, "Be evil");
    terminal.wait_until("chat", |lines| has("Done.")(lines) && is_ready(lines));
    enter(&terminal, "/expand 9");
    let lines = terminal.wait_until("chat", |lines| has("thought, ")(lines) && is_ready(lines));
    assert_ne!(terminal.title("chat"), "owned");
    assert!(lines[0].starts_with("Prowess with openai:test"), "nothing was cleared: {lines:#?}");
    assert!(has("\\u{1b}]2;owned\\u{7}")(&lines), "{lines:#?}");
}

/// Without the sizes of results, which hold how long a command ran.
fn without_sizes(line: &str) -> &str {
    match line.starts_with('⏺') {
        true => line.rsplit_once(" (").map_or(line, |(line, _)| line),
        false => line,
    }
}

#[test]
fn the_readme_shows_what_happens() {
    let test = "chat_terminal::the_readme_shows_what_happens";
    let Some(terminal) = Terminal::new(test) else { return };
    let Some(skills) = Project::with_python(test) else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let (_, readme) = readme.split_once("cargo run -- chat --model openai:qwen3").unwrap();
    let (_, shown) = readme.split_once("```text\n").unwrap();
    let (shown, _) = shown.split_once("\n```").unwrap();
    let shown: Vec<&str> = shown.lines().collect();
    let command = "python3 scripts/fib.py 10 out/fib.txt";
    let provider = Provider::answering([
        Reply::call("load_skill", json!({"skill": "python-math"})),
        Reply::call("skill_run", json!({"skill": "python-math", "command": command})),
        Reply::text("The numbers are 0, 1, 1, 2, 3, 5, 8, 13, 21, 34."),
    ]);
    let examples = root.join("examples/skills").canonicalize().unwrap();
    let path = skills.sandbox.path().display();
    let line = format!(
        "cd '{path}' && env -u PROWESS_SKILLS -u SKILLS_ROOT PROWESS_HOME='{path}/home' '{}' chat \
         --model openai:qwen3 --base-url {} --source '{}' --no-default-roots --session numbers",
        env!("CARGO_BIN_EXE_prowess"),
        provider.url,
        examples.display(),
    );
    terminal.begin("chat", &line);
    terminal.wait_until("chat", is_ready);
    let said = shown.iter().find_map(|line| line.strip_prefix("› ")).unwrap();
    enter(&terminal, said);
    let mut lines = terminal.wait_until("chat", |lines| has(" steps")(lines) && is_ready(lines));
    lines.pop();
    let lines: Vec<&str> = lines.iter().map(|line| without_sizes(line)).collect();
    let shown: Vec<&str> = shown.iter().map(|line| without_sizes(line)).collect();
    assert_eq!(lines, shown);
}
