//! What the status of a failed answer means.

use std::time::Duration;

use serde_json::Value;

use super::error::ModelError;

/// Phrases by which providers say that a conversation is too long, in lower case.
const TOO_LONG: [&str; 7] = [
    "context_length_exceeded",
    "maximum context length",
    "prompt is too long",
    "exceeds the maximum number of tokens",
    "exceeds the available context size",
    "input length and `max_tokens` exceed context limit",
    "request_too_large",
];

/// The name of a failure by its HTTP status and what the provider says; `message` is what of it
/// others may see.
pub(crate) fn failure(
    status: u16,
    body: &str,
    message: String,
    retry_after: Option<Duration>,
) -> ModelError {
    let lower = body.to_lowercase();
    match status {
        400 | 413 | 422 if TOO_LONG.iter().any(|phrase| lower.contains(phrase)) => {
            ModelError::ContextOverflow { message }
        }
        413 => ModelError::ContextOverflow { message },
        400 if lower.contains("api_key_invalid") => ModelError::Auth { message },
        401 | 403 => ModelError::Auth { message },
        408 => ModelError::Timeout { message },
        // That does not pass by waiting.
        429 if lower.contains("insufficient_quota") => ModelError::InvalidRequest { message },
        429 => ModelError::RateLimited { message, retry_after },
        300..=499 => ModelError::InvalidRequest { message },
        _ => ModelError::Server { status, message, retry_after },
    }
}

/// What a provider says, wherever it says it.
pub(crate) fn message_in(body: &Value) -> Option<String> {
    let body = body.get(0).unwrap_or(body);
    let places = [body.pointer("/error/message"), body.get("error"), body.get("message")];
    places.into_iter().flatten().find_map(Value::as_str).map(str::to_owned)
}
