//! Keys of the service: who may do what over HTTP.

pub(crate) mod rows;

use std::fmt;
use std::pin::Pin;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::version::Actor;

/// What every key begins with.
const PREFIX: &str = "prowess_";
/// So many characters has an id.
const ID_CHARACTERS: usize = 12;
/// So many random bytes has a secret.
const SECRET_BYTES: usize = 32;
/// So many characters has a secret.
const SECRET_CHARACTERS: usize = 43;
/// Names that are no keys', because others are called so.
const RESERVED_NAMES: [&str; 2] = ["local", "built-in"];

/// What somebody may do. A higher role may do whatever a lower one may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads, loads, uses sessions.
    Viewer,
    /// Makes and changes skills.
    Editor,
    /// Decides which versions are used, and deletes.
    Publisher,
    /// Sees what everybody does.
    Admin,
}

impl Role {
    /// All of them, the lowest first.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Editor, Self::Publisher, Self::Admin];

    /// The role in a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Editor => "editor",
            Self::Publisher => "publisher",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A word that is no role.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no role; there are viewer, editor, publisher and admin")]
pub struct UnknownRole(String);

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|role| role.as_str() == word);
        found.ok_or_else(|| UnknownRole(word.chars().take(40).collect()))
    }
}

/// A key, without what makes it one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ApiKey {
    /// What finds it: a part of the key that is no secret.
    pub id: String,
    /// What it is called. No other key is called so, unless it was revoked.
    pub name: String,
    /// What its owner may do.
    pub role: Role,
    /// When it was made.
    pub created: Timestamp,
    /// When it ends by itself.
    pub expires: Option<Timestamp>,
    /// When it was revoked.
    pub revoked: Option<Timestamp>,
}

impl ApiKey {
    /// A key that has just been made.
    pub(crate) fn new(id: String, name: String, role: Role, created: Timestamp) -> Self {
        Self { id, name, role, created, expires: None, revoked: None }
    }

    /// Whether it opens anything at this time.
    pub fn is_usable(&self, now: Timestamp) -> bool {
        self.revoked.is_none() && self.expires.is_none_or(|expires| expires > now)
    }
}

/// A key as it is stored: who it is, and what its secret comes to.
#[derive(Clone)]
#[non_exhaustive]
pub struct StoredKey {
    /// Who it is.
    pub key: ApiKey,
    hash: [u8; 32],
}

impl StoredKey {
    /// A key whose secret has this sha256.
    pub fn new(key: ApiKey, hash: [u8; 32]) -> Self {
        Self { key, hash }
    }

    /// Whether this is its secret. How long that takes says nothing about it.
    pub fn has_secret(&self, presented: &PresentedKey<'_>) -> bool {
        let presented = hash_of(presented.secret);
        bool::from(self.hash.as_slice().ct_eq(presented.as_slice()))
    }
}

impl fmt::Debug for StoredKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("StoredKey").field("key", &self.key).finish_non_exhaustive()
    }
}

/// A key that somebody shows: `prowess_<id>_<secret>`.
#[derive(Clone, Copy)]
pub struct PresentedKey<'a> {
    id: &'a str,
    secret: &'a str,
}

impl<'a> PresentedKey<'a> {
    /// The key in a text, if it has the form of one.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let is_id =
            id.len() == ID_CHARACTERS && id.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
        let is_secret = secret.len() == SECRET_CHARACTERS
            && secret.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-' || c == b'_');
        (is_id && is_secret).then_some(Self { id, secret })
    }

    /// What finds it.
    pub fn id(&self) -> &'a str {
        self.id
    }
}

impl fmt::Debug for PresentedKey<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PresentedKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A whole key. It is shown once, when it is made, and kept nowhere.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// The key, as its owner sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

/// A new key: its id, the whole of it, and what is stored of its secret.
fn generate() -> Result<(String, Secret, [u8; 32]), KeyError> {
    let mut random = [0_u8; ID_CHARACTERS / 2 + SECRET_BYTES];
    getrandom::fill(&mut random).map_err(|error| KeyError::NoRandomness(error.to_string()))?;
    let (id, secret) = random.split_at(ID_CHARACTERS / 2);
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let secret = URL_SAFE_NO_PAD.encode(secret);
    let hash = hash_of(&secret);
    Ok((id.clone(), Secret(format!("{PREFIX}{id}_{secret}")), hash))
}

