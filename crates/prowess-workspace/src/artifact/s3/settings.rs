//! Where a bucket is, and who asks.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use url::{Host, Url};

/// The most bytes in front of all keys: a key has 1024, and what follows needs half of them.
const MAX_PREFIX_BYTES: usize = 512;

/// Where a bucket is, and how long it is waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct S3Settings {
    /// The server: `https://…`. Empty, that of AWS in the region.
    pub endpoint: String,
    /// The bucket. It must be there.
    pub bucket: String,
    /// The region. Servers that have none take any.
    pub region: String,
    /// What is in front of all keys, so that a bucket can hold other things too.
    pub prefix: String,
    /// Whether the bucket is a part of the path, and not of the host's name.
    pub path_style: bool,
    /// Whether bytes may travel unencrypted, to other hosts than this one.
    pub allow_http: bool,
    /// The variable with the id of the key.
    pub access_key_id_env: String,
    /// The variable with the secret of the key.
    pub secret_access_key_env: String,
    /// The variable with the token of a session. It may be missing.
    pub session_token_env: String,
    /// Until a connection is there, in milliseconds.
    pub connect_timeout_ms: u64,
    /// For one request with its answer, in milliseconds.
    pub request_timeout_ms: u64,
    /// For one save, load, list or delete with all that belongs to it, in milliseconds.
    pub operation_timeout_ms: u64,
    /// How often a request is repeated that got no answer.
    pub max_retries: u32,
}

impl Default for S3Settings {
    fn default() -> Self {
        Self {
            endpoint: String::new(),
            bucket: String::new(),
            region: "us-east-1".into(),
            prefix: String::new(),
            path_style: true,
            allow_http: false,
            access_key_id_env: "AWS_ACCESS_KEY_ID".into(),
            secret_access_key_env: "AWS_SECRET_ACCESS_KEY".into(),
            session_token_env: "AWS_SESSION_TOKEN".into(),
            connect_timeout_ms: 5_000,
            request_timeout_ms: 60_000,
            operation_timeout_ms: 180_000,
            max_retries: 3,
        }
    }
}

/// Why settings of a bucket cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidS3Settings {
    /// A key has no value that could be used.
    #[error("{key}: {cause}")]
    Value {
        /// The key.
        key: &'static str,
        /// What is wrong, and what to write.
        cause: String,
    },
    /// A variable is missing.
    #[error(
        "the variable {variable} is not set; credentials come from the environment, and \
         {key} names the variable"
    )]
    Credentials {
        /// The variable.
        variable: String,
        /// The key that names it.
        key: &'static str,
    },
    /// There is no thread for it.
    #[error("no thread for requests: {cause}")]
    Thread {
        /// What the system says.
        cause: String,
    },
}

impl InvalidS3Settings {
    /// The stable name.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Value { .. } => "invalid_s3_settings",
            Self::Credentials { .. } => "missing_s3_credentials",
            Self::Thread { .. } => "artifact_io",
        }
    }
}

impl S3Settings {
    /// A bucket of AWS; everything else by default.
    pub fn new(bucket: impl Into<String>) -> Self {
        Self { bucket: bucket.into(), ..Self::default() }
    }

    /// Another server than that of AWS.
    pub fn with_endpoint(mut self, endpoint: impl Into<String>) -> Self {
        self.endpoint = endpoint.into();
        self
    }

