//! Several instances on one store.

mod commits;
mod kills;
mod reads;

// The servers of the tests.
#[path = "../../../crates/prowess-store/tests/support/postgres_server.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod postgres_server;
#[path = "../../../crates/prowess-store/tests/redis_server/mod.rs"]
mod redis_server;

use anyhow::{Context, Result};
use postgres_server::{PostgresServer, Sync};
use redis_server::RedisServer;

use crate::results::Row;
use crate::service::Service;

/// What Redis does before it acknowledges something.
const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

pub(crate) fn run() -> Result<Vec<Row>> {
    let postgres = PostgresServer::start("bench", Sync::Disk).context("there is no PostgreSQL")?;
    let redis = RedisServer::start_with("bench", &DURABLE).context("there is no redis-server")?;
    let databases = ["reads", "commits", "kills"].map(|name| postgres.url(name));
    let [for_reads, for_commits, for_kills] = &databases;
    commits::make_databases(&postgres.url("postgres"), &["reads", "commits", "kills"])?;
    let mut rows = reads::rows(&Ground::on(for_reads)?)?;
    rows.extend(commits::rows(for_commits, &redis.url())?);
    rows.push(kills::row(&Ground::on(for_kills)?, "PostgreSQL")?);
    rows.push(kills::row(&Ground::on(&redis.url())?, "Redis")?);
    Ok(rows)
}

/// The servers say why there is none of them.
fn skip(name: &str, why: &str) {
    eprintln!("{name}: {why}");
}

/// A store that instances share, and their homes.
struct Ground {
    folder: tempfile::TempDir,
    store: String,
}

impl Ground {
    fn on(store: &str) -> Result<Self> {
        Ok(Self { folder: tempfile::tempdir()?, store: store.to_owned() })
    }

    /// An instance, started by another program if one is named.
    fn instance(&self, name: &str, through: &[&str]) -> Result<Service> {
        let home = self.folder.path().join(name);
        std::fs::create_dir_all(&home)?;
        // Nobody waits long for one that was killed.
        std::fs::write(home.join("prowess.toml"), "[store]\nlease_seconds = 2\n")?;
        Service::start_through(through, &crate::discovery::prowess()?, &home, Some(&self.store))
    }
}
