//! How many reads two instances answer, to one: each of them has one core.
//!
//! Where there are two cores, an instance and the load on it share one; where there are four, each
//! of them has its own. Either way nothing is measured on a core that the other instance uses.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use super::Ground;
use crate::results::Row;
use crate::serve::ground::{Measured, Requests, fill, id, load_through, median};
use crate::service::Service;

const SKILLS: usize = 2_000;
const ROUNDS: usize = 5;
const TURN: Duration = Duration::from_secs(3);
/// Connections of each load.
const CONNECTIONS: usize = 16;
/// So long an instance may take to hear of all skills.
const PATIENCE: Duration = Duration::from_secs(60);

const MIX: &str = "reads (gets of 100 skills and lists with 50 filters over 2,000, in turn)";

pub(super) fn rows(ground: &Ground) -> Result<Vec<Row>> {
    let [first, second, both] = ["0", "1", "0,1"].map(|cores| ["taskset", "-c", cores]);
    let instances = [ground.instance("one", &first)?, ground.instance("two", &second)?];
    fill(instances[0].address(), SKILLS)?;
    let large = ground.instance("both", &both)?;
    for instance in instances.iter().chain([&large]) {
        await_skills(instance)?;
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (beside, where_it_is) = match cores {
        4.. => (["2", "3"], "its load on a core of its own"),
        _ => (["0", "1"], "its load on the same core"),
    };
    let mut seen = Seen { requests: Requests::get(100).and(Requests::lists(50)), errors: vec![] };
    let [one, two] = &instances;
    let mut rounds = Vec::new();
    for round in 1..=ROUNDS {
        let alone = seen.rate(&[(one, beside[0])])? + seen.rate(&[(two, beside[1])])?;
        let alone = alone / 2.0;
        let together = seen.rate(&[(one, beside[0]), (two, beside[1])])?;
        let large = seen.rate(&[(&large, beside[0]), (&large, beside[1])])?;
        eprintln!("round {round}: {alone:.0} alone, {together:.0} together, {large:.0} as one");
        rounds.push([alone, together, large]);
    }
    let middle = |of: &dyn Fn(&[f64; 3]) -> f64| median(rounds.iter().map(of));
    let rates = |at: usize| format!("{:.0}", middle(&|round| round[at]));
    let detail = |other: usize, which: &str| {
        let (two, other) = (rates(1), rates(other));
        format!("{two} requests per second to {other} of {which}, {ROUNDS} rounds")
    };
    let to_one = format!("{MIX}: two instances on two cores to one on one, {where_it_is}");
    let to_large = format!("{MIX}: two instances with a core each to one with both");
    let (to, large) = (detail(0, "one alone, the mean of both"), detail(2, "one with both cores"));
    let first = seen.errors.first().map_or("every answer was a success", String::as_str);
    Ok(vec![
        Row::at_least(&to_one, middle(&|[alone, two, _]| two / alone), 1.7, &to),
        Row::bound(&to_large, middle(&|[_, two, large]| two / large), &large),
        Row::none(&format!("{MIX}: answers that are no success"), seen.errors.len(), first),
    ])
}

/// Waits until an instance has all skills.
fn await_skills(instance: &Service) -> Result<()> {
    let (mut client, end) = (instance.client(), Instant::now() + PATIENCE);
    for at in 0..SKILLS {
        while client.get(&format!("/api/v1/skills/{}", id(at)))?.status != 200 {
            ensure!(Instant::now() < end, "an instance does not hear of {}", id(at));
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    Ok(())
}

/// What was asked, and what went wrong.
struct Seen {
    requests: Requests,
    errors: Vec<String>,
}

impl Seen {
    /// Requests per second of all these loads at once: on an instance, from a core.
    fn rate(&mut self, loads: &[(&Service, &str)]) -> Result<f64> {
        let requests = &self.requests;
        let all: Vec<Result<Measured>> = std::thread::scope(|scope| {
            let run = |(instance, core): &(&Service, &str)| {
                let (address, core) = (instance.address(), (*core).to_owned());
                let through = move || {
                    let through = ["taskset", "-c", &core];
                    load_through(&through, address, requests, CONNECTIONS, TURN)
                };
                scope.spawn(through)
            };
            let running: Vec<_> = loads.iter().map(run).collect();
            let join = |it: std::thread::ScopedJoinHandle<'_, _>| {
                it.join().unwrap_or_else(|_| bail!("the load panicked"))
            };
            running.into_iter().map(join).collect()
        });
        let mut rate = 0.0;
        for measured in all {
            let measured = measured?;
            rate += measured.rate;
            let said = measured.first_error.unwrap_or_default().replace(['\r', '\n', '|'], " ");
            self.errors.extend(std::iter::repeat_n(said, measured.errors));
        }
        Ok(rate)
    }
}
