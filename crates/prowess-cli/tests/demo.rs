//! `prowess demo` (S06, 7; S07, 8).

mod support;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use support::exec::{Project, is_there, set_mode};
use support::terminal::Terminal;
use support::{Run, Sandbox, skip};

const MODES: [&str; 3] = ["session", "turn", "once"];
const DIALECTS: [&str; 5] = ["prowess", "deepagents", "trpc", "eino", "langchain_docker"];
const WIDTH: usize = 80;
/// So many answers of the model follow the one that tells what has come of the run.
const AFTER_RUN: usize = 6;

fn demo(arguments: &[&str]) -> Run {
    demo_with(arguments, &[])
}

/// The same with other variables.
fn demo_with(arguments: &[&str], variables: &[(&str, &str)]) -> Run {
    let sandbox = Sandbox::new();
    set_mode(sandbox.path(), 0o755);
    let mut command = Command::new(env!("CARGO_BIN_EXE_prowess"));
    command.arg("demo").args(arguments).env("TMPDIR", sandbox.path());
    command.envs(variables.iter().copied());
    let run = sandbox.run(command, b"");
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    let left = std::fs::read_dir(sandbox.path()).unwrap().count();
    assert_eq!(left, 0, "the workspace is still there");
    run
}

/// Whether the demo's script can run here; else says that a test cannot.
fn can_run(test: &str) -> bool {
    Project::with_python(test).is_some()
}

const NUMBERS: &str = "The numbers are 0, 1, 1, 2, 3, 5, 8, 13, 21, 34.";

/// A screen without what depends on the machine: what is enforced and how long the script ran. Both
/// stand in the result that the last request has, so that its length varies as well, and the sums.
fn stable(text: &str) -> String {
    let mut out = String::new();
    let (mut has_run, mut has_told) = (false, false);
    for line in text.lines() {
        let line = &without_size(line);
        let line = match line.trim_start().starts_with("isolation: ") {
            true => {
                has_run = true;
                "      isolation: [AS FAR AS THE MACHINE CAN]".to_owned()
            }
            false if has_told && line.starts_with("model ") => without_figures(line, &[2, 1]),
            false if has_run && line.starts_with("model ") => {
                has_told = true;
                without_figures(line, &[2])
            }
            false if is_sum(line) => without_figures(line, &[3, 2, 1]),
            false => line.to_owned(),
        };
        out += &line;
        out.push('\n');
    }
    out
}

/// Without the size of a workbook, in which it is written when it was made.
fn without_size(line: &str) -> String {
    match line.split_once(" bytes, 1 sheets)") {
        Some((before, after)) => {
            let before = before.trim_end_matches(|c: char| c.is_ascii_digit());
            format!("{before}#### bytes, 1 sheets){after}")
        }
        None => line.to_owned(),
    }
}

/// Whether it is a row of the table of modes.
fn is_sum(line: &str) -> bool {
    let line = line.trim_start_matches(['>', ' ']);
    MODES.iter().any(|mode| line.starts_with(&format!("{mode} "))) && line.contains(',')
}

/// Without the figures at these places, counted from the last one, in their columns.
fn without_figures(line: &str, places: &[usize]) -> String {
    let is_figure = |word: &&str| word.chars().all(|c| c.is_ascii_digit() || c == ',');
    let figures: Vec<&str> = line.split_whitespace().filter(is_figure).collect();
    let mut line = line.to_owned();
    for place in places {
        let figure = figures[figures.len() - place];
        let at = line.rfind(&format!(" {figure}")).unwrap() + 1;
        line.replace_range(at..at + figure.len(), &"#".repeat(figure.len()));
    }
    line
}

fn events(arguments: &[&str]) -> Vec<Value> {
    let run = demo(&[&["--json"], arguments].concat());
    run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The events of this kind.
fn of<'a>(events: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |event| event["event"] == kind)
}

/// What came of every call: the tool and the code.
fn answers(events: &[Value]) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    of(events, "tool_answered").map(|it| (text(&it["tool"]), text(&it["code"]))).collect()
}

fn count(answers: &[(String, String)], tool: &str, code: &str) -> usize {
    answers.iter().filter(|(one, other)| one == tool && other == code).count()
}

