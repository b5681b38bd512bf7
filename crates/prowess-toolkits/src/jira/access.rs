//! Where Jira is, and as whom it is asked.

use url::{Host, Url};

use super::credentials::{Credentials, Scheme};
use super::error::JiraError;
use super::oauth::{OAuthClient, TokenExchange};
use super::secrets::{API_TOKEN, BEARER_TOKEN, CLIENT_SECRET, REFRESH_TOKEN};
use super::settings::{InvalidJiraSettings, JiraSettings};

/// Where Jira is, and as whom it is asked. `Debug` shows no secret.
///
/// | variable | what it is |
/// |---|---|
/// | `JIRA_URL` | the address, with the context path |
/// | `JIRA_BEARER_TOKEN` | an OAuth or personal access token |
/// | `JIRA_PAT` | a personal access token of Data Center |
/// | `JIRA_EMAIL` or `JIRA_USERNAME`, with `JIRA_API_TOKEN` | Basic: an API token of Cloud, or a password |
/// | `JIRA_CLOUD_ID` | the site, for OAuth tokens that go through `https://api.atlassian.com` |
/// | `JIRA_REFRESH_TOKEN`, with `JIRA_CLIENT_ID`, `JIRA_CLIENT_SECRET` and `JIRA_CLOUD_ID` | OAuth: access tokens are renewed; `JIRA_BEARER_TOKEN` may be the first one |
/// | `JIRA_API_VERSION` | `2` for Data Center, `3` for Cloud; found out without it |
///
/// `JIRA_BEARER_TOKEN_FILE`, `JIRA_API_TOKEN_FILE`, `JIRA_REFRESH_TOKEN_FILE` and
/// `JIRA_CLIENT_SECRET_FILE` name files that hold the secret, in place of the variable itself.
#[derive(Clone)]
pub struct JiraAccess {
    pub(super) place: Option<Place>,
    pub(super) version: Option<ApiVersion>,
    /// What is not set, in words.
    missing: String,
    /// What is set and cannot be used, in words.
    unusable: Option<String>,
}

/// Everything that a request needs.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) base: Url,
    pub(super) credentials: Credentials,
    pub(super) is_gateway: bool,
}

/// Which API is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ApiVersion {
    /// `2`: Data Center.
    Two,
    /// `3`: Cloud.
    Three,
}

impl JiraAccess {
    /// As the settings and the variables of this process say.
    pub fn from_environment(settings: &JiraSettings) -> Result<Self, InvalidJiraSettings> {
        Self::from_variables(settings, |name| std::env::var(name).ok())
    }

