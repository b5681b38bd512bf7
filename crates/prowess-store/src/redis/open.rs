//! How a server is opened, and what it promises.

use std::time::Duration;

use redis::{Client, IntoConnectionInfo, ProtocolVersion, cmd};

use super::link::{Link, Unavailable};
use super::names::{Names, is_prefix};
use crate::settings::Eviction;

/// The layout of keys that this program knows.
const LAYOUT: u64 = 1;
/// What the key with the layout begins with.
const OURS: &str = "prowess-store ";
/// So many keys are looked at in one go.
const SCANNED: usize = 1000;
/// So many keys are looked at in all before a prefix counts as unused.
const MOST_SCANNED: usize = 1_000_000;

/// What bounds a store in Redis, and what it accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RedisSettings {
    /// So long a connection may take.
    pub connect_time: Duration,
    /// So long an operation may take, with everything it asks of the server.
    pub answer_time: Duration,
    /// What is done with a server that removes keys when its memory is full.
    pub eviction: Eviction,
}

impl Default for RedisSettings {
    fn default() -> Self {
        Self {
            connect_time: Duration::from_secs(5),
            answer_time: Duration::from_secs(10),
            eviction: Eviction::Refuse,
        }
    }
}

/// Why a Redis server could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RedisOpenError {
    /// The address is none of a server. It is not shown: it may hold a password.
    #[error("the address is none of a Redis server, such as redis://127.0.0.1:6379/0: {0}")]
    Address(String),
    /// Keys cannot begin so.
    #[error("keys cannot begin with '{0}': take 1 to 64 of a-z, A-Z, 0-9, '.', '_', '-' and ':'")]
    Prefix(String),
    /// The server is not there, or refuses.
    #[error("the Redis server cannot be used: {0}")]
    Unavailable(String),
    /// The keys are somebody else's.
    #[error("keys that begin with '{0}:' belong to another program; take another prefix")]
    Foreign(String),
    /// The server removes what is stored when its memory is full.
    #[error(
        "the Redis server removes what is stored when its memory is full (maxmemory-policy {0}): \
         set it to noeviction, or accept that with allow_eviction = true"
    )]
    Evicts(String),
    /// A newer program made them.
    #[error("the keys have layout {layout}, this program knows {known}: update it")]
    Newer {
        /// Their layout.
        layout: u64,
        /// The newest one that is known.
        known: u64,
    },
}

impl RedisOpenError {
    /// The stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Address(_) => "invalid_address",
            Self::Prefix(_) => "invalid_prefix",
            Self::Unavailable(_) => "store_unavailable",
            Self::Foreign(_) => "store_foreign",
            Self::Evicts(_) => "store_evicts",
            Self::Newer { .. } => "store_newer",
        }
    }
}

impl From<Unavailable> for RedisOpenError {
    fn from(Unavailable(cause): Unavailable) -> Self {
        Self::Unavailable(cause)
    }
}

/// What an acknowledged write means, by the settings that the server had when it was opened.
///
/// In each of them a crash of *this* process loses nothing, and what a server has after a crash is
/// a state that was there before it: no commit is there by half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// `appendonly yes`, `appendfsync always`: it is on the server's disk. Nothing that was
    /// acknowledged is lost if the server or its machine crashes.
    Always,
    /// `appendonly yes`, `appendfsync everysec`: it is on the disk within a second or two. A crash of
    /// the server's machine loses what was acknowledged in that time; a crash of the server alone
    /// does not lose what it has handed to the system.
    EverySecond,
    /// It is in the server's memory. Without an append-only file a restart of the server loses
    /// everything since its last snapshot; with `appendfsync no` the system decides.
    None,
    /// The server does not say.
    Unknown,
}

impl Durability {
    fn of(append_only: Option<&str>, sync: Option<&str>) -> Self {
        match (append_only, sync) {
            (Some("yes"), Some("always")) => Self::Always,
            (Some("yes"), Some("everysec")) => Self::EverySecond,
            (Some("no"), _) | (Some("yes"), Some("no")) => Self::None,
            _ => Self::Unknown,
        }
    }

    /// What may be lost that was acknowledged; nothing if nothing may.
    pub fn caution(self) -> Option<&'static str> {
        match self {
            Self::Always => None,
            Self::EverySecond => Some(
                "a crash of Redis' machine loses what was acknowledged in the last seconds \
                 (appendfsync everysec, not always)",
            ),
            Self::None => Some(
                "a crash of Redis loses what was acknowledged (it needs appendonly yes and \
                 appendfsync always)",
            ),
            Self::Unknown => Some(
                "Redis does not say whether a crash loses what was acknowledged (it needs \
                 appendonly yes and appendfsync always)",
            ),
        }
    }
}

