//! Many at once: nothing is lost, nothing is counted twice.

use std::net::SocketAddr;
use std::sync::Barrier;
use std::thread;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{Client, skill};

/// What came of writers that all update one skill.
#[derive(Debug)]
pub(crate) struct Updates {
    /// How many updates were acknowledged.
    pub(crate) acknowledged: usize,
    /// How many were refused because somebody else was faster, and made again.
    pub(crate) conflicts: usize,
    /// Answers that are neither.
    pub(crate) others: Vec<String>,
    /// The numbers of the versions, ascending, the first one included.
    pub(crate) numbers: Vec<u64>,
    /// The summaries of acknowledged updates that no version bears, or more than one.
    pub(crate) astray: Vec<String>,
}

/// So many writers make so many updates each, with `If-Match`, again after a conflict.
pub(crate) fn concurrent_updates(
    address: SocketAddr,
    id: &str,
    writers: usize,
    updates: usize,
) -> Result<Updates> {
    let created = Client::new(address).post("/api/v1/skills", &skill(id, 500))?;
    ensure!(created.status == 201, "{}", created.brief());
    let path = format!("/api/v1/skills/{id}");
    let start = Barrier::new(writers);
    let all = thread::scope(|scope| {
        let write = |writer| {
            let (path, start) = (&path, &start);
            scope.spawn(move || {
                start.wait();
                write_all(&mut Client::new(address), path, writer, updates)
            })
        };
        let threads: Vec<_> = (0..writers).map(write).collect();
        let all = threads.into_iter().map(|it| it.join().ok().context("a writer panicked")?);
        all.collect::<Result<Vec<_>>>()
    })?;
    let mut versions = versions(&mut Client::new(address), id)?;
    versions.sort();
    let acknowledged: Vec<String> = all.iter().flat_map(|it| it.0.clone()).collect();
    let times = |summary: &String| versions.iter().filter(|(_, it)| it == summary).count();
    let astray = acknowledged.iter().filter(|summary| times(summary) != 1).cloned().collect();
    Ok(Updates {
        acknowledged: acknowledged.len(),
        conflicts: all.iter().map(|it| it.1).sum(),
        others: all.iter().flat_map(|it| it.2.clone()).collect(),
        numbers: versions.iter().map(|(number, _)| *number).collect(),
        astray,
    })
}

/// The summaries of what was acknowledged, the number of conflicts, and other answers.
fn write_all(
    client: &mut Client,
    path: &str,
    writer: usize,
    updates: usize,
) -> Result<(Vec<String>, usize, Vec<String>)> {
    let (mut acknowledged, mut conflicts, mut others) = (Vec::new(), 0, Vec::new());
    while acknowledged.len() < updates && others.len() < 10 {
        let summary = format!("writer {writer}, update {}", acknowledged.len());
        let now = client.get(path)?;
        let etag = now.header("etag").context("a skill without ETag")?.to_owned();
        let body = json!({"core_content": format!("# As of {summary}"), "change_summary": summary});
        let answer = client.ask("PUT", path, &[("If-Match", &etag)], Some(&body))?;
        match answer.status {
            200 => acknowledged.push(summary),
            412 if answer.json()["detail"].is_string() => conflicts += 1,
            _ => others.push(answer.brief()),
        }
    }
    Ok((acknowledged, conflicts, others))
}

/// All versions of a skill: their numbers and summaries.
pub(crate) fn versions(client: &mut Client, id: &str) -> Result<Vec<(u64, String)>> {
    let mut all = Vec::new();
    loop {
        let path = format!("/api/v1/skills/{id}/versions?limit=100&offset={}", all.len());
        let answer = client.get(&path)?;
        ensure!(answer.status == 200, "{path}: {}", answer.brief());
        let page = answer.json();
        let listed = page["versions"].as_array().context("no versions")?;
        for version in listed {
            let number = version["version_number"].as_u64().context("a version without number")?;
            all.push((number, version["change_summary"].as_str().unwrap_or_default().to_owned()));
        }
        if listed.is_empty() || all.len() as u64 >= page["total"].as_u64().unwrap_or(0) {
            return Ok(all);
        }
    }
}

/// What came of loads at the same time.
#[derive(Debug)]
pub(crate) struct Loads {
    /// Answers that are no loaded skill.
    pub(crate) others: Vec<String>,
    /// How many loads are counted.
    pub(crate) counted: u64,
    /// How many sessions are counted.
    pub(crate) sessions: u64,
    /// How many loads are counted for the versions together.
    pub(crate) by_version: u64,
}

/// So many loads of one skill, all at once, spread over so many sessions.
pub(crate) fn concurrent_loads(
    address: SocketAddr,
    id: &str,
    loads: usize,
    sessions: usize,
) -> Result<Loads> {
    let created = Client::new(address).post("/api/v1/skills", &skill(id, 500))?;
    ensure!(created.status == 201, "{}", created.brief());
    let path = format!("/api/v1/skills/{id}/load");
    let start = Barrier::new(loads);
    let others = thread::scope(|scope| {
        let load = |at: usize| {
            let (path, start) = (&path, &start);
            let body = json!({"session_id": format!("session-{}", at % sessions), "agent": "a"});
            let small = thread::Builder::new().stack_size(256 << 10);
            small.spawn_scoped(scope, move || -> Result<Option<String>> {
                let mut client = Client::new(address);
                start.wait();
                let answer = client.post(path, &body)?;
                let is_loaded = answer.status == 200 && answer.json()["content"].is_string();
                Ok((!is_loaded).then(|| answer.brief()))
            })
        };
        let threads = (0..loads).map(load).collect::<Result<Vec<_>, _>>()?;
        let answers = threads.into_iter().map(|it| it.join().ok().context("a load panicked")?);
        answers.filter_map(Result::transpose).collect::<Result<Vec<_>>>()
    })?;
    let metrics = Client::new(address).get(&format!("/api/v1/skills/{id}/metrics"))?.json();
    let by_version = metrics["loads_by_version"].as_object().into_iter().flatten();
    Ok(Loads {
        others,
        counted: count(&metrics["total_loads"])?,
        sessions: count(&metrics["unique_sessions"])?,
        by_version: by_version.filter_map(|(_, loads)| loads.as_u64()).sum(),
    })
}

fn count(value: &Value) -> Result<u64> {
    value.as_u64().with_context(|| format!("{value} is no count"))
}
