//! Outliving a run, and how one ends.

use std::time::Duration;

use prowess_workspace::LimitHit;

use crate::support::{Ground, eventually, is_running, is_running_as, said, tiers};

/// Traps 5 and 10: whoever ignores the signal, whoever left, whoever sleeps in a pipeline.
#[tokio::test]
async fn everything_ends_with_the_time_of_a_run() {
    let ground = Ground::new();
    let marker = format!("daemon-{}", std::process::id());
    // The control: a group of processes is killed, and one survives that left it.
    let line = format!("(setsid bash -c ': {marker}-control; sleep 20; true' &) ; sleep 20");
    let mut control = ground.unprotected_command(&line);
    std::os::unix::process::CommandExt::process_group(&mut control, 0);
    let mut control = control.spawn().unwrap();
    assert!(eventually(|| is_running_as(&format!("bash\0-c\0: {marker}-control;"))));
    let group = rustix::process::Pid::from_child(&control);
    rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
    control.wait().unwrap();
    assert!(is_running(&format!("{marker}-control")), "the control must survive");
    for (name, line) in [
        ("sleeps", "sleep 100".to_owned()),
        ("ignores", "trap '' TERM; while :; do sleep 1; done".to_owned()),
        ("pipeline", "sleep 100 | cat".to_owned()),
        (
            "daemon",
            format!(
                "(setsid bash -c ': {marker}; trap \"\" TERM HUP; sleep 100; true' &); sleep 100"
            ),
        ),
        ("stops", "kill -STOP $$".to_owned()),
        ("stopped", format!("bash -c ': {marker}; kill -STOP $$' & sleep 100")),
    ] {
        for tier in tiers() {
            let limit =
                |run: &mut prowess_workspace::Run<'_>| run.limits.wall = Duration::from_millis(300);
            let outcome = ground.run_with(tier, &line, limit).await.unwrap();
            assert!(
                outcome.timed_out && outcome.limits_hit == [LimitHit::Wall],
                "{tier:?} {name} {outcome:?}"
            );
            assert!(!is_running(&format!(": {marker};")), "{tier:?} {name}");
        }
    }
    // A run that ends by itself leaves nobody either.
    for tier in tiers() {
        let line = format!("(setsid bash -c ': {marker}; sleep 100; true' &); sleep 0.1; exit 7");
        assert_eq!(ground.run(tier, &line).await.exit_code, 7);
        assert!(!is_running(&format!(": {marker};")), "{tier:?}");
    }
}

#[tokio::test]
async fn a_signal_is_given_before_the_end() {
    let ground = Ground::new();
    for tier in tiers() {
        let line = "trap 'echo asked; exit 5' TERM; echo ready; while :; do sleep 0.01; done";
        let mut outcome = None;
        // On a busy machine it takes its time until the command expects the signal.
        for wall in [500, 5_000, 50_000].map(Duration::from_millis) {
            let limit = |run: &mut prowess_workspace::Run<'_>| {
                run.limits.wall = wall;
                run.limits.grace = Duration::from_secs(20);
            };
            let ran = ground.run_with(tier, line, limit).await.unwrap();
            let is_ready = said(&ran).contains("ready");
            outcome = Some(ran);
            if is_ready {
                break;
            }
        }
        let outcome = outcome.unwrap();
        assert_eq!(
            (outcome.exit_code, outcome.timed_out),
            (5, true),
            "{tier:?} {}",
            said(&outcome)
        );
        assert!(said(&outcome).contains("asked"));
    }
}

#[tokio::test]
async fn whoever_stops_waiting_ends_the_run() {
    let ground = Ground::new();
    let marker = format!("dropped-{}", std::process::id());
    for tier in tiers() {
        let line = format!("(setsid bash -c ': {marker}; sleep 100; true' &); sleep 100");
        let run = ground.run(tier, &line);
        let started = async {
            while !is_running_as(&format!("bash\0-c\0: {marker};")) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            outcome = run => panic!("it ended: {outcome:?}"),
            () = started => {}
        }
        assert!(eventually(|| !is_running(&format!(": {marker};"))), "{tier:?}");
    }
}

/// A supervisor that is killed takes the command with it, whoever the command runs as.
#[tokio::test]
async fn a_command_ends_with_its_supervisor() {
    let ground = Ground::new();
    for tier in tiers() {
        let words = format!("sleep\0{}.86{}", tier as u8 + 50, std::process::id());
        let line = format!("exec {}", words.replace('\0', " "));
        let end = move || {
            assert!(eventually(|| is_running(&words)));
            // In a container, it is a copy of the first process.
            let is_meant = |words: &str| {
                ["run", "init"]
                    .iter()
                    .any(|it| words.contains(&format!("__prowess-supervisor\0{it}")))
            };
            let supervisor = ancestors(&words).find(|(_, words)| is_meant(words)).unwrap().0;
            let killed = std::process::Command::new("kill").args(["-9", &supervisor]).status();
            assert!(killed.unwrap().success());
            eventually(|| !is_running(&words))
        };
        let ended = tokio::task::spawn_blocking(end);
        let (run, ended) = tokio::join!(ground.run_with(tier, &line, |_| {}), ended);
        assert!(ended.unwrap(), "{tier:?}: it goes on");
        assert_eq!(run.unwrap_err().code(), "run_lost", "{tier:?}");
    }
}

/// The processes above one that has these words, each with its own words.
fn ancestors(words: &str) -> impl Iterator<Item = (String, String)> {
    let of = |pid: &str| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        (pid.to_owned(), String::from_utf8_lossy(&words).into_owned())
    };
    let names = std::fs::read_dir("/proc").unwrap().flatten();
    let mut all = names.map(|it| of(&it.file_name().to_string_lossy()));
    let first = all.find(|(_, found)| found.starts_with(words));
    std::iter::successors(first, move |(pid, _)| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some(of(stat.rsplit_once(')')?.1.split_whitespace().nth(1)?)).filter(|it| it.0 != "0")
    })
}

#[tokio::test]
async fn what_is_read_comes_from_the_order() {
    let ground = Ground::new();
    for tier in tiers() {
        let outcome =
            ground.run_with(tier, "cat", |run| run.stdin = b"given".to_vec().into()).await.unwrap();
        assert_eq!(outcome.stdout.text(100), "given");
        assert_eq!(ground.run(tier, "cat").await.stdout.text(100), "");
    }
}