fn hash_of(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// Whether a key may be called so: it becomes the name of a user and of an actor.
fn check_name(name: &str) -> Result<(), KeyError> {
    let is_first = |c: u8| c.is_ascii_alphanumeric();
    let is_next = |c: u8| is_first(c) || matches!(c, b'.' | b'_' | b'-');
    let bytes = name.as_bytes();
    let has_form = bytes.first().is_some_and(|first| is_first(*first))
        && bytes.len() <= 64
        && bytes.iter().all(|byte| is_next(*byte));
    if !has_form {
        let shown: String = name.chars().take(80).collect();
        return Err(KeyError::InvalidName(shown.escape_debug().to_string()));
    }
    if RESERVED_NAMES.contains(&name) {
        return Err(KeyError::ReservedName(name.to_owned()));
    }
    Ok(())
}

/// Why there is no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// A key cannot be called so.
    #[error(
        "'{0}' names no key: 1 to 64 of a-z, A-Z, 0-9, '.', '_' and '-', and the first one a letter or a digit"
    )]
    InvalidName(String),
    /// Somebody else is called so.
    #[error("'{0}' is reserved; choose another name")]
    ReservedName(String),
    /// There is a key of this name.
    #[error("a key '{0}' exists; revoke it, or choose another name")]
    Exists(String),
    /// It would have ended before it began.
    #[error("the key '{0}' would have expired already")]
    Expired(String),
    /// There is no such key.
    #[error("there is no key '{0}'; `prowess keys list` shows them")]
    NoKey(String),
    /// The system gives no random numbers.
    #[error("the system gives no random numbers: {0}")]
    NoRandomness(String),
    /// What is stored cannot be read.
    #[error("the key '{name}' cannot be read: {cause}")]
    Corrupt {
        /// Which key.
        name: String,
        /// What is wrong.
        cause: String,
    },
    /// The store is not there, or refuses.
    #[error("the store failed: {0}")]
    Unavailable(String),
}

impl KeyError {
    /// The stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidName(_) | Self::ReservedName(_) => "invalid_key_name",
            Self::Exists(_) => "key_exists",
            Self::Expired(_) => "key_expired",
            Self::NoKey(_) => "key_not_found",
            Self::NoRandomness(_) => "no_randomness",
            Self::Corrupt { .. } => "corrupt",
            Self::Unavailable(_) => "store_unavailable",
        }
    }
}

/// A future that a store of keys returns.
pub type KeyFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, KeyError>> + Send + 'a>>;

/// Keeps keys, of their secrets only the sha256. Whatever is changed is in the audit log too.
pub trait KeyStore: Send + Sync + 'static {
    /// Makes a key. It is whole only in what this returns. The name of one that was revoked may be
    /// given again: who has the new key has the sessions of the old one.
    fn create<'a>(
        &'a self,
        name: &'a str,
        role: Role,
        expires: Option<Timestamp>,
        actor: &'a Actor,
    ) -> KeyFuture<'a, (ApiKey, Secret)>;

    /// All keys by name, those that open nothing any more too; of one name, the oldest first.
    fn list(&self) -> KeyFuture<'_, Vec<ApiKey>>;

    /// Ends a key, by its name or its id; of those of one name the newest. One that was revoked
    /// before stays as it is.
    fn revoke<'a>(&'a self, key: &'a str, actor: &'a Actor) -> KeyFuture<'a, ApiKey>;

    /// The key with this id, whether it opens anything or not.
    fn find<'a>(&'a self, id: &'a str) -> KeyFuture<'a, Option<StoredKey>>;

    /// How many keys open something now.
    fn usable(&self) -> KeyFuture<'_, u64>;

    /// Whether there has ever been a key, whether it opens anything or not.
    fn has_any(&self) -> KeyFuture<'_, bool>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_ordered_words() {
        assert!(Role::ALL.windows(2).all(|pair| pair[0] < pair[1]));
        for role in Role::ALL {
            assert_eq!(role.to_string().parse(), Ok(role));
            assert_eq!(serde_json::to_value(role).unwrap(), role.as_str());
        }
        assert_eq!("root".parse::<Role>(), Err(UnknownRole("root".into())));
        assert!("Admin".parse::<Role>().is_err());
    }

    #[test]
    fn a_key_has_its_form_and_is_never_printed() {
        let (id, secret, hash) = generate().unwrap();
        let text = secret.expose();
        assert_eq!(text.len(), "prowess_".len() + 12 + 1 + 43);
        let presented = PresentedKey::parse(text).unwrap();
        assert_eq!(presented.id(), id);
        let key = ApiKey::new(id, "ci".into(), Role::Viewer, Timestamp::now());
        let stored = StoredKey::new(key, hash);
        assert!(stored.has_secret(&presented));
        let part = &text[21..];
        for shown in [format!("{secret:?}"), format!("{presented:?}"), format!("{stored:?}")] {
            assert!(!shown.contains(part), "{shown}");
        }
        let (_, other, _) = generate().unwrap();
        assert_ne!(other.expose(), text);
        assert!(!stored.has_secret(&PresentedKey::parse(other.expose()).unwrap()));
    }

    #[test]
    fn what_is_no_key_is_not_taken_for_one() {
        let good = format!("prowess_0123456789ab_{}", "a".repeat(43));
        assert!(PresentedKey::parse(&good).is_some());
        for bad in [
            String::new(),
            "prowess_".into(),
            good[1..].to_owned(),
            format!("{good}a"),
            good[..good.len() - 1].to_owned(),
            good.replace("0123", "0G23"),
            good.replace("0123", "012"),
            format!("prowess_0123456789ab_{}", "ä".repeat(43)),
            format!("{} ", &good[..good.len() - 1]),
        ] {
            assert!(PresentedKey::parse(&bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn names_are_checked_at_their_edges() {
        for good in ["a", "CI.deploy-1_x", "9", &"a".repeat(64)] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        for bad in ["", "-a", ".", "a b", "a/b", "é", "a\n", &"a".repeat(65)] {
            assert!(matches!(check_name(bad), Err(KeyError::InvalidName(_))), "{bad:?}");
        }
        assert!(matches!(check_name("local"), Err(KeyError::ReservedName(_))));
    }
}
