//! Access tokens of OAuth (3LO): they end after an hour, and are renewed with a refresh token.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use url::Url;

use super::credentials::{Grant, bearer_header, without};
use super::error::JiraError;
use super::http::{self, describe};
use super::json;
use super::retry::retry_after;
use super::settings::JiraSettings;
use super::text::line;

/// What is read of an answer: tokens are short.
const ANSWER_BYTES: usize = 64 << 10;
/// So many tokens of the past are still hidden where somebody repeats them.
const REMEMBERED: usize = 8;

/// Exchanges a refresh token for an access token. All it can send is that one POST, to one address.
pub(super) struct TokenExchange {
    url: Url,
    client: OAuthClient,
    http: OnceLock<Result<reqwest::Client, JiraError>>,
    tokens: tokio::sync::Mutex<Tokens>,
    /// How often a renewal was tried. It changes while `tokens` is held, and only then.
    attempts: AtomicU64,
    /// What is hidden.
    secrets: Mutex<Vec<String>>,
}

/// The app that was allowed to ask.
pub(super) struct OAuthClient {
    pub(super) id: String,
    pub(super) secret: String,
}

struct Tokens {
    access: Option<HeaderValue>,
    refresh: String,
    /// What the last renewal came to, if it failed.
    failure: Option<JiraError>,
}

/// What a renewal gives.
struct Fresh {
    header: HeaderValue,
    access: String,
    refresh: Option<String>,
}

impl TokenExchange {
    /// The first access token may be known already. None if it cannot be in a header.
    pub(super) fn new(
        url: Url,
        client: OAuthClient,
        refresh: String,
        access: Option<&str>,
    ) -> Option<Self> {
        let header = match access {
            Some(token) => Some(bearer_header(token)?),
            None => None,
        };
        let first = [Some(client.secret.as_str()), access, Some(refresh.as_str())];
        let secrets = first.into_iter().flatten().map(str::to_owned).collect();
        Some(Self {
            url,
            client,
            http: OnceLock::new(),
            tokens: tokio::sync::Mutex::new(Tokens { access: header, refresh, failure: None }),
            attempts: AtomicU64::new(0),
            secrets: Mutex::new(secrets),
        })
    }

    /// The access token that is known, or the first one.
    pub(super) async fn grant(
        self: &Arc<Self>,
        settings: &Arc<JiraSettings>,
    ) -> Result<Grant, JiraError> {
        let attempts = self.attempts();
        // Both of one moment: what was given after so many attempts.
        let known = {
            let tokens = self.tokens.lock().await;
            tokens.access.clone().map(|header| Grant { header, attempts: self.attempts() })
        };
        match known {
            Some(grant) => Ok(grant),
            None => self.renew(attempts, settings).await,
        }
    }

    /// Another access token than the one that was given after so many attempts. Whoever asks for
    /// one at the same time is given the same, or told the same failure.
    pub(super) async fn renew(
        self: &Arc<Self>,
        attempts: u64,
        settings: &Arc<JiraSettings>,
    ) -> Result<Grant, JiraError> {
        // A task of its own: when the caller's time is over, the answer must not be lost. The
        // refresh token in it may be the only one that is still good.
        let (exchange, settings) = (Arc::clone(self), Arc::clone(settings));
        let task = tokio::spawn(async move { exchange.renew_here(attempts, &settings).await });
        let broken_off = |_| JiraError::refresh_failed("it was broken off");
        task.await.map_err(broken_off)?
    }

    async fn renew_here(&self, attempts: u64, settings: &JiraSettings) -> Result<Grant, JiraError> {
        let mut tokens = self.tokens.lock().await;
        if self.attempts() == attempts {
            let time = Duration::from_secs(settings.request_seconds);
            let fresh = tokio::time::timeout(time, self.exchange(&tokens.refresh, settings)).await;
            let fresh = fresh.unwrap_or_else(|_| {
                let seconds = settings.request_seconds;
                let cause = format!("no answer within {seconds} s (request_seconds)");
                Err(JiraError::refresh_failed(cause))
            });
            self.attempts.fetch_add(1, Ordering::SeqCst);
            tokens.failure = match fresh {
                Ok(fresh) => {
                    let is_rotated = fresh.refresh.is_some();
                    tracing::debug!(is_rotated, "the access token of Jira was renewed");
                    self.remember(fresh.refresh.iter().chain([&fresh.access]));
                    tokens.access = Some(fresh.header);
                    tokens.refresh = fresh.refresh.unwrap_or_else(|| tokens.refresh.clone());
                    None
                }
                Err(failure) => {
                    tracing::debug!(code = failure.code(), "the access token was not renewed");
                    Some(failure)
                }
            };
        }
        match (&tokens.failure, &tokens.access) {
            (Some(failure), _) => Err(failure.clone()),
            (None, Some(header)) => Ok(Grant { header: header.clone(), attempts: self.attempts() }),
            (None, None) => Err(JiraError::refresh_failed("it gave no access token")),
        }
    }

