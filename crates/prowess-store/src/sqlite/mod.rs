//! Sessions in a SQLite database, on a thread of its own.

mod queries;
mod schema;

use std::os::unix::fs::OpenOptionsExt;
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

enum Job {
    Read(Box<dyn FnOnce(&Connection) + Send>),
    Write(Box<dyn Change>),
}

/// Something to do inside a transaction, and somebody who waits for it.
trait Change: Send {
    /// Does it; again, if the transaction came to nothing.
    fn make(&mut self, connection: &Connection);

    /// Says what came of it, once that is on the disk.
    fn answer(self: Box<Self>);

    /// Says that nothing came of it.
    fn fail(self: Box<Self>, error: StoreError);
}

struct Pending<T, F> {
    change: F,
    result: Option<Result<T, StoreError>>,
    answer: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Change for Pending<T, F>
where
    T: Send,
    F: FnMut(&Connection) -> Result<T, StoreError> + Send,
{
    fn make(&mut self, connection: &Connection) {
        self.result = Some((self.change)(connection));
    }

    fn answer(self: Box<Self>) {
        if let Some(result) = self.result {
            // Whoever does not wait any more needs no answer.
            let _ = self.answer.send(result);
        }
    }

    fn fail(mut self: Box<Self>, error: StoreError) {
        // What it says itself is nearer to the cause.
        if !matches!(self.result, Some(Err(_))) {
            self.result = Some(Err(error));
        }
        self.answer();
    }
}

impl SqliteSessions {
    /// Opens a database, or makes it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|cause| OpenError::Folder { path: folder.to_owned(), cause })?;
        }
        // Conversations are nobody else's business.
        let _ = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
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
        change: impl FnMut(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'a, T> {
        let (answer, answered) = oneshot::channel();
        self.ask(Job::Write(Box::new(Pending { change, result: None, answer })), answered)
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

/// Does jobs until nobody can send any more.
fn work(connection: &mut Connection, jobs: &mpsc::Receiver<Job>) {
    let mut waiting = None;
    while let Some(job) = waiting.take().or_else(|| jobs.recv().ok()) {
        match job {
            Job::Read(question) => question(connection),
            Job::Write(change) => {
                let mut changes = vec![change];
                while changes.len() < COMMITS_PER_TRANSACTION {
                    match jobs.try_recv() {
                        Ok(Job::Write(change)) => changes.push(change),
                        Ok(question) => {
                            waiting = Some(question);
                            break;
                        }
                        Err(_) => break,
                    }
                }
                write_together(connection, changes);
            }
        }
    }
}

/// Makes several changes in one transaction. Each is answered when all are on the disk; a change
/// that fails leaves nothing behind and does not hurt the others.
fn write_together(connection: &mut Connection, mut changes: Vec<Box<dyn Change>>) {
    match try_together(connection, &mut changes) {
        Ok(()) => changes.into_iter().for_each(Change::answer),
        // One of them was too much for the disk: the others may still have room.
        Err(NotWritten::Lost(_)) if changes.len() > 1 => {
            for change in changes {
                write_together(connection, vec![change]);
            }
        }
        Err(NotWritten::Lost(error) | NotWritten::NotBegun(error)) => {
            for change in changes {
                change.fail(queries::unavailable(&error));
            }
        }
    }
}

/// Why nothing of a transaction is there.
enum NotWritten {
    /// It did not begin.
    NotBegun(rusqlite::Error),
    /// It was rolled back.
    Lost(rusqlite::Error),
}

fn try_together(
    connection: &mut Connection,
    changes: &mut [Box<dyn Change>],
) -> Result<(), NotWritten> {
    let transaction = connection
        .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
        .map_err(NotWritten::NotBegun)?;
    for change in changes {
        change.make(&transaction);
        // Where a disk is full or fails, SQLite may roll back everything. What comes after that
        // would be outside of any transaction.
        if transaction.is_autocommit() {
            break;
        }
    }
    transaction.commit().map_err(NotWritten::Lost)
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
    if connection.is_autocommit() {
        // The disk has failed, and SQLite has undone the whole transaction.
        return result;
    }
    let ended = match &result {
        Ok(_) => run("RELEASE one_commit"),
        Err(_) => run("ROLLBACK TO one_commit").and_then(|_| run("RELEASE one_commit")),
    };
    let Err(error) = ended else { return result };
    // Then nothing of the transaction may stay.
    run("ROLLBACK")?;
    Err(result.err().unwrap_or(error))
}
