//! `workspace_exec` and its family: commands on copies of skills that they may change.

mod support;

use std::fs;
use std::time::Duration;

use prowess_runtime::ToolOutcome;
use prowess_workspace::{ArtifactStore, Tier};
use serde_json::{Value, json};
use support::{Plan, TIERS, World, executor_of, refusal, shown};

fn plan() -> Plan {
    Plan::new().settings(|it| it.with_workspace_exec(true).with_interactive(true))
}

async fn exec_with(world: &World, command: &str, more: Value) -> ToolOutcome {
    let mut arguments = json!({"command": command});
    if let (Some(all), Value::Object(more)) = (arguments.as_object_mut(), more) {
        all.extend(more);
    }
    world.call("workspace_exec", arguments).await
}

/// What a command wrote that succeeded.
async fn exec(world: &World, command: &str) -> String {
    let outcome = exec_with(world, command, json!({})).await;
    let shown = shown(&outcome);
    assert_eq!(shown["exit_code"], 0, "{shown}");
    shown["output"].as_str().unwrap().to_owned()
}

async fn load_again(world: &World) {
    world.catalog.refresh().await;
    let arguments = json!({"skill": "demo"});
    assert!(!world.call("unload_skill", arguments).await.is_error);
    world.load("demo").await;
}

#[tokio::test]
async fn a_command_runs_in_the_workspace_and_says_how_it_ended() {
    for tier in TIERS {
        let world = plan().executor(executor_of(tier)).build();
        let outcome = exec_with(&world, "pwd; cat; echo err >&2; exit 3", json!({"stdin": "in\n"}));
        let outcome = outcome.await;
        assert_eq!((outcome.code.as_ref(), outcome.is_error), ("command_failed", false));
        let shown = shown(&outcome);
        assert_eq!((&shown["status"], &shown["exit_code"]), (&json!("exited"), &json!(3)));
        let output = shown["output"].as_str().unwrap();
        assert!(output.lines().next().unwrap().ends_with("/work"), "{tier:?} {output}");
        assert!(output.contains("in\n") && output.contains("err\n"), "{output}");
        let place = (&shown["offset"], &shown["next_offset"]);
        assert_eq!(place, (&json!(0), &json!(3)));
        for absent in ["session_id", "truncated", "total_bytes", "warnings"] {
            assert_eq!(shown.get(absent), None, "{absent}");
        }
        assert_eq!(shown["isolation"]["tier"], json!(tier));
        assert!(outcome.data["isolation"]["fs_write"]["state"].is_string());
    }
}

#[tokio::test]
async fn it_changes_a_copy_and_what_skill_run_runs_stays_what_was_hashed() {
    for tier in TIERS {
        let world = plan().executor(executor_of(tier)).build();
        // Without a loaded skill there is none.
        exec(&world, "test ! -e $SKILLS_DIR/demo").await;
        world.load("demo").await;
        let command = "cat $SKILLS_DIR/demo/data/greeting.txt skills/demo/data/greeting.txt; \
                       echo changed > $SKILLS_DIR/demo/data/greeting.txt; touch skills/demo/new";
        assert_eq!(exec(&world, command).await, "hello\nhello\n", "{tier:?}");
        // What was changed is there the next time, and is where `skills/` leads.
        let more = json!({"cwd": "skills/demo/data"});
        let outcome = exec_with(&world, "cat greeting.txt; ls ../new", more).await;
        assert_eq!(shown(&outcome)["output"], "changed\n../new\n", "{tier:?}");
        // The staged one is as it was, and read-only.
        let outcome = world.run("cat data/greeting.txt; ls; touch x 2>/dev/null; ls x").await;
        let stdout = shown(&outcome)["stdout"].as_str().unwrap().to_owned();
        assert!(stdout.starts_with("hello\n") && !stdout.contains("new"), "{tier:?} {stdout}");
        let staged = "echo x > \"$WORKSPACE_DIR/skills/demo/data/greeting.txt\"";
        let outcome = exec_with(&world, staged, json!({})).await;
        assert_ne!(shown(&outcome)["exit_code"], 0, "{tier:?}");
        assert_eq!(support::stdout(&world.run("cat data/greeting.txt").await), "hello\n");
        // Nothing that staging has added is in the copy.
        assert_eq!(exec(&world, "ls -A $SKILLS_DIR/demo").await, "SKILL.md\ndata\nnew\n");
    }
}

