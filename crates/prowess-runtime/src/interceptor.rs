//! What stands around every call.

use std::pin::Pin;

use crate::message::ToolCall;
use crate::outcome::ToolOutcome;
use crate::session::{AgentName, SessionKey, SessionState};

/// A future that an interceptor returns.
pub type InterceptorFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What an interceptor makes of a call that is about to run.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Interception {
    /// Go on.
    #[default]
    Continue,
    /// Go on with other arguments.
    Replace(serde_json::Value),
    /// Do not call the tool.
    Deny(String),
}

/// A call that was allowed, and where it comes from.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Intercepted<'a> {
    /// The session.
    pub session: &'a SessionKey,
    /// The agent.
    pub agent: &'a AgentName,
    /// Its state.
    pub state: &'a SessionState,
    /// The call.
    pub call: &'a ToolCall,
}

/// Stands around every call: behind gate and policy, before the tool and after it. The first one
/// that was registered is the outermost.
pub trait Interceptor: Send + Sync + 'static {
    /// A call is about to run.
    fn before<'a>(&'a self, _call: Intercepted<'a>) -> InterceptorFuture<'a, Interception> {
        Box::pin(std::future::ready(Interception::Continue))
    }

    /// A call has run; nothing is committed yet.
    fn after<'a>(
        &'a self,
        _call: Intercepted<'a>,
        outcome: ToolOutcome,
    ) -> InterceptorFuture<'a, ToolOutcome> {
        Box::pin(std::future::ready(outcome))
    }
}
