//! A run as a stream of what happens.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use prowess_runtime::{Conversation, SessionKey, TurnRequest};
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, RunRequest};
use crate::error::AgentError;
use crate::event::AgentEvent;
use crate::outcome::RunOutcome;
use crate::run::{Notes, Run};

/// A run, as a stream of what happens. It moves only while somebody reads it, and nothing of it
/// is left when it is dropped: what was committed stays, the step that was under way does not.
pub struct RunStream {
    work: Option<BoxFuture<'static, Result<RunOutcome, AgentError>>>,
    events: mpsc::Receiver<AgentEvent>,
    outcome: Option<Result<RunOutcome, AgentError>>,
}

impl RunStream {
    pub(crate) fn begin(
        agent: &Agent,
        session: SessionKey,
        turn: Option<TurnRequest>,
        cancel: CancellationToken,
    ) -> Self {
        let notes = Notes::new(&agent.inner.limits, None);
        Self::with_notes(agent, session, turn, cancel, notes)
    }

    /// A run inside of another one, which pays for it.
    pub(crate) fn inside(agent: &Agent, request: RunRequest, outer: &Arc<Notes>) -> Self {
        let notes = Notes::new(&agent.inner.limits, Some(Arc::clone(outer)));
        Self::with_notes(agent, request.session, Some(request.turn), request.cancel, notes)
    }

    fn with_notes(
        agent: &Agent,
        session: SessionKey,
        turn: Option<TurnRequest>,
        cancel: CancellationToken,
        notes: Notes,
    ) -> Self {
        let inner = Arc::clone(&agent.inner);
        let (events, receiver) = mpsc::channel(inner.limits.event_buffer.max(1));
        let work = Box::pin(async move {
            let conversation = Conversation::new(session.clone(), inner.name.clone());
            let run = Run {
                session,
                agent: inner.name.clone(),
                runtime: inner.runtime.clone(),
                system: inner.system.clone(),
                conversation: Mutex::new(conversation),
                events,
                cancel,
                inner: Arc::clone(&inner),
                notes: Arc::new(notes),
            };
            inner.run(&run, turn).await
        });
        Self { work: Some(work), events: receiver, outcome: None }
    }

    /// A run that fails before it begins.
    pub(crate) fn failed(error: AgentError) -> Self {
        let (_, events) = mpsc::channel(1);
        Self { work: None, events, outcome: Some(Err(error)) }
    }

    /// Also does this when the run is over, or dropped.
    pub(crate) fn holding(mut self, guard: impl Send + 'static) -> Self {
        self.work = self.work.map(|work| {
            let held = async move {
                let outcome = work.await;
                drop(guard);
                outcome
            };
            Box::pin(held) as BoxFuture<'static, _>
        });
        self
    }

    /// What happens next; `None` when the run is over.
    pub async fn next_event(&mut self) -> Option<AgentEvent> {
        self.next().await
    }

    /// Runs to the end, and says what came of it.
    pub async fn outcome(mut self) -> Result<RunOutcome, AgentError> {
        while self.next().await.is_some() {}
        self.outcome.unwrap_or(Err(AgentError::Closed))
    }
}

impl Stream for RunStream {
    type Item = AgentEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        loop {
            let event = self.events.poll_recv(context);
            if let Poll::Ready(Some(_)) = event {
                return event;
            }
            // When the run is over, what it has told may still be on its way.
            let Some(work) = &mut self.work else { return event };
            match work.as_mut().poll(context) {
                Poll::Ready(outcome) => {
                    self.outcome = Some(outcome);
                    self.work = None;
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl std::fmt::Debug for RunStream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let is_over = self.work.is_none();
        formatter.debug_struct("RunStream").field("is_over", &is_over).finish_non_exhaustive()
    }
}
