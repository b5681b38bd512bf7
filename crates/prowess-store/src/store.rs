//! Everything durable, wherever it is.

use std::sync::Arc;

use prowess_catalog::ContentStore;
use prowess_runtime::SessionStore;

use crate::key::KeyStore;
use crate::notices::Notices;
#[cfg(feature = "postgres")]
use crate::postgres::PostgresStore;
use crate::sqlite::SqliteStore;
use crate::usage::UsageStore;
use crate::version::VersionStore;

/// Everything durable. Cheap to clone.
#[derive(Clone)]
#[non_exhaustive]
pub struct Store {
    /// Sessions.
    pub sessions: Arc<dyn SessionStore>,
    /// Versions of skills.
    pub versions: Arc<dyn VersionStore>,
    /// What skills are used for.
    pub usage: Arc<dyn UsageStore>,
    /// Keys.
    pub keys: Arc<dyn KeyStore>,
    /// Content that sessions refer to, where it is kept with them. Without it each machine keeps
    /// its own.
    pub content: Option<Arc<dyn ContentStore>>,
    /// What other processes change, where somebody tells of it.
    pub notices: Notices,
    /// What may be lost that was acknowledged, for whoever operates it; nothing if nothing may.
    pub caution: Option<&'static str>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Store").finish_non_exhaustive()
    }
}

impl From<&SqliteStore> for Store {
    fn from(store: &SqliteStore) -> Self {
        Self {
            sessions: Arc::new(store.sessions()),
            versions: Arc::new(store.versions()),
            usage: Arc::new(store.usage()),
            keys: Arc::new(store.keys()),
            content: None,
            notices: Notices::default(),
            caution: None,
        }
    }
}

#[cfg(feature = "postgres")]
impl From<&PostgresStore> for Store {
    fn from(store: &PostgresStore) -> Self {
        Self {
            sessions: Arc::new(store.sessions()),
            versions: Arc::new(store.versions()),
            usage: Arc::new(store.usage()),
            keys: Arc::new(store.keys()),
            content: Some(Arc::new(store.content())),
            notices: store.notices(),
            caution: None,
        }
    }
}

#[cfg(feature = "redis")]
impl From<&crate::redis::RedisStore> for Store {
    fn from(store: &crate::redis::RedisStore) -> Self {
        Self {
            sessions: Arc::new(store.sessions()),
            versions: Arc::new(store.versions()),
            usage: Arc::new(store.usage()),
            keys: Arc::new(store.keys()),
            content: Some(Arc::new(store.content())),
            notices: store.notices(),
            caution: store.durability().caution(),
        }
    }
}
