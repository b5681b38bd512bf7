//! `prowess sandbox`, and what the sandbox is for `prowess run` (S07, 2, 3 and 4).

mod support;

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use support::exec::{Project, eventually, is_running, repeat_as_a_user};
use support::{Run, minimal};

const CAPABILITIES: [&str; 9] =
    ["fs_read", "fs_write", "metadata", "net", "unix_sockets", "env", "pids", "memory", "kill"];

/// What a check says, without what depends on the machine: whether there are cgroups, and whether
/// the user of commands is another one.
fn stable(run: &Run) -> String {
    let mut text = String::new();
    let varies = match run.stdout.contains("no sandbox") {
        true => &["pids", "memory", "env"][..],
        false => &["pids", "memory"],
    };
    for line in run.text().lines() {
        let name = line.split_whitespace().next().unwrap_or_default();
        match varies.contains(&name) {
            true => text += &format!("  {name:<13} [AS FAR AS THE MACHINE CAN]\n"),
            false => text += &format!("{line}\n"),
        }
    }
    text
}

#[test]
fn a_check_says_what_is_enforced() {
    let Some(project) = Project::new("sandbox::a_check_says_what_is_enforced") else { return };
    for tier in ["2", "1", "0"] {
        let run = project.prowess(&["sandbox", "check", "--tier", tier]);
        insta::assert_snapshot!(format!("sandbox_check_{tier}"), stable(&run));
    }
    assert_eq!(
        stable(&project.prowess(&["sandbox", "check"])),
        stable(&project.prowess(&["sandbox", "check", "--tier", "2"]))
    );
}

#[test]
fn programs_get_all_nine_capabilities() {
    let Some(project) = Project::new("sandbox::programs_get_all_nine_capabilities") else { return };
    for (tier, code) in [("2", 0), ("1", 0), ("0", 1)] {
        let run = project.prowess(&["sandbox", "check", "--tier", tier, "--json"]);
        assert_eq!((run.code, run.stderr.as_str()), (code, ""), "{run:?}");
        let value = run.json();
        let isolation = value["isolation"].as_object().unwrap();
        assert_eq!(isolation["tier"], format!("t{tier}"));
        assert_eq!(isolation.len(), 1 + CAPABILITIES.len(), "{value}");
        for name in CAPABILITIES {
            let state = isolation[name]["state"].as_str().unwrap();
            assert!(["enforced", "partial", "none"].contains(&state), "{value}");
            assert!(!isolation[name]["by"].as_str().unwrap().is_empty(), "{value}");
        }
        let tried = value["tried"].as_array().unwrap();
        assert_eq!(tried.last().unwrap()["isolation"], value["isolation"]);
    }
}

#[test]
fn without_bwrap_the_kernel_alone_has_to_do() {
    let Some(project) = Project::new("sandbox::without_bwrap_the_kernel_alone_has_to_do") else {
        return;
    };
    let mut command = project.command(&["sandbox", "check", "--json"]);
    command.env("PATH", "/nowhere");
    let run = project.sandbox.run(command, b"");
    let value = run.json();
    assert_eq!((run.code, &value["isolation"]["tier"]), (0, &json!("t1")), "{run:?}");
    assert_eq!(value["tried"][0]["tier"], "t2");
    assert!(value["tried"][0]["cause"].is_string(), "{value}");
}

#[test]
fn help_texts() {
    let Some(project) = Project::new("sandbox::help_texts") else { return };
    insta::assert_snapshot!("sandbox_help", project.prowess(&["sandbox", "--help"]).stdout);
    let run = project.prowess(&["sandbox", "check", "--help"]);
    insta::assert_snapshot!("sandbox_check_help", run.stdout);
}

#[test]
fn a_run_uses_no_better_sandbox_than_asked_for() {
    let test = "sandbox::a_run_uses_no_better_sandbox_than_asked_for";
    let Some(project) = Project::new(test) else { return };
    for tier in ["2", "1"] {
        let (code, value) = project.run_as_json(&["--tier", tier], "cat greeting.txt");
        assert_eq!((code, &value["stdout"]), (0, &json!("hello\n")), "{value}");
        assert_eq!(value["isolation"]["tier"], format!("t{tier}"));
    }
}

