//! From Redis to keys and values.

use std::collections::BTreeSet;
use std::time::Duration;

use redis::{Cmd, Connection, FromRedisValue, RedisError, cmd};

use super::{Layout, LayoutValue};

/// How much is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchLimits {
    /// Keys of skills.
    pub keys: usize,
    /// Bytes of one value.
    pub value_bytes: u64,
    /// Bytes of all values.
    pub total_bytes: u64,
    /// How long an answer may take.
    pub answer_time: Duration,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self {
            keys: 100_000,
            value_bytes: 16 << 20,
            total_bytes: 512 << 20,
            answer_time: Duration::from_secs(10),
        }
    }
}

impl FetchLimits {
    /// Sets [`FetchLimits::keys`].
    pub fn with_keys(mut self, keys: usize) -> Self {
        self.keys = keys;
        self
    }

    /// Sets [`FetchLimits::value_bytes`].
    pub fn with_value_bytes(mut self, bytes: u64) -> Self {
        self.value_bytes = bytes;
        self
    }

    /// Sets [`FetchLimits::total_bytes`].
    pub fn with_total_bytes(mut self, bytes: u64) -> Self {
        self.total_bytes = bytes;
        self
    }
}

/// Why nothing was read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The address is none of a Redis database. It is not shown: it may hold a password.
    #[error("the address is none of a Redis database, such as redis://127.0.0.1:6379/0: {0}")]
    Address(String),
    /// The server does not answer, or refuses.
    #[error("the Redis server failed: {0}")]
    Server(String),
    /// There is more than may be read.
    #[error("there is more than `{limit}` = {most} allows, at the key '{key}'")]
    Limit {
        /// The name of the limit.
        limit: &'static str,
        /// Its value.
        most: u64,
        /// The key that exceeds it.
        key: String,
    },
}

impl FetchError {
    /// The stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Address(_) => "invalid_address",
            Self::Server(_) => "redis_unavailable",
            Self::Limit { .. } => "import_limit",
        }
    }
}

impl From<RedisError> for FetchError {
    fn from(error: RedisError) -> Self {
        Self::Server(error.to_string())
    }
}

const PAGE: usize = 500;
const PATTERNS: [&str; 2] = ["skill:*", "skills:custom:index"];

/// Reads all keys of langchain-docker from the database at an address. Nothing is written, and the
/// server is never kept from others: keys and members are read page by page. Blocks.
pub fn fetch(address: &str, limits: &FetchLimits) -> Result<Layout, FetchError> {
    let client = redis::Client::open(address).map_err(|error| {
        let text = error.to_string();
        FetchError::Address(text.replace(address, "…"))
    })?;
    let connection = client.get_connection_with_timeout(limits.answer_time)?;
    connection.set_read_timeout(Some(limits.answer_time))?;
    connection.set_write_timeout(Some(limits.answer_time))?;
    let mut reader = Reader { connection, limits: *limits, bytes: 0 };
    let mut layout = Layout::default();
    for key in reader.keys()? {
        if let Some(value) = reader.value(&key)? {
            let key = String::from_utf8_lossy(&key).into_owned();
            layout.entries.insert(key, value);
        }
    }
    Ok(layout)
}

struct Reader {
    connection: Connection,
    limits: FetchLimits,
    bytes: u64,
}

impl Reader {
    fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, FetchError> {
        Ok(command.query(&mut self.connection)?)
    }

    /// All keys, each once.
    fn keys(&mut self) -> Result<BTreeSet<Vec<u8>>, FetchError> {
        let mut keys = BTreeSet::new();
        for pattern in PATTERNS {
            self.pages(&cmd("SCAN"), Some(pattern), pattern, |page: Vec<Vec<u8>>, limits| {
                keys.extend(page);
                let too_many = keys.len() > limits.keys;
                too_many.then_some(("keys", limits.keys as u64))
            })?;
        }
        Ok(keys)
    }

    /// Reads pages until there are no more, or too many.
    fn pages<T: FromRedisValue>(
        &mut self,
        scan: &Cmd,
        pattern: Option<&str>,
        key: &str,
        mut take: impl FnMut(T, &FetchLimits) -> Option<(&'static str, u64)>,
    ) -> Result<(), FetchError> {
        let mut cursor: u64 = 0;
        loop {
            let mut page = scan.clone();
            page.arg(cursor);
            if let Some(pattern) = pattern {
                page.arg("MATCH").arg(pattern);
            }
            page.arg("COUNT").arg(PAGE);
            let (next, items): (u64, T) = self.ask(&page)?;
            if let Some((limit, most)) = take(items, &self.limits) {
                return Err(FetchError::Limit { limit, most, key: key.to_owned() });
            }
            cursor = next;
            if cursor == 0 {
                return Ok(());
            }
        }
    }

    /// What a key holds; `None` if it is gone.
    fn value(&mut self, key: &[u8]) -> Result<Option<LayoutValue>, FetchError> {
        let name = String::from_utf8_lossy(key).into_owned();
        let kind: String = self.ask(cmd("TYPE").arg(key))?;
        Ok(match kind.as_str() {
            "none" => None,
            "string" => {
                let length: u64 = self.ask(cmd("STRLEN").arg(key))?;
                self.admit(&name, length)?;
                let value: Option<Vec<u8>> = self.ask(cmd("GET").arg(key))?;
                value.map(LayoutValue::String)
            }
            "set" => Some(LayoutValue::Set(self.members(&name, key, "SSCAN")?)),
            "zset" => {
                let flat = self.members(&name, key, "ZSCAN")?;
                let (pairs, _) = flat.as_chunks::<2>();
                let pair = |[member, score]: &[String; 2]| {
                    (member.clone(), score.parse().unwrap_or(f64::NAN))
                };
                let mut pairs: Vec<_> = pairs.iter().map(pair).collect();
                pairs.sort_by(|a, b| a.0.cmp(&b.0));
                pairs.dedup_by(|a, b| a.0 == b.0);
                Some(LayoutValue::SortedSet(pairs))
            }
            _ => Some(LayoutValue::Other(kind)),
        })
    }

    /// The members of a set, which a scan may tell twice.
    fn members(
        &mut self,
        name: &str,
        key: &[u8],
        command: &str,
    ) -> Result<Vec<String>, FetchError> {
        let mut scan = cmd(command);
        scan.arg(key);
        let (mut members, mut bytes) = (Vec::new(), 0);
        self.pages(&scan, None, name, |page: Vec<Vec<u8>>, limits| {
            bytes += page.iter().map(|it| it.len() as u64 + 24).sum::<u64>();
            members.extend(page.iter().map(|it| String::from_utf8_lossy(it).into_owned()));
            (bytes > limits.value_bytes).then_some(("value_bytes", limits.value_bytes))
        })?;
        self.admit(name, bytes)?;
        if command == "SSCAN" {
            members.sort_unstable();
            members.dedup();
        }
        Ok(members)
    }

    /// Whether so many bytes more may be read.
    fn admit(&mut self, key: &str, bytes: u64) -> Result<(), FetchError> {
        self.bytes = self.bytes.saturating_add(bytes);
        let FetchLimits { value_bytes, total_bytes, .. } = self.limits;
        let exceeded = match (bytes > value_bytes, self.bytes > total_bytes) {
            (true, _) => Some(("value_bytes", value_bytes)),
            (_, true) => Some(("total_bytes", total_bytes)),
            _ => None,
        };
        match exceeded {
            Some((limit, most)) => Err(FetchError::Limit { limit, most, key: key.to_owned() }),
            None => Ok(()),
        }
    }
}
