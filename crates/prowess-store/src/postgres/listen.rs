//! What other processes tell.

use std::time::Duration;

use prowess_runtime::SessionKey;
use sqlx::postgres::PgNotification;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::pool::Pool;
use crate::notices::{Notice, Notices};
use crate::unavailable::Unavailable;

/// Where it is told.
pub(super) const CHANNEL: &str = "prowess";

/// What is told of a change of the registry.
pub(super) const SKILLS: &str = "skills";

/// What is told of a session begins so; its key follows. No part of a key has a slash, and a key is
/// far shorter than what can be told.
const SESSION: &str = "session:";

/// After so much silence it is asked whether the server is still there.
const SILENCE: Duration = Duration::from_secs(5);

/// So long it waits before it tries again.
const PAUSE: Duration = Duration::from_millis(200);

/// What is told of a change of this session.
pub(super) fn payload(key: &SessionKey) -> String {
    format!("{SESSION}{key}")
}

/// What was told. Whoever does not understand it looks at everything.
fn notice(payload: &str) -> Notice {
    if payload == SKILLS {
        return Notice::Skills;
    }
    let key = payload.strip_prefix(SESSION).and_then(|key| key.parse::<SessionKey>().ok());
    key.map_or(Notice::Anything, |key| Notice::Session(key.into()))
}

/// A task that listens until this is dropped.
pub(super) struct Listening {
    notices: Notices,
    task: JoinHandle<()>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Listening {
    pub(super) fn start(pool: Pool) -> Self {
        let notices = Notices::default();
        let task = tokio::spawn(listen(pool, notices.clone()));
        Self { notices, task }
    }

    pub(super) fn notices(&self) -> Notices {
        self.notices.clone()
    }
}

/// Listens for ever, on one connection after the other.
async fn listen(pool: Pool, notices: Notices) {
    loop {
        if let Err(Unavailable(cause)) = listen_once(&pool, &notices).await {
            tracing::debug!(cause, "PostgreSQL tells nothing");
        }
        sleep(PAUSE).await;
    }
}

/// Listens until the connection is lost.
async fn listen_once(pool: &Pool, notices: &Notices) -> Result<(), Unavailable> {
    let patience = pool.settings().connect_time;
    let away = |_| Unavailable(format!("no answer within {patience:?}"));
    let mut listener = pool.listener().await?;
    timeout(patience, listener.listen(CHANNEL)).await.map_err(away)??;
    // Something may have been told while nobody listened.
    notices.tell(Notice::Anything);
    loop {
        match timeout(SILENCE, listener.try_recv()).await {
            Ok(told) => match told? {
                Some(told) => notices.tell(notice(PgNotification::payload(&told))),
                None => return Ok(()),
            },
            Err(_) => {
                let asked = sqlx::query("SELECT 1").execute(&mut listener);
                timeout(patience, asked).await.map_err(away)??;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_understood_or_is_anything() {
        let names = ["a", "skills", "session:a", "漢字 '\"", &"n".repeat(128)];
        for name in names {
            let key = SessionKey::new(name, name, name).unwrap();
            assert!(payload(&key).len() < 8000);
            assert_eq!(notice(&payload(&key)), Notice::Session(key.into()));
        }
        assert_eq!(notice("skills"), Notice::Skills);
        for other in ["", "Skills", "session:", "session:a/b", "more"] {
            assert_eq!(notice(other), Notice::Anything, "{other}");
        }
    }
}