#[tokio::test]
async fn a_copy_is_made_anew_when_another_version_is_loaded() {
    let world = plan().build();
    world.load("demo").await;
    exec(&world, "echo mine > $SKILLS_DIR/demo/mine").await;
    world.write("skills/demo/data/greeting.txt", "second\n");
    // Until it is loaded, the pinned one stays.
    let show = "cat $SKILLS_DIR/demo/data/greeting.txt; ls $SKILLS_DIR/demo";
    assert_eq!(exec(&world, show).await, "hello\nSKILL.md\ndata\nmine\n");
    load_again(&world).await;
    let outcome = exec_with(&world, show, json!({})).await;
    let shown = shown(&outcome);
    assert_eq!(shown["output"], "second\nSKILL.md\ndata\n");
    let expected = "the copy of the skill 'demo' was made anew: another version is loaded; what was \
                    there is in work/skills/demo~1";
    assert_eq!(shown["warnings"], json!([expected]));
    assert_eq!(exec(&world, show).await, "second\nSKILL.md\ndata\n");
    // What somebody has made there is not lost, however often.
    assert_eq!(exec(&world, "cat $SKILLS_DIR/demo~1/mine").await, "mine\n");
    world.write("skills/demo/data/greeting.txt", "third\n");
    load_again(&world).await;
    exec(&world, "true").await;
    let all = "cat $SKILLS_DIR/demo*/data/greeting.txt";
    assert_eq!(exec(&world, all).await, "third\nhello\nsecond\n");
}

#[tokio::test]
async fn a_copy_that_cannot_be_made_anew_leaves_what_was_there() {
    let world = plan().build();
    world.load("demo").await;
    exec(&world, "echo mine > $SKILLS_DIR/demo/mine").await;
    world.write("skills/demo/data/greeting.txt", "second\n");
    load_again(&world).await;
    // Nothing can be begun where copies are begun.
    let drafts = world.workspace().join(".new");
    std::fs::remove_dir_all(&drafts).unwrap();
    std::fs::write(&drafts, "").unwrap();
    let look = "cat $SKILLS_DIR/demo/mine; ls $SKILLS_DIR";
    let outcome = exec_with(&world, look, json!({})).await;
    let seen = shown(&outcome);
    assert_eq!(seen["output"], "mine\ndemo\n");
    assert_eq!(seen["warnings"], json!(["the skill 'demo' was not copied (workspace_io)"]));
    // As soon as it can be, it is.
    std::fs::remove_file(&drafts).unwrap();
    let both = "cat $SKILLS_DIR/demo/data/greeting.txt $SKILLS_DIR/demo~1/mine";
    assert_eq!(exec(&world, both).await, "second\nmine\n");
}

#[tokio::test]
async fn a_skill_that_is_unloaded_changed_or_gone_hinders_nobody() {
    let world = plan().skill("other").build();
    world.load("demo").await;
    world.load("other").await;
    exec(&world, "true").await;
    // Unloaded: its copy stays, and nobody looks for it.
    assert!(!world.call("unload_skill", json!({"skill": "other"})).await.is_error);
    fs::remove_dir_all(world.path("skills/other")).unwrap();
    world.catalog.refresh().await;
    assert_eq!(exec(&world, "ls $SKILLS_DIR").await, "demo\nother\n");
    // Gone, though it is loaded: its copy stays.
    fs::remove_dir_all(world.path("skills/demo")).unwrap();
    world.catalog.refresh().await;
    assert_eq!(exec(&world, "cat $SKILLS_DIR/demo/data/greeting.txt").await, "hello\n");
    // Not even a copy of it is there: that is said.
    exec(&world, "rm -r $SKILLS_DIR/demo").await;
    let outcome = exec_with(&world, "echo fine", json!({})).await;
    let shown = shown(&outcome);
    assert_eq!(shown["output"], "fine\n");
    let said = shown["warnings"][0].as_str().unwrap();
    assert!(said.starts_with("the skill 'demo' was not copied ("), "{said}");
}

#[tokio::test]
async fn a_link_in_the_place_of_the_copies_leads_nowhere() {
    for tier in TIERS {
        let world = plan().executor(executor_of(tier)).build();
        world.load("demo").await;
        let outside = world.path("outside");
        fs::create_dir(&outside).unwrap();
        let command = format!("rm -rf skills; ln -s {} skills", outside.display());
        exec_with(&world, &command, json!({})).await;
        let outcome = exec_with(&world, "echo fine", json!({})).await;
        assert_eq!(shown(&outcome)["output"], "fine\n", "{tier:?}");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "{tier:?}");
        let outcome = exec_with(&world, "pwd", json!({"cwd": "skills/demo"})).await;
        assert!(outcome.is_error, "{tier:?} {}", outcome.content);
    }
}

