//! Containers: what they are given, when one is used again, and what is left of them.

mod support;

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Stdio;
use std::time::{Duration, Instant};

use prowess_workspace::{
    Command, ContainerExecutor, ContainerSettings, ExecError, Executor, Reuse, Run, RunOutcome,
};
use serde_json::Value;
use support::{Ground, container_settings, eventually, said, supervisor, tiers};

/// Whether there is an engine; else the test is skipped.
fn has_engine() -> bool {
    !tiers().is_empty()
}

fn executor(change: impl FnOnce(&mut ContainerSettings)) -> ContainerExecutor {
    let mut settings = container_settings();
    settings.warm = 0;
    change(&mut settings);
    ContainerExecutor::builder(settings).supervisor(supervisor()).build()
}

async fn run(executor: &ContainerExecutor, ground: &Ground, line: &str) -> RunOutcome {
    run_with(executor, ground, line, |_| {}).await.unwrap()
}

async fn run_with(
    executor: &ContainerExecutor,
    ground: &Ground,
    line: &str,
    change: impl FnOnce(&mut Run<'_>),
) -> Result<RunOutcome, ExecError> {
    let workspace = ground.workspace();
    let mut run = Run::new(&workspace, Command::Shell(line.to_owned()));
    run.skill = Some("demo");
    change(&mut run);
    executor.run(run).await
}

/// When the first process began, and in which namespace, tells containers apart.
const WHICH: &str = "cut -d' ' -f22 /proc/1/stat; readlink /proc/self/ns/pid";

/// What the engine answers.
fn ask(path: &str) -> Value {
    let mut line = UnixStream::connect(std::env::var_os("PROWESS_TEST_ENGINE").unwrap()).unwrap();
    line.write_all(format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    line.read_to_string(&mut answer).unwrap();
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// The containers of a workspace: id and state.
fn containers_of(ground: &Ground) -> Vec<(String, String)> {
    let place = ground.workspace().display().to_string();
    let listed = ask("/containers/json?all=true");
    let is_ours = |it: &&Value| it["Labels"]["prowess.workspace"] == place;
    let text = |it: &Value| it.as_str().unwrap().to_owned();
    let ours = listed.as_array().unwrap().iter().filter(is_ours);
    ours.map(|it| (text(&it["Id"]), text(&it["State"]))).collect()
}

#[tokio::test]
async fn a_container_has_what_it_needs_and_nothing_else() {
    if !has_engine() {
        return;
    }
    let ground = Ground::new();
    let executor = executor(|settings| settings.cpus = 1);
    let limit = |run: &mut Run<'_>| {
        run.limits.memory_bytes = 100 << 20;
        run.limits.processes = 30;
    };
    run_with(&executor, &ground, "true", limit).await.unwrap();
    let [(id, state)] = containers_of(&ground).try_into().unwrap();
    assert_eq!(state, "running");
    let about = ask(&format!("/containers/{id}/json"));
    let host = &about["HostConfig"];
    assert_eq!(host["AutoRemove"], false);
    assert_eq!(host["NetworkMode"], "none");
    assert_eq!(host["ReadonlyRootfs"], true);
    assert_eq!(host["Privileged"], false);
    assert_eq!(host["Memory"], 100 << 20);
    assert_eq!(host["MemorySwap"], 100 << 20);
    assert_eq!(host["PidsLimit"], 32);
    assert_eq!(host["NanoCpus"], 1_000_000_000);
    let user = about["Config"]["User"].as_str().unwrap();
    assert!(!user.starts_with("0") && !user.starts_with("root") && !user.is_empty(), "{user}");
    // Nobody else here can call in place of what runs in it.
    let folder = about["Config"]["Labels"]["prowess.folder"].as_str().unwrap();
    let mode = std::fs::metadata(folder).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "{folder}");
    // Of this machine it sees the workspace, the supervisor, and not the engine.
    let engine = std::env::var("PROWESS_TEST_ENGINE").unwrap();
    let mounts = about["Mounts"].as_array().unwrap();
    for mount in mounts {
        let (from, to) =
            (mount["Source"].as_str().unwrap(), mount["Destination"].as_str().unwrap());
        assert!(!engine.starts_with(from), "{mount}");
        assert!(["/workspace/", "/prowess/"].iter().any(|it| to.starts_with(it)), "{mount}");
        let is_written = ["work", "out", "runs", "skills/demo/.venv"]
            .iter()
            .any(|name| to == format!("/workspace/{name}"));
        assert_eq!(mount["RW"], is_written, "{mount}");
    }
    drop(executor);
    assert_eq!(containers_of(&ground), [], "it is removed");
}

#[tokio::test]
async fn a_clean_container_is_used_again_and_no_other() {
    if !has_engine() {
        return;
    }
    let ground = Ground::new();
    let executor = executor(|_| {});
    let which = async || run(&executor, &ground, WHICH).await.stdout.text(100);
    let mut before = which().await;
    assert_eq!(which().await, before, "nothing was left in it");
    for line in [
        "echo x > $WORK_DIR/x; echo x > $OUTPUT_DIR/x; exit 3",
        "(setsid sleep 100 &); sleep 0.1",
        "no-such-command",
    ] {
        run(&executor, &ground, line).await;
        assert_eq!(which().await, before, "{line}");
    }
    for line in [
        "echo x > /tmp/x",
        "mkdir -p /tmp/a/b",
        "echo x > /dev/shm/x",
        "python3 -c 'import ctypes; print(ctypes.CDLL(None).shmget(7, 100, 0o1600))'",
        "python3 -c 'import ctypes; print(ctypes.CDLL(None).msgget(7, 0o1600))'",
    ] {
        let outcome = run(&executor, &ground, line).await;
        assert_eq!(outcome.exit_code, 0, "{line} {}", said(&outcome));
        assert!(!said(&outcome).contains("-1"), "{line} {}", said(&outcome));
        let after = which().await;
        assert_ne!(after, before, "{line}");
        before = after;
        assert_eq!(
            run(&executor, &ground, "ls -A /tmp /dev/shm").await.stdout.text(100),
            "/dev/shm:\n\n/tmp:\n"
        );
    }
    // Nor one whose time was over.
    let limit = |run: &mut Run<'_>| run.limits.wall = Duration::from_millis(200);
    assert!(run_with(&executor, &ground, "sleep 100", limit).await.unwrap().timed_out);
    assert_ne!(which().await, before);
    // Nor one with other limits, or of another workspace, or after its folders were replaced.
    before = which().await;
    let limit = |run: &mut Run<'_>| run.limits.processes = 33;
    assert_ne!(run_with(&executor, &ground, WHICH, limit).await.unwrap().stdout.text(100), before);
    let other = Ground::new();
    assert_ne!(run(&executor, &other, WHICH).await.stdout.text(100), before);
    std::fs::rename(ground.workspace().join("out"), ground.at("old")).unwrap();
    std::fs::create_dir(ground.workspace().join("out")).unwrap();
    support::theirs(&ground.workspace().join("out"));
    assert_ne!(which().await, before);
    run(&executor, &ground, "echo new > $OUTPUT_DIR/new").await;
    assert!(ground.workspace().join("out/new").exists());
}

#[tokio::test]
async fn every_run_has_a_container_of_its_own_if_that_is_asked_for() {
    if !has_engine() {
        return;
    }
    let ground = Ground::new();
    let executor = executor(|settings| {
        settings.reuse = Reuse::Never;
        settings.warm = 2;
    });
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(run(&executor, &ground, WHICH).await.stdout.text(100));
        let ready = || containers_of(&ground).iter().filter(|it| it.1 == "running").count();
        assert!(eventually(|| ready() == 2), "as many are kept ready as are asked for");
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 4);
    drop(executor);
    assert_eq!(containers_of(&ground), []);
}

