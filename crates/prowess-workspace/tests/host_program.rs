//! A program that is not `prowess` and is its own supervisor; and what is left when it dies.

mod support;

use std::process::{Child, Stdio};
use std::time::Duration;

use prowess_workspace::{Command, Executor, LocalExecutor, Run, Tier};
use support::{Ground, eventually, is_running, is_running_as, tiers};

fn main() {
    prowess_workspace::supervise_if_asked();
    let words: Vec<String> = std::env::args().collect();
    if let [_, role, tier, workspace, line] = words.as_slice()
        && role == "host"
    {
        return host(tier, workspace, line);
    }
    // Filters and options of the test harness are not for us.
    let tests: [(&str, fn()); 2] = [
        ("a_program_can_be_its_own_supervisor", a_program_can_be_its_own_supervisor),
        ("nothing_outlives_a_program_that_is_killed", nothing_outlives_a_program_that_is_killed),
    ];
    println!("\nrunning {} tests", tests.len());
    for (name, test) in tests {
        test();
        println!("test {name} ... ok");
    }
    println!(
        "\ntest result: ok. {} passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n",
        tests.len()
    );
}

/// Runs one line, without being told where a supervisor is.
fn host(tier: &str, workspace: &str, line: &str) {
    let tier = if tier == "T2" { Tier::T2 } else { Tier::T1 };
    let tokio = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let executor = LocalExecutor::builder().best_tier(tier).build();
    let run = Run::new(workspace.as_ref(), Command::Shell(line.to_owned()));
    let outcome = tokio.block_on(executor.run(run)).unwrap();
    assert_eq!(outcome.isolation.tier, tier);
    print!("{}", outcome.stdout.text(1000));
}

/// This program as a host; where nobody else could read it, a copy of it.
fn start(ground: &Ground, tier: Tier, line: &str) -> Child {
    let program = ground.at("host");
    if !program.exists() {
        std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        support::set_mode(&program, 0o755);
    }
    std::process::Command::new(program)
        .args(["host", &format!("{tier:?}")])
        .arg(ground.workspace())
        .arg(line)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn a_program_can_be_its_own_supervisor() {
    let ground = Ground::new();
    for tier in tiers() {
        let output = start(&ground, tier, "echo hello from $SHLVL").wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "hello from 1\n", "{tier:?}");
    }
}

fn nothing_outlives_a_program_that_is_killed() {
    let ground = Ground::new();
    let marker = format!("outlives-{}", std::process::id());
    let line = format!(
        "(setsid bash -c ': {marker}; trap \"\" TERM HUP; sleep 100; true' &); trap '' TERM; sleep 100"
    );
    // The inner one: the outer one has the same words further on.
    let is_alive = || is_running_as(&format!("bash\0-c\0: {marker};"));
    // The control: a program that runs it without a supervisor.
    let mut control = ground.unprotected_command(&line).spawn().unwrap();
    assert!(eventually(is_alive));
    control.kill().unwrap();
    control.wait().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    assert!(is_alive(), "the control must survive");
    end_all(&marker);
    for tier in tiers() {
        for at in 0..5 {
            let mut host = start(&ground, tier, &line);
            assert!(eventually(|| {
                assert!(host.try_wait().unwrap().is_none(), "it ended");
                is_alive()
            }));
            std::thread::sleep(Duration::from_millis(at * 7));
            host.kill().unwrap();
            host.wait().unwrap();
            assert!(eventually(|| !is_alive()), "{tier:?}");
            // Nor does whoever watched over it.
            let supervisor = ground.at("host").display().to_string();
            assert!(eventually(|| !is_running(&supervisor)), "{tier:?}");
        }
    }
}

/// Ends the processes of the control, which are ours.
fn end_all(marker: &str) {
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let is_other = pid != i32::try_from(std::process::id()).ok();
        if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw)
            && is_other
            && String::from_utf8_lossy(&words).contains(marker)
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}
