//! What can be set for tokens.

use std::time::Duration;

use jsonwebtoken::Algorithm;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use url::Host;

/// The most seconds that clocks may differ.
const MAX_LEEWAY: u64 = 600;

/// The section `[server.jwt]` of `prowess.toml`: whose tokens are accepted, and what they say.
/// The first three keys have no default; the others have these:
///
/// ```toml
/// [server.jwt]
/// jwks_url = "https://id.example.com/jwks.json" # https; http only on loopback
/// issuer = "https://id.example.com"             # what `iss` must be
/// audience = "prowess"                          # what `aud` must be, or have among others
/// role_claim = "prowess_role"                   # a word or a list; "realm_access.roles" is one inside of another
/// name_claim = "sub"                            # who it is: must never be given to somebody else
/// algorithms = ["RS256", "ES256", "EdDSA"]
/// leeway_seconds = 60                           # by which clocks may differ
/// cache_seconds = 600                           # how long keys are used before they are fetched again
/// refresh_seconds = 10                          # at most so often, whatever tokens come
/// stale_seconds = 3600                          # how old they may become while the provider is away
/// fetch_seconds = 5                             # how long fetching them may take
/// max_keys_bytes = 1048576
/// max_token_bytes = 16384
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct JwtSettings {
    /// Where the provider's keys are.
    pub jwks_url: String,
    /// Who must have made a token.
    pub issuer: String,
    /// For whom it must have been made.
    pub audience: String,
    /// The claim with the role, or with a list of which the highest role counts.
    #[serde(default = "role_claim")]
    pub role_claim: String,
    /// The claim that says who it is.
    #[serde(default = "name_claim")]
    pub name_claim: String,
    /// How tokens may be signed.
    #[serde(default = "algorithms")]
    pub algorithms: Vec<TokenAlgorithm>,
    /// By how much clocks may differ.
    #[serde(default = "leeway_seconds")]
    pub leeway_seconds: u64,
    /// How long keys are used before they are fetched again.
    #[serde(default = "cache_seconds")]
    pub cache_seconds: u64,
    /// How much time is at least between two fetches.
    #[serde(default = "refresh_seconds")]
    pub refresh_seconds: u64,
    /// How old keys may become while the provider is away.
    #[serde(default = "stale_seconds")]
    pub stale_seconds: u64,
    /// How long fetching keys may take.
    #[serde(default = "fetch_seconds")]
    pub fetch_seconds: u64,
    /// The most bytes of the provider's answer.
    #[serde(default = "max_keys_bytes")]
    pub max_keys_bytes: usize,
    /// The most bytes of a token.
    #[serde(default = "max_token_bytes")]
    pub max_token_bytes: usize,
}

fn role_claim() -> String {
    "prowess_role".to_owned()
}

fn name_claim() -> String {
    "sub".to_owned()
}

fn algorithms() -> Vec<TokenAlgorithm> {
    vec![TokenAlgorithm::RS256, TokenAlgorithm::ES256, TokenAlgorithm::EdDSA]
}

fn leeway_seconds() -> u64 {
    60
}

fn cache_seconds() -> u64 {
    600
}

fn refresh_seconds() -> u64 {
    10
}

fn stale_seconds() -> u64 {
    3600
}

fn fetch_seconds() -> u64 {
    5
}

fn max_keys_bytes() -> usize {
    1024 * 1024
}

fn max_token_bytes() -> usize {
    16 * 1024
}

/// How a token may be signed. Whoever can check a token with one of these cannot make one: `none`
/// and the shared secrets of HMAC are not among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names are those of RFC 7518 and RFC 8037")]
#[non_exhaustive]
pub enum TokenAlgorithm {
    RS256,
    RS384,
    RS512,
    PS256,
    PS384,
    PS512,
    ES256,
    ES384,
    EdDSA,
}

