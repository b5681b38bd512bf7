//! Everything durable in one SQLite database, the embedded default.

mod database;
mod keys;
mod leases;
mod schema;
mod session_queries;
mod sessions;
mod usage;
mod versions;

use std::path::Path;

pub use keys::SqliteKeys;
pub use sessions::SqliteSessions;
pub use usage::SqliteUsage;
pub use versions::SqliteVersions;

use crate::open::OpenError;
use database::Database;

/// A SQLite database that holds everything durable. Cheap to clone.
///
/// ```no_run
/// use prowess_store::SqliteStore;
///
/// let store = SqliteStore::open("/var/lib/prowess/prowess.db").unwrap();
/// let sessions = store.sessions();
/// # let _ = sessions;
/// ```
#[derive(Clone, Debug)]
pub struct SqliteStore {
    database: Database,
}

impl SqliteStore {
    /// Opens a database, or makes it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Ok(Self { database: Database::open(path.as_ref())? })
    }

    /// Its sessions.
    pub fn sessions(&self) -> SqliteSessions {
        SqliteSessions::new(self.database.clone())
    }

    /// Its versions of skills.
    pub fn versions(&self) -> SqliteVersions {
        SqliteVersions::new(self.database.clone())
    }

    /// What its skills are used for.
    pub fn usage(&self) -> SqliteUsage {
        SqliteUsage::new(self.database.clone())
    }

    /// Its keys.
    pub fn keys(&self) -> SqliteKeys {
        SqliteKeys::new(self.database.clone())
    }
}
