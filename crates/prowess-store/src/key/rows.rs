//! Keys as stores keep them.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{ApiKey, KeyError, Role, Secret, StoredKey, check_name, generate};

/// A key as it is stored, not yet understood.
pub(crate) struct KeyRow {
    /// Its id, its name, its role.
    pub(crate) texts: [String; 3],
    pub(crate) hash: Vec<u8>,
    /// When it was made, when it ends, when it was revoked.
    pub(crate) times: (i64, Option<i64>, Option<i64>),
}

impl KeyRow {
    pub(crate) fn read(self) -> Result<StoredKey, KeyError> {
        let [id, name, role] = self.texts;
        let corrupt = |cause: String| KeyError::Corrupt { name: name.clone(), cause };
        let time = |millis: i64| {
            Timestamp::from_millisecond(millis).map_err(|error| corrupt(error.to_string()))
        };
        let role: Role = role.parse().map_err(|error| corrupt(format!("{error}")))?;
        let hash: [u8; 32] = self
            .hash
            .as_slice()
            .try_into()
            .map_err(|_| corrupt("its hash has another length".into()))?;
        let (created, expires, revoked) = self.times;
        let mut key = ApiKey::new(id, name.clone(), role, time(created)?);
        key.expires = expires.map(time).transpose()?;
        key.revoked = revoked.map(time).transpose()?;
        Ok(StoredKey::new(key, hash))
    }
}

/// A time as it is stored.
pub(crate) fn in_millis(time: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(time.as_millisecond()).unwrap_or(time)
}

/// A key that may be called so and opens something, the whole of it, and what is stored of its
/// secret.
pub(crate) fn new_key(
    name: &str,
    role: Role,
    expires: Option<Timestamp>,
) -> Result<(ApiKey, Secret, [u8; 32]), KeyError> {
    check_name(name)?;
    let now = in_millis(Timestamp::now());
    let (id, secret, hash) = generate()?;
    let mut key = ApiKey::new(id, name.to_owned(), role, now);
    key.expires = expires.map(in_millis);
    match key.is_usable(now) {
        true => Ok((key, secret, hash)),
        false => Err(KeyError::Expired(key.name)),
    }
}

/// What is said to whoever names a key that is none.
pub(crate) fn no_key(key: &str) -> KeyError {
    let shown: String = key.chars().take(80).collect();
    KeyError::NoKey(shown.escape_debug().to_string())
}

/// What the log says of a key that was made.
pub(crate) fn created(key: &ApiKey) -> Value {
    json!({"id": key.id, "role": key.role, "expires": key.expires})
}

/// What the log says of a key that was revoked.
pub(crate) fn revoked(key: &ApiKey) -> Value {
    json!({"id": key.id})
}