#[test]
fn a_session_is_played() {
    if can_run("demo::a_session_is_played") {
        insta::assert_snapshot!(stable(&demo(&[]).stdout));
    }
}

#[test]
fn a_turn_and_once_are_played() {
    if !can_run("demo::a_turn_and_once_are_played") {
        return;
    }
    for mode in ["turn", "once"] {
        insta::assert_snapshot!(mode, stable(&demo(&["--load-mode", mode]).stdout));
    }
}

#[test]
fn events_are_lines_of_json() {
    if !can_run("demo::events_are_lines_of_json") {
        return;
    }
    let kinds: Vec<String> = events(&[])
        .iter()
        .map(|event| match event["event"].as_str().unwrap() {
            "engine" => format!("  engine {}", event["engine"]["kind"].as_str().unwrap()),
            "tool_answered" => format!(
                "tool_answered {} {}",
                event["tool"].as_str().unwrap(),
                event["code"].as_str().unwrap()
            ),
            kind => kind.to_owned(),
        })
        .collect();
    // What the engine has committed is told a little earlier or later where a tool has a thread of
    // its own.
    let (engine, agent): (Vec<&String>, Vec<&String>) =
        kinds.iter().partition(|kind| kind.starts_with("  engine"));
    let lines: Vec<&str> = agent.iter().chain(&engine).map(|kind| kind.as_str()).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn help_has_examples_that_work() {
    let help = Sandbox::new().prowess(&["demo", "--help"]).stdout;
    insta::assert_snapshot!(help);
    let examples: Vec<&str> =
        help.lines().filter_map(|line| line.strip_prefix("  prowess demo")).collect();
    assert_eq!(examples.len(), 4);
    for example in examples {
        let example = example.split("   ").next().unwrap().split('|').next().unwrap();
        demo(&example.split_whitespace().collect::<Vec<_>>());
    }
}

#[test]
fn what_to_try_next_works() {
    let text = demo(&[]).stdout;
    let commands = text.lines().last().unwrap().strip_prefix("Try next: ").unwrap();
    let sandbox = Sandbox::new();
    for command in commands.split(", or ") {
        let words: Vec<&str> = command.split_whitespace().collect();
        assert_eq!(words[0], "prowess");
        assert_eq!(sandbox.prowess(&words[1..]).code, 0, "{command}");
    }
}

#[test]
fn the_readme_shows_what_happens() {
    if !can_run("demo::the_readme_shows_what_happens") {
        return;
    }
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let shown =
        readme.split("cargo run -- demo\n```").nth(1).unwrap().split("```text").nth(1).unwrap();
    let shown = stable(shown.split("```").next().unwrap());
    let text = stable(&demo(&[]).stdout);
    let mut rest = text.as_str();
    for part in shown.split("\n…\n") {
        let part = part.trim_matches('\n');
        let at = rest.find(part).unwrap_or_else(|| panic!("not in the output:\n{part}"));
        rest = &rest[at + part.len()..];
    }
}

#[test]
fn whoever_has_seen_enough_may_go() {
    let command = format!("'{}' demo | head -n 1", env!("CARGO_BIN_EXE_prowess"));
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command);
    let run = Sandbox::new().run(shell, b"");
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
}

/// What the three modes are documented to do.
#[test]
fn modes_differ_as_documented() {
    let played = MODES.map(|mode| events(&["--load-mode", mode]));
    let [session, turn, once] = played.each_ref().map(|events| answers(events));
    let loads = |answers: &[(String, String)]| count(answers, "load_skill", "loaded");
    // Stays until it is unloaded; goes with the turn; goes with the request. Others are loaded in
    // the last turns.
    assert_eq!([loads(&session), loads(&turn), loads(&once)], [4, 5, 6]);
    let unloads = |answers: &[(String, String)]| count(answers, "unload_skill", "unloaded");
    assert_eq!([unloads(&session), unloads(&turn), unloads(&once)], [1, 1, 0]);
    for answers in [&session, &turn, &once] {
        assert_eq!(count(answers, "pay_refund", "tool_not_allowed"), 1, "{answers:?}");
        assert_eq!(count(answers, "propose_refund", "ok"), 2, "{answers:?}");
    }
    let sums = played.each_ref().map(|events| {
        let sum = |key: &str| -> u64 {
            of(events, "finished").map(|it| it["usage"][key].as_u64().unwrap()).sum()
        };
        (sum("input_tokens"), sum("cached_input_tokens"))
    });
    let [session, turn, once] = sums.map(|(_, cached)| cached);
    assert!(session > turn && turn > once, "a session finds most in the cache: {sums:?}");
    assert!(sums[2].0 < sums[0].0, "once sends least: {sums:?}");
}

