//! Commands that a host lists, in the real sandbox (S10, 3). Every attack first takes place
//! without lists, where it succeeds.

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::sync::Arc;

use prowess_catalog::Catalog;
use prowess_runtime::{
    AgentName, CommandLanguage, CommandRequest, Runtime, SessionKey, ToolCall, ToolOutcome,
};
use prowess_toolkits::{CommandPolicy, ExecSettings, ExecToolkit, FilesToolkit, LocalBackend};
use prowess_workspace::{Tier, WorkspaceId, Workspaces};
use serde_json::{Value, json};
use support::{Plan, TIERS, World, executor, executor_of, refusal, shown, stdout};

const PLANTED: &str = "#!/bin/sh\necho planted\n";

fn lists(allowed: &[&str], denied: &[&str]) -> impl FnOnce(ExecSettings) -> ExecSettings {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let (allowed, denied) = (names(allowed), names(denied));
    move |it| it.with_allowed_commands(allowed).with_denied_commands(denied)
}

fn put_program(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A world whose skill brings programs, and in whose workspace a run has left others.
async fn planted(tier: Tier, change: impl FnOnce(ExecSettings) -> ExecSettings) -> World {
    let world = Plan::new().executor(executor_of(tier)).settings(change).build();
    let arguments = "#!/bin/sh\necho \"$# <$1> <$2> <$3>\"\n";
    put_program(&world.path("skills/demo/scripts/run.sh"), arguments);
    for name in ["id", "own"] {
        put_program(&world.path(&format!("skills/demo/bin/{name}")), PLANTED);
    }
    world.load("demo").await;
    // The first run stages the skill; one of them is allowed by all lists here.
    for command in ["echo staged", "python3 --version"] {
        world.run(command).await;
    }
    let workspace = world.workspace();
    for folder in ["work", "out", "skills/demo/.venv/bin"] {
        for name in ["id", "planted"] {
            put_program(&workspace.join(folder).join(name), PLANTED);
        }
    }
    symlink("/usr/bin/id", workspace.join("work/link")).unwrap();
    world
}

fn said(outcome: &ToolOutcome) -> String {
    match outcome.is_error {
        true => outcome.code.to_string(),
        false => shown(outcome)["stdout"].as_str().unwrap().to_owned(),
    }
}

#[tokio::test]
async fn programs_that_were_planted_are_never_those_that_are_listed() {
    let attacks = [
        // A bare name, found first in the skill's own environment.
        (json!({"command": "id"}), "uid="),
        (json!({"command": "id", "cwd": "$WORK_DIR"}), "uid="),
        // A path that the call sets.
        (json!({"command": "id", "env": {"PATH": "work:/usr/bin:/bin"}}), "invalid_arguments"),
        (json!({"command": "id", "env": {"PATH": "out"}}), "invalid_arguments"),
        // The same name by another path.
        (json!({"command": "./work/id"}), "command_not_allowed"),
        (json!({"command": "work/id"}), "command_not_allowed"),
        (json!({"command": ".venv/bin/id"}), "command_not_allowed"),
        (json!({"command": "bin/id"}), "command_not_allowed"),
        (json!({"command": "planted"}), "command_not_allowed"),
        (json!({"command": "own"}), "command_not_allowed"),
        // A path that is listed but can be written.
        (json!({"command": "work/planted"}), "command_not_allowed"),
        (json!({"command": "out/planted"}), "command_not_allowed"),
        (json!({"command": ".venv/bin/planted"}), "command_not_allowed"),
        // Syntax.
        (json!({"command": "id & work/id"}), "command_not_allowed"),
        (json!({"command": "id $(work/id >&2)\nwork/id"}), "command_not_allowed"),
        (json!({"command": "env work/id"}), "command_not_allowed"),
        (json!({"command": "bash -c work/id"}), "command_not_allowed"),
        (json!({"command": "PATH=work; id"}), "command_not_allowed"),
    ];
    for tier in TIERS {
        let open = planted(tier, |it| it).await;
        let listed = ["id", "echo", "scripts/run.sh", "work/planted", "out/planted"];
        let listed = [listed.as_slice(), &[".venv/bin/planted"]].concat();
        let closed = planted(tier, lists(&listed, &[])).await;
        for (attack, expected) in &attacks {
            let control = open.run_with("", attack.clone()).await;
            assert!(said(&control).contains("planted"), "control {tier:?} {attack}");
            let outcome = closed.run_with("", attack.clone()).await;
            assert!(said(&outcome).starts_with(expected), "{tier:?} {attack}: {}", said(&outcome));
            assert!(!said(&outcome).contains("planted\n"), "{tier:?} {attack}");
        }
        let outcome = closed.run("scripts/run.sh 'a b' '' '$HOME'").await;
        assert_eq!(stdout(&outcome), "3 <a b> <> <$HOME>\n", "{tier:?}");
        let outcome = closed.run_with("echo hi", json!({"env": {"LANG": "C"}})).await;
        assert_eq!(stdout(&outcome), "hi\n", "{tier:?}");
    }
}

/// The file that a name leads to on this machine.
fn real_name(program: &str) -> String {
    let real = fs::canonicalize(program).unwrap();
    real.file_name().unwrap().to_str().unwrap().to_owned()
}

#[tokio::test]
async fn what_is_denied_is_denied_under_its_other_names() {
    let python = real_name("/usr/bin/python3");
    assert_ne!(python, "python3", "on this machine it has no other name");
    let attacks = [
        format!("{python} --version"),
        format!("/usr/bin/{python} --version"),
        "/bin/python3 --version".to_owned(),
        "env python3 --version".to_owned(),
        "./work/link".to_owned(),
        "find . -maxdepth 0 -exec python3 --version {} +".to_owned(),
    ];
    for tier in TIERS {
        let open = planted(tier, |it| it).await;
        let closed = planted(tier, lists(&[], &["python3"])).await;
        for attack in &attacks {
            let control = said(&open.run(attack).await);
            assert!(control.contains("Python") || control.contains("uid="), "{tier:?}: {control}");
            let outcome = closed.run(attack).await;
            assert_eq!(refusal(&outcome).0, "command_not_allowed", "{tier:?} {attack}");
        }
        assert!(stdout(&closed.run("id").await).starts_with("uid="), "{tier:?}");
        assert_eq!(stdout(&closed.run("scripts/run.sh a").await), "1 <a> <> <>\n", "{tier:?}");
    }
    // A script is started by its first line.
    let world = planted(TIERS[0], lists(&[], &["sh"])).await;
    assert_eq!(refusal(&world.run("scripts/run.sh a").await).0, "command_not_allowed");
}

/// What programs read at home, and what they load by a variable, would be somebody's code.
#[tokio::test]
async fn nothing_that_a_run_has_left_is_loaded_by_what_is_listed() {
    for tier in TIERS {
        let open = planted(tier, |it| it).await;
        let closed = planted(tier, lists(&["python3"], &[])).await;
        let code = "import site\nprint(site.getusersitepackages())";
        let asked = open.run_with("python3 -", json!({"stdin": code})).await;
        let asked = stdout(&asked);
        let packages = asked.trim().split_once("/work/").unwrap().1;
        for world in [&open, &closed] {
            let work = world.workspace().join("work");
            let code = "print('planted')\n";
            fs::create_dir_all(work.join(packages)).unwrap();
            fs::write(work.join(packages).join("usercustomize.py"), code).unwrap();
            fs::write(work.join("colorsys.py"), code).unwrap();
        }
        let home = json!({"stdin": "print('hi')"});
        assert_eq!(stdout(&open.run_with("python3 -", home.clone()).await), "planted\nhi\n");
        assert_eq!(stdout(&closed.run_with("python3 -", home).await), "hi\n", "{tier:?}");
        let path = json!({"stdin": "import colorsys", "env": {"PYTHONPATH": "work"}});
        let control = stdout(&open.run_with("python3 -s -", path.clone()).await);
        assert_eq!(control, "planted\n", "{tier:?}");
        let outcome = closed.run_with("python3 -s -", path).await;
        let (code, text) = refusal(&outcome);
        assert_eq!(code, "invalid_arguments");
        assert!(text.contains("env.PYTHONPATH"), "{text}");
    }
}

/// An editor is a line of shell, and it is set by the runtime itself.
#[tokio::test]
async fn no_text_for_an_editor_is_taken_with_a_list() {
    let text = json!({"editor_text": "typed"});
    let open = planted(TIERS[0], |it| it).await;
    assert!(stdout(&open.run_with("printenv EDITOR", text.clone()).await).starts_with("cp "));
    for change in [lists(&["printenv", "echo"], &[]), lists(&[], &["rm"])] {
        let closed = planted(TIERS[0], change).await;
        let outcome = closed.run_with("printenv EDITOR", text.clone()).await;
        let (code, said) = refusal(&outcome);
        assert_eq!(code, "invalid_arguments");
        assert!(said.contains("'editor_text' sets EDITOR to a line of shell"), "{said}");
    }
}

/// What the host declares is its own choice; what a call sets is not.
#[tokio::test]
async fn variables_of_the_host_are_passed_with_a_list() {
    let declared = |it: ExecSettings| {
        let names = [("demo".to_owned(), ["CARGO_MANIFEST_DIR".to_owned()].into())];
        let mut it = lists(&["printenv", "echo"], &[])(it);
        it.env = names.into();
        it
    };
    let world = planted(TIERS[0], declared).await;
    let outcome = world.run("printenv CARGO_MANIFEST_DIR").await;
    assert!(stdout(&outcome).contains("prowess-toolkits"));
    let set = json!({"env": {"CARGO_MANIFEST_DIR": "x"}});
    let outcome = world.run_with("printenv CARGO_MANIFEST_DIR", set).await;
    assert_eq!(refusal(&outcome).0, "invalid_arguments");
}

#[tokio::test]
async fn commands_without_a_tool_are_judged_by_the_same_lists() {
    let folder = tempfile::TempDir::new().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let session: SessionKey = "test".parse().unwrap();
    for (allowed, denied) in [(vec!["id", "echo"], vec![]), (vec![], vec!["cat", "python3"])] {
        let settings = lists(&allowed, &denied)(ExecSettings::default());
        let workspaces = Workspaces::new(folder.path().join("workspaces"));
        let exec = ExecToolkit::new(workspaces, executor()).with_settings(settings);
        let run = async |language, code: &str| {
            let wait = std::time::Duration::from_secs(20);
            let request = CommandRequest::new(&session, code, wait).with_language(language);
            exec.commands().run(request).await.map(|it| it.output)
        };
        let shell = CommandLanguage::Shell;
        assert_eq!(run(shell, "echo '*' ''").await.unwrap(), "* \n");
        for code in ["echo *", "echo a; id", "cat /etc/os-release", "bash -c id", "work/x"] {
            let refused = run(shell, code).await;
            assert!(refused.is_err(), "{allowed:?} {code}: {refused:?}");
        }
        assert!(run(CommandLanguage::Python, "print(1)").await.is_err(), "{allowed:?}");
    }
}

fn backend(folder: &Path, policy: Option<CommandPolicy>) -> std::io::Result<LocalBackend> {
    let id = WorkspaceId::new("app", "user", "session");
    let workspace = Workspaces::new(folder).open(&id).unwrap();
    match policy {
        Some(policy) => LocalBackend::in_workspace_with(workspace, executor(), policy),
        None => LocalBackend::in_workspace(workspace, executor()),
    }
}

async fn execute(backend: LocalBackend, command: &str) -> ToolOutcome {
    let catalog = Catalog::builder().build();
    let files = Arc::new(FilesToolkit::on(backend));
    let runtime = Runtime::builder(catalog).toolkit(files).build().unwrap();
    let call = ToolCall::new("call", "execute", json!({"command": command}));
    let session = "test".parse().unwrap();
    runtime.dispatch(&session, &AgentName::default(), call).await.unwrap()
}

#[tokio::test]
async fn execute_is_judged_by_the_same_lists() {
    let folder = tempfile::TempDir::new().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let open = || backend(folder.path(), None).unwrap();
    let policy = CommandPolicy::new(&["echo".to_owned()], &[]).unwrap();
    let listed = || backend(folder.path(), Some(policy.clone())).unwrap();
    for attack in ["echo a; id", "id", "echo $(id)", "./echo"] {
        if attack != "./echo" {
            let control = execute(open(), attack).await;
            assert!(control.content.contains("uid="), "{attack}: {}", control.content);
        }
        let outcome = execute(listed(), attack).await;
        assert_eq!(refusal(&outcome).0, "command_not_allowed", "{attack}");
    }
    assert_eq!(execute(listed(), "echo hi").await.content, "hi\n[exit code 0]");
}

/// The environment belongs to the whole process: each case is a process of its own.
#[test]
fn lists_in_the_environment_hold_for_every_toolkit() {
    let test = "lists_in_the_environment_hold_for_every_toolkit_inside";
    let run = |variables: &[(&str, &str)], expected: Value| {
        let mut process = Process::new(std::env::current_exe().unwrap());
        process.args([test, "--exact", "--nocapture"]);
        process.envs(variables.iter().copied()).env("EXPECTED", expected.to_string());
        let output = process.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let failed = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("1 passed"), "{said}{failed}");
    };
    let (ok, no) = ("ok", "command_not_allowed");
    // What becomes of `echo hi`, `id` and `echo $HOME`.
    run(&[], json!([ok, ok, ok]));
    for prefix in ["PROWESS_EXEC", "TRPC_AGENT_SKILL_RUN", "TRPC_AGENT_WORKSPACE_EXEC"] {
        let allowed = format!("{prefix}_ALLOWED_COMMANDS");
        let denied = format!("{prefix}_DENIED_COMMANDS");
        run(&[(&allowed, "echo, cat")], json!([ok, no, no]));
        run(&[(&denied, "echo")], json!([no, ok, no]));
        run(&[(&allowed, "echo id"), (&denied, "id")], json!([ok, no, no]));
        // What says nothing does not mean everything.
        run(&[(&allowed, " , ")], json!([no, no, no]));
        run(&[(&denied, "")], json!([no, no, no]));
    }
    let (ours, theirs) = ("PROWESS_EXEC_ALLOWED_COMMANDS", "TRPC_AGENT_SKILL_RUN_ALLOWED_COMMANDS");
    run(&[(ours, "echo"), (theirs, "echo")], json!([ok, no, no]));
    run(&[(ours, "echo"), (theirs, "id")], json!([no, no, no]));
}

