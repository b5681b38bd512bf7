//! What can be set for a server.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::jwt::JwtSettings;

/// The section `[server]` of `prowess.toml`. Every limit is here.
///
/// ```toml
/// [server]
/// host = "127.0.0.1"
/// port = 7171
/// max_body_bytes = 10485760
/// max_bodies_bytes = 268435456      # of the bodies of all requests together
/// max_json_depth = 64
/// max_calls = 128                   # in one request
/// request_seconds = 30
/// call_seconds = 600                # for tool calls, the beginning of turns, and imports
/// header_seconds = 15               # also how long an idle connection is kept
/// body_seconds = 20
/// max_failed_logins_per_minute = 20 # from one address
/// max_connections = 1024
/// max_connections_per_address = 768 # more, where many come through one proxy
/// max_streams = 64                  # of events, for one key or for all without one
/// shutdown_seconds = 30
/// ready_bytes = 67108864            # of answers about skills that are kept ready
/// allowed_hosts = []                # names that this server has besides its address
/// allowed_origins = []              # other web sites that may use it: "https://app.example.com"
/// ```
///
/// `requests_per_second` of one key, or of one address without one, has no limit on loopback and
/// 1000 elsewhere, unless it is set; 0 is no limit. Tokens of a provider are accepted beside keys
/// with `[server.jwt]`: [`JwtSettings`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ServerSettings {
    /// The address to listen at.
    pub host: IpAddr,
    /// The port; 0 is any that is free.
    pub port: u16,
    /// The most bytes of a request's body.
    pub max_body_bytes: usize,
    /// The most bytes of the bodies of all requests that are not answered yet.
    pub max_bodies_bytes: usize,
    /// How deep JSON may be nested.
    pub max_json_depth: usize,
    /// The most tool calls of one request.
    pub max_calls: usize,
    /// How long a request may take.
    pub request_seconds: u64,
    /// How long tool calls, the beginning of a turn and an import may take.
    pub call_seconds: u64,
    /// How long the head of a request may take to come, and how long an idle connection is kept.
    pub header_seconds: u64,
    /// How long the body of a request may take to come.
    pub body_seconds: u64,
    /// How many requests a key, or an address without one, may make. 0: as many as it likes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<u32>,
    /// How many wrong keys an address may show.
    pub max_failed_logins_per_minute: u32,
    /// How many connections there may be.
    pub max_connections: usize,
    /// How many of them one address may have; a network of IPv6 is one.
    pub max_connections_per_address: usize,
    /// How many streams of events one key may have, or all without one together.
    pub max_streams: usize,
    /// How many bytes of answers about skills are kept ready.
    pub ready_bytes: u64,
    /// How long what was begun may take when the server ends.
    pub shutdown_seconds: u64,
    /// Names that this server has besides its address.
    pub allowed_hosts: Vec<String>,
    /// Other web sites that may use it.
    pub allowed_origins: Vec<String>,
    /// Whose tokens are accepted beside keys, if anybody's are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwt: Option<JwtSettings>,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 7171,
            max_body_bytes: 10 * 1024 * 1024,
            max_bodies_bytes: 256 << 20,
            max_json_depth: 64,
            max_calls: 128,
            request_seconds: 30,
            call_seconds: 600,
            header_seconds: 15,
            body_seconds: 20,
            requests_per_second: None,
            max_failed_logins_per_minute: 20,
            max_connections: 1024,
            max_connections_per_address: 768,
            max_streams: 64,
            ready_bytes: 64 << 20,
            shutdown_seconds: 30,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            jwt: None,
        }
    }
}

/// So many requests a second, where the server is not on loopback and nobody says otherwise.
const REQUESTS_ELSEWHERE: u32 = 1000;

/// Why a section `[server]` cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("[server]: {0}")]
pub struct InvalidServerSettings(Box<dyn std::error::Error + Send + Sync>);

impl InvalidServerSettings {
    /// The stable name of the error.
    pub fn code(&self) -> &'static str {
        "invalid_server_settings"
    }
}

