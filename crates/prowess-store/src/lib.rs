//! Durable things: sessions on SQLite, the embedded default.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod sqlite;

pub use sqlite::{OpenError, SqliteSessions};