    /// What is in front of all keys.
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// What is wrong with them, if something is.
    pub fn check(&self) -> Result<(), InvalidS3Settings> {
        let wrong =
            |key, cause: &str| Err(InvalidS3Settings::Value { key, cause: cause.to_owned() });
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        if self.bucket.is_empty() {
            return wrong("bucket", "it is missing; write the name of a bucket that is there");
        }
        if self.bucket.len() > 255 || !self.bucket.chars().all(is_name) {
            return wrong("bucket", "a name has letters, digits, '-', '.' and '_' only");
        }
        if self.region.is_empty() || !self.region.chars().all(is_name) {
            return wrong("region", "a region is a word like us-east-1");
        }
        if self.prefix.len() > MAX_PREFIX_BYTES {
            return wrong("prefix", "it has more than 512 bytes");
        }
        let is_part = |part: &str| !matches!(part, "" | "." | "..") && part.chars().all(is_name);
        if !self.prefix.is_empty() && !self.prefix.trim_end_matches('/').split('/').all(is_part) {
            return wrong("prefix", "it has parts of letters, digits, '-', '.' and '_' only");
        }
        for (key, value) in [
            ("connect_timeout_ms", self.connect_timeout_ms),
            ("request_timeout_ms", self.request_timeout_ms),
            ("operation_timeout_ms", self.operation_timeout_ms),
        ] {
            if value == 0 {
                return wrong(key, "it must be at least 1");
            }
        }
        self.check_endpoint()
    }

    fn check_endpoint(&self) -> Result<(), InvalidS3Settings> {
        let wrong = |cause: &str| {
            Err(InvalidS3Settings::Value { key: "endpoint", cause: cause.to_owned() })
        };
        if self.endpoint.is_empty() {
            return Ok(());
        }
        let Ok(url) = Url::parse(&self.endpoint) else {
            return wrong("it is no URL; write one like https://s3.example.com");
        };
        if !url.username().is_empty() || url.password().is_some() {
            return wrong("credentials do not belong there; they come from the environment");
        }
        if url.query().is_some() || url.fragment().is_some() {
            return wrong("it has a '?' or a '#'");
        }
        match (url.scheme(), url.host()) {
            ("https", Some(_)) => Ok(()),
            ("http", Some(host)) if self.allow_http || is_loopback(&host) => Ok(()),
            ("http", Some(_)) => {
                wrong("without TLS anybody on the way can read; use https, or set allow_http")
            }
            _ => wrong("it must begin with https://"),
        }
    }

    /// The server, as people are told.
    pub(super) fn server(&self) -> String {
        match self.endpoint.is_empty() {
            true => format!("AWS in {}", self.region),
            false => self.endpoint.clone(),
        }
    }

    pub(super) fn is_plain_http(&self) -> bool {
        self.endpoint.starts_with("http:")
    }

    pub(super) fn operation_timeout(&self) -> Duration {
        Duration::from_millis(self.operation_timeout_ms)
    }
}

fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}

/// Who asks. Never shown.
#[derive(Clone)]
pub struct S3Credentials {
    pub(super) access_key_id: String,
    pub(super) secret_access_key: String,
    pub(super) session_token: Option<String>,
}

impl fmt::Debug for S3Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("S3Credentials").finish_non_exhaustive()
    }
}

impl S3Credentials {
    /// A key, and the token of a session if it belongs to one.
    pub fn new(
        access_key_id: impl Into<String>,
        secret_access_key: impl Into<String>,
        session_token: Option<String>,
    ) -> Self {
        Self {
            access_key_id: access_key_id.into(),
            secret_access_key: secret_access_key.into(),
            session_token,
        }
    }

    /// What the variables hold that the settings name.
    pub fn from_env(settings: &S3Settings) -> Result<Self, InvalidS3Settings> {
        Self::from_variables(settings, |name| std::env::var(name).ok())
    }

