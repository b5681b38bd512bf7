//! Instances that are killed while clients use them.

use anyhow::Result;

use super::Ground;
use crate::results::Row;
use crate::serve::setting;
use crate::service::kill_instances;

const KILLS: usize = 100;

pub(super) fn row(ground: &Ground, name: &str) -> Result<Row> {
    let kills = setting("PROWESS_BENCH_KILLS", KILLS)?;
    let start = |at: usize| ground.instance(["one", "two"][at], &[]);
    let tell = |killed: usize| {
        if killed.is_multiple_of(20) {
            eprintln!("{killed} of {kills} kills");
        }
    };
    let done = kill_instances(start, kills, tell)?;
    for problem in done.problems.iter().take(20) {
        eprintln!("{problem}");
    }
    let what = format!(
        "{name}: {kills} × kill -9 of one of two instances: lost, doubled, or refused for good"
    );
    let detail = format!(
        "{} loads in sessions and {} versions were acknowledged by both instances in turn, {} \
         requests made again; lease_seconds = 2",
        done.loads, done.versions, done.again
    );
    Ok(Row::none(&what, done.problems.len(), &detail))
}