/// Opens a server: its link, and what it promises.
pub(super) async fn open(
    url: &str,
    prefix: &str,
    settings: RedisSettings,
) -> Result<(Link, Durability), RedisOpenError> {
    if !is_prefix(prefix) {
        let shown: String = prefix.chars().take(80).collect();
        return Err(RedisOpenError::Prefix(shown.escape_debug().to_string()));
    }
    let address = |error: redis::RedisError| RedisOpenError::Address(error.to_string());
    let info = url.into_connection_info().map_err(address)?;
    let resp3 = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    let client = Client::open(info.set_redis_settings(resp3)).map_err(address)?;
    let eviction = settings.eviction;
    let link = Link::new(client, Names::new(prefix), settings);
    link.operate(check_layout(&link, prefix)).await?;
    let durability = Durability::of(
        setting(&link, "appendonly").await.as_deref(),
        setting(&link, "appendfsync").await.as_deref(),
    );
    if let Some(caution) = durability.caution() {
        tracing::warn!(target: "prowess::store", "{caution}");
    }
    check_eviction(setting(&link, "maxmemory-policy").await, eviction)?;
    Ok((link, durability))
}

/// A setting of the server, if it says so.
async fn setting(link: &Link, name: &str) -> Option<String> {
    let command = cmd("CONFIG").arg("GET").arg(name).to_owned();
    let answer = link.operate(async { link.ask::<Vec<(String, String)>>(&command).await });
    answer.await.ok()?.into_iter().next().map(|(_, value)| value)
}

/// That the server keeps what it has, unless that is not asked of it.
fn check_eviction(policy: Option<String>, eviction: Eviction) -> Result<(), RedisOpenError> {
    match (policy, eviction) {
        (Some(policy), _) if policy == "noeviction" => {}
        (Some(policy), Eviction::Refuse) => return Err(RedisOpenError::Evicts(policy)),
        (Some(policy), Eviction::Accept) => tracing::warn!(
            target: "prowess::store",
            policy, "Redis may remove what is stored when its memory is full"
        ),
        (None, _) => tracing::warn!(
            target: "prowess::store",
            "Redis does not say whether it removes what is stored when its memory is full; \
             maxmemory-policy must be noeviction"
        ),
    }
    Ok(())
}

/// That the keys are ours, and none that only a newer program knows; or that there are none of
/// others. A server that has lost its data may have been written to since.
async fn check_layout(link: &Link, prefix: &str) -> Result<(), RedisOpenError> {
    let key = link.names().of_registry(":layout");
    let foreign = || RedisOpenError::Foreign(prefix.to_owned());
    let kind: String = link.ask(cmd("TYPE").arg(&key)).await?;
    if kind == "none" {
        if has_foreign_keys(link).await? {
            return Err(foreign());
        }
        link.ask::<Option<String>>(cmd("SET").arg(&key).arg(format!("{OURS}{LAYOUT}")).arg("NX"))
            .await?;
    } else if kind != "string" {
        return Err(foreign());
    }
    let text: Option<String> = link.ask(cmd("GET").arg(&key)).await?;
    let number = text.as_deref().and_then(|text| text.strip_prefix(OURS)?.parse().ok());
    match number {
        Some(layout) if layout > LAYOUT => Err(RedisOpenError::Newer { layout, known: LAYOUT }),
        Some(_) => Ok(()),
        None => Err(foreign()),
    }
}

/// Whether there are keys with the prefix that this program never makes, of the first million.
async fn has_foreign_keys(link: &Link) -> Result<bool, Unavailable> {
    let (mut cursor, mut scanned) = ("0".to_owned(), 0);
    loop {
        let mut scan = cmd("SCAN");
        scan.arg(&cursor).arg("MATCH").arg(link.names().pattern()).arg("COUNT").arg(SCANNED);
        let (next, keys): (String, Vec<String>) = link.ask(&scan).await?;
        scanned += SCANNED;
        if keys.iter().any(|key| !link.names().is_ours(key)) {
            return Ok(true);
        }
        if next == "0" || scanned >= MOST_SCANNED {
            return Ok(false);
        }
        cursor = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_say_what_an_acknowledged_write_means() {
        let of = |a, b| Durability::of(Some(a), Some(b));
        assert_eq!(of("yes", "always"), Durability::Always);
        assert_eq!(of("yes", "everysec"), Durability::EverySecond);
        assert_eq!(of("yes", "no"), Durability::None);
        assert_eq!(of("no", "always"), Durability::None);
        assert_eq!(Durability::of(None, None), Durability::Unknown);
    }
}
