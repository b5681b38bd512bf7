//! Whoever makes and removes containers: a thread of its own, so that a container is removed though
//! nobody waits for it any more.

use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;

use super::super::ExecError;
use super::super::supervised::find_supervisor;
use super::super::work::io;
use super::carried::Carried;
use super::engine::{Engine, labels};
use super::held::Held;
use super::plan::{Common, Plan};
use super::pool::Pool;
use super::{Origin, open};

/// How long the end of a keeper waits for the engine.
const MOST_PATIENCE: Duration = Duration::from_secs(10);

/// How often it is looked whether a container has waited for too long.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// How many containers are made at once: an engine is no faster if more are asked for.
const AT_ONCE: usize = 4;

/// Asks for a container, or for its end.
enum Job {
    /// Whoever gets it can have it removed.
    Make(Box<Plan>, Jobs, Reply),
    Remove(String),
}

type Reply = Box<dyn FnOnce(Result<Held, ExecError>) + Send>;

/// Where containers are sent to be removed.
#[derive(Clone, Debug)]
pub(crate) struct Jobs(mpsc::UnboundedSender<Job>);

impl Jobs {
    pub(crate) fn remove(&self, id: String) {
        // Without a keeper, the next one finds it.
        let _ = self.0.send(Job::Remove(id));
    }
}

impl std::fmt::Debug for Job {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Make(..) => "Make",
            Self::Remove(_) => "Remove",
        })
    }
}

/// Makes and removes containers. When it goes, it first removes those that are to be removed.
#[derive(Debug)]
pub(crate) struct Keeper {
    jobs: Option<Jobs>,
    /// Ends when everything is done.
    at_work: Mutex<Receiver<()>>,
    engine: Engine,
    common: Arc<Common>,
}

impl Keeper {
    /// Finds the engine and the image, and removes what was abandoned. Blocks.
    pub(crate) fn start(origin: &Origin, pool: Weak<Mutex<Pool<Held>>>) -> Result<Self, ExecError> {
        let patience = Duration::from_secs(origin.settings.engine_seconds.max(1));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(io("starting the keeper of containers"))?;
        let supervisor = find_supervisor(origin.supervisor.clone())?;
        let carried = Carried::find(&supervisor).map_err(|error| ExecError::Supervisor {
            cause: format!("{}: {error}", supervisor.display()),
        })?;
        let prepare = async {
            let engine = Engine::find(&origin.settings.engine, patience).await?;
            let about = engine.about().await?;
            let common = Common {
                image: engine.image(&origin.settings.image).await?,
                cpus: i64::from(origin.settings.cpus).clamp(1, about.cpus.max(1)),
                carried,
                skills_root: origin.skills_root.clone(),
                is_rootless: about.is_rootless,
                labels: labels(),
            };
            engine.reap(patience).await?;
            Ok((engine, Arc::new(common)))
        };
        let (engine, common) = runtime.block_on(prepare)?;
        let (send, mut receive) = mpsc::unbounded_channel();
        let jobs = Jobs(send);
        let (at_work, shared) = (engine.clone(), Arc::clone(&common));
        let work = async move {
            let turns = Arc::new(Semaphore::new(AT_ONCE));
            let mut tasks = JoinSet::new();
            loop {
                let job = match tokio::time::timeout(LOOK_EVERY, receive.recv()).await {
                    Ok(Some(job)) => job,
                    Ok(None) => break,
                    Err(_) => {
                        let old = pool.upgrade().map(|pool| open(&pool).overdue(Instant::now()));
                        drop(old);
                        continue;
                    }
                };
                let (engine, common) = (at_work.clone(), Arc::clone(&shared));
                match job {
                    Job::Remove(id) => drop(tasks.spawn(async move { engine.remove(&id).await })),
                    Job::Make(plan, jobs, reply) => {
                        let turns = Arc::clone(&turns);
                        let make = async move {
                            let _turn = turns.acquire().await;
                            engine.make(&common, &plan, patience).await
                        };
                        drop(tasks.spawn(async move {
                            let made = make.await;
                            // It says something first, and must not keep others waiting meanwhile.
                            let greet =
                                move || reply(made.and_then(|made| Held::greet(made, jobs)));
                            let _ = tokio::task::spawn_blocking(greet).await;
                        }));
                    }
                }
                while tasks.try_join_next().is_some() {}
            }
            while tasks.join_next().await.is_some() {}
        };
        let thread = std::thread::Builder::new().name("prowess-containers".to_owned());
        let (done, at_work) = sync_channel(0);
        let work = move || {
            runtime.block_on(work);
            drop(done);
        };
        thread.spawn(work).map_err(io("starting the keeper of containers"))?;
        Ok(Self { jobs: Some(jobs), at_work: Mutex::new(at_work), engine, common })
    }

    pub(crate) fn common(&self) -> &Common {
        &self.common
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Has a container made; whoever wants it is given it, and it is removed if nobody does.
    pub(crate) fn make(
        &self,
        plan: Plan,
        reply: impl FnOnce(Result<Held, ExecError>) + Send + 'static,
    ) {
        let Some(jobs) = &self.jobs else { return };
        // It is there as long as this is.
        let _ = jobs.0.send(Job::Make(Box::new(plan), jobs.clone(), Box::new(reply)));
    }

    /// A container that was made for this.
    pub(crate) fn made(&self, plan: Plan) -> oneshot::Receiver<Result<Held, ExecError>> {
        let (send, receive) = oneshot::channel();
        self.make(plan, move |made| drop(send.send(made)));
        receive
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.jobs.take();
        // They have ended already. What an engine does not remove in time, the next keeper will.
        let at_work = self.at_work.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = at_work.recv_timeout(MOST_PATIENCE);
    }
}
