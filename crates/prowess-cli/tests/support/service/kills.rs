//! `kill -9` during writes: what was acknowledged is there afterwards.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::trials::versions;
use super::{Client, Service, damage, skill};

/// Writers at the same time; another one loads.
const WRITERS: usize = 4;
/// The skill whose loads are counted.
const COUNTED: &str = "counted";
/// How long writers write before the kill, at most.
const LONGEST: Duration = Duration::from_millis(30);
/// The whole database is checked after so many kills, and at the end.
const CHECKED_EVERY: usize = 50;

/// What came of all kills.
#[derive(Debug, Default)]
pub(crate) struct Kills {
    /// How often the server was killed.
    pub(crate) kills: usize,
    /// How many of these cut off a request that was not answered.
    pub(crate) in_flight: usize,
    /// How many versions were acknowledged.
    pub(crate) acknowledged: usize,
    /// How many loads were acknowledged.
    pub(crate) loads: usize,
    /// How many versions there are that nobody was told of.
    pub(crate) unacknowledged: usize,
    /// How often SQLite was asked whether the database is whole.
    pub(crate) checks: usize,
    /// Everything that must not be.
    pub(crate) problems: Vec<String>,
}

/// What one writer knows of its skill.
#[derive(Debug, Default)]
struct Written {
    /// What was acknowledged, in order; the first one made the skill.
    acknowledged: Vec<String>,
    /// What was sent last, and not answered.
    in_flight: Option<String>,
    /// Answers that are neither.
    problems: Vec<String>,
}

/// What the writers of one server know, by the id of their skill.
type Round = BTreeMap<String, Written>;

/// Starts the server so many times on one home, and kills it while it writes. After each start it
/// must have what was acknowledged before the kill, and at the end everything ever acknowledged.
pub(crate) fn kill_during_writes(
    program: &Path,
    home: &Path,
    kills: usize,
    mut after_kill: impl FnMut(&Kills),
) -> Result<Kills> {
    let mut done = Kills::default();
    let mut all = Round::new();
    let mut last = Round::new();
    let mut loads_in_flight = 0;
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    {
        let service = Service::start(program, home)?;
        let created = service.client().post("/api/v1/skills", &skill(COUNTED, 300))?;
        ensure!(created.status == 201, "{}", created.brief());
    }
    for kill in 0..kills {
        let mut service = Service::start(program, home)?;
        verify(&mut service.client(), &last, &mut done)?;
        all.append(&mut last);
        verify_loads(&mut service.client(), loads_in_flight, &mut done)?;
        // Some die when they have hardly begun.
        let waits = kill % 10 != 9;
        let pause = LONGEST.mul_f64(dice.roll());
        let (round, loads) = write_and_kill(&mut service, kill, waits, pause)?;
        done.kills += 1;
        let cut_off = round.values().any(|it| it.in_flight.is_some()) || loads.1 > 0;
        done.in_flight += usize::from(cut_off);
        done.acknowledged += round.values().map(|it| it.acknowledged.len()).sum::<usize>();
        done.loads += loads.0;
        loads_in_flight += loads.1;
        for (id, written) in &round {
            done.problems.extend(written.problems.iter().map(|it| format!("{id}: {it}")));
        }
        last = round;
        if (kill + 1) % CHECKED_EVERY == 0 {
            check_whole(home, &mut done)?;
        }
        after_kill(&done);
    }
    all.append(&mut last);
    done.unacknowledged = 0;
    let service = Service::start(program, home)?;
    verify(&mut service.client(), &all, &mut done)?;
    verify_loads(&mut service.client(), loads_in_flight, &mut done)?;
    let ended = service.terminate()?;
    if !ended.success() {
        done.problems.push(format!("asked to end, it ended with {ended}"));
    }
    check_whole(home, &mut done)?;
    Ok(done)
}

fn check_whole(home: &Path, done: &mut Kills) -> Result<()> {
    done.checks += 1;
    let damage = damage(home)?;
    done.problems.extend(damage.into_iter().map(|it| format!("the database: {it}")));
    Ok(())
}

/// Writes with several clients and kills the server meanwhile. Returns what the writers know, and
/// how many loads were acknowledged, and how many were not answered.
fn write_and_kill(
    service: &mut Service,
    kill: usize,
    waits: bool,
    pause: Duration,
) -> Result<(Round, (usize, usize))> {
    let address = service.address();
    let answered = AtomicUsize::new(0);
    thread::scope(|scope| {
        let answered = &answered;
        let write = |writer| {
            let id = format!("r{kill}-w{writer}");
            let client = Client::new(address);
            (id.clone(), scope.spawn(move || write_until_cut_off(client, &id, answered)))
        };
        let writers: Vec<_> = (0..WRITERS).map(write).collect();
        let loader = scope.spawn(move || load_until_cut_off(Client::new(address), kill));
        let patience = Instant::now() + Duration::from_secs(20);
        while waits && answered.load(Ordering::Relaxed) == 0 && Instant::now() < patience {
            thread::sleep(Duration::from_micros(200));
        }
        thread::sleep(pause);
        service.kill();
        let mut round = Round::new();
        for (id, writer) in writers {
            round.insert(id, writer.join().ok().context("a writer panicked")?);
        }
        Ok((round, loader.join().ok().context("a loader panicked")?))
    })
}

