//! The sandbox.

use prowess_workspace::{Command, Executor, LocalExecutor, Run, Tier};

fn executor(tier: Tier) -> LocalExecutor {
    LocalExecutor::builder()
        .supervisor(env!("CARGO_BIN_EXE_prowess-supervisor"))
        .best_tier(tier)
        .build()
}

#[tokio::test]
async fn check() {
    for tier in [Tier::T2, Tier::T1, Tier::T0] {
        let begun = std::time::Instant::now();
        let report = executor(tier).check().await.unwrap();
        println!("{} {:?}", serde_json::to_string_pretty(&report).unwrap(), begun.elapsed());
    }
}

#[tokio::test]
async fn hello() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["skills", "work", "out", "runs"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    let executor = executor(Tier::T2);
    executor.isolation().await.unwrap();
    for line in [
        "id; ls -la / /workspace; env; cat /proc/1/environ; mount | head -50; pwd; cat /proc/self/status | grep -E 'Cap|NoNew|Secc'",
        "sleep 100 & disown; exit 3",
        "unshare -Ur id; ls -l /proc/self/fd",
    ] {
        let begun = std::time::Instant::now();
        let outcome =
            executor.run(Run::new(folder.path(), Command::Shell(line.to_owned()))).await.unwrap();
        println!(
            "{} {:?}\n{}\n{}",
            outcome.exit_code,
            begun.elapsed(),
            outcome.stdout.text(8000),
            outcome.stderr.text(4000)
        );
    }
}
