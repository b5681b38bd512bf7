//! What a host can set: the section `[jira]` of `prowess.toml`. Secrets are not among it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::access;
use super::retry::Backoff;
use super::text::Most;

/// Jira's own nesting needs less, and the reader of JSON stops at 128.
const DEEPEST_JSON: usize = 120;
/// Nobody waits longer.
const SECONDS: std::ops::RangeInclusive<u64> = 1..=3600;

/// How Jira is asked: the section `[jira]` of `prowess.toml`. Secrets are in the environment, or in
/// files that it names.
///
/// ```toml
/// [jira]
/// url = "https://jira.example.com/jira" # with the context path; or JIRA_URL
/// user = "me@example.com"               # for Basic; or JIRA_EMAIL, JIRA_USERNAME
/// api_version = "2"                     # "2" Data Center, "3" Cloud; found out if not said
/// cloud_id = "..."                      # OAuth through `gateway`; or JIRA_CLOUD_ID
/// gateway = "https://api.atlassian.com"
/// token_url = "https://auth.atlassian.com/oauth/token" # where OAuth tokens are renewed
/// default_limit = 50            # entries of a list, unless a call says otherwise
/// max_limit = 100               # entries of a list that a call may ask for
/// max_jql_bytes = 8192          # of a query
/// connect_seconds = 10          # for a connection
/// request_seconds = 30          # for a request and its answer
/// deadline_seconds = 60         # for a call, with everything that is tried again
/// max_retries = 4               # requests after the first one
/// backoff_millis = 500          # before the second one; it doubles
/// max_redirects = 3             # on the same host
/// max_response_bytes = 8388608  # of an answer
/// max_json_depth = 100          # of an answer
/// max_json_values = 500000      # of an answer
/// max_answer_bytes = 131072     # that the model sees of a list
/// max_field_bytes = 1024        # of a name, a summary, a changed value
/// max_description_bytes = 32768 # of the description of an issue
/// max_comment_bytes = 8192      # of a comment
/// max_change_items = 50         # fields that one change shows
/// max_adf_depth = 32            # of nested lists, tables and quotes
/// max_message_bytes = 500       # of what Jira says about an error
/// opening_projects = 50         # that are listed when the skill is loaded
/// opening_bytes = 16384         # of that list
/// opening_seconds = 10          # that loading the skill waits for Jira
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct JiraSettings {
    /// Where Jira is, with its context path. `JIRA_URL` counts more.
    pub url: Option<String>,
    /// Who asks, for Basic authentication. `JIRA_EMAIL` and `JIRA_USERNAME` count more.
    pub user: Option<String>,
    /// Which API: `2` is that of Data Center, `3` that of Cloud. `JIRA_API_VERSION` counts more.
    pub api_version: Option<String>,
    /// The site behind the gateway. `JIRA_CLOUD_ID` counts more.
    pub cloud_id: Option<String>,
    /// Where sites of Jira Cloud are for OAuth tokens.
    pub gateway: String,
    /// Where OAuth tokens are renewed: `https`, or on this machine.
    pub token_url: String,
    /// Entries of a list, unless a call says otherwise.
    pub default_limit: u64,
    /// Entries of a list that a call may ask for.
    pub max_limit: u64,
    /// Bytes of a query.
    pub max_jql_bytes: usize,
    /// Seconds for a connection.
    pub connect_seconds: u64,
    /// Seconds for a request and its answer.
    pub request_seconds: u64,
    /// Seconds for a call, with everything that is tried again.
    pub deadline_seconds: u64,
    /// Requests after the first one.
    pub max_retries: u32,
    /// Milliseconds before the second request, on average. They double.
    pub backoff_millis: u64,
    /// Redirects that are followed, on the same host.
    pub max_redirects: u32,
    /// Bytes of an answer.
    pub max_response_bytes: u64,
    /// How deep an answer is nested.
    pub max_json_depth: usize,
    /// How many values an answer has.
    pub max_json_values: usize,
    /// Bytes of a list that the model sees.
    pub max_answer_bytes: usize,
    /// Bytes of a name, a summary, a changed value.
    pub max_field_bytes: usize,
    /// Bytes of the description of an issue.
    pub max_description_bytes: usize,
    /// Bytes of a comment.
    pub max_comment_bytes: usize,
    /// Fields that one change of an issue shows.
    pub max_change_items: usize,
    /// How deep lists, tables and quotes in a text are nested.
    pub max_adf_depth: usize,
    /// Bytes of what Jira says about an error.
    pub max_message_bytes: usize,
    /// Projects that are listed when the skill is loaded.
    pub opening_projects: u64,
    /// Bytes of that list.
    pub opening_bytes: usize,
    /// Seconds that loading the skill waits for Jira.
    pub opening_seconds: u64,
}