#[tokio::test]
async fn a_folder_elsewhere_is_an_error_and_nothing_starts() {
    let world = plan().build();
    world.load("demo").await;
    for (cwd, said) in [
        ("elsewhere", "is not below one of the folders"),
        ("/etc", "is not below one of the folders"),
        ("$WORKSPACE_DIR", "is not below one of the folders"),
        ("../..", "without '..'"),
        ("$HOME", "$WORK_DIR"),
        ("skills/none", "there is no folder"),
        ("skills/demo/SKILL.md", "is not a folder"),
    ] {
        let outcome = exec_with(&world, "pwd", json!({"cwd": cwd})).await;
        let (code, text) = refusal(&outcome);
        assert_eq!(code, "invalid_arguments", "{cwd}");
        assert!(text.contains(said), "{cwd}: {text}");
    }
    for (more, code) in [
        (json!({"command": " "}), "invalid_arguments"),
        (json!({"env": {"LD_PRELOAD": "x"}}), "invalid_arguments"),
    ] {
        let outcome = exec_with(&world, "ls", more).await;
        assert_eq!(refusal(&outcome).0, code);
    }
    assert_eq!(world.started(), []);
    for (cwd, folder) in [("work/new", "work/new"), ("out", "out"), ("$RUN_DIR", "runs/run_")] {
        let outcome = exec_with(&world, "pwd", json!({"cwd": cwd})).await;
        let output = shown(&outcome)["output"].as_str().unwrap().to_owned();
        assert!(output.contains(folder), "{cwd}: {output}");
    }
}

#[tokio::test]
async fn the_policy_of_the_host_holds() {
    let allowed = vec!["ls".to_owned(), "scripts/run.sh".to_owned()];
    let world = plan()
        .file("skills/demo/scripts/run.sh", "#!/bin/sh\necho ours\n")
        .settings(|it| it.with_allowed_commands(allowed))
        .build();
    world.load("demo").await;
    let outcome = exec_with(&world, "id", json!({})).await;
    assert_eq!(refusal(&outcome).0, "command_not_allowed");
    // What is listed by a path is a file of the skill; here it could be any file.
    let outcome = exec_with(&world, "scripts/run.sh", json!({"cwd": "skills/demo"})).await;
    assert!(outcome.is_error, "{}", outcome.content);
    assert_eq!(world.started(), []);
    assert_eq!(exec(&world, "ls skills").await, "demo\n");
    // Nothing runs without a sandbox, whatever the skills are trusted with.
    let plan =
        plan().settings(|it| it.with_allow_unsandboxed(true)).executor(executor_of(Tier::T0));
    let world = plan.build();
    let outcome = exec_with(&world, "id", json!({})).await;
    assert_eq!(refusal(&outcome).0, "no_sandbox");
}

#[tokio::test]
async fn of_too_much_output_both_ends_are_shown() {
    let world = plan().settings(|it| it.with_shown_output_bytes(100)).build();
    let outcome = exec_with(&world, "seq 1 1000", json!({})).await;
    let shown = shown(&outcome);
    let output = shown["output"].as_str().unwrap();
    let (head, tail) = output.split_once("\n...[output truncated]...\n").unwrap();
    assert!(head.starts_with("1\n2\n") && tail.ends_with("999\n1000\n"), "{output}");
    assert!(head.len() + tail.len() <= 100, "{output}");
    assert_eq!((&shown["truncated"], &shown["total_bytes"]), (&json!(true), &json!(3893)));
    // Up to the limit all of it is there.
    let outcome = exec_with(&world, "printf %0100d 1", json!({})).await;
    assert_eq!(support::shown(&outcome).get("truncated"), None);
}