/// Makes a skill, and then versions of it, until nobody answers.
fn write_until_cut_off(mut client: Client, id: &str, answered: &AtomicUsize) -> Written {
    let mut written = Written::default();
    let mut etag = String::new();
    for at in 0.. {
        let summary = format!("{id} update {at}");
        written.in_flight = Some(summary.clone());
        let answer = if at == 0 {
            client.post("/api/v1/skills", &skill(id, 800))
        } else {
            let body = json!({"core_content": content(&summary), "change_summary": summary});
            let headers = [("If-Match", etag.as_str())];
            client.ask("PUT", &format!("/api/v1/skills/{id}"), &headers, Some(&body))
        };
        let Ok(answer) = answer else {
            return written;
        };
        written.in_flight = None;
        let Some(new) = answer.header("etag").filter(|_| (200..300).contains(&answer.status))
        else {
            written.problems.push(format!("{summary}: {}", answer.brief()));
            return written;
        };
        new.clone_into(&mut etag);
        written.acknowledged.push(summary);
        answered.fetch_add(1, Ordering::Relaxed);
    }
    written
}

fn content(summary: &str) -> String {
    super::text(&format!("# As of {summary}"), 800)
}

/// Loads until nobody answers: how many were answered, and whether one was not.
fn load_until_cut_off(mut client: Client, kill: usize) -> (usize, usize) {
    let path = format!("/api/v1/skills/{COUNTED}/load");
    let mut loads = 0;
    loop {
        let body = json!({"session_id": format!("session-{kill}")});
        match client.post(&path, &body) {
            Ok(answer) if answer.status == 200 => loads += 1,
            Ok(_) => return (loads, 0),
            // Before the first one, nobody knows whether there was a connection.
            Err(_) => return (loads, 1),
        }
    }
}

/// Whether what was acknowledged is there, in order, without holes, and nothing else but what was
/// on its way.
fn verify(client: &mut Client, round: &Round, done: &mut Kills) -> Result<()> {
    for (id, written) in round {
        let path = format!("/api/v1/skills/{id}");
        let now = client.get(&path)?;
        if now.status == 404 && written.acknowledged.is_empty() {
            continue;
        }
        if now.status != 200 {
            done.problems.push(format!("{id} is lost: {}", now.brief()));
            continue;
        }
        let mut found = versions(client, id)?;
        found.sort();
        if found.iter().map(|(number, _)| *number).ne(1..=found.len() as u64) {
            done.problems.push(format!("{id} has holes: {found:?}"));
        }
        // The first one made the skill, and has the summary of the service.
        let expected = written.acknowledged.iter().chain(&written.in_flight);
        let known = written.acknowledged.len();
        let summaries = found.iter().skip(1).map(|(_, summary)| summary);
        let are_expected = found.len() >= known
            && found.len() <= known + usize::from(written.in_flight.is_some())
            && summaries.eq(expected.skip(1).take(found.len().saturating_sub(1)));
        if !are_expected {
            let acknowledged = &written.acknowledged;
            done.problems.push(format!("{id} has {found:?} of {acknowledged:?}"));
            continue;
        }
        done.unacknowledged += found.len() - known;
        let body = now.json();
        let text = body["core_content"].as_str().unwrap_or_default();
        let newest = found.last().filter(|_| found.len() > 1);
        if newest.is_some_and(|(_, summary)| text.trim_end() != content(summary).trim_end()) {
            done.problems.push(format!("{id} has the text of another version: {}", now.brief()));
        }
    }
    Ok(())
}

/// Whether all acknowledged loads are counted, and none twice.
fn verify_loads(client: &mut Client, in_flight: usize, done: &mut Kills) -> Result<()> {
    let metrics = client.get(&format!("/api/v1/skills/{COUNTED}/metrics"))?.json();
    let counted = metrics["total_loads"].as_u64().context("no loads are counted")? as usize;
    if counted < done.loads || counted > done.loads + in_flight {
        let loads = done.loads;
        done.problems.push(format!("{counted} loads are counted, {loads} were acknowledged"));
    }
    Ok(())
}

/// Numbers that look like chance and are the same each time.
struct Dice(u64);

impl Dice {
    /// From 0 to 1.
    fn roll(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}
