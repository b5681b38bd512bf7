//! Addresses of databases.

use std::path::{Path, PathBuf};

use sqlx::mysql::MySqlConnectOptions;
use sqlx::postgres::PgConnectOptions;

use super::dialect::SqlDialect;

/// Where a database is.
#[derive(Clone, Debug)]
pub(crate) enum Address {
    /// In a file.
    Sqlite(PathBuf),
    /// On a server.
    Postgresql(Box<PgConnectOptions>),
    /// On a server.
    Mysql(Box<MySqlConnectOptions>),
}

/// Why an address cannot be used. It is not repeated: it may hold a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidAddress {
    /// It does not say what kind of database it means.
    #[error("the address must begin with sqlite:, postgresql:// or mysql://")]
    Scheme,
    /// There are no such databases here.
    #[error("'{0}' is no kind of database that is known: sqlite, postgresql, mysql, mariadb")]
    Kind(String),
    /// Something else is wrong with it.
    #[error("the address cannot be used: {0}")]
    Invalid(String),
    /// It names no file.
    #[error("the address names no file; a database in memory would always be empty")]
    NoFile,
}

impl Address {
    /// What an address means. `sqlite:////srv/a.db` and `sqlite:/srv/a.db` name a file anywhere,
    /// `sqlite:a.db` one below `home`. `sqlite:///a.db` is one below as well, as some programs write
    /// it; others write `sqlite:///srv/a.db` for one anywhere, and where there is such a folder that
    /// is meant.
    pub(crate) fn parse(url: &str, home: &Path) -> Result<Self, InvalidAddress> {
        let (scheme, rest) = url.split_once(':').ok_or(InvalidAddress::Scheme)?;
        let is_scheme = |it: char| it.is_ascii_alphanumeric() || it == '+';
        if scheme.is_empty() || !scheme.chars().all(is_scheme) {
            return Err(InvalidAddress::Scheme);
        }
        let invalid = |error: sqlx::Error| {
            InvalidAddress::Invalid(match error {
                sqlx::Error::Configuration(cause) => cause.to_string(),
                other => other.to_string(),
            })
        };
        match SqlDialect::of_scheme(scheme) {
            Some(SqlDialect::Sqlite) => {
                // Three slashes before a file below, as others write it; one or none is as well.
                let path = match rest.strip_prefix("//") {
                    Some(path) if is_in_a_folder(path) => path,
                    Some(path) => path.strip_prefix('/').unwrap_or(path),
                    None => rest,
                };
                let path = path.split('?').next().unwrap_or(path);
                match path {
                    "" | ":memory:" => Err(InvalidAddress::NoFile),
                    path => Ok(Self::Sqlite(home.join(path))),
                }
            }
            Some(SqlDialect::Postgresql) => {
                let options = format!("postgresql:{rest}").parse().map_err(invalid)?;
                Ok(Self::Postgresql(Box::new(options)))
            }
            Some(SqlDialect::Mysql) => {
                let options = format!("mysql:{rest}").parse().map_err(invalid)?;
                Ok(Self::Mysql(Box::new(options)))
            }
            None => Err(InvalidAddress::Kind(scheme.to_owned())),
        }
    }

    /// What kind of database it is.
    pub(crate) fn dialect(&self) -> SqlDialect {
        match self {
            Self::Sqlite(_) => SqlDialect::Sqlite,
            Self::Postgresql(_) => SqlDialect::Postgresql,
            Self::Mysql(_) => SqlDialect::Mysql,
        }
    }
}

/// Whether a path says where a file is, and there is such a folder that is not the root.
fn is_in_a_folder(path: &str) -> bool {
    let folder = Path::new(path).parent().filter(|folder| folder.parent().is_some());
    path.starts_with('/') && !path.starts_with("//") && folder.is_some_and(Path::is_dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_others_write_them() {
        let home = Path::new("/home/p");
        for (url, expected) in [
            ("sqlite:///demo.db", "/home/p/demo.db"),
            ("sqlite:////srv/demo.db", "/srv/demo.db"),
            ("sqlite:///tmp/demo.db", "/tmp/demo.db"),
            ("sqlite:///no-such-folder/demo.db", "/home/p/no-such-folder/demo.db"),
            ("sqlite:/srv/demo.db", "/srv/demo.db"),
            ("sqlite:demo.db", "/home/p/demo.db"),
            ("sqlite://demo.db?mode=rw", "/home/p/demo.db"),
        ] {
            let Ok(Address::Sqlite(path)) = Address::parse(url, home) else { panic!("{url}") };
            assert_eq!(path, Path::new(expected), "{url}");
        }
        for (url, expected) in [
            ("postgresql://u:p@h:1/d", SqlDialect::Postgresql),
            ("postgresql+psycopg2://u:p@h/d", SqlDialect::Postgresql),
            ("postgres://h/d", SqlDialect::Postgresql),
            ("mysql://u@h/d", SqlDialect::Mysql),
            ("mysql+pymysql://u@h/d", SqlDialect::Mysql),
            ("mariadb://u@h/d", SqlDialect::Mysql),
        ] {
            assert_eq!(Address::parse(url, home).unwrap().dialect(), expected, "{url}");
        }
        for url in ["", "demo.db", "sqlite:", "sqlite://", "sqlite::memory:", "oracle://h", "a b:c"]
        {
            assert!(Address::parse(url, home).is_err(), "{url}");
        }
    }
}
