//! What becomes of sessions and skills in Redis when the server is away, and comes back.

mod support;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use prowess_catalog::{ContentFile, ContentStore, ResourcePath, SkillContents};
use prowess_format::{Options, Skill};
use prowess_runtime::{Event, EventKind, Message, Revision, SessionStore, StoreError};
use prowess_store::{
    About, Actor, Durability, NewVersion, RedisStore, SkillId, UsageStore, VersionError,
    VersionStore,
};
use support::redis_server::{ALWAYS, EVERY_SECOND, RedisServer};
use support::{events, key, main_agent, remember, said, say, transcript};

/// Longer than any operation may take.
const LIMIT: Duration = Duration::from_secs(15);
const PATIENCE: Duration = Duration::from_secs(60);
const KILLS: usize = 20;

async fn open(server: &RedisServer) -> RedisStore {
    RedisStore::open(&server.url(), RedisStore::PREFIX).await.unwrap()
}

fn new(skill: &SkillId, body: &str) -> NewVersion {
    let text = format!("---\nname: {skill}\ndescription: For tests.\n---\n{body}\n");
    let about = About::of(&Skill::parse_bytes(text.as_bytes(), &Options::new()).skill.unwrap());
    let file = ContentFile::new(ResourcePath::parse("SKILL.md").unwrap(), false, text);
    let contents = SkillContents::of(vec![file]).into();
    NewVersion::new(skill.clone(), contents, about, Actor::local())
}

/// A commit that uses a skill.
async fn use_skill(
    store: &dyn SessionStore,
    session: &str,
    expected: u64,
) -> Result<Revision, StoreError> {
    let (agent, text) = (main_agent(), expected.to_string());
    let delta = remember(&agent, "said", &*text).with_messages(vec![Message::user(&*text)]);
    let event = Event::new(EventKind::SkillLoaded, &agent, 0, &text).with_skill("greet");
    store.commit(&key(session), Revision(expected), delta, vec![event]).await
}