#[test]
fn without_a_sandbox_only_what_is_trusted_runs_and_only_if_allowed() {
    let test = "sandbox::without_a_sandbox_only_what_is_trusted_runs_and_only_if_allowed";
    let Some(project) = Project::new(test) else { return };
    let refused = |run: &Run| {
        assert_eq!((run.code, run.stdout.as_str()), (125, ""), "{run:?}");
        assert!(run.stderr.starts_with("Error: no sandbox can be set up here ("), "{run:?}");
    };
    let none = ["--tier", "0"];
    let run = project.run(&none, "echo ran");
    refused(&run);
    insta::assert_snapshot!("run_no_sandbox", run.text());
    let allowed = ["--tier", "0", "--allow-unsandboxed"];
    let (code, value) = project.run_as_json(&allowed, "echo ran");
    assert_eq!((code, &value["stdout"]), (0, &json!("ran\n")), "{value}");
    assert_eq!(value["isolation"]["tier"], "t0");
    assert_eq!(value["isolation"]["fs_read"]["state"], "none");
    // The same skill from a source that nobody trusts.
    project.write("downloaded/foreign/SKILL.md", minimal("foreign"));
    let config = "[skills]\nuntrusted_sources = [\"../downloaded\"]\n";
    project.write("home/prowess.toml", format!("{config}[exec]\nallow_unsandboxed = true\n"));
    assert_eq!(project.run(&none, "true").code, 0, "allowed at home");
    let foreign = |options: &[&str]| {
        project.prowess(&[&["run", "foreign"], options, &["--", "echo ran"]].concat())
    };
    refused(&foreign(&none));
    refused(&foreign(&allowed));
    assert_eq!(foreign(&[]).stdout, "ran\n", "in a sandbox it may");
}

#[test]
fn what_must_be_enforced_is_or_nothing_is_started() {
    let test = "sandbox::what_must_be_enforced_is_or_nothing_is_started";
    let Some(project) = Project::new(test) else { return };
    let config = "[exec]\nrequire = [\"fs_read\"]\nallow_unsandboxed = true\n";
    project.write("home/prowess.toml", config);
    assert_eq!(project.run(&[], "true").code, 0);
    let run = project.run(&["--tier", "0"], "echo ran");
    assert_eq!((run.code, run.stdout.as_str()), (125, ""), "{run:?}");
    assert!(run.stderr.contains("fs_read cannot be enforced here and is required"), "{run:?}");
}

#[test]
fn the_network_is_off_unless_it_is_granted() {
    let Some(project) = Project::new("sandbox::the_network_is_off_unless_it_is_granted") else {
        return;
    };
    project.write("downloaded/foreign/SKILL.md", minimal("foreign"));
    project.write("home/prowess.toml", "[skills]\nuntrusted_sources = [\"../downloaded\"]\n");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let line = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected");
    let run = |skill: &str, options: &[&str]| -> (i32, Value) {
        let run = project.prowess(&[&["run", skill, "--json"], options, &["--", &line]].concat());
        (run.code, run.json())
    };
    for tier in ["2", "1"] {
        for skill in ["demo", "foreign"] {
            let (code, value) = run(skill, &["--tier", tier]);
            assert_ne!(code, 0, "{value}");
            assert_eq!((&value["stdout"], &value["exit_code"]), (&json!(""), &json!(code)));
            assert_eq!(value["isolation"]["net"]["state"], "enforced");
            // The same attempt succeeds where it may.
            let (code, value) = run(skill, &["--tier", tier, "--network"]);
            assert_eq!((code, &value["stdout"]), (0, &json!("connected\n")), "{value}");
            assert_eq!(value["isolation"]["net"]["state"], "granted");
        }
    }
    // A host can grant it for good; a skill that is not trusted only by its full name.
    let config = "[skills]\nuntrusted_sources = [\"../downloaded\"]\n\
                  [exec]\nnetwork = [\"demo\", \"foreign\"]\n";
    project.write("home/prowess.toml", config);
    assert_eq!(run("demo", &[]).0, 0);
    assert_ne!(run("foreign", &[]).0, 0);
    project.write("home/prowess.toml", config.replace("\"foreign\"", "\"foreign@downloaded\""));
    assert_eq!(run("foreign", &[]).0, 0);
}

/// However `prowess run` ends, what it started ends: the command, its children, and daemons.
#[test]
fn nothing_outlives_prowess() {
    let Some(project) = Project::new("sandbox::nothing_outlives_prowess") else { return };
    for (tier, at) in [("2", 0), ("1", 1)] {
        for (signal, name) in [(Signal::INT, "int"), (Signal::TERM, "term"), (Signal::KILL, "kill")]
        {
            let marker = format!("{}.{at}{}", 900_000 + std::process::id(), signal.as_raw());
            let line = format!(
                "trap '' INT TERM; (setsid sleep {marker} &) ; sleep {marker} & echo begun; wait"
            );
            let run = project.command(&["run", "demo", "--tier", tier, "--", &line]);
            // What was started in the background may have been told to ignore Ctrl-C.
            let mut command = Command::new("env");
            command.arg("--default-signal=INT").arg(run.get_program()).args(run.get_args());
            command.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
            command.current_dir(run.get_current_dir().unwrap());
            command.stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
            let mut child = command.spawn().unwrap();
            let mut said = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
            assert_eq!(said, "begun\n");
            assert!(eventually(|| is_running(&format!("sleep\0{marker}"))), "{tier} {name}");
            // As a terminal does for Ctrl-C: to everybody in the foreground.
            kill_process_group(Pid::from_child(&child), signal).unwrap();
            assert!(!child.wait().unwrap().success());
            assert!(eventually(|| !is_running(&marker)), "{tier} {name}: something is left");
        }
    }
}

#[test]
fn all_of_it_holds_for_an_ordinary_user() {
    repeat_as_a_user("all_of_it_holds_for_an_ordinary_user");
}
