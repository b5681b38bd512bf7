//! `skill_exec` and its family: commands that somebody talks to.

mod support;

use std::fs;
use std::time::Duration;

use prowess_runtime::{AgentName, ToolCall, ToolOutcome};
use prowess_toolkits::SessionSettings;
use prowess_workspace::{ArtifactStore, Tier};
use serde_json::{Value, json};
use support::{Plan, TIERS, World, executor_of, refusal, shown};

fn plan() -> Plan {
    Plan::new().settings(|it| it.with_interactive(true))
}

fn sessions(change: impl FnOnce(&mut SessionSettings)) -> Plan {
    let mut settings = SessionSettings::default();
    change(&mut settings);
    plan().settings(|it| it.with_sessions(settings))
}

async fn loaded(plan: Plan) -> World {
    let world = plan.build();
    world.load("demo").await;
    world
}

fn with(mut arguments: Value, more: Value) -> Value {
    if let (Some(all), Value::Object(more)) = (arguments.as_object_mut(), more) {
        all.extend(more);
    }
    arguments
}

/// A session of a world.
struct Talk<'a> {
    world: &'a World,
    id: String,
    /// What the last call has shown.
    last: Value,
    /// All that was shown.
    text: String,
}

impl<'a> Talk<'a> {
    async fn start(world: &'a World, command: &str, more: Value) -> Talk<'a> {
        let arguments = with(json!({"skill": "demo", "command": command}), more);
        let last = shown(&world.call("skill_exec", arguments).await);
        let id = last["session_id"].as_str().unwrap().to_owned();
        let text = last["output"].as_str().unwrap().to_owned();
        Self { world, id, last, text }
    }

    async fn call(&mut self, tool: &str, more: Value) -> ToolOutcome {
        let arguments = with(json!({"session_id": self.id}), more);
        let outcome = self.world.call(tool, arguments).await;
        if !outcome.is_error {
            self.last = shown(&outcome);
            self.text.push_str(self.last["output"].as_str().unwrap_or_default());
        }
        outcome
    }

    /// Writes a line.
    async fn say(&mut self, line: &str) {
        let outcome = self.call("skill_write_stdin", json!({"chars": line, "submit": true})).await;
        assert!(!outcome.is_error, "{}", outcome.content);
    }

    async fn poll(&mut self) -> ToolOutcome {
        self.call("skill_poll_session", json!({"yield_ms": 200})).await
    }

    /// Asks until it has shown this.
    async fn shows(&mut self, text: &str) {
        for _ in 0..200 {
            if self.text.contains(text) {
                return;
            }
            self.poll().await;
        }
        panic!("no {text:?} in {:?}", self.text);
    }

    /// Asks until it has ended.
    async fn end(&mut self) {
        for _ in 0..200 {
            if self.last["status"] == "exited" {
                return;
            }
            self.poll().await;
        }
        panic!("it runs: {}", self.last);
    }

    async fn kill(&mut self) -> Value {
        shown(&self.call("skill_kill_session", json!({})).await)
    }
}

/// Whether a process is there whose arguments hold this text.
fn is_running(text: &str) -> bool {
    fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains(text)
    })
}

