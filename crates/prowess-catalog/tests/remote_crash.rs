//! Crashes at any moment, and several processes at once (S08, 2).

#[path = "support/packed.rs"]
mod packed;
#[path = "support/server.rs"]
mod server;
mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use packed::zip_of;
use prowess_catalog::{
    Catalog, Location, Reach, RemoteCache, RemoteLimits, RemoteSource, Snapshot,
};
use server::{Answer, Server};
use support::{Tree, names};

const CACHE: &str = "PROWESS_TEST_CACHE";
const LOCATION: &str = "PROWESS_TEST_LOCATION";
const SKILLS: usize = 40;

fn source(cache: &Path, location: &str) -> RemoteSource {
    let limits = RemoteLimits::default().with_fresh_seconds(0).with_retry_seconds(0);
    RemoteSource::new(Location::parse(location).unwrap(), RemoteCache::new(cache))
        .with_reach(Reach::Any)
        .with_limits(limits)
}

async fn listed(source: RemoteSource) -> Snapshot {
    Catalog::builder().source(source).build().refresh().await
}

/// An archive in which every file says which version it is.
fn version(number: usize) -> Vec<u8> {
    let files: Vec<(String, String)> = (0..SKILLS)
        .flat_map(|at| {
            let text = format!(
                "---\nname: skill-{at:02}\ndescription: Version {number}\n---\nVersion {number}\n"
            );
            [
                (format!("skill-{at:02}/SKILL.md"), text),
                (format!("skill-{at:02}/data"), format!("{number}\n").repeat(500)),
            ]
        })
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    zip_of(&files)
}

/// The version that a cache holds: of all skills the same one, whole.
async fn whole_version(snapshot: &Snapshot) -> usize {
    assert_eq!(names(snapshot).len(), SKILLS, "{:?}", snapshot.diagnostics());
    let mut versions = Vec::new();
    for skill in snapshot.skills() {
        let whole = skill.whole().await.unwrap();
        assert!(whole.files.unwrap().tree_digest.is_ok());
        let text = String::from_utf8(whole.text).unwrap();
        versions.push(text.trim().rsplit(' ').next().unwrap().parse::<usize>().unwrap());
    }
    versions.dedup();
    assert_eq!(versions.len(), 1, "{versions:?}");
    versions[0]
}

fn child(test: &str, cache: &Path, location: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(CACHE, cache).env(LOCATION, location);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    command
}

fn of_child() -> Option<(PathBuf, String)> {
    Some((std::env::var_os(CACHE)?.into(), std::env::var(LOCATION).ok()?))
}

#[tokio::test]
async fn child_fetches_until_it_is_killed() {
    let Some((cache, location)) = of_child() else { return };
    loop {
        source(&cache, &location).refresh().await.unwrap();
        let mut out = std::io::stdout().lock();
        out.write_all(b"\n> fetched\n").unwrap();
        out.flush().unwrap();
    }
}

/// Numbers that look random, the same ones in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

#[tokio::test]
async fn kill_9_leaves_the_old_or_the_new_version() {
    const KILLS: usize = 200;
    const VERSIONS: usize = 50;
    let tree = Tree::new();
    let cache = tree.at("cache");
    let given = Arc::new(AtomicUsize::new(0));
    // Every question gets another version. Making them takes longer than fetching them.
    let versions: Vec<Vec<u8>> = (0..VERSIONS).map(version).collect();
    let counter = Arc::clone(&given);
    let server = Server::start(move |_| {
        let next = counter.fetch_add(1, Ordering::SeqCst);
        Answer::ok(versions[next % VERSIONS].clone())
    });
    let url = server.url("s.zip");
    source(&cache, &url).refresh().await.unwrap();
    let mut dice = Dice(0x5eed);
    let (mut before, mut fetched, mut in_between) = (0, 0, 0);
    for kill in 0..KILLS {
        let mut child = child("child_fetches_until_it_is_killed", &cache, &url).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        // Some die before they have begun, most while they are at it.
        let mut line = String::new();
        if dice.roll(10) > 0 {
            while !line.starts_with("> ") {
                line.clear();
                assert!(out.read_line(&mut line).unwrap() > 0, "the child ended by itself");
            }
            fetched += 1;
        }
        std::thread::sleep(Duration::from_micros(dice.roll(120_000)));
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        let unfinished = || {
            let names = fs::read_dir(&cache).unwrap().map(|entry| entry.unwrap().file_name());
            names.filter(|name| name.to_string_lossy().starts_with(".new-")).count()
        };
        in_between += usize::from(unfinished() > 0);
        // As it is, without asking anybody.
        let offline = source(&cache, &url).with_limits(RemoteLimits::default());
        let snapshot = listed(offline).await;
        let found = whole_version(&snapshot).await;
        let newest = given.load(Ordering::SeqCst);
        let age = (before..newest).find(|question| question % VERSIONS == found);
        before = age.unwrap_or_else(|| panic!("kill {kill}: {found}, not of {before}..{newest}"));
        if kill % 20 == 19 {
            drop(snapshot);
            // The next one cleans up.
            source(&cache, &url).refresh().await.unwrap();
            before = whole_version(
                &listed(source(&cache, &url).with_limits(RemoteLimits::default())).await,
            )
            .await;
            assert_eq!(unfinished(), 0, "what the dead left behind is gone");
            assert_eq!(fs::read_dir(cache.join("trees")).unwrap().count(), 1);
        }
    }
    assert!(fetched > KILLS / 2 && in_between > KILLS / 10, "{fetched} {in_between}");
    println!("{fetched} of {KILLS} had fetched, {in_between} died in between");
}

#[tokio::test]
async fn child_fetches_some_times() {
    let Some((cache, location)) = of_child() else { return };
    for _ in 0..15 {
        let snapshot = listed(source(&cache, &location)).await;
        whole_version(&snapshot).await;
    }
}

#[tokio::test]
async fn processes_at_the_same_time_see_whole_versions() {
    let tree = Tree::new();
    let cache = tree.at("cache");
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let versions: Vec<Vec<u8>> = (0..4).map(version).collect();
    let server = Server::start(move |_| {
        let at = counter.fetch_add(1, Ordering::SeqCst);
        Answer::ok(versions[at / 2 % versions.len()].clone())
    });
    let url = server.url("s.zip");
    let children: Vec<_> =
        (0..4).map(|_| child("child_fetches_some_times", &cache, &url).spawn().unwrap()).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let snapshot = listed(source(&cache, &url).with_limits(RemoteLimits::default())).await;
    whole_version(&snapshot).await;
    RemoteCache::new(&cache).collect_garbage(Duration::MAX).unwrap();
    assert_eq!(fs::read_dir(cache.join("trees")).unwrap().count(), 1);
}

#[tokio::test]
async fn who_waits_for_another_does_not_fetch_again() {
    let tree = Tree::new();
    let bytes = version(1);
    let server = Server::start(move |_| {
        std::thread::sleep(Duration::from_millis(300));
        Answer::ok(bytes.clone())
    });
    let url = server.url("s.zip");
    let fetch = || {
        let remote = source(&tree.at("cache"), &url).with_limits(RemoteLimits::default());
        tokio::spawn(listed(remote))
    };
    let tasks = [fetch(), fetch(), fetch()];
    for task in tasks {
        assert_eq!(whole_version(&task.await.unwrap()).await, 1);
    }
    assert_eq!(server.requests(), 1);
}
