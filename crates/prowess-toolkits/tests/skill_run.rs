//! `skill_run`: what runs, where, with which environment, and what is refused.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use prowess_workspace::{Capability, Network, Tier, Unsandboxed};
use serde_json::json;
use support::{Plan, TIERS, World, executor_of, refusal, shown, stdout};

async fn loaded(plan: Plan) -> World {
    let world = plan.build();
    world.load("demo").await;
    world
}

/// Writes over a file of the staged copy, which is read-only.
fn tamper(world: &World, path: &str, text: &str) {
    let path = world.workspace().join(path);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(&path, text).unwrap();
}

#[tokio::test]
async fn a_command_begins_in_the_folder_of_its_skill() {
    for tier in TIERS {
        let world = loaded(Plan::new().executor(executor_of(tier))).await;
        let outcome = world.run("cat data/greeting.txt; pwd | sed 's|.*/skills|skills|'").await;
        assert_eq!(stdout(&outcome), "hello\nskills/demo\n", "{tier:?}");
        assert_eq!((outcome.code.as_ref(), outcome.is_error), ("ok", false));
    }
}

#[tokio::test]
async fn the_required_keys_are_always_there_and_nothing_that_goes_without_saying() {
    let world = loaded(Plan::new()).await;
    let outcome = world.run(":").await;
    let shown = shown(&outcome);
    let keys: Vec<&str> = shown.as_object().unwrap().keys().map(String::as_str).collect();
    let required = ["stdout", "stderr", "exit_code", "timed_out", "duration_ms", "output_files"];
    assert_eq!(keys, [required.as_slice(), &["isolation"]].concat());
    assert_eq!(shown["output_files"], json!([]));
    // The whole record is in the data, capability by capability.
    for capability in Capability::ALL {
        let record = &outcome.data["isolation"][capability.as_str()];
        assert!(record["state"].is_string(), "{capability:?}: {record}");
    }
}

