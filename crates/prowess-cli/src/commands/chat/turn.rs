//! A turn from its beginning to its end, whatever happens.

use std::sync::{Arc, Mutex, PoisonError};

use prowess_agent::{AgentError, AgentEvent, CancellationToken, RunOutcome, RunStream};
use prowess_runtime::Event;
use tokio::signal::unix::{SignalKind, signal};

use super::audience::Audience;

/// What the engine has committed and nobody was told yet.
pub(super) type Committed = Arc<Mutex<Vec<Event>>>;

/// Whether a turn has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Began {
    No,
    Yes,
}

/// How a turn came to its end.
pub(super) enum Ended {
    /// By itself.
    Over(RunOutcome),
    /// It failed. If it had begun, the session has what was said.
    Failed(AgentError, Began),
    /// Somebody did not want to wait, not even for its end.
    Left,
}

/// Follows a run to its end. Ctrl-C cancels it; a second one leaves it.
pub(super) async fn follow(
    mut run: RunStream,
    cancel: &CancellationToken,
    mut began: Began,
    committed: &Committed,
    audience: &mut Audience,
) -> anyhow::Result<Ended> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    loop {
        let event = tokio::select! {
            biased;
            _ = interrupt.recv() => {
                if cancel.is_cancelled() {
                    audience.end_turn()?;
                    return Ok(Ended::Left);
                }
                cancel.cancel();
                continue;
            }
            event = run.next_event() => event,
        };
        let Some(event) = event else { break };
        if let AgentEvent::TurnBegan { .. } = event {
            began = Began::Yes;
        }
        audience.agent(&event)?;
        // The run stands still behind an event: what was committed since follows it.
        let happened =
            std::mem::take(&mut *committed.lock().unwrap_or_else(PoisonError::into_inner));
        for event in &happened {
            audience.engine(event)?;
        }
    }
    audience.end_turn()?;
    Ok(match run.outcome().await {
        Ok(outcome) => Ended::Over(outcome),
        Err(error) => Ended::Failed(error, began),
    })
}
