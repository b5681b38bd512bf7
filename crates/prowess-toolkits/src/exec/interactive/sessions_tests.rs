use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use prowess_runtime::{AgentName, SessionKey};
use prowess_workspace::{
    Command, ExecFuture, Executor, Isolation, Limits, Run, RunOutcome, Tier, WorkspaceId,
    Workspaces,
};

use super::super::super::cwd::Begin;
use super::super::super::plan::Plan;
use super::super::super::run_folder::RunFolder;
use super::super::super::settings::{ExecSettings, Grants};
use super::super::session::AfterInput;
use super::*;
use crate::place::folder;

/// Runs nothing: a run ends when it is stopped, and who drops it is counted.
#[derive(Default)]
struct Idle {
    running: Arc<AtomicUsize>,
}

struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn isolation() -> Isolation {
    Isolation::new(Tier::T0, BTreeMap::new())
}

impl Executor for Idle {
    fn isolation(&self) -> ExecFuture<'_, Isolation> {
        Box::pin(async { Ok(isolation()) })
    }

    fn run<'a>(&'a self, run: Run<'a>) -> ExecFuture<'a, RunOutcome> {
        self.running.fetch_add(1, Ordering::SeqCst);
        let counted = Counted(Arc::clone(&self.running));
        Box::pin(async move {
            run.stop.as_ref().unwrap().cancelled().await;
            drop(counted);
            Ok(RunOutcome::new(0, Duration::ZERO, isolation()))
        })
    }
}

struct World {
    _folder: tempfile::TempDir,
    runner: Runner,
    sessions: Arc<Sessions>,
    running: Arc<AtomicUsize>,
    /// Seconds that have gone by.
    seconds: Arc<AtomicU64>,
}

impl World {
    fn new(change: impl FnOnce(&mut SessionSettings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let executor = Idle::default();
        let running = Arc::clone(&executor.running);
        let workspaces = Workspaces::new(folder.path().join("workspaces"));
        let mut runner = Runner::new(workspaces, Arc::new(executor));
        let mut settings = ExecSettings::default();
        change(&mut settings.sessions);
        runner.settings = Arc::new(settings);
        let (seconds, begun) = (Arc::new(AtomicU64::new(0)), Instant::now());
        let passed = Arc::clone(&seconds);
        let now = move || begun + Duration::from_secs(passed.load(Ordering::SeqCst));
        let sessions = Sessions { all: Mutex::default(), clock: Clock(Arc::new(now)) };
        Self { _folder: folder, runner, sessions: Arc::new(sessions), running, seconds }
    }

    fn owner(&self, name: &str) -> Owner {
        let session: SessionKey = name.parse().unwrap();
        Owner::new(session, AgentName::default())
    }

    fn begin(&self, owner: &Owner) -> Result<Arc<Session>, TooMany> {
        let id = WorkspaceId::new("app", "user", "session");
        let workspace = self.runner.workspaces.open(&id).unwrap();
        let run_folder = RunFolder::new(workspace.clone()).unwrap();
        let command = Command::Shell("idle".to_owned());
        let plan = Plan {
            workspace,
            run_folder,
            skill: None,
            skills_dir: None,
            begin: Begin { cwd: folder("work"), command },
            env: BTreeMap::new(),
            limits: Limits::default(),
            grants: Grants::default(),
        };
        let beginning = Beginning {
            owner: owner.clone(),
            family: Family::Workspace,
            plan,
            after: None,
            input: Vec::new(),
            then: AfterInput::Wait,
            terminal: None,
        };
        self.sessions.begin(beginning, &self.runner)
    }

    fn find(&self, id: &str, owner: &Owner) -> Option<Arc<Session>> {
        self.sessions.find(id, owner, Family::Workspace, &self.runner.settings.sessions)
    }

    /// Waits until so many runs are there.
    async fn has_running(&self, count: usize) {
        for _ in 0..2000 {
            if self.running.load(Ordering::SeqCst) == count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("{} run, not {count}", self.running.load(Ordering::SeqCst));
    }
}

async fn end(session: &Session) {
    session.stop();
    session.screen().finish().await;
    session.see();
}

#[tokio::test]
async fn a_session_is_kept_for_its_time_after_its_end_and_no_longer() {
    let world = World::new(|settings| settings.ttl_seconds = 1800);
    let owner = world.owner("a");
    let (ended, running) = (world.begin(&owner).unwrap(), world.begin(&owner).unwrap());
    end(&ended).await;
    world.seconds.store(1799, Ordering::SeqCst);
    assert!(world.find(&ended.id, &owner).is_some());
    world.seconds.store(1800, Ordering::SeqCst);
    assert!(world.find(&ended.id, &owner).is_none());
    // One that runs is kept however long it runs.
    assert!(world.find(&running.id, &owner).is_some());
    assert_eq!(world.sessions.running(), 1);
}

#[tokio::test]
async fn a_session_goes_though_nobody_asks() {
    let world = World::new(|settings| settings.ttl_seconds = 0);
    let session = world.begin(&world.owner("a")).unwrap();
    end(&session).await;
    for _ in 0..2000 {
        if world.sessions.all().is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it is still there");
}

#[tokio::test]
async fn there_are_no_more_sessions_than_allowed() {
    let world = World::new(|settings| {
        (settings.max_sessions, settings.max_total_sessions) = (2, 3);
    });
    let (a, b) = (world.owner("a"), world.owner("b"));
    let first = world.begin(&a).unwrap();
    let _second = world.begin(&a).unwrap();
    assert_eq!(world.begin(&a).err(), Some(TooMany::Own { most: 2 }));
    let _third = world.begin(&b).unwrap();
    assert_eq!(world.begin(&b).err(), Some(TooMany::All { most: 3 }));
    // One that has ended still counts until somebody knows.
    first.stop();
    first.screen().finish().await;
    assert_eq!(world.begin(&a).err(), Some(TooMany::Own { most: 2 }));
    first.see();
    let fourth = world.begin(&a).unwrap();
    assert!(world.find(&first.id, &a).is_none() && world.find(&fourth.id, &a).is_some());
    world.has_running(3).await;
}

#[tokio::test]
async fn nobody_finds_the_session_of_somebody_else() {
    let world = World::new(|_| {});
    let owner = world.owner("app/alice/1");
    let session = world.begin(&owner).unwrap();
    for other in ["app/alice/2", "app/bob/1", "other/alice/1"] {
        assert!(world.find(&session.id, &world.owner(other)).is_none(), "{other}");
    }
    let agent = AgentName::new("helper").unwrap();
    let key: SessionKey = "app/alice/1".parse().unwrap();
    assert!(world.find(&session.id, &Owner::new(key, agent)).is_none());
    let settings = &world.runner.settings.sessions;
    assert!(world.sessions.find(&session.id, &owner, Family::Skill, settings).is_none());
    assert!(world.find("none", &owner).is_none());
    assert!(world.find(&session.id, &owner).is_some());
}

#[tokio::test]
async fn everything_ends_with_the_toolkit() {
    let world = World::new(|_| {});
    let owner = world.owner("a");
    for _ in 0..3 {
        drop(world.begin(&owner).unwrap());
    }
    world.has_running(3).await;
    let first = world.sessions.all().keys().next().unwrap().clone();
    drop(world.sessions.take(&first));
    world.has_running(2).await;
    let World { sessions, running, .. } = world;
    drop(sessions);
    for _ in 0..2000 {
        if running.load(Ordering::SeqCst) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("something runs");
}