#[tokio::test]
async fn a_failing_command_is_an_ordinary_result() {
    let world = loaded(Plan::new()).await;
    let outcome = world.run("echo out; echo err >&2; exit 3").await;
    assert_eq!((outcome.code.as_ref(), outcome.is_error), ("command_failed", false));
    let shown = shown(&outcome);
    let said = (&shown["stdout"], &shown["stderr"], &shown["exit_code"]);
    assert_eq!(said, (&json!("out\n"), &json!("err\n"), &json!(3)));
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended() {
    let world = loaded(Plan::new()).await;
    let outcome = world.run_with("echo begun; sleep 60 | cat", json!({"timeout": 0.5})).await;
    assert_eq!((outcome.code.as_ref(), outcome.is_error), ("timed_out", false));
    let shown = shown(&outcome);
    assert_eq!((&shown["timed_out"], &shown["stdout"]), (&json!(true), &json!("begun\n")));
    assert_eq!(shown["limits_hit"], json!(["wall"]));
}

#[tokio::test]
async fn more_time_than_the_host_gives_is_cut_and_said() {
    let world = loaded(Plan::new().settings(|it| it.with_max_timeout(5))).await;
    let outcome = world.run_with(":", json!({"timeout": 6})).await;
    let expected = json!(["timeout is limited to 5 s by the host"]);
    assert_eq!(shown(&outcome)["warnings"], expected);
    let outcome = world.run_with(":", json!({"timeout": 5})).await;
    assert_eq!(shown(&outcome).get("warnings"), None);
}

#[tokio::test]
async fn every_run_has_its_variables_and_a_folder_of_its_own() {
    for tier in TIERS {
        let world = loaded(Plan::new().executor(executor_of(tier))).await;
        let command = "for v in WORKSPACE_DIR SKILLS_DIR WORK_DIR OUTPUT_DIR RUN_DIR; do \
                       test -d \"${!v}\" || echo $v; done; echo $SKILL_NAME; touch $RUN_DIR/x";
        let calls = (0..4)
            .map(|_| world.tool_call("skill_run", json!({"skill": "demo", "command": command})));
        for outcome in world.step(calls.collect()).await {
            assert_eq!(stdout(&outcome), "demo\n", "{tier:?}");
        }
        let folders: BTreeSet<String> =
            world.started().into_iter().map(|run| run.run_dir).collect();
        assert_eq!(folders.len(), 4);
        for folder in folders {
            assert!(world.workspace().join(folder).join("x").is_file());
        }
    }
}

#[tokio::test]
async fn a_run_that_leaves_nothing_leaves_no_folder() {
    let world = loaded(Plan::new()).await;
    for _ in 0..20 {
        stdout(&world.run("test -d $RUN_DIR").await);
    }
    // One that was refused neither.
    let inputs = json!({"inputs": [{"from": "artifact://missing"}]});
    assert_eq!(refusal(&world.run_with(":", inputs).await).0, "input_not_found");
    let runs = || fs::read_dir(world.workspace().join("runs")).unwrap().count();
    assert_eq!(runs(), 0);
    stdout(&world.run("touch $RUN_DIR/kept").await);
    assert_eq!(runs(), 1);
}

#[tokio::test]
async fn a_command_may_begin_elsewhere_in_the_workspace() {
    let world = loaded(Plan::new()).await;
    let table = [
        ("data", "skills/demo/data"),
        ("$WORK_DIR", "work"),
        ("${OUTPUT_DIR}", "out"),
        ("$WORKSPACE_DIR", ""),
        ("/work/inputs", "work/inputs"),
        ("$WORK_DIR/new/deep one", "work/new/deep one"),
        ("out", "out"),
    ];
    for (cwd, expected) in table {
        let outcome = world.run_with("pwd -P", json!({"cwd": cwd})).await;
        let printed = stdout(&outcome);
        let expected = format!("/workspace/{expected}");
        let real = world.workspace().display().to_string();
        let printed = printed.trim_end().replace(&real, "/workspace");
        assert_eq!(printed, expected.trim_end_matches('/'), "{cwd}");
    }
    let outcome = world.run_with("basename $PWD", json!({"cwd": "$RUN_DIR"})).await;
    assert!(stdout(&outcome).starts_with("run_"));
}

#[tokio::test]
async fn a_place_outside_is_an_error_that_names_the_remedy_and_nothing_starts() {
    let world = loaded(Plan::new()).await;
    let table = [
        ("../../..", "write it without '..'"),
        ("/etc", "$WORK_DIR"),
        ("$HOME", "$WORKSPACE_DIR"),
        ("$WORK_DIR/../..", "write it without '..'"),
        ("missing", "there is no folder 'missing'"),
        ("data/greeting.txt", "'data/greeting.txt' is not a folder"),
    ];
    for (cwd, remedy) in table {
        let outcome = world.run_with("pwd", json!({"cwd": cwd})).await;
        let (code, said) = refusal(&outcome);
        assert_eq!(code, "invalid_arguments", "{cwd}");
        assert!(said.contains("cwd") && said.contains(remedy), "{cwd}: {said}");
    }
    assert_eq!(world.started(), []);
}

#[tokio::test]
async fn variables_are_set_but_for_those_that_load_code() {
    let world = loaded(Plan::new()).await;
    let outcome = world.run_with("echo $A-$N", json!({"env": {"A": "a b", "N": 5}})).await;
    assert_eq!(stdout(&outcome), "a b-5\n");
    for name in ["LD_PRELOAD", "BASH_ENV", "A=B", "WORKSPACE_DIR"] {
        let outcome = world.run_with("env", json!({"env": {name: "x"}})).await;
        let (code, said) = refusal(&outcome);
        assert_eq!(code, "invalid_arguments");
        assert!(said.contains(name), "{said}");
    }
    assert_eq!(world.started().len(), 1);
}

#[tokio::test]
async fn what_it_reads_is_what_it_was_given() {
    let world = loaded(Plan::new()).await;
    let outcome = world.run_with("tr a-z A-Z", json!({"stdin": "grüße\n"})).await;
    assert_eq!(stdout(&outcome), "GRüßE\n");
    assert_eq!(stdout(&world.run("cat").await), "");
}

#[tokio::test]
async fn an_editor_writes_the_text_that_was_given() {
    for tier in TIERS {
        let world = loaded(Plan::new().executor(executor_of(tier))).await;
        // As programs start an editor: through a shell, with the file behind it.
        let command = "sh -c \"$EDITOR \\\"\\$@\\\"\" editor work/message; cat work/message";
        let outcome = world.run_with(command, json!({"editor_text": "typed\n"})).await;
        assert_eq!(stdout(&outcome), "typed\n", "{tier:?}");
    }
    let world = loaded(Plan::new()).await;
    let both = json!({"editor_text": "x", "env": {"EDITOR": "vi"}});
    assert_eq!(refusal(&world.run_with(":", both).await).0, "invalid_arguments");
}

#[tokio::test]
async fn the_skill_itself_cannot_be_changed_but_its_venv_can() {
    for tier in TIERS {
        let world = loaded(Plan::new().executor(executor_of(tier))).await;
        let attack =
            "echo x >> SKILL.md; rm -f data/greeting.txt; touch new; cat data/greeting.txt";
        let outcome = world.run(attack).await;
        assert_eq!(stdout(&outcome), "hello\n", "{tier:?}");
        let text = fs::read_to_string(world.workspace().join("skills/demo/SKILL.md")).unwrap();
        assert!(text.ends_with("Body.\n"));
        assert!(!world.workspace().join("skills/demo/new").exists());
        let outcome = world.run("mkdir -p .venv/bin && echo ok > .venv/x && cat .venv/x").await;
        assert_eq!(stdout(&outcome), "ok\n", "{tier:?}");
    }
}

#[tokio::test]
async fn a_skill_that_is_not_loaded_does_not_run() {
    let world = Plan::new().build();
    let outcome = world.run("echo hi").await;
    let (code, said) = refusal(&outcome);
    assert_eq!(code, "skill_not_loaded");
    assert!(said.starts_with("The 'skill_run' tool requires the 'demo' skill"), "{said}");
    let world = Plan::new().dialect("trpc").build();
    let outcome = world.run("echo hi").await;
    let said = r#"skill_run requires skill_load first for "demo""#;
    assert_eq!(refusal(&outcome), ("skill_not_loaded", said));
    assert!(world.started().is_empty() && !world.path("workspaces").exists());
    let outcome = world.call("skill_run", json!({"skill": "nope", "command": ":"})).await;
    assert_eq!(refusal(&outcome), ("skill_not_found", "unknown skill: nope"));
}

#[tokio::test]
async fn a_skill_need_not_be_loaded_where_the_host_says_so() {
    let world = Plan::new().settings(|it| it.with_require_skill_loaded(false)).build();
    assert_eq!(stdout(&world.run("cat data/greeting.txt").await), "hello\n");
    // What the catalog has now is what runs.
    world.write("skills/demo/data/greeting.txt", "changed\n");
    assert_eq!(stdout(&world.run("cat data/greeting.txt").await), "changed\n");
}

#[tokio::test]
async fn a_source_that_changed_after_the_load_does_not_run() {
    let world = loaded(Plan::new()).await;
    assert_eq!(stdout(&world.run("cat data/greeting.txt").await), "hello\n");
    let changes: [(&str, &dyn Fn()); 4] = [
        ("same length", &|| world.write("skills/demo/data/greeting.txt", "HELLO\n")),
        ("exec bit", &|| {
            let path = world.path("skills/demo/data/greeting.txt");
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }),
        ("new file", &|| world.write("skills/demo/new.sh", "id")),
        ("text", &|| {
            let text = "---\nname: demo\ndescription: Does demo.\n---\nOther.\n";
            world.write("skills/demo/SKILL.md", text);
        }),
    ];
    for (what, change) in changes {
        change();
        let outcome = world.run("cat data/greeting.txt").await;
        assert_eq!(refusal(&outcome).0, "content_changed", "{what}");
    }
    assert_eq!(world.started().len(), 1);
    // Loaded anew, the new version runs.
    world.call("unload_skill", json!({"skill": "demo"})).await;
    world.load("demo").await;
    assert_eq!(stdout(&world.run("cat data/greeting.txt").await), "HELLO\n");
}

#[tokio::test]
async fn an_unchanged_skill_is_looked_at_and_not_read_again() {
    let world = loaded(Plan::new()).await;
    let snapshot = world.runtime.snapshot(&world.session, &Default::default()).await;
    let skill = snapshot.get("demo").unwrap();
    // Times of files that were written just now tell nothing yet.
    while skill.stamp().await.is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for _ in 0..3 {
        stdout(&world.run(":").await);
        assert_eq!(world.reads(), 1);
    }
    // The control: what looks different is read, though it holds the same.
    world.write("skills/demo/data/greeting.txt", "hello\n");
    stdout(&world.run(":").await);
    assert_eq!(world.reads(), 2);
}

#[tokio::test]
async fn a_source_that_is_written_again_with_the_same_content_runs() {
    let world = loaded(Plan::new()).await;
    stdout(&world.run(":").await);
    world.write("skills/demo/data/greeting.txt", "hello\n");
    assert_eq!(stdout(&world.run("cat data/greeting.txt").await), "hello\n");
}

#[tokio::test]
async fn a_staged_copy_that_was_tampered_with_is_staged_again() {
    let world = loaded(Plan::new()).await;
    stdout(&world.run(":").await);
    let file = "skills/demo/data/greeting.txt";
    tamper(&world, file, "evil!\n");
    // The control: without another look, this is what would have run.
    assert_eq!(fs::read_to_string(world.workspace().join(file)).unwrap(), "evil!\n");
    assert_eq!(stdout(&world.run("cat data/greeting.txt").await), "hello\n");
    // The same for a file that is not the skill's.
    let folder = world.workspace().join("skills/demo/data");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.join("evil.sh"), "id").unwrap();
    assert_eq!(stdout(&world.run("ls data").await), "greeting.txt\n");
}

