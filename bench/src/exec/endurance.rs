//! Many runs, many that do not want to end, and many at once.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use prowess_workspace::{Executor, Limits, LocalExecutor, Tier};

use super::traces::{Traces, count_running};
use super::{Ground, shell};
use crate::results::Row;

/// How many runs follow each other, in each tier.
const RUNS: usize = 5_000;
/// How many run out of time, in each tier, and how many of them at once.
const TIMEOUTS: usize = 500;
const TIMEOUTS_AT_ONCE: usize = 4;
const WALL: Duration = Duration::from_millis(100);
/// How much later than its time a run must have ended.
const MOST_LATE: f64 = 0.25;
/// How many run at once, and how much each of them writes.
const AT_ONCE: usize = 64;
const WRITTEN: u64 = 8 << 20;

pub(super) fn rows(ground: &Ground) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for tier in [Tier::T1, Tier::T2] {
        let name = if tier == Tier::T1 { "tier 1" } else { "tier 2" };
        match ground.executor(tier) {
            Ok(executor) => {
                rows.push(leaks(ground, executor, name)?);
                rows.extend(timeouts(ground, executor, name)?);
            }
            Err(why) => {
                rows.push(Row::not_measured(&leaks_row(name), "0", why));
                let [late, left] = timeout_rows(name);
                rows.push(Row::not_measured(&late, "≤ 1×", why));
                rows.push(Row::not_measured(&left, "0", why));
            }
        }
    }
    let what = "64 runs at once, 8 MiB of output each: growth of memory to 64 × 2 × what is kept";
    let best = ground.executor(Tier::T2).or(ground.executor(Tier::T1));
    rows.push(match best {
        Ok(executor) => at_once(ground, executor, what)?,
        Err(why) => Row::not_measured(what, "≤ 1×", why),
    });
    Ok(rows)
}

fn leaks_row(tier: &str) -> String {
    format!(
        "{RUNS} consecutive runs in {tier}: processes, mounts, cgroups, descriptors, files, folders \
         left"
    )
}

fn leaks(ground: &Ground, executor: &LocalExecutor, tier: &str) -> Result<Row> {
    ground.run(executor, ":")?;
    let before = Traces::of(ground)?;
    for at in 1..=RUNS {
        ground.run(executor, ":")?;
        if at % 1_000 == 0 {
            eprintln!("{tier}: {at} of {RUNS} runs");
        }
    }
    let left = Traces::of(ground)?.since(before);
    let named = left.iter().filter(|(_, count)| *count > 0);
    let named: Vec<String> = named.map(|(name, count)| format!("{count} {name}")).collect();
    let detail = if named.is_empty() { "nothing".to_owned() } else { named.join(", ") };
    let count = left.iter().map(|(_, count)| count).sum();
    Ok(Row::none(&leaks_row(tier), count, &detail))
}

fn timeout_rows(tier: &str) -> [String; 2] {
    [
        format!("{TIMEOUTS} timeouts in {tier}: the latest end after the limit, to 250 ms"),
        format!("{TIMEOUTS} timeouts in {tier}: processes left"),
    ]
}

/// Commands that ignore being asked to end, and daemons of theirs. The time is that of the whole
/// call, with the start of the supervisor, which no limit counts.
fn timeouts(ground: &Ground, executor: &LocalExecutor, tier: &str) -> Result<[Row; 2]> {
    // No other process sleeps as long.
    let sleep = format!("{}", 1_000_000 + std::process::id());
    let line = format!("(setsid sleep {sleep} &); trap '' TERM; while :; do sleep {sleep}; done");
    let before = Traces::of(ground)?;
    let mut late = ground
        .tokio
        .block_on(async {
            let mut tasks = tokio::task::JoinSet::new();
            for task in 0..TIMEOUTS_AT_ONCE {
                let (executor, workspace) = (executor.clone(), ground.workspace.clone());
                let (line, tier) = (line.clone(), tier.to_owned());
                tasks.spawn(async move {
                    let mut late = Vec::new();
                    for at in 0..TIMEOUTS / TIMEOUTS_AT_ONCE {
                        let mut run = shell(workspace.path(), &line);
                        run.limits.wall = WALL;
                        let begun = Instant::now();
                        let outcome = executor.run(run).await?;
                        late.push(begun.elapsed().as_secs_f64() - WALL.as_secs_f64());
                        ensure!(outcome.timed_out, "it ended: {}", outcome.stderr.text(1000));
                        if task == 0 && (at + 1) % 25 == 0 {
                            eprintln!(
                                "{tier}: {} of {TIMEOUTS} timeouts",
                                (at + 1) * TIMEOUTS_AT_ONCE
                            );
                        }
                    }
                    Ok(late)
                });
            }
            tasks.join_all().await.into_iter().collect::<Result<Vec<_>>>()
        })?
        .concat();
    ensure!(late.len() == TIMEOUTS, "{} timeouts", late.len());
    late.sort_by(f64::total_cmp);
    let share = |percent: usize| late[(late.len() - 1) * percent / 100] * 1e3;
    let worst = late[late.len() - 1];
    let detail = format!(
        "{:.0} ms after a limit of {} ms, {TIMEOUTS_AT_ONCE} at once; median {:.0} ms, of 99% {:.0} \
         ms, of which {} ms are the grace",
        worst * 1e3,
        WALL.as_millis(),
        share(50),
        share(99),
        Limits::default().grace.as_millis()
    );
    let left = count_running(&sleep) + Traces::of(ground)?.since(before)[0].1;
    let [latest, survivors] = timeout_rows(tier);
    Ok([
        Row::at_most(&latest, worst / MOST_LATE, 1.0, &detail),
        Row::none(&survivors, left, "searched for in /proc"),
    ])
}

/// All at once, all of them held until the last one has ended.
fn at_once(ground: &Ground, executor: &LocalExecutor, what: &str) -> Result<Row> {
    let kept = Limits::default().output_bytes;
    let line = format!("head -c {WRITTEN} /dev/zero");
    ground.run(executor, &line)?;
    // From now on, the most is counted anew.
    fs::write("/proc/self/clear_refs", "5")?;
    let before = memory("VmRSS")?;
    let outcomes = ground.tokio.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..AT_ONCE {
            let (executor, workspace) = (executor.clone(), ground.workspace.clone());
            let line = line.clone();
            tasks.spawn(async move { executor.run(shell(workspace.path(), &line)).await });
        }
        tasks.join_all().await
    });
    let grown = memory("VmHWM")?.saturating_sub(before);
    for outcome in outcomes {
        let stdout = outcome?.stdout;
        ensure!(stdout.total_bytes == WRITTEN, "{} bytes were written", stdout.total_bytes);
        let held = stdout.head.len() + stdout.tail.len();
        ensure!(held == kept, "{held} bytes were kept");
    }
    let bound = AT_ONCE * 2 * kept;
    let detail = format!("{} MiB to {} MiB", grown >> 20, bound >> 20);
    Ok(Row::at_most(what, grown as f64 / bound as f64, 1.0, &detail))
}

/// A line of `/proc/self/status`, in bytes.
fn memory(name: &str) -> Result<usize> {
    let text = fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(kilobytes.with_context(|| format!("there is no {name}"))?.parse::<usize>()? << 10)
}