    /// The one request.
    async fn exchange(&self, refresh: &str, settings: &JiraSettings) -> Result<Fresh, JiraError> {
        let shown = |text: &str| line(&self.hide(text), settings.message());
        let broken = |error: &reqwest::Error| JiraError::refresh_failed(shown(&describe(error)));
        let http = self.http.get_or_init(|| http::client(settings));
        let body = json!({
            "grant_type": "refresh_token", "client_id": self.client.id,
            "client_secret": self.client.secret, "refresh_token": refresh,
        });
        let request = http.as_ref().map_err(Clone::clone)?.post(self.url.clone());
        let request = request.header(CONTENT_TYPE, "application/json");
        let request = request.header(ACCEPT, "application/json").body(body.to_string());
        let mut response = request.send().await.map_err(|error| broken(&error))?;
        let status = response.status();
        let after = response.headers().get(RETRY_AFTER).and_then(|after| after.to_str().ok());
        let retry_after = after.and_then(|after| retry_after(after, Timestamp::now()));
        let body = beginning(&mut response).await.map_err(|error| broken(&error))?;
        let answer = json::parse(&body, settings);
        if status.is_success() {
            let fresh = answer.ok().and_then(|answer| fresh(&answer));
            return fresh.ok_or_else(|| {
                JiraError::refresh_refused("its answer holds no access token that can be used")
            });
        }
        let said = answer.ok().map(|answer| reason(&answer)).unwrap_or_default();
        let said = if said.is_empty() { String::new() } else { format!(": {said}") };
        let cause = shown(&format!("{} ({}){said}", title(status), status.as_u16()));
        match status.as_u16() {
            408 | 429 | 500..=599 => Err(JiraError::RefreshFailed { cause, retry_after }),
            _ => Err(JiraError::RefreshRefused { cause }),
        }
    }

    fn attempts(&self) -> u64 {
        self.attempts.load(Ordering::SeqCst)
    }

    fn remember<'a>(&self, tokens: impl Iterator<Item = &'a String>) {
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        secrets.extend(tokens.cloned());
        // The first one is the client's, and stays.
        let over = secrets.len().saturating_sub(1 + REMEMBERED);
        secrets.drain(1..1 + over);
    }

    /// All that nobody else should read.
    pub(super) fn secrets(&self) -> Vec<String> {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The text without our secrets.
    pub(super) fn hide(&self, text: &str) -> String {
        without(text, &self.secrets())
    }
}

/// As much of an answer as is looked at.
async fn beginning(response: &mut Response) -> Result<Vec<u8>, reqwest::Error> {
    let mut body = Vec::new();
    while body.len() < ANSWER_BYTES
        && let Some(part) = response.chunk().await?
    {
        let room = ANSWER_BYTES - body.len();
        body.extend_from_slice(&part[..part.len().min(room)]);
    }
    Ok(body)
}

fn fresh(answer: &Value) -> Option<Fresh> {
    let access = answer["access_token"].as_str()?;
    let refresh = answer["refresh_token"].as_str().filter(|token| !token.is_empty());
    Some(Fresh {
        header: bearer_header(access)?,
        access: access.to_owned(),
        refresh: refresh.map(str::to_owned),
    })
}

/// What the server of tokens says about an error.
fn reason(answer: &Value) -> String {
    let parts = ["error", "error_description"].map(|key| answer[key].as_str().unwrap_or_default());
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ")
}

fn title(status: StatusCode) -> &'static str {
    match status.is_redirection() {
        true => "a redirect, which is not followed",
        false => status.canonical_reason().unwrap_or("no reason given"),
    }
}

impl std::fmt::Debug for TokenExchange {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("TokenExchange")
            .field("url", &self.url.as_str())
            .finish_non_exhaustive()
    }
}
