//! Where stores are tested: each kind in a place of its own.
//!
//! A further kind of store is one more variant of [`Place`], one more function that makes it, and
//! its name in the three macros.

// Not every test needs every kind.
#![allow(unused_macros, unused_imports)]

use std::sync::Arc;

use prowess_format::Digest;
use prowess_runtime::{Lifetime, MemorySessions, SessionStore};
use prowess_store::{PostgresStore, RedisStore, SqliteStore, Store};

use super::postgres_server::{self, Database};
use super::redis_server::RedisServer;

/// Each promise becomes a test of each store of sessions.
macro_rules! on_each_store {
    ($($promise:ident)+) => {
        $crate::support::place::on_stores!([memory sqlite postgres redis redis_cluster] { $($promise)+ });
    };
}

/// Each promise becomes a test of each store that keeps everything.
macro_rules! on_each_durable_store {
    ($($promise:ident)+) => {
        $crate::support::place::on_stores!([sqlite postgres redis redis_cluster] { $($promise)+ });
    };
}

/// Each promise becomes a test of each store that several machines share.
macro_rules! on_each_shared_store {
    ($($promise:ident)+) => {
        $crate::support::place::on_stores!([postgres redis redis_cluster] { $($promise)+ });
    };
}

macro_rules! on_stores {
    ([$($store:ident)+] $promises:tt) => {
        $($crate::support::place::on_stores!($store $promises);)+
    };
    ($store:ident { $($promise:ident)+ }) => {
        mod $store {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $promise() {
                    let test = concat!(stringify!($store), "::", stringify!($promise));
                    if let Some(place) = crate::support::place::$store(test).await {
                        super::$promise(place).await;
                    }
                }
            )+
        }
    };
}

pub(crate) use {on_each_durable_store, on_each_shared_store, on_each_store, on_stores};

/// Where a store keeps things. Whoever opens it twice is two processes, as it were.
pub(crate) enum Place {
    /// What is opened twice is twice empty.
    Memory,
    Sqlite(tempfile::TempDir),
    Postgres(Database),
    Redis(RedisServer),
}

pub(crate) async fn memory(_test: &str) -> Option<Place> {
    Some(Place::Memory)
}

pub(crate) async fn sqlite(_test: &str) -> Option<Place> {
    Some(Place::Sqlite(tempfile::tempdir().unwrap()))
}

/// `None` without a server, which is told.
pub(crate) async fn postgres(test: &str) -> Option<Place> {
    Some(Place::Postgres(postgres_server::shared(test)?.database().await))
}

/// `None` without a server, which is told.
pub(crate) async fn redis(test: &str) -> Option<Place> {
    RedisServer::start(test).map(Place::Redis)
}

/// The node of a cluster, which refuses scripts whose keys could be on several.
pub(crate) async fn redis_cluster(test: &str) -> Option<Place> {
    RedisServer::start_cluster(test).map(Place::Redis)
}

impl Place {
    /// Its sessions.
    pub(crate) async fn sessions(&self, lifetime: Lifetime) -> Arc<dyn SessionStore> {
        match self {
            Self::Memory => Arc::new(MemorySessions::new().with_lifetime(lifetime)),
            Self::Sqlite(folder) => {
                Arc::new(open_sqlite(folder).sessions().with_lifetime(lifetime))
            }
            Self::Postgres(database) => {
                let store = PostgresStore::open(&database.url()).await.unwrap();
                Arc::new(store.sessions().with_lifetime(lifetime))
            }
            Self::Redis(server) => {
                Arc::new(open_redis(server).await.sessions().with_lifetime(lifetime))
            }
        }
    }

    /// Everything.
    pub(crate) async fn open(&self) -> Store {
        match self {
            Self::Memory => panic!("memory keeps sessions only"),
            Self::Sqlite(folder) => Store::from(&open_sqlite(folder)),
            Self::Postgres(database) => {
                Store::from(&PostgresStore::open(&database.url()).await.unwrap())
            }
            Self::Redis(server) => Store::from(&open_redis(server).await),
        }
    }
}

impl Place {
    /// Removes what is kept under this digest, as somebody does who damages the store.
    pub(crate) async fn lose(&self, digest: &Digest) {
        let removed = match self {
            Self::Memory => panic!("memory keeps sessions only"),
            Self::Sqlite(folder) => {
                let path = folder.path().join("prowess.db");
                let database = rusqlite::Connection::open(path).unwrap();
                database
                    .execute("DELETE FROM files WHERE digest = ?1", [digest.as_bytes()])
                    .unwrap()
            }
            Self::Postgres(database) => {
                let delete = sqlx::query("DELETE FROM files WHERE digest = $1");
                let delete = delete.bind(digest.as_bytes().as_slice());
                let done = delete.execute(&mut database.connection().await).await.unwrap();
                usize::try_from(done.rows_affected()).unwrap()
            }
            Self::Redis(server) => {
                let name = format!("{}:{{registry}}:files", RedisStore::PREFIX);
                let mut command = redis::cmd("HDEL");
                command.arg(name).arg(digest.hex()).query(&mut server.connection()).unwrap()
            }
        };
        assert_eq!(removed, 1, "{digest:?} was there");
    }
}

fn open_sqlite(folder: &tempfile::TempDir) -> SqliteStore {
    SqliteStore::open(folder.path().join("prowess.db")).unwrap()
}

async fn open_redis(server: &RedisServer) -> RedisStore {
    RedisStore::open(&server.url(), RedisStore::PREFIX).await.unwrap()
}