/// The figures on the screen are those that the model told.
#[test]
fn figures_are_those_of_the_events() {
    let grouped = |number: u64| match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", number / 1_000, number % 1_000),
    };
    for mode in MODES {
        let events = events(&["--load-mode", mode]);
        let text = demo(&["--load-mode", mode]).stdout;
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("model ")).collect();
        let answers: Vec<&Value> = of(&events, "model_answered").collect();
        assert_eq!(lines.len(), answers.len());
        // The last requests have the result of a run in them, which is not the same twice.
        for (line, answer) in lines.iter().zip(answers).take(lines.len() - 1 - AFTER_RUN) {
            let figure = |key: &str| grouped(answer["usage"][key].as_u64().unwrap());
            let (sent, cached) = (figure("input_tokens"), figure("cached_input_tokens"));
            let shown: Vec<&str> = line.split_whitespace().rev().take(2).collect();
            assert_eq!(shown, [cached.as_str(), sent.as_str()], "{mode}: {line}");
        }
        let sent = |line: &&str| {
            let figure = line.split_whitespace().nth_back(1).unwrap();
            figure.replace(',', "").parse::<u64>().unwrap()
        };
        let sum: u64 = lines.iter().map(sent).sum();
        let row = format!("\n> {mode:11}");
        let row = text.split(&row).nth(1).unwrap().lines().next().unwrap();
        assert_eq!(row.split_whitespace().nth(1).unwrap(), grouped(sum), "{mode}");
    }
}

#[test]
fn every_dialect_plays_in_its_own_words_within_80_columns() {
    let can_run = can_run("demo::every_dialect_plays_in_its_own_words_within_80_columns");
    for dialect in DIALECTS {
        for mode in MODES {
            let run = demo(&["--dialect", dialect, "--load-mode", mode]);
            for line in run.stdout.lines() {
                assert!(line.chars().count() <= WIDTH, "{dialect} {mode}: {line}");
            }
            assert!(!run.stdout.contains('\u{1b}'), "what is piped has no colours");
            assert!(run.stdout.contains("paid 0.00 EUR, proposed 92.00 EUR"), "{}", run.stdout);
            assert!(!can_run || run.stdout.contains(NUMBERS), "{dialect} {mode}: {}", run.stdout);
        }
        let played = answers(&events(&["--dialect", dialect]));
        let (load, reads) = match dialect {
            "trpc" => ("skill_load", "skill_select_docs"),
            "eino" => ("skill", "read_file"),
            "deepagents" => ("load_skill", "read_file"),
            "langchain_docker" => ("load_skill", "load_skill_detail"),
            _ => ("load_skill", "skill_select_docs"),
        };
        assert_eq!(played[0], (load.to_owned(), "loaded".to_owned()), "{dialect}");
        let read = played.iter().find(|(tool, _)| tool == reads).unwrap();
        assert!(["ok", "docs_selected", "detail"].contains(&read.1.as_str()), "{dialect} {read:?}");
        assert_eq!(count(&played, "pay_refund", "tool_not_allowed"), 1, "{dialect}");
    }
}

#[test]
fn the_skills_of_the_demo_are_flawless() {
    let folders = ["demo", "../../examples/skills/python-math"]
        .map(|path| format!("{}/{path}", env!("CARGO_MANIFEST_DIR")));
    let run = Sandbox::new().prowess(&["lint", "--strict", &folders[0], &folders[1]]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stdout.contains("in 5 skills"), "{run:?}");
}