#[tokio::test]
async fn no_more_containers_wait_than_may() {
    if !has_engine() {
        return;
    }
    let grounds = [Ground::new(), Ground::new(), Ground::new()];
    let executor = executor(|settings| settings.max_idle = 2);
    for ground in &grounds {
        run(&executor, ground, "true").await;
    }
    assert!(eventually(|| containers_of(&grounds[0]).is_empty()), "the oldest one goes");
    assert_eq!(containers_of(&grounds[1]).len() + containers_of(&grounds[2]).len(), 2);
}

#[tokio::test]
async fn the_folder_of_skills_can_be_read_and_not_written() {
    if !has_engine() {
        return;
    }
    let ground = Ground::new();
    let builder = ContainerExecutor::builder(container_settings()).supervisor(supervisor());
    let executor = builder.skills_root(ground.at("outside")).build();
    let line = "cat $SKILLS_ROOT/secret; echo x > $SKILLS_ROOT/secret && echo broken; \
                touch $SKILLS_ROOT/new && echo broken; chmod 777 $SKILLS_ROOT/secret && echo broken";
    let outcome = run(&executor, &ground, line).await;
    assert_eq!(outcome.stdout.text(100), "hunter2", "{}", said(&outcome));
    assert_eq!(std::fs::read_to_string(ground.at("outside/secret")).unwrap(), "hunter2");
}

/// What the program in the next test is asked by.
const ABANDON: &str = "PROWESS_TEST_ABANDON";

