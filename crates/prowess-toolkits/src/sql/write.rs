//! Writes: each is approved by the host, once.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use prowess_format::Digest;
use prowess_runtime::SessionKey;
use serde_json::json;
use uuid::Uuid;

/// Whether somebody approves the writes of connections of mode `rw`. It decides what a model is told
/// to do: [`SqlToolkit::approve`](super::SqlToolkit::approve) works either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SqlApprover {
    /// Nobody: the model is told that waiting is in vain.
    #[default]
    Nobody,
    /// The host does, or asks somebody: the model is told to wait.
    Host,
}

/// A write that waits for the host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PendingWrite {
    /// What to approve it by.
    pub id: String,
    /// The sha256 of the exact statement, the connection and the session.
    pub hash: String,
    /// Who wants it.
    pub session: SessionKey,
    /// Where.
    pub connection: String,
    /// The exact statement.
    pub statement: String,
}

/// Why a write cannot be approved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApprovalError {
    /// There is none that waits: it was never there, or ran, or its time is over.
    #[error("there is no write of this id that waits for an approval")]
    NotPending,
}

impl ApprovalError {
    /// The stable name.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotPending => "approval_not_pending",
        }
    }
}

/// Whether a write may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Permission {
    /// Now, and not again.
    Run,
    /// When the host has approved this.
    Wanted(PendingWrite),
    /// So many wait already.
    Full,
}

#[derive(Debug)]
struct Entry {
    write: PendingWrite,
    is_approved: bool,
    until: Instant,
}

/// The writes that wait, by the hash of what they are.
#[derive(Debug)]
pub(super) struct Approvals {
    entries: Mutex<BTreeMap<String, Entry>>,
    lifetime: Duration,
    most: usize,
}

impl Approvals {
    pub(super) fn new(lifetime: Duration, most: usize) -> Self {
        Self { entries: Mutex::new(BTreeMap::new()), lifetime, most }
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        entries.retain(|_, entry| entry.until > now);
        entries
    }

    /// Whether this exact statement may run on this connection for this session; the answer `Run`
    /// is given once for each approval, however many ask at the same time.
    pub(super) fn ask(
        &self,
        session: &SessionKey,
        connection: &str,
        statement: &str,
    ) -> Permission {
        let hash = hash(session, connection, statement);
        let mut entries = self.entries();
        match entries.get(&hash) {
            Some(entry) if entry.is_approved => {
                entries.remove(&hash);
                return Permission::Run;
            }
            Some(entry) => return Permission::Wanted(entry.write.clone()),
            None if entries.len() >= self.most => return Permission::Full,
            None => {}
        }
        let write = PendingWrite {
            id: Uuid::now_v7().simple().to_string(),
            hash: hash.clone(),
            session: session.clone(),
            connection: connection.to_owned(),
            statement: statement.to_owned(),
        };
        let until = Instant::now() + self.lifetime;
        entries.insert(hash, Entry { write: write.clone(), is_approved: false, until });
        Permission::Wanted(write)
    }

    /// Approves a write: the same call runs it once, if it comes in time.
    pub(super) fn approve(&self, id: &str) -> Result<PendingWrite, ApprovalError> {
        let mut entries = self.entries();
        let waiting = entries.values_mut().find(|it| it.write.id == id && !it.is_approved);
        let entry = waiting.ok_or(ApprovalError::NotPending)?;
        entry.is_approved = true;
        entry.until = Instant::now() + self.lifetime;
        Ok(entry.write.clone())
    }

    /// Takes a write back.
    pub(super) fn reject(&self, id: &str) -> Result<PendingWrite, ApprovalError> {
        let mut entries = self.entries();
        let hash = entries.iter().find(|(_, it)| it.write.id == id).map(|(hash, _)| hash.clone());
        let entry = hash.and_then(|hash| entries.remove(&hash));
        entry.map(|entry| entry.write).ok_or(ApprovalError::NotPending)
    }

    /// Those that wait.
    pub(super) fn pending(&self) -> Vec<PendingWrite> {
        let entries = self.entries();
        entries.values().filter(|it| !it.is_approved).map(|it| it.write.clone()).collect()
    }
}

fn hash(session: &SessionKey, connection: &str, statement: &str) -> String {
    let what = json!({
        "app": session.app(),
        "connection": connection,
        "session": session.session(),
        "statement": statement,
        "user": session.user(),
    });
    Digest::of(what.to_string().as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(session: &str) -> SessionKey {
        SessionKey::new("app", "user", session).unwrap()
    }

    fn wanted(permission: &Permission) -> &PendingWrite {
        match permission {
            Permission::Wanted(write) => write,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_approval_is_for_one_statement_on_one_connection_once() {
        let approvals = Approvals::new(Duration::from_secs(60), 10);
        let first = approvals.ask(&key("s"), "main", "DELETE FROM t");
        let id = wanted(&first).id.clone();
        assert_eq!(wanted(&approvals.ask(&key("s"), "main", "DELETE FROM t")).id, id);
        approvals.approve(&id).unwrap();
        assert_eq!(approvals.approve(&id), Err(ApprovalError::NotPending));
        for (session, connection, statement) in [
            ("s", "main", "DELETE FROM t "),
            ("s", "other", "DELETE FROM t"),
            ("other", "main", "DELETE FROM t"),
        ] {
            let permission = approvals.ask(&key(session), connection, statement);
            assert_ne!(wanted(&permission).id, id);
        }
        assert_eq!(approvals.ask(&key("s"), "main", "DELETE FROM t"), Permission::Run);
        assert_ne!(wanted(&approvals.ask(&key("s"), "main", "DELETE FROM t")).id, id);
    }

    #[test]
    fn of_many_who_ask_at_once_one_may() {
        let approvals = Approvals::new(Duration::from_secs(60), 10);
        let permission = approvals.ask(&key("s"), "main", "DELETE FROM t");
        approvals.approve(&wanted(&permission).id).unwrap();
        let runs = std::thread::scope(|scope| {
            let ask = || approvals.ask(&key("s"), "main", "DELETE FROM t") == Permission::Run;
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(ask)).collect();
            threads
                .into_iter()
                .filter(|_| true)
                .map(|it| it.join().unwrap())
                .filter(|it| *it)
                .count()
        });
        assert_eq!(runs, 1);
    }

    #[test]
    fn time_and_number_are_limited() {
        let approvals = Approvals::new(Duration::ZERO, 10);
        let permission = approvals.ask(&key("s"), "main", "DELETE FROM t");
        let id = wanted(&permission).id.clone();
        assert_eq!(approvals.approve(&id), Err(ApprovalError::NotPending));
        let approvals = Approvals::new(Duration::from_secs(60), 2);
        for statement in ["a", "b"] {
            wanted(&approvals.ask(&key("s"), "main", statement));
        }
        assert_eq!(approvals.ask(&key("s"), "main", "c"), Permission::Full);
        let id = approvals.pending()[0].id.clone();
        approvals.reject(&id).unwrap();
        wanted(&approvals.ask(&key("s"), "main", "c"));
    }
}
