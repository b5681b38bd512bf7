//! How a run fails.

use prowess_runtime::{DialectError, RuntimeError};

use crate::model::ModelError;

/// Why a run has not come to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The model has not answered.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The engine has failed.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// A middleware has failed.
    #[error("{middleware} has failed: {cause}")]
    Middleware {
        /// Which.
        middleware: String,
        /// Why.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// What a slot holds is not what belongs there.
    #[error("the slot '{slot}' cannot be read: {cause}")]
    Slot {
        /// Which.
        slot: &'static str,
        /// What is wrong.
        cause: serde_json::Error,
    },
    /// The session has a run that is not over.
    #[error("the session {session} has a run that is not over; wait for it, or cancel it")]
    SessionBusy {
        /// Which session.
        session: String,
    },
    /// The app, user or session is no name.
    #[error("no session of that name: {0}")]
    InvalidSession(#[from] prowess_runtime::InvalidSessionKey),
    /// The runner was closed.
    #[error("the runner is closed")]
    Closed,
    /// The words of the engine are wrong.
    #[error(transparent)]
    Dialect(#[from] DialectError),
}

impl AgentError {
    /// A middleware fails.
    pub fn middleware(
        middleware: impl Into<String>,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Middleware { middleware: middleware.into(), cause: cause.into() }
    }

    /// The stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Model(error) => error.code(),
            Self::Runtime(error) => error.code(),
            Self::Middleware { .. } => "middleware_failed",
            Self::Slot { .. } => "slot_invalid",
            Self::SessionBusy { .. } => "session_busy",
            Self::InvalidSession(_) => "invalid_session",
            Self::Closed => "runner_closed",
            Self::Dialect(_) => "dialect_invalid",
        }
    }
}