impl From<TokenAlgorithm> for Algorithm {
    fn from(algorithm: TokenAlgorithm) -> Self {
        match algorithm {
            TokenAlgorithm::RS256 => Self::RS256,
            TokenAlgorithm::RS384 => Self::RS384,
            TokenAlgorithm::RS512 => Self::RS512,
            TokenAlgorithm::PS256 => Self::PS256,
            TokenAlgorithm::PS384 => Self::PS384,
            TokenAlgorithm::PS512 => Self::PS512,
            TokenAlgorithm::ES256 => Self::ES256,
            TokenAlgorithm::ES384 => Self::ES384,
            TokenAlgorithm::EdDSA => Self::EdDSA,
        }
    }
}

/// Why no tokens can be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("[server.jwt]: {0}")]
pub struct InvalidJwtSettings(String);

impl InvalidJwtSettings {
    pub(super) fn new(cause: impl Into<String>) -> Self {
        Self(cause.into())
    }

    /// The stable name of the error.
    pub fn code(&self) -> &'static str {
        "invalid_jwt_settings"
    }
}

impl JwtSettings {
    /// Tokens of this issuer for this audience, checked with the keys that are there.
    pub fn new(
        jwks_url: impl Into<String>,
        issuer: impl Into<String>,
        audience: impl Into<String>,
    ) -> Self {
        Self {
            jwks_url: jwks_url.into(),
            issuer: issuer.into(),
            audience: audience.into(),
            role_claim: role_claim(),
            name_claim: name_claim(),
            algorithms: algorithms(),
            leeway_seconds: leeway_seconds(),
            cache_seconds: cache_seconds(),
            refresh_seconds: refresh_seconds(),
            stale_seconds: stale_seconds(),
            fetch_seconds: fetch_seconds(),
            max_keys_bytes: max_keys_bytes(),
            max_token_bytes: max_token_bytes(),
        }
    }

    /// Whether they can be used; and where the keys are.
    pub(crate) fn check(&self) -> Result<Url, InvalidJwtSettings> {
        let wrong = |cause: &str| Err(InvalidJwtSettings::new(cause));
        let texts = [
            ("issuer", &self.issuer),
            ("audience", &self.audience),
            ("role_claim", &self.role_claim),
            ("name_claim", &self.name_claim),
        ];
        for (name, text) in texts {
            if text.trim().is_empty() {
                return wrong(&format!("{name} is empty"));
            }
        }
        let limits = [
            ("cache_seconds", self.cache_seconds),
            ("refresh_seconds", self.refresh_seconds),
            ("stale_seconds", self.stale_seconds),
            ("fetch_seconds", self.fetch_seconds),
            ("max_keys_bytes", self.max_keys_bytes as u64),
            ("max_token_bytes", self.max_token_bytes as u64),
        ];
        for (name, limit) in limits {
            if limit == 0 {
                return wrong(&format!("{name} must be at least 1; leave it out for its default"));
            }
        }
        if self.leeway_seconds > MAX_LEEWAY {
            return wrong("leeway_seconds is at most 600: set the clocks instead");
        }
        if self.stale_seconds < self.cache_seconds {
            return wrong("stale_seconds must not be less than cache_seconds");
        }
        if self.algorithms.is_empty() {
            return wrong("algorithms is empty; leave it out for its default");
        }
        self.url()
    }

