//! A session's commit, against the bare client that sends the server the same.
//!
//! The servers themselves write down what they are sent, so that it is the same.

mod on_postgres;
mod on_redis;

use std::cell::RefCell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use prowess_format::Digest;
use prowess_runtime::{
    AgentName, Caps, Change, Event, EventKind, Fence, LoadedSkill, Message, Revision, SessionDelta,
    SessionKey, SessionStore, StateDelta,
};
use sqlx::{Connection, PgConnection};
use tokio::runtime::Runtime;

use crate::measure::turns;
use crate::results::Row;

/// How often the contenders take turns, a commit each.
const ROUNDS: usize = 1_001;
/// More commits than a session remembers calls: from then on its state does not grow.
const WARM_UP: usize = 100;
/// How many bytes a message has, about.
const MESSAGE: usize = 200;
/// Sessions are held, as instances do: longer than everything takes.
const LEASE: Duration = Duration::from_secs(3_600);
/// Names of sessions and numbers may have so many more digits.
const DIGITS: usize = 16;

pub(super) fn make_databases(url: &str, names: &[&str]) -> Result<()> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio.block_on(async {
        let mut connection = PgConnection::connect(url).await?;
        for name in names {
            let sql = sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"));
            sqlx::raw_sql(sql).execute(&mut connection).await?;
        }
        Ok(connection.close().await?)
    })
}

pub(super) fn rows(postgres: &str, redis: &str) -> Result<Vec<Row>> {
    let tokio =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut rows = Vec::new();
    for kind in [Kind::Call, Kind::Load] {
        rows.push(on_postgres::row(&tokio, postgres, kind)?);
        rows.push(on_redis::row(&tokio, redis, kind)?);
    }
    Ok(rows)
}

/// What a commit is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A call that nobody counts.
    Call,
    /// A skill that is loaded, which is counted.
    Load,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Load => "load",
        }
    }
}

/// What is committed, again and again: a state, two messages and an event.
struct Job {
    kind: Kind,
    key: SessionKey,
    agent: AgentName,
    skill: String,
    messages: Vec<Message>,
    event: Event,
}

impl Job {
    fn new(kind: Kind, who: &str) -> Result<Self> {
        let agent = AgentName::default();
        let skill = format!("skill-of-{who}");
        let event = match kind {
            Kind::Call => Event::new(EventKind::ToolCalled, &agent, 0, "called"),
            Kind::Load => {
                let mut event = Event::new(EventKind::SkillLoaded, &agent, 0, "loaded");
                event = event.with_skill(&skill);
                event.digest = Some(Digest::of(b""));
                event
            }
        };
        let text = "It says what was done. ".repeat(MESSAGE / 23);
        Ok(Self {
            kind,
            key: SessionKey::new("bench", kind.name(), who)?,
            messages: vec![Message::assistant(&*text), Message::user(&*text)],
            agent,
            skill,
            event,
        })
    }

    /// The change that makes the revision after this one.
    fn delta(&self, revision: Revision) -> SessionDelta {
        let skill = LoadedSkill::new(&*self.skill, Digest::of(b""));
        let change = Change::Load { skill: Box::new(skill), model: None };
        let call = format!("call-{:08}", revision.0);
        SessionDelta::new(self.agent.clone(), Caps::default())
            .with_deltas(vec![StateDelta::new(0, call, vec![change])])
            .with_messages(self.messages.clone())
    }

    fn message_texts(&self) -> Result<Vec<String>> {
        Ok(self.messages.iter().map(serde_json::to_string).collect::<Result<_, _>>()?)
    }

    fn event_text(&self) -> Result<String> {
        Ok(serde_json::to_string(&self.event)?)
    }

    /// The day of its event.
    fn day(&self) -> String {
        self.event.time.to_string().chars().take(10).collect()
    }
}

fn now() -> Result<i64> {
    Ok(i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?)
}