impl ServerSettings {
    /// The section as it is written in a file. Unknown keys are errors, and so are limits that
    /// leave nothing.
    pub fn from_table(table: toml::Table) -> Result<Self, InvalidServerSettings> {
        let settings: Self = table
            .try_into()
            .map_err(|error: toml::de::Error| InvalidServerSettings(error.into()))?;
        let limits = [
            ("max_body_bytes", settings.max_body_bytes as u64),
            ("max_json_depth", settings.max_json_depth as u64),
            ("max_calls", settings.max_calls as u64),
            ("request_seconds", settings.request_seconds),
            ("call_seconds", settings.call_seconds),
            ("header_seconds", settings.header_seconds),
            ("body_seconds", settings.body_seconds),
            ("max_failed_logins_per_minute", settings.max_failed_logins_per_minute.into()),
            ("max_connections", settings.max_connections as u64),
            ("max_connections_per_address", settings.max_connections_per_address as u64),
            ("max_streams", settings.max_streams as u64),
        ];
        for (name, limit) in limits {
            if limit == 0 {
                return Err(InvalidServerSettings(
                    format!("{name} must be at least 1; leave it out for its default").into(),
                ));
            }
        }
        if settings.max_bodies_bytes < settings.max_body_bytes {
            let message = "max_bodies_bytes must be at least max_body_bytes";
            return Err(InvalidServerSettings(message.into()));
        }
        // JSON that is deeper is read by nobody.
        if settings.max_json_depth > 127 {
            return Err(InvalidServerSettings("max_json_depth is at most 127".into()));
        }
        if let Some(jwt) = &settings.jwt {
            jwt.check().map_err(|error| InvalidServerSettings(error.into()))?;
        }
        Ok(settings)
    }

    /// How many requests a second, at this address; none is any number.
    pub(crate) fn requests_per_second(&self, address: IpAddr) -> Option<u32> {
        let limit = self.requests_per_second;
        let limit = limit.unwrap_or(if address.is_loopback() { 0 } else { REQUESTS_ELSEWHERE });
        (limit > 0).then_some(limit)
    }

    pub(crate) fn request_time(&self) -> Duration {
        Duration::from_secs(self.request_seconds)
    }

    pub(crate) fn call_time(&self) -> Duration {
        Duration::from_secs(self.call_seconds)
    }

    pub(crate) fn body_time(&self) -> Duration {
        Duration::from_secs(self.body_seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ServerSettings, InvalidServerSettings> {
        ServerSettings::from_table(toml::from_str(text).unwrap())
    }

    #[test]
    fn every_key_of_the_documentation_is_known_and_has_its_default() {
        assert_eq!(read("").unwrap(), ServerSettings::default());
        let section: Vec<&str> = include_str!("settings.rs")
            .lines()
            .filter_map(|line| line.strip_prefix("/// "))
            .skip_while(|line| *line != "```toml")
            .skip(1)
            .take_while(|line| *line != "```")
            .collect();
        let mut file: toml::Table = toml::from_str(&section.join("\n")).unwrap();
        let Some(toml::Value::Table(table)) = file.remove("server") else { panic!("{file}") };
        let own = toml::Table::try_from(ServerSettings::default()).unwrap();
        assert_eq!(table, own, "the documentation and the settings differ");
    }

    #[test]
    fn wrong_settings_are_named() {
        for (text, expected) in [
            ("prot = 1", "unknown field `prot`, expected"),
            ("port = 65536", "port"),
            ("host = \"localhost\"", "host"),
            ("max_connections = 0", "max_connections must be at least 1"),
            ("max_json_depth = 128", "at most 127"),
            ("max_bodies_bytes = 10485759", "max_bodies_bytes must be at least max_body_bytes"),
            ("request_seconds = -1", "request_seconds"),
            ("[jwt]\nissuer = \"i\"\naudience = \"a\"", "missing field `jwks_url`"),
            (
                "[jwt]\njwks_url = \"http://a.example/\"\nissuer = \"i\"\naudience = \"a\"",
                "[server.jwt]: jwks_url must",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.to_string().starts_with("[server]: "), "{text}: {error}");
            assert!(error.to_string().contains(expected), "{text}: {error}");
            assert_eq!(error.code(), "invalid_server_settings");
        }
        assert_eq!(read("max_json_depth = 127").unwrap().max_json_depth, 127);
    }

    #[test]
    fn requests_are_limited_elsewhere_than_on_loopback_unless_somebody_says_otherwise() {
        let [here, there]: [IpAddr; 2] =
            ["127.0.0.1".parse().unwrap(), "10.0.0.1".parse().unwrap()];
        let limits = |text| {
            let settings = read(text).unwrap();
            [here, there].map(|address| settings.requests_per_second(address))
        };
        assert_eq!(limits(""), [None, Some(1000)]);
        assert_eq!(limits("requests_per_second = 0"), [None, None]);
        assert_eq!(limits("requests_per_second = 5"), [Some(5), Some(5)]);
    }
}