/// Why settings and variables for Jira cannot be used. It never holds a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidJiraSettings {
    /// The section is not what it should be.
    #[error("[jira]: {0}")]
    Table(Box<toml::de::Error>),
    /// A number is out of its range.
    #[error("[jira]: {key} must be {must}")]
    Range {
        /// Which one.
        key: &'static str,
        /// What it must be.
        must: &'static str,
    },
    /// A variable or key cannot be used.
    #[error("{name} {problem}")]
    Unusable {
        /// Which one.
        name: &'static str,
        /// What is wrong, and what to do.
        problem: &'static str,
    },
    /// The file of a secret cannot be read.
    #[error("{name} names a file that cannot be read: {source}")]
    SecretFile {
        /// The variable that names it.
        name: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// Two of them say different things.
    #[error("{one} and {other} contradict each other: {remedy}")]
    Conflict {
        /// One of them.
        one: &'static str,
        /// The other one.
        other: &'static str,
        /// What to do.
        remedy: &'static str,
    },
}

impl InvalidJiraSettings {
    /// The stable name.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Table(_) | Self::Range { .. } => "invalid_jira_settings",
            Self::Unusable { .. } => "jira_unusable_variable",
            Self::SecretFile { .. } => "jira_secret_file",
            Self::Conflict { .. } => "jira_contradiction",
        }
    }
}

impl Default for JiraSettings {
    fn default() -> Self {
        Self {
            url: None,
            user: None,
            api_version: None,
            cloud_id: None,
            gateway: "https://api.atlassian.com".into(),
            token_url: "https://auth.atlassian.com/oauth/token".into(),
            default_limit: 50,
            max_limit: 100,
            max_jql_bytes: 8 << 10,
            connect_seconds: 10,
            request_seconds: 30,
            deadline_seconds: 60,
            max_retries: 4,
            backoff_millis: 500,
            max_redirects: 3,
            max_response_bytes: 8 << 20,
            max_json_depth: 100,
            max_json_values: 500_000,
            max_answer_bytes: 128 << 10,
            max_field_bytes: 1 << 10,
            max_description_bytes: 32 << 10,
            max_comment_bytes: 8 << 10,
            max_change_items: 50,
            max_adf_depth: 32,
            max_message_bytes: 500,
            opening_projects: 50,
            opening_bytes: 16 << 10,
            opening_seconds: 10,
        }
    }
}

macro_rules! setters {
    ($($method:ident $field:ident: $kind:ty;)+) => {
        $(#[doc = concat!("Sets [`JiraSettings::", stringify!($field), "`].")]
        pub fn $method(mut self, $field: $kind) -> Self { self.$field = $field; self })+
    };
}

impl JiraSettings {
    setters! {
        with_gateway gateway: String;
        with_token_url token_url: String;
        with_default_limit default_limit: u64;
        with_max_limit max_limit: u64;
        with_max_jql_bytes max_jql_bytes: usize;
        with_connect_seconds connect_seconds: u64;
        with_request_seconds request_seconds: u64;
        with_deadline_seconds deadline_seconds: u64;
        with_max_retries max_retries: u32;
        with_backoff_millis backoff_millis: u64;
        with_max_redirects max_redirects: u32;
        with_max_response_bytes max_response_bytes: u64;
        with_max_json_depth max_json_depth: usize;
        with_max_json_values max_json_values: usize;
        with_max_answer_bytes max_answer_bytes: usize;
        with_max_field_bytes max_field_bytes: usize;
        with_max_description_bytes max_description_bytes: usize;
        with_max_comment_bytes max_comment_bytes: usize;
        with_max_change_items max_change_items: usize;
        with_max_adf_depth max_adf_depth: usize;
        with_max_message_bytes max_message_bytes: usize;
        with_opening_projects opening_projects: u64;
        with_opening_bytes opening_bytes: usize;
        with_opening_seconds opening_seconds: u64;
    }

    /// The settings in a section `[jira]`.
    pub fn from_table(table: toml::Table) -> Result<Self, InvalidJiraSettings> {
        let settings: Self =
            table.try_into().map_err(|error| InvalidJiraSettings::Table(Box::new(error)))?;
        settings.check()?;
        Ok(settings)
    }

    /// Whether they say themselves where Jira is or who asks, and do not leave it to the
    /// environment.
    pub fn is_about_a_jira(&self) -> bool {
        let default = Self::default();
        let said = [&self.url, &self.user, &self.api_version, &self.cloud_id];
        said.into_iter().any(Option::is_some)
            || self.gateway != default.gateway
            || self.token_url != default.token_url
    }