    /// As the settings and these variables say. What is not set at all is no error: the skill says
    /// what is missing. What contradicts itself is one.
    ///
    /// ```
    /// use prowess_toolkits::{JiraAccess, JiraSettings};
    ///
    /// let variables = |name: &str| match name {
    ///     "JIRA_URL" => Some("https://jira.example.com".to_owned()),
    ///     "JIRA_PAT" => Some("NjM4NTk".to_owned()),
    ///     _ => None,
    /// };
    /// let access = JiraAccess::from_variables(&JiraSettings::default(), variables)?;
    /// assert!(!format!("{access:?}").contains("NjM4NTk"));
    /// # Ok::<(), prowess_toolkits::InvalidJiraSettings>(())
    /// ```
    pub fn from_variables(
        settings: &JiraSettings,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, InvalidJiraSettings> {
        settings.check()?;
        let set =
            |name: &str| variable(name).map(|it| it.trim().to_owned()).filter(|it| !it.is_empty());
        let or = |name: &str, key: &Option<String>| set(name).or_else(|| key.clone());
        let url = or("JIRA_URL", &settings.url);
        let cloud_id = or("JIRA_CLOUD_ID", &settings.cloud_id);
        let version = or("JIRA_API_VERSION", &settings.api_version);
        let version = version.map(|version| version_of(&version)).transpose()?;
        let credentials = credentials(settings, cloud_id.is_some(), &set)?;
        let base = match (&cloud_id, &url) {
            (Some(id), _) => {
                if set("JIRA_PAT").is_some() {
                    return Err(InvalidJiraSettings::Conflict {
                        one: "JIRA_CLOUD_ID",
                        other: "JIRA_PAT",
                        remedy: "personal access tokens are for Data Center; unset one of them",
                    });
                }
                if version == Some(ApiVersion::Two) {
                    return Err(InvalidJiraSettings::Conflict {
                        one: "JIRA_CLOUD_ID",
                        other: "JIRA_API_VERSION=2",
                        remedy: "Jira Cloud is asked by version 3; unset JIRA_API_VERSION",
                    });
                }
                Some(gateway(settings, id)?)
            }
            (None, Some(url)) => Some(base_of("JIRA_URL", url)?),
            (None, None) => None,
        };
        let missing = match (&base, &credentials) {
            (None, None) => "JIRA_URL and JIRA_BEARER_TOKEN (or JIRA_EMAIL and JIRA_API_TOKEN)",
            (None, Some(_)) => "JIRA_URL",
            (Some(_), _) => {
                "JIRA_BEARER_TOKEN, JIRA_PAT, JIRA_EMAIL and JIRA_API_TOKEN, or JIRA_REFRESH_TOKEN"
            }
        };
        let is_gateway = cloud_id.is_some();
        let place = base.zip(credentials);
        let place = place.map(|(base, credentials)| Place { base, credentials, is_gateway });
        Ok(Self { place, version, missing: missing.to_owned(), unusable: None })
    }

    /// No Jira at all, for this reason.
    pub(super) fn unusable(why: &InvalidJiraSettings) -> Self {
        let (missing, unusable) = (String::new(), Some(why.to_string()));
        Self { place: None, version: None, missing, unusable }
    }

    /// What it comes to that there is no place to ask.
    pub(super) fn lack(&self) -> JiraError {
        match self.unusable.clone() {
            Some(why) => JiraError::Unusable { why },
            None => JiraError::Unconfigured { missing: self.missing.clone() },
        }
    }

    pub(super) fn scheme(&self) -> Option<Scheme> {
        self.place.as_ref().map(|place| place.credentials.scheme)
    }
}

/// The one way to say who we are.
fn credentials(
    settings: &JiraSettings,
    has_cloud_id: bool,
    set: &impl Fn(&str) -> Option<String>,
) -> Result<Option<Credentials>, InvalidJiraSettings> {
    let remedy = "set one of them only";
    let conflict = |one, other| InvalidJiraSettings::Conflict { one, other, remedy };
    let unusable = |name, problem| InvalidJiraSettings::Unusable { name, problem };
    let (bearer, api_token) = (BEARER_TOKEN.find(set)?, API_TOKEN.find(set)?);
    let (refresh, pat) = (REFRESH_TOKEN.find(set)?, set("JIRA_PAT"));
    if bearer.is_some() && pat.is_some() && bearer != pat {
        return Err(conflict("JIRA_BEARER_TOKEN", "JIRA_PAT"));
    }
    let (email, username) = (set("JIRA_EMAIL"), set("JIRA_USERNAME"));
    if email.is_some() && username.is_some() && email != username {
        return Err(conflict("JIRA_EMAIL", "JIRA_USERNAME"));
    }
    let in_header = "holds a character that cannot be in a header; set it without";
    if let Some(refresh) = refresh {
        let name = REFRESH_TOKEN.name;
        match (pat, api_token) {
            (Some(_), _) => return Err(conflict(name, "JIRA_PAT")),
            (_, Some(_)) => return Err(conflict(name, "JIRA_API_TOKEN")),
            (None, None) => {}
        }
        if !has_cloud_id {
            return Err(unusable(name, "needs JIRA_CLOUD_ID beside it"));
        }
        let (id, secret) = (set("JIRA_CLIENT_ID"), CLIENT_SECRET.find(set)?);
        let client = id.zip(secret).map(|(id, secret)| OAuthClient { id, secret });
        let needs = "needs JIRA_CLIENT_ID and JIRA_CLIENT_SECRET beside it";
        let client = client.ok_or_else(|| unusable(name, needs))?;
        let url = token_url(settings)?;
        let exchange = TokenExchange::new(url, client, refresh, bearer.as_deref());
        let exchange = exchange.ok_or_else(|| unusable(BEARER_TOKEN.name, in_header))?;
        return Ok(Some(Credentials::oauth(exchange)));
    }
    let name = if bearer.is_some() { "JIRA_BEARER_TOKEN" } else { "JIRA_PAT" };
    match (bearer.or(pat), api_token) {
        (Some(_), Some(_)) => Err(conflict(name, "JIRA_API_TOKEN")),
        (Some(token), None) => {
            Credentials::bearer(&token).map(Some).ok_or_else(|| unusable(name, in_header))
        }
        (None, Some(token)) => {
            let user = email.or(username).or_else(|| settings.user.clone());
            let user = user.ok_or_else(|| {
                unusable("JIRA_API_TOKEN", "needs JIRA_EMAIL or JIRA_USERNAME beside it")
            })?;
            let problem = "or the user beside it holds a control character, or the user a colon";
            let basic = Credentials::basic(&user, &token);
            basic.map(Some).ok_or_else(|| unusable("JIRA_API_TOKEN", problem))
        }
        (None, None) => Ok(None),
    }
}

/// Where tokens are renewed. What is sent there is worth more than an access token.
pub(super) fn token_url(settings: &JiraSettings) -> Result<Url, InvalidJiraSettings> {
    let url = base_of("token_url", &settings.token_url)?;
    let is_local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    match url.scheme() == "https" || is_local {
        true => Ok(url),
        false => Err(InvalidJiraSettings::Unusable {
            name: "token_url",
            problem: "must begin with https://, or be on this machine",
        }),
    }
}

fn version_of(text: &str) -> Result<ApiVersion, InvalidJiraSettings> {
    match text {
        "2" => Ok(ApiVersion::Two),
        "3" => Ok(ApiVersion::Three),
        _ => Err(InvalidJiraSettings::Unusable {
            name: "JIRA_API_VERSION",
            problem: "must be 2 or 3; unset, the edition is found out",
        }),
    }
}

/// The address that everything is below.
fn base_of(name: &'static str, text: &str) -> Result<Url, InvalidJiraSettings> {
    let unusable = |problem| InvalidJiraSettings::Unusable { name, problem };
    let url = Url::parse(text).map_err(|_| unusable("is no URL; write https://HOST/CONTEXT"))?;
    if !matches!(url.scheme(), "http" | "https") || url.cannot_be_a_base() {
        return Err(unusable("must begin with https:// or http://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(unusable("holds a user name or a password; use the variables for them"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(unusable("holds a query or a fragment; write https://HOST/CONTEXT"));
    }
    Ok(url)
}

fn gateway(settings: &JiraSettings, id: &str) -> Result<Url, InvalidJiraSettings> {
    let unusable = |name, problem| InvalidJiraSettings::Unusable { name, problem };
    let is_id = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if id.is_empty() || id.len() > 64 || !id.bytes().all(is_id) {
        return Err(unusable("JIRA_CLOUD_ID", "must be an id of letters, digits and hyphens"));
    }
    let mut url = base_of("gateway", &settings.gateway)?;
    url.path_segments_mut()
        .map_err(|()| unusable("gateway", "is no URL"))?
        .pop_if_empty()
        .extend(["ex", "jira", id]);
    Ok(url)
}

impl std::fmt::Debug for JiraAccess {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("JiraAccess")
            .field("url", &self.place.as_ref().map(|place| place.base.as_str()))
            .field("scheme", &self.scheme())
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
