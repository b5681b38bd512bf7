//! What goes wrong with a model of rig, by its name.

use std::time::Duration;

use rig_core::ProviderResponseError;
use rig_core::error::{ErrorKind, ProviderError};

use crate::model::ModelError;
use crate::model::status;

/// How much of what a provider says about a failure is kept, in characters.
const MAX_MESSAGE: usize = 1_000;

/// The name of a failure.
pub(super) fn named(error: &ProviderError) -> ModelError {
    let message = shown(&error.to_string());
    match error {
        ProviderError::ProviderResponse(reply) | ProviderError::InvalidAuthentication(reply) => {
            replied(reply)
        }
        ProviderError::Http(_) => ModelError::Network { message },
        ProviderError::Json(_) | ProviderError::Response(_) => {
            ModelError::MalformedResponse { message }
        }
        ProviderError::Truncated => ModelError::CutStream { message },
        ProviderError::Provider(said) => late(said),
        ProviderError::Relayed(report) => match report.kind {
            ErrorKind::Cancelled => ModelError::Cancelled,
            ErrorKind::Timeout => ModelError::Timeout { message },
            _ => late(&report.message),
        },
        _ => ModelError::InvalidRequest { message },
    }
}

/// A failure that is told instead of the rest of an answer.
pub(super) fn late(message: &str) -> ModelError {
    ModelError::Server { status: 200, message: shown(message), retry_after: None }
}

fn replied(reply: &ProviderResponseError) -> ModelError {
    let said = serde_json::from_str(&reply.body).ok().as_ref().and_then(status::message_in);
    let message = shown(said.as_deref().unwrap_or(&reply.body));
    let header = |name: &str| reply.headers.as_ref()?.get(name)?.to_str().ok()?.trim().parse().ok();
    let retry_after = header("retry-after-ms")
        .map(Duration::from_millis)
        .or_else(|| header("retry-after").map(Duration::from_secs));
    let code = reply.status.map_or(200, |status| status.as_u16());
    status::failure(code, &reply.body, message, retry_after)
}

fn shown(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
