//! `--executor container` on `run`, `call`, `chat` and `sandbox check` (S10, 1).

mod support;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;

use serde_json::{Value, json};
use support::exec::Project;
use support::provider::{Provider, Reply};
use support::{Run, skip};

/// A project, if there is an engine.
fn project(test: &str) -> Option<Project> {
    if std::env::var_os("PROWESS_TEST_ENGINE").is_none() {
        skip(test, "there is no container engine (PROWESS_TEST_ENGINE)");
        return None;
    }
    let project = Project::new(test)?;
    let image = std::env::var("PROWESS_TEST_IMAGE").unwrap();
    project.write("home/prowess.toml", format!("[exec.container]\nimage = \"{image}\"\n"));
    Some(project)
}

fn engine() -> String {
    std::env::var("PROWESS_TEST_ENGINE").unwrap()
}

fn command(project: &Project, arguments: &[&str]) -> Command {
    let mut command = project.command(arguments);
    command.env("DOCKER_HOST", format!("unix://{}", engine())).env_remove("CONTAINER_HOST");
    command
}

fn prowess(project: &Project, arguments: &[&str]) -> Run {
    project.sandbox.run(command(project, arguments), b"")
}

/// How many containers there are for workspaces of this project.
fn containers(project: &Project) -> usize {
    let mut line = UnixStream::connect(engine()).unwrap();
    line.write_all(b"GET /containers/json?all=true HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    line.read_to_string(&mut answer).unwrap();
    let listed: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let place = project.path("home").display().to_string();
    let is_ours = |it: &&Value| {
        it["Labels"]["prowess.workspace"].as_str().is_some_and(|it| it.starts_with(&place))
    };
    listed.as_array().unwrap().iter().filter(is_ours).count()
}

#[test]
fn a_command_runs_in_a_container() {
    let Some(project) = project("containers::a_command_runs_in_a_container") else { return };
    let line = "cat greeting.txt; cat /proc/1/comm; echo result > out/file; exit 7";
    let options = ["run", "demo", "--executor", "container", "--output", "results"];
    let run = prowess(&project, &[&options[..], &["--", line]].concat());
    assert_eq!((run.code, run.stdout.as_str()), (7, "hello\nloader\n"), "{run:?}");
    assert_eq!(std::fs::read_to_string(project.path("results/file")).unwrap(), "result\n");
    let run = prowess(&project, &["run", "demo", "--executor", "container", "--json", "--", "pwd"]);
    let value = run.json();
    assert_eq!(value["stdout"], "/workspace/skills/demo\n", "{value}");
    assert_eq!(value["isolation"]["tier"], "t3", "{value}");
    for capability in
        ["fs_read", "fs_write", "metadata", "net", "unix_sockets", "env", "pids", "memory", "kill"]
    {
        assert_eq!(value["isolation"][capability]["state"], "enforced", "{value}");
    }
    assert_eq!(containers(&project), 0, "nothing is left");
    // The other one is still there, and is the default.
    let run = prowess(&project, &["run", "demo", "--json", "--", "true"]);
    assert_eq!(run.json()["isolation"]["tier"], "t2");
}

#[test]
fn the_settings_choose_the_executor_and_a_flag_wins() {
    let Some(project) = project("containers::the_settings_choose_the_executor") else { return };
    let image = std::env::var("PROWESS_TEST_IMAGE").unwrap();
    project.write(
        "home/prowess.toml",
        "[exec]\nexecutor = \"container\"\n[exec.container]\nimage = \"localhost/none:1\"\n",
    );
    let tier = |options: &[&str]| {
        let run =
            prowess(&project, &[&["run", "demo", "--json"], options, &["--", "true"]].concat());
        run.json()["isolation"]["tier"].clone()
    };
    assert_eq!(tier(&["--image", &image]), "t3");
    assert_eq!(tier(&["--executor", "local"]), "t2");
    let run = prowess(&project, &["run", "demo", "--", "true"]);
    assert_eq!((run.code, run.stdout.as_str()), (125, ""), "{run:?}");
    assert!(
        run.stderr.starts_with("Error: the image localhost/none:1 is not here; pull it"),
        "{run:?}"
    );
    // A project that was cloned does not choose.
    project.write("home/prowess.toml", "");
    project.write("prowess.toml", "[exec]\nexecutor = \"container\"\n");
    assert_eq!(tier(&[]), "t2");
}

#[test]
fn tools_and_conversations_use_containers_too() {
    let Some(project) = project("containers::tools_and_conversations") else { return };
    let call = |tool: &str, arguments: Value| {
        let run = prowess(
            &project,
            &["call", tool, &arguments.to_string(), "--executor", "container", "--json"],
        );
        run.json()
    };
    call("load_skill", json!({"skill": "demo"}));
    let ran = call("skill_run", json!({"skill": "demo", "command": "cat greeting.txt"}));
    assert!(ran["content"].to_string().contains("t3"), "{ran}");
    assert!(ran["content"].to_string().contains("hello"), "{ran}");
    let provider = Provider::answering([
        Reply::call("load_skill", json!({"skill": "demo"})),
        Reply::call(
            "skill_run",
            json!({"skill": "demo", "command": "echo one > work/x; cat work/x"}),
        ),
        Reply::call("skill_run", json!({"skill": "demo", "command": "cat work/x /proc/1/comm"})),
        Reply::text("Done."),
    ]);
    let chat =
        ["chat", "--model", "openai:test", "--base-url", &provider.url, "--executor", "container"];
    let run = prowess(&project, &[&chat[..], &["--prompt", "Go."]].concat());
    assert_eq!((run.code, run.stdout.as_str()), (0, "Done.\n"), "{run:?}");
    let last = provider.messages(3).pop().unwrap().1;
    assert!(last.contains("one\\nloader") && last.contains("t3"), "{last}");
    assert_eq!(containers(&project), 0, "nothing is left");
}

#[test]
fn what_a_container_enforces_is_shown() {
    let Some(project) = project("containers::what_a_container_enforces_is_shown") else { return };
    let run = prowess(&project, &["sandbox", "check", "--executor", "container"]);
    insta::assert_snapshot!(run.text());
    let run = prowess(&project, &["sandbox", "check", "--executor", "container", "--json"]);
    assert_eq!(run.json()["isolation"]["tier"], "t3");
}

#[test]
fn the_folder_of_skills_is_in_the_container() {
    let Some(project) = project("containers::the_folder_of_skills") else { return };
    let line = "cat $SKILLS_ROOT/demo/greeting.txt; touch $SKILLS_ROOT/x || echo refused";
    let mut run = command(&project, &["run", "demo", "--executor", "container", "--", line]);
    run.env("SKILLS_ROOT", project.path("skills"));
    let run = project.sandbox.run(run, b"");
    assert_eq!((run.code, run.stdout.as_str()), (0, "hello\nrefused\n"), "{run:?}");
}

#[test]
fn without_an_engine_nothing_starts_and_it_is_said_where_one_was_looked_for() {
    let Some(project) = Project::new("containers::without_an_engine") else { return };
    for (variable, said) in [
        ("unix:///no/such/socket", "there is no socket at /no/such/socket; is the engine running?"),
        ("tcp://127.0.0.1:2375", "'tcp://127.0.0.1:2375' is no socket of this machine"),
    ] {
        let mut run = project.command(&["run", "demo", "--executor", "container", "--", "true"]);
        run.env("DOCKER_HOST", variable);
        let run = project.sandbox.run(run, b"");
        assert_eq!((run.code, run.stdout.as_str()), (125, ""), "{run:?}");
        assert!(
            run.stderr.contains("Error: the container engine cannot be used: DOCKER_HOST: "),
            "{run:?}"
        );
        assert!(run.stderr.contains(said), "{run:?}");
    }
}
