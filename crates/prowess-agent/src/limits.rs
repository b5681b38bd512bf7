//! What bounds a run.

use serde::{Deserialize, Serialize};

/// What bounds a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RunLimits {
    /// How many steps there are. In each of them a model is asked once, unless a middleware tries
    /// again.
    pub max_steps: usize,
    /// How many tokens may be sent and received together, those of sub-agents included; the run ends
    /// behind the step that exceeds them.
    pub max_tokens: Option<u64>,
    /// How long a tool may take.
    pub tool_timeout_ms: u64,
    /// How many sub-agents may stand inside one another.
    pub max_depth: usize,
    /// How many events wait for somebody who reads them; then the run waits.
    pub event_buffer: usize,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            max_steps: 100,
            max_tokens: None,
            tool_timeout_ms: 600_000,
            max_depth: 4,
            event_buffer: 256,
        }
    }
}

impl RunLimits {
    /// Sets how many times a model is asked.
    pub fn with_max_steps(mut self, max_steps: usize) -> Self {
        self.max_steps = max_steps;
        self
    }

    /// Sets how many tokens may be sent and received together.
    pub fn with_max_tokens(mut self, max_tokens: u64) -> Self {
        self.max_tokens = Some(max_tokens);
        self
    }

    /// Sets how long a tool may take.
    pub fn with_tool_timeout_ms(mut self, tool_timeout_ms: u64) -> Self {
        self.tool_timeout_ms = tool_timeout_ms;
        self
    }

    /// Sets how many sub-agents may stand inside one another.
    pub fn with_max_depth(mut self, max_depth: usize) -> Self {
        self.max_depth = max_depth;
        self
    }

    /// Sets how many events wait for somebody who reads them.
    pub fn with_event_buffer(mut self, event_buffer: usize) -> Self {
        self.event_buffer = event_buffer;
        self
    }
}