/// Our store, which does a job.
struct Ours<'a> {
    store: &'a dyn SessionStore,
    job: &'a Job,
    fence: Fence,
    revision: Revision,
}

impl<'a> Ours<'a> {
    async fn new(store: &'a dyn SessionStore, job: &'a Job) -> Result<Self> {
        let fence = store.lease(&job.key, "bench", LEASE).await?;
        let found = store.get(&job.key).await?;
        let revision = found.map(|it| it.revision).unwrap_or_default();
        Ok(Self { store, job, fence, revision })
    }

    async fn commit(&mut self) -> Result<()> {
        let Self { store, job, fence, revision } = self;
        let delta = job.delta(*revision).with_fence(Some(*fence));
        let events = vec![job.event.clone()];
        *revision = store.commit(&job.key, *revision, delta, events).await?;
        Ok(())
    }

    /// Commits until the session is as large as it becomes.
    async fn warm_up(&mut self) -> Result<()> {
        for _ in 0..WARM_UP {
            self.commit().await?;
        }
        Ok(())
    }
}

/// Something that a server was sent.
struct Sent {
    /// The statement, or the script.
    what: String,
    /// What came with it.
    with: String,
}

/// Whether both have sent the same, except for names and numbers.
fn compare(ours: &[Sent], bare: &[Sent]) -> Result<()> {
    let texts = |sent: &[Sent]| sent.iter().map(|it| it.what.clone()).collect::<Vec<_>>();
    let (our_texts, bare_texts) = (texts(ours), texts(bare));
    ensure!(!ours.is_empty() && our_texts == bare_texts, "{our_texts:?}, but {bare_texts:?}");
    for (ours, bare) in ours.iter().zip(bare) {
        let (ours, bare) = (&ours.with, &bare.with);
        ensure!(ours.len().abs_diff(bare.len()) <= DIGITS, "{ours}, but {bare}");
    }
    Ok(())
}

/// The seconds that a commit takes, ours and the bare one.
fn measure(
    tokio: &Runtime,
    ours: impl AsyncFnMut() -> Result<()>,
    bare: impl AsyncFnMut() -> Result<()>,
) -> Result<[f64; 2]> {
    let failed = RefCell::new(Ok(()));
    let seconds = turns(
        ROUNDS,
        [&turn(tokio, RefCell::new(ours), &failed), &turn(tokio, RefCell::new(bare), &failed)],
    );
    failed.into_inner()?;
    Ok(seconds)
}

/// One commit, and what came of it if that is no good.
fn turn(
    tokio: &Runtime,
    commit: RefCell<impl AsyncFnMut() -> Result<()>>,
    failed: &RefCell<Result<()>>,
) -> impl Fn() {
    move || {
        if let Err(error) = tokio.block_on(commit.borrow_mut()()) {
            let mut failed = failed.borrow_mut();
            // The first one says why.
            if failed.is_ok() {
                *failed = Err(error);
            }
        }
    }
}

/// The row, if what the bare client has done is what the store would have.
async fn verdict(
    server: &str,
    store: &dyn SessionStore,
    bare: (&Job, u64),
    [ours, floor]: [f64; 2],
) -> Result<Row> {
    let (job, revision) = bare;
    let found = store.get(&job.key).await?.context("the bare client has no session")?;
    let messages = store.messages(&job.key, &job.agent).await?.len();
    ensure!(found.revision.0 == revision, "{} is not {revision}", found.revision.0);
    ensure!(messages as u64 == 2 * revision, "{messages} messages in {revision} revisions");
    let of = match job.kind {
        Kind::Call => "of a call",
        Kind::Load => "of a load, which is counted",
    };
    let what = format!("commit on {server} {of}, to the bare client with the same statements");
    let detail = format!("{:.2} ms to {:.2} ms, {ROUNDS} turns", ours * 1e3, floor * 1e3);
    Ok(Row::at_most(&what, ours / floor, 1.3, &detail))
}
