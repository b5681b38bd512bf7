//! Minutes of mixed load: memory stays what it is.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::ground::{CONNECTIONS, Requests, fill, id, load, median, prowess};
use super::setting;
use crate::results::{Row, Verdict};
use crate::service::Client;

const MINUTES: usize = 10;
const SKILLS: usize = 100;
const WARM_UP: Duration = Duration::from_secs(60);
const EVERY: Duration = Duration::from_secs(5);
/// What the last third may have more than the first: a tenth, and what an allocator keeps.
const MORE: f64 = 0.1;
const SLACK: f64 = 8.0;

pub(super) fn rows() -> Result<Vec<Row>> {
    let minutes = setting("PROWESS_BENCH_MINUTES", MINUTES)?;
    let folder = tempfile::tempdir()?;
    let service = prowess(folder.path())?;
    let address = service.address();
    fill(address, SKILLS)?;
    let time = Duration::from_secs(60 * minutes as u64);
    let requests = Requests::get(SKILLS)
        .and(Requests::load(SKILLS))
        .and(Requests::one("/api/v1/skills?limit=20").and(Requests::one("/api/v1/skills?q=step")));
    let over = AtomicBool::new(false);
    let (samples, measured, written) = thread::scope(|scope| -> Result<_> {
        let writer = scope.spawn(|| write(address, &over));
        let total = WARM_UP + time;
        // The load warms up for a third of its time; all of it counts here.
        let loader = scope.spawn(move || load(address, &requests, CONNECTIONS, total * 3 / 4));
        let samples = watch(service.process(), time);
        let measured = loader.join().ok().context("the load panicked");
        over.store(true, Ordering::Relaxed);
        let written = writer.join().ok().context("the writer panicked")??;
        Ok((samples?, measured??, written))
    })?;
    ensure!(samples.len() >= 3, "{} samples are not enough", samples.len());
    let third = samples.len() / 3;
    let first = median(samples[..third].iter().copied());
    let last = median(samples[samples.len() - third..].iter().copied());
    let what = format!("memory over {minutes} minutes of mixed load: the last third to the first");
    let goal = format!("≤ {}× + {SLACK} MiB", 1.0 + MORE);
    let reading = measured.rate;
    let text = format!(
        "{:.2}× ({last:.1} to {first:.1} MiB, {reading:.0} requests a second, {written} versions \
         written)",
        last / first
    );
    let flat = last <= first * (1.0 + MORE) + SLACK;
    let verdict = if flat { Verdict::Pass } else { Verdict::Fail };
    let detail = measured.first_error.as_deref().unwrap_or("under mixed load");
    Ok(vec![
        Row { what, goal, measured: text, verdict },
        Row::none("answers other than a success in that time", measured.errors, detail),
    ])
}

/// The resident memory in MiB, every few seconds, after a warm-up.
fn watch(process: u32, time: Duration) -> Result<Vec<f64>> {
    thread::sleep(WARM_UP);
    let end = Instant::now() + time;
    let mut samples = Vec::new();
    while Instant::now() + EVERY <= end {
        thread::sleep(EVERY);
        samples.push(resident(process)?);
        if samples.len() % 12 == 0 {
            let now = samples[samples.len() - 1];
            eprintln!("minute {}: {now:.1} MiB", samples.len() / 12);
        }
    }
    Ok(samples)
}

fn resident(process: u32) -> Result<f64> {
    let text = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")).context("no VmRSS")?;
    Ok(kilobytes.trim().parse::<f64>()? / 1024.0)
}

/// A new version every now and then, as long as the load lasts.
fn write(address: std::net::SocketAddr, over: &AtomicBool) -> Result<usize> {
    let mut client = Client::new(address);
    let mut written = 0;
    while !over.load(Ordering::Relaxed) {
        let path = format!("/api/v1/skills/{}", id(written % SKILLS));
        let etag = client.get(&path)?.header("etag").context("no ETag")?.to_owned();
        let body =
            json!({"core_content": format!("# Version {written}\n\nOne step after another.")});
        let answer = client.ask("PUT", &path, &[("If-Match", &etag)], Some(&body))?;
        ensure!(answer.status == 200, "{}", answer.brief());
        written += 1;
        thread::sleep(Duration::from_millis(100));
    }
    Ok(written)
}