#[tokio::test]
async fn a_command_in_the_background_is_talked_to() {
    for tier in TIERS {
        let world = plan().executor(executor_of(tier)).build();
        for more in [json!({"background": true}), json!({"pty": true}), json!({"yieldMs": 50})] {
            let command = "printf 'Name: '; read -r it; echo hello $it";
            let started = shown(&exec_with(&world, command, more.clone()).await);
            assert_eq!(started["status"], "running", "{tier:?} {more}");
            let id = started["session_id"].as_str().unwrap();
            let mut text = started["output"].as_str().unwrap().to_owned();
            let mut say = json!({"session_id": id, "chars": "Ada", "submit": true});
            for _ in 0..200 {
                let outcome = world.call("workspace_write_stdin", say.clone()).await;
                let shown = shown(&outcome);
                text.push_str(shown["output"].as_str().unwrap());
                // An empty write asks.
                say = json!({"session_id": id});
                if shown["status"] == "exited" {
                    assert_eq!(shown["exit_code"], 0);
                    assert_eq!(shown["isolation"]["tier"], json!(tier));
                    break;
                }
            }
            assert!(text.starts_with("Name: ") && text.ends_with("hello Ada\n"), "{text:?}");
            // It is none of the other family's.
            let outcome = world.call("skill_poll_session", json!({"session_id": id})).await;
            assert_eq!(refusal(&outcome).0, "unknown_session");
            let killed = world.call("workspace_kill_session", json!({"session_id": id})).await;
            assert_eq!(shown(&killed)["status"], "exited");
        }
    }
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended() {
    let world = plan().build();
    for name in ["timeout", "timeout_sec", "timeoutSec"] {
        let outcome = exec_with(&world, "echo begun; sleep 60", json!({name: 0.3})).await;
        assert_eq!(outcome.code, "timed_out", "{name}");
        let shown = shown(&outcome);
        assert_eq!((&shown["timed_out"], &shown["limits_hit"]), (&json!(true), &json!(["wall"])));
    }
}

#[tokio::test]
async fn whoever_stops_waiting_ends_a_command_that_nobody_else_knows_of() {
    let world = plan().build();
    let arguments = json!({"command": "touch up; sleep 98731"});
    let call = world.tool_call("workspace_exec", arguments);
    let agent = prowess_runtime::AgentName::default();
    let dispatch = world.runtime.dispatch(&world.session, &agent, call);
    let up = async {
        while !world.workspace().join("work/up").exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        _ = dispatch => panic!("it has ended"),
        () = up => {}
    }
    let is_running = || {
        fs::read_dir("/proc").unwrap().flatten().any(|entry| {
            let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&words).contains("sleep\098731")
        })
    };
    for _ in 0..1000 {
        if !is_running() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it runs");
}

#[tokio::test]
async fn a_file_is_kept_as_an_artifact() {
    let world = plan().build();
    exec(&world, "echo report > $OUTPUT_DIR/r.txt; ln -s /etc/passwd $OUTPUT_DIR/link").await;
    let save =
        async |path: &str| world.call("workspace_save_artifact", json!({"path": path})).await;
    for (version, path) in
        ["out/r.txt", "$OUTPUT_DIR/r.txt", "/workspace/out/r.txt"].iter().enumerate()
    {
        let outcome = save(path).await;
        let shown = shown(&outcome);
        assert_eq!(shown["ref"], format!("artifact://out/r.txt@{version}"));
        assert_eq!((&shown["name"], &shown["version"]), (&json!("out/r.txt"), &json!(version)));
        assert_eq!(outcome.artifacts.len(), 1);
    }
    let kept = world.artifacts.load(&world.scope(), "out/r.txt", None).await.unwrap().unwrap();
    assert_eq!((&*kept.bytes, kept.version), (b"report\n".as_slice(), 2));
    for path in
        ["skills/demo/SKILL.md", "metadata.json", "/etc/passwd", "out", "../x", "", "$HOME/x"]
    {
        assert_eq!(refusal(&save(path).await).0, "invalid_arguments", "{path}");
    }
    for path in ["out/link", "out/none"] {
        assert!(save(path).await.is_error, "{path}");
    }
    let world = plan().without_artifacts().build();
    exec(&world, "echo x > $OUTPUT_DIR/r.txt").await;
    let arguments = json!({"path": "out/r.txt"});
    let outcome = world.call("workspace_save_artifact", arguments).await;
    assert_eq!(refusal(&outcome).0, "no_artifact_store");
}

#[tokio::test]
async fn an_artifact_is_no_larger_than_allowed() {
    let world = plan().max_artifact_bytes(10).build();
    exec(&world, "printf 0123456789 > $OUTPUT_DIR/ten; printf 0123456789a > $OUTPUT_DIR/more")
        .await;
    let ten = world.call("workspace_save_artifact", json!({"path": "out/ten"})).await;
    assert_eq!(shown(&ten)["size_bytes"], 10);
    let more = world.call("workspace_save_artifact", json!({"path": "out/more"})).await;
    assert_eq!(refusal(&more).0, "limit_exceeded");
}