    fn url(&self) -> Result<Url, InvalidJwtSettings> {
        // The text itself is not repeated: it may hold what it must not.
        let wrong = |cause: &str| InvalidJwtSettings::new(format!("jwks_url {cause}"));
        let url =
            Url::parse(&self.jwks_url).map_err(|error| wrong(&format!("is no URL ({error})")))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("holds credentials: keys that are public need none"));
        }
        if url.fragment().is_some() {
            return Err(wrong("has a fragment (#…): leave it out"));
        }
        match url.scheme() {
            "https" => Ok(url),
            "http" if is_loopback(&url) => Ok(url),
            "http" => Err(wrong(
                "must begin with https:// (http:// only on loopback): whoever can change the keys on their \
                 way can make tokens",
            )),
            _ => Err(wrong("must begin with https://")),
        }
    }

    pub(super) fn cache(&self) -> Duration {
        Duration::from_secs(self.cache_seconds)
    }

    pub(super) fn refresh(&self) -> Duration {
        Duration::from_secs(self.refresh_seconds)
    }

    pub(super) fn stale(&self) -> Duration {
        Duration::from_secs(self.stale_seconds)
    }

    pub(super) fn fetch(&self) -> Duration {
        Duration::from_secs(self.fetch_seconds)
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "jwks_url = \"https://id.example.com/jwks.json\"\nissuer = \"https://id.example.com\"\naudience = \"prowess\"\n";

    #[test]
    fn every_key_of_the_documentation_is_known_and_has_its_default() {
        let section: Vec<&str> = include_str!("settings.rs")
            .lines()
            .filter_map(|line| line.strip_prefix("/// "))
            .skip_while(|line| *line != "```toml")
            .skip(1)
            .take_while(|line| *line != "```")
            .collect();
        let file: toml::Table = toml::from_str(&section.join("\n")).unwrap();
        let table = file["server"]["jwt"].as_table().unwrap().clone();
        let short: JwtSettings = toml::from_str(FIRST).unwrap();
        assert_eq!(table, toml::Table::try_from(&short).unwrap(), "the documentation differs");
        assert_eq!(
            short,
            JwtSettings::new(
                "https://id.example.com/jwks.json",
                "https://id.example.com",
                "prowess"
            )
        );
        short.check().unwrap();
    }

    #[test]
    fn keys_come_over_https_or_from_this_machine() {
        let with = |url: &str| JwtSettings::new(url, "i", "a").check().map(drop);
        for good in [
            "https://id.example.com/jwks",
            "https://id.example.com/jwks?p=policy",
            "http://127.0.0.1:8080/jwks",
            "http://127.9.9.9/jwks",
            "http://[::1]:8080/jwks",
            "http://localhost:8080/jwks",
        ] {
            assert_eq!(with(good), Ok(()), "{good}");
        }
        for (bad, expected) in [
            ("http://id.example.com/jwks", "https://"),
            ("http://10.0.0.1/jwks", "https://"),
            ("http://localhost.example.com/jwks", "https://"),
            ("http://127.0.0.1.example.com/jwks", "https://"),
            ("http://[::ffff:127.0.0.1]/jwks", "https://"),
            ("file:///etc/passwd", "https://"),
            ("data:,{}", "https://"),
            ("jwks", "no URL"),
            ("https://me:secret@id.example.com/jwks", "credentials"),
            ("https://id.example.com/jwks#x", "fragment"),
        ] {
            let error = with(bad).unwrap_err();
            assert!(error.to_string().starts_with("[server.jwt]: jwks_url "), "{bad}: {error}");
            assert!(error.to_string().contains(expected), "{bad}: {error}");
            assert!(!error.to_string().contains("secret"), "{error}");
            assert_eq!(error.code(), "invalid_jwt_settings");
        }
    }

    #[test]
    fn wrong_settings_are_named() {
        for (line, expected) in [
            ("cache_seconds = 0", "cache_seconds must be at least 1"),
            ("max_token_bytes = 0", "max_token_bytes must be at least 1"),
            ("leeway_seconds = 601", "at most 600"),
            ("stale_seconds = 599", "stale_seconds must not be less"),
            ("algorithms = []", "algorithms is empty"),
            ("role_claim = \" \"", "role_claim is empty"),
        ] {
            let settings: JwtSettings = toml::from_str(&format!("{FIRST}{line}")).unwrap();
            let error = settings.check().unwrap_err().to_string();
            assert!(error.contains(expected), "{line}: {error}");
        }
        for line in ["leeway_seconds = 0", "leeway_seconds = 600", "stale_seconds = 600"] {
            let settings: JwtSettings = toml::from_str(&format!("{FIRST}{line}")).unwrap();
            assert!(settings.check().is_ok(), "{line}");
        }
    }

    #[test]
    fn no_algorithm_lets_those_who_check_tokens_make_them() {
        for word in ["none", "None", "HS256", "HS384", "HS512", "rs256", "ES256K", "dir"] {
            let text = format!("{FIRST}algorithms = [\"{word}\"]");
            let error = toml::from_str::<JwtSettings>(&text).unwrap_err().to_string();
            assert!(error.contains("unknown variant") && error.contains("RS256"), "{error}");
        }
    }
}
