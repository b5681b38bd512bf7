//! What went wrong, and what to do about it.

use std::fmt::Display;

use prowess_runtime::{InvalidSessionKey, RuntimeError, StoreError};
use serde::Serialize;

use super::people::Refused;

/// What went wrong, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Failure {
    pub(super) code: String,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
}

impl Failure {
    pub(super) fn new(code: &str, message: impl Display) -> Self {
        Self { code: code.to_owned(), message: message.to_string(), hint: None }
    }

    pub(super) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl From<RuntimeError> for Failure {
    fn from(error: RuntimeError) -> Self {
        Self::new(error.code(), error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(error.code(), error)
    }
}

impl From<InvalidSessionKey> for Failure {
    fn from(error: InvalidSessionKey) -> Self {
        Self::new("invalid_session", error)
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Self::new(refused.code(), refused)
    }
}
