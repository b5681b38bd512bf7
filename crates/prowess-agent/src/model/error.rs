//! How a model fails.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Why a model has not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelError {
    /// There is no key, or the provider does not take it.
    #[error("not authorised: {message}")]
    Auth {
        /// What the provider says.
        message: String,
    },
    /// Too many requests.
    #[error("rate limited: {message}")]
    RateLimited {
        /// What the provider says.
        message: String,
        /// How long it wants to be left alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<Duration>,
    },
    /// The conversation is longer than the model can take.
    #[error("the conversation is too long for the model: {message}")]
    ContextOverflow {
        /// What the provider says.
        message: String,
    },
    /// The provider does not take the request, and will not take it next time.
    #[error("the provider refuses the request: {message}")]
    InvalidRequest {
        /// What the provider says.
        message: String,
    },
    /// The provider has failed.
    #[error("the provider has failed with {status}: {message}")]
    Server {
        /// The HTTP status; 200 if it failed after it had begun to answer.
        status: u16,
        /// What the provider says.
        message: String,
        /// How long it wants to be left alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<Duration>,
    },
    /// Nothing came for too long.
    #[error("no answer: {message}")]
    Timeout {
        /// What was waited for, and how long.
        message: String,
    },
    /// The provider cannot be reached.
    #[error("the provider cannot be reached: {message}")]
    Network {
        /// Why not.
        message: String,
    },
    /// The stream ended before the answer did.
    #[error("the stream was cut: {message}")]
    CutStream {
        /// What is known about it.
        message: String,
    },
    /// What came back is no answer.
    #[error("the provider's answer cannot be read: {message}")]
    MalformedResponse {
        /// What is wrong with it.
        message: String,
    },
    /// The caller did not want to wait any longer.
    #[error("cancelled")]
    Cancelled,
    /// A scripted or recorded model has no answer to this.
    #[error("no answer is prepared: {message}")]
    Unscripted {
        /// What was asked, or what differs.
        message: String,
    },
}

impl ModelError {
    /// Its stable name.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Auth { .. } => "auth",
            Self::RateLimited { .. } => "rate_limited",
            Self::ContextOverflow { .. } => "context_overflow",
            Self::InvalidRequest { .. } => "invalid_request",
            Self::Server { .. } => "server",
            Self::Timeout { .. } => "timeout",
            Self::Network { .. } => "network",
            Self::CutStream { .. } => "cut_stream",
            Self::MalformedResponse { .. } => "malformed_response",
            Self::Cancelled => "cancelled",
            Self::Unscripted { .. } => "unscripted",
        }
    }

    /// Whether the same request may succeed a little later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::Server { .. }
            | Self::Timeout { .. }
            | Self::Network { .. }
            | Self::CutStream { .. } => true,
            Self::Auth { .. }
            | Self::ContextOverflow { .. }
            | Self::InvalidRequest { .. }
            | Self::MalformedResponse { .. }
            | Self::Cancelled
            | Self::Unscripted { .. } => false,
        }
    }

    /// How long the provider wants to be left alone, if it says so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Server { retry_after, .. } => {
                *retry_after
            }
            _ => None,
        }
    }
}
