//! Why a store could not be opened.

use std::path::PathBuf;

/// Why a database could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The folder cannot be made.
    #[error("cannot make the folder {path}: {cause}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        cause: std::io::Error,
    },
    /// SQLite refuses.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// It is somebody else's.
    #[error("the database belongs to another program")]
    Foreign,
    /// A newer program made it.
    #[error("the database has version {version}, this program knows {known}: update it")]
    Newer {
        /// Its version.
        version: usize,
        /// The newest one that is known.
        known: usize,
    },
    /// There is no thread for it.
    #[error("no thread for the database: {0}")]
    Thread(std::io::Error),
    /// The address of a server is none.
    #[error("the address of the store cannot be read: {0}")]
    Address(String),
    /// The server is not there, or refuses.
    #[error("the store cannot be reached: {0}")]
    Unreachable(String),
}
