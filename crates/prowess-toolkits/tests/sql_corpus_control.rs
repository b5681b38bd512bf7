//! What the corpus says of itself, without anything of ours in between: that the hostile statements
//! which are said to write do, and that the honest ones run.

#![cfg(feature = "sql")]

#[path = "sql_corpus/mod.rs"]
mod corpus;
mod sql_servers;

use std::collections::HashSet;

use corpus::{honest, hostile};
use sql_servers::{Database, Kind, Role};

/// The least number of statements of each sort.
const LEAST: usize = 150;

#[test]
fn there_are_enough_statements_and_none_is_there_twice() {
    for kind in Kind::ALL {
        let hostile: Vec<_> = hostile(kind).into_iter().map(|it| it.sql).collect();
        for all in [hostile, honest(kind)] {
            assert!(all.len() >= LEAST, "{kind:?}: {}", all.len());
            let different: HashSet<_> = all.iter().collect();
            assert_eq!(different.len(), all.len(), "{kind:?}");
        }
    }
}

/// Runs a query past everything and says how many rows it gave.
async fn rows(database: &Database, sql: &str) -> Result<usize, String> {
    let text = |error: sqlx::Error| error.to_string();
    match database.kind {
        Kind::Sqlite => {
            let connection = database.sqlite();
            let mut statement = connection.prepare(sql).map_err(|error| error.to_string())?;
            let mut rows = statement.raw_query();
            let mut count = 0;
            while rows.next().map_err(|error| error.to_string())?.is_some() {
                count += 1;
            }
            Ok(count)
        }
        Kind::Postgresql => {
            let mut connection = database.postgresql(Role::Reader).await;
            let query = sqlx::query(sqlx::AssertSqlSafe(sql.to_owned()));
            Ok(query.fetch_all(&mut connection).await.map_err(text)?.len())
        }
        Kind::Mysql => {
            let mut connection = database.mysql(Role::Reader).await;
            let query = sqlx::query(sqlx::AssertSqlSafe(sql.to_owned()));
            Ok(query.fetch_all(&mut connection).await.map_err(text)?.len())
        }
    }
}

async fn honest_statements_run(kind: Kind) {
    let test = format!("honest_statements_run_on_{}", kind.name());
    let Some(database) = Database::new(&test, kind).await else { return };
    let before = database.dump().await;
    let mut wrong = Vec::new();
    for sql in honest(kind) {
        match rows(&database, &sql).await {
            Ok(0) => wrong.push(format!("no rows: {sql}")),
            Ok(_) => {}
            Err(error) => wrong.push(format!("{error}: {sql}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(database.dump().await, before);
}

#[tokio::test]
async fn honest_statements_run_on_sqlite() {
    honest_statements_run(Kind::Sqlite).await;
}

#[tokio::test]
async fn honest_statements_run_on_postgresql() {
    honest_statements_run(Kind::Postgresql).await;
}

#[tokio::test]
async fn honest_statements_run_on_mariadb() {
    honest_statements_run(Kind::Mysql).await;
}

/// Each hostile statement that is said to write is run on a database of its own by somebody who may
/// do everything, and the dump tells it.
async fn hostile_statements_write(kind: Kind) {
    let test = format!("hostile_statements_write_on_{}", kind.name());
    let Some(mut database) = Database::alone(&test, kind).await else { return };
    let mut before = database.dump().await;
    let mut harmless = Vec::new();
    for hostile in hostile(kind).into_iter().filter(|hostile| hostile.writes) {
        let sql = database.place(&hostile.sql);
        if database.dump_after(&sql).await.is_some_and(|after| after != before) {
            continue;
        }
        let ran = database.run(Role::Superuser, &sql).await;
        if database.gone().await || database.dump().await != before {
            database = database.another().await;
            before = database.dump().await;
        } else {
            harmless.push(format!("{ran:?}: {sql}"));
        }
    }
    assert!(harmless.is_empty(), "{}", harmless.join("\n"));
}

#[tokio::test]
async fn hostile_statements_write_on_sqlite() {
    hostile_statements_write(Kind::Sqlite).await;
}

#[tokio::test]
async fn hostile_statements_write_on_postgresql() {
    hostile_statements_write(Kind::Postgresql).await;
}

#[tokio::test]
async fn hostile_statements_write_on_mariadb() {
    hostile_statements_write(Kind::Mysql).await;
}
