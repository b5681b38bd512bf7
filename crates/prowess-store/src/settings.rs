//! What bounds a store, wherever it is.

use std::time::Duration;

/// What bounds a store, and what it accepts. A SQLite database needs none of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreSettings {
    /// So many connections to PostgreSQL at most; one more listens to notices. To Redis there is
    /// one for everything, and one that listens.
    pub connections: usize,
    /// So long a connection may take, and an operation waits for one.
    pub connect_time: Duration,
    /// So long the server may take to answer.
    pub answer_time: Duration,
    /// What is done with a Redis that removes keys when its memory is full.
    pub eviction: Eviction,
}

impl Default for StoreSettings {
    /// 16 connections, 5 seconds to connect, 10 to answer; no Redis that removes keys.
    fn default() -> Self {
        Self {
            connections: 16,
            connect_time: Duration::from_secs(5),
            answer_time: Duration::from_secs(10),
            eviction: Eviction::Refuse,
        }
    }
}

/// What is done with a server that removes keys when its memory is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eviction {
    /// It is not opened.
    #[default]
    Refuse,
    /// It is opened, with a warning: sessions and skills may vanish.
    Accept,
}
