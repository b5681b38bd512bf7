//! What a real `prowess serve` does while its store is away, and after it (S12, 3).

#[path = "support/net.rs"]
mod net;
#[path = "../../prowess-store/tests/support/postgres_server.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod postgres_server;
#[path = "../../prowess-store/tests/redis_server/mod.rs"]
mod redis_server;
#[path = "support/service/mod.rs"]
mod service;
mod support;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use net::Wire;
use postgres_server::{PostgresServer, Reach, Sync};
use redis_server::{ALWAYS, RedisServer};
use serde_json::{Value, json};
use service::{Answer, Client, Service, skill, versions};
use support::skip;

/// Short, so that a test is.
const SETTINGS: &str = "[store]\nlease_seconds = 2\nconnect_seconds = 1\nanswer_seconds = 2\n";
/// The longest that an operation of the store takes by these settings: a connection, an answer, and
/// a second for the server to say why.
const LONGEST: Duration = Duration::from_secs(1 + 2 + 1);
/// What no answer takes: that, and much time for a machine that does other things.
const LIMIT: Duration = Duration::from_secs(LONGEST.as_secs() + 10);
/// Longer than anything takes, however slow the machine is.
const PATIENCE: Duration = Duration::from_secs(60);
/// So many ask again and again while the store is away, and so long.
const CROWD: usize = 32;
const AWAY: Duration = Duration::from_secs(3);
/// What they may cost, in KiB.
const MEMORY: u64 = 64 << 10;

/// A server, what was acknowledged to its clients, and where it keeps its files.
struct Ground {
    service: Service,
    /// The versions of the skill.
    acknowledged: Vec<String>,
    calls: usize,
    _home: tempfile::TempDir,
}