#[tokio::test]
async fn what_is_in_the_venv_survives_staging_again() {
    let world = loaded(Plan::new()).await;
    stdout(&world.run("echo kept > .venv/x").await);
    tamper(&world, "skills/demo/data/greeting.txt", "evil!\n");
    assert_eq!(stdout(&world.run("cat .venv/x data/greeting.txt").await), "kept\nhello\n");
}

#[tokio::test]
async fn sessions_do_not_see_each_other() {
    let world = loaded(Plan::new()).await;
    stdout(&world.run("echo mine > work/secret").await);
    assert_eq!(stdout(&world.run("cat work/secret").await), "mine\n");
    let world = world.in_session("other");
    world.load("demo").await;
    let shown = shown(&world.run("cat work/secret; ls -A work out").await);
    assert!(!shown["stdout"].as_str().unwrap().contains("mine"), "{shown}");
    let read = world.call("read_file", json!({"path": "work/secret"})).await;
    assert_eq!(refusal(&read).0, "file_not_found");
}

#[tokio::test]
async fn secrets_are_passed_by_declared_name_only() {
    // A variable that every test process has.
    let name = "CARGO_MANIFEST_DIR";
    let command = "echo ${CARGO_MANIFEST_DIR:-none} ${CARGO_PKG_NAME:-none}";
    let world = loaded(Plan::new()).await;
    assert_eq!(stdout(&world.run(command).await), "none none\n");
    let declare = |names: &[&str]| {
        let names = names.iter().map(|it| (*it).to_owned()).collect::<BTreeSet<_>>();
        move |it: prowess_toolkits::ExecSettings| it.with_env([("demo".to_owned(), names)].into())
    };
    let world = loaded(Plan::new().settings(declare(&[name, "PROWESS_TEST_ABSENT"]))).await;
    let outcome = world.run(command).await;
    let expected = format!("{} none\n", env!("CARGO_MANIFEST_DIR"));
    assert_eq!(stdout(&outcome), expected);
    let warning = "PROWESS_TEST_ABSENT is declared for this skill but not set";
    assert_eq!(shown(&outcome)["warnings"], json!([warning]));
    // A skill of the same name that is not trusted gets nothing.
    let world = loaded(Plan::new().untrusted().settings(declare(&[name]))).await;
    assert_eq!(stdout(&world.run(command).await), "none none\n");
}

