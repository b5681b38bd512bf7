//! Sessions in a SQLite database, on a thread of its own.

mod queries;
mod schema;

use std::path::{Path, PathBuf};
use std::sync::mpsc;

use prowess_runtime::{
    AgentName, Event, Lifetime, Message, Revision, SessionDelta, SessionKey, SessionStore,
    SessionSummary, StoreError, StoreFuture, StoredSession,
};
use rusqlite::Connection;
use tokio::sync::oneshot;

/// So many commits share one transaction at most, and thereby one wait for the disk.
const COMMITS_PER_TRANSACTION: usize = 256;

/// Why a database could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The folder cannot be made.
    #[error("cannot make the folder {path}: {cause}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        cause: std::io::Error,
    },
    /// SQLite refuses.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// It is somebody else's.
    #[error("the database belongs to another program")]
    Foreign,
    /// A newer program made it.
    #[error("the database has version {version}, this program knows {known}: update it")]
    Newer {
        /// Its version.
        version: usize,
        /// The newest one that is known.
        known: usize,
    },
    /// There is no thread for it.
    #[error("no thread for the database: {0}")]
    Thread(std::io::Error),
}

/// Sessions in a SQLite database.
///
/// One thread owns the connection. Commits that wait at the same time share one transaction, so
/// that many sessions wait for the disk together; each of them still succeeds or fails by itself.
/// Several processes may use one database.
///
/// ```no_run
/// use prowess_store::SqliteSessions;
///
/// let sessions = SqliteSessions::open("/var/lib/prowess/prowess.db").unwrap();
/// # let _ = sessions;
/// ```
#[derive(Debug)]
pub struct SqliteSessions {
    jobs: mpsc::Sender<Job>,
    lifetime: Lifetime,
}

type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

/// Something to do inside a transaction.
type Write = Box<dyn FnOnce(&Connection) -> Box<dyn FnOnce() + Send> + Send>;

enum Job {
    Read(Box<dyn FnOnce(&Connection) + Send>),
    /// Does its work and returns what answers it, once that is on the disk.
    Write(Write, Box<dyn FnOnce(StoreError) + Send>),
}

impl SqliteSessions {
    /// Opens a database, or makes it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|cause| OpenError::Folder { path: folder.to_owned(), cause })?;
        }
        let mut connection = Connection::open(path)?;
        schema::prepare(&mut connection)?;
        let (jobs, receiver) = mpsc::channel();
        std::thread::Builder::new()
            .name("prowess-sqlite".to_owned())
            .spawn(move || work(&mut connection, &receiver))
            .map_err(OpenError::Thread)?;
        Ok(Self { jobs, lifetime: Lifetime::default() })
    }

    /// How long sessions live after their last commit.
    pub fn with_lifetime(mut self, lifetime: Lifetime) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// Removes all sessions whose time is over, and says how many.
    pub async fn purge(&self) -> Result<usize, StoreError> {
        let now = self.lifetime.now();
        self.write(move |connection| queries::purge(connection, now)).await
    }

    fn read<'a, T: Send + 'static>(
        &'a self,
        question: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'a, T> {
        let (answer, answered) = oneshot::channel();
        let job = Job::Read(Box::new(move |connection| {
            // Whoever does not wait any more needs no answer.
            let _ = answer.send(question(connection));
        }));
        self.ask(job, answered)
    }

    fn write<'a, T: Send + 'static>(
        &'a self,
        change: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'a, T> {
        let (answer, answered) = oneshot::channel();
        let answer = std::sync::Arc::new(std::sync::Mutex::new(Some(answer)));
        let failed = std::sync::Arc::clone(&answer);
        let work: Write = Box::new(move |connection| {
            let result = change(connection);
            Box::new(move || reply(&answer, result))
        });
        let job = Job::Write(work, Box::new(move |error| reply(&failed, Err(error))));
        self.ask(job, answered)
    }

    fn ask<'a, T: Send + 'static>(
        &'a self,
        job: Job,
        answered: oneshot::Receiver<Result<T, StoreError>>,
    ) -> StoreFuture<'a, T> {
        let gone = || StoreError::Unavailable { cause: "its thread has ended".to_owned() };
        let sent = self.jobs.send(job).map_err(|_| gone());
        Box::pin(async move {
            sent?;
            answered.await.map_err(|_| gone())?
        })
    }
}

