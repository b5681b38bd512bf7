//! Keys in Redis.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use redis::cmd;
use serde::{Deserialize, Serialize};

use super::batch::Batch;
use super::link::{Link, Unavailable};
use crate::key::rows::{KeyRow, created, in_millis, new_key, no_key, revoked};
use crate::key::{ApiKey, KeyError, KeyFuture, KeyStore, Role, Secret, StoredKey};
use crate::version::Actor;

/// So often a key is looked at again because another process was faster.
const ATTEMPTS: usize = 100;

fn busy() -> KeyError {
    Unavailable(format!("others were faster {ATTEMPTS} times; try again")).into()
}

/// Keys in Redis.
#[derive(Clone, Debug)]
pub struct RedisKeys {
    link: Link,
}

/// A key as it is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    name: String,
    role: String,
    /// In Base64.
    hash: String,
    created: i64,
    expires: Option<i64>,
    revoked: Option<i64>,
}

impl Kept {
    fn of(key: &ApiKey, hash: &[u8; 32]) -> Self {
        let millis = |time: Timestamp| time.as_millisecond();
        Self {
            name: key.name.clone(),
            role: key.role.to_string(),
            hash: STANDARD.encode(hash),
            created: millis(key.created),
            expires: key.expires.map(millis),
            revoked: key.revoked.map(millis),
        }
    }

    fn parse(id: &str, text: &str) -> Result<Self, KeyError> {
        let corrupt = |error: serde_json::Error| KeyError::Corrupt {
            name: id.to_owned(),
            cause: error.to_string(),
        };
        serde_json::from_str(text).map_err(corrupt)
    }

    fn write(&self) -> Result<String, KeyError> {
        let corrupt = |error: serde_json::Error| KeyError::Corrupt {
            name: self.name.clone(),
            cause: error.to_string(),
        };
        serde_json::to_string(self).map_err(corrupt)
    }

    fn read(self, id: &str) -> Result<StoredKey, KeyError> {
        let corrupt = |error: base64::DecodeError| KeyError::Corrupt {
            name: self.name.clone(),
            cause: error.to_string(),
        };
        let hash = STANDARD.decode(&self.hash).map_err(corrupt)?;
        let (texts, times) =
            ([id.to_owned(), self.name, self.role], (self.created, self.expires, self.revoked));
        KeyRow { texts, hash, times }.read()
    }
}

impl RedisKeys {
    pub(super) fn new(link: Link) -> Self {
        Self { link }
    }

    /// What is kept of the key with this id.
    async fn kept(&self, id: &str) -> Result<Option<String>, Unavailable> {
        let name = self.link.names().of_registry(":keys");
        self.link.ask(cmd("HGET").arg(name).arg(id)).await
    }

    /// The id of the newest key of this name.
    async fn named(&self, name: &str) -> Result<Option<String>, Unavailable> {
        let names = self.link.names().of_registry(":key-names");
        self.link.ask(cmd("HGET").arg(names).arg(name)).await
    }

    /// Writes a key down, unless its name is taken: by one that was not revoked, or as an id.
    async fn add(&self, key: &ApiKey, hash: &[u8; 32], actor: &Actor) -> Result<(), KeyError> {
        let (name, new) = (key.name.as_str(), Kept::of(key, hash).write()?);
        for _ in 0..ATTEMPTS {
            let before = self.named(name).await?;
            let taken = match &before {
                Some(id) => match self.kept(id).await? {
                    Some(text) => Kept::parse(id, &text)?.revoked.is_none(),
                    None => false,
                },
                None => false,
            };
            if taken || self.kept(name).await?.is_some() {
                return Err(KeyError::Exists(key.name.clone()));
            }
            let mut batch = Batch::new(&self.link);
            batch.expect(":keys", &key.id, "");
            batch.expect(":keys", name, "");
            // What was revoked stays so.
            batch.expect(":key-names", name, before.as_deref().unwrap_or_default());
            batch.add("HSET", ":keys", &[key.id.as_bytes(), new.as_bytes()]);
            batch.add("HSET", ":key-names", &[name.as_bytes(), key.id.as_bytes()]);
            batch.note(actor, "key.create", name, &created(key), key.created);
            if batch.commit().await? {
                return Ok(());
            }
        }
        Err(busy())
    }

    async fn all(&self) -> Result<Vec<ApiKey>, KeyError> {
        let name = self.link.names().of_registry(":keys");
        let texts: Vec<(String, String)> = self.link.ask(cmd("HGETALL").arg(name)).await?;
        let keys = texts.iter().map(|(id, text)| Ok(Kept::parse(id, text)?.read(id)?.key));
        let mut keys = keys.collect::<Result<Vec<_>, KeyError>>()?;
        // Of one name, each was revoked before the next one was made.
        let age = |key: &ApiKey| (key.revoked.is_none(), key.revoked, key.created);
        keys.sort_by(|a, b| (&a.name, age(a), &a.id).cmp(&(&b.name, age(b), &b.id)));
        Ok(keys)
    }

    async fn revoke_now(&self, key: &str, actor: &Actor) -> Result<ApiKey, KeyError> {
        for _ in 0..ATTEMPTS {
            // A name comes before an id.
            let id = self.named(key).await?.unwrap_or_else(|| key.to_owned());
            let Some(text) = self.kept(&id).await? else {
                return Err(no_key(key));
            };
            let mut kept = Kept::parse(&id, &text)?;
            let was_revoked = kept.revoked.is_some();
            let now = in_millis(Timestamp::now());
            kept.revoked = kept.revoked.or(Some(now.as_millisecond()));
            let new = kept.write()?;
            let found = kept.read(&id)?.key;
            if was_revoked {
                return Ok(found);
            }
            let mut batch = Batch::new(&self.link);
            batch.expect(":keys", &id, &text);
            batch.add("HSET", ":keys", &[id.as_bytes(), new.as_bytes()]);
            batch.note(actor, "key.revoke", &found.name, &revoked(&found), now);
            if batch.commit().await? {
                return Ok(found);
            }
        }
        Err(busy())
    }
}

impl KeyStore for RedisKeys {
    fn create<'a>(
        &'a self,
        name: &'a str,
        role: Role,
        expires: Option<Timestamp>,
        actor: &'a Actor,
    ) -> KeyFuture<'a, (ApiKey, Secret)> {
        self.link.operate(async move {
            let (key, secret, hash) = new_key(name, role, expires)?;
            self.add(&key, &hash, actor).await?;
            Ok((key, secret))
        })
    }

    fn list(&self) -> KeyFuture<'_, Vec<ApiKey>> {
        self.link.operate(self.all())
    }

    fn revoke<'a>(&'a self, key: &'a str, actor: &'a Actor) -> KeyFuture<'a, ApiKey> {
        self.link.operate(self.revoke_now(key, actor))
    }

    fn find<'a>(&'a self, id: &'a str) -> KeyFuture<'a, Option<StoredKey>> {
        self.link.operate(async move {
            let Some(text) = self.kept(id).await? else { return Ok(None) };
            Kept::parse(id, &text)?.read(id).map(Some)
        })
    }

    fn usable(&self) -> KeyFuture<'_, u64> {
        self.link.operate(async move {
            let now = Timestamp::now();
            Ok(self.all().await?.iter().filter(|key| key.is_usable(now)).count() as u64)
        })
    }

    fn has_any(&self) -> KeyFuture<'_, bool> {
        // Keys that end stay where they are.
        self.link.operate(async move {
            let name = self.link.names().of_registry(":keys");
            Ok(self.link.ask::<u64>(cmd("HLEN").arg(name)).await? > 0)
        })
    }
}