#[tokio::test]
async fn the_network_is_granted_per_skill_and_recorded() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = &format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo open");
    let world = loaded(Plan::new()).await;
    let outcome = world.run(connect).await;
    assert_ne!(shown(&outcome)["exit_code"], 0);
    assert_eq!(world.started()[0].network, Network::None);
    let grant = |it: prowess_toolkits::ExecSettings| {
        it.with_network(["demo".to_owned()].into()).with_require([Capability::Net].into())
    };
    let world = loaded(Plan::new().settings(grant)).await;
    let outcome = world.run(connect).await;
    assert_eq!(stdout(&outcome), "open\n");
    assert_eq!(shown(&outcome)["isolation"]["granted"], json!(["net"]));
    assert_eq!(outcome.data["isolation"]["net"]["state"], "granted");
    // Not for a skill of that name that is not trusted.
    let world = loaded(Plan::new().untrusted().settings(grant)).await;
    world.run(connect).await;
    assert_eq!(world.started()[0].network, Network::None);
}

#[tokio::test]
async fn without_a_sandbox_only_trusted_skills_run_and_only_if_the_host_says_so() {
    let none = || Plan::new().executor(executor_of(Tier::T0));
    let allow = |it: prowess_toolkits::ExecSettings| it.with_allow_unsandboxed(true);
    let world = loaded(none()).await;
    assert_eq!(refusal(&world.run("echo hi").await).0, "no_sandbox");
    let world = loaded(none().untrusted().settings(allow)).await;
    assert_eq!(refusal(&world.run("echo hi").await).0, "no_sandbox");
    assert_eq!(world.started()[0].unsandboxed, Unsandboxed::Refuse);
    let world = loaded(none().settings(allow)).await;
    let outcome = world.run("echo hi").await;
    assert_eq!(stdout(&outcome), "hi\n");
    let isolation = &shown(&outcome)["isolation"];
    assert_eq!(isolation["tier"], "t0");
    assert!(isolation["not_enforced"].as_array().unwrap().contains(&json!("net")), "{isolation}");
}

