//! How many requests a second: to a bare handler, and to the peer.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;

use super::ground::{
    CONNECTIONS, Floor, Measured, Peer, Requests, fill, id, load, median, prowess,
};
use crate::results::{Row, Verdict};

const SKILLS: usize = 100;
/// How often contenders take turns, and how long a turn is.
const ROUNDS: usize = 7;
const TURN: Duration = Duration::from_secs(2);
const ROUNDS_OF_PEER: usize = 7;

const GET: &str = "GET /skills/{id}: rate to that of a bare axum handler with the same bytes";
const LOAD: &str = "counted loads: rate to that of the bare handler";
const GET_TAIL: &str = "GET /skills/{id}: p99 to p50";
const LOAD_TAIL: &str = "counted loads: p99 to p50";
const ERRORS: &str = "answers other than a success";

pub(super) fn rows() -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let service = prowess(folder.path())?;
    let ours = service.address();
    fill(ours, SKILLS)?;
    let floor = Floor::like(ours, &format!("/api/v1/skills/{}", id(0)))?;
    let (get, loads) = (Requests::get(SKILLS), Requests::load(SKILLS));
    let [bare, got, loaded] = turns(ROUNDS, [(floor.address, &get), (ours, &get), (ours, &loads)])?;
    let mut rows = vec![
        Row::at_least(GET, ratio(&got, &bare), 0.6, &rates(&got, &bare)),
        Row::at_least(LOAD, ratio(&loaded, &bare), 0.3, &rates(&loaded, &bare)),
        tail(GET_TAIL, &got),
        tail(LOAD_TAIL, &loaded),
        bare_tail(&bare),
        errors(&[&bare, &got, &loaded]),
    ];
    rows.extend(peer(ours, &get, &loads)?);
    Ok(rows)
}

/// All measurements of each contender; they take turns.
fn turns<const N: usize>(
    rounds: usize,
    contenders: [(SocketAddr, &Requests); N],
) -> Result<[Vec<Measured>; N]> {
    let mut all: [Vec<Measured>; N] = std::array::from_fn(|_| Vec::new());
    for round in 0..rounds {
        for (measured, (address, requests)) in all.iter_mut().zip(contenders) {
            measured.push(load(address, requests, CONNECTIONS, TURN)?);
        }
        let rates: Vec<String> = all.iter().map(|it| format!("{:.0}", it[round].rate)).collect();
        eprintln!("round {} of {rounds}: {} a second", round + 1, rates.join(", "));
    }
    Ok(all)
}

fn rate(measured: &[Measured]) -> f64 {
    median(measured.iter().map(|it| it.rate))
}

/// The middle one of the ratios of all rounds: what disturbs a round disturbs both.
fn ratio(ours: &[Measured], theirs: &[Measured]) -> f64 {
    median(ours.iter().zip(theirs).map(|(ours, theirs)| ours.rate / theirs.rate))
}

fn rates(ours: &[Measured], theirs: &[Measured]) -> String {
    format!("{:.0} to {:.0} a second, {CONNECTIONS} connections", rate(ours), rate(theirs))
}

fn tail(what: &str, measured: &[Measured]) -> Row {
    let ratio = median(measured.iter().map(|it| it.p99 / it.p50));
    Row::at_most(what, ratio, 5.0, &percentiles(measured))
}

/// What the machine itself does to the slowest.
fn bare_tail(bare: &[Measured]) -> Row {
    let ratio = median(bare.iter().map(|it| it.p99 / it.p50));
    Row::bound("the bare handler: p99 to p50", ratio, &percentiles(bare))
}

fn percentiles(measured: &[Measured]) -> String {
    let ms = |of: fn(&Measured) -> f64| median(measured.iter().map(of)) * 1e3;
    format!("{:.2} to {:.2} ms", ms(|it| it.p99), ms(|it| it.p50))
}

fn errors(all: &[&Vec<Measured>]) -> Row {
    let all: Vec<&Measured> = all.iter().flat_map(|it| it.iter()).collect();
    let first = all.iter().find_map(|it| it.first_error.as_deref());
    if let Some(first) = first {
        eprintln!("{first}");
    }
    let detail = first.and_then(|it| it.lines().next()).unwrap_or("all of these runs");
    Row::none(ERRORS, all.iter().map(|it| it.errors).sum(), detail)
}

fn peer(ours: SocketAddr, get: &Requests, loads: &Requests) -> Result<Vec<Row>> {
    let list = Requests::one("/api/v1/skills?limit=100");
    let what = |name: &str| format!("{name}: rate to that of FastAPI + uvloop + Redis");
    let pairs = [("get", get), ("list of 100", &list), ("counted load", loads)];
    let peer = match Peer::with_skills_of(ours, SKILLS) {
        Ok(peer) => peer,
        Err(error) => {
            let why = format!("{error:#}");
            return Ok(pairs.map(|(name, _)| Row::not_measured(&what(name), "≥ 20×", &why)).into());
        }
    };
    let mut rows = Vec::new();
    for (name, requests) in pairs {
        let [ours, theirs] = turns(ROUNDS_OF_PEER, [(ours, requests), (peer.address, requests)])?;
        let failed = ours.iter().chain(&theirs).find_map(|it| it.first_error.as_deref());
        if let Some(failed) = failed {
            eprintln!("{failed}");
        }
        let mut detail = rates(&ours, &theirs);
        let ratio = ratio(&ours, &theirs);
        let mut row = Row::at_least(&what(name), ratio, 20.0, &detail);
        if failed.is_some() {
            detail.push_str(", with errors");
            row = Row::at_least(&what(name), ratio, 20.0, &detail);
            row.verdict = Verdict::Fail;
        }
        rows.push(row);
    }
    Ok(rows)
}
