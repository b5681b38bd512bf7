//! Fetches a provider's keys: bounded in time and size, from that one address only.

use std::time::Duration;

use reqwest::{Client, Url};

use super::settings::{InvalidJwtSettings, JwtSettings};

/// Where keys are fetched from.
pub(super) struct Provider {
    client: Client,
    url: Url,
    time: Duration,
    most: usize,
}

/// Why there are no keys. Nothing of the answer is repeated.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("no answer within {} seconds", .0.as_secs())]
    Time(Duration),
    #[error("{0}")]
    Away(String),
    #[error("the status is {0}, not 200; redirects are not followed")]
    Status(u16),
    #[error("the answer has more than {0} bytes (server.jwt.max_keys_bytes)")]
    TooLarge(usize),
    #[error("the answer is no set of keys (a JSON object with a list 'keys')")]
    NoSet,
}

impl Provider {
    pub(super) fn new(settings: &JwtSettings) -> Result<Self, InvalidJwtSettings> {
        let url = settings.check()?;
        // Whoever runs us may have chosen a provider of cryptography; otherwise it is ring.
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            drop(rustls::crypto::ring::default_provider().install_default());
        }
        let mut builder = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(settings.fetch())
            .user_agent(concat!("prowess/", env!("CARGO_PKG_VERSION")));
        if url.scheme() == "http" {
            // What is on this machine is not asked for elsewhere.
            builder = builder.no_proxy();
        }
        let client = builder
            .build()
            .map_err(|_| InvalidJwtSettings::new("the HTTP client cannot be set up"))?;
        Ok(Self { client, url, time: settings.fetch(), most: settings.max_keys_bytes })
    }

    /// The provider's answer.
    pub(super) async fn fetch(&self) -> Result<Vec<u8>, FetchError> {
        let fetched = tokio::time::timeout(self.time, self.read()).await;
        fetched.unwrap_or(Err(FetchError::Time(self.time)))
    }

    async fn read(&self) -> Result<Vec<u8>, FetchError> {
        let request = self.client.get(self.url.clone()).header("accept", "application/json");
        let mut response = request.send().await.map_err(away)?;
        if response.status().as_u16() != 200 {
            return Err(FetchError::Status(response.status().as_u16()));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(away)? {
            if body.len() + chunk.len() > self.most {
                return Err(FetchError::TooLarge(self.most));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}

/// What the network says, to its innermost cause.
fn away(error: reqwest::Error) -> FetchError {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    FetchError::Away(text)
}
