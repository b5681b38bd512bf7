//! The sandboxes of this machine: which one is used, and when none is.

mod support;

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use prowess_workspace::{
    Capability, Command, Enforcement, ExecError, Executor, LocalExecutor, Network, Run, Tier,
    Unsandboxed,
};
use support::{Ground, executor, is_root, said, tiers};

#[tokio::test]
async fn without_a_sandbox_nothing_runs_unless_that_is_allowed() {
    let ground = Ground::new();
    let executor = executor(Tier::T0);
    let workspace = ground.workspace();
    let line = || Command::Shell("echo ran > work/ran; echo ran".to_owned());
    let error = executor.run(Run::new(&workspace, line())).await.unwrap_err();
    assert_eq!(error.code(), "no_sandbox", "{error}");
    assert!(!workspace.join("work/ran").exists());
    let mut run = Run::new(&workspace, line());
    run.unsandboxed = Unsandboxed::Allow;
    let outcome = executor.run(run).await.unwrap();
    assert_eq!(outcome.stdout.text(100), "ran\n");
    assert_eq!(outcome.isolation.tier, Tier::T0);
    for capability in
        [Capability::FsRead, Capability::FsWrite, Capability::Net, Capability::UnixSockets]
    {
        assert_eq!(outcome.isolation.of(capability), Enforcement::None, "{capability:?}");
    }
    // Even so, nothing outlives it, and it has an environment of its own.
    assert_eq!(outcome.isolation.of(Capability::Kill), Enforcement::Enforced);
}

#[tokio::test]
async fn what_is_required_and_missing_fails_before_anything_starts() {
    let ground = Ground::new();
    let line = "echo ran > $WORK_DIR/ran";
    let require = |capability| move |run: &mut Run<'_>| run.require = BTreeSet::from([capability]);
    let error = ground.run_with(Tier::T1, line, require(Capability::Metadata)).await.unwrap_err();
    assert!(
        matches!(&error, ExecError::NotEnforced { missing } if missing == &[Capability::Metadata])
    );
    assert!(error.to_string().starts_with("metadata cannot be enforced here"), "{error}");
    let granted = |run: &mut Run<'_>| {
        run.network = Network::Host;
        run.require = BTreeSet::from([Capability::Net]);
    };
    assert!(ground.run_with(Tier::T2, line, granted).await.is_err());
    assert!(!ground.workspace().join("work/ran").exists());
    // The control.
    ground.run_with(Tier::T2, line, require(Capability::Metadata)).await.unwrap();
    assert!(ground.workspace().join("work/ran").exists());
}

fn script(at: &Path, text: &str) {
    std::fs::write(at, text).unwrap();
    std::fs::set_permissions(at, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn a_namespace_that_does_not_hold_is_not_used() {
    let ground = Ground::new();
    let bwrap = ground.at("bwrap");
    let builder = || LocalExecutor::builder().supervisor(support::supervisor()).bwrap(&bwrap);
    // It lets the folders for temporary files in, where the canary has its secret.
    let temp = std::env::temp_dir();
    let leaky = format!(
        "#!/bin/sh\nn=$2; shift 3\nexec bwrap --args $n --bind {0} {0} -- \"$@\"\n",
        temp.display()
    );
    for (text, cause) in [
        (leaky.as_str(), "it does not enforce fs_read"),
        ("#!/bin/sh\necho not today >&2; exit 1\n", "not today"),
        ("#!/bin/sh\nexit 0\n", "could not be set up"),
    ] {
        script(&bwrap, text);
        let report = builder().build().check().await.unwrap();
        assert_eq!(report.isolation.tier, Tier::T1, "{text}\n{report:?}");
        let first = &report.tried[0];
        assert_eq!(first.tier, Tier::T2);
        assert!(first.cause.as_ref().unwrap().contains(cause), "{cause}\n{first:?}");
    }
    let report = builder().bwrap("/no/such/bwrap").build().check().await.unwrap();
    assert_eq!(report.isolation.tier, Tier::T1);
}

#[tokio::test]
async fn a_supervisor_that_is_missing_or_another_program_is_named() {
    let ground = Ground::new();
    let workspace = ground.workspace();
    for (program, said) in [("/no/such/supervisor", "/no/such/supervisor"), ("/bin/true", "")] {
        let executor = LocalExecutor::builder().supervisor(program).build();
        let error =
            executor.run(Run::new(&workspace, Command::Shell("true".into()))).await.unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
    // Nobody told it where one is.
    let executor = LocalExecutor::builder().build();
    if std::env::var_os("PROWESS_SUPERVISOR").is_none() {
        let error = executor.check().await.unwrap_err();
        assert_eq!(error.code(), "supervisor_missing", "{error}");
    }
}

#[tokio::test]
async fn extra_folders_can_be_read_but_not_written() {
    let ground = Ground::new();
    let workspace = ground.workspace();
    let outside = ground.at("outside");
    for tier in tiers() {
        let executor = LocalExecutor::builder()
            .supervisor(support::supervisor())
            .best_tier(tier)
            .readable(&outside)
            .build();
        let line = format!("cat {0}/secret; echo x > {0}/secret && echo broken", outside.display());
        let outcome = executor.run(Run::new(&workspace, Command::Shell(line))).await.unwrap();
        assert_eq!(outcome.stdout.text(100), "hunter2", "{tier:?} {}", said(&outcome));
    }
}

#[tokio::test]
async fn a_workspace_that_others_cannot_enter_is_named() {
    if !is_root() {
        return;
    }
    let ground = Ground::new();
    support::set_mode(ground.folder.path(), 0o700);
    // Namespaces are made by root, who can.
    assert_eq!(ground.run(Tier::T2, "echo hello > $WORK_DIR/x").await.exit_code, 0);
    let error = ground.run_with(Tier::T1, "true", |_| {}).await.unwrap_err().to_string();
    assert!(error.contains("cannot enter") && error.contains("/var/lib/prowess"), "{error}");
}

#[test]
fn all_of_this_holds_for_an_ordinary_user() {
    support::repeat_as_a_user(&["--skip", "all_of_this_holds_for_an_ordinary_user"]);
}
