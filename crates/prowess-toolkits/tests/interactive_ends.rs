//! Whose the sessions of commands are, what they leave, and how they end.

mod support;

use std::time::Duration;

use prowess_runtime::{AgentName, ToolCall};
use prowess_workspace::{ArtifactStore, Tier};
use serde_json::{Value, json};
use support::talk::{Talk, eventually, is_running, loaded, plan, sessions, with};
use support::{TIERS, executor_of, refusal, shown};

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