fn reply<T>(answer: &std::sync::Mutex<Option<Answer<T>>>, result: Result<T, StoreError>) {
    let mut answer = answer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(answer) = answer.take() {
        let _ = answer.send(result);
    }
}

/// Does jobs until nobody can send any more.
fn work(connection: &mut Connection, jobs: &mpsc::Receiver<Job>) {
    let mut waiting = None;
    while let Some(job) = waiting.take().or_else(|| jobs.recv().ok()) {
        match job {
            Job::Read(question) => question(connection),
            Job::Write(change, failed) => {
                let mut writes = vec![(change, failed)];
                while writes.len() < COMMITS_PER_TRANSACTION {
                    match jobs.try_recv() {
                        Ok(Job::Write(change, failed)) => writes.push((change, failed)),
                        Ok(question) => {
                            waiting = Some(question);
                            break;
                        }
                        Err(_) => break,
                    }
                }
                write_together(connection, writes);
            }
        }
    }
}

type WithFailure = (Write, Box<dyn FnOnce(StoreError) + Send>);

/// Does several changes in one transaction. Each is answered when all are on the disk; a change
/// that fails leaves nothing behind and does not hurt the others.
fn write_together(connection: &mut Connection, writes: Vec<WithFailure>) {
    let transaction =
        match connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate) {
            Ok(transaction) => transaction,
            Err(error) => {
                for (_, failed) in writes {
                    failed(queries::unavailable(&error));
                }
                return;
            }
        };
    let mut answers = Vec::with_capacity(writes.len());
    for (change, failed) in writes {
        answers.push((change(&transaction), failed));
    }
    match transaction.commit() {
        Ok(()) => {
            for (answer, _) in answers {
                answer();
            }
        }
        Err(error) => {
            for (_, failed) in answers {
                failed(queries::unavailable(&error));
            }
        }
    }
}

impl SessionStore for SqliteSessions {
    fn get<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<StoredSession>> {
        let (key, now) = (key.clone(), self.lifetime.now());
        self.read(move |connection| queries::get(connection, &key, now))
    }

    fn commit<'a>(
        &'a self,
        key: &'a SessionKey,
        expected: Revision,
        delta: SessionDelta,
        events: Vec<Event>,
    ) -> StoreFuture<'a, Revision> {
        let (key, now) = (key.clone(), self.lifetime.now());
        let expires = self.lifetime.expiry(now);
        self.write(move |connection| {
            in_savepoint(connection, |connection| {
                queries::commit(connection, &key, expected, &delta, &events, now, expires)
            })
        })
    }

    fn messages<'a>(
        &'a self,
        key: &'a SessionKey,
        agent: &'a AgentName,
    ) -> StoreFuture<'a, Vec<Message>> {
        let (key, agent, now) = (key.clone(), agent.clone(), self.lifetime.now());
        self.read(move |connection| queries::messages(connection, &key, &agent, now))
    }

    fn events<'a>(
        &'a self,
        key: &'a SessionKey,
        skip: u64,
        most: usize,
    ) -> StoreFuture<'a, Vec<Event>> {
        let (key, now) = (key.clone(), self.lifetime.now());
        self.read(move |connection| queries::events(connection, &key, skip, most, now))
    }

    fn list(&self) -> StoreFuture<'_, Vec<SessionSummary>> {
        let now = self.lifetime.now();
        self.read(move |connection| queries::list(connection, now))
    }

    fn delete<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, bool> {
        let (key, now) = (key.clone(), self.lifetime.now());
        self.write(move |connection| {
            let existed = queries::get(connection, &key, now).map_or(true, |it| it.is_some());
            Ok(queries::delete(connection, &key)? && existed)
        })
    }
}

/// Undoes what a change has done if it fails.
fn in_savepoint<T>(
    connection: &Connection,
    change: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let run = |sql: &str| {
        let done = connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        done.map_err(|error| queries::unavailable(&error))
    };
    run("SAVEPOINT one_commit")?;
    let result = change(connection);
    if result.is_err() {
        run("ROLLBACK TO one_commit")?;
    }
    run("RELEASE one_commit")?;
    result
}
