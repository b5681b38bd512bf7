//! Who we are, as Jira is told it.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::HeaderValue;
use serde_json::Value;

use super::error::JiraError;
use super::oauth::TokenExchange;
use super::settings::JiraSettings;

/// No part of a credential is shorter than this and still hidden in messages: hiding "a" would
/// destroy them.
const SHORTEST_HIDDEN: usize = 4;
/// The same for what Jira says of issues, where a short password may be a word like any other.
const SHORTEST_CONCEALED: usize = 16;

/// How we say who we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Basic,
    Bearer,
    /// A bearer token that we renew.
    OAuth,
}

/// Who we are. `Debug` shows no secret.
#[derive(Clone)]
pub(super) struct Credentials {
    pub(super) scheme: Scheme,
    proof: Proof,
}

#[derive(Clone)]
enum Proof {
    Fixed { header: HeaderValue, secrets: Vec<String> },
    Renewed(Arc<TokenExchange>),
}

/// What a request is sent with. It is marked as sensitive.
#[derive(Clone)]
pub(super) struct Grant {
    pub(super) header: HeaderValue,
    /// How often a renewal was tried before it was given.
    pub(super) attempts: u64,
}

/// The header for a token, if it can be in one.
pub(super) fn bearer_header(token: &str) -> Option<HeaderValue> {
    match !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => header_of(&format!("Bearer {token}")),
        false => None,
    }
}

fn header_of(text: &str) -> Option<HeaderValue> {
    let mut header = HeaderValue::from_str(text).ok()?;
    header.set_sensitive(true);
    Some(header)
}

/// The text without these secrets, also where they are written as in an address.
pub(super) fn without<'a>(text: &str, secrets: impl IntoIterator<Item = &'a String>) -> String {
    hidden(text, &forms(secrets, SHORTEST_HIDDEN))
}

/// All that is looked for, the longest first: one may be the beginning of another.
fn forms<'a>(secrets: impl IntoIterator<Item = &'a String>, shortest: usize) -> Vec<String> {
    let secrets = secrets.into_iter().filter(|secret| secret.len() >= shortest);
    let mut forms: Vec<String> = secrets.flat_map(|secret| forms_of(secret)).collect();
    forms.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
    forms.dedup();
    forms
}

fn hidden(text: &str, forms: &[String]) -> String {
    forms.iter().fold(text.to_owned(), |text, form| text.replace(form.as_str(), "[hidden]"))
}

fn conceal(value: &mut Value, forms: &[String]) {
    match value {
        Value::String(text) if forms.iter().any(|form| text.contains(form.as_str())) => {
            *text = hidden(text, forms);
        }
        Value::Array(values) => values.iter_mut().for_each(|value| conceal(value, forms)),
        Value::Object(fields) => fields.values_mut().for_each(|value| conceal(value, forms)),
        _ => {}
    }
}

/// The ways in which a secret may be repeated.
fn forms_of(secret: &str) -> [String; 3] {
    let (mut large, mut small) = (String::new(), String::new());
    for byte in secret.bytes() {
        match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            true => {
                large.push(char::from(byte));
                small.push(char::from(byte));
            }
            false => {
                large.push_str(&format!("%{byte:02X}"));
                small.push_str(&format!("%{byte:02x}"));
            }
        }
    }
    [secret.to_owned(), large, small]
}

impl Credentials {
    pub(super) fn bearer(token: &str) -> Option<Self> {
        let (header, secrets) = (bearer_header(token)?, vec![token.to_owned()]);
        Some(Self { scheme: Scheme::Bearer, proof: Proof::Fixed { header, secrets } })
    }

    pub(super) fn basic(user: &str, token: &str) -> Option<Self> {
        let is_plain = |text: &str| !text.chars().any(char::is_control);
        if user.contains(':') || !is_plain(user) || !is_plain(token) {
            return None;
        }
        let both = STANDARD.encode(format!("{user}:{token}"));
        let header = header_of(&format!("Basic {both}"))?;
        let secrets = vec![token.to_owned(), both];
        Some(Self { scheme: Scheme::Basic, proof: Proof::Fixed { header, secrets } })
    }

    pub(super) fn oauth(exchange: TokenExchange) -> Self {
        Self { scheme: Scheme::OAuth, proof: Proof::Renewed(Arc::new(exchange)) }
    }

    /// The header that is always the same, if it is.
    #[cfg(test)]
    pub(super) fn fixed(&self) -> Option<&HeaderValue> {
        match &self.proof {
            Proof::Fixed { header, .. } => Some(header),
            Proof::Renewed(_) => None,
        }
    }

    /// What to send a request with.
    pub(super) async fn grant(&self, settings: &Arc<JiraSettings>) -> Result<Grant, JiraError> {
        match &self.proof {
            Proof::Fixed { header, .. } => Ok(Grant { header: header.clone(), attempts: 0 }),
            Proof::Renewed(exchange) => exchange.grant(settings).await,
        }
    }

    /// What to send it with after this was not accepted, if there is anything else.
    pub(super) async fn after(
        &self,
        refused: &Grant,
        settings: &Arc<JiraSettings>,
    ) -> Result<Option<Grant>, JiraError> {
        match &self.proof {
            Proof::Fixed { .. } => Ok(None),
            Proof::Renewed(exchange) => exchange.renew(refused.attempts, settings).await.map(Some),
        }
    }

    /// The text without our secrets.
    pub(super) fn hide(&self, text: &str) -> String {
        match &self.proof {
            Proof::Fixed { secrets, .. } => without(text, secrets),
            Proof::Renewed(exchange) => exchange.hide(text),
        }
    }

    /// Takes our secrets out of an answer: what is in front of Jira may repeat what it was sent.
    pub(super) fn conceal(&self, answer: &mut Value) {
        let forms = match &self.proof {
            Proof::Fixed { secrets, .. } => forms(secrets, SHORTEST_CONCEALED),
            Proof::Renewed(exchange) => forms(&exchange.secrets(), SHORTEST_CONCEALED),
        };
        conceal(answer, &forms);
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Credentials").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}
