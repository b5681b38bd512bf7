//! What stands around every call of a step, outside of gate and policy.

use std::any::Any;

use crate::dispatch::Batch;
use crate::message::ToolCall;
use crate::session::SessionState;
use crate::tool::ToolFuture;

/// Stands around every call of a step, outside of gate and policy: it sees refusals too, and
/// cannot go past them.
pub trait CallLayer: Send + Sync {
    /// Does what is to be done about a call; [`NextCall::run`] goes on.
    fn call<'a>(&'a self, call: ToolCall, next: NextCall<'a>) -> ToolFuture<'a>;

    /// What tools may know of whoever calls them: [`crate::Invocation::caller`].
    fn caller(&self) -> Option<&(dyn Any + Send + Sync)> {
        None
    }
}

/// The rest of the way of a call. It can be gone again, with the same call or another one; only
/// the outcome that the layer returns counts.
#[derive(Clone, Copy)]
pub struct NextCall<'a> {
    pub(crate) batch: &'a Batch<'a>,
    pub(crate) state: &'a SessionState,
    /// Whatever else changes: the answer is the answer to this call.
    pub(crate) id: &'a str,
}

impl<'a> NextCall<'a> {
    /// Goes on: gate, policy, interceptors, tool.
    pub fn run(self, mut call: ToolCall) -> ToolFuture<'a> {
        self.id.clone_into(&mut call.id);
        Box::pin(async move { self.batch.admitted(&call, self.state).await })
    }

    /// The agent's state, with the changes of the calls before this one.
    pub fn state(self) -> &'a SessionState {
        self.state
    }
}

impl std::fmt::Debug for NextCall<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("NextCall").field("id", &self.id).finish_non_exhaustive()
    }
}
