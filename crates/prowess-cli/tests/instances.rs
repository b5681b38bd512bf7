//! Several `prowess serve` on one store (S12): one truth.

#[path = "../../prowess-store/tests/support/postgres_server.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod postgres_server;
#[path = "../../prowess-store/tests/redis_server/mod.rs"]
mod redis_server;
#[path = "support/service/mod.rs"]
mod service;
mod support;

use std::any::Any;
use std::fs;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use postgres_server::{PostgresServer, Sync};
use redis_server::RedisServer;
use serde_json::{Value, json};
use service::{Answer, Service, kill_instances, skill};
use sqlx::{Connection, PgConnection};
use support::skip;

/// Longer than anything takes, however slow the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// A store, and the instances on it.
struct Ground {
    folder: tempfile::TempDir,
    store: Option<String>,
    /// Ended when the instances are.
    _server: Option<Box<dyn Any>>,
}

impl Ground {
    /// Instances on one machine that share a home.
    fn sqlite(_: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        Some(Self { folder, store: None, _server: None })
    }

    /// Instances on machines of their own, as it were.
    fn postgres(test: &str) -> Option<Self> {
        let server = PostgresServer::start(test, Sync::Disk)?;
        let url = server.url("postgres");
        let folder = tempfile::tempdir().unwrap();
        Some(Self { folder, store: Some(url), _server: Some(Box::new(server)) })
    }

    /// The same, with a Redis that writes before it answers.
    fn redis(test: &str) -> Option<Self> {
        let durable = ["--appendonly", "yes", "--appendfsync", "always"];
        let server = RedisServer::start_with(test, &durable)?;
        let folder = tempfile::tempdir().unwrap();
        Some(Self { folder, store: Some(server.url()), _server: Some(Box::new(server)) })
    }