#[tokio::test]
async fn what_must_be_enforced_and_is_not_fails_closed() {
    let require = |it: prowess_toolkits::ExecSettings| {
        it.with_allow_unsandboxed(true).with_require([Capability::Net].into())
    };
    let world = loaded(Plan::new().executor(executor_of(Tier::T0)).settings(require)).await;
    let outcome = world.run("touch work/started").await;
    let (code, said) = refusal(&outcome);
    assert_eq!(code, "isolation_missing");
    assert!(said.contains("net"), "{said}");
    assert!(!world.workspace().join("work/started").exists());
}

#[tokio::test]
async fn listed_commands_run_without_a_shell_and_nothing_else_does() {
    let allow = |it: prowess_toolkits::ExecSettings| {
        let allowed = ["echo", "cp", "data/run.sh"].map(str::to_owned);
        it.with_allowed_commands(allowed.into())
    };
    let plan = Plan::new().file("skills/demo/data/run.sh", "#!/bin/sh\necho skill\n");
    let plan = plan.settings(allow);
    let world = plan.build();
    let script = world.path("skills/demo/data/run.sh");
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    world.load("demo").await;
    assert_eq!(stdout(&world.run("echo '$HOME' '*'").await), "$HOME *\n");
    assert_eq!(stdout(&world.run("data/run.sh").await), "skill\n");
    // What a run plants where commands are looked for is not found.
    let planted = world.workspace().join("skills/demo/.venv/bin");
    fs::create_dir_all(&planted).unwrap();
    fs::copy(world.path("skills/demo/data/run.sh"), planted.join("echo")).unwrap();
    assert_eq!(stdout(&world.run("echo hi").await), "hi\n");
    let started = world.started().len();
    let attacks = [
        json!({"command": "id"}),
        json!({"command": "echo hi; id"}),
        json!({"command": "./echo hi"}),
        json!({"command": "bash -c id"}),
    ];
    for attack in attacks {
        let outcome = world.run_with(":", attack.clone()).await;
        assert_eq!(refusal(&outcome).0, "command_not_allowed", "{attack}");
    }
    // By another place or another environment, the same name would be another program.
    for attack in [json!({"cwd": "$WORK_DIR"}), json!({"env": {"PATH": "/workspace/work"}})] {
        let outcome = world.run_with("data/run.sh", attack.clone()).await;
        assert_eq!(refusal(&outcome).0, "invalid_arguments", "{attack}");
    }
    assert_eq!(world.started().len(), started);
}

