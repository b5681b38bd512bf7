//! A client that reads, within limits, from one host.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::time::Instant;
use url::Url;

use super::access::{ApiVersion, JiraAccess, Place};
use super::credentials::Grant;
use super::endpoint::{Read, Verb};
use super::error::JiraError;
use super::http::{self, describe};
use super::json;
use super::retry::{jitter, retry_after};
use super::settings::JiraSettings;
use super::text::{Most, line};

/// What is read of an answer that is an error.
const ERROR_BYTES: u64 = 64 << 10;

/// Later than that the clock could not tell.
const LONGEST_SECONDS: u64 = 24 * 60 * 60;

/// Asks Jira. All it can send is a [`Read`].
#[derive(Clone)]
pub(super) struct Client {
    pub(super) access: Arc<JiraAccess>,
    pub(super) settings: Arc<JiraSettings>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    http: OnceLock<Result<reqwest::Client, JiraError>>,
    version: OnceCell<ApiVersion>,
    /// Whether the search told that this is a Cloud, although a version was set.
    is_cloud: AtomicBool,
}

/// Whether a request is made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// As the settings say.
    Retry,
    /// Never.
    Once,
}

/// Whether our token may still be renewed for a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Renewal {
    Open,
    /// Once is enough: a fresh token that is not accepted will not be the next time.
    Made,
}

/// Until when an answer is waited for, and what that limit is called.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    at: Instant,
    limit: &'static str,
    seconds: u64,
}

impl Deadline {
    pub(super) fn new(limit: &'static str, seconds: u64) -> Self {
        // No time is longer than a day, whatever a host has set.
        let time = Duration::from_secs(seconds.min(LONGEST_SECONDS));
        Self { at: Instant::now() + time, limit, seconds }
    }

    fn too_slow(self) -> JiraError {
        JiraError::TooSlow { limit: self.limit, seconds: self.seconds }
    }

    fn left(self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }
}

/// An answer: what it means, or where else to ask.
enum Answer {
    Is(Value),
    IsAt(Url),
}

impl Client {
    pub(super) fn new(settings: JiraSettings, access: JiraAccess) -> Self {
        Self {
            access: Arc::new(access),
            settings: Arc::new(settings),
            shared: Arc::new(Shared::default()),
        }
    }

    /// The time that a call has.
    pub(super) fn deadline(&self) -> Deadline {
        Deadline::new("deadline_seconds", self.settings.deadline_seconds)
    }

    pub(super) fn place(&self) -> Result<&Place, JiraError> {
        self.access.place.as_ref().ok_or_else(|| self.access.lack())
    }

    /// Which API this Jira speaks: as set, or as it says itself, which is asked once.
    pub(super) async fn version(&self, deadline: Deadline) -> Result<ApiVersion, JiraError> {
        self.version_with(deadline, Patience::Retry).await
    }

    pub(super) async fn version_with(
        &self,
        deadline: Deadline,
        patience: Patience,
    ) -> Result<ApiVersion, JiraError> {
        let place = self.place()?;
        if let Some(version) = self.access.version {
            return Ok(version);
        }
        if place.is_gateway {
            return Ok(ApiVersion::Three);
        }
        let ask = async || {
            let info = self.read(&Read::server_info(), deadline, patience).await?;
            match info["deploymentType"].as_str() {
                Some(kind) if kind.eq_ignore_ascii_case("Cloud") => Ok(ApiVersion::Three),
                Some(_) => Ok(ApiVersion::Two),
                // Old servers do not say.
                None if info["version"].is_string() => Ok(ApiVersion::Two),
                None => {
                    Err(JiraError::invalid("serverInfo names no deploymentType and no version"))
                }
            }
        };
        // Whoever waits for another call's question has a time of its own.
        let version = self.shared.version.get_or_try_init(ask);
        let version = tokio::time::timeout_at(deadline.at, version).await;
        version.map_err(|_| deadline.too_slow())?.copied()
    }

    /// Whether somebody said which API it speaks.
    pub(super) fn is_version_set(&self) -> bool {
        self.access.version.is_some()
    }

    /// Whether the search told that this is a Cloud.
    pub(super) fn is_cloud_known(&self) -> bool {
        self.shared.is_cloud.load(Ordering::Relaxed)
    }

    pub(super) fn remember_cloud(&self) {
        self.shared.is_cloud.store(true, Ordering::Relaxed);
    }