    fn from_variables(
        settings: &S3Settings,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, InvalidS3Settings> {
        let named = |key, name: &str| {
            let value = variable(name).filter(|value| !value.is_empty());
            value.ok_or_else(|| InvalidS3Settings::Credentials { variable: name.to_owned(), key })
        };
        Ok(Self {
            access_key_id: named("access_key_id_env", &settings.access_key_id_env)?,
            secret_access_key: named("secret_access_key_env", &settings.secret_access_key_env)?,
            session_token: named("session_token_env", &settings.session_token_env).ok(),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_checked_and_wrong_ones_are_named() {
        let good = |endpoint: &str| S3Settings::new("bucket").with_endpoint(endpoint);
        for endpoint in [
            "",
            "https://s3.example.com",
            "https://10.0.0.1:9000",
            "https://example.com/storage/v1/s3",
            "http://127.0.0.1:9000",
            "http://[::1]:9000",
            "http://localhost:9000",
        ] {
            assert_eq!(good(endpoint).check(), Ok(()), "{endpoint}");
        }
        for endpoint in [
            "http://s3.example.com",
            "http://localhost.example.com",
            "http://127.0.0.1.example.com",
            "http://10.0.0.1",
            "https://key:secret@s3.example.com",
            "https://key@s3.example.com",
            "https://s3.example.com/?x=1",
            "https://s3.example.com/#x",
            "ftp://s3.example.com",
            "file:///tmp",
            "s3.example.com",
            "https://",
        ] {
            let error = good(endpoint).check().unwrap_err();
            assert!(error.to_string().starts_with("endpoint: "), "{endpoint}: {error}");
            assert_eq!(error.code(), "invalid_s3_settings");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        let allowed = S3Settings { allow_http: true, ..good("http://s3.example.com") };
        assert_eq!(allowed.check(), Ok(()));
    }

    #[test]
    fn names_and_limits_are_checked_at_their_edges() {
        let settings = || S3Settings::new("bucket");
        let table = [
            ("bucket", S3Settings::new("")),
            ("bucket", S3Settings::new("a/b")),
            ("bucket", S3Settings::new("a?b")),
            ("bucket", S3Settings::new("x".repeat(256))),
            ("region", S3Settings { region: String::new(), ..settings() }),
            ("region", S3Settings { region: "a b".into(), ..settings() }),
            ("prefix", settings().with_prefix("x".repeat(513))),
            ("prefix", settings().with_prefix("a/../b")),
            ("prefix", settings().with_prefix("/a")),
            ("prefix", settings().with_prefix("a//b")),
            ("prefix", settings().with_prefix("ä")),
            ("connect_timeout_ms", S3Settings { connect_timeout_ms: 0, ..settings() }),
            ("request_timeout_ms", S3Settings { request_timeout_ms: 0, ..settings() }),
            ("operation_timeout_ms", S3Settings { operation_timeout_ms: 0, ..settings() }),
        ];
        for (expected, settings) in table {
            let error = settings.check().unwrap_err();
            assert!(error.to_string().starts_with(&format!("{expected}: ")), "{error}");
        }
        for settings in [
            S3Settings::new("x".repeat(255)),
            settings().with_prefix("x".repeat(512)),
            settings().with_prefix("team-1/artifacts/"),
            S3Settings {
                connect_timeout_ms: 1,
                request_timeout_ms: 1,
                operation_timeout_ms: 1,
                max_retries: 0,
                ..settings()
            },
        ] {
            assert_eq!(settings.check(), Ok(()));
        }
    }

    #[test]
    fn credentials_come_from_named_variables_and_are_never_shown() {
        let settings = S3Settings { access_key_id_env: "MY_KEY".into(), ..S3Settings::new("b") };
        let set = |names: &'static [&'static str]| {
            move |name: &str| names.contains(&name).then(|| format!("value-of-{name}"))
        };
        let all = set(&["MY_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"]);
        let credentials = S3Credentials::from_variables(&settings, all).unwrap();
        assert_eq!(credentials.access_key_id, "value-of-MY_KEY");
        assert_eq!(credentials.session_token.as_deref(), Some("value-of-AWS_SESSION_TOKEN"));
        assert_eq!(format!("{credentials:?}"), "S3Credentials { .. }");
        let without_token = set(&["MY_KEY", "AWS_SECRET_ACCESS_KEY"]);
        let credentials = S3Credentials::from_variables(&settings, without_token).unwrap();
        assert_eq!(credentials.session_token, None);
        for (names, missing) in [
            (set(&["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]), "MY_KEY"),
            (set(&["MY_KEY"]), "AWS_SECRET_ACCESS_KEY"),
        ] {
            let error = S3Credentials::from_variables(&settings, names).unwrap_err();
            assert_eq!(error.code(), "missing_s3_credentials");
            assert!(error.to_string().contains(&format!("variable {missing} is not set")));
        }
        let empty = |_: &str| Some(String::new());
        assert!(S3Credentials::from_variables(&settings, empty).is_err());
    }
}
