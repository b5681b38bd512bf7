//! Where everything durable is, in one line.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::settings::StoreSettings;
use crate::sqlite::SqliteStore;
use crate::store::Store;

/// All keys in Redis begin so.
#[cfg(feature = "redis")]
const PREFIX: &str = "prowess";

/// Where everything durable is: `sqlite:PATH`, `postgres://…` or `redis://…`.
///
/// As text it is without password.
///
/// ```
/// use prowess_store::StoreUrl;
///
/// let url: StoreUrl = "postgres://ann:secret@db.example/prowess".parse().unwrap();
/// assert_eq!(url.to_string(), "postgres://ann:***@db.example/prowess");
/// assert_eq!("mysql://db".parse::<StoreUrl>().unwrap_err().code(), "unknown_store");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl(Place);

#[derive(Clone, PartialEq, Eq)]
enum Place {
    Sqlite(PathBuf),
    Postgres(String),
    Redis(String),
}

/// Why there is no store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreUrlError {
    /// No such kind of store is known.
    #[error(
        "'{0}' names no store: write sqlite:PATH, postgres://USER@HOST/DATABASE or redis://HOST"
    )]
    Unknown(String),
    /// This program was built without it.
    #[error("this program was built without {0}: build it with the feature `{0}`")]
    NotBuilt(&'static str),
    /// The store cannot be opened.
    #[error("cannot open {url}: {cause}")]
    Open {
        /// Which.
        url: String,
        /// What it says.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl StoreUrlError {
    /// The stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "unknown_store",
            Self::NotBuilt(_) => "store_not_built",
            Self::Open { .. } => "store_unavailable",
        }
    }
}

impl StoreUrl {
    /// A SQLite database at this path.
    pub fn sqlite(path: impl Into<PathBuf>) -> Self {
        Self(Place::Sqlite(path.into()))
    }

    /// Opens it, or makes it.
    pub async fn open(&self) -> Result<Store, StoreUrlError> {
        self.open_with(&StoreSettings::default()).await
    }

    /// Opens it with other bounds.
    #[cfg_attr(not(any(feature = "postgres", feature = "redis")), expect(unused_variables))]
    pub async fn open_with(&self, settings: &StoreSettings) -> Result<Store, StoreUrlError> {
        match &self.0 {
            Place::Sqlite(path) => match SqliteStore::open(path) {
                Ok(store) => Ok(Store::from(&store)),
                Err(error) => Err(self.failed(error)),
            },
            #[cfg(feature = "postgres")]
            Place::Postgres(url) => {
                let of_postgres = crate::postgres::PostgresSettings {
                    connections: settings.connections,
                    connect_time: settings.connect_time,
                    statement_time: settings.answer_time,
                    ..Default::default()
                };
                match crate::postgres::PostgresStore::open_with(url, of_postgres).await {
                    Ok(store) => Ok(Store::from(&store)),
                    Err(error) => Err(self.failed(error)),
                }
            }
            #[cfg(not(feature = "postgres"))]
            Place::Postgres(_) => Err(StoreUrlError::NotBuilt("postgres")),
            #[cfg(feature = "redis")]
            Place::Redis(url) => {
                let of_redis = crate::redis::RedisSettings {
                    connect_time: settings.connect_time,
                    answer_time: settings.answer_time,
                    eviction: settings.eviction,
                };
                match crate::redis::RedisStore::open_with(url, PREFIX, of_redis).await {
                    Ok(store) => Ok(Store::from(&store)),
                    Err(error) => Err(self.failed(error)),
                }
            }
            #[cfg(not(feature = "redis"))]
            Place::Redis(_) => Err(StoreUrlError::NotBuilt("redis")),
        }
    }

    fn failed(&self, error: impl std::error::Error + Send + Sync + 'static) -> StoreUrlError {
        StoreUrlError::Open { url: self.to_string(), cause: Box::new(error) }
    }
}

impl FromStr for StoreUrl {
    type Err = StoreUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            Some(("sqlite", path)) if !path.trim_start_matches('/').is_empty() => {
                Ok(Self::sqlite(path.strip_prefix("//").unwrap_or(path)))
            }
            Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => {
                Ok(Self(Place::Postgres(text.to_owned())))
            }
            Some(("redis" | "rediss", rest)) if rest.starts_with("//") => {
                Ok(Self(Place::Redis(text.to_owned())))
            }
            _ => Err(StoreUrlError::Unknown(without_password(text).escape_debug().to_string())),
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Place::Sqlite(path) => write!(formatter, "sqlite:{}", path.display()),
            Place::Postgres(url) => {
                // Several servers may be named, with commas between them.
                let servers = url.replace(",postgres", "\n,postgres");
                servers.lines().try_for_each(|it| formatter.write_str(&without_password(it)))
            }
            Place::Redis(url) => formatter.write_str(&without_password(url)),
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "StoreUrl({self})")
    }
}

/// An address without what only its owner may know: the password, whatever characters it has, and
/// everything behind `?`, where one may stand as well.
fn without_password(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (who, rest) = match rest.rfind('@') {
        Some(at) => (&rest[..at], &rest[at..]),
        None => ("", rest),
    };
    let who = who.split_once(':').map_or(who.to_owned(), |(user, _)| format!("{user}:***"));
    let rest = rest.split_once('?').map_or(rest.to_owned(), |(rest, _)| format!("{rest}?***"));
    let between = if url.contains("://") { "://" } else { "" };
    format!("{scheme}{between}{who}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        let table = [
            ("sqlite:/var/prowess.db", "sqlite:/var/prowess.db"),
            ("sqlite:///var/prowess.db", "sqlite:/var/prowess.db"),
            ("sqlite:prowess.db", "sqlite:prowess.db"),
            ("postgres://localhost/a", "postgres://localhost/a"),
            ("postgresql://ann@localhost/a", "postgresql://ann@localhost/a"),
            ("postgres://ann:a:b@c@localhost/a", "postgres://ann:***@localhost/a"),
            ("postgres://localhost/a?password=x", "postgres://localhost/a?***"),
            (
                "postgres://a:x@one/a,postgres://a:y@two/a",
                "postgres://a:***@one/a,postgres://a:***@two/a",
            ),
            ("postgres://ann:a/b?c@localhost/a?x=y", "postgres://ann:***@localhost/a?***"),
            ("postgres://ann:a?b/c@localhost/a", "postgres://ann:***@localhost/a"),
            ("redis://:a/b@localhost", "redis://:***@localhost"),
            ("rediss://:secret@localhost:6379/0", "rediss://:***@localhost:6379/0"),
        ];
        for (text, shown) in table {
            let url: StoreUrl = text.parse().unwrap();
            assert_eq!(url.to_string(), shown);
            assert_eq!(format!("{url:?}"), format!("StoreUrl({shown})"));
        }
    }

    #[test]
    fn what_names_no_store_is_refused_without_its_password() {
        for text in ["", "sqlite:", "sqlite://", "postgres:a", "redis", "http://ann:secret@x/"] {
            let error = text.parse::<StoreUrl>().unwrap_err();
            assert_eq!(error.code(), "unknown_store", "{text}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