    /// Asks, again where that may help, within the time.
    pub(super) async fn read(
        &self,
        read: &Read,
        deadline: Deadline,
        patience: Patience,
    ) -> Result<Value, JiraError> {
        let place = self.place()?;
        let (mut attempt, mut renewal) = (0, Renewal::Open);
        loop {
            let own = Deadline::new("request_seconds", self.settings.request_seconds);
            let until = if own.at < deadline.at { own } else { deadline };
            let answer = self.granted(place, read, &mut renewal);
            let answer = tokio::time::timeout_at(until.at, answer).await;
            let failure = match answer {
                Ok(Ok(answer)) => {
                    tracing::debug!(endpoint = read.name(), attempt, "Jira has answered");
                    return Ok(answer);
                }
                Ok(Err(failure)) => failure,
                Err(_) => until.too_slow(),
            };
            let left = deadline.left();
            let pause = match patience {
                Patience::Retry => self.settings.backoff().pause(attempt, &failure, left, jitter()),
                Patience::Once => None,
            };
            let (endpoint, code) = (read.name(), failure.code());
            tracing::debug!(endpoint, attempt, code, again = pause.is_some(), "Jira has failed");
            let Some(pause) = pause else {
                return Err(failure);
            };
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }

    /// One request; and the same once more, if our token was not accepted and there is another.
    async fn granted(
        &self,
        place: &Place,
        read: &Read,
        renewal: &mut Renewal,
    ) -> Result<Value, JiraError> {
        let grant = place.credentials.grant(&self.settings).await?;
        let answer = self.follow(place, read, &grant).await;
        if answer != Err(JiraError::Unauthorized) || *renewal == Renewal::Made {
            return answer;
        }
        match place.credentials.after(&grant, &self.settings).await? {
            Some(grant) => {
                *renewal = Renewal::Made;
                self.follow(place, read, &grant).await
            }
            None => answer,
        }
    }

    /// One request, and where it leads on the same host.
    async fn follow(&self, place: &Place, read: &Read, grant: &Grant) -> Result<Value, JiraError> {
        let mut url = read.url(&place.base);
        for _ in 0..=self.settings.max_redirects {
            match self.ask(place, read, grant, &url).await? {
                Answer::Is(value) => return Ok(value),
                Answer::IsAt(next) if read.verb() == Verb::Get => url = next,
                // Elsewhere the same POST could change something.
                Answer::IsAt(next) => {
                    let why = "only what is read by GET is looked for elsewhere";
                    return Err(JiraError::Redirected { to: self.origin_of(&next), why });
                }
            }
        }
        let why = "there are too many redirects (max_redirects)";
        Err(JiraError::Redirected { to: self.origin_of(&url), why })
    }

    async fn ask(
        &self,
        place: &Place,
        read: &Read,
        grant: &Grant,
        url: &Url,
    ) -> Result<Answer, JiraError> {
        let unreachable = |error: &reqwest::Error| JiraError::Unreachable {
            cause: line(&place.credentials.hide(&describe(error)), self.settings.message()),
        };
        let http = self.http()?;
        let request = match read.verb() {
            Verb::Get => http.get(url.clone()),
            Verb::PostCount(body) => {
                http.post(url.clone()).header(CONTENT_TYPE, "application/json").body(body.to_vec())
            }
        };
        let request =
            request.header(AUTHORIZATION, grant.header.clone()).header(ACCEPT, "application/json");
        let mut response = request.send().await.map_err(|error| unreachable(&error))?;
        let status = response.status();
        if status.is_redirection() {
            return self.redirected(place, url, response.headers()).map(Answer::IsAt);
        }
        let most = match status.is_success() {
            true => self.settings.max_response_bytes,
            false => ERROR_BYTES,
        };
        let is_told_too_large = response.content_length().is_some_and(|length| length > most);
        let too_large = JiraError::TooLarge { limit: "max_response_bytes", most };
        if status.is_success() && is_told_too_large {
            return Err(too_large);
        }
        let mut body = Vec::new();
        while let Some(part) = response.chunk().await.map_err(|error| unreachable(&error))? {
            let room = usize::try_from(most).unwrap_or(usize::MAX) - body.len();
            if part.len() > room && status.is_success() {
                return Err(too_large);
            }
            body.extend_from_slice(&part[..part.len().min(room)]);
            if body.len() as u64 == most && !status.is_success() {
                break;
            }
        }
        match status.is_success() {
            true => self.understand(place, &response, &body).map(Answer::Is),
            false => Err(self.refusal(place, status, response.headers(), &body)),
        }
    }

    /// What an answer says.
    fn understand(
        &self,
        place: &Place,
        response: &Response,
        body: &[u8],
    ) -> Result<Value, JiraError> {
        let answer = json::parse(body, &self.settings).map_err(|error| match error {
            JiraError::InvalidAnswer { cause } => {
                let kind = response.headers().get(CONTENT_TYPE);
                let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or("no type");
                let kind = place.credentials.hide(kind);
                let kind = line(&kind, Most { bytes: 100, ..self.settings.message() });
                JiraError::invalid(format!("{cause}; it is called {kind}"))
            }
            error => error,
        });
        answer.map(|mut answer| {
            place.credentials.conceal(&mut answer);
            answer
        })
    }

    /// What a refusal says.
    fn refusal(
        &self,
        place: &Place,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
    ) -> JiraError {
        match status.as_u16() {
            401 => return JiraError::Unauthorized,
            403 => return JiraError::Forbidden,
            _ => {}
        }
        let said = json::parse(body, &self.settings).ok().and_then(|body| message_of(&body));
        let said = said.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
        // A server may repeat what it was sent.
        let said = line(&place.credentials.hide(&said), self.settings.message());
        let reason = status.canonical_reason().unwrap_or("no reason given");
        let message = if said.is_empty() { reason.to_owned() } else { said };
        let after = headers.get(RETRY_AFTER).and_then(|after| after.to_str().ok());
        let retry_after = after.and_then(|after| retry_after(after, Timestamp::now()));
        JiraError::Status { status: status.as_u16(), message, retry_after }
    }

    /// Where a redirect leads to, if we go there: nowhere but to the same API on the same host.
    fn redirected(&self, place: &Place, from: &Url, headers: &HeaderMap) -> Result<Url, JiraError> {
        let to = headers.get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or_default();
        let next = from.join(to).ok().filter(|_| !to.is_empty());
        let Some(next) = next else {
            return Err(JiraError::Redirected { to: "nowhere".into(), why: "it is no URL" });
        };
        let refused = |why| JiraError::Redirected { to: self.origin_of(&next), why };
        if next.scheme() != place.base.scheme() {
            return Err(refused("it is another scheme"));
        }
        if next.origin() != place.base.origin() {
            return Err(refused("it is another host"));
        }
        if !next.username().is_empty() || next.password().is_some() {
            return Err(refused("it holds a user name or a password"));
        }
        let api = format!("{}/rest/", place.base.path().trim_end_matches('/'));
        if !next.path().starts_with(&api) {
            return Err(refused("it is not the API but another page, such as one to log in"));
        }
        Ok(next)
    }

    /// Scheme, host and path: a query may hold what nobody should read.
    fn origin_of(&self, url: &Url) -> String {
        let mut url = url.clone();
        url.set_query(None);
        url.set_fragment(None);
        let _ = url.set_username("");
        let _ = url.set_password(None);
        let shown = match &self.access.place {
            Some(place) => place.credentials.hide(url.as_str()),
            None => url.to_string(),
        };
        line(&shown, self.settings.message())
    }

    fn http(&self) -> Result<&reqwest::Client, JiraError> {
        let http = self.shared.http.get_or_init(|| http::client(&self.settings));
        http.as_ref().map_err(Clone::clone)
    }
}

/// What Jira says about an error, in any of its ways.
fn message_of(body: &Value) -> Option<String> {
    let texts = |value: &Value| -> Vec<String> {
        match value {
            Value::Array(list) => {
                list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            Value::Object(map) => {
                let fields = map.iter().filter_map(|(field, text)| Some((field, text.as_str()?)));
                fields.map(|(field, text)| format!("{field}: {text}")).collect()
            }
            _ => Vec::new(),
        }
    };
    let all = [texts(&body["errorMessages"]), texts(&body["errors"])].concat();
    let one = || {
        let message = body["message"].as_str().or_else(|| body["errorMessage"].as_str())?;
        Some(message.to_owned())
    };
    if all.is_empty() { one() } else { Some(all.join("; ")) }
}
