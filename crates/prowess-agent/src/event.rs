//! What happens during a run, bit by bit.

use prowess_runtime::{Message, ToolCall, Usage};
use serde::Serialize;

use crate::model::FinishReason;

/// Something that happens during a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AgentEvent {
    /// A turn began.
    TurnBegan {
        /// Its number, from 1.
        turn: u64,
    },
    /// A model is asked. What came of the last time in the same step does not count any more.
    ModelCalled {
        /// Which step of the run, from 1.
        step: usize,
        /// Which model.
        model: String,
    },
    /// The model says something.
    Text {
        /// A bit of it.
        text: String,
    },
    /// The model thinks something.
    Reasoning {
        /// A bit of it.
        text: String,
    },
    /// The model has answered.
    ModelAnswered {
        /// Which step of the run, from 1.
        step: usize,
        /// All that it said.
        message: Message,
        /// What it cost.
        usage: Option<Usage>,
    },
    /// A tool is called.
    ToolCalled {
        /// The call.
        call: ToolCall,
    },
    /// A tool has answered.
    ToolAnswered {
        /// The call.
        call_id: String,
        /// The tool.
        tool: String,
        /// What came of it.
        code: String,
        /// Whether it failed.
        is_error: bool,
        /// What the model sees.
        content: String,
    },
    /// Something happens in a sub-agent.
    SubAgent {
        /// The call that it works for.
        call_id: String,
        /// What it is called.
        agent: String,
        /// What happens.
        #[serde(rename = "inner")]
        event: Box<AgentEvent>,
    },
    /// The conversation was summed up: a summary is sent in the place of its first messages.
    Compacted {
        /// How many.
        messages: usize,
    },
    /// Something is not as it should be; the run goes on.
    Problem {
        /// What.
        message: String,
    },
    /// The run is over.
    Finished {
        /// Why.
        stop: StopReason,
        /// What it cost.
        usage: Usage,
        /// How many steps a model has answered.
        steps: usize,
    },
}

/// Why a run is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// The model has said its last word.
    Answered(FinishReason),
    /// As many steps as may be.
    StepLimit,
    /// As many tokens as may be.
    TokenLimit,
    /// Somebody cancelled it.
    Cancelled,
    /// A middleware ended it.
    Ended,
}