    /// Nobody is told of changes for a moment: those who tell lose their connections, as soon as
    /// they have some.
    fn silence(&self) {
        let Some(url) = &self.store else { return };
        let end = Instant::now() + PATIENCE;
        while cut_off(url) == 0 {
            assert!(Instant::now() < end, "nobody listens");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// An instance. Where the store is elsewhere, each has a home of its own.
    fn instance(&self, name: &str) -> Service {
        let home = match self.store {
            Some(_) => self.folder.path().join(name),
            None => self.folder.path().to_owned(),
        };
        fs::create_dir_all(&home).unwrap();
        // Nobody waits long for one that was killed.
        fs::write(home.join("prowess.toml"), "[store]\nlease_seconds = 2\n").unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_prowess"));
        Service::start_on(program, &home, self.store.as_deref()).unwrap()
    }
}

/// Each promise becomes a test on each store.
macro_rules! on_each_store {
    ($($promise:ident)+) => {
        on_each_store!(sqlite: $($promise)+);
        on_each_store!(postgres: $($promise)+);
        on_each_store!(redis: $($promise)+);
    };
    ($store:ident: $($promise:ident)+) => {
        mod $store {
            $(
                #[test]
                fn $promise() {
                    let test = concat!("instances::", stringify!($store), "::", stringify!($promise));
                    if let Some(ground) = super::Ground::$store(test) {
                        super::$promise(&ground);
                    }
                }
            )+
        }
    };
}

on_each_store! {
    a_change_made_on_one_is_served_by_the_others
    twenty_changes_are_each_served_by_the_others_at_once
    a_change_arrives_without_notices_too
    whoever_follows_at_one_hears_what_happens_at_another
    of_writers_on_two_instances_one_wins_and_the_other_is_told
    a_session_moves_in_the_middle_of_a_conversation
    what_happens_on_one_is_told_to_those_who_listen_at_another
    a_call_that_is_repeated_elsewhere_is_carried_out_once
    what_a_killed_instance_has_begun_is_taken_over
    ten_kills_under_load_lose_nothing_and_do_nothing_twice
}

/// Ends the connections of those who listen for changes, and says how many there were.
fn cut_off(url: &str) -> u64 {
    if url.starts_with("redis") {
        let mut connection = ::redis::Client::open(url).unwrap().get_connection().unwrap();
        let mut kill = ::redis::cmd("CLIENT");
        return kill.arg("KILL").arg("TYPE").arg("pubsub").query(&mut connection).unwrap();
    }
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio.block_on(async {
        let mut connection = PgConnection::connect(url).await.unwrap();
        let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                   WHERE query ~ '^(LISTEN .*|SELECT 1)$'";
        let ended: i64 = sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap();
        ended.unsigned_abs()
    })
}

/// Asks again and again until an answer is as it should be.
fn until(instance: &Service, path: &str, is_so: impl Fn(&Answer) -> bool) -> Answer {
    let end = Instant::now() + PATIENCE;
    loop {
        let answer = instance.client().get(path).unwrap();
        if is_so(&answer) {
            return answer;
        }
        assert!(Instant::now() < end, "{path}: {}", answer.brief());
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn post(instance: &Service, path: &str, body: &Value) -> Answer {
    let answer = instance.client().post(path, body).unwrap();
    assert!((200..300).contains(&answer.status), "{path}: {}", answer.brief());
    answer
}

fn put(instance: &Service, id: &str, etag: &str, body: &Value) -> Answer {
    let path = format!("/api/v1/skills/{id}");
    instance.client().ask("PUT", &path, &[("If-Match", etag)], Some(body)).unwrap()
}

#[expect(clippy::needless_pass_by_value, reason = "callers write it in its place")]
fn call(id: &str, tool: &str, arguments: Value) -> Value {
    json!({"calls": [{"id": id, "name": tool, "arguments": arguments}]})
}

fn a_change_made_on_one_is_served_by_the_others(ground: &Ground) {
    let (one, two) = (ground.instance("one"), ground.instance("two"));
    post(&one, "/api/v1/skills", &skill("shared", 500));
    let first = until(&two, "/api/v1/skills/shared", |it| it.status == 200);
    let changed = json!({"core_content": "It was changed on the second one.\n"});
    let etag = first.header("etag").unwrap();
    assert_eq!(put(&two, "shared", etag, &changed).status, 200);
    until(&one, "/api/v1/skills/shared", |it| it.json()["active_version"] == 2);
    let back = "/api/v1/skills/shared/versions/1/activate";
    post(&one, back, &json!({}));
    until(&two, "/api/v1/skills/shared", |it| it.json()["active_version"] == 1);
    let gone = two.client().ask("DELETE", "/api/v1/skills/shared", &[], None).unwrap();
    assert_eq!(gone.status, 200, "{}", gone.brief());
    until(&one, "/api/v1/skills/shared", |it| it.status == 404);
}

/// Makes a version of the shared skill, and says how long the other instance takes to serve it.
fn latency(one: &Service, two: &Service, number: u64) -> Duration {
    let mut client = one.client();
    let now = client.get("/api/v1/skills/shared").unwrap();
    let change = json!({"core_content": format!("It was changed {number} times.\n")});
    let made = put(one, "shared", now.header("etag").unwrap(), &change);
    assert_eq!(made.status, 200, "{}", made.brief());
    let made = Instant::now();
    until(two, "/api/v1/skills/shared", |it| it.json()["active_version"] == number + 1);
    made.elapsed()
}

fn twenty_changes_are_each_served_by_the_others_at_once(ground: &Ground) {
    let (one, two) = (ground.instance("one"), ground.instance("two"));
    post(&one, "/api/v1/skills", &skill("shared", 500));
    until(&two, "/api/v1/skills/shared", |it| it.status == 200);
    let mut latencies: Vec<_> = (1..=20).map(|number| latency(&one, &two, number)).collect();
    latencies.sort();
    // Who is not told looks every second; more is the machine's.
    assert!(latencies[19] < Duration::from_secs(5), "{latencies:?}");
    if ground.store.is_some() {
        // Each change comes right after the last look: without notices, all of them take a second.
        assert!(latencies[9] < Duration::from_millis(300), "{latencies:?}");
        // Once in a while a machine is busy with something else.
        assert!(latencies[17] < Duration::from_secs(1), "{latencies:?}");
    }
}

fn a_change_arrives_without_notices_too(ground: &Ground) {
    let (one, two) = (ground.instance("one"), ground.instance("two"));
    post(&one, "/api/v1/skills", &skill("shared", 500));
    until(&two, "/api/v1/skills/shared", |it| it.status == 200);
    for number in 1..=3 {
        ground.silence();
        let latency = latency(&one, &two, number);
        // By itself it looks every second; more is the machine's.
        assert!(latency < Duration::from_secs(5), "{latency:?}");
    }
}

fn whoever_follows_at_one_hears_what_happens_at_another(ground: &Ground) {
    let (one, two) = (ground.instance("one"), ground.instance("two"));
    post(&one, "/api/v1/sessions", &json!({"session_id": "s"}));
    let mut stream = two.client().follow("/api/v1/sessions/s/events").unwrap();
    for turn in ["First", "Second"] {
        let begun = Instant::now();
        post(&one, "/api/v1/sessions/s/turns", &json!({"text": turn}));
        stream.until("event: turn_begun").unwrap();
        let told = begun.elapsed();
        // Who is not told looks after five seconds.
        assert!(ground.store.is_none() || told < Duration::from_secs(3), "{turn}: {told:?}");
    }
}

fn of_writers_on_two_instances_one_wins_and_the_other_is_told(ground: &Ground) {
    let (one, two) = (ground.instance("one"), ground.instance("two"));
    post(&one, "/api/v1/skills", &skill("shared", 500));
    let first = until(&two, "/api/v1/skills/shared", |it| it.status == 200);
    let etag = first.header("etag").unwrap().to_owned();
    let change = |text: &str| json!({"core_content": format!("{text}, and nobody else.\n")});
    assert_eq!(put(&one, "shared", &etag, &change("One")).status, 200);
    let late = put(&two, "shared", &etag, &change("Two"));
    assert_eq!((late.status, late.json()["code"].as_str()), (412, Some("stale")));
    let metrics = "/api/v1/skills/shared/metrics";
    for (instance, session) in [(&one, "a"), (&two, "b"), (&one, "b"), (&two, "a")] {
        post(instance, "/api/v1/skills/shared/load", &json!({"session_id": session}));
    }
    for instance in [&one, &two] {
        let counted = instance.client().get(metrics).unwrap().json();
        assert_eq!((&counted["total_loads"], &counted["unique_sessions"]), (&json!(4), &json!(2)));
    }
}

fn a_session_moves_in_the_middle_of_a_conversation(ground: &Ground) {
    let (one, two) = (ground.instance("one"), ground.instance("two"));
    post(&one, "/api/v1/skills", &skill("shared", 500));
    until(&two, "/api/v1/skills/shared", |it| it.status == 200);
    post(&one, "/api/v1/sessions", &json!({"session_id": "s"}));
    post(&two, "/api/v1/sessions/s/turns", &json!({"text": "How is it done?"}));
    let load = call("c1", "load_skill", json!({"skill": "shared"}));
    let loaded = post(&one, "/api/v1/sessions/s/calls", &load).json();
    assert_eq!(loaded["results"][0]["is_error"], false, "{loaded}");
    // The other one knows what was loaded, and what the model has seen.
    let [here, there] =
        [&one, &two].map(|it| it.client().get("/api/v1/sessions/s/prompt").unwrap());
    assert_eq!(here.json(), there.json());
    assert!(there.brief().contains("200"), "{}", there.brief());
    let text = String::from_utf8_lossy(&there.body).into_owned();
    assert!(text.contains("Read the table, note what is new"), "{text}");
    let again = call("c2", "load_skill", json!({"skill": "shared"}));
    let again = post(&two, "/api/v1/sessions/s/calls", &again).json();
    assert_eq!(again["results"][0]["code"], "already_loaded", "{again}");
}

fn what_happens_on_one_is_told_to_those_who_listen_at_another(ground: &Ground) {
    let (one, two) = (ground.instance("one"), ground.instance("two"));
    post(&one, "/api/v1/sessions", &json!({"session_id": "s"}));
    post(&one, "/api/v1/sessions/s/turns", &json!({"text": "Begin"}));
    let path = "/api/v1/sessions/s/events?follow=false";
    let heard = until(&two, path, |it| !it.body.is_empty());
    assert_eq!(heard.body, one.client().get(path).unwrap().body);
}

/// A skill whose command says that it has begun, takes its time, and says something new each time.
fn slow_skill(seconds: u32) -> Value {
    let mut skill = skill("slow", 100);
    let script = format!("sleep {seconds}\ncat /proc/sys/kernel/random/uuid\n");
    skill["scripts"] = json!([{
        "name": "slow.sh", "description": "Takes its time", "language": "bash", "content": script,
    }]);
    skill
}

fn run_slowly(instance: &Service) -> JoinHandle<Option<Value>> {
    let mut client = instance.client();
    let run = call("c2", "skill_run", json!({"skill": "slow", "command": "bash scripts/slow.sh"}));
    std::thread::spawn(move || {
        let answer = client.post("/api/v1/sessions/s/calls", &run).ok()?;
        assert_eq!(answer.status, 200, "{}", answer.brief());
        Some(answer.json())
    })
}

/// Two instances, and a session in which a slow skill is loaded.
fn with_slow_skill(ground: &Ground, seconds: u32) -> [Service; 2] {
    let (one, two) = (ground.instance("one"), ground.instance("two"));
    post(&one, "/api/v1/skills", &slow_skill(seconds));
    until(&two, "/api/v1/skills/slow", |it| it.status == 200);
    post(&one, "/api/v1/sessions", &json!({"session_id": "s"}));
    let load = call("c1", "load_skill", json!({"skill": "slow"}));
    post(&one, "/api/v1/sessions/s/calls", &load);
    [one, two]
}

/// What a run has said.
fn said(answer: &Value) -> String {
    let result = &answer["results"][0];
    assert_eq!(result["is_error"], false, "{result}");
    result["content"].as_str().unwrap().to_owned()
}

fn a_call_that_is_repeated_elsewhere_is_carried_out_once(ground: &Ground) {
    let [one, two] = with_slow_skill(ground, 3);
    let first = run_slowly(&one);
    std::thread::sleep(Duration::from_millis(500));
    let again = run_slowly(&two);
    let [first, again] = [first, again].map(|it| said(&it.join().unwrap().unwrap()));
    assert_eq!(first, again);
}

fn what_a_killed_instance_has_begun_is_taken_over(ground: &Ground) {
    let [mut one, two] = with_slow_skill(ground, 3);
    let lost = run_slowly(&one);
    std::thread::sleep(Duration::from_millis(500));
    one.kill();
    assert_eq!(lost.join().unwrap(), None, "it was answered although it was killed");
    let again = run_slowly(&two).join().unwrap().unwrap();
    assert!(said(&again).contains('-'), "{again}");
    // It was committed once.
    let state = two.client().get("/api/v1/sessions/s").unwrap().json();
    assert_eq!(state["revision"], 3, "{state}");
}

fn ten_kills_under_load_lose_nothing_and_do_nothing_twice(ground: &Ground) {
    let start = |at: usize| Ok(ground.instance(["one", "two"][at]));
    let done = kill_instances(start, 10, |_| {}).unwrap();
    assert_eq!(done.problems, Vec::<String>::new());
    // Otherwise nothing was at stake.
    assert!(done.loads > 10 && done.versions > 10 && done.again > 0, "{done:?}");
    assert!(done.answered.iter().all(|answered| *answered > 20), "{done:?}");
}