impl Ground {
    fn new(store: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("prowess.toml"), SETTINGS).unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_prowess"));
        let service = Service::start_on(program, home.path(), Some(store)).unwrap();
        let created = service.client().post("/api/v1/skills", &skill("kept", 300)).unwrap();
        assert_eq!(created.status, 201, "{}", created.brief());
        let ground = Self { service, acknowledged: vec![String::new()], calls: 0, _home: home };
        let begun = ground.service.client().post("/api/v1/sessions", &session("s")).unwrap();
        assert_eq!(begun.status, 201, "{}", begun.brief());
        ground
    }

    /// Changes the skill and loads it, which is acknowledged.
    fn work(&mut self) {
        let summary = format!("change {}", self.acknowledged.len());
        let changed = change(&mut self.service.client(), &summary, LIMIT);
        assert_eq!(changed.status, 200, "{}", changed.brief());
        self.acknowledged.push(summary);
        for tool in ["load_skill", "unload_skill"] {
            let id = format!("{tool}-{}", self.calls);
            let called = call(&mut self.service.client(), &id, tool);
            let is_done = called.status == 200 && called.json()["results"][0]["is_error"] == false;
            assert!(is_done, "{}", called.brief());
        }
        self.calls += 1;
    }

    /// Whether everything is there that was acknowledged.
    fn verify(&self) {
        let mut client = self.service.client();
        let mut found = versions(&mut client, "kept").unwrap();
        found.sort();
        let numbers = found.iter().map(|(number, _)| *number);
        assert!(numbers.eq(1..=found.len() as u64), "{found:?}");
        for summary in &self.acknowledged[1..] {
            let times = found.iter().filter(|(_, it)| it == summary).count();
            assert_eq!(times, 1, "{summary}: {found:?}");
        }
        let metrics = client.get("/api/v1/skills/kept/metrics").unwrap().json();
        let loads = metrics["total_loads"].as_u64().unwrap();
        assert!(loads >= self.calls as u64, "{loads} of {} loads", self.calls);
    }

    /// Without its store it lives, is not ready, and takes nothing; and says so in time, however
    /// many ask.
    fn assert_away(&self) {
        let begun = Instant::now();
        let mut client = self.service.client();
        assert_eq!(client.get("/health").unwrap().status, 200);
        assert!(begun.elapsed() < LONGEST, "{:?}", begun.elapsed());
        let ready = timed(|| client.get("/ready").unwrap());
        assert_eq!(ready.status, 503, "{}", ready.brief());
        for ask in ASKS {
            refused(&timed(|| ask(&mut client)));
        }
        let before = memory(self.service.process());
        let (is_over, address) = (AtomicBool::new(false), self.service.address());
        let most = std::thread::scope(|scope| {
            let is_over = &is_over;
            let ask = |number| scope.spawn(move || ask_again_and_again(address, number, is_over));
            let crowd: Vec<_> = (0..CROWD).map(ask).collect();
            let (end, mut most) = (Instant::now() + AWAY, before);
            while Instant::now() < end {
                most = most.max(memory(self.service.process()));
                std::thread::sleep(Duration::from_millis(50));
            }
            // It lives, whatever others wait for.
            let begun = Instant::now();
            assert_eq!(self.service.client().get("/health").unwrap().status, 200);
            assert!(begun.elapsed() < LONGEST, "{:?}", begun.elapsed());
            is_over.store(true, Ordering::SeqCst);
            let asked: usize = crowd.into_iter().map(|it| it.join().unwrap()).sum();
            assert!(asked >= CROWD, "{asked}");
            most
        });
        assert!(most < before + MEMORY, "{before} KiB became {most}");
    }

    /// The same process serves again, without help.
    fn assert_back(&mut self) {
        let end = Instant::now() + PATIENCE;
        loop {
            let ready = self.service.client().get("/ready").unwrap();
            if ready.status == 200 {
                break;
            }
            assert!(Instant::now() < end, "{}\n{}", ready.brief(), self.service.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        self.work();
        self.verify();
    }

    /// It is not ready while its store takes no changes, though everything can be read.
    fn notice(mut self, refuse: impl FnOnce(), accept: impl FnOnce()) {
        self.assert_back();
        refuse();
        let end = Instant::now() + PATIENCE;
        while self.service.client().get("/ready").unwrap().status != 503 {
            assert!(Instant::now() < end, "it is ready, although nothing can be written");
            std::thread::sleep(Duration::from_millis(20));
        }
        let read = self.service.client().get("/api/v1/skills/kept").unwrap();
        assert_eq!(read.status, 200, "{}", read.brief());
        accept();
        self.assert_back();
    }

    /// All of it, around something that takes the store away and something that brings it back.
    fn survive(mut self, take_away: impl FnOnce(), bring_back: impl FnOnce()) {
        self.work();
        take_away();
        self.assert_away();
        bring_back();
        self.assert_back();
    }
}

fn session(id: &str) -> Value {
    json!({"session_id": id})
}

/// What it does, if that does not take longer than anything may.
fn timed(ask: impl FnOnce() -> Answer) -> Answer {
    let begun = Instant::now();
    let answer = ask();
    assert!(begun.elapsed() < LIMIT, "{:?}: {}", begun.elapsed(), answer.brief());
    answer
}

fn refused(answer: &Answer) {
    assert_eq!(answer.status, 503, "{}", answer.brief());
    assert!(answer.header("retry-after").is_some(), "{}", answer.brief());
}

/// Changes the skill as it is now. Whoever is told of an old one looks again.
fn change(client: &mut Client, summary: &str, patience: Duration) -> Answer {
    let end = Instant::now() + patience;
    loop {
        let now = client.get("/api/v1/skills/kept").unwrap();
        let etag = now.header("etag").unwrap_or("\"1\"").to_owned();
        let body = json!({"core_content": format!("# {summary}\n"), "change_summary": summary});
        let headers = [("If-Match", etag.as_str())];
        let put = client.ask("PUT", "/api/v1/skills/kept", &headers, Some(&body)).unwrap();
        if put.status != 412 || Instant::now() > end {
            return put;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn call(client: &mut Client, id: &str, tool: &str) -> Answer {
    let call = json!({"id": id, "name": tool, "arguments": {"skill": "kept"}});
    client.post("/api/v1/sessions/s/calls", &json!({"calls": [call]})).unwrap()
}

/// What changes something: a skill, a session, and who has one.
const ASKS: [fn(&mut Client) -> Answer; 3] = [
    |client| change(client, "never acknowledged", LIMIT),
    |client| call(client, "never", "load_skill"),
    |client| client.post("/api/v1/sessions", &session("never")).unwrap(),
];

fn ask_again_and_again(address: SocketAddr, number: usize, is_over: &AtomicBool) -> usize {
    let (mut client, mut asked) = (Client::new(address), 0);
    while !is_over.load(Ordering::SeqCst) {
        refused(&timed(|| ASKS[(number + asked) % ASKS.len()](&mut client)));
        asked += 1;
    }
    asked
}

/// The memory that a process has, in KiB.
fn memory(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Two networks with a wire; says so if there are none.
fn wire(test: &str) -> Option<Wire> {
    let wire = Wire::new();
    if wire.is_none() {
        skip(test, "namespaces and a wire between them need root, unshare, nsenter and ip");
    }
    wire
}

#[test]
fn postgres_is_stopped_and_started_again() {
    let test = "postgres_is_stopped_and_started_again";
    let Some(server) = PostgresServer::start(test, Sync::Disk) else { return };
    let ground = Ground::new(&server.url("postgres"));
    ground.survive(|| server.stop("immediate"), || server.begin());
}

#[test]
fn postgres_is_paused() {
    let Some(server) = PostgresServer::start("postgres_is_paused", Sync::Disk) else { return };
    let ground = Ground::new(&server.url("postgres"));
    ground.survive(|| server.pause(), || server.resume());
}

#[test]
fn the_network_to_postgres_is_cut() {
    let test = "the_network_to_postgres_is_cut";
    let Some(wire) = wire(test) else { return };
    let reach = Reach { through: wire.through(), addresses: net::THERE.to_owned() };
    let Some(_server) = PostgresServer::start_at(test, Sync::Disk, reach) else { return };
    let ground = Ground::new(&format!("postgres://prowess@{}:5432/postgres", net::THERE));
    ground.survive(|| wire.cut(), || wire.heal());
}

#[test]
fn one_postgres_is_lost_and_another_takes_over() {
    let test = "one_postgres_is_lost_and_another_takes_over";
    let Some(one) = PostgresServer::start(test, Sync::Disk) else { return };
    let two = one.follower();
    let url = format!("{},{}", one.url("postgres"), two.url("postgres"));
    let ground = Ground::new(&url);
    ground.survive(|| one.stop("immediate"), || two.promote());
}

#[test]
fn redis_is_stopped_and_started_again() {
    let test = "redis_is_stopped_and_started_again";
    let Some(server) = RedisServer::start_with(test, ALWAYS) else { return };
    let (ground, server) = (Ground::new(&server.url()), std::cell::RefCell::new(server));
    ground.survive(|| server.borrow_mut().kill(), || server.borrow_mut().start_again());
}

#[test]
fn redis_is_paused() {
    let Some(server) = RedisServer::start_with("redis_is_paused", ALWAYS) else { return };
    let ground = Ground::new(&server.url());
    ground.survive(|| server.pause(), || server.resume());
}

#[test]
fn the_network_to_redis_is_cut() {
    let test = "the_network_to_redis_is_cut";
    let Some(wire) = wire(test) else { return };
    let address = net::THERE.parse().unwrap();
    let Some(server) = RedisServer::start_at(test, address, &wire.through(), ALWAYS) else {
        return;
    };
    let ground = Ground::new(&server.url());
    ground.survive(|| wire.cut(), || wire.heal());
}

#[test]
fn a_postgres_that_cannot_be_written_to_is_noticed() {
    let test = "a_postgres_that_cannot_be_written_to_is_noticed";
    let Some(server) = PostgresServer::start(test, Sync::Disk) else { return };
    let ground = Ground::new(&server.url("postgres"));
    let read_only = |word: &str| server.set(&format!("default_transaction_read_only = {word}"));
    ground.notice(|| read_only("on"), || read_only("off"));
}

#[test]
fn a_redis_that_cannot_be_written_to_is_noticed() {
    let test = "a_redis_that_cannot_be_written_to_is_noticed";
    let Some(server) = RedisServer::start_with(test, ALWAYS) else { return };
    let ground = Ground::new(&server.url());
    let memory = |bytes: u32| {
        let mut set = redis::cmd("CONFIG");
        set.arg("SET").arg("maxmemory").arg(bytes).exec(&mut server.connection()).unwrap();
    };
    ground.notice(|| memory(1), || memory(0));
}
