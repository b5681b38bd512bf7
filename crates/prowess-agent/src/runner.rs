//! Turns of many users and sessions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prowess_runtime::{Message, SessionKey, TurnRequest};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, RunRequest};
use crate::error::AgentError;
use crate::outcome::RunOutcome;
use crate::stream::RunStream;

/// Runs turns of many users and sessions of one app: one turn of a session at a time.
///
/// ```
/// use std::sync::Arc;
/// use prowess_agent::{Agent, Reply, Runner, ScriptedModel};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let model = Arc::new(ScriptedModel::new([Reply::text("Hello, Alice.")]));
/// let runner = Runner::new("shop", Agent::builder(model).build()?);
/// let outcome = runner.run("alice", "s1", "Hello!").await?;
/// assert_eq!(outcome.text(), "Hello, Alice.");
/// runner.close().await;
/// # Ok::<(), prowess_agent::AgentError>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Runner {
    app: String,
    agent: Agent,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    running: Mutex<Running>,
    over: Notify,
}

#[derive(Debug, Default)]
struct Running {
    sessions: HashMap<SessionKey, CancellationToken>,
    is_closed: bool,
}

/// Gives a session free when its run is over.
struct Busy {
    shared: Arc<Shared>,
    session: SessionKey,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.shared.lock().sessions.remove(&self.session);
        self.shared.over.notify_waiters();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Runner {
    /// A runner for an app.
    pub fn new(app: impl Into<String>, agent: Agent) -> Self {
        Self { app: app.into(), agent, shared: Arc::default() }
    }

    /// The agent.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// A user says something: runs the turn to its end.
    pub async fn run(
        &self,
        user: &str,
        session: &str,
        message: impl Into<String>,
    ) -> Result<RunOutcome, AgentError> {
        self.stream(user, session, message).outcome().await
    }

    /// A user says something: runs the turn, and tells what happens.
    pub fn stream(&self, user: &str, session: &str, message: impl Into<String>) -> RunStream {
        self.turn(user, session, TurnRequest::new().with_message(Message::user(message)))
    }

    /// A turn that begins with more than a message, such as skills that are to be loaded.
    pub fn turn(&self, user: &str, session: &str, turn: TurnRequest) -> RunStream {
        self.begin(user, session, |session, cancel| {
            self.agent.stream(RunRequest::of(session, turn).with_cancel(cancel))
        })
    }

    /// Goes on with a turn that did not come to its end.
    pub fn resume(&self, user: &str, session: &str) -> RunStream {
        self.begin(user, session, |session, cancel| self.agent.resume(session, cancel))
    }

    fn begin(
        &self,
        user: &str,
        session: &str,
        run: impl FnOnce(SessionKey, CancellationToken) -> RunStream,
    ) -> RunStream {
        let session = match SessionKey::new(&self.app, user, session) {
            Ok(session) => session,
            Err(error) => return RunStream::failed(error.into()),
        };
        let cancel = CancellationToken::new();
        {
            let mut running = self.shared.lock();
            if running.is_closed {
                return RunStream::failed(AgentError::Closed);
            }
            if running.sessions.contains_key(&session) {
                let session = session.to_string();
                return RunStream::failed(AgentError::SessionBusy { session });
            }
            running.sessions.insert(session.clone(), cancel.clone());
        }
        let busy = Busy { shared: Arc::clone(&self.shared), session: session.clone() };
        run(session, cancel).holding(busy)
    }

    /// Ends the run of a session early, and says whether there was one.
    pub fn cancel(&self, user: &str, session: &str) -> bool {
        let Ok(session) = SessionKey::new(&self.app, user, session) else { return false };
        let running = self.shared.lock();
        let cancel = running.sessions.get(&session);
        cancel.map(CancellationToken::cancel).is_some()
    }

    /// Begins no more runs, ends those that are under way, and waits for them. A run moves only
    /// while somebody reads it: one that nobody reads is over when its stream is dropped.
    pub async fn close(&self) {
        loop {
            let over = self.shared.over.notified();
            let mut over = std::pin::pin!(over);
            over.as_mut().enable();
            {
                let mut running = self.shared.lock();
                running.is_closed = true;
                for cancel in running.sessions.values() {
                    cancel.cancel();
                }
                if running.sessions.is_empty() {
                    return;
                }
            }
            over.await;
        }
    }
}
