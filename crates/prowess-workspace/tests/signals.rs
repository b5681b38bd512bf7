//! Signals that the program ignores which asks for a run.

mod support;

use support::{Ground, said, tiers};

/// A program in the background ignores Ctrl-C, and so would all that it starts.
#[tokio::test]
async fn signals_that_we_ignore_are_not_ignored_by_commands() {
    const IGNORED: &str = "PROWESS_TEST_IGNORED";
    if std::env::var_os(IGNORED).is_none() {
        let name = std::thread::current().name().unwrap().to_owned();
        let line = format!("trap '' INT TERM HUP; \"$0\" --exact {name}");
        let status = std::process::Command::new("bash")
            .args(["-c", &line])
            .arg(std::env::current_exe().unwrap())
            .env(IGNORED, "1")
            .stdout(std::process::Stdio::null())
            .status();
        assert!(status.unwrap().success());
        return;
    }
    let ground = Ground::new();
    let line = "trap 'exit 9' INT; kill -INT $$; echo ignored";
    let control = ground.unprotected(line);
    assert_eq!(control.stdout, b"ignored\n", "the control must ignore it: {control:?}");
    for tier in tiers() {
        let outcome = ground.run(tier, line).await;
        assert_eq!(outcome.exit_code, 9, "{tier:?} {}", said(&outcome));
    }
}
