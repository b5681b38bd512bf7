//! For callers that are not async.

use std::io;
use std::sync::Arc;

use prowess_agent::{Agent, AgentError, AgentEvent, RunOutcome};
use tokio::runtime::{Builder, Runtime};

/// A [`prowess_agent::Runner`] whose calls block. It may be shared between threads.
///
/// Do not call it from async code: it would block those who wait beside it, and tokio panics.
///
/// ```
/// use std::sync::Arc;
/// use prowess::agent::{Agent, Reply, ScriptedModel};
/// use prowess::blocking::Runner;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = Arc::new(ScriptedModel::new([Reply::text("Forty-two.")]));
/// let runner = Runner::new("app", Agent::builder(model).build()?)?;
/// assert_eq!(runner.run("alice", "s1", "How many?")?.text(), "Forty-two.");
/// runner.close();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Runner {
    inner: prowess_agent::Runner,
    tokio: Arc<Runtime>,
}

impl Runner {
    /// A runner for an app, on threads of its own.
    pub fn new(app: impl Into<String>, agent: Agent) -> io::Result<Self> {
        let tokio = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let inner = prowess_agent::Runner::new(app, agent);
        Ok(Self { inner, tokio: Arc::new(tokio) })
    }

    /// The runner for async callers.
    pub fn inner(&self) -> &prowess_agent::Runner {
        &self.inner
    }

    /// A user says something: runs the turn to its end.
    pub fn run(
        &self,
        user: &str,
        session: &str,
        message: impl Into<String>,
    ) -> Result<RunOutcome, AgentError> {
        self.tokio.block_on(self.inner.run(user, session, message))
    }

    /// A user says something: runs the turn, and tells what happens while it happens.
    pub fn run_with(
        &self,
        user: &str,
        session: &str,
        message: impl Into<String>,
        mut tell: impl FnMut(AgentEvent),
    ) -> Result<RunOutcome, AgentError> {
        let mut run = self.inner.stream(user, session, message);
        // Whoever is told may block, or call this runner again.
        while let Some(event) = self.tokio.block_on(run.next_event()) {
            tell(event);
        }
        self.tokio.block_on(run.outcome())
    }

    /// Goes on with a turn that did not come to its end.
    pub fn resume(&self, user: &str, session: &str) -> Result<RunOutcome, AgentError> {
        self.tokio.block_on(self.inner.resume(user, session).outcome())
    }

    /// Ends the run of a session early, and says whether there was one.
    pub fn cancel(&self, user: &str, session: &str) -> bool {
        self.inner.cancel(user, session)
    }

    /// Begins no more runs, ends those that are under way, and waits for them.
    pub fn close(&self) {
        self.tokio.block_on(self.inner.close());
    }
}
