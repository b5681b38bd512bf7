//! Whether a store takes changes is asked by a change.

mod support;

use std::time::Duration;

use prowess_store::SqliteStore;
use support::place::{Place, on_each_durable_store};

on_each_durable_store! {
    a_store_that_takes_changes_says_so_and_one_that_does_not_too
}

async fn a_store_that_takes_changes_says_so_and_one_that_does_not_too(place: Place) {
    let store = place.open().await;
    for _ in 0..3 {
        store.usage.probe().await.unwrap();
    }
    refuse(&place).await;
    // It can be read all the same.
    store.usage.totals().await.unwrap();
    // Who must wait for others does not know how long.
    let probed = tokio::time::timeout(Duration::from_secs(2), store.usage.probe()).await;
    match (probed, place) {
        (Err(_), Place::Sqlite(_)) => {}
        (probed, _) => {
            let error = probed.unwrap().unwrap_err();
            assert_eq!(error.code(), "store_unavailable", "{error}");
        }
    }
}

/// From now on nothing can be written there.
async fn refuse(place: &Place) {
    match place {
        Place::Memory => panic!("memory keeps sessions only"),
        Place::Sqlite(folder) => {
            let path = folder.path().join("prowess.db");
            drop(SqliteStore::open(&path).unwrap());
            let database = rusqlite::Connection::open(path).unwrap();
            // Somebody else writes, and does not end.
            database.execute_batch("BEGIN IMMEDIATE").unwrap();
            std::mem::forget(database);
        }
        Place::Postgres(database) => {
            let mut connection = database.connection().await;
            let sql = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET \
                       default_transaction_read_only = on', current_database()); END $$;
                       SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                       WHERE datname = current_database() AND pid <> pg_backend_pid()";
            sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
        }
        Place::Redis(server) => {
            let mut connection = server.connection();
            let mut full = ::redis::cmd("CONFIG");
            full.arg("SET").arg("maxmemory").arg(1).exec(&mut connection).unwrap();
        }
    }
}
