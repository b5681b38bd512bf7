//! Everything durable in one Redis server.
//!
//! What must be done as a whole is one script (`*.lua`). Decisions are not made there: this process
//! reads, decides by the rules that all stores share, and the script writes if what was read is
//! still so.

mod batch;
mod commit;
mod content;
mod keys;
mod leases;
mod link;
mod names;
mod notices;
mod open;
mod outbox;
mod script;
mod sessions;
mod usage;
mod versions;

use tokio::runtime::Handle;

pub use content::RedisContent;
pub use keys::RedisKeys;
pub use open::{Durability, RedisOpenError, RedisSettings};
pub use sessions::RedisSessions;
pub use usage::RedisUsage;
pub use versions::RedisVersions;

use crate::notices::Notices;
use link::Link;

/// A Redis server that holds everything durable. Cheap to clone.
///
/// Redis 7 or newer; nothing else may remove keys, so that `maxmemory-policy` must be `noeviction`.
/// What an acknowledged write means depends on the server: see [`RedisStore::durability`]. An
/// operation takes 10 seconds at most, a connection 5 ([`RedisSettings`]); a lost connection is made
/// again by itself.
///
/// The keys of one script have one hash tag, so that they can be kept in a cluster. This store
/// speaks with one address and follows no `MOVED`: that of a server, or of a node that has all
/// slots, or of a proxy that finds the others.
///
/// ```no_run
/// # async fn open() -> Result<(), prowess_store::RedisOpenError> {
/// use prowess_store::RedisStore;
///
/// let store = RedisStore::open("redis://127.0.0.1:6379/0", RedisStore::PREFIX).await?;
/// let sessions = store.sessions();
/// # let _ = sessions;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RedisStore {
    link: Link,
    durability: Durability,
    content: RedisContent,
    notices: Notices,
}

impl RedisStore {
    /// What keys begin with unless somebody says otherwise.
    pub const PREFIX: &str = "prowess";

    /// Opens a server, at `redis://…`, or `rediss://…` with TLS. All keys begin with the prefix.
    pub async fn open(url: &str, prefix: &str) -> Result<Self, RedisOpenError> {
        Self::open_with(url, prefix, RedisSettings::default()).await
    }

    /// Opens it with other bounds.
    pub async fn open_with(
        url: &str,
        prefix: &str,
        settings: RedisSettings,
    ) -> Result<Self, RedisOpenError> {
        let (link, durability) = open::open(url, prefix, settings).await?;
        let notices = Notices::default();
        let listening = tokio::spawn(notices::listen(link.apart(), notices.clone()));
        link.end_with(listening.abort_handle());
        let content = RedisContent::new(link.clone(), Handle::current());
        Ok(Self { link, durability, content, notices })
    }

    /// What an acknowledged write means, by the settings that the server had when it was opened.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// Its sessions.
    pub fn sessions(&self) -> RedisSessions {
        RedisSessions::new(self.link.clone())
    }

    /// Its versions of skills.
    pub fn versions(&self) -> RedisVersions {
        RedisVersions::new(self.link.clone())
    }

    /// What its skills are used for.
    pub fn usage(&self) -> RedisUsage {
        RedisUsage::new(self.link.clone())
    }

    /// Its keys.
    pub fn keys(&self) -> RedisKeys {
        RedisKeys::new(self.link.clone())
    }

    /// Content that sessions refer to.
    pub fn content(&self) -> RedisContent {
        self.content.clone()
    }

    /// What is changed, by whichever process, as long as this store, or a part of it, is there.
    pub fn notices(&self) -> Notices {
        self.notices.clone()
    }
}