async fn eventually(mut holds: impl FnMut() -> bool) -> bool {
    for _ in 0..1000 {
        if holds() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

#[tokio::test]
async fn a_command_that_ends_at_once_is_told_like_a_run() {
    for tier in TIERS {
        let world = loaded(plan().executor(executor_of(tier))).await;
        let more = json!({"output_files": ["out/*"], "yield_ms": 30000});
        let command = "cat data/greeting.txt; echo made > out/made.txt; exit 3";
        let mut talk = Talk::start(&world, command, more).await;
        talk.end().await;
        let last = &talk.last;
        assert_eq!((&last["status"], &last["exit_code"]), (&json!("exited"), &json!(3)), "{last}");
        assert_eq!(talk.text, "hello\n", "{tier:?}");
        let result = &last["result"];
        assert_eq!((&result["exit_code"], &result["stdout"]), (&json!(3), &json!("hello\n")));
        assert_eq!(result["output_files"][0]["content"], "made\n");
        assert_eq!(result["isolation"]["tier"], json!(tier));
        // Whoever asks again is told again.
        let again = talk.poll().await;
        assert_eq!(again.code, "command_failed");
        let again = shown(&again);
        assert_eq!((&again["output"], &again["result"]["exit_code"]), (&json!(""), &json!(3)));
    }
}

#[tokio::test]
async fn an_interpreter_is_talked_to_through_a_terminal_and_through_pipes() {
    for tier in TIERS {
        let world = loaded(plan().executor(executor_of(tier))).await;
        let mut talk = Talk::start(&world, "python3 -q", json!({"tty": true})).await;
        talk.shows(">>> ").await;
        assert_eq!(talk.last["status"], "running", "{tier:?}");
        talk.say("import sys; print(sys.stdin.isatty(), 6 * 7)").await;
        talk.shows("True 42").await;
        talk.say("exit(4)").await;
        talk.end().await;
        assert_eq!(talk.last["exit_code"], 4, "{tier:?}");

        let mut talk = Talk::start(&world, "python3 -iqu", json!({"yield_ms": 0})).await;
        talk.say("import sys; print(sys.stdin.isatty(), 6 * 7)").await;
        talk.shows("False 42").await;
        // Ctrl-D closes the input of a pipe, too.
        talk.call("skill_write_stdin", json!({"chars": "\u{4}"})).await;
        talk.end().await;
        assert_eq!(talk.last["exit_code"], 0, "{tier:?} {}", talk.text);
        let outcome = talk.call("skill_write_stdin", json!({"chars": "x"})).await;
        let warnings = &shown(&outcome)["warnings"];
        assert_eq!(*warnings, json!(["the command has ended; nothing was written"]));
    }
}

#[tokio::test]
async fn what_is_given_at_first_is_read_first_and_ctrl_c_interrupts() {
    let world = loaded(plan()).await;
    let more = json!({"stdin": "one\n", "tty": true, "env": {"WHO": "env"}});
    let command = "read -r it; echo [$it $WHO]; trap 'echo interrupted; exit 6' INT; echo up; \
                   while :; do read -r more; done";
    let mut talk = Talk::start(&world, command, more).await;
    talk.shows("[one env]").await;
    talk.shows("up").await;
    talk.call("skill_write_stdin", json!({"chars": "\u{3}"})).await;
    talk.end().await;
    assert!(talk.text.contains("interrupted"), "{}", talk.text);
    assert_eq!(talk.last["exit_code"], 6);
}

/// The kernel would lose the rest of a longer line, and tell nobody.
#[tokio::test]
async fn a_line_that_a_terminal_would_lose_is_refused_at_the_beginning_too() {
    let world = loaded(plan()).await;
    let start = async |stdin: String, tty: bool| {
        let arguments = json!({
            "skill": "demo", "command": "touch $WORK_DIR/up; cat", "stdin": stdin, "tty": tty,
        });
        world.call("skill_exec", arguments).await
    };
    let long = format!("short\n{}", "x".repeat(4096));
    for stdin in [long.clone(), format!("{long}\n")] {
        let outcome = start(stdin, true).await;
        assert_eq!(outcome.code, "line_too_long", "{}", outcome.content);
    }
    assert!(!world.workspace().join("work/up").exists(), "nothing was started");
    // At the edge, and without a terminal, it is read.
    for (stdin, tty) in [(format!("{}\n", "x".repeat(4095)), true), (long, false)] {
        assert!(!start(stdin, tty).await.is_error);
    }
    // What was begun counts for what is typed next.
    let mut talk =
        Talk::start(&world, "cat", json!({"stdin": "x".repeat(4000), "tty": true})).await;
    let refused = talk.call("skill_write_stdin", json!({"chars": "y".repeat(96)})).await;
    assert_eq!(refused.code, "line_too_long", "{}", refused.content);
    assert!(!talk.call("skill_write_stdin", json!({"chars": "y".repeat(95)})).await.is_error);
}

/// Nobody would ever know its name.
#[tokio::test]
async fn whoever_stops_waiting_for_the_first_answer_ends_the_command() {
    let world = loaded(plan()).await;
    let arguments = json!({
        "skill": "demo", "command": "touch $WORK_DIR/up; exec sleep 98732", "yield_ms": 60000,
    });
    let call = world.tool_call("skill_exec", arguments);
    let agent = prowess_runtime::AgentName::default();
    let dispatch = world.runtime.dispatch(&world.session, &agent, call);
    let up = async {
        while !is_running("sleep\098732") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        outcome = dispatch => panic!("it has answered: {outcome:?}"),
        () = up => {}
    }
    assert!(eventually(|| !is_running("sleep\098732")).await);
}

#[tokio::test]
async fn prompts_and_selections_are_told() {
    let world = loaded(plan()).await;
    let command = "printf 'Name: '; read -r name; echo \"hello $name\"; printf '1. red\\n2) blue\\n> '; \
                   read -r n; echo chosen $n";
    let mut talk = Talk::start(&world, command, json!({})).await;
    talk.shows("Name: ").await;
    let expected = json!({"needs_input": true, "kind": "prompt", "hint": "Name:"});
    assert_eq!(talk.last["interaction"], expected, "{}", talk.last);
    talk.say("Ada").await;
    talk.shows("2) blue\n> ").await;
    let expected = json!({"needs_input": true, "kind": "selection", "hint": ">"});
    assert_eq!(talk.last["interaction"], expected, "{}", talk.last);
    talk.say("2").await;
    talk.end().await;
    assert!(talk.text.ends_with("chosen 2\n"), "{}", talk.text);
    assert_eq!(talk.last.get("interaction"), None);
}

#[tokio::test]
async fn many_lines_are_read_page_by_page() {
    let world = loaded(plan()).await;
    let mut talk = Talk::start(&world, "seq 1 100; read -r it", json!({"yield_ms": 0})).await;
    talk.shows("100\n").await;
    let expected: String = (1..=100).map(|it| format!("{it}\n")).collect();
    assert_eq!(talk.text, expected);
    assert_eq!(talk.last["next_offset"], 100);
    let again = talk.call("skill_poll_session", json!({"offset": 0, "yield_ms": 0})).await;
    let again = shown(&again);
    let place = (&again["offset"], &again["next_offset"], &again["remaining_lines"]);
    assert_eq!(place, (&json!(0), &json!(40), &json!(60)));
    let page = json!({"offset": 98, "poll_lines": 1, "yield_ms": 0});
    let page = shown(&talk.call("skill_poll_session", page).await);
    assert_eq!((&page["output"], &page["remaining_lines"]), (&json!("99\n"), &json!(1)));
    assert_eq!(talk.kill().await["status"], "killed");
}

#[tokio::test]
async fn of_endless_output_the_end_is_kept_and_the_rest_is_counted() {
    for tier in TIERS {
        let plan = sessions(|it| (it.max_lines, it.max_line_bytes) = (50, 100));
        let world = loaded(plan.executor(executor_of(tier))).await;
        let mut talk = Talk::start(&world, "yes", json!({"yield_ms": 300})).await;
        for _ in 0..100 {
            if talk.last.get("dropped_lines").is_some() {
                break;
            }
            talk.poll().await;
        }
        assert!(talk.last["dropped_lines"].as_u64() > Some(0), "{tier:?} {}", talk.last);
        assert_eq!(talk.last["status"], "running");
        assert_eq!(talk.kill().await["status"], "killed");

        // A line that never ends is bounded as well.
        let command = "head -c 1000000 /dev/zero | tr '\\0' x; read -r it";
        let mut talk = Talk::start(&world, command, json!({"yield_ms": 0})).await;
        for _ in 0..100 {
            if talk.last["next_offset"].as_u64() >= Some(9_990) {
                break;
            }
            talk.poll().await;
        }
        assert!(talk.text.len() < 500_000 && !talk.text.contains('\n'), "{}", talk.text.len());
        talk.kill().await;
    }
}

#[tokio::test]
async fn an_answer_shows_no_more_bytes_than_a_run_does() {
    let world = loaded(plan().settings(|it| it.with_shown_output_bytes(1000))).await;
    let command = "for i in {1..30}; do printf '%0500d\\n' $i; done; read -r it";
    let mut talk = Talk::start(&world, command, json!({"yield_ms": 30000})).await;
    assert!(talk.last["output"].as_str().unwrap().len() <= 1001, "{}", talk.last);
    talk.shows("000030\n").await;
    let expected: String = (1..=30).map(|it| format!("{it:0500}\n")).collect();
    assert_eq!(talk.text, expected);
    talk.kill().await;
}

#[tokio::test]
async fn a_command_that_never_reads_is_told_of_and_can_be_ended() {
    for tier in TIERS {
        let world = loaded(plan().executor(executor_of(tier))).await;
        let mut talk = Talk::start(&world, "echo up; sleep 60", json!({})).await;
        talk.shows("up").await;
        let chars = "x".repeat(40_000);
        let mut refused = None;
        for _ in 0..20 {
            let more = json!({"chars": chars, "yield_ms": 0});
            let outcome = talk.call("skill_write_stdin", more).await;
            if outcome.is_error {
                refused = Some(outcome);
                break;
            }
        }
        let refused = refused.unwrap();
        assert_eq!(refusal(&refused).0, "input_not_read", "{tier:?}");
        assert!(refused.hint.unwrap().contains("Nothing of it was written"));
        assert_eq!(talk.kill().await["status"], "killed");
    }
}

#[tokio::test]
async fn a_terminal_does_not_lose_long_lines_in_silence() {
    let world = loaded(plan()).await;
    let more = json!({"tty": true});
    let mut talk = Talk::start(&world, "stty -echo; echo up; wc -c", more).await;
    talk.shows("up").await;
    let longest = json!({"chars": "x".repeat(4095), "submit": true});
    assert!(!talk.call("skill_write_stdin", longest).await.is_error);
    for chars in ["x".repeat(4097), format!("{}\n", "x".repeat(4096))] {
        let outcome = talk.call("skill_write_stdin", json!({"chars": chars})).await;
        assert_eq!(refusal(&outcome).0, "line_too_long");
    }
    talk.call("skill_write_stdin", json!({"chars": "\u{4}"})).await;
    talk.end().await;
    assert!(talk.text.contains("4096"), "{}", talk.text);
}

#[tokio::test]
async fn killing_ends_also_what_does_not_listen_and_what_has_left() {
    for tier in TIERS {
        let world = loaded(sessions(|it| it.kill_grace_ms = 300).executor(executor_of(tier))).await;
        let name = if tier == Tier::T1 { "98711" } else { "98712" };
        let command = format!(
            "trap '' TERM; (setsid sleep {name} &); setsid -f sleep {name}; echo up; \
             while :; do sleep {name}; done"
        );
        let mut talk = Talk::start(&world, &command, json!({})).await;
        talk.shows("up").await;
        assert!(eventually(|| is_running(&format!("sleep\0{name}"))).await, "{tier:?}");
        let killed = talk.kill().await;
        assert_eq!(killed, json!({"ok": true, "session_id": talk.id, "status": "killed"}));
        assert!(!is_running(&format!("sleep\0{name}")), "{tier:?}");
        // It is gone.
        for tool in ["skill_kill_session", "skill_poll_session", "skill_write_stdin"] {
            let outcome = talk.call(tool, json!({})).await;
            assert_eq!(refusal(&outcome).0, "unknown_session", "{tool}");
        }
    }
}

#[tokio::test]
async fn one_that_has_ended_is_not_killed_but_removed() {
    let world = loaded(plan()).await;
    let mut talk = Talk::start(&world, "true", json!({"yield_ms": 30000})).await;
    talk.end().await;
    assert_eq!(talk.kill().await["status"], "exited");
    let outcome = talk.poll().await;
    assert_eq!(refusal(&outcome).0, "unknown_session");
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended_and_its_outputs_are_there() {
    let world = loaded(plan()).await;
    let more = json!({"timeout": 0.5, "output_files": ["out/*"]});
    let command = "echo part > out/part.txt; echo begun; sleep 60 | cat";
    let mut talk = Talk::start(&world, command, more).await;
    talk.end().await;
    let result = &talk.last["result"];
    assert_eq!((&result["timed_out"], &result["limits_hit"]), (&json!(true), &json!(["wall"])));
    assert_eq!(result["output_files"][0]["content"], "part\n");
    assert_eq!(talk.poll().await.code, "timed_out");
}

#[tokio::test]
async fn what_a_command_made_is_collected_once_however_many_ask_at_once() {
    let world = loaded(plan()).await;
    let more = json!({
        "output_files": ["out/*"], "save_as_artifacts": true, "yield_ms": 0,
    });
    let command = "echo made > out/made.txt; echo done";
    let talk = Talk::start(&world, command, more).await;
    // Wait for the end without seeing it.
    assert!(eventually(|| world.workspace().join("out/made.txt").exists()).await);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let poll = || world.tool_call("skill_poll_session", json!({"session_id": talk.id}));
    let calls: Vec<ToolCall> = (0..8).map(|_| poll()).collect();
    let outcomes = world.step(calls).await;
    let mut kept = 0;
    for outcome in &outcomes {
        let shown = shown(outcome);
        assert_eq!(
            shown["result"]["artifact_files"],
            json!([{"name": "out/made.txt", "version": 0}])
        );
        kept += outcome.artifacts.len();
    }
    assert_eq!(kept, 1);
    let versions = world.artifacts.versions(&world.scope(), "out/made.txt").await.unwrap();
    assert_eq!(versions, [0]);
}

#[tokio::test]
async fn whatever_skill_run_refuses_is_refused_and_nothing_starts() {
    let world = plan().build();
    let exec = async |more: Value| {
        let arguments = with(json!({"skill": "demo", "command": "ls"}), more);
        world.call("skill_exec", arguments).await
    };
    assert_eq!(refusal(&exec(json!({})).await).0, "skill_not_loaded");
    world.load("demo").await;
    for (more, code) in [
        (json!({"command": ""}), "invalid_arguments"),
        (json!({"cwd": "/etc"}), "invalid_arguments"),
        (json!({"env": {"LD_PRELOAD": "x"}}), "invalid_arguments"),
        (json!({"yield_ms": "soon"}), "invalid_arguments"),
        (json!({"inputs": [{"from": "artifact://missing"}]}), "input_not_found"),
    ] {
        assert_eq!(refusal(&exec(more.clone()).await).0, code, "{more}");
    }
    assert_eq!(world.started(), []);
    world.write("skills/demo/data/greeting.txt", "changed");
    assert_eq!(refusal(&exec(json!({})).await).0, "content_changed");
    assert_eq!(world.started(), []);

    let listed = plan().settings(|it| it.with_allowed_commands(vec!["ls".to_owned()]));
    let world = loaded(listed).await;
    let arguments = json!({"skill": "demo", "command": "id"});
    let outcome = world.call("skill_exec", arguments).await;
    assert_eq!(refusal(&outcome).0, "command_not_allowed");

    // What only the executor can refuse.
    let world = loaded(plan().executor(executor_of(Tier::T0))).await;
    let arguments = json!({"skill": "demo", "command": "id", "yield_ms": 30000});
    let outcome = world.call("skill_exec", arguments).await;
    assert_eq!(refusal(&outcome).0, "no_sandbox");
}

#[tokio::test]
async fn nobody_else_comes_near_a_session() {
    let world = loaded(plan()).await;
    let mut talk = Talk::start(&world, "read -r it; echo got $it", json!({})).await;
    let unknown = world.call("skill_poll_session", json!({"session_id": "none"})).await;
    let others = [
        ("stranger", AgentName::default()),
        ("other/local/test", AgentName::default()),
        ("prowess/other/test", AgentName::default()),
        ("test", AgentName::new("helper").unwrap()),
    ];
    for (at, (session, agent)) in others.iter().enumerate() {
        for tool in ["skill_write_stdin", "skill_poll_session", "skill_kill_session"] {
            let arguments = json!({"session_id": talk.id, "chars": "stolen", "submit": true});
            let call = ToolCall::new(format!("foreign-{at}-{tool}"), tool, arguments);
            let outcome =
                world.runtime.dispatch(&session.parse().unwrap(), agent, call).await.unwrap();
            let (code, said) = refusal(&outcome);
            assert_eq!(code, "unknown_session", "{session} {agent:?} {tool}");
            assert_eq!(said.replace(&talk.id, "none"), unknown.content);
        }
    }
    // Its owner does.
    talk.say("mine").await;
    talk.end().await;
    assert_eq!(talk.text, "got mine\n");
}

#[tokio::test]
async fn there_are_no_more_sessions_than_the_host_allows() {
    let world = loaded(sessions(|it| it.max_sessions = 2)).await;
    let mut first = Talk::start(&world, "read -r it", json!({"yield_ms": 0})).await;
    let _second = Talk::start(&world, "read -r it", json!({"yield_ms": 0})).await;
    let arguments = json!({"skill": "demo", "command": "true"});
    let outcome = world.call("skill_exec", arguments.clone()).await;
    assert_eq!(refusal(&outcome).0, "too_many_sessions");
    assert_eq!(world.started().len(), 2);
    first.kill().await;
    assert!(!world.call("skill_exec", arguments).await.is_error);
}

#[tokio::test]
async fn everything_ends_with_the_engine() {
    for tier in TIERS {
        let world = loaded(plan().executor(executor_of(tier))).await;
        let name = if tier == Tier::T1 { "98721" } else { "98722" };
        let command = format!("(setsid sleep {name} &); echo up; sleep {name}");
        let mut talk = Talk::start(&world, &command, json!({"tty": true})).await;
        talk.shows("up").await;
        assert!(eventually(|| is_running(&format!("sleep\0{name}"))).await, "{tier:?}");
        let _ = talk;
        drop(world);
        assert!(eventually(|| !is_running(&format!("sleep\0{name}"))).await, "{tier:?}");
    }
}

#[tokio::test]
async fn the_tools_are_there_only_if_the_host_says_so() {
    let names = async |plan: Plan| -> Vec<String> {
        let world = plan.build();
        let request = prowess_runtime::PromptRequest::default();
        let prompt = world.runtime.prompt(&world.session, &AgentName::default(), request).await;
        prompt.unwrap().tools.iter().map(|tool| tool.name.clone()).collect()
    };
    let has = |names: &[String], name: &str| names.iter().any(|it| it == name);
    let skill = ["skill_exec", "skill_write_stdin", "skill_poll_session", "skill_kill_session"];
    let workspace = [
        "workspace_exec",
        "workspace_write_stdin",
        "workspace_kill_session",
        "workspace_save_artifact",
    ];
    for (interactive, on_copies) in [(false, false), (true, false), (false, true), (true, true)] {
        let plan = Plan::new()
            .settings(|it| it.with_interactive(interactive).with_workspace_exec(on_copies));
        let names = names(plan).await;
        assert!(has(&names, "skill_run"));
        for name in skill {
            assert_eq!(has(&names, name), interactive, "{name}");
        }
        for name in workspace {
            assert_eq!(has(&names, name), on_copies, "{name}");
        }
    }
}

#[tokio::test]
async fn what_a_model_reads() {
    let plan = plan().settings(|it| it.with_workspace_exec(true));
    let world = loaded(plan).await;
    let request = prowess_runtime::PromptRequest::default();
    let prompt = world.runtime.prompt(&world.session, &AgentName::default(), request).await;
    let prompt = prompt.unwrap();
    let is_new = |name: &str| {
        name.starts_with("workspace_")
            || (name.starts_with("skill_") && name.contains("_exec"))
            || name.ends_with("_stdin")
            || name.ends_with("_session")
    };
    let tools: Vec<_> = prompt.tools.iter().filter(|tool| is_new(&tool.name)).collect();
    insta::assert_snapshot!("declarations", serde_json::to_string_pretty(&tools).unwrap());

    let command = "printf 'Name: '; read -r it; echo $it";
    let mut talk = Talk::start(&world, command, json!({})).await;
    talk.shows("Name: ").await;
    talk.call("skill_poll_session", json!({"offset": 0, "yield_ms": 0})).await;
    let asking = talk.last.to_string();
    talk.say("Ada").await;
    talk.end().await;
    talk.call("skill_poll_session", json!({"offset": 0})).await;
    // What differs from run to run, and from machine to machine.
    talk.last["result"]["duration_ms"] = json!(0);
    talk.last["result"]["isolation"] = json!({});
    let ended = talk.last.to_string();
    let none = world.call("skill_poll_session", json!({"session_id": "none"})).await;
    let done = world.call("workspace_exec", json!({"command": "echo done"})).await;
    let mut done = shown(&done);
    done["isolation"] = json!({});
    let texts = [asking, ended, none.content, done.to_string()].join("\n");
    insta::assert_snapshot!("answers", texts.replace(&talk.id, "[ID]"));
}
