//! Everything durable in one PostgreSQL database, for several machines.

mod commit;
mod content;
mod keys;
mod leases;
mod listen;
mod pool;
mod schema;
mod session_queries;
mod sessions;
mod usage;
mod versions;

use std::sync::Arc;

use sqlx::postgres::PgConnectOptions;

pub use content::PostgresContent;
pub use keys::PostgresKeys;
pub use pool::PostgresSettings;
pub use sessions::PostgresSessions;
pub use usage::PostgresUsage;
pub use versions::PostgresVersions;

use crate::notices::Notices;
use crate::open::OpenError;
use listen::Listening;
use pool::Pool;

/// A PostgreSQL database that holds everything durable, and nothing else. Cheap to clone.
///
/// Several processes may use one database. While the server is away every operation fails within
/// the time that the [`PostgresSettings`] give it; once it is back, so is the store. What was
/// acknowledged is on the server's disk; an operation that the server did not answer may have been
/// done all the same.
///
/// ```no_run
/// # async fn example() -> Result<(), prowess_store::OpenError> {
/// use prowess_store::PostgresStore;
///
/// let store = PostgresStore::open("postgres://prowess@db.example.org/prowess").await?;
/// let sessions = store.sessions();
/// # let _ = sessions;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PostgresStore {
    database: Database,
    content: PostgresContent,
}

/// What all parts of a store share.
#[derive(Clone)]
struct Database {
    pool: Pool,
    listening: Arc<Listening>,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not where it is: addresses have passwords.
        formatter.debug_struct("Database").field("settings", self.pool.settings()).finish()
    }
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PostgresStore").field("database", &self.database).finish()
    }
}

impl PostgresStore {
    /// Opens the database at this address, with tables that are made where they are missing.
    ///
    /// Where one of several servers is the one that writes, all their addresses are given, with
    /// commas between them: `postgres://one/prowess,postgres://two/prowess`.
    pub async fn open(url: &str) -> Result<Self, OpenError> {
        Self::open_with(url, PostgresSettings::default()).await
    }

    /// Opens it with other bounds.
    pub async fn open_with(url: &str, settings: PostgresSettings) -> Result<Self, OpenError> {
        let pool = Pool::new(servers(url)?, settings);
        let mut connection =
            pool.connect().await.map_err(|error| OpenError::Unreachable(error.0))?;
        schema::prepare(&mut connection).await?;
        drop(connection);
        let listening = Arc::new(Listening::start(pool.clone()));
        let content = PostgresContent::new(pool.clone());
        Ok(Self { database: Database { pool, listening }, content })
    }

    /// Its sessions.
    pub fn sessions(&self) -> PostgresSessions {
        PostgresSessions::new(self.database.clone())
    }

    /// Its versions of skills.
    pub fn versions(&self) -> PostgresVersions {
        PostgresVersions::new(self.database.clone())
    }

    /// What its skills are used for.
    pub fn usage(&self) -> PostgresUsage {
        PostgresUsage::new(self.database.clone())
    }

    /// Its keys.
    pub fn keys(&self) -> PostgresKeys {
        PostgresKeys::new(self.database.clone())
    }

    /// Content that its sessions refer to.
    pub fn content(&self) -> PostgresContent {
        self.content.clone()
    }

    /// What is changed in it, by whichever process. It tells as long as any part of the store is
    /// there.
    pub fn notices(&self) -> Notices {
        self.database.listening.notices()
    }
}

/// The servers that an address names.
fn servers(url: &str) -> Result<Vec<PgConnectOptions>, OpenError> {
    let starts = url.match_indices(",postgres").map(|(at, _)| at + 1);
    let starts: Vec<usize> = std::iter::once(0).chain(starts).collect();
    let ends = starts[1..].iter().map(|start| start - 1).chain([url.len()]);
    let parse = |(start, end): (&usize, usize)| {
        let address: &str = &url[*start..end];
        if !address.starts_with("postgres://") && !address.starts_with("postgresql://") {
            return Err(OpenError::Address("it begins with no postgres://".to_owned()));
        }
        address.parse().map_err(|error: sqlx::Error| OpenError::Address(error.to_string()))
    };
    starts.iter().zip(ends).map(parse).collect()
}

/// A text as PostgreSQL can keep it: all characters but one.
fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_one_server_or_several() {
        let hosts = |url: &str| {
            let servers = servers(url).map_err(|error| error.to_string());
            servers.map(|it| it.iter().map(|it| it.get_host().to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(hosts("postgres://a/x").unwrap(), ["a"]);
        assert_eq!(hosts("postgresql://u:p,q@a:1/x").unwrap(), ["a"]);
        assert_eq!(hosts("postgres://a:1/x,postgresql://b:2/x").unwrap(), ["a", "b"]);
        for wrong in ["", "a", "mysql://a/x", "postgres://a:port/x", ",postgres://a/x"] {
            let error = hosts(wrong).unwrap_err();
            assert!(error.starts_with("the address of the store cannot be read"), "{error}");
        }
    }
}
