//! Many runs leave nothing behind.

mod support;

use std::path::Path;
use std::time::Duration;

use prowess_workspace::{Command, Executor, LiveInput, LocalExecutor, Run, TerminalSize};
use support::{Ground, executor, tiers};
use tokio_util::sync::CancellationToken;

/// How much there is of what could be left behind.
#[derive(Debug, PartialEq, Eq)]
struct Traces {
    processes: usize,
    mounts: usize,
    cgroups: usize,
    descriptors: usize,
    files: usize,
}

impl Traces {
    fn of(ground: &Ground) -> Self {
        let count = |folder: &str| std::fs::read_dir(folder).map_or(0, Iterator::count);
        // Those of a container engine come and go by themselves.
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        let is_engines = |line: &&str| {
            ["/overlay/", "/containers/", "/libpod", "/netns"].iter().any(|it| line.contains(it))
        };
        let mounts = mounts.lines().filter(|line| !is_engines(line)).count();
        Self {
            processes: children(),
            mounts,
            cgroups: cgroups(Path::new("/sys/fs/cgroup"), 0),
            descriptors: count("/proc/self/fd"),
            files: files(ground.folder.path()) + selftests(),
        }
    }
}

/// Processes whose parent this is, also those whose own has gone.
fn children() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let texts = threads.filter_map(|it| std::fs::read_to_string(it.path().join("children")).ok());
    texts.map(|text| text.split_whitespace().count()).sum()
}

/// The groups of supervisors that have gone; others on this machine may have runs, too.
fn cgroups(folder: &Path, depth: usize) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir()));
    folders
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let owner = name.strip_prefix("prowess-").and_then(|it| it.split_once('-'));
            let is_left = owner.is_some_and(|(pid, _)| !Path::new("/proc").join(pid).exists());
            usize::from(is_left) + if depth < 4 { cgroups(&entry.path(), depth + 1) } else { 0 }
        })
        .sum()
}

fn files(folder: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries.flatten().map(|entry| 1 + files(&entry.path())).sum()
}

fn selftests() -> usize {
    let own = format!("prowess-selftest-{}-", std::process::id());
    let entries = std::fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    entries.filter(|it| it.file_name().to_string_lossy().starts_with(&own)).count()
}

#[tokio::test]
async fn two_hundred_runs_and_twenty_timeouts_leave_nothing_behind() {
    // Whatever a supervisor leaves behind, running or not, is ours then.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    let ground = Ground::new();
    let workspace = ground.workspace();
    for tier in tiers() {
        let executor = executor(tier);
        let run = |line: &str| Run::new(&workspace, Command::Shell(line.to_owned()));
        executor.run(run(":")).await.unwrap();
        let before = Traces::of(&ground);
        for at in 0..200 {
            let outcome = executor.run(run(":")).await.unwrap();
            assert_eq!(outcome.exit_code, 0, "{tier:?} {at}");
        }
        for at in 0..20 {
            let mut run = run("(setsid sleep 99 &); trap '' TERM; sleep 99; sleep 99");
            run.limits.wall = Duration::from_millis(50);
            let outcome = executor.run(run).await.unwrap();
            assert!(outcome.timed_out, "{tier:?} {at}");
        }
        // Those that somebody talks to have pipes and terminals besides.
        for at in 0..20 {
            let (writer, input) = LiveInput::channel(100);
            let mut run = run("read -r it; (setsid sleep 99 &); sleep 99");
            let stop = CancellationToken::new();
            (run.stdin, run.stop) = (input.into(), Some(stop.clone()));
            run.terminal = (at % 2 == 0).then(TerminalSize::default);
            writer.write(b"go\n").unwrap();
            stop.cancel();
            assert!(!executor.run(run).await.unwrap().timed_out, "{tier:?} {at}");
        }
        assert_eq!(Traces::of(&ground), before, "{tier:?}");
    }
    // An executor that is gone has left nothing, either, though a supervisor waited for its next run.
    for tier in tiers() {
        let before = Traces::of(&ground);
        let builder = LocalExecutor::builder().best_tier(tier);
        let executor = builder.supervisor(support::supervisor()).build();
        // Several at once: of the supervisors for the next run, only one is ever there.
        for _ in 0..10 {
            let run = || executor.run(Run::new(&workspace, Command::Shell(":".to_owned())));
            let at_once = tokio::join!(run(), run(), run(), run(), run(), run());
            assert_eq!(at_once.0.unwrap().exit_code, 0, "{tier:?}");
        }
        drop(executor);
        assert_eq!(Traces::of(&ground), before, "{tier:?}");
    }
    // Not at the same time: everything here is counted.
    support::repeat_as_a_user(&[]);
}
