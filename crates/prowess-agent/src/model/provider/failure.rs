//! What goes wrong on the way to a provider, by its name.

use std::time::Duration;

use genai::webc::{self, StreamTimeout};
use jiff::Timestamp;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde_json::Value;

use super::key::ApiKey;
use super::settings::ProviderSettings;
use crate::model::ModelError;
use crate::model::status::{failure, message_in};

/// How much of what a provider says about a failure is kept, in characters.
const MAX_MESSAGE: usize = 1_000;

/// Names failures.
pub(super) struct Failure<'a> {
    pub(super) settings: &'a ProviderSettings,
    pub(super) key: Option<&'a ApiKey>,
}

impl Failure<'_> {
    /// The name of a failure. Nothing of the request is in it, and no key.
    pub(super) fn of(&self, error: genai::Error) -> ModelError {
        use genai::Error as E;
        match error {
            E::HttpError { status, body, headers, .. } => {
                self.status(status.as_u16(), &body, Some(&headers))
            }
            E::WebModelCall { webc_error, .. } | E::WebAdapterCall { webc_error, .. } => {
                self.web(webc_error)
            }
            E::WebStream { error, .. } => self.stream(error),
            E::ChatResponse { body, .. } => self.told(&body),
            E::StreamParse { serde_error: error, .. } | E::SerdeJson(error) => {
                self.malformed(&error.to_string())
            }
            E::ChatResponseGeneration { cause, .. } => self.malformed(&cause),
            E::JsonValueExt(error) => self.malformed(&error.to_string()),
            E::InvalidJsonResponseElement { info } => self.malformed(info),
            E::NoChatResponse { .. } => self.malformed("there is none"),
            E::RequiresApiKey { .. }
            | E::NoAuthData { .. }
            | E::NoAuthResolver { .. }
            | E::Resolver { .. } => ModelError::Auth { message: "there is no key".to_owned() },
            other => ModelError::InvalidRequest { message: self.shown(&other.to_string()) },
        }
    }

    fn web(&self, error: webc::Error) -> ModelError {
        match error {
            webc::Error::ResponseFailedStatus { status, body, headers } => {
                self.status(status.as_u16(), &body, Some(&headers))
            }
            webc::Error::ResponseFailedNotJson { content_type, .. } => {
                self.malformed(&format!("it is '{content_type}', not JSON"))
            }
            webc::Error::ResponseFailedInvalidJson { cause, .. } => self.malformed(&cause),
            webc::Error::JsonValueExt(error) => self.malformed(&error.to_string()),
            webc::Error::Reqwest(error) => self.http(&error),
        }
    }

    /// What goes wrong with a stream hides in boxes.
    fn stream(&self, error: genai::BoxError) -> ModelError {
        let error = match error.downcast::<genai::Error>() {
            Ok(inner) => return self.of(*inner),
            Err(error) => error,
        };
        match error.downcast_ref::<StreamTimeout>() {
            Some(StreamTimeout::Headers) => return self.late(self.settings.response_timeout_ms),
            Some(StreamTimeout::Read) => return self.late(self.settings.idle_timeout_ms),
            None => {}
        }
        match error.downcast_ref::<reqwest::Error>() {
            Some(error) => self.http(error),
            None => self.malformed(&error.to_string()),
        }
    }

    fn http(&self, error: &reqwest::Error) -> ModelError {
        // The innermost cause says most, and knows no address.
        let mut cause: &dyn std::error::Error = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        let message = self.shown(&cause.to_string());
        if error.is_timeout() && error.is_connect() {
            return self.late(self.settings.connect_timeout_ms);
        }
        match error {
            error if error.is_timeout() => ModelError::Timeout { message },
            error if error.is_body() || error.is_decode() => ModelError::CutStream { message },
            _ => ModelError::Network { message },
        }
    }

    fn late(&self, limit_ms: u64) -> ModelError {
        ModelError::Timeout { message: format!("nothing came for {limit_ms} ms") }
    }

    fn malformed(&self, cause: &str) -> ModelError {
        ModelError::MalformedResponse { message: self.shown(cause) }
    }

    /// A failure that is told in the middle of a stream.
    fn told(&self, body: &Value) -> ModelError {
        let error = body.get("error").unwrap_or(body);
        let kind = error.get("type").or_else(|| error.get("status")).and_then(Value::as_str);
        let code = error.get("code").and_then(Value::as_u64).and_then(|it| u16::try_from(it).ok());
        let status = match (kind, code) {
            (_, Some(code)) => code,
            (Some("authentication_error" | "permission_error"), _) => 401,
            (Some("rate_limit_error" | "rate_limit_exceeded" | "RESOURCE_EXHAUSTED"), _) => 429,
            (Some("invalid_request_error" | "not_found_error" | "request_too_large"), _) => 400,
            // It does not even say that it has failed.
            (None, None) if message_in(body).is_none() => {
                return self.malformed("it holds no answer");
            }
            // The provider has failed after all.
            _ => 200,
        };
        self.status(status, &body.to_string(), None)
    }

    fn status(&self, status: u16, body: &str, headers: Option<&HeaderMap>) -> ModelError {
        let told = serde_json::from_str(body).ok().as_ref().and_then(message_in);
        let message = self.shown(told.as_deref().unwrap_or(body));
        let retry_after = headers.and_then(|headers| retry_after(headers, Timestamp::now()));
        failure(status, body, message, retry_after)
    }

    /// What others may see.
    fn shown(&self, text: &str) -> String {
        let text = self.key.map_or_else(|| text.to_owned(), |key| key.hidden_in(text));
        match text.char_indices().nth(MAX_MESSAGE) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    }
}

/// How long to wait: seconds, milliseconds, or a date.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(millis) = text("retry-after-ms").and_then(|text| text.parse().ok()) {
        return Some(Duration::from_millis(millis));
    }
    let text = text(RETRY_AFTER.as_str())?;
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let at = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    Some(Duration::try_from(at.duration_since(now)).unwrap_or_default())
}