#[tokio::test]
async fn long_output_is_cut_at_characters_and_said() {
    let world = loaded(Plan::new().settings(|it| it.with_shown_output_bytes(10))).await;
    let outcome = world.run("printf 'ä%.0s' {1..5}").await;
    assert_eq!(stdout(&outcome), "äääää");
    assert_eq!(shown(&outcome).get("warnings"), None);
    let outcome = world.run("printf 'ä%.0s' {1..100}").await;
    let said = shown(&outcome);
    assert_eq!(said["warnings"], json!(["stdout truncated (200 bytes)"]));
    let text = said["stdout"].as_str().unwrap();
    assert!(text.starts_with("ää\n[... ") && text.ends_with(" ...]\nää"), "{text}");
}

#[tokio::test]
async fn wrong_arguments_are_refused_before_anything_is_made() {
    let world = loaded(Plan::new()).await;
    let table = [
        json!({"command": ""}),
        json!({"timeout": "soon"}),
        json!({"inputs": [{"to": "x"}]}),
        json!({"outputs": {"glob": "x"}}),
        json!({"command": "a\0b"}),
    ];
    for more in table {
        let outcome = world.run_with(":", more.clone()).await;
        assert_eq!(refusal(&outcome).0, "invalid_arguments", "{more}");
    }
    assert!(!world.path("workspaces").exists());
    let outcome = world.run_with("echo hi", json!({"shell": "zsh"})).await;
    assert_eq!(shown(&outcome)["warnings"], json!(["Ignored arguments: shell"]));
}

#[tokio::test]
async fn a_run_in_the_same_step_sees_the_load_before_it() {
    let world = Plan::new().build();
    let calls = vec![
        world.tool_call("load_skill", json!({"skill": "demo"})),
        world.tool_call("skill_run", json!({"skill": "demo", "command": "echo hi"})),
    ];
    let outcomes = world.step(calls).await;
    assert_eq!(stdout(&outcomes[1]), "hi\n");
}

#[tokio::test]
async fn a_skill_with_an_unusual_name_runs_in_a_harmless_folder() {
    let text = "---\nname: My Größe\ndescription: Odd.\n---\nBody.\n";
    let world = Plan::new().file("skills/odd/SKILL.md", text).build();
    world.load("My Größe").await;
    let arguments = json!({"skill": "My Größe", "command": "echo $SKILL_NAME; echo x > out/a"});
    let outcome = world.call("skill_run", arguments).await;
    assert_eq!(stdout(&outcome), "My Größe\n");
    let folders = fs::read_dir(world.workspace().join("skills")).unwrap();
    for folder in folders.map(|it| it.unwrap().file_name().into_string().unwrap()) {
        assert!(folder.is_ascii() && !folder.contains(' '), "{folder}");
    }
}

/// A text in a skill that asks for everything.
#[tokio::test]
async fn the_text_of_a_skill_grants_nothing() {
    let text = "---\nname: demo\ndescription: Does demo.\nallowed-tools: skill_run\nmetadata:\n  \
                network: true\n  env: CARGO_MANIFEST_DIR\n  allow_unsandboxed: true\n---\nBody.\n";
    let world = Plan::new().file("skills/demo/SKILL.md", text).build();
    world.load("demo").await;
    let outcome = world.run("echo ${CARGO_MANIFEST_DIR:-none}").await;
    assert_eq!(stdout(&outcome), "none\n");
    let started = &world.started()[0];
    assert_eq!((started.network, started.unsandboxed), (Network::None, Unsandboxed::Refuse));
}
