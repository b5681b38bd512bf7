//! `kill -9` of one of two instances under load, both of which every client uses: nothing
//! acknowledged is lost or done twice.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::trials::versions;
use super::{Answer, Client, Service, skill};

/// Clients at the same time, each with skills of its own. Two of them share a session.
const CLIENTS: usize = 4;
/// How long nothing happens between two kills, at most.
const LONGEST: Duration = Duration::from_millis(400);
/// Whoever is not served for so long gives up.
const PATIENCE: Duration = Duration::from_secs(120);
/// A client tells no more problems than this.
const PROBLEMS: usize = 20;

/// What came of all kills.
#[derive(Debug, Default)]
pub(crate) struct Failovers {
    pub(crate) kills: usize,
    /// Loads in sessions, each with an id of its own, that were acknowledged.
    pub(crate) loads: usize,
    /// Versions that were acknowledged.
    pub(crate) versions: usize,
    /// Requests that had to be made again: cut off, or refused for now.
    pub(crate) again: usize,
    /// Requests that each instance has answered.
    pub(crate) answered: [usize; 2],
    /// Everything that must not be.
    pub(crate) problems: Vec<String>,
}

/// Where the instances are now.
type Places = Mutex<[SocketAddr; 2]>;

/// Kills one of two instances so many times, and starts it again, while each client uses both, a
/// request here and the next one there.
pub(crate) fn kill_instances(
    start: impl Fn(usize) -> Result<Service>,
    kills: usize,
    mut after_kill: impl FnMut(usize),
) -> Result<Failovers> {
    let mut instances = [start(0)?, start(1)?];
    for number in 0..CLIENTS {
        let counted = Customer::counted(number);
        let created = instances[0].client().post("/api/v1/skills", &skill(&counted, 300))?;
        ensure!(created.status == 201, "{}", created.brief());
        await_skill(&instances[1], &counted)?;
    }
    let places = Mutex::new([instances[0].address(), instances[1].address()]);
    let (stop, served) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let (places, stop, served) = (&places, &stop, &served);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| scope.spawn(move || Customer::new(number, places).work(stop, served)))
            .collect();
        let killed = kill_in_turn(&start, &mut instances, places, kills, served, &mut after_kill);
        stop.store(true, Ordering::SeqCst);
        let mut done = Failovers { kills, ..Failovers::default() };
        for client in clients {
            let mut client = client.join().ok().context("a client panicked")?;
            done.loads += client.loads;
            done.versions += client.summaries.len();
            done.again += client.again;
            for (all, own) in done.answered.iter_mut().zip(client.answered) {
                *all += own;
            }
            verify(&instances, &mut client)?;
            done.problems.append(&mut client.problems);
        }
        killed?;
        Ok(done)
    })
}

/// Waits until an instance knows of a skill that another one was told of.
fn await_skill(instance: &Service, id: &str) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        let answer = instance.client().get(&format!("/api/v1/skills/{id}"))?;
        if answer.status == 200 {
            return Ok(());
        }
        ensure!(answer.status == 404 && Instant::now() < end, "{id}: {}", answer.brief());
        thread::sleep(Duration::from_millis(10));
    }
}

fn kill_in_turn(
    start: &impl Fn(usize) -> Result<Service>,
    instances: &mut [Service; 2],
    places: &Places,
    kills: usize,
    served: &AtomicUsize,
    after_kill: &mut impl FnMut(usize),
) -> Result<()> {
    for kill in 0..kills {
        // Somebody must have been served since the last one, or nothing is at stake.
        let (before, end) = (served.load(Ordering::SeqCst), Instant::now() + PATIENCE);
        while served.load(Ordering::SeqCst) == before {
            ensure!(Instant::now() < end, "nobody is served any more");
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(LONGEST.mul_f64(f64::from(kill as u32 * 7 % 10) / 10.0));
        let at = kill % 2;
        instances[at].kill();
        instances[at] = start(at)?;
        places.lock().unwrap_or_else(PoisonError::into_inner)[at] = instances[at].address();
        after_kill(kill + 1);
    }
    Ok(())
}

/// A client of both instances, a request to one and the next one to the other.
struct Customer<'a> {
    number: usize,
    /// The skill that it changes.
    id: String,
    /// The session that it loads its other skill in.
    session: String,
    places: &'a Places,
    clients: [Client; 2],
    /// Whose turn it is.
    at: usize,
    loads: usize,
    /// Why the versions of its skill were made; the first one made the skill.
    summaries: Vec<String>,
    again: usize,
    answered: [usize; 2],
    problems: Vec<String>,
}

impl<'a> Customer<'a> {
    fn new(number: usize, places: &'a Places) -> Self {
        let addresses = *places.lock().unwrap_or_else(PoisonError::into_inner);
        Self {
            number,
            id: format!("client-{number}"),
            session: format!("session-{}", number / 2),
            places,
            clients: addresses.map(Client::new),
            at: number % 2,
            loads: 0,
            summaries: Vec::new(),
            again: 0,
            answered: [0; 2],
            problems: Vec::new(),
        }
    }

    /// The skill of a client whose loads are counted.
    fn counted(number: usize) -> String {
        format!("counted-{number}")
    }

    fn problem(&mut self, what: &str) {
        if self.problems.len() < PROBLEMS {
            self.problems.push(format!("{}: {what}", self.id));
        }
    }

