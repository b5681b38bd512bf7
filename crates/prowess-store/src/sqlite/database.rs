//! A SQLite database: one thread writes, some read.

use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::schema;
use crate::open::OpenError;
use crate::unavailable::Unavailable;

/// So many changes share one transaction at most, and thereby one wait for the disk.
const CHANGES_PER_TRANSACTION: usize = 256;

/// So many threads answer questions, so that a long one does not hold up the others.
const READERS: usize = 2;

impl From<rusqlite::Error> for Unavailable {
    fn from(error: rusqlite::Error) -> Self {
        Self(error.to_string())
    }
}

/// A future that a database returns.
pub(crate) type Answer<'a, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;

/// A database. Cheap to clone.
///
/// Changes that wait at the same time share one transaction, so that many wait for the disk
/// together; each of them still succeeds or fails by itself. Questions are answered beside them, and
/// see whatever was acknowledged. Several processes may use one database.
#[derive(Clone, Debug)]
pub(crate) struct Database {
    changes: mpsc::Sender<Box<dyn Change>>,
    questions: mpsc::Sender<Question>,
}

type Question = Box<dyn FnOnce(&Connection) + Send>;

/// Something to do inside a transaction, and somebody who waits for it.
trait Change: Send {
    /// Does it; again, if the transaction came to nothing.
    fn make(&mut self, connection: &Connection);

    /// Says what came of it, once that is on the disk.
    fn answer(self: Box<Self>);

    /// Says that nothing came of it.
    fn fail(self: Box<Self>, error: Unavailable);
}

struct Pending<T, E, F> {
    change: F,
    result: Option<Result<T, E>>,
    answer: oneshot::Sender<Result<T, E>>,
}

impl<T, E, F> Change for Pending<T, E, F>
where
    T: Send,
    E: From<Unavailable> + Send,
    F: FnMut(&Connection) -> Result<T, E> + Send,
{
    fn make(&mut self, connection: &Connection) {
        self.result = Some(in_savepoint(connection, &mut self.change));
    }

    fn answer(self: Box<Self>) {
        if let Some(result) = self.result {
            // Whoever does not wait any more needs no answer.
            let _ = self.answer.send(result);
        }
    }

    fn fail(mut self: Box<Self>, error: Unavailable) {
        // What it says itself is nearer to the cause.
        if !matches!(self.result, Some(Err(_))) {
            self.result = Some(Err(error.into()));
        }
        self.answer();
    }
}

impl Database {
    /// Opens a database, or makes it.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|cause| OpenError::Folder { path: folder.to_owned(), cause })?;
        }
        // Conversations are nobody else's business.
        let _ = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let mut writer = Connection::open(path)?;
        schema::prepare(&mut writer)?;
        let (changes, to_make) = mpsc::channel();
        let (questions, to_answer) = mpsc::channel::<Question>();
        spawn("prowess-write", move || write(&mut writer, &to_make))?;
        let to_answer = Arc::new(Mutex::new(to_answer));
        for _ in 0..READERS {
            let reader = Connection::open(path)?;
            schema::prepare_to_read(&reader)?;
            let to_answer = Arc::clone(&to_answer);
            spawn("prowess-read", move || answer(&reader, &to_answer))?;
        }
        Ok(Self { changes, questions })
    }

    /// Asks something.
    pub(crate) fn read<'a, T, E>(
        &self,
        question: impl FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    ) -> Answer<'a, T, E>
    where
        T: Send + 'static,
        E: From<Unavailable> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let question: Question = Box::new(move |connection| {
            // Whoever does not wait any more needs no answer.
            let _ = answer.send(question(connection));
        });
        let sent = self.questions.send(question).is_ok();
        Box::pin(wait(sent, answered))
    }

    /// Changes something, all of it or nothing. What is acknowledged is on the disk.
    pub(crate) fn write<'a, T, E>(
        &self,
        change: impl FnMut(&Connection) -> Result<T, E> + Send + 'static,
    ) -> Answer<'a, T, E>
    where
        T: Send + 'static,
        E: From<Unavailable> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let sent = self.changes.send(Box::new(Pending { change, result: None, answer })).is_ok();
        Box::pin(wait(sent, answered))
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), OpenError> {
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread.spawn(work).map(drop).map_err(OpenError::Thread)
}

async fn wait<T, E: From<Unavailable>>(
    sent: bool,
    answered: oneshot::Receiver<Result<T, E>>,
) -> Result<T, E> {
    let gone = || E::from(Unavailable("its thread has ended".to_owned()));
    if !sent {
        return Err(gone());
    }
    answered.await.unwrap_or_else(|_| Err(gone()))
}

/// Answers questions until nobody can ask any more. Whoever is free takes the next one.
fn answer(connection: &Connection, questions: &Mutex<mpsc::Receiver<Question>>) {
    loop {
        let next = questions.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(question) = next else { return };
        question(connection);
    }
}

/// Makes changes until nobody can ask for any more.
fn write(connection: &mut Connection, changes: &mpsc::Receiver<Box<dyn Change>>) {
    while let Ok(first) = changes.recv() {
        let mut together = vec![first];
        together.extend(changes.try_iter().take(CHANGES_PER_TRANSACTION - 1));
        write_together(connection, together);
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
            let error = Unavailable::from(error);
            changes.into_iter().for_each(|change| change.fail(error.clone()));
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

/// Undoes what a change has done if it fails.
fn in_savepoint<T, E: From<Unavailable>>(
    connection: &Connection,
    change: &mut impl FnMut(&Connection) -> Result<T, E>,
) -> Result<T, E> {
    let run = |sql: &str| {
        let done = connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        done.map_err(|error| E::from(error.into()))
    };
    run("SAVEPOINT one_change")?;
    let result = change(connection);
    if connection.is_autocommit() {
        // The disk has failed, and SQLite has undone the whole transaction.
        return result;
    }
    let ended = match &result {
        Ok(_) => run("RELEASE one_change"),
        Err(_) => run("ROLLBACK TO one_change").and_then(|_| run("RELEASE one_change")),
    };
    let Err(error) = ended else { return result };
    // Then nothing of the transaction may stay.
    run("ROLLBACK")?;
    Err(result.err().unwrap_or(error))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn open() -> (Database, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        (Database::open(&folder.path().join("prowess.db")).unwrap(), folder)
    }

    impl From<Unavailable> for String {
        fn from(Unavailable(cause): Unavailable) -> Self {
            cause
        }
    }

    #[tokio::test]
    async fn a_long_question_does_not_hold_up_the_others() {
        let (database, _folder) = open();
        let (finish, finished) = mpsc::channel::<()>();
        let long = database.read(move |_| Ok::<_, String>(finished.recv().is_ok()));
        for _ in 0..3 {
            let short = database.read(|_| Ok::<_, String>(1));
            let short = tokio::time::timeout(Duration::from_secs(5), short).await;
            assert_eq!(short.expect("it waits for the long one"), Ok(1));
        }
        finish.send(()).unwrap();
        assert_eq!(long.await, Ok(true));
    }

    #[tokio::test]
    async fn changes_and_questions_give_up_before_those_who_ask() {
        let (database, _folder) = open();
        let timeout = |connection: &Connection| {
            let sql = "PRAGMA busy_timeout";
            connection
                .query_row(sql, [], |row| row.get::<_, u64>(0))
                .map_err(|error| error.to_string())
        };
        assert_eq!(database.read(timeout).await, Ok(10_000));
        assert_eq!(database.write(timeout).await, Ok(10_000));
    }
}
