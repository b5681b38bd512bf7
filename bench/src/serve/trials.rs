//! Killed while it writes; asked by many at once.

use anyhow::Result;

use super::ground::prowess;
use super::setting;
use crate::results::Row;
use crate::service::{Kills, concurrent_loads, concurrent_updates, kill_during_writes};

const KILLS: usize = 1_000;
const WRITERS: usize = 5;
const UPDATES: usize = 100;
const LOADS: usize = 400;
const SESSIONS: usize = 50;

pub(super) fn rows() -> Result<Vec<Row>> {
    Ok(vec![updates()?, loads()?, kills()?])
}

fn kills() -> Result<Row> {
    let kills = setting("PROWESS_BENCH_KILLS", KILLS)?;
    let folder = tempfile::tempdir()?;
    let program = crate::discovery::prowess()?;
    let tell = |done: &Kills| {
        if done.kills.is_multiple_of(50) {
            eprintln!("{} of {kills} kills", done.kills);
        }
    };
    let done = kill_during_writes(&program, folder.path(), kills, tell)?;
    for problem in done.problems.iter().take(20) {
        eprintln!("{problem}");
    }
    let what = format!("{kills} × kill -9 during writes: what was lost, doubled or damaged");
    let detail = format!(
        "{} versions and {} loads were acknowledged, {} kills cut off a request, {} integrity \
         checks",
        done.acknowledged, done.loads, done.in_flight, done.checks
    );
    Ok(Row::none(&what, done.problems.len(), &detail))
}

fn updates() -> Result<Row> {
    let folder = tempfile::tempdir()?;
    let service = prowess(folder.path())?;
    let done = concurrent_updates(service.address(), "contended", WRITERS, UPDATES)?;
    // The first version made the skill.
    let expected = (1..=WRITERS as u64 * UPDATES as u64 + 1).collect::<Vec<_>>();
    let wrong = done.others.len() + done.astray.len() + usize::from(done.numbers != expected);
    for other in done.others.iter().chain(&done.astray).take(20) {
        eprintln!("{other}");
    }
    let what = format!(
        "{WRITERS} writers × {UPDATES} updates with If-Match: lost, doubled or unclean answers"
    );
    let detail = format!(
        "{} contiguous versions, {} conflicts made again",
        done.numbers.len() - 1,
        done.conflicts
    );
    Ok(Row::none(&what, wrong, &detail))
}

fn loads() -> Result<Row> {
    let folder = tempfile::tempdir()?;
    let service = prowess(folder.path())?;
    let done = concurrent_loads(service.address(), "loaded", LOADS, SESSIONS)?;
    for other in done.others.iter().take(20) {
        eprintln!("{other}");
    }
    let missing = LOADS.abs_diff(done.counted as usize)
        + SESSIONS.abs_diff(done.sessions as usize)
        + LOADS.abs_diff(done.by_version as usize)
        + done.others.len();
    let what =
        format!("{LOADS} loads at once in {SESSIONS} sessions: loads and sessions counted wrongly");
    let detail = format!("{} loads and {} sessions are counted", done.counted, done.sessions);
    Ok(Row::none(&what, missing, &detail))
}
