//! Ending everything that a command started.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};

/// How long processes that were killed have to go.
const MOST_PATIENCE: Duration = Duration::from_secs(5);

/// How long they are left alone before they are looked for again.
const PAUSE: Duration = Duration::from_micros(200);

/// All processes below this one, children before grandchildren, each with how far below.
pub(crate) fn descendants() -> Vec<(Pid, usize)> {
    let own = rustix::process::getpid();
    let mut found: Vec<(Pid, usize)> = Vec::new();
    let mut seen: BTreeSet<i32> = BTreeSet::new();
    let mut next: Vec<(Pid, usize)> = children(own).into_iter().map(|pid| (pid, 0)).collect();
    while let Some((pid, depth)) = next.pop() {
        if !seen.insert(pid.as_raw_nonzero().get()) {
            continue;
        }
        found.push((pid, depth));
        next.extend(children(pid).into_iter().map(|child| (child, depth + 1)));
    }
    found
}

fn children(pid: Pid) -> Vec<Pid> {
    let folder = format!("/proc/{}/task", pid.as_raw_nonzero());
    let Ok(threads) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found = Vec::new();
    for thread in threads.flatten() {
        let text = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        found.extend(text.split_whitespace().filter_map(|word| Pid::from_raw(word.parse().ok()?)));
    }
    found
}

/// Asks the processes that are so far below to end.
pub(crate) fn ask_to_end(deeper_than: usize) {
    for (pid, depth) in descendants() {
        if depth >= deeper_than {
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}

/// Ends all processes below this one, also those that fork faster than one can count: first all of
/// them are stopped, until there is no new one. Says how many are still there.
pub(crate) fn end_all() -> usize {
    let begun = Instant::now();
    while !reap_all() {
        if begun.elapsed() > MOST_PATIENCE {
            return descendants().len();
        }
        let mut stopped: BTreeSet<i32> = BTreeSet::new();
        loop {
            let all = descendants();
            let fresh: Vec<Pid> = all
                .iter()
                .map(|(pid, _)| *pid)
                .filter(|pid| stopped.insert(pid.as_raw_nonzero().get()))
                .collect();
            if fresh.is_empty() || begun.elapsed() > MOST_PATIENCE {
                break;
            }
            for pid in fresh {
                let _ = kill_process(pid, Signal::STOP);
            }
        }
        for (pid, _) in descendants() {
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(PAUSE);
    }
    0
}

/// Takes leave of processes that have ended, of whichever group. Whether there are no others.
fn reap_all() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}