/// Tries until the server is there again.
async fn recovered(store: &RedisStore) {
    let end = Instant::now() + PATIENCE;
    while let Err(error) = store.sessions().list().await {
        assert!(Instant::now() < end, "{error}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_stopped_refuses_and_is_found_again() {
    let Some(mut server) =
        RedisServer::start_with("a_server_that_is_stopped_refuses_and_is_found_again", ALWAYS)
    else {
        return;
    };
    let store = open(&server).await;
    assert_eq!(store.durability(), Durability::Always);
    let (sessions, versions, id) = (store.sessions(), store.versions(), "greet".parse().unwrap());
    say(&sessions, &key("a"), 0, "before").await.unwrap();
    versions.append(new(&id, "before")).await.unwrap();
    for round in 0..3 {
        server.kill();
        let begun = Instant::now();
        let error = say(&sessions, &key("a"), 1, "meanwhile").await.unwrap_err();
        assert_eq!(error.code(), "store_unavailable", "{error}");
        let error = versions.append(new(&id, "meanwhile")).await.unwrap_err();
        assert_eq!(error.code(), "store_unavailable", "{error}");
        assert_eq!(sessions.get(&key("a")).await.unwrap_err().code(), "store_unavailable");
        assert_eq!(store.usage().totals().await.unwrap_err().code(), "store_unavailable");
        let content = store.content();
        let put = tokio::task::spawn_blocking(move || content.put(b"meanwhile")).await.unwrap();
        assert_eq!(put.unwrap_err().code(), "store_unavailable");
        assert!(begun.elapsed() < LIMIT, "{:?}", begun.elapsed());
        server.start_again();
        recovered(&store).await;
        assert_eq!(transcript(&sessions, &key("a"), &main_agent()).await, ["before"], "{round}");
        assert_eq!(versions.versions(&id, 0, 10).await.unwrap().total, 1, "{round}");
    }
    say(&sessions, &key("a"), 1, "after").await.unwrap();
    versions.append(new(&id, "after")).await.unwrap();
}

/// What somebody is told for whom there is no room any more, and after how long.
async fn crowd(store: &RedisStore) -> (StoreError, Duration) {
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..4200 {
        let sessions = store.sessions();
        tasks.spawn(async move {
            let begun = Instant::now();
            (sessions.get(&key("a")).await.unwrap_err(), begun.elapsed())
        });
    }
    // The first who is answered is one of them.
    tasks.join_next().await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_paused_is_not_waited_for_and_goes_on() {
    let Some(server) = RedisServer::start("a_server_that_is_paused_is_not_waited_for_and_goes_on")
    else {
        return;
    };
    let store = open(&server).await;
    let sessions = store.sessions();
    say(&sessions, &key("a"), 0, "before").await.unwrap();
    server.pause();
    let begun = Instant::now();
    let (one, two) = (key("a"), key("b"));
    let waiting = async {
        tokio::join!(
            say(&sessions, &one, 1, "x"),
            say(&sessions, &two, 0, "x"),
            sessions.get(&one),
            sessions.list(),
        )
    };
    let crowd = crowd(&store);
    let ((one, two, three, four), (refused, at_once)) = tokio::join!(waiting, crowd);
    assert!(refused.to_string().contains("4096 operations wait"), "{refused}");
    assert!(at_once < Duration::from_secs(5), "{at_once:?}");
    assert!(begun.elapsed() < LIMIT, "{:?}", begun.elapsed());
    let failed = [one.err(), two.err(), three.err(), four.err()];
    for error in failed {
        let error = error.expect("a server that does nothing has answered");
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    }
    server.resume();
    recovered(&store).await;
    // Nobody knows whether it was done; what is there is whole.
    let revision = sessions.get(&key("a")).await.unwrap().unwrap().revision.0;
    let heard = transcript(&sessions, &key("a"), &main_agent()).await;
    assert_eq!(heard.len() as u64, revision);
    assert_eq!(events(&sessions, &key("a")).await, heard);
    say(&sessions, &key("a"), revision, "after").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_was_acknowledged_is_lost_by_kills_where_each_write_is_synced() {
    let test = "nothing_that_was_acknowledged_is_lost_by_kills_where_each_write_is_synced";
    survive(test, ALWAYS, Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_there_after_kills_is_whole_where_writes_are_synced_every_second() {
    let test = "what_is_there_after_kills_is_whole_where_writes_are_synced_every_second";
    survive(test, EVERY_SECOND, Duration::from_secs(3)).await;
}

/// What was acknowledged, and when.
struct Acknowledged {
    highest: AtomicU64,
    times: Mutex<Vec<Instant>>,
}

impl Acknowledged {
    fn new() -> Self {
        Self { highest: AtomicU64::new(0), times: Mutex::default() }
    }

    fn highest(&self) -> u64 {
        self.highest.load(Ordering::SeqCst)
    }

    fn add(&self, number: u64) {
        let mut times = self.times.lock().unwrap();
        times.resize(number as usize, Instant::now());
        self.highest.store(number, Ordering::SeqCst);
    }

    /// That only so much is lost as was acknowledged this shortly before the last kill.
    fn compare(&self, there: u64, killed: &Mutex<Instant>, may_be_lost: Duration) {
        if there >= self.highest() {
            return;
        }
        let first_lost = self.times.lock().unwrap()[there as usize];
        let age = killed.lock().unwrap().saturating_duration_since(first_lost);
        assert!(age < may_be_lost, "{there} is there, {} was acknowledged", self.highest());
    }
}

/// Kills the server again and again while sessions and skills are changed. What was acknowledged so
/// shortly before a kill may be lost.
async fn survive(test: &str, settings: &[&str], may_be_lost: Duration) {
    const SESSIONS: usize = 4;
    let Some(mut server) = RedisServer::start_with(test, settings) else { return };
    let store = open(&server).await;
    let id: SkillId = "greet".parse().unwrap();
    store.versions().append(new(&id, "first")).await.unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let killed = Arc::new(Mutex::new(Instant::now()));
    let acknowledged: Vec<_> =
        std::iter::repeat_with(|| Arc::new(Acknowledged::new())).take(SESSIONS + 1).collect();
    let mut tasks = tokio::task::JoinSet::new();
    for (at, known) in acknowledged.iter().take(SESSIONS).enumerate() {
        let (sessions, is_over) = (store.sessions(), Arc::clone(&is_over));
        let (known, killed) = (Arc::clone(known), Arc::clone(&killed));
        tasks.spawn(async move {
            let name = at.to_string();
            while !is_over.load(Ordering::SeqCst) {
                let Ok(stored) = sessions.get(&key(&name)).await else { continue };
                let revision = stored.unwrap_or_default().revision.0;
                known.compare(revision, &killed, may_be_lost);
                match use_skill(&sessions, &name, revision).await {
                    Ok(Revision(next)) => known.add(next),
                    Err(StoreError::Unavailable { .. }) => tokio::task::yield_now().await,
                    Err(error) => panic!("{error}"),
                }
            }
        });
    }
    let (versions, over, skill) = (store.versions(), Arc::clone(&is_over), id.clone());
    let (known, killing) = (Arc::clone(&acknowledged[SESSIONS]), Arc::clone(&killed));
    tasks.spawn(async move {
        for body in 0.. {
            if over.load(Ordering::SeqCst) {
                return;
            }
            match versions.append(new(&skill, &body.to_string())).await {
                Ok(made) => {
                    known.compare(made.version.number - 1, &killing, may_be_lost);
                    known.add(made.version.number);
                }
                Err(VersionError::Unavailable(_)) => tokio::task::yield_now().await,
                Err(error) => panic!("{error}"),
            }
        }
    });
    for kill in 0..KILLS {
        let before: Vec<u64> = acknowledged.iter().map(|it| it.highest()).collect();
        let end = Instant::now() + PATIENCE;
        // Each of them has gone on since the last kill.
        while acknowledged.iter().zip(&before).any(|(it, old)| it.highest() == *old) {
            assert!(Instant::now() < end, "kill {kill}: nobody goes on");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        *killed.lock().unwrap() = Instant::now();
        server.kill();
        server.start_again();
    }
    recovered(&store).await;
    is_over.store(true, Ordering::SeqCst);
    tasks.join_all().await;
    for (at, known) in acknowledged.iter().take(SESSIONS).enumerate() {
        let there = store.sessions().get(&key(&at.to_string())).await.unwrap().unwrap().revision;
        known.compare(there.0, &killed, may_be_lost);
    }
    assert_whole(&store, &id, SESSIONS).await;
    // Also after one more, with nobody who counts what is left.
    let before = store.usage().totals().await.unwrap();
    if may_be_lost.is_zero() {
        server.start_again();
        recovered(&store).await;
        assert_eq!(store.usage().totals().await.unwrap(), before);
    }
}

/// No half of a commit is there, versions have no gaps, and what was used was counted once.
async fn assert_whole(store: &RedisStore, id: &SkillId, count: usize) {
    let mut all = 0;
    for at in 0..count {
        let (sessions, key) = (store.sessions(), key(&at.to_string()));
        let revision = sessions.get(&key).await.unwrap().unwrap().revision.0;
        let expected: Vec<String> = (0..revision).map(|at| at.to_string()).collect();
        assert_eq!(transcript(&sessions, &key, &main_agent()).await, expected);
        assert_eq!(events(&sessions, &key).await, expected);
        assert_eq!(said(&sessions, &key, &main_agent()).await, (revision - 1).to_string());
        all += revision;
    }
    assert!(all > 0);
    let listed = store.versions().versions(id, 0, usize::MAX).await.unwrap();
    let numbers: Vec<u64> = listed.items.iter().map(|version| version.number).collect();
    assert_eq!(numbers, (1..=listed.total).rev().collect::<Vec<_>>());
    let audit = store.versions().audit(None, usize::MAX).await.unwrap();
    assert_eq!(audit.len() as u64, listed.total);
    for version in &listed.items {
        store.versions().contents(version).await.unwrap();
    }
    let rows = store.usage().usage("greet").await.unwrap();
    assert_eq!(rows.rows.iter().map(|row| row.count).sum::<u64>(), all);
    assert_eq!(rows.unique_sessions, count as u64);
}