/// What the test above runs with variables; by itself it does nothing.
#[tokio::test]
async fn lists_in_the_environment_hold_for_every_toolkit_inside() {
    let Ok(expected) = std::env::var("EXPECTED") else { return };
    let expected: Vec<String> = serde_json::from_str(&expected).unwrap();
    let world = Plan::new().build();
    world.load("demo").await;
    let folder: PathBuf = world.path("others");
    let backend = backend(&folder, None);
    for (command, expected) in ["echo hi", "id", "echo $HOME"].into_iter().zip(expected) {
        let outcome = world.run(command).await;
        assert_eq!(outcome.code, expected, "{command}: {}", outcome.content);
        match &backend {
            Ok(backend) => {
                let outcome = execute(backend.clone(), command).await;
                assert_eq!(outcome.code, expected, "execute {command}: {}", outcome.content);
            }
            // It cannot even be opened.
            Err(error) => assert_eq!(expected, "command_not_allowed", "{error}"),
        }
    }
    // What the settings say goes before.
    let world = Plan::new().settings(lists(&["id"], &["echo"])).build();
    world.load("demo").await;
    assert!(stdout(&world.run("id").await).starts_with("uid="));
    assert_eq!(refusal(&world.run("echo hi").await).0, "command_not_allowed");
}
