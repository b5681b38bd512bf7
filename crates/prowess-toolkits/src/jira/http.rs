//! What requests are sent with.

use std::error::Error;
use std::time::Duration;

use reqwest::redirect::Policy;

use super::error::JiraError;
use super::settings::JiraSettings;

/// A client that follows no redirect, knows no proxy and keeps nothing between requests.
pub(super) fn client(settings: &JiraSettings) -> Result<reqwest::Client, JiraError> {
    // Only if the program has not chosen another one.
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    reqwest::Client::builder()
        .user_agent(concat!("prowess/", env!("CARGO_PKG_VERSION")))
        // Every step is looked at; a proxy of the environment would be given our token.
        .redirect(Policy::none())
        .no_proxy()
        .referer(false)
        .connect_timeout(Duration::from_secs(settings.connect_seconds))
        .build()
        .map_err(|error| JiraError::NoClient { cause: describe(&error) })
}

/// An error with the innermost cause, which says most. It holds no address and no header.
pub(super) fn describe(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    match cause.downcast_ref::<reqwest::Error>() {
        Some(_) => "the connection failed".to_owned(),
        None => cause.to_string(),
    }
}