#[test]
fn wrong_arguments_are_told() {
    let sandbox = Sandbox::new();
    let run = sandbox.prowess(&["demo", "--load-mode", "forever"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("[possible values: turn, once, session]"), "{run:?}");
    let run = sandbox.prowess(&["demo", "--dialect", "klingon", "--json"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("there is no dialect 'klingon'"), "{run:?}");
    assert!(run.json()["error"]["message"].as_str().unwrap().contains("klingon"), "{run:?}");
}

/// Plays where something is missing: the demo goes on, and the model says what to install.
fn missing(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let text = demo_with(arguments, variables).stdout;
    assert!(!text.contains(NUMBERS), "{text}");
    assert!(text.contains("Try next: "), "{text}");
    text.split_once("Turn 3").unwrap().1.split_once("The books").unwrap().0.to_owned()
}

#[test]
fn without_a_sandbox_the_demo_goes_on() {
    let text = missing(&["--tier", "0"], &[]);
    insta::assert_snapshot!("no_sandbox", stable(&text));
    let text = missing(&[], &[("PROWESS_SUPERVISOR", "/nowhere/supervisor")]);
    insta::assert_snapshot!("no_supervisor", stable(&text));
}

#[test]
fn without_python_the_demo_goes_on() {
    let test = "demo::without_python_the_demo_goes_on";
    if !is_there("bwrap") {
        return skip(test, "there is no bwrap; install bubblewrap");
    }
    // A namespace whose programs are few.
    let sandbox = Sandbox::new();
    set_mode(sandbox.path(), 0o755);
    let script = "#!/bin/sh\nargs=$2; shift 2\n\
                  PATH=/usr/bin:/bin:/usr/local/bin exec bwrap --args $args --tmpfs /usr/bin \
                  --ro-bind /bin/bash /usr/bin/bash \"$@\"\n";
    let bwrap = sandbox.write("bwrap", script);
    set_mode(&bwrap, 0o755);
    let text = missing(&[], &[("PATH", sandbox.path().to_str().unwrap())]);
    insta::assert_snapshot!("no_python", stable(&text));
}

/// In every sandbox it is the same.
#[test]
fn without_namespaces_the_numbers_are_the_same() {
    if can_run("demo::without_namespaces_the_numbers_are_the_same") {
        let [one, two] = ["1", "2"].map(|tier| demo(&["--tier", tier]).stdout);
        assert_eq!(stable(&one), stable(&two));
        assert!(one.contains("isolation: sandbox of tier 1; in part: metadata"), "{one}");
        assert!(two.contains("isolation: sandbox of tier 2;"), "{two}");
    }
}

#[test]
fn it_looks_good_in_a_real_terminal() {
    let test = "demo::it_looks_good_in_a_real_terminal";
    let Some(terminal) = Terminal::new(test) else { return };
    let demo_there = format!("'{}' demo", env!("CARGO_BIN_EXE_prowess"));
    terminal.begin("colours", &demo_there);
    terminal.begin("plain", &format!("NO_COLOR=1 {demo_there}"));
    let took = terminal.wait("colours");
    terminal.wait("plain");
    assert!(took > Duration::from_secs(2), "nobody can read that: {took:?}");
    let mut shown = terminal.lines("colours", &["-S", "-"]);
    assert_eq!(shown, terminal.lines("colours", &["-S", "-", "-J"]), "no line is broken");
    assert_eq!(shown.pop().as_deref(), Some("exit 0"));
    let piped = demo(&[]).stdout;
    let shown = stable(&shown.join("\n"));
    assert_eq!(shown, stable(&piped), "it is what a pipe gets");
    // What is left on the screen is a whole: the end of the last turn, the table, what to try next.
    let last = terminal.lines("colours", &[]).join("\n");
    for part in ["xlsx_create", "The books", "--load-mode", "Try next: "] {
        assert!(last.contains(part), "{part}: {last}");
    }
    let is_coloured = |name: &str| {
        terminal.lines(name, &["-S", "-", "-e"]).iter().any(|line| line.contains('\u{1b}'))
    };
    assert!(is_coloured("colours") && !is_coloured("plain"));
}
