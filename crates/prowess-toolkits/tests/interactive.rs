//! `skill_exec` and its family: commands that somebody talks to.

mod support;

use prowess_runtime::AgentName;
use serde_json::json;
use support::talk::{Talk, loaded, plan, sessions};
use support::{Plan, TIERS, executor_of, refusal, shown};

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
                   while :; do sleep 0.05; done";
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