#[tokio::test]
async fn whoever_is_killed_leaves_nothing_that_runs_and_the_next_one_removes_the_rest() {
    if !has_engine() {
        return;
    }
    if let Some(folder) = std::env::var_os(ABANDON) {
        // The one that is killed.
        let workspace = std::path::PathBuf::from(folder);
        let executor = executor(|settings| settings.warm = 1);
        let run = |line: &str| Run::new(&workspace, Command::Shell(line.to_owned()));
        executor.run(run("true")).await.unwrap();
        executor.run(run("echo > $WORK_DIR/begun; sleep 600")).await.unwrap();
        return;
    }
    let ground = Ground::new();
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "whoever_is_killed_leaves_nothing_that_runs_and_the_next_one_removes_the_rest",
        ])
        .env(ABANDON, ground.workspace())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert!(eventually(|| ground.workspace().join("work/begun").exists()));
    let is_running = || containers_of(&ground).iter().any(|it| it.1 == "running");
    assert!(is_running());
    // Whoever lives keeps what is theirs, whatever others remove.
    let other = Ground::new();
    let next = executor(|_| {});
    run(&next, &other, "true").await;
    assert!(is_running());
    let folders: Vec<String> = containers_of(&ground)
        .iter()
        .map(|(id, _)| {
            let about = ask(&format!("/containers/{id}/json"));
            about["Config"]["Labels"]["prowess.folder"].as_str().unwrap().to_owned()
        })
        .collect();
    assert!(!folders.is_empty() && folders.iter().all(|it| std::path::Path::new(it).exists()));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(eventually(|| !is_running()), "everything ends with whoever asked for it");
    // Unless another test's has done it already.
    let next = executor(|_| {});
    run(&next, &other, "true").await;
    assert_eq!(containers_of(&ground), []);
    assert!(!folders.iter().any(|it| std::path::Path::new(it).exists()), "{folders:?}");
}

#[tokio::test]
async fn a_container_that_was_removed_behind_our_back_is_replaced() {
    if !has_engine() {
        return;
    }
    let ground = Ground::new();
    let executor = executor(|_| {});
    run(&executor, &ground, "true").await;
    let first = run(&executor, &ground, WHICH).await.stdout.text(100);
    let pid = {
        let [(id, _)] = containers_of(&ground).try_into().unwrap();
        ask(&format!("/containers/{id}/json"))["State"]["Pid"].as_i64().unwrap()
    };
    let killed = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
    if !killed.unwrap().success() {
        // Of an engine that is not ours.
        return;
    }
    assert!(eventually(|| !std::path::Path::new(&format!("/proc/{pid}")).exists()));
    assert_ne!(run(&executor, &ground, WHICH).await.stdout.text(100), first);
}

#[tokio::test]
async fn what_is_missing_is_named() {
    if !has_engine() {
        return;
    }
    let ground = Ground::new();
    let fails = async |change: &dyn Fn(&mut ContainerSettings)| {
        let error = run_with(&executor(change), &ground, "true", |_| {}).await.unwrap_err();
        format!("{} {error}", error.code())
    };
    let said = fails(&|it| it.image = "localhost/no-such-image:1".to_owned()).await;
    assert!(
        said.starts_with("image_missing the image localhost/no-such-image:1 is not here; pull it"),
        "{said}"
    );
    let said = fails(&|it| it.engine = "unix:///no/such/socket".to_owned()).await;
    assert!(said.starts_with("container_engine") && said.contains("/no/such/socket"), "{said}");
    let said = fails(&|it| it.engine = "tcp://127.0.0.1:2375".to_owned()).await;
    assert!(said.contains("is no socket of this machine"), "{said}");
    // Somebody who takes the call and says nothing.
    let path = ground.at("silent");
    let _silent = UnixListener::bind(&path).unwrap();
    let begun = Instant::now();
    let said = fails(&|it| {
        it.engine = format!("unix://{}", path.display());
        it.engine_seconds = 1;
    })
    .await;
    assert!(said.starts_with("container_engine") && said.contains("too long"), "{said}");
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[tokio::test]
async fn the_socket_of_the_engine_is_never_inside() {
    if !has_engine() {
        return;
    }
    let ground = Ground::new();
    let engine = std::env::var("PROWESS_TEST_ENGINE").unwrap();
    let folder = std::path::Path::new(&engine).parent().unwrap().to_owned();
    for root in [folder.as_path(), std::path::Path::new(&engine), std::path::Path::new("/")] {
        let builder = ContainerExecutor::builder(container_settings()).supervisor(supervisor());
        let executor = builder.skills_root(root).build();
        let error = run_with(&executor, &ground, "true", |_| {}).await.unwrap_err();
        assert!(error.to_string().contains("holds the engine's socket"), "{error}");
    }
    // Nor can it be reached by its name, though everybody may go there.
    let executor = executor(|_| {});
    let line = format!(
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{engine}\")' && echo broken; echo end"
    );
    let outcome = run(&executor, &ground, &line).await;
    assert!(!said(&outcome).contains("broken") && said(&outcome).contains("end"));
}