    /// Asks the next instance once; nothing, if it must be asked again.
    fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Option<Answer> {
        let at = self.at;
        self.at = 1 - at;
        match self.clients[at].ask(method, path, headers, body) {
            Ok(answer) if answer.status != 503 => {
                self.answered[at] += 1;
                return Some(answer);
            }
            Ok(answer) if answer.header("retry-after").is_none() => {
                self.problem(&format!("refused, and nobody says until when: {}", answer.brief()));
            }
            Ok(_) => {}
            // It may be somewhere else by now.
            Err(_) => {
                let address = self.places.lock().unwrap_or_else(PoisonError::into_inner)[at];
                self.clients[at] = Client::new(address);
            }
        }
        self.again += 1;
        thread::sleep(Duration::from_millis(5));
        None
    }

    /// Asks until it is answered: it makes no difference if that is done twice.
    fn insist(&mut self, method: &str, path: &str, body: Option<&Value>) -> Option<Answer> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(answer) = self.ask(method, path, &[], body) {
                return Some(answer);
            }
        }
        self.problem(&format!("{method} {path} is not answered"));
        None
    }

    /// Makes something, which may be there already if a request was cut off.
    fn make(&mut self, path: &str, body: &Value) {
        if let Some(made) = self.insist("POST", path, Some(body))
            && ![200, 201, 409].contains(&made.status)
        {
            self.problem(&format!("{path}: {}", made.brief()));
        }
    }

    fn work(mut self, stop: &AtomicBool, served: &AtomicUsize) -> Self {
        self.make("/api/v1/sessions", &json!({"session_id": self.session}));
        self.make("/api/v1/skills", &skill(&self.id, 500));
        self.summaries.push(String::new());
        while !stop.load(Ordering::SeqCst) && self.problems.len() < PROBLEMS {
            // What was asked of one instance in the last round is asked of the other one.
            self.at = (self.number + self.loads) % 2;
            self.load();
            self.change();
            served.fetch_add(1, Ordering::SeqCst);
        }
        self
    }

    /// Loads its skill in the session, and leaves it again. The ids say which call is meant.
    fn load(&mut self) {
        let path = format!("/api/v1/sessions/{}/calls", self.session);
        for tool in ["load_skill", "unload_skill"] {
            let id = format!("{tool}-{}-{}", self.number, self.loads);
            let arguments = json!({"skill": Self::counted(self.number)});
            let call = json!({"id": id, "name": tool, "arguments": arguments});
            let calls = json!({"calls": [call]});
            let Some(answer) = self.insist("POST", &path, Some(&calls)) else { return };
            if answer.status != 200 || answer.json()["results"][0]["is_error"] != false {
                self.problem(&format!("{id}: {}", answer.brief()));
                return;
            }
        }
        self.loads += 1;
    }

    /// Makes a version. Whoever was cut off looks whether it is there before trying again.
    fn change(&mut self) {
        let path = format!("/api/v1/skills/{}", self.id);
        let summary = format!("change {}", self.summaries.len());
        let text = super::text(&format!("# {summary}"), 500);
        let body = json!({"core_content": text, "change_summary": summary});
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            let Some(now) = self.insist("GET", &path, None) else { return };
            let etag = match (now.status, now.header("etag")) {
                (200, Some(etag)) => etag.to_owned(),
                // An instance that has not heard of the skill yet.
                (404, _) => {
                    thread::sleep(Duration::from_millis(20));
                    continue;
                }
                _ => return self.problem(&format!("{path}: {}", now.brief())),
            };
            if now.json()["change_summary"] == summary.as_str() {
                return self.summaries.push(summary);
            }
            let headers = [("If-Match", etag.as_str())];
            match self.ask("PUT", &path, &headers, Some(&body)).map(|it| (it.status, it.brief())) {
                Some((200, _)) => return self.summaries.push(summary),
                // What it was told was old, or its own change came first.
                None | Some((412, _)) => {}
                Some((_, brief)) => return self.problem(&format!("{summary}: {brief}")),
            }
        }
        self.problem(&format!("{summary} does not come about"));
    }
}

/// Whether both instances have what a client was told, and nothing else.
fn verify(instances: &[Service; 2], client: &mut Customer<'_>) -> Result<()> {
    let counted = Customer::counted(client.number);
    for instance in instances {
        let mut found = versions(&mut instance.client(), &client.id)?;
        found.sort();
        let numbers = found.iter().map(|(number, _)| *number);
        let summaries = found.iter().skip(1).map(|(_, summary)| summary);
        if numbers.ne(1..=found.len() as u64) || summaries.ne(client.summaries.iter().skip(1)) {
            let expected = client.summaries.clone();
            client.problem(&format!("{found:?}, not {expected:?}"));
        }
        let path = format!("/api/v1/sessions/{}/events?follow=false", client.session);
        let events = instance.client().get(&path)?;
        let events = String::from_utf8_lossy(&events.body).into_owned();
        let data = events.lines().filter_map(|line| line.strip_prefix("data:"));
        let data = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
        let is_load = |it: &Value| it["kind"] == "skill_loaded" && it["skill"] == counted.as_str();
        let happened = data.filter(is_load).count();
        let metrics = instance.client().get(&format!("/api/v1/skills/{counted}/metrics"))?.json();
        let (total, loads) = (&metrics["total_loads"], client.loads);
        if happened != loads || *total != json!(loads) {
            let were = format!("{loads} loads were acknowledged");
            client.problem(&format!("{were}, {happened} happened, {total} are counted"));
        }
    }
    Ok(())
}
