//! What is answered when something cannot be done: `application/problem+json`.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use prowess_catalog::ContentError;
use prowess_runtime::{InvalidAgentName, InvalidSessionKey, RuntimeError, StoreError, ToolOutcome};
use prowess_store::{DocumentError, InvalidSkillId, KeyError, VersionError, Violation};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

/// The media type of problems.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// Why a request was not carried out: RFC 9457, with a stable `code`.
///
/// ```
/// use prowess_server::Problem;
///
/// let problem = Problem::new(404, "session_not_found", "there is no session 'demo'");
/// assert_eq!((problem.status(), problem.code()), (404, "session_not_found"));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Problem {
    /// Always `about:blank`: the code says what kind of problem it is.
    #[serde(rename = "type")]
    #[schema(rename = "type", value_type = String)]
    kind: &'static str,
    /// What the status is called.
    #[schema(value_type = String)]
    title: Cow<'static, str>,
    /// The status of the answer.
    status: u16,
    /// What went wrong, in words.
    detail: String,
    /// The stable name of what went wrong.
    #[schema(value_type = String)]
    code: Cow<'static, str>,
    /// The same as `detail`.
    message: String,
    /// More about it: where something is invalid, a list of `{loc, msg, …}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    details: Option<Value>,
    #[serde(skip)]
    #[schema(ignore)]
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Problem {
    /// A problem. The message names the cause and, where there is one, the remedy.
    pub fn new(
        status: u16,
        code: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let message = message.into();
        Self {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Error").into(),
            status: status.as_u16(),
            detail: message.clone(),
            code: code.into(),
            message,
            details: None,
            headers: Vec::new(),
        }
    }

    /// Adds more about it.
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// Says when to try again.
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.headers.push((RETRY_AFTER, HeaderValue::from(seconds.max(1))));
        self
    }

    /// Something in the request is invalid: 422, with where.
    pub fn invalid(place: &[&str], message: impl Into<String>) -> Self {
        let message = message.into();
        let details = json!([{"loc": place, "msg": message, "type": "value_error"}]);
        Self::new(422, "invalid_request", format!("{}: {message}", place.join(".")))
            .with_details(details)
    }

    /// Something broke that is our own: 500. What it says goes to the log.
    pub(crate) fn broken(error: impl std::fmt::Display) -> Self {
        tracing::error!(target: "prowess::server", "{error}");
        Self::new(500, "internal", "something broke; the log says more")
    }

    /// A key is needed: 401.
    pub(crate) fn unauthenticated(code: &'static str, message: &str) -> Self {
        let mut problem = Self::new(401, code, message);
        let scheme = HeaderValue::from_static("Bearer realm=\"prowess\"");
        problem.headers.push((WWW_AUTHENTICATE, scheme));
        problem
    }

    /// The status of the answer.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The stable name of what went wrong.
    pub fn code(&self) -> &str {
        &self.code
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        // A problem is made of texts and numbers.
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        for (name, value) in self.headers {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

impl From<VersionError> for Problem {
    fn from(error: VersionError) -> Self {
        let status = match &error {
            VersionError::NoSkill(_) | VersionError::NoVersion { .. } => 404,
            VersionError::Exists(_) | VersionError::NotBuiltIn(_) => 409,
            VersionError::Stale { .. } => 412,
            VersionError::Protected(_) => 403,
            VersionError::Unstorable(_) => 422,
            VersionError::Unavailable(_) => 503,
            _ => 500,
        };
        Self::of(status, error.code(), &error)
    }
}

impl From<DocumentError> for Problem {
    fn from(error: DocumentError) -> Self {
        let place = |violation: &Violation| -> Vec<String> {
            let parts = violation.place.split('/').filter(|part| !part.is_empty());
            std::iter::once("body").chain(parts).map(str::to_owned).collect()
        };
        let mut details: Vec<Value> = error
            .violations()
            .into_iter()
            .map(|it| json!({"loc": place(&it), "msg": it.message, "type": error.code()}))
            .collect();
        // Of a text that cannot be read they say where.
        for (detail, finding) in details.iter_mut().zip(error.diagnostics()) {
            detail["code"] = json!(finding.code.as_str());
            detail["line"] = json!(finding.span.map(|span| span.line));
            detail["column"] = json!(finding.span.map(|span| span.column));
        }
        Self::new(422, error.code(), error.to_string()).with_details(Value::Array(details))
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let status = match &error {
            StoreError::Conflict { .. } => 409,
            StoreError::Unstorable { .. } => 422,
            StoreError::Unavailable { .. }
            | StoreError::Leased { .. }
            | StoreError::Fenced { .. } => 503,
            _ => 500,
        };
        Self::of(status, error.code(), &error)
    }
}

impl From<KeyError> for Problem {
    fn from(error: KeyError) -> Self {
        let status = match &error {
            KeyError::InvalidName(_) | KeyError::ReservedName(_) | KeyError::Expired(_) => 422,
            KeyError::Exists(_) => 409,
            KeyError::NoKey(_) => 404,
            KeyError::Unavailable(_) => 503,
            _ => 500,
        };
        Self::of(status, error.code(), &error)
    }
}

impl From<RuntimeError> for Problem {
    fn from(error: RuntimeError) -> Self {
        let status = match error {
            RuntimeError::Store(error) => return error.into(),
            RuntimeError::TooBusy { .. } | RuntimeError::Content(ContentError::Unavailable(_)) => {
                503
            }
            RuntimeError::Refused(_) => 409,
            RuntimeError::InvalidLoad { .. } | RuntimeError::SkillUnavailable { .. } => 422,
            _ => 500,
        };
        Self::of(status, error.code(), &error)
    }
}

impl From<ToolOutcome> for Problem {
    /// A text that the engine could not give: what the skill is like keeps it from that (409), or
    /// what makes the text has failed (502).
    fn from(failure: ToolOutcome) -> Self {
        let status = match failure.code.as_ref() {
            "resource_not_found" => 404,
            "skill_invalid" | "resource_unreadable" | "not_text" | "too_large" => 409,
            _ => 502,
        };
        let message = match failure.data["cause"].as_str() {
            Some(cause) if failure.code == "skill_invalid" => format!(
                "the skill cannot be used here: {cause}; make a version without that, or give the \
                 host what it names"
            ),
            _ => failure.content,
        };
        if status >= 500 {
            tracing::warn!(target: "prowess::server", code = &*failure.code, "{message}");
        }
        Self::new(status, failure.code, message)
    }
}

impl From<InvalidSessionKey> for Problem {
    fn from(error: InvalidSessionKey) -> Self {
        Self::invalid(&["session"], error.to_string())
    }
}

impl From<InvalidAgentName> for Problem {
    fn from(error: InvalidAgentName) -> Self {
        Self::invalid(&["agent"], error.to_string())
    }
}

impl From<InvalidSkillId> for Problem {
    fn from(error: InvalidSkillId) -> Self {
        Self::invalid(&["skill_id"], error.to_string())
    }
}

impl Problem {
    fn of(status: u16, code: &'static str, error: &dyn std::error::Error) -> Self {
        let message = match error.source().map(ToString::to_string) {
            Some(cause) if !error.to_string().contains(&cause) => format!("{error}: {cause}"),
            _ => error.to_string(),
        };
        if status >= 500 {
            tracing::error!(target: "prowess::server", code, "{message}");
        }
        let problem = Self::new(status, code, message);
        if status == 503 { problem.retry_after(1) } else { problem }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_registry_have_the_status_that_is_documented() {
        let id = || "pdf".parse().unwrap();
        let table = [
            (VersionError::NoSkill(id()), 404),
            (VersionError::NoVersion { skill: id(), number: 1 }, 404),
            (VersionError::Exists(id()), 409),
            (VersionError::Stale { skill: id(), expected: 1, actual: 2 }, 412),
            (VersionError::Protected(id()), 403),
            (VersionError::NotBuiltIn(id()), 409),
            (VersionError::Unstorable("x".into()), 422),
            (VersionError::Unavailable("x".into()), 503),
            (VersionError::Corrupt { skill: "pdf".into(), cause: "x".into() }, 500),
        ];
        for (error, status) in table {
            let (code, text) = (error.code(), error.to_string());
            let problem = Problem::from(error);
            assert_eq!((problem.status, &*problem.code, &problem.detail), (status, code, &text));
        }
    }

    #[test]
    fn a_problem_says_everything_in_json() {
        let problem = Problem::invalid(&["body", "name"], "it is empty");
        assert_eq!(
            serde_json::to_value(&problem).unwrap(),
            json!({
                "type": "about:blank", "title": "Unprocessable Entity", "status": 422,
                "code": "invalid_request", "detail": "body.name: it is empty",
                "message": "body.name: it is empty",
                "details": [{"loc": ["body", "name"], "msg": "it is empty", "type": "value_error"}],
            })
        );
    }
}