    /// Whether all numbers make sense, and the address for tokens does.
    pub(super) fn check(&self) -> Result<(), InvalidJiraSettings> {
        let table = [
            ("max_limit", self.max_limit > 0, "at least 1"),
            (
                "default_limit",
                (1..=self.max_limit).contains(&self.default_limit),
                "at least 1, and not above max_limit",
            ),
            ("connect_seconds", SECONDS.contains(&self.connect_seconds), "from 1 to 3600"),
            ("request_seconds", SECONDS.contains(&self.request_seconds), "from 1 to 3600"),
            ("deadline_seconds", SECONDS.contains(&self.deadline_seconds), "from 1 to 3600"),
            ("opening_seconds", SECONDS.contains(&self.opening_seconds), "from 1 to 3600"),
            ("max_json_depth", self.max_json_depth <= DEEPEST_JSON, "at most 120"),
            ("max_adf_depth", self.max_adf_depth <= DEEPEST_JSON, "at most 120"),
        ];
        match table.into_iter().find(|(_, is_fine, _)| !is_fine) {
            Some((key, _, must)) => Err(InvalidJiraSettings::Range { key, must }),
            None => access::token_url(self).map(drop),
        }
    }

    pub(super) fn backoff(&self) -> Backoff {
        Backoff { most: self.max_retries, first: Duration::from_millis(self.backoff_millis) }
    }

    pub(super) fn field(&self) -> Most {
        Most { bytes: self.max_field_bytes, name: "max_field_bytes" }
    }

    pub(super) fn description(&self) -> Most {
        Most { bytes: self.max_description_bytes, name: "max_description_bytes" }
    }

    pub(super) fn comment(&self) -> Most {
        Most { bytes: self.max_comment_bytes, name: "max_comment_bytes" }
    }

    pub(super) fn message(&self) -> Most {
        Most { bytes: self.max_message_bytes, name: "max_message_bytes" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_says_what_is_different() {
        let read = |text: &str| JiraSettings::from_table(toml::from_str(text).unwrap());
        assert_eq!(read("").unwrap(), JiraSettings::default());
        let settings = read("url = \"https://jira.example.com\"\nmax_limit = 500").unwrap();
        assert_eq!(settings.url.as_deref(), Some("https://jira.example.com"));
        assert_eq!(settings.max_limit, 500);
        // Every key of the documentation is one.
        let all = toml::to_string(&JiraSettings::default()).unwrap();
        assert_eq!(read(&all).unwrap(), JiraSettings::default());
        let table = [
            ("limit = 1", "unknown field `limit`"),
            ("max_limit = 0", "max_limit must be at least 1"),
            ("default_limit = 101", "default_limit must be at least 1, and not above max_limit"),
            ("max_json_depth = 121", "max_json_depth must be at most 120"),
            ("deadline_seconds = 0", "deadline_seconds must be from 1 to 3600"),
            ("opening_seconds = 3601", "opening_seconds must be from 1 to 3600"),
        ];
        for (text, expected) in table {
            let wrong = read(text).unwrap_err();
            assert!(wrong.to_string().contains(expected), "{wrong}");
            assert_eq!(wrong.code(), "invalid_jira_settings");
        }
        assert!(read("default_limit = 100\nmax_json_depth = 120").is_ok());
    }

    #[test]
    fn tokens_are_renewed_over_https_or_on_this_machine() {
        let read = |url: &str| {
            let text = format!("token_url = \"{url}\"");
            JiraSettings::from_table(toml::from_str(&text).unwrap())
        };
        for url in [
            "https://auth.example.com/oauth/token",
            "http://127.0.0.1:8080/token",
            "http://[::1]/token",
            "http://localhost/token",
        ] {
            assert!(read(url).is_ok(), "{url}");
        }
        for url in [
            "http://auth.example.com/oauth/token",
            "http://127.0.0.1.example.com/",
            "http://localhost.example.com/",
            "ftp://127.0.0.1/",
            "auth.example.com",
            "https://me:pw@auth.example.com/",
            "https://auth.example.com/?a=b",
            "",
        ] {
            let wrong = read(url).unwrap_err();
            assert_eq!(wrong.code(), "jira_unusable_variable", "{url}");
            assert!(wrong.to_string().starts_with("token_url "), "{wrong}");
        }
    }

    #[test]
    fn a_section_of_limits_is_about_no_jira() {
        let read = |text: &str| JiraSettings::from_table(toml::from_str(text).unwrap()).unwrap();
        assert!(!read("").is_about_a_jira());
        assert!(!read("max_limit = 500").is_about_a_jira());
        for text in [
            "url = \"https://jira.example.com\"",
            "user = \"me\"",
            "api_version = \"2\"",
            "cloud_id = \"1\"",
            "gateway = \"https://example.com\"",
            "token_url = \"https://example.com\"",
        ] {
            assert!(read(text).is_about_a_jira(), "{text}");
        }
    }

    #[test]
    fn a_secret_in_the_section_is_refused_and_not_repeated() {
        let wrong = "bearer_token = \"hunter2hunter2\"";
        let wrong = JiraSettings::from_table(toml::from_str(wrong).unwrap()).unwrap_err();
        assert!(wrong.to_string().contains("bearer_token"), "{wrong}");
        assert!(!format!("{wrong} {wrong:?}").contains("hunter2"), "{wrong:?}");
    }
}
