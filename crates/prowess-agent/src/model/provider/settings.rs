//! What can be set about the way to a provider.

use serde::{Deserialize, Serialize};

use crate::model::ModelError;
use crate::model::retry::RetryPolicy;

/// The way to a provider: where it is, how long to wait, when to try again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ProviderSettings {
    /// Where it is, if not where it usually is; without credentials in it.
    pub base_url: Option<String>,
    /// How long connecting may take, in milliseconds.
    pub connect_timeout_ms: u64,
    /// How long it may take until an answer begins, in milliseconds; if the answer does not come
    /// bit by bit, until it is whole.
    pub response_timeout_ms: u64,
    /// How long nothing may come while an answer comes bit by bit, in milliseconds.
    pub idle_timeout_ms: u64,
    /// When to try again.
    pub retry: RetryPolicy,
}

impl Default for ProviderSettings {
    fn default() -> Self {
        Self {
            base_url: None,
            connect_timeout_ms: 10_000,
            response_timeout_ms: 300_000,
            idle_timeout_ms: 60_000,
            retry: RetryPolicy::default(),
        }
    }
}

impl ProviderSettings {
    /// Sets [`ProviderSettings::base_url`].
    pub fn with_base_url(mut self, base_url: impl Into<String>) -> Self {
        self.base_url = Some(base_url.into());
        self
    }

    /// Sets [`ProviderSettings::connect_timeout_ms`].
    pub fn with_connect_timeout_ms(mut self, connect_timeout_ms: u64) -> Self {
        self.connect_timeout_ms = connect_timeout_ms;
        self
    }

    /// Sets [`ProviderSettings::response_timeout_ms`].
    pub fn with_response_timeout_ms(mut self, response_timeout_ms: u64) -> Self {
        self.response_timeout_ms = response_timeout_ms;
        self
    }

    /// Sets [`ProviderSettings::idle_timeout_ms`].
    pub fn with_idle_timeout_ms(mut self, idle_timeout_ms: u64) -> Self {
        self.idle_timeout_ms = idle_timeout_ms;
        self
    }

    /// Sets [`ProviderSettings::retry`].
    pub fn with_retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }
}

/// A base URL that paths can be appended to.
pub(super) fn base_url(text: &str) -> Result<String, ModelError> {
    // The text itself is not repeated: it may hold what it must not.
    let invalid = |cause: &str| ModelError::InvalidRequest {
        message: format!("the base URL cannot be used: {cause}"),
    };
    let url = reqwest::Url::parse(text).map_err(|error| invalid(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(invalid("it must begin with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("it holds credentials; give a key instead"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(invalid("it holds a query or a fragment"));
    }
    let mut url = url.to_string();
    if !url.ends_with('/') {
        url.push('/');
    }
    Ok(url)
}
