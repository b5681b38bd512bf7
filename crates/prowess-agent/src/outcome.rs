//! What comes of a run.

use prowess_runtime::{Message, Usage};
use serde::Serialize;

use crate::event::StopReason;

/// What comes of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RunOutcome {
    /// The turn.
    pub turn: u64,
    /// Why it is over.
    pub stop: StopReason,
    /// What the model said last, if it came to say anything.
    pub message: Option<Message>,
    /// What it cost: every answer of a model, also one that a middleware did not take.
    pub usage: Usage,
    /// How many steps a model has answered.
    pub steps: usize,
}

impl RunOutcome {
    /// What the model said last, without reasoning and calls.
    pub fn text(&self) -> String {
        self.message.as_ref().map(Message::text).unwrap_or_default()
    }
}
